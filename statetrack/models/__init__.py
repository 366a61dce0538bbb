"""The models, one file each; a file's name is the model's name.

`MODELS["bilinear-cp"]` imports only that model's file. Other models come from the entry
points of the group `statetrack.models`, or from a user's own file (`--plugin`). A name `hf:TYPE`
is that of a model of transformers, which no list shows: `statetrack.models._hf_names`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
