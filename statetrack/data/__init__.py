"""Words with their labels: drawn for training, streamed for evaluation, written to folders."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
