"""The algebra of a task, and the predictions for models that follow from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from statetrack.algebra import Algebra
from statetrack.predicting import identification_by, predict
from statetrack.settings import Settings
from statetrack.spec import Task, WordSpec


def describe_algebra(
    task: Task, algebra: Algebra | None, models: Mapping[str, Settings]
) -> dict[str, Any]:
    """A task's algebra, which words identify its machine, and the predictions for models.

    As plain values; null where the task has no algebra. `models` are the settings of every model,
    by the text that is the key of its prediction. A prediction has the number of its witness among
    all different ones, counted from 0.
    """
    if algebra is None:
        return {"algebra": None, "identification": None, "predictions": None, "witnesses": None}
    found = {name: predict(algebra, settings) for name, settings in models.items()}
    witnesses = list(dict.fromkeys(each.witness for each in found.values() if each.witness))
    automaton = algebra.machine.whole
    return {
        "algebra": algebra.to_json(),
        "identification": _describe_identification(WordSpec.of(task), algebra),
        "predictions": {
            name: each.to_json()
            | {"witness": witnesses.index(each.witness) if each.witness else None}
            for name, each in found.items()
        },
        "witnesses": [each.to_json(automaton.symbols, automaton.states) for each in witnesses],
    }


def _describe_identification(words: WordSpec, algebra: Algebra) -> dict[str, Any]:
    found, automaton = identification_by(words, algebra.machine), algebra.machine.automaton
    replaced = None
    if found.replaced is not None:
        state, symbol, target = found.replaced
        replaced = {
            "state": automaton.states[state],
            "symbol": automaton.symbols[symbol],
            "target": automaton.states[target],
        }
    return {
        "needed": found.needed,
        "enough": found.enough,
        "identified": found.by_words_up_to(words.lengths.longest),
        "replaced": replaced,
    }
