"""Machine files as automata, and automata as machine files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple, get_args

import numpy as np

from statetrack.errors import TaskError
from statetrack.sources.automaton import Automaton
from statetrack.sources.derived import COPY, minimise
from statetrack.sources.formats import MACHINE_FORMATS, format_of
from statetrack.sources.formats._text import (
    MOST_EDGES,
    REJECTED,
    Edge,
    MachineText,
    placed,
    problem,
    read_text,
    shown,
)
from statetrack.sources.graphs import BreadthFirst, TooManyStates, explore, renumbered
from statetrack.text import shortened, visible
from statetrack.yaml_text import no_collection

MOST_BYTES: Final = 16 * 2**20
"""The largest machine file that is read: 16 MiB."""

MOST_STATES: Final = 100_000
"""The most states of a machine that is read, with those of a Mealy machine split by output."""

MOST_TRANSITIONS: Final = 500_000
"""The most transitions, states times symbols: a task file with them written out can be read."""

Missing = Literal["sink", "stay", "refuse"]
"""What becomes of a transition that a file does not have: one to a state that is never left, one
that stays where it is, or an error."""

MISSING_CHOICES: Final[tuple[Missing, ...]] = get_args(Missing)
NO_ANSWER = "missing"
"""The label where a machine that is not an acceptor says nothing."""

UNASKED = "-"
"""The label of states in which a task asks for none, unless a label is called so."""


def machine_in(path: Path) -> MachineText:
    """What a machine file says, before anything is made of it.

    Raises `TaskError`, opened by the file's name, for a file that cannot be read as a machine.
    """
    name = format_of(path.name)
    assert name is not None, path
    text = read_text(path, MOST_BYTES)
    try:
        with no_collection():
            return MACHINE_FORMATS[name].read(text)
    except TaskError as wrong:
        raise placed(path, wrong) from None


def automaton_of(machine: MachineText, missing: Missing = "sink") -> Automaton:
    """The smallest Moore machine with the same outputs after every word but the empty one.

    A state of a Mealy machine is split by the output with which it is entered; what says that the
    start needs no state of its own is that another state goes on in the same way. A Mealy machine's
    start that does need one has the first label, which is never asked for: labels follow symbols.
    A state has the name it has in the file, and `name@output` where it was split.

    Where a state lacks a transition, `sink` leads to a state that is never left: rejecting in an
    acceptor, with the label `missing` elsewhere. `stay` stays in the state: in an acceptor and a
    Moore machine the label is that of the state, in a Mealy machine it is `missing`, for there is
    no answer. `refuse` raises `TaskError`.

    Symbols and labels are put in order, numbers by value, and states by the first word that
    reaches them: the automaton does not depend on the order of a file. Spaces in names become `_`,
    and where two names would be one, the second gets `~2` behind it.

    Raises `TaskError`, with the line, for two transitions of one state with one symbol, for a start
    that no transition leaves, and for more states or transitions than the bounds of this module.
    """
    steps = _steps(machine)
    gaps = _gaps(machine, steps)
    if gaps and missing == "refuse":
        state, symbol = gaps[0]
        more = f", and {len(gaps) - 1:,} more are missing" if len(gaps) > 1 else ""
        leaving = [edge.line for edge in machine.edges if edge.source == state]
        entering = [edge.line for edge in machine.edges if edge.target == state]
        raise problem(
            [*leaving, *entering, 1][0],
            f"state {shown(state)} has no transition for {shown(symbol)}{more}",
        )
    reached = _reached(machine.start, steps)
    symbols = names_of(sorted({symbol for state, symbol in steps if state in reached}))
    if not symbols:
        entering = [edge.line for edge in machine.edges if edge.target == machine.start]
        raise problem(
            [*entering, 1][0],
            f"no transition leaves the start, {shown(machine.start)}: is another state the start?",
        )
    text_of = {name: text for text, name in symbols.items()}
    ordered, outputs = in_order(text_of), machine.outputs
    sink = _Place(None, REJECTED if machine.noun == "acceptor" else None)

    def after(place: _Place, symbol: str) -> _Place:
        if place.state is None:
            return place
        step = steps.get((place.state, text_of[symbol]))
        if step is not None:
            said = (step.output or "") if outputs is None else outputs.get(step.target, "")
            return _Place(step.target, said)
        if missing == "stay":
            return _Place(place.state, None) if outputs is None else place
        return sink

    first = (
        _Place(machine.start, machine.first, entered=machine.first is not None)
        if outputs is None
        else _Place(machine.start, outputs.get(machine.start, ""))
    )
    most = min(MOST_STATES, MOST_TRANSITIONS // max(1, len(ordered)))
    try:
        places, rows = explore(first, ordered, after, most)
    except TooManyStates:
        raise TaskError(_too_large(most + 1, len(ordered))) from None
    label_of = _labels_of(places)
    labels = in_order(label_of.values())
    number = {label: place for place, label in enumerate(labels)}
    own = len(labels)  # of a start that nothing enters: a label that no other state has
    entered_as = [number[label_of[each.output]] if each.entered else own for each in places]
    minimal = minimise(
        Automaton(
            rows,
            entered_as,
            symbols=ordered,
            labels=list(map(str, range(max(entered_as) + 1))),
        )
    )
    delta, members = minimal.delta.tolist(), [int(name) for name in minimal.states]
    if not first.entered:
        alike = np.flatnonzero((minimal.delta[1:] == minimal.delta[0]).all(axis=1)) + 1
        if len(alike):  # it needs no state of its own
            order, delta = renumbered(minimal.delta, int(alike[0]))
            members = [members[state] for state in order]
    said = [0 if entered_as[member] == own else entered_as[member] for member in members]
    used, output = np.unique(said, return_inverse=True)
    return Automaton(
        delta,
        output.reshape(-1),
        symbols=ordered,
        states=_state_names([places[member] for member in members], label_of),
        labels=[labels[label] for label in used],
    )


def gaps_of(machine: MachineText) -> list[tuple[str, str]]:
    """The states that can be reached and the symbols for which they have no transition."""
    return _gaps(machine, _steps(machine))


def names_of(texts: Iterable[str]) -> dict[str, str]:
    """For each of some different texts a name that no other has: printable and without spaces.

    A text that is a name keeps it.
    """
    given = list(dict.fromkeys(texts))
    plain = {text: visible("_".join(text.split())) or "empty" for text in given}
    taken = {text for text in given if plain[text] == text}
    names = {}
    for text, name in plain.items():
        if name != text:
            attempt, number = name, 2
            while attempt in taken:
                attempt, number = f"{name}~{number}", number + 1
            taken.add(attempt)
            name = attempt
        names[text] = name
    return names


def in_order(names: Iterable[str]) -> list[str]:
    """Names in alphabetical order, but numbers inside them by value: `i2` before `i10`."""
    return sorted(names, key=_order)


def _order(name: str) -> tuple[object, ...]:
    parts = re.split("([0-9]+)", name)
    numbers = [(len(part.lstrip("0")), part.lstrip("0"), part) for part in parts[1::2]]
    return (*[each for pair in zip(parts[::2], numbers, strict=False) for each in pair], parts[-1])


def _steps(machine: MachineText) -> dict[tuple[str, str], Edge]:
    """The transition of every state and symbol that has one."""
    steps: dict[tuple[str, str], Edge] = {}
    for edge in machine.edges:
        first = steps.setdefault((edge.source, edge.symbol), edge)
        if first[2:4] != edge[2:4]:
            said = "" if edge.output is None else f" with output {shown(first.output or '')}"
            raise problem(
                edge.line,
                f"state {shown(edge.source)} already has a transition for "
                f"{shown(edge.symbol)}, to {shown(first.target)}{said} in line {first.line}",
            )
    return steps


def _reached(start: str, steps: Mapping[tuple[str, str], Edge]) -> dict[str, None]:
    """The states that words lead to, the start first."""
    targets: dict[str, list[tuple[int, str]]] = {}
    for (source, _), edge in steps.items():
        targets.setdefault(source, []).append((0, edge.target))
    search = BreadthFirst([start], lambda state: targets.get(state, ()))
    return dict.fromkeys(state for state, _ in search)


def _gaps(machine: MachineText, steps: Mapping[tuple[str, str], Edge]) -> list[tuple[str, str]]:
    reached = _reached(machine.start, steps)
    symbols = list(dict.fromkeys(symbol for state, symbol in steps if state in reached))
    if len(reached) > MOST_STATES or len(reached) * len(symbols) > MOST_TRANSITIONS:
        raise TaskError(_too_large(len(reached), len(symbols)))
    return [
        (state, symbol) for state in reached for symbol in symbols if (state, symbol) not in steps
    ]


def _too_large(num_states: int, num_symbols: int) -> str:
    return (
        f"{num_states:,} states with {num_symbols:,} symbols are too many: a machine has at most "
        f"{MOST_STATES:,} states, and {MOST_TRANSITIONS:,} transitions"
    )


class _Place(NamedTuple):
    """A state of the Moore machine: one of the file, and the output with which it is entered.

    `state` is None in the sink; `output` is None where there is no answer, and at the start of a
    Mealy machine, which nothing enters.
    """

    state: str | None
    output: str | None
    entered: bool = True


def _labels_of(places: Sequence[_Place]) -> dict[str | None, str]:
    """A label for every output of a place that is entered, and one for no answer."""
    said = {place.output for place in places if place.entered}
    texts = names_of(sorted(output for output in said if output is not None))
    names: dict[str | None, str] = dict(texts.items())
    if None in said:
        free = NO_ANSWER
        while free in texts.values():
            free += "~"
        names[None] = free
    return names


def _state_names(places: Sequence[_Place], label_of: Mapping[str | None, str]) -> list[str]:
    """A state's own name; with its output where several come from one state of the file."""
    own = names_of(sorted({place.state for place in places if place.state is not None}))
    num_parts = Counter(place.state for place in places)
    names: dict[str, None] = {}
    for place in places:
        name = NO_ANSWER if place.state is None else own[place.state]
        if place.state is not None and num_parts[place.state] > 1:
            entered = label_of[place.output] if place.entered else "start"
            name = f"{name}{COPY}{shortened(entered, 40)}"
        while name in names:
            name += "~"
        names[name] = None
    return list(names)


