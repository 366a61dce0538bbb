"""The survey of one machine: a row of the atlas, more of it with every step of the work."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from statetrack.algebra.analysing import Algebra, analyse
from statetrack.algebra.prediction import Prediction, Witness
from statetrack.atlas.machine_files import MachineFile
from statetrack.atlas.rows import AnswerRow, GroupRow, MachineRow, WitnessRow
from statetrack.errors import StatetrackError
from statetrack.models._facts import MODEL_FACTS
from statetrack.predicting import predict
from statetrack.settings import Settings, build
from statetrack.sources import Automaton
from statetrack.spec import load_task

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
        automaton = load_task(str(file.path)).automaton
    except StatetrackError as wrong:
        yield timed(replace(row, error=_without_path(str(wrong), file.path)), "")
        return
    row = replace(
        row,
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
    yield timed(row, "")


def _settings(text: str, own: Mapping[str, Any]) -> Settings:
    """The settings of a model, with some of its own."""
    return build(MODEL_FACTS[text.split()[0]].settings_class, dict(own), text)


def _without_path(message: str, path: Path) -> str:
    """A message without the file that its row names."""
    return " ".join(message.removeprefix(f"{path}: ").split())


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


def _witness(automaton: Automaton, found: Mapping[str, Prediction]) -> WitnessRow | None:
    """The witness of the largest group that a prediction names: that of the most words.

    Of several with as many words, that of the fewest symbols.
    """
    named: list[Witness] = [each.witness for each in found.values() if each.witness is not None]
    if not named:
        return None
    best = max(named, key=lambda one: (len(one.words), -sum(map(len, one.words))))
    return WitnessRow(
        tuple(tuple(automaton.symbols[symbol] for symbol in word) for word in best.words),
        tuple(automaton.states[state] for state in best.states),
        tuple(automaton.symbols[symbol] for symbol in best.access),
    )
