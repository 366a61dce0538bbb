"""Tasks: sources of words with their meaning, read from YAML files or from names."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
