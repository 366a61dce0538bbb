"""Graph searches: what is reached, by which shortest word, and which points belong together.

Letters: N points, K maps, E steps, S states, V symbols.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from statetrack.errors import TaskError
from statetrack.sources.arrays import Booleans, Integers

Node = TypeVar("Node", bound=Hashable)
Symbol = TypeVar("Symbol")

MOST_ROUNDS = 100
"""Rounds of Moore's algorithm before Hopcroft's takes over."""
MOST_NUMBERS = 2**62
"""Numbers of several digits stay below this: they fit into 64 bits."""


class BreadthFirst(Generic[Node]):
    """A search breadth first from some nodes, over any nodes; iterating over it runs it.

    `steps` gives the symbols that can be read in a node, with the nodes that they lead to. Of every
    node, the nearest ones first, it gives the node and its steps: a symbol, the node reached, and
    whether that is found by this step. With `most`, it ends once it has found so many nodes.
    """

    def __init__(
        self,
        begin: Iterable[Node],
        steps: Callable[[Node], Iterable[tuple[int, Node]]],
        most: float = math.inf,
    ) -> None:
        self.nodes = list(begin)
        """The nodes found so far, nearest first."""
        self._steps, self._most = steps, most
        self._before: dict[Node, tuple[Node, int] | None] = dict.fromkeys(self.nodes)

    def __iter__(self) -> Iterator[tuple[Node, list[tuple[int, Node, bool]]]]:
        for node in self.nodes:
            if len(self.nodes) >= self._most:
                return
            taken = []
            for symbol, reached in self._steps(node):
                is_new = reached not in self._before
                if is_new:
                    self._before[reached] = node, symbol
                    self.nodes.append(reached)
                taken.append((symbol, reached, is_new))
            yield node, taken

    def word_to(self, node: Node) -> tuple[int, ...]:
        """A shortest word from where the search began to a node that it found."""
        word = []
        while (before := self._before[node]) is not None:
            node, symbol = before
            word.append(symbol)
        return tuple(reversed(word))


class TooManyStates(TaskError):
    """Words lead to more states than were allowed."""


def explore(
    start: Node,
    symbols: Sequence[Symbol],
    step: Callable[[Node, Symbol], Node],
    most: int | None = None,
) -> tuple[list[Node], list[list[int]]]:
    """All states that words lead to, breadth first from `start`, and the table delta `[S, V]`.

    Raises `TooManyStates` as soon as there are more than `most`.
    """
    states = [start]
    number = {start: 0}
    delta: list[list[int]] = []
    for state in states:
        row: list[int] = []
        for symbol in symbols:
            target = step(state, symbol)
            if target not in number:
                number[target] = len(states)
                states.append(target)
                if most is not None and len(states) > most:
                    raise TooManyStates(f"more than {most} states: too many")
            row.append(number[target])
        delta.append(row)
    return states, delta


def renumbered(delta: Integers, start: int) -> tuple[list[int], list[list[int]]]:
    """The states of a table in the order in which words reach them, and the table of these.

    Shorter words come first, then those whose symbols are earlier.
    """
    table = delta.tolist()
    return explore(start, range(delta.shape[1]), lambda state, symbol: table[state][symbol])


def distances(successors: Integers, begin: Integers, allowed: Booleans | None = None) -> Integers:
    """The length of a shortest word from some points to every point, `[N]`; -1 where none leads.

    `successors [N, K]` are the points that K maps lead to, `allowed [N, K]` those that may be used.
    """
    found, place = np.full(len(successors), -1), np.empty(len(successors), np.int64)
    found[begin] = length = 0
    while begin.size:
        # the work of a round is that of its points, for a chain has as many rounds as points
        targets = successors[begin]
        reached = targets.ravel() if allowed is None else targets[allowed[begin]]
        begin, length = reached[found[reached] < 0], length + 1
        found[begin] = length
        if len(begin) > 1:
            place[begin] = np.arange(len(begin))
            begin = begin[place[begin] == np.arange(len(begin))]  # each once
    return found


def after_each_length(successors: Integers, begin: int) -> Iterator[Booleans]:
    """Which points words of 0, 1, 2, ... symbols lead to from one, `[N]` each, without an end.

    `successors [N, K]` are the points that K maps lead to, -1 for nowhere.
    """
    reached = np.zeros(len(successors) + 1, bool)  # the last one is nowhere
    reached[begin] = True
    while True:
        yield reached[:-1]
        targets = successors[reached[:-1]]
        reached = np.zeros_like(reached)
        reached[targets.ravel()] = True


def reachable(delta: Integers, start: int, allowed: Booleans | None = None) -> Booleans:
    """Which states some word reaches from `start`, itself included: `[S]` from `delta [S, V]`.

    `allowed [S, V]` restricts the symbols that may be read in a state.
    """
    reached: Booleans = distances(delta, np.array([start]), allowed) >= 0
    return reached


def closed(
    begin: Integers, further: Callable[[Integers], Integers], most: int | None = None
) -> Integers | None:
    """Some numbers and all that `further` leads to from them: nearest first, each level in order.

    For few numbers of a large range. None where there are more than `most`.
    """
    levels, seen = [begin], set(begin.tolist())
    while levels[-1].size:  # levels are joined at the end: a chain has as many as numbers
        new = set(further(levels[-1]).ravel().tolist()) - seen
        seen |= new
        levels.append(np.array(sorted(new), np.int64))
        if most is not None and len(seen) > most:
            return None
    return np.concatenate(levels)


@dataclass(frozen=True, eq=False)
class ByPoint:
    """Steps in the order of the point at one of their ends."""

    order: Integers  # [E]
    ends: Integers  # [N + 1]

    @classmethod
    def of(cls, points: Integers, size: int) -> ByPoint:
        """Steps by their points `[E]`, of which there are `size`."""
        order = np.argsort(points, kind="stable")
        return cls(order, np.searchsorted(points[order], np.arange(size + 1)))

    def at(self, points: Integers) -> Integers:
        """The steps at some points, point by point."""
        counts = self.ends[points + 1] - self.ends[points]
        first = np.repeat(self.ends[points] - np.cumsum(counts) + counts, counts)
        steps: Integers = self.order[first + np.arange(counts.sum())]
        return steps


def shortest_ways(
    roots: Integers, source: Integers, target: Integers, size: int
) -> tuple[Integers, Integers, list[Integers]]:
    """Shortest ways from roots along steps `[E]`, found level by level.

    The step that leads to every point, -1 at a root, `[N]`; its distance, `[N]`; the points of
    every level.
    """
    leaving = ByPoint.of(source, size)
    way, depth = np.full(size, -1), np.zeros(size, np.int64)
    found = np.zeros(size, bool)
    found[roots] = True
    level, levels = roots, []
    while len(level):
        edges = leaving.at(level)
        edges = edges[~found[target[edges]]]
        level, first = np.unique(target[edges], return_index=True)
        way[level] = edges[first]
        found[level] = True
        if len(level):
            levels.append(level)
            depth[level] = len(levels)
    return way, depth, levels


def reaching(delta: Integers, goals: Booleans) -> Booleans:
    """The states from which some word, or none, leads to one of the goals: `[S]` from `[S]`."""
    states = np.repeat(np.arange(len(delta)), delta.shape[1])
    way, _, _ = shortest_ways(np.flatnonzero(goals), delta.ravel(), states, len(delta))
    return goals | (way >= 0)


def shortest_word(
    start: int,
    num_nodes: int,
    targets_of: Callable[[Integers], Integers],
    is_goal: Callable[[Integers], Booleans],
) -> tuple[int, ...] | None:
    """A shortest word of one symbol or more that leads from a node to a goal; None without one.

    `targets_of` gives where each symbol leads from nodes `[N]`, as nodes `[N, V]` below
    `num_nodes`; `is_goal` says which of those are goals, `[N, V]`.
    """
    came_from: dict[int, tuple[int, int]] = {}
    seen = np.zeros(num_nodes, bool)
    seen[start] = True
    frontier = np.array([start])
    while frontier.size:
        targets = targets_of(frontier)
        goals = np.argwhere(is_goal(targets))
        if len(goals):
            node, word = int(frontier[goals[0, 0]]), [int(goals[0, 1])]
            while node in came_from:
                node, symbol = came_from[node]
                word.append(symbol)
            return tuple(reversed(word))
        new, places = np.unique(targets, return_index=True)
        fresh = ~seen[new]
        parents, symbols = np.divmod(places[fresh], targets.shape[1])
        ways = zip(frontier[parents].tolist(), symbols.tolist(), strict=True)
        frontier = new[fresh]
        came_from.update(zip(frontier.tolist(), ways, strict=True))
        seen[frontier] = True
    return None


def leading_to(actions: Iterable[Integers], pairs: Booleans) -> Booleans:
    """The pairs of states `[S, S]` from which some action `[S]` leads to one of some pairs."""
    found = np.zeros_like(pairs)
    # one state is never led to two: if no state is paired with itself, none is in what is found
    most = pairs.size if pairs.diagonal().any() else pairs.size - len(pairs)
    for targets in actions:
        found |= pairs[targets[:, None], targets[None, :]]
        if np.count_nonzero(found) == most:
            break
    return found


def all_leading_to(
    actions: Sequence[Integers] | Integers, pairs: Booleans, most_rounds: float = math.inf
) -> Booleans | None:
    """The pairs of states `[S, S]` that are among some, or from which a word leads to them.

    None where words of `most_rounds` symbols are not enough to tell.
    """
    rounds = 0
    while (rounds := rounds + 1) <= most_rounds:
        further = pairs | leading_to(actions, pairs)
        if (further == pairs).all():
            return pairs
        pairs = further
    return None


def orbits(permutations: Iterable[Integers], num_points: int) -> Integers:
    """The orbit of every point under permutations `[N]`, as its smallest member: `[N]`."""
    lowest = np.arange(num_points)
    maps = list(permutations)
    while True:
        lower = lowest
        for permutation in maps:
            lower = _lowest_on_cycles(lower, permutation)
        if (lower == lowest).all():
            return lowest
        lowest = lower


def _lowest_on_cycles(values: Integers, permutation: Integers) -> Integers:
    """The lowest value on every point's cycle, by doubling the distance looked ahead."""
    jump = permutation
    while True:
        lower = np.minimum(values, values[jump])
        if (lower[permutation] == lower).all():
            return lower
        values, jump = lower, jump[jump]


