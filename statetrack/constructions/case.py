"""What a construction is made for: a model with its options, a task's machine, what is predicted.

S states.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from statetrack.algebra import Algebra, Prediction, Recurrence
from statetrack.errors import BuildError, setting
from statetrack.models import MODELS, SequenceModel, recurrence_of
from statetrack.settings import Settings, build
from statetrack.sources import Automaton


class NotBuilt(BuildError):
    """No construction is known for this case; the text says why."""


class BeyondBudget(BuildError):
    """The construction for this case is known and too large; the text says what is."""


@dataclass(frozen=True)
class Case:
    """A model with the options that are given, a machine and its algebra, what is predicted."""

    model: str
    options: Mapping[str, Any]
    automaton: Automaton
    algebra: Algebra
    prediction: Prediction
    integers: bool = False
    """Whether the weights are to be integers."""

    @property
    def kind(self) -> type[SequenceModel]:
        """The class of the model."""
        return MODELS[self.model]

    @property
    def recurrence(self) -> Recurrence | None:
        """The class of recurrence that the model's settings name."""
        return recurrence_of(build(self.kind.settings_class, self.options, self.model))

    @property
    def sizes(self) -> dict[str, int]:
        """Every setting that has to be large enough: the given value, or the predicted one.

        Where any value does, it is 1. One whose value is not known is left out.
        """
        return {
            need.setting: max(need.value or 1, self.options.get(need.setting, 0))
            for need in self.prediction.needs
            if need.value is not None
        }

    def size(self, name: str) -> int:
        """The size of one setting. Raises `NotBuilt` where none is predicted."""
        if name not in self.sizes:
            raise NotBuilt(f"no value of {setting(name)} is known to be enough")
        return self.sizes[name]

    def room(self, name: str, needed: int) -> int:
        """The size of a setting: the predicted one or what is needed, or more where it is given."""
        given: int = self.options.get(name, 0)
        return max(self.sizes.get(name, needed), given)

    def settings(self, **free: Any) -> Settings:
        """The settings of the model: its options, its sizes, and what a construction needs besides.

        Of these `free` choices, those that the model does not have are left out. A width is at
        least the free one. Raises `NotBuilt` for an option that says otherwise.
        """
        kind = self.kind.settings_class
        chosen: dict[str, Any] = {}
        for name, value in free.items():
            if name not in kind.model_fields or name in self.sizes:
                continue
            given = self.options.get(name, value)
            if given != value and not (name in WIDTHS and given > value):
                least = "at least " if name in WIDTHS else ""
                raise NotBuilt(f"{setting(name, given)}: the construction needs {least}{value}")
            chosen[name] = given
        return build(kind, {**self.options, **chosen, **self.sizes}, self.model)

    def fresh(self, seed: int = 0, **free: Any) -> Any:
        """The model with the first weights that a seed draws, in float64."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return self.kind(
                self.settings(**free),
                num_symbols=self.automaton.num_symbols,
                num_labels=self.automaton.num_labels,
            ).double()

    def blank(self, **free: Any) -> Any:
        """The model with all weights zero, and the gains of norms one, in float64."""
        model = self.fresh(**free)
        with torch.no_grad():
            for module in model.modules():
                is_norm = "norm" in type(module).__name__.lower()
                for name, parameter in module.named_parameters(recurse=False):
                    parameter.fill_(float(is_norm and name == "weight"))
        return model.eval()

    @property
    def asked(self) -> np.ndarray:
        """The states of the smallest machine whose labels are asked for, `[S]`."""
        machine = self.algebra.machine
        asked: np.ndarray = machine.automaton.scored & machine.live
        return asked


WIDTHS = ("width", "hidden")
"""Settings that may be larger than a construction needs: what is added to them does nothing."""
