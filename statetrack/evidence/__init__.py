"""Evidence: what a trained model does, beyond the accuracy on sampled words.

`kinds` has what is found, as typed values that a run keeps; it imports no torch. Most other modules
find one of them: of a model, and of the automaton that it should follow, read through `Subject`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
