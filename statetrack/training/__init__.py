"""Training: a population of replicas of one model, in one process.

The trainer writes no files and prints nothing: it gets batches and yields records. This file
imports nothing, so that `statetrack.training.settings` can be read without torch.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