def strong_components(successors: Integers) -> Integers:
    """The strong component of every point, `[N]`, by Tarjan's algorithm (1972).

    `successors [N, K]` are the points that K maps take each point to. Components are numbered
    from 0, each after all that it leads to.
    """
    edges = successors.tolist()
    num_points = len(edges)
    component = [-1] * num_points
    found = [-1] * num_points  # when a point was found first
    lowest = [0] * num_points  # the earliest point still open that it leads to
    opened: list[int] = []
    num_found = num_components = 0
    for root in range(num_points):
        if found[root] >= 0:
            continue
        path = [(root, iter(edges[root]))]
        found[root] = lowest[root] = num_found
        num_found += 1
        opened.append(root)
        while path:
            point, targets = path[-1]
            for target in targets:
                if found[target] < 0:
                    found[target] = lowest[target] = num_found
                    num_found += 1
                    opened.append(target)
                    path.append((target, iter(edges[target])))
                    break
                if component[target] < 0 and found[target] < lowest[point]:
                    lowest[point] = found[target]
            else:
                path.pop()
                if path:
                    parent = path[-1][0]
                    lowest[parent] = min(lowest[parent], lowest[point])
                if lowest[point] == found[point]:
                    while component[point] < 0:
                        component[opened.pop()] = num_components
                    num_components += 1
    return np.array(component, np.int64)


