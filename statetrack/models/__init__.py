"""The models, one file each; a file's name is the model's name.

`MODELS["bilinear-cp"]` imports only that model's file. Other models come from the entry
points of the group `statetrack.models`, or from a user's own file (`--plugin`). A name `hf:TYPE`
is that of a model of transformers, which no list shows: `statetrack.models._hf_names`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statetrack.registry import Registry, modules_in

if TYPE_CHECKING:
    from statetrack.models._base import SequenceModel


def _of_transformers(name: str) -> object:
    from statetrack.models._hf import make_class  # torch, and transformers

    return make_class(name)


MODELS: Registry[type[SequenceModel]] = Registry(
    "model",
    find=lambda: modules_in("statetrack.models"),
    entry_points="statetrack.models",
    listing="statetrack list models",
    open_sets={"hf": _of_transformers},
)
