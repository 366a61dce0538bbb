"""Exact weights: models that track a task by construction, for every class of recurrence that can.

`build` takes a task and a model, and gives the model with its weights set by hand. What its
recurrence has to do is found by the class of recurrence that its settings name (`classes/`, one
file a class), and how the parameters of a layer are set for that by the layer (`layers/`, one file
for each file of `statetrack.models`, with the same name).

V symbols, S states, H hidden, C labels.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
