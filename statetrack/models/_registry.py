"""`MODELS`, the registry of models: a file's name is the model's name."""

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
