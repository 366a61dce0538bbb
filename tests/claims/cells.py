"""The cells: every model, with the choices of settings that change its recurrence, x every task."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from statetrack import predicting
from statetrack.algebra import Algebra, Prediction
from statetrack.errors import StatetrackError
from statetrack.models import MODELS, recurrence_of
from statetrack.predicting import predict
from statetrack.settings import build
from statetrack.sources import Automaton
from statetrack.spec import TASKS, load_task

BEFORE = Path(__file__).parent / "before.json"
"""Counts by model, of default settings, in the version before sizes and rules were checked."""

OTHER_VALUES: dict[str, Mapping[str, Sequence[Any]]] = {
    "mamba3": {"turned": (0.0,), "slowest": (0.0,)},
    "xlstm": {"pattern": ("m",)},
}
"""Values of settings that are no choices among a few, and that change the recurrence."""

RECORDED_TASKS = ("s3", "parity", "flip-flop", "tomita-3", "random-permutations", "register")
"""Tasks whose cells are in the record one by one; of the others, only the counts are."""

ANSWERS = ("yes", "no", "unknown")


@dataclass(frozen=True)
class Variant:
    """A model with the settings in which it differs from its defaults."""

    model: str
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def name(self) -> str:
        """The model's name and options, as on a command line."""
        words = [f"--{name.replace('_', '-')} {value}" for name, value in self.options]
        return " ".join([self.model, *words])


@dataclass(frozen=True)
class Cell:
    """What is predicted for a variant of a model on a task."""

    variant: Variant
    task: str
    prediction: Prediction

    @property
    def key(self) -> tuple[str, str]:
        """The variant and the task, by name."""
        return self.variant.name, self.task

    @property
    def sized(self) -> bool:
        """Whether it can, and every setting that has to be large enough has a value."""
        needs = self.prediction.needs
        return self.prediction.can == "yes" and all(need.value is not None for need in needs)

    @property
    def complaints(self) -> list[str]:
        """What is missing, or contradicts itself, in the prediction alone."""
        found, prediction = [], self.prediction
        if not prediction.theorem.strip() or not prediction.source.strip():
            found.append("no theorem, or no source")
        if prediction.can not in ANSWERS:
            found.append(f"the answer is {prediction.can!r}")
        for need in prediction.needs:
            if need.value is not None and need.value < 1:
                found.append(f"{need.setting} = {need.value}")
        if self.sized and prediction.needs:
            values = {need.setting: need.value for need in prediction.needs}
            again = _answer_at(self.variant, values, self.task)
            if again not in ("yes", None):
                found.append(f"with the predicted {values} the answer is {again!r}")
        return found


def variants(models: Sequence[str] = ()) -> list[Variant]:
    """All models with default settings, and each choice that gives another recurrence."""
    found = []
    for model in models or MODELS:
        kind = MODELS[model].settings_class
        usual = recurrence_of(kind())
        found.append(Variant(model))
        choices: dict[str, Sequence[Any]] = {
            name: get_args(field.annotation)
            for name, field in kind.model_fields.items()
            if get_origin(field.annotation) is Literal
        }
        for name, values in {**choices, **OTHER_VALUES.get(model, {})}.items():
            for value in values:
                if recurrence_of(kind(**{name: value})) != usual:
                    found.append(Variant(model, ((name, value),)))
    return found


def tasks_with_automata() -> list[str]:
    """The shipped tasks that have an automaton."""
    return [name for name in TASKS if load_task(name).has_automaton]


@cache
def automaton_of(task: str) -> Automaton:
    """The automaton of a task, loaded once."""
    return load_task(task).automaton


def algebra_of(task: str) -> Algebra:
    """The algebra of a task, computed once."""
    return predicting.algebra_of(automaton_of(task))


def cells(models: Sequence[str] = (), tasks: Sequence[str] = ()) -> Iterator[Cell]:
    """Every cell, task by task."""
    chosen = variants(models)
    for task in tasks or tasks_with_automata():
        for variant in chosen:
            options = dict(variant.options)
            yield Cell(variant, task, predict(algebra_of(task), variant.model, **options))


def counts(found: Sequence[Cell]) -> dict[str, dict[str, int]]:
    """How many cells of each variant are *can*, *cannot* and *unknown*."""
    table: dict[str, Counter[str]] = {}
    for cell in found:
        table.setdefault(cell.variant.name, Counter())[cell.prediction.can] += 1
    return {name: {answer: row[answer] for answer in ANSWERS} for name, row in table.items()}


def counts_before() -> dict[str, dict[str, int]]:
    """The recorded counts of the version before; by model, with default settings only."""
    recorded: dict[str, dict[str, int]] = json.loads(BEFORE.read_text())
    return recorded


def _answer_at(variant: Variant, values: Mapping[str, Any], task: str) -> str | None:
    """The answer for the model with the predicted values; None where they need others beside."""
    options = {**dict(variant.options), **values}
    try:
        settings = build(MODELS[variant.model].settings_class, options, variant.model)
    except StatetrackError:
        return None
    return predict(algebra_of(task), settings).answer
