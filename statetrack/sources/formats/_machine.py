"""What a machine file says, whatever its format, and the automaton of it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, get_args

import numpy as np

from statetrack.errors import TaskError
from statetrack.sources.arrays import Integers
from statetrack.sources.automaton import Automaton
from statetrack.sources.minimising import COPY, minimise
from statetrack.text import shortened, visible

MOST_BYTES: Final = 16 * 2**20
"""The largest machine file that is read: 16 MiB."""

MOST_STATES: Final = 100_000
"""The most states of a machine that is read, with those of a Mealy machine split by output."""

MOST_TRANSITIONS: Final = 500_000
"""The most transitions, states times symbols: a task file with them written out can be read."""

ACCEPTED, REJECTED = "yes", "no"
"""The outputs of an acceptor's states."""

Missing = Literal["sink", "stay", "refuse"]
"""What becomes of a transition that a file does not have: one to a state that is never left, one
that stays where it is, or an error."""

MISSING_CHOICES: Final[tuple[Missing, ...]] = get_args(Missing)
NO_ANSWER = "missing"
"""The label where a machine that is not an acceptor says nothing."""


class Edge(NamedTuple):
    """A transition; in a Mealy machine it says an output."""

    source: str
    symbol: str
    target: str
    output: str | None
    line: int


