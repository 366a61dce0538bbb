"""The survey of one machine: a row of the atlas, more of it with every step of the work."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from statetrack.algebra import Algebra, Prediction, analyse, merging_of
from statetrack.atlas.files import MachineFile
from statetrack.atlas.rows import AnswerRow, GroupRow, MachineRow, MergingRow, WitnessRow
from statetrack.errors import StatetrackError
from statetrack.models import MODEL_FACTS
from statetrack.predicting import predict
from statetrack.settings import Settings, build
from statetrack.sources import Automaton, machine_in
from statetrack.spec import Task, load_task

LONG = 1000
"""The length of the words whose merging is looked at."""

Models = Mapping[str, Mapping[str, Any]]
"""The settings of models that differ from their defaults, by texts that begin with their names.

They are plain values, which can be sent to another process.
"""


def survey(file: MachineFile, models: Models) -> Iterator[MachineRow]:
    """The row of a machine file, again and again with more in it; the last one is complete.

    All but the last say in `stopped` what is worked out next, which may take long. A file that
    cannot be read is a row with its error.
    """
    started = time.process_time()
    row = MachineRow(name=file.name, family=file.family)

    def timed(row: MachineRow, doing: str) -> MachineRow:
        return replace(row, seconds=round(time.process_time() - started, 2), stopped=doing)

    yield timed(row, "reading the file")
    try:
        given = machine_in(file.path)
        task = load_task(str(file.path))
    except StatetrackError as wrong:
        yield timed(replace(row, error=_without_path(str(wrong), file.path)), "")
        return
    automaton = task.automaton
    row = replace(
        row,
        given_states=len({state for edge in given.edges for state in (edge.source, edge.target)}),
        states=automaton.num_states,
        inputs=automaton.num_symbols,
        outputs=automaton.num_labels,
    )
    yield timed(row, "its algebra")
    algebra = analyse(automaton)
    row = _with_algebra(row, algebra)
    yield timed(row, "its predictions")
    found = {text: predict(algebra, _settings(text, own)) for text, own in models.items()}
    row = replace(
        row,
        answers={name: _answer(each) for name, each in found.items()},
        witness=_witness(automaton, found),
    )
    yield timed(row, "its merging horizon")
    yield timed(replace(row, merging=_merging(task)), "")


def _settings(text: str, own: Mapping[str, Any]) -> Settings:
    """The settings of a model, with some of its own."""
    return build(MODEL_FACTS[text.split()[0]].settings_class, dict(own), text)


def _without_path(message: str, path: Path) -> str:
    """A message without the file that its row names."""
    for opening in (f"{path}: ", f"{path}, "):
        message = message.removeprefix(opening)
    return " ".join(message.split())


def _with_algebra(row: MachineRow, algebra: Algebra) -> MachineRow:
    """The row with what the algebra says."""
    row = replace(row, states=algebra.num_states, complexity=algebra.complexity.name)
    facts = algebra.monoid
    if facts is None:
        return row
    counted = Counter(
        (group.name, group.order, group.solvable) for group in facts.subgroups if group.order > 1
    )
    largest = sorted(counted, key=lambda group: (-group[1], group[0]))
    return replace(
        row,
        aperiodic=facts.aperiodic,
        solvable=facts.solvable,
        groups=tuple(GroupRow(*group, counted[group]) for group in largest),
    )


def _answer(found: Prediction) -> AnswerRow:
    size_of = found.size_of if found.can == "yes" else None
    return AnswerRow(found.can, found.answer, size_of, found.size if size_of else None)


def _merging(task: Task) -> MergingRow | None:
    """After how many symbols uniform words merge all states, of words of `LONG` symbols."""
    found = merging_of(task.with_words("uniform").automaton, LONG)
    if found is None:
        return None
    half, most = found.symbols_for(0.5), found.symbols_for(0.9)
    return MergingRow(half, most, found.horizon, found.words is None, bool(found.never))


def _witness(automaton: Automaton, found: Mapping[str, Prediction]) -> WitnessRow | None:
    """The witness of the largest group that a prediction names; else of the longest period.

    Of several, that of the fewest symbols.
    """
    named = [each.witness for each in found.values() if each.witness is not None]
    shown = [each for each in named if each.kind in ("group", "powers")]
    if not shown:
        return None
    best = max(shown, key=lambda one: (one.kind == "group", one.order, -sum(map(len, one.words))))
    return WitnessRow(
        tuple(tuple(automaton.symbols[symbol] for symbol in word) for word in best.words),
        tuple(automaton.states[state] for state in best.states),
        tuple(automaton.symbols[symbol] for symbol in best.access),
    )
