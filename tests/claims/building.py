"""The second part: every *can* with a size, built from hand-set weights and run."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from statetrack import predicting
from statetrack.algebra import Need
from statetrack.constructions import BeyondBudget, Case, Followed, NotBuilt, build_case
from statetrack.models import SequenceModel
from statetrack.predicting import predict
from statetrack.sources import Automaton
from tests.claims.cells import Cell, algebra_of, automaton_of
from tests.claims.running import follow


@dataclass(frozen=True)
class Budget:
    """What is built: larger cells are counted as beyond it."""

    size: int = 100
    """The largest predicted value of any setting."""
    symbols: int = 10_000
    """The length of every word."""
    words: int = 3
    """One is random, one mostly a power of a short word, one of long runs."""


@dataclass(frozen=True)
class Built:
    """What became of one cell that can: `exact`, `WRONG`, or why it was not built.

    It is `broken` where the construction itself raises an error, as after a change of its model.
    """

    cell: Cell
    outcome: str
    detail: str = ""
    margin: float | None = None
    single: str = ""
    """What became of an exact one in float32: `exact`, or where it was wrong first."""

    def to_json(self) -> dict[str, Any]:
        """The model and the task by name, and what became of them."""
        return {
            "model": self.cell.variant.name,
            "task": self.cell.task,
            "outcome": self.outcome,
            "detail": self.detail,
            "margin": self.margin,
            "single": self.single,
        }


def built_model(model: str, automaton: Automaton, **options: Any) -> SequenceModel:
    """The model that is built by hand for any automaton, at the predicted sizes.

    Raises `NotBuilt` where there is no construction, and `AssertionError` where what is predicted
    is not that it can, or where the model is larger than predicted.
    """
    algebra = predicting.algebra_of(automaton)
    prediction = predict(algebra, model, **options)
    assert prediction.can == "yes", prediction.theorem
    made, _ = build_case(Case(model, options, automaton, algebra, prediction))
    for need in prediction.needs:
        if need.value is not None:
            assert getattr(made.settings, need.setting) <= max(need.value, 1), need
    assert isinstance(made, SequenceModel)
    return made


def build_and_run(cell: Cell, budget: Budget) -> Built:
    """Build a cell's model at the predicted values and run it on hard words."""
    if not cell.sized:
        return Built(cell, "no size")
    largest = max((_units(need) for need in cell.prediction.needs), default=0)
    if largest > budget.size:
        return Built(cell, "beyond the budget", f"{largest} > {budget.size}")
    automaton = automaton_of(cell.task)
    case = Case(
        cell.variant.model,
        dict(cell.variant.options),
        automaton,
        algebra_of(cell.task),
        cell.prediction,
    )
    try:
        model, _ = build_case(case)
    except NotBuilt as why:
        return Built(cell, "not built", str(why))
    except BeyondBudget as why:
        return Built(cell, "beyond the budget", str(why))
    except Exception as why:  # a model that has changed: the others are still to be checked
        return Built(cell, "broken", f"{type(why).__name__}: {why}")
    parameters = sum(parameter.numel() for parameter in model.parameters())
    for need in cell.prediction.needs:
        value = getattr(model.settings, need.setting)
        if need.value is None or value > max(need.value, 1):
            return Built(cell, "not built", f"{need.setting} = {value} is more than predicted")
    assert isinstance(model, SequenceModel)
    width = max(automaton.num_labels, parameters // 100)
    double, single = (
        follow(each, automaton, budget.symbols, num_words=budget.words, width=width)
        for each in (model, copy.deepcopy(model).float())
    )
    if not double.exact:
        return Built(cell, "WRONG", _wrong(double), double.margin)
    margin = double.margin
    return Built(cell, "exact", "", margin, "exact" if single.exact else _wrong(single))


def _wrong(found: Followed) -> str:
    return f"{found.wrong} of {found.num_symbols} wrong, first at {found.first_wrong}"


def _units(need: Need) -> int:
    """The size that a setting stands for: of the width, a quarter, which is a head's of four."""
    value = need.value or 0
    return value // 4 if need.setting == "width" else value
