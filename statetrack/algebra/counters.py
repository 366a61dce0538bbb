"""Counters that a causal transformer can keep: whether labels are in C-RASP.

C-RASP (Yang and Chiang 2024, arXiv:2404.04393) is a programming language whose programs count, at
every position, the earlier positions at which some condition holds, and compare sums of such
counts. What it can do, causal softmax transformers with position vectors learn for lengths that
were never seen (Huang et al. 2025, arXiv:2410.02140, under an idealised training), and Yang et al.
(2026, arXiv:2608.13433) decide from an automaton whether its language is in it: inside every strong
component of the smallest automaton, *balanced* counters, whose sums vanish along every cycle, must
tell all states apart, where a counter may look at what such counters told of the position before.

Here balanced counters are potentials. Let classes of states be given, one at first. A counter adds
m(x, class of u) on reading x in the state u. Its sums vanish along all cycles of a component
exactly where there are potentials p with

    p(delta(u, x)) = p(u) + m(x, class of u)        for every edge inside the component.

(If there are, they add up to nothing round a cycle. If sums vanish round every cycle, then they
are equal along any two ways from u to v, since the way back closes both, and p(v) is the sum along
a way from a root to v.) States with equal potentials for all m are one class of the next round,
and rounds go on until no class is split. So no cycle is ever listed: let P(u) [K] count the
letters, pairs of a symbol and a class, along the tree of a search from the root, and let D be the
rational span of P(u) + letter - P(v) over all edges. The m with potentials are those orthogonal to
D, p(u) is then m . P(u), and two states have equal potentials for all m exactly where P(u) - P(v)
lies in D.

What does not: a word w from u to v with N P(w) = P(y) - P(z) for loops y and z of u. It is the
witness of a *no*.

Two protocols differ by a symbol. The source's automata answer after the end of a word, where the
last symbol is an earlier position as all others are; the models here answer *in place*, at the
position of the last symbol, which they see. In place, states are one that give the same labels from
the next symbol on, as those of a Mealy machine are: the last symbol itself needs no counter.

S states, V symbols, E edges, K letters.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from statetrack.algebra.machine import Machine
from statetrack.algebra.monoid import Monoid
from statetrack.algebra.prediction import Word
from statetrack.sources import (
    Booleans,
    Integers,
    coarsest_partition,
    numbered,
    places_of,
    strong_components,
)

MOST_STEPS = 2**22
"""Most products of whole numbers that a round of one component may take."""

Row = dict[int, int]
"""A vector of whole numbers, by the places of those that are not 0."""


@dataclass(frozen=True)
class Uncounted:
    """Two states of one component that no balanced counter tells apart, and what shows it.

    `way` leads from the first to the second; `more` and `fewer` lead from the first back to itself,
    and count each letter as often as `times` readings of `way` and one of `fewer`, or `more`, do.
    """

    states: tuple[int, int]
    way: Word
    times: int
    more: Word
    fewer: Word


@dataclass(frozen=True, eq=False)
class Counters:
    """What balanced counters tell of the states of a machine, complete with its sink.

    `classes` `[S]` numbers what they tell apart, or is None where that is too much work.
    """

    delta: Integers
    component: Integers
    classes: Integers | None

    @classmethod
    def of(cls, delta: Integers) -> Counters:
        """Those of a machine with the next states `[S, V]`."""
        component = strong_components(delta)
        classes: Integers = np.zeros(len(delta), np.int64)
        for number in range(int(component.max()) + 1):
            members = np.flatnonzero(component == number)
            if len(members) > 1:
                found = _Component(delta, members).refined()
                if found is None:
                    return cls(delta, component, None)
                classes[members] = found
        return cls(delta, component, classes)

    @cached_property
    def tell_all(self) -> bool | None:
        """Whether all states of every component are told apart; None where that is not known."""
        if self.classes is None:
            return None
        pairs = np.unique(np.column_stack([self.component, self.classes]), axis=0)
        return len(pairs) == len(self.classes)

    def untold(self, told_otherwise: Booleans) -> Iterator[Uncounted]:
        """States of one component that no counter tells apart, with words that show it.

        Pairs that are true in `told_otherwise` `[S, S]` only. Symbols whose powers lead from the
        first state to the second and back come first, since nothing is shorter.
        """
        assert self.classes is not None
        keys = np.column_stack([self.component, self.classes])
        _, first, class_of = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        class_of = class_of.ravel()
        for root in first.tolist():
            for symbol in np.flatnonzero(told_otherwise[root, self.delta[root]]).tolist():
                state, order = int(self.delta[root, symbol]), 1
                while state != root and class_of[state] == class_of[root] and order < len(keys):
                    state, order = int(self.delta[state, symbol]), order + 1
                if state == root:
                    pair = root, int(self.delta[root, symbol])
                    yield Uncounted(pair, (symbol,), order, (symbol,) * order, ())
        for root, number in zip(first.tolist(), class_of[first].tolist(), strict=True):
            alike = told_otherwise[root] & (class_of == number)
            if alike.any():
                members = np.flatnonzero(self.component == self.component[root])
                component = _Component(self.delta, members)
                for other in np.flatnonzero(alike).tolist():
                    yield component.untold((root, other), self.classes[members])


def counters_at_end(machine: Machine) -> Counters:
    """What counters tell of the states of a machine that answers after the end of a word.

    Where they tell all states apart, the language of every label is in C-RASP, and the other way
    round. Where symbols are forbidden, what is never drawn counts as a label of its own.
    """
    return Counters.of(machine.delta)


def counters_in_place(machine: Machine) -> tuple[Integers, Counters]:
    """The number of every state, `[S]`, and what counters tell of these numbers.

    States have one number that answer alike from the next symbol on.
    """
    automaton = machine.automaton
    return counters_of_labels(machine.delta, np.where(automaton.scored, automaton.output, -1))


def counters_of_labels(delta: Integers, labels: Integers) -> tuple[Integers, Counters]:
    """The same for next states `[S, V]` with labels `[S]`."""
    _, blocks = np.unique(labels[delta], axis=0, return_inverse=True)
    numbers = coarsest_partition(delta, numbered(blocks.ravel()))
    _, first = np.unique(numbers, return_index=True)
    return numbers, Counters.of(numbers[delta[first]])


def one_idempotent_each(monoid: Monoid) -> bool:
    """Whether no two idempotents are each the other times something behind it.

    Two idempotent maps e and f, each read before what follows, have e f = f and f e = e exactly
    where they send the same states together: e(s) is among the states that e sends where it sends
    s, so if f sends these together too, f(e(s)) = f(s). So their kernels are to be different.
    """
    maps = monoid.elements.astype(np.int64)
    idempotent = (np.take_along_axis(maps, maps, axis=1) == maps).all(axis=1)
    kernels = np.array([numbered(each) for each in maps[idempotent]])
    return len(np.unique(kernels, axis=0)) == len(kernels)


class _Component:
    """A strong component: its edges, and the tree of a search from its first state."""

    def __init__(self, delta: Integers, members: Integers) -> None:
        place = places_of(members, len(delta))
        targets = place[delta[members]]
        sources, symbols = np.nonzero(targets >= 0)
        self.members = members
        self.sources, self.symbols = sources, symbols
        self.targets = targets[sources, symbols]
        self._edges_from: list[list[int]] = [[] for _ in members]
        for edge, source in enumerate(sources.tolist()):
            self._edges_from[source].append(edge)

    def refined(self) -> Integers | None:
        """What balanced counters tell apart, as a number of every member; None if too much work."""
        classes: Integers = np.zeros(len(self.members), np.int64)
        while True:
            finer = self._round(classes)
            if finer is None or finer.max() == classes.max():
                return finer
            classes = finer
            if classes.max() + 1 == len(classes):
                return classes

    def untold(self, states: tuple[int, int], classes: Integers) -> Uncounted:
        """Words that show that two states, by their own numbers, have the same class at the end."""
        root, other = (int(np.flatnonzero(self.members == each)[0]) for each in states)
        letters = self._letters(classes)
        tree = self._tree(root)
        counts = self._counts(tree, letters)
        span = _Span()
        found = None
        for row, edge in self._closing(counts, letters):
            if span.add(row, edge) and (found := span.combination(counts[other])):
                break
        assert found is not None, "the class says that the way is in the span"
        times, parts = found
        more: list[int] = []
        fewer: list[int] = []
        for edge, often in parts.items():
            source, target = int(self.sources[edge]), int(self.targets[edge])
            back = self._way(target, root)
            there = [*self._edges_to(tree, source), edge, *back]
            straight = [*self._edges_to(tree, target), *back]
            for _ in range(abs(often)):
                (more if often > 0 else fewer).extend(there)
                (fewer if often > 0 else more).extend(straight)
        return Uncounted(
            states,
            self._word(self._edges_to(tree, other)),
            times,
            self._word(more),
            self._word(fewer),
        )

    def _round(self, classes: Integers) -> Integers | None:
        letters = self._letters(classes)
        num_letters = int(letters.max()) + 1
        span = _Span()
        for row in self._powers(letters):  # short rows, which are all there is in a group
            span.add(row, 0)
        if span.rank == num_letters:
            return classes  # no counter is balanced
        counts = self._counts(self._tree(0), letters)
        for row, edge in self._closing(counts, letters):
            span.add(row, edge)
            if span.rank == num_letters:
                return classes
            if span.steps > MOST_STEPS:
                return None
        known: dict[tuple[int, tuple[tuple[int, int], ...], int], int] = {}
        found = []
        for number, row in zip(classes.tolist(), counts, strict=True):
            rest, scale = span.rest(row)
            key = (number, tuple(sorted(rest.items())), scale)
            found.append(known.setdefault(key, len(known)))
        return np.array(found)

    def _powers(self, letters: Integers) -> Iterator[Row]:
        """What the cycle of every symbol alone counts, that its powers lead the root into."""
        edge_of = np.full((len(self.members), int(self.symbols.max()) + 1), -1)
        edge_of[self.sources, self.symbols] = np.arange(len(self.sources))
        for edges in edge_of.T.tolist():
            seen: dict[int, int] = {}
            passed: list[int] = []
            state = 0
            while state not in seen and edges[state] >= 0:
                seen[state] = len(passed)
                passed.append(edges[state])
                state = int(self.targets[edges[state]])
            if state in seen:
                read, often = np.unique(letters[passed[seen[state] :]], return_counts=True)
                yield dict(zip(read.tolist(), often.tolist(), strict=True))

    def _letters(self, classes: Integers) -> Integers:
        """The number of every edge's symbol with the class of its source, `[E]`."""
        return numbered(self.symbols * (int(classes.max()) + 1) + classes[self.sources])

    def _tree(self, root: int) -> dict[int, int | None]:
        """By state, the last edge of a shortest way from the root, in the order of a search."""
        tree: dict[int, int | None] = {root: None}
        waiting = deque([root])
        while waiting:
            for edge in self._edges_from[waiting.popleft()]:
                target = int(self.targets[edge])
                if target not in tree:
                    tree[target] = edge
                    waiting.append(target)
        return tree

    def _counts(self, tree: dict[int, int | None], letters: Integers) -> list[Row]:
        """How often every letter is read on the way of the tree to every state."""
        counts: list[Row] = [{} for _ in self.members]
        for state, edge in tree.items():
            if edge is not None:
                row = dict(counts[int(self.sources[edge])])
                letter = int(letters[edge])
                row[letter] = row.get(letter, 0) + 1
                counts[state] = row
        return counts

    def _closing(self, counts: list[Row], letters: Integers) -> Iterable[tuple[Row, int]]:
        """For every edge what it counts beyond the difference of its ends, unless that is 0."""
        seen = set()
        for edge, letter in enumerate(letters.tolist()):
            row = dict(counts[int(self.sources[edge])])
            row[letter] = row.get(letter, 0) + 1
            for place, value in counts[int(self.targets[edge])].items():
                row[place] = row.get(place, 0) - value
            row = {place: value for place, value in row.items() if value}
            key = tuple(sorted(row.items()))
            if row and key not in seen:
                seen.add(key)
                yield row, edge

    def _edges_to(self, tree: dict[int, int | None], state: int) -> list[int]:
        edges: list[int] = []
        while (edge := tree[state]) is not None:
            edges.append(edge)
            state = int(self.sources[edge])
        return edges[::-1]

    def _way(self, begin: int, end: int) -> list[int]:
        return self._edges_to(self._tree(begin), end)

    def _word(self, edges: Sequence[int]) -> Word:
        return tuple(int(self.symbols[edge]) for edge in edges)


