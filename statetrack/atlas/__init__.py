"""The atlas: what the algebra says of many machines, and what trained models do on them.

This file imports nothing, so that machine files can be listed without NumPy.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
