"""Building a model by its name, for a task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from statetrack.models._base import SequenceModel
from statetrack.models._memory import check_memory
from statetrack.models._registry import MODELS
from statetrack.settings import build
from statetrack.spec import Task, load_task


def make_model(
    name: str, task: Task | str | Path, *, seed: int = 0, **settings: Any
) -> SequenceModel:
    """A model with random initial weights, for the symbols and labels of a task (or its name).

    `settings` are the model's own, by the names that `statetrack show NAME` lists; what is left
    out has its default. The weights are those of a replica with the same `seed` in a run.

    Raises `UnknownNameError` for a name that no model has, and `SettingsError` for a setting that
    the model does not have or that its field refuses, and where its weights do not fit into memory.
    """
    kind, source = MODELS[name], load_task(task).source
    chosen = build(kind.settings_class, settings, name)

    def make() -> SequenceModel:
        return kind(chosen, num_symbols=source.num_symbols, num_labels=source.num_labels)

    check_memory(make, 1, 1, torch.device("cpu"))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make()
