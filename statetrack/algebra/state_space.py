"""Which irreducible parts of the states' space a linear model needs to track a group.

Projected onto some irreducible parts of R^S, the unit vector of every state becomes a point.
Symbols permute the points as they permute the states, and all points of a part have the same norm.
So where the points are all different, they are the rows of a readout: the scalar product of a
point with itself is the largest. Conversely, a linear readout averaged over the group depends on
the points alone, so that states with the same point get the same label.

Letters: S states, C labels, V symbols, d the dimension of a part.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from statetrack.algebra.representations import Part, irreducible_parts
from statetrack.sources.arrays import Booleans, Integers

FULL_RANK = 1e-6
"""Singular values above this count."""

CLEAR = 1e-6
"""How far the right label must be ahead."""

MOST_SETS = 20_000
"""Most sets of states that a search for the cheapest parts goes through."""


@dataclass(frozen=True, eq=False)
class Choice:
    """Parts of the states' space that suffice, their cost, and whether no lower cost suffices."""

    parts: tuple[Part, ...]
    cost: int
    smallest: bool


@dataclass(frozen=True, eq=False)
class StateSpace:
    """The irreducible parts of the space of a group machine's states.

    `symbols` are representatives of the different symbols, one for each conjugacy class that has
    some, and `num_alike` says for how many each stands: I - A(x) has the same rank for
    conjugate ones.
    """

    parts: tuple[Part, ...]
    output: Integers  # [S]
    start: int
    symbols: Integers  # [V, S]
    num_alike: Integers  # [V]

    @cached_property
    def dimensions(self) -> tuple[int, ...]:
        """The size of every part."""
        return tuple(part.dimension for part in self.parts)

    @cached_property
    def codimensions(self) -> tuple[int, ...]:
        """For every part, the largest codimension of the subspace that a symbol fixes."""
        return tuple(int(each.max()) for each in self._codimensions)

    @cached_property
    def ranks(self) -> tuple[int, ...]:
        """For every part, a number of terms a b^T whose span contains all of its A(x).

        The least of: d^2, which span all matrices; V d, with d for each symbol; d for the identity
        and rank(I - A(x)) for each symbol; and 3 for rotations of a plane, which multiply as
        complex numbers do (Gauss).
        """
        num_symbols = int(self.num_alike.sum())
        terms = []
        for part, codimensions in zip(self.parts, self._codimensions, strict=True):
            size = part.dimension
            beside_identity = size + int(codimensions @ self.num_alike)
            fewest = min(size * size, size * num_symbols, beside_identity)
            terms.append(min(fewest, 3) if self._is_rotated_plane(part) else fewest)
        return tuple(terms)

    @cached_property
    def _codimensions(self) -> tuple[Integers, ...]:
        """For every part, the rank of I - A(x) for every symbol, `[V]`."""
        return tuple(
            np.array(
                [
                    np.linalg.matrix_rank(np.eye(part.dimension) - matrix, tol=FULL_RANK)
                    for matrix in part.matrices(self.symbols)
                ]
            )
            for part in self.parts
        )

    def with_smallest_largest(self, costs: Sequence[int]) -> Choice | None:
        """Parts enough to read all labels whose largest cost is as small as possible.

        None of them can be left out.
        """
        bound = None
        for cost in sorted(set(costs)):
            places = [place for place, each in enumerate(costs) if each <= cost]
            if bound is None and self._tell_apart(places):
                bound = cost
            if bound is not None and self._read(places):
                needed = self._without_spare_parts(places)
                parts = tuple(self.parts[place] for place in needed)
                return Choice(parts, cost, smallest=cost == bound)
        return None

    def with_smallest_sum(self, costs: Sequence[int]) -> Choice | None:
        """Parts enough to read all labels whose costs sum up to as little as possible.

        Only where every state has a label of its own; None where it does not, or where the search
        (for the shortest way through the sets of states that look like the start) takes too long.
        """
        if not self.labels_tell_states_apart:
            return None
        if len(self.output) == 1:
            return Choice(self.parts, costs[0], smallest=True)
        options: dict[bytes, tuple[int, int]] = {}
        for place, cost in enumerate(costs):
            key = self._like_start[place].tobytes()
            options[key] = min(options.get(key, (cost, place)), (cost, place))
        everything = np.ones(len(self.output), bool)
        heap: list[tuple[int, bytes, tuple[int, ...]]] = [(0, everything.tobytes(), ())]
        done: set[bytes] = set()
        while heap and len(heap) < MOST_SETS:
            cost, key, places = heapq.heappop(heap)
            if key in done:
                continue
            done.add(key)
            left = np.frombuffer(key, bool)
            if left.sum() == 1:
                return Choice(tuple(self.parts[place] for place in places), cost, smallest=True)
            for option, (more, place) in options.items():
                fewer = (left & np.frombuffer(option, bool)).tobytes()
                if fewer not in done and fewer != key:
                    heapq.heappush(heap, (cost + more, fewer, (*places, place)))
        return None

    @cached_property
    def labels_tell_states_apart(self) -> bool:
        """Whether every state has a label of its own."""
        return len(np.unique(self.output)) == len(self.output)

    @cached_property
    def _like_start(self) -> tuple[Booleans, ...]:
        """For every part, the states with the point of the start."""
        return tuple(part.looks_like(self.start) for part in self.parts)

    def _tell_apart(self, places: Sequence[int]) -> bool:
        like = np.logical_and.reduce([self._like_start[place] for place in places])
        return int(like.sum()) == 1

    def _read(self, places: Sequence[int]) -> bool:
        """Whether the labels can be read from some parts: by each label's mean point."""
        if self.labels_tell_states_apart:
            return self._tell_apart(places)
        points = np.column_stack([self.parts[place].points for place in places])  # [S, d]
        mine = self.output[:, None] == np.unique(self.output)[None, :]  # [S, C]
        scores = points @ (points.T @ (mine / mine.sum(axis=0)))  # [S, C]
        best_other = np.where(mine, -np.inf, scores).max(axis=1)
        return bool((scores[mine] > best_other + CLEAR / len(self.output)).all())

    def _without_spare_parts(self, places: Sequence[int]) -> list[int]:
        """Some of the parts, of which none can be left out: the large ones go first."""
        kept = list(places)
        for place in reversed(places):
            others = [each for each in kept if each != place]
            if others and self._read(others):
                kept = others
        return kept

    def _is_rotated_plane(self, part: Part) -> bool:
        if part.dimension != 2:
            return False
        return bool((np.linalg.det(part.matrices(self.symbols)) > 0).all())


def state_space(
    generators: Integers, output: Integers, start: int, symbols: Integers, num_alike: Integers
) -> StateSpace:
    """The space of a machine's states whose group some permutations `[K, S]` generate.

    Raises `ArithmeticError` where the space cannot be decomposed.
    """
    return StateSpace(irreducible_parts(generators), output, start, symbols, num_alike)
