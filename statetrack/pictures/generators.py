"""Generators of a group: which symbols have which action, and which few of them are enough.

Letters: N elements, V symbols.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from statetrack.pictures.drawn import Drawn
from statetrack.sources import Integers

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
    def text(self) -> str:
        """Its symbols, and those that lead back."""
        return ", ".join(self.symbols) + (f" (back: {', '.join(self.back)})" if self.back else "")


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


def symbol_generators(drawn: Drawn) -> list[Generator]:
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
    reached = np.zeros(len(generators[0].action), bool)
    reached[0] = True
    number = 1
    while True:
        for each in generators:
            reached[each.action[reached]] = True
        if int(reached.sum()) == number:
            return number
        number = int(reached.sum())