def coarsest_partition(delta: Integers, blocks: Integers) -> Integers:
    """The coarsest partition `[S]` that is finer than `blocks` and that every symbol respects.

    Blocks are numbered by their first members. A round of Moore's algorithm costs as much as there
    are states, and few rounds are enough for most automata; a line of states needs as many as it is
    long, and is left to Hopcroft's.
    """
    for _ in range(MOST_ROUNDS):
        finer = _split_once(delta, blocks)
        if finer.max() == blocks.max():
            return finer
        blocks = finer
    return numbered(_split(delta, blocks))


def _split_once(delta: Integers, blocks: Integers) -> Integers:
    """Blocks split by the blocks that every symbol leads to: of one state, digits of one number."""
    base = int(blocks.max()) + 1
    found, bound = blocks, base
    for targets in delta.T:
        if bound * base > MOST_NUMBERS:
            found = numbered(found)
            bound = int(found.max()) + 1
        found, bound = found * base + blocks[targets], bound * base
    return numbered(found)


def _split(delta: Integers, blocks: Integers) -> Integers:
    """The same partition, by splitting blocks, the smaller part first (Hopcroft 1971)."""
    num_states, num_symbols = delta.shape
    before: list[list[list[int]]] = []  # by symbol and state: the states that it leads here from
    for targets in delta.T.tolist():
        into: list[list[int]] = [[] for _ in range(num_states)]
        for state, target in enumerate(targets):
            into[target].append(state)
        before.append(into)
    block_of = blocks.tolist()
    members: list[set[int]] = [set() for _ in range(max(block_of) + 1)]
    for state, block in enumerate(block_of):
        members[block].add(state)
    waiting = {(block, symbol) for block in range(len(members)) for symbol in range(num_symbols)}
    while waiting:
        splitter, symbol = waiting.pop()
        touched: dict[int, set[int]] = {}
        for target in members[splitter]:
            for state in before[symbol][target]:
                touched.setdefault(block_of[state], set()).add(state)
        for block, part in touched.items():
            if len(part) == len(members[block]):
                continue
            members[block] -= part
            new = len(members)
            members.append(part)
            for state in part:
                block_of[state] = new
            for each in range(num_symbols):
                smaller = new if len(part) <= len(members[block]) else block
                waiting.add((new if (block, each) in waiting else smaller, each))
    return np.array(block_of)


def places_of(kept: Integers, size: int) -> Integers:
    """The place of each of some numbers among those that are kept, `[N]`; -1 where it is not.

    They are below `size`, N.
    """
    places = np.full(size, -1)
    places[kept] = np.arange(len(kept))
    return places


def paired(left: Integers, right: Integers) -> Integers:
    """Equal pairs get one number. `[S]` from `[S]` and `[S]`, entries from -1."""
    return numbered((left + 1) * (int(right.max()) + 2) + right + 1)


def numbered(keys: Integers) -> Integers:
    """Equal keys get one number; numbers count up by first appearance. `[S]` from `[S]`."""
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.empty(len(first), np.int64)
    order[np.argsort(first)] = np.arange(len(first))
    return order[inverse]
