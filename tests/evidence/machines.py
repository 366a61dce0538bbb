"""Moore machines as lists, with the few things that are asked of them here.

`delta[s][x]` is the next state and `output[s]` the label of a state; the label of a word is that
of the state after it, and there is none before the first symbol.
"""

from __future__ import annotations

import itertools
from collections import deque
from dataclasses import dataclass

import numpy as np

from statetrack.sources import Automaton


@dataclass(frozen=True)
class Table:
    """A Moore machine; all states are reached from `start`."""

    delta: tuple[tuple[int, ...], ...]
    output: tuple[int, ...]
    start: int = 0

    @property
    def num_symbols(self) -> int:
        return len(self.delta[0])

    def automaton(self, num_labels: int = 0) -> Automaton:
        """The same as the program has it."""
        count = max(num_labels, 1 + max(self.output))
        names = tuple(map(str, range(count)))
        return Automaton(self.delta, self.output, start=self.start, labels=names)

    def label(self, word: tuple[int, ...]) -> int:
        state = self.start
        for symbol in word:
            state = self.delta[state][symbol]
        return self.output[state]


def trimmed(table: Table) -> Table:
    """Without what no word reaches, states in the order in which a search finds them."""
    order = {table.start: 0}
    queue = deque([table.start])
    while queue:
        state = queue.popleft()
        for target in table.delta[state]:
            if target not in order:
                order[target] = len(order)
                queue.append(target)
    delta = tuple(tuple(order[target] for target in table.delta[state]) for state in order)
    return Table(delta, tuple(table.output[state] for state in order))


def random_table(draws: np.random.Generator, states: int, symbols: int, labels: int) -> Table:
    """A random machine; what no word reaches is left out."""
    delta = draws.integers(states, size=(states, symbols))
    output = draws.integers(labels, size=states)
    return trimmed(Table(tuple(map(tuple, delta.tolist())), tuple(output.tolist())))


def num_distinct(table: Table) -> int:
    """How many states the smallest machine has that labels words like this one.

    A start that nothing leads back to is a state of its own unless another has its row and label.
    """
    count = len(table.delta)
    different = {
        (one, two)
        for one, two in itertools.product(range(count), repeat=2)
        if table.output[one] != table.output[two]
    }
    while True:
        more = {
            (one, two)
            for one, two in itertools.product(range(count), repeat=2)
            if (one, two) not in different
            and any(
                pair in different for pair in zip(table.delta[one], table.delta[two], strict=True)
            )
        }
        if not more:
            break
        different |= more
    firsts = [
        state
        for state in range(count)
        if not any((earlier, state) not in different for earlier in range(state))
    ]
    return len(firsts)


def shortest_difference(one: Table, two: Table) -> int | None:
    """The length of the shortest word that two machines label differently; None without one."""
    seen = {(one.start, two.start)}
    frontier = [(one.start, two.start)]
    length = 0
    while frontier:
        length += 1
        following = []
        for first, second in frontier:
            for pair in zip(one.delta[first], two.delta[second], strict=True):
                if one.output[pair[0]] != two.output[pair[1]]:
                    return length
                if pair not in seen:
                    seen.add(pair)
                    following.append(pair)
        frontier = following
    return None


def with_another_transition(draws: np.random.Generator, table: Table) -> Table:
    """One transition leads elsewhere."""
    state = int(draws.integers(len(table.delta)))
    symbol = int(draws.integers(table.num_symbols))
    rows = [list(row) for row in table.delta]
    rows[state][symbol] = int(draws.integers(len(table.delta)))
    return trimmed(Table(tuple(map(tuple, rows)), table.output, table.start))


def right_for(table: Table, symbols: int) -> Table:
    """The same labels for words of so many symbols; from then on the next label, cyclically."""
    labels = 1 + max(table.output)
    delta, output = [], []
    for read in range(symbols + 2):
        after = min(read + 1, symbols + 1)
        for state, row in enumerate(table.delta):
            delta.append(tuple(after * len(table.delta) + target for target in row))
            wrong = read > symbols
            output.append((table.output[state] + wrong) % labels)
    return trimmed(Table(tuple(delta), tuple(output), table.start))


def group_table(elements: list[tuple[int, ...]], symbols: list[tuple[int, ...]]) -> Table:
    """Products of permutations: reading x in state s leads to x after s; the first is the start."""
    place = {element: index for index, element in enumerate(elements)}
    delta = tuple(
        tuple(place[tuple(symbol[point] for point in state)] for symbol in symbols)
        for state in elements
    )
    return Table(delta, tuple(range(len(elements))))


def symmetric(points: int) -> list[tuple[int, ...]]:
    """All permutations, the one that moves nothing first."""
    return list(itertools.permutations(range(points)))


def even(points: int) -> list[tuple[int, ...]]:
    """All even permutations, the one that moves nothing first."""

    def sign(element: tuple[int, ...]) -> int:
        pairs = itertools.combinations(element, 2)
        return sum(first > second for first, second in pairs) % 2

    return [element for element in symmetric(points) if sign(element) == 0]


def cyclic(order: int) -> Table:
    """Addition modulo `order`, all numbers as symbols."""
    delta = tuple(
        tuple((state + symbol) % order for symbol in range(order)) for state in range(order)
    )
    return Table(delta, tuple(range(order)))


def lock(word: tuple[int, ...], symbols: int) -> Table:
    """Label 0 after every word, but 1 after those that end with `word`."""
    size = len(word)
    delta = []
    for read in range(size + 1):
        row = []
        for symbol in range(symbols):
            seen = (*word[:read], symbol)
            length = min(len(seen), size)
            while word[:length] != seen[len(seen) - length :]:
                length -= 1
            row.append(length)
        delta.append(tuple(row))
    return Table(tuple(delta), (0,) * size + (1,))