@dataclass(frozen=True)
class MachineText:
    """A machine as a file says it.

    A Mealy machine where `outputs` is None; else a Moore machine, or an acceptor where all outputs
    are `ACCEPTED` or `REJECTED`, whose states have the outputs. `first` is the label of a Mealy
    machine's start before anything enters it, of a file that says so.
    """

    start: str
    edges: Sequence[Edge]
    outputs: Mapping[str, str] | None
    first: str | None = None

    @property
    def noun(self) -> str:
        """What messages call the machine."""
        if self.outputs is None:
            return "Mealy machine"
        accepts = set(self.outputs.values()) <= {ACCEPTED, REJECTED}
        return "acceptor" if accepts else "Moore machine"


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

    Raises `TaskError`, with the line, for two transitions of one state with one symbol, and for
    more states or transitions than the bounds of this module.
    """
    steps = _steps(machine)
    gaps = _gaps(machine, steps)
    if gaps and missing == "refuse":
        state, symbol = gaps[0]
        more = f", and {len(gaps) - 1:,} more are missing" if len(gaps) > 1 else ""
        raise TaskError(
            f"line {_line_of(machine, state)}: state '{_quoted(state)}' has no transition for "
            f"'{_quoted(symbol)}'{more}"
        )
    reached = _reached(machine.start, steps)
    symbols = names_of(sorted({symbol for state, symbol in steps if state in reached}))
    whole = _Unfolded(machine, steps, symbols, missing)
    minimal = minimise(whole.automaton())
    free = machine.outputs is None and machine.first is None
    return whole.without_start(minimal) if free else whole.renamed(minimal)


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
            said = "" if edge.output is None else f" with output '{_quoted(first.output or '')}'"
            raise TaskError(
                f"line {edge.line}: state '{_quoted(edge.source)}' already has a transition for "
                f"'{_quoted(edge.symbol)}', to '{_quoted(first.target)}'{said} in line {first.line}"
            )
    return steps


def _reached(start: str, steps: Mapping[tuple[str, str], Edge]) -> dict[str, None]:
    """The states that words lead to, the start first."""
    targets: dict[str, list[str]] = {}
    for (source, _), edge in steps.items():
        targets.setdefault(source, []).append(edge.target)
    found = {start: None}
    for state in (waiting := [start]):
        for target in targets.get(state, ()):
            if target not in found:
                found[target] = None
                waiting.append(target)
    return found


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


def _line_of(machine: MachineText, state: str) -> int:
    """A line that names a state: of a transition from it, or to it."""
    lines = [edge.line for edge in machine.edges if edge.source == state]
    return (lines or [edge.line for edge in machine.edges if edge.target == state] or [1])[0]


def _quoted(text: str) -> str:
    return visible(shortened(text))


class _Place(NamedTuple):
    """A state of the Moore machine: one of the file, and the output with which it is entered.

    `state` is None in the sink; `output` is None where there is no answer, and at the start of a
    Mealy machine, which nothing enters.
    """

    state: str | None
    output: str | None
    entered: bool = True


class _Unfolded:
    """A machine as a Moore machine, state by state in the order of the words that reach them."""

    def __init__(
        self,
        machine: MachineText,
        steps: Mapping[tuple[str, str], Edge],
        symbol_names: Mapping[str, str],
        missing: Missing,
    ) -> None:
        self._machine = machine
        self._steps = steps
        self._missing = missing
        self._sink = _Place(None, REJECTED if machine.noun == "acceptor" else None)
        self._text_of = {name: text for text, name in symbol_names.items()}
        self._symbols = in_order(self._text_of)
        outputs = machine.outputs
        first = (
            _Place(machine.start, machine.first, entered=machine.first is not None)
            if outputs is None
            else _Place(machine.start, outputs.get(machine.start, ""))
        )
        self._places: dict[_Place, int] = {first: 0}
        self._rows: list[list[int]] = []
        for place in (waiting := [first]):
            row = []
            for symbol in self._symbols:
                after = self._after(place, self._text_of[symbol])
                if after not in self._places:
                    self._places[after] = len(self._places)
                    waiting.append(after)
                row.append(self._places[after])
            self._rows.append(row)
            num_places = len(self._places)
            if num_places > MOST_STATES or num_places * len(self._symbols) > MOST_TRANSITIONS:
                raise TaskError(_too_large(num_places, len(self._symbols)))
        self._name_labels()

    def _after(self, place: _Place, symbol: str) -> _Place:
        outputs = self._machine.outputs
        if place.state is None:
            return place
        step = self._steps.get((place.state, symbol))
        if step is not None:
            said = (step.output or "") if outputs is None else outputs.get(step.target, "")
            return _Place(step.target, said)
        if self._missing == "stay":
            return _Place(place.state, None) if outputs is None else place
        return self._sink

    def _name_labels(self) -> None:
        """A label for every output of a place that is entered, and one for no answer."""
        said = {place.output for place in self._places if place.entered}
        names: dict[str | None, str] = dict(
            names_of(sorted(output for output in said if output is not None)).items()
        )
        if None in said:
            free = NO_ANSWER
            while free in names.values():
                free += "~"
            names[None] = free
        self._label_of = names
        self._labels = in_order(names.values())
        numbers = {name: number for number, name in enumerate(self._labels)}
        self._entered_as = [
            numbers[names[place.output]] if place.entered else len(numbers)
            for place in self._places
        ]

    def automaton(self) -> Automaton:
        """All states; a start that nothing enters has a label that no other state has."""
        num_labels = max(self._entered_as) + 1
        return Automaton(
            self._rows,
            self._entered_as,
            symbols=self._symbols,
            labels=list(map(str, range(num_labels))),
        )

    def renamed(self, minimal: Automaton) -> Automaton:
        """The smallest automaton, with the names of states, symbols and labels."""
        return self._named(minimal.delta, [int(name) for name in minimal.states])

    def without_start(self, minimal: Automaton) -> Automaton:
        """The same, once its start, which has a label of its own, is a state that goes on alike."""
        members = [int(name) for name in minimal.states]
        alike = np.flatnonzero((minimal.delta[1:] == minimal.delta[0]).all(axis=1)) + 1
        if not len(alike):
            return self._named(minimal.delta, members)
        order = _from_start(minimal.delta, int(alike[0]))
        place_of = {old: new for new, old in enumerate(order)}
        delta = [[place_of[target] for target in minimal.delta[old].tolist()] for old in order]
        return self._named(np.array(delta), [members[old] for old in order])

    def _named(self, delta: Integers, members: Sequence[int]) -> Automaton:
        """`members` are the places that give each state its label and its name; state 0 starts."""
        places = list(self._places)
        kept = [places[member] for member in members]
        entered = [self._entered_as[member] for member in members]
        output = [label if label < len(self._labels) else 0 for label in entered]
        used = sorted(set(output))
        number = {label: new for new, label in enumerate(used)}
        return Automaton(
            delta,
            [number[label] for label in output],
            symbols=self._symbols,
            states=self._state_names(kept),
            labels=[self._labels[label] for label in used],
        )

    def _state_names(self, kept: Sequence[_Place]) -> list[str]:
        """A state's own name; with its output where several come from one state of the file."""
        own = names_of(sorted({place.state for place in kept if place.state is not None}))
        num_parts = Counter(place.state for place in kept)
        wanted = []
        for place in kept:
            if place.state is None:
                wanted.append(NO_ANSWER)
            elif num_parts[place.state] > 1:
                entered = self._label_of[place.output] if place.entered else "start"
                wanted.append(f"{own[place.state]}{COPY}{shortened(entered, 40)}")
            else:
                wanted.append(own[place.state])
        taken: set[str] = set()
        for index in range(len(wanted)):
            while wanted[index] in taken:
                wanted[index] += "~"
            taken.add(wanted[index])
        return wanted


def _from_start(delta: Integers, start: int) -> list[int]:
    """The states in the order of the words that reach them."""
    order = {start: None}
    for state in (waiting := [start]):
        for target in delta[state].tolist():
            if target not in order:
                order[target] = None
                waiting.append(target)
    return list(order)