class _Span:
    """The rational span of rows of whole numbers, as rows in echelon form.

    Every row keeps of which given rows, by their names, it is a multiple of the sum.
    """

    def __init__(self) -> None:
        self._rows: dict[int, tuple[Row, Row]] = {}
        self.steps = 0

    @property
    def rank(self) -> int:
        """The dimension of the span."""
        return len(self._rows)

    def add(self, row: Row, name: int) -> bool:
        """Take one more row into the span; whether it was not in it."""
        rest, parts, scale = self._reduced(row)
        if rest:
            parts = {each: -value for each, value in parts.items()}
            parts[name] = parts.get(name, 0) + scale
            self._rows[min(rest)] = _shortened(rest, parts)
        return bool(rest)

    def rest(self, row: Row) -> tuple[Row, int]:
        """What is left of a row modulo the span, with its denominator: one form of each class.

        It has no entry at a pivot.
        """
        rest, _, scale = self._reduced(row)
        common = math.gcd(scale, *rest.values())
        return {place: value // common for place, value in rest.items()}, scale // common

    def combination(self, row: Row) -> tuple[int, Row] | None:
        """N and how often each given row has to be taken, for N times a row; None if it is out."""
        rest, parts, scale = self._reduced(row)
        if rest:
            return None
        common = math.gcd(scale, *parts.values())
        return scale // common, {each: value // common for each, value in parts.items() if value}

    def _reduced(self, row: Row) -> tuple[Row, Row, int]:
        """A rest, parts and N with N row = rest + the sum of parts, and no pivot in the rest."""
        rest, parts, scale = dict(row), dict[int, int](), 1
        passed = -1
        while places := [place for place in rest if place > passed and place in self._rows]:
            passed = min(places)
            taken, made_of = self._rows[passed]
            common = math.gcd(rest[passed], taken[passed])
            keep, take = taken[passed] // common, rest[passed] // common
            if keep < 0:
                keep, take = -keep, -take
            rest = _plus(rest, keep, taken, -take)
            parts = _plus(parts, keep, made_of, take)
            scale *= keep
            self.steps += len(rest) + len(parts)
        return rest, parts, scale


def _plus(left: Row, often: int, right: Row, times: int) -> Row:
    total = {place: value * often for place, value in left.items()}
    for place, value in right.items():
        total[place] = total.get(place, 0) + value * times
    return {place: value for place, value in total.items() if value}


def _shortened(row: Row, parts: Row) -> tuple[Row, Row]:
    common = math.gcd(*row.values(), *parts.values())
    return (
        {place: value // common for place, value in row.items()},
        {place: value // common for place, value in parts.items()},
    )
