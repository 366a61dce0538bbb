"""Runs: a model, its words and its training, and the folder in which they are kept.

This file imports nothing, so that run folders can be listed without torch.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
