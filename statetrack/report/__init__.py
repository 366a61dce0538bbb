"""Tables and curves, drawn from rows and run folders; no torch, no models."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
