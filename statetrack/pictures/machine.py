"""The machine that a picture shows: the minimal one, without transitions that never occur.

Of a group: which symbols have which action, and which few of them are enough.

Letters: S states, N elements, V symbols.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from statetrack.algebra import needed_machine
from statetrack.sources import Booleans, BreadthFirst, Integers, places_of, reachable
from statetrack.spec import Task


@dataclass(frozen=True, eq=False)
class DrawnMachine:
    """An automaton with everything that a picture shows of it.

    `delta[s, x]` is -1 where x is never drawn in s. `labels` are None where each state is its own
    label; `second` is the second label where there are two, so that it is enough to mark its
    states. `asked` marks the states in which the label is scored.
    """

    states: tuple[str, ...]
    symbols: tuple[str, ...]
    delta: Integers  # [S, V]
    start: int
    labels: tuple[str, ...] | None
    second: str | None
    asked: Booleans  # [S]
    title: str
    """The task, and how much of its automaton is drawn."""
    outputs: tuple[tuple[str, ...], ...] | None = None  # [S, V]
    """The label on every transition of a Mealy machine, empty where there is none."""

    @property
    def notes(self) -> list[str] | None:
        """The text next to the name of every state: its label, `-` where it is not scored."""
        if self.labels is None:
            return None
        pairs = zip(self.labels, self.asked, strict=True)
        return [label if asked else "-" for label, asked in pairs]

    @property
    def full_names(self) -> list[str]:
        """The names of all states, with their labels in brackets.

        Those that end in their label, as the states of an imported machine do, are names alone.
        """
        if self.notes is None:
            return [*self.states]
        return [
            state if state.endswith(f"@{note}") else f"{state} [{note}]"
            for state, note in zip(self.states, self.notes, strict=True)
        ]

    @property
    def said_of_labels(self) -> list[str]:
        """What a caption says of the labels in full names."""
        if self.notes is None:
            return []
        behind = any(name in self.states for name in self.full_names)
        inside = any(name not in self.states for name in self.full_names)
        places = ["in brackets"] * inside + ["behind @"] * behind
        unscored = "" if self.asked.all() else ", - if not scored"
        return [f"{' or '.join(places)}: the label{unscored}"]

    @property
    def is_mealy(self) -> bool:
        """Whether its states are those of an imported Mealy machine, each behind one output."""
        pairs = zip(self.states, self.notes or [""] * len(self.states), strict=True)
        return any(note and state.endswith(f"@{note}") for state, note in pairs)

    @property
    def leaves_out(self) -> bool:
        """Whether some symbol is never drawn in some state, so that its transition is left out."""
        return bool((self.delta < 0).any())

    @cached_property
    def is_group(self) -> bool:
        """Whether every symbol permutes the states: then the maps that words make are a group."""
        moves = np.sort(self.delta, axis=0)
        return bool((moves == np.arange(len(self.states))[:, None]).all())

    @cached_property
    def regular_group(self) -> bool:
        """Whether the states are the elements of a group, and symbols multiply from the right.

        This holds where every symbol permutes the states, and only the identity, of the maps that
        words make, fixes the start: the group acts regularly.
        """
        return self.is_group and group_of(self.delta, len(self.states)) is not None


def mealy_form(drawn: DrawnMachine) -> DrawnMachine:
    """The machine with labels on its transitions, which has no state for the sake of a label.

    States that behave alike from the next symbol on are one, named as before the output behind
    their names.
    """
    notes = drawn.notes or list(drawn.states)
    told = [[notes[target] if target >= 0 else "" for target in row] for row in drawn.delta]
    classes = np.zeros(len(drawn.states), np.int64)
    while True:
        reached = np.where(drawn.delta >= 0, classes[drawn.delta], -1).tolist()
        found: dict[object, int] = {}
        signs = [(tuple(row), tuple(said)) for row, said in zip(reached, told, strict=True)]
        refined = np.array([found.setdefault(sign, len(found)) for sign in signs])
        if len(found) == classes.max() + 1:
            break
        classes = refined
    first = [int(np.flatnonzero(classes == each)[0]) for each in range(len(found))]
    names = [drawn.states[state].rpartition("@")[0] or drawn.states[state] for state in first]
    if len({*names}) < len(names):
        names = [drawn.states[state] for state in first]
    number = "1 state" if len(first) == 1 else f"{len(first)} states"
    return DrawnMachine(
        states=tuple(names),
        symbols=drawn.symbols,
        delta=np.where(drawn.delta[first] >= 0, classes[drawn.delta[first]], -1),
        start=int(classes[drawn.start]),
        labels=None,
        second=None,
        asked=np.ones(len(first), bool),
        title=f"{drawn.title.rpartition(': ')[0]}: Mealy machine of {number}, "
        f"{len(drawn.symbols)} symbols",
        outputs=tuple(tuple(told[state]) for state in first),
    )


def group_of(delta: Integers, most: int) -> Integers | None:
    """The maps of the states that words make, `[N, S]`, the identity first; None for more.

    They are numbered as they are found: by length of a shortest word, then by its symbols.
    """
    actions = delta.T.tolist()

    def products(element: tuple[int, ...]) -> Iterator[tuple[int, tuple[int, ...]]]:
        for symbol, action in enumerate(actions):
            yield symbol, tuple(action[state] for state in element)

    search = BreadthFirst([tuple(range(len(delta)))], products)
    for _ in search:
        if len(search.nodes) > most:
            return None
    return np.array(search.nodes, np.int64)


def drawn_machine(task: Task) -> DrawnMachine:
    """The drawn machine of a task; `TaskError` for a task without an automaton."""
    given = task.automaton
    machine = needed_machine(given)
    smallest = machine.automaton
    kept = np.flatnonzero(machine.live)
    place = places_of(kept, smallest.num_states)
    states = tuple(smallest.states[state] for state in kept)
    labels = tuple(smallest.labels[smallest.output[state]] for state in kept)
    asked = smallest.scored[kept]
    named = labels == states and bool(asked.all())
    return DrawnMachine(
        states=states,
        symbols=smallest.symbols,
        delta=place[smallest.delta[kept]],
        start=int(place[smallest.start]),
        labels=None if named else labels,
        second=smallest.labels[1] if smallest.num_labels == 2 and not named else None,
        asked=asked,
        title=_title(task.name, len(states), given.num_states, smallest.num_symbols),
    )


def _title(task: str, drawn: int, states: int, symbols: int) -> str:
    """The task, without the folder of its file, and how much of its automaton is drawn."""
    name = Path(task).name if Path(task).is_file() else task
    if drawn < states:
        return f"{name}: the smallest automaton, {drawn} of {states} states"
    said = "1 state" if drawn == 1 else f"{drawn} states"
    return f"{name}: {said}, {symbols} symbol{'' if symbols == 1 else 's'}"


MOST_LINES = 4
"""The most lines at a node that can be followed: where all symbols make more, few are drawn."""


@dataclass(frozen=True, eq=False)
class Generator:
    """An action on the elements, `[N]`, with the symbols that have it or its inverse."""

    action: Integers
    symbols: tuple[str, ...]
    back: tuple[str, ...] = ()

    @cached_property
    def order(self) -> int:
        """How often it must be repeated until nothing has changed."""
        power, order = self.action, 1
        while (power != np.arange(len(power))).any():
            power, order = self.action[power], order + 1
        return order

    @property
    def lines(self) -> int:
        """How many lines it makes at a node: one if it is its own inverse, else two."""
        return 1 if self.order == 2 else 2

    @property
    def heads(self) -> int:
        """How many heads its lines have: one, in its direction, unless it is its own inverse."""
        return 0 if self.order == 2 else 1

    @property
    def text(self) -> str:
        """Its symbols, and those that lead against its arrows."""
        against = f" (against it: {', '.join(self.back)})" if self.back else ""
        return ", ".join(self.symbols) + against


def generators_of(table: Integers, symbols: Sequence[str]) -> list[Generator]:
    """The distinct actions of symbols, of a table `[N, V]`, each with its inverse; no identity."""
    stays = np.arange(len(table))
    found: dict[bytes, tuple[Integers, list[str], list[str]]] = {}
    for action, symbol in zip(table.T, symbols, strict=True):
        if (action == stays).all():
            continue
        inverse = np.argsort(action).tobytes()
        if action.tobytes() in found:
            found[action.tobytes()][1].append(symbol)
        elif inverse in found:
            found[inverse][2].append(symbol)
        else:
            found[action.tobytes()] = (action.copy(), [symbol], [])
    return [Generator(action, tuple(same), tuple(back)) for action, same, back in found.values()]


def symbol_generators(drawn: DrawnMachine) -> list[Generator]:
    """The distinct actions of symbols on the states of a machine all of whose symbols permute."""
    return generators_of(np.ascontiguousarray(drawn.delta), drawn.symbols)


def lines_at_a_node(generators: Sequence[Generator]) -> int:
    """The number of lines at a node of the Cayley graph."""
    return sum(each.lines for each in generators)


def few_generators(generators: Sequence[Generator]) -> list[Generator]:
    """All, where they make few lines; else some that generate the group.

    One is best. Of pairs, those with a planar graph are preferred: two that generate a finite group
    of rotations, where the orders p, 2 and r of both and of their product have 1/p + 1/2 + 1/r > 1.
    Then a pair with a large order, whose cycles order the elements, and one with few lines.
    """
    if lines_at_a_node(generators) <= MOST_LINES:
        return [*generators]
    num_elements = len(generators[0].action)
    for found in _candidates(generators):
        if _num_reached(found) == num_elements:
            return found
    kept: list[Generator] = []
    for each in generators:
        if _num_reached([*kept, each]) > _num_reached(kept):
            kept.append(each)
    return kept


def _candidates(generators: Sequence[Generator]) -> Iterator[list[Generator]]:
    yield from ([each] for each in generators)

    def key(pair: tuple[Generator, Generator]) -> tuple[bool, int, int]:
        first, second = pair
        largest = max(first.order, second.order)
        planar = False
        if min(first.order, second.order) == 2:
            product = Generator(second.action[first.action], ()).order
            planar = 1 / largest + 1 / 2 + 1 / product > 1
        return not planar, -largest, lines_at_a_node(pair)

    for first, second in sorted(itertools.combinations(generators, 2), key=key):
        yield [first, second] if first.order >= second.order else [second, first]


def _num_reached(generators: Sequence[Generator]) -> int:
    """The order of the group that some generate: the elements that the first one leads to."""
    if not generators:
        return 1
    actions = np.stack([each.action for each in generators], axis=1)
    return int(reachable(actions, 0).sum())