def write_machine(automaton: Automaton, name: str) -> str:
    """The text of an automaton's smallest machine in a format: `machine_in` reads it back.

    The same words get the same labels, but for the empty word, after which formats whose
    transitions say the labels say nothing. Raises `TaskError` for a machine that is too large to be
    read, and for names that the format cannot hold.
    """
    automaton = _smallest(automaton)
    if automaton.delta.size > MOST_EDGES:
        raise TaskError(
            f"{automaton.num_states:,} states with {automaton.num_symbols:,} symbols are too many "
            f"for a file of a machine: it holds at most {MOST_EDGES:,} transitions"
        )
    return MACHINE_FORMATS[name].write(automaton)


def _smallest(automaton: Automaton) -> Automaton:
    """The smallest machine with the labels of an automaton, states numbered from the start.

    States are in the order in which words reach them, the shorter and then the earlier in the order
    of symbols first. How likely symbols are drawn is left out, and so are labels that no state has;
    where a task asks for no label, there is one, for a file can not leave it open.
    """
    labels = list(automaton.labels)
    output = automaton.output
    if not automaton.all_scored:
        unasked = UNASKED
        while unasked in labels:
            unasked += UNASKED
        output = np.where(automaton.scored, output, len(labels))
        labels.append(unasked)
    smallest = minimise(
        Automaton(
            automaton.delta,
            output,
            start=automaton.start,
            symbols=automaton.symbols,
            states=automaton.states,
            labels=labels,
        )
    )
    order, delta = renumbered(smallest.delta, smallest.start)
    used = np.unique(smallest.output)
    return Automaton(
        delta,
        np.searchsorted(used, smallest.output[order]),
        symbols=smallest.symbols,
        states=[smallest.states[state] for state in order],
        labels=[smallest.labels[label] for label in used],
    )


def what_is_left_out(automaton: Automaton) -> list[str]:
    """What a task says that no machine file does, each as a sentence."""
    left_out = []
    if not automaton.uniform_weights:
        left_out.append("how likely each symbol is drawn, which a file of a machine does not hold")
    if not automaton.all_scored:
        left_out.append(
            "that no label is asked for in some states: the file gives these a label of their own"
        )
    return left_out
