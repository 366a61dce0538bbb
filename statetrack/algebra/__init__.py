"""The algebra of a task, and what it predicts of recurrences before any training.

`analysis` says what a task's automaton demands; `recurrences` has the classes of recurrence with
the rules of what each can track, and `prediction` their answers. These two need no numpy, so that
a model's settings can name their class at no cost; hence nothing is imported here.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
