"""What a task takes from a machine file or a file of traces: `from: broker.dot`, or its path.

A task that comes from a file is complete in itself once it is loaded: its `automaton` is written
out, so that a run and a data card need the file no longer.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from statetrack.errors import TaskError, TaskWarning, nearest_or_known
from statetrack.sources import (
    COPY,
    ENDINGS,
    MISSING_CHOICES,
    NO_ANSWER,
    Automaton,
    Corpus,
    MachineText,
    Missing,
    Source,
    WrongTrace,
    automaton_of,
    distances,
    endings,
    format_of,
    gaps_of,
    is_trace_file,
    machine_in,
    placed,
    read_traces,
    written,
    written_out,
)
from statetrack.text import as_argument

ARGUMENTS: Final = ("missing", "start")
"""What can be said about a machine file: what becomes of missing transitions, and the start."""

OF_TRACES: Final = ("machine", *ARGUMENTS)
"""What can be said about a file of traces: the file of the machine that reads them, and the same
of that."""

_OF_WORDS: Final = ("weights", "scored", "slips", "slip_rate", "labels")
"""Arguments of the kind `transitions` that a task file may add to those of a machine file."""

LONGEST_TRAINED: Final = 100
"""The longest training word of a machine whose task does not say the lengths."""


def from_file(description: Mapping[str, Any], folder: Path, where: str) -> dict[str, Any]:
    """`{from: FILE, ...}` as an automaton that is written out; other descriptions as they are.

    FILE is relative to `folder`. Parts of a description that are automata of their own, such as the
    factors of a product, may come from files too. Raises `TaskError`, opened by `where` or by the
    file, for a file that cannot be read and for arguments that it does not take.
    """
    if "from" not in description:
        if description.get("kind") == "transitions":  # a symbol may be called `from`
            return dict(description)
        return {key: _inside(value, folder, where) for key, value in description.items()}
    given = dict(description)
    name = given.pop("from")
    if isinstance(name, str) and is_trace_file(name):
        if given.pop("kind", "traces") != "traces":
            raise TaskError(f"{where}: a file of traces is of kind 'traces'")
        return traces_of(folder / name, given, folder, where)[0]
    if not isinstance(name, str) or format_of(name) is None:
        raise TaskError(
            f"{where}: from: '{name}' is no file of a machine or of traces: its name must end in "
            f"{', '.join((*endings(), *ENDINGS))}"
        )
    kind = given.pop("kind", "transitions")
    if kind != "transitions":
        raise TaskError(
            f"{where}: a machine that comes from a file is of kind 'transitions', not '{kind}'"
        )
    known = ("from", *ARGUMENTS, *_OF_WORDS)
    for key in given:
        if key not in known:
            raise TaskError(
                f"{where}: there is no '{key}' beside 'from'.{nearest_or_known(key, known)}"
            )
    reading: dict[str, Any] = {key: given.pop(key) for key in ARGUMENTS if key in given}
    automaton, _ = machine_task(folder / name, reading, where)
    if "weights" in given:
        given["weights"] = _by_state(given["weights"], automaton)
    return {"kind": "transitions", **written_out(automaton), **given}


def machine_task(path: Path, reading: Mapping[str, Any], where: str) -> tuple[Automaton, str]:
    """The automaton of a machine file, and a sentence about the machine.

    `reading` has `missing` and `start`, where they are given. Warns with `TaskWarning` where
    transitions are missing and it is not said what becomes of them. Raises `TaskError` for a file
    that cannot be read and for other arguments.
    """
    for key in reading:
        if key not in ARGUMENTS:
            raise TaskError(
                f"{where}: a machine file has no argument '{key}'."
                f"{nearest_or_known(key, ARGUMENTS)}"
            )
    missing = reading.get("missing", MISSING_CHOICES[0])
    if missing not in MISSING_CHOICES:
        raise TaskError(f"{where}: missing: '{missing}' is none of {', '.join(MISSING_CHOICES)}")
    machine = machine_in(path)
    if "start" in reading:
        machine = _started(machine, str(reading["start"]), where)
    try:
        gaps = gaps_of(machine)
        automaton = automaton_of(machine, missing)
    except TaskError as wrong:
        raise placed(path, wrong) from None
    states = {state for edge in machine.edges for state in (edge.source, edge.target)}
    article = "An" if machine.noun == "acceptor" else "A"
    about = f"{article} {machine.noun} of {len(states):,} states, read from {path.name}."
    if gaps:
        about = f"{about} {_about_gaps(machine, gaps, missing)}."
        if "missing" not in reading:
            stays = as_argument(f"{path}:missing=stay")
            warnings.warn(
                f"{path}: {_about_gaps(machine, gaps, missing)}; "
                f"{stays} stays instead, and missing=refuse is an error",
                TaskWarning,
                stacklevel=1,
            )
    return automaton, about


def traces_of(
    path: Path, given: Mapping[str, Any], folder: Path, where: str
) -> tuple[dict[str, Any], Source, str]:
    """A corpus of the traces of a file: its description, the source, and a sentence about it.

    `given` may have `machine`, a file whose path is relative to `folder`, and what can be said
    about that. Raises `TaskError` for a file that cannot be read, and for traces that do not belong
    together, with their lines.
    """
    for key in given:
        if key not in OF_TRACES or (key != "machine" and "machine" not in given):
            raise TaskError(
                f"{where}: a file of traces has no argument '{key}'."
                f"{nearest_or_known(key, OF_TRACES if 'machine' in given else ['machine'])}"
            )
    found = read_traces(path)
    about = f"{sum(trace.times for trace in found):,} recorded traces, read from {path.name}"
    automaton, described = None, {}
    if "machine" in given:
        name = given["machine"]
        if not isinstance(name, str) or format_of(name) is None:
            raise TaskError(f"{where}: machine: '{name}' is no machine file")
        reading = {key: value for key, value in given.items() if key != "machine"}
        automaton, said = machine_task(folder / name, reading, where)
        described = {"machine": {"kind": "transitions", **written_out(automaton)}}
        about = f"{about}, with the labels of a machine. {said}"
    else:
        about = f"{about}, with their outputs as labels."
    try:
        source = Corpus.of(found, automaton)
    except WrongTrace as wrong:
        other = None if wrong.other is None else found[wrong.other].line
        beside = WrongTrace.beside(other, "the trace in line", 0)
        raise TaskError(f"{path}, line {found[wrong.index].line}: {wrong.reason}{beside}") from None
    except TaskError as wrong:
        raise placed(path, wrong) from None
    arguments = written(found, with_outputs=automaton is None)
    return {"kind": "traces", **arguments, **described}, source, about


def default_lengths(source: Source) -> tuple[tuple[int, int], tuple[int, ...]]:
    """Lengths to train and to test on, of a source whose task does not say them.

    Of an automaton: from 2 to twice the longest of the shortest words that lead to a state, from 10
    to 100; and 500. Of traces: up to half of the median
    length of the traces, but 100 at most; and that length, where all parts have such traces.
    """
    if source.automaton is not None:
        start = np.array([source.automaton.start])
        depth = int(distances(source.automaton.delta, start).max())
        return (2, min(max(10, 2 * depth), LONGEST_TRAINED)), (500,)
    longest = min(source.longest_word, source.usual_length)
    return (min(2, longest), max(min(2, longest), min(longest // 2, LONGEST_TRAINED))), (longest,)


def _about_gaps(machine: MachineText, gaps: list[tuple[str, str]], missing: Missing) -> str:
    state, symbol = gaps[0]
    alone = len(gaps) == 1
    number = "1 transition is" if alone else f"{len(gaps):,} transitions are"
    goes = "it leads" if alone else "they lead"
    if missing == "sink":
        accepts = machine.noun == "acceptor"
        label = "rejects" if accepts else f"says '{NO_ANSWER}'"
        made = f"to a state that {label} and is never left"
    else:
        says = f", with the answer '{NO_ANSWER}'" if machine.outputs is None else ""
        made = f"back to the same state{says}"
    return f"{number} missing (the first: '{state}' has none for '{symbol}'): {goes} {made}"


def _started(machine: MachineText, start: str, where: str) -> MachineText:
    states = list(dict.fromkeys(edge.source for edge in machine.edges))
    if start not in states:
        raise TaskError(
            f"{where}: start: no transition leaves a state '{start}'."
            f"{nearest_or_known(start, states)}"
        )
    return replace(machine, start=start)


def _inside(value: Any, folder: Path, where: str) -> Any:
    """A part of a description, with the machine files that it names written out."""
    if isinstance(value, list):
        return [_inside(each, folder, where) for each in value]
    if not isinstance(value, dict):
        return value
    name = value.get("from")
    if "kind" in value or (isinstance(name, str) and format_of(name)):
        return from_file(value, folder, where)
    return {key: _inside(each, folder, where) for key, each in value.items()}


def _by_state(weights: Any, automaton: Automaton) -> Any:
    """Weights by state, from those for all states or for the states that a file names."""
    if not isinstance(weights, dict) or not weights:
        return weights
    if not any(isinstance(row, dict) for row in weights.values()):
        return {state: weights for state in automaton.states}
    split = {
        state: weights[state.partition(COPY)[0]]
        for state in automaton.states
        if state.partition(COPY)[0] in weights
    }
    used = {state.partition(COPY)[0] for state in split}
    return split | {state: row for state, row in weights.items() if state not in used}
