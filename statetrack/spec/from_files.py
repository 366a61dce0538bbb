"""Automata that a task takes from a machine file: `from: broker.dot` in a task file, or its path.

A task that comes from a file is complete in itself once it is loaded: its `automaton` is written
out, so that a run and a data card need the file no longer.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from statetrack.errors import TaskError, TaskWarning, nearest_or_known
from statetrack.sources import Automaton
from statetrack.sources.formats import format_of, machine_in
from statetrack.sources.formats._machine import (
    MISSING_CHOICES,
    NO_ANSWER,
    MachineText,
    Missing,
    automaton_of,
    gaps_of,
)
from statetrack.sources.kinds.transitions import written_out
from statetrack.sources.minimising import COPY
from statetrack.sources.text_files import placed

ARGUMENTS: Final = ("missing", "start")
"""What can be said about a machine file: what becomes of missing transitions, and the start."""

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
    name, kind = given.pop("from"), given.pop("kind", "transitions")
    if not isinstance(name, str) or format_of(name) is None:
        raise TaskError(f"{where}: from: '{name}' is no machine file: its name must end in .dot")
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
            warnings.warn(
                f"{path}: {_about_gaps(machine, gaps, missing)}; "
                f"{path.name}:missing=stay stays instead, and missing=refuse is an error",
                TaskWarning,
                stacklevel=1,
            )
    return automaton, about


def default_train_length(automaton: Automaton) -> tuple[int, int]:
    """From 2 to twice the longest of the shortest words that lead to a state, from 10 to 100."""
    seen = {automaton.start}
    frontier, depth = seen, 0
    while frontier := {int(state) for state in automaton.delta[list(frontier)].flat} - seen:
        seen |= frontier
        depth += 1
    return 2, min(max(10, 2 * depth), LONGEST_TRAINED)


def _about_gaps(machine: MachineText, gaps: list[tuple[str, str]], missing: Missing) -> str:
    state, symbol = gaps[0]
    number = "1 transition is" if len(gaps) == 1 else f"{len(gaps):,} transitions are"
    if missing == "sink":
        accepts = machine.noun == "acceptor"
        label = "rejects" if accepts else f"says '{NO_ANSWER}'"
        made = f"to a state that {label} and is never left"
    else:
        says = f", with the answer '{NO_ANSWER}'" if machine.outputs is None else ""
        made = f"back to the same state{says}"
    return f"{number} missing (the first: '{state}' has none for '{symbol}') and lead {made}"


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
