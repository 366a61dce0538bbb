"""Sweeps: many runs from one file, and their results in one table.

This file imports nothing, so that suites can be listed without torch.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
