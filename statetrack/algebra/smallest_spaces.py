"""Which irreducible parts of the states' space a linear model needs to track a group.

Projected onto some irreducible parts of R^S, the unit vector of every state becomes a point.
Symbols permute the points as they permute the states, and all points of a part have the same norm.
So where the points are all different, they are the rows of a readout: the scalar product of a
point with itself is the largest. Where states share labels, `separation` looks for the rows.

No fewer suffice, for linear models without additive terms whose products are bounded and whose
labels are right by a margin: averaged, such a model is a representation of the group, whose parts
are no larger than the model's blocks, with rank(I - rho(x)) <= rank(I - A(x)) where every A(x) is a
contraction (docs/proofs.md, *Parts that suffice*). Whether the functions that it reads are right
everywhere is decided by the linear program in `separation`.

Letters: S states, C labels, V symbols, d the dimension of a part.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from statetrack.algebra.representations import (
    IrreduciblePart,
    commuting_dimension,
    commuting_matrix,
    irreducible_parts,
    num_terms,
    orbits_of_pairs,
)
from statetrack.algebra.separation import Labels, Readout, find_readout, is_readable
from statetrack.sources import Booleans, Floats, Integers

FULL_RANK = 1e-6
"""Singular values above this count."""
SAME_KIND = 1e-9
"""Parts between which a random commuting matrix is, relatively, larger are of one kind."""
MOST_SETS = 20_000
"""Most sets of states, or of parts, that a search for the cheapest parts goes through."""
MOST_PROGRAMS = 40
"""Most linear programs that such a search solves, of 100 states and two labels at most."""
DRAWS = 3
"""How often copies of parts are drawn before more of them are taken."""
WIDENING_DRAWS = 24
"""How often copies of parts are drawn for the one whose points are the farthest apart."""
MOST_WIDENED = 256
"""Most states for which copies of parts are compared so."""
MOST_LEFT_OUT = 12
"""Most parts that are tried to be left out where that takes linear programs."""


@dataclass(frozen=True, eq=False)
class ChosenSpace:
    """Parts of the states' space that suffice, their cost, and whether no lower cost suffices."""

    parts: tuple[IrreduciblePart, ...]
    cost: int
    smallest: bool
    readout: Readout
    """What reads the labels from the parts' points, side by side."""

    @property
    def points(self) -> Floats:
        """The point of every state, `[S, H]`."""
        return np.column_stack([part.points for part in self.parts])


@dataclass(frozen=True, eq=False)
class StateSpace:
    """The irreducible parts of the space of a group machine's states.

    `symbols` are representatives of the different symbols, and `num_alike` says for how many each
    stands: I - A(x) has the same rank for conjugates of x, and for those powers of x of which x is
    a power, since both leave the same points where they are.
    """

    parts: tuple[IrreduciblePart, ...]
    generators: Integers  # [K, S]
    labels: Labels
    states_are_told_apart: bool
    start: int
    symbols: Integers  # [V, S]
    num_alike: Integers  # [V]

    @property
    def num_states(self) -> int:
        """The number S of states."""
        return len(self.labels.output)

    @cached_property
    def dimensions(self) -> tuple[int, ...]:
        """The size of every part."""
        return tuple(part.dimension for part in self.parts)

    @cached_property
    def codimensions(self) -> tuple[int, ...]:
        """For every part, the largest codimension of the subspace that a symbol fixes."""
        return tuple(map(self.codimension_of, self.parts))

    def codimension_of(self, part: IrreduciblePart) -> int:
        """The largest codimension of the subspace of a part that a symbol fixes."""
        return int(self._fixed_codimensions(part).max())

    @cached_property
    def ranks(self) -> tuple[int, ...]:
        """For every part, a number of terms a b^T whose span contains all of its A(x).

        The least of: d^2, 3/4 d^2 or 1/2 d^2, which span all matrices that the part has room for
        (see `num_terms`); V d, with d for each symbol; d for the identity and rank(I - A(x)) for
        each symbol.
        """
        num_symbols = int(self.num_alike.sum())
        terms = [0] * len(self.parts)
        for places in self.kinds.values():
            part = self.parts[places[0]]
            size = part.dimension
            commuting = commuting_dimension(part.matrices(self.generators)) if size % 2 == 0 else 1
            everything = num_terms(size, commuting)
            beside_identity = size + int(self._fixed_codimensions(part) @ self.num_alike)
            for place in places:
                terms[place] = min(everything, size * num_symbols, beside_identity)
        return tuple(terms)

    def _fixed_codimensions(self, part: IrreduciblePart) -> Integers:
        """The rank of I - A(x) in a part for every symbol, `[V]`."""
        moved = np.eye(part.dimension) - part.matrices(self.symbols)
        return np.asarray(np.linalg.matrix_rank(moved, tol=FULL_RANK))

    def with_smallest_largest(self, costs: Sequence[int]) -> ChosenSpace | None:
        """Parts enough to read all labels whose largest cost is as small as possible.

        All parts of no more than some cost are tried together, which gives every part as often as
        R^S holds it: a logit function of any multiple of it lies in the span of these. None of the
        parts that are returned can be left out, as far as that was decided.
        """
        key = tuple(costs)
        if key not in self._smallest_largest:
            self._smallest_largest[key] = self._with_smallest_largest(key)
        return self._smallest_largest[key]

    @cached_property
    def _smallest_largest(self) -> dict[tuple[int, ...], ChosenSpace | None]:
        """What was found before, by costs."""
        return {}

    def _with_smallest_largest(self, costs: Sequence[int]) -> ChosenSpace | None:
        decided = True
        for cost in sorted(set(costs)):
            places = [place for place, each in enumerate(costs) if each <= cost]
            if not self._tell_apart(places):
                continue
            search = find_readout(self.points_of(places), self.labels)
            if search.readout is not None:
                return self._choice(self._without_spare_parts(places), cost, decided)
            decided = decided and search.decided
        return None

    def with_smallest_sum(self, costs: Sequence[int]) -> ChosenSpace | None:
        """Parts enough to read all labels whose costs sum up to as little as possible.

        None where the search (for the shortest way through the sets of states that look like the
        start, or through sets of parts) takes too long.
        """
        if self.num_states == 1:
            return self._choice([0], costs[0], smallest=True)
        if not self.labels.tell_states_apart:
            return self._with_smallest_sum_by_programs(costs)
        options: dict[bytes, tuple[int, int]] = {}
        for place, cost in enumerate(costs):
            key = self._like_start[place].tobytes()
            options[key] = min(options.get(key, (cost, place)), (cost, place))
        everything = np.ones(self.num_states, bool)
        heap: list[tuple[int, bytes, tuple[int, ...]]] = [(0, everything.tobytes(), ())]
        reached = {everything.tobytes(): 0}
        while heap and len(reached) < MOST_SETS:
            cost, key, places = heapq.heappop(heap)
            if cost > reached[key]:
                continue
            left = np.frombuffer(key, bool)
            if left.sum() == 1:
                return self._choice(places, cost, smallest=True)
            for option, (more, place) in options.items():
                fewer = (left & np.frombuffer(option, bool)).tobytes()
                if fewer not in reached or cost + more < reached[fewer]:
                    reached[fewer] = cost + more
                    heapq.heappush(heap, (cost + more, fewer, (*places, place)))
        return None

    def _with_smallest_sum_by_programs(self, costs: Sequence[int]) -> ChosenSpace | None:
        """The same for labels that several states share.

        A model holds parts of some kinds, each kind at least once. If all parts of these kinds
        together do not read the labels, neither does any number of copies: so the cheapest set of
        kinds that does, with one copy each, is a bound from below. A set of kinds of which R^S
        holds one copy each reaches it. Of other kinds copies are drawn at random.
        """
        kinds = self.kinds
        price = {kind: min(costs[place] for place in places) for kind, places in kinds.items()}
        too_few: list[set[int]] = []
        best: ChosenSpace | None = None
        bound: int | None = None
        programs = self._most_programs
        for cost, chosen in cheapest_sets([price[kind] for kind in kinds], MOST_SETS):
            if programs <= 0 or (best is not None and cost >= best.cost):
                break
            places = [place for kind in chosen for place in kinds[kind]]
            if not chosen or not self._tell_apart(places):
                continue
            if any(known.issuperset(chosen) for known in too_few):
                continue
            programs -= 1
            readable = is_readable(self.points_of(places), self.labels)
            if readable is False:
                too_few.append(set(chosen))
                continue
            bound = cost if bound is None else bound
            found, tried = self._cheapest_copies(chosen, costs, programs)
            programs -= tried
            if found is not None and (best is None or found.cost < best.cost):
                best = found
        return best and replace(best, smallest=best.cost == bound)

    @property
    def _most_programs(self) -> int:
        size = max(len(self.labels.names) * self.num_states**2, 1)
        return min(MOST_PROGRAMS, 20_000 * MOST_PROGRAMS // size)

    def _cheapest_copies(
        self, chosen: Sequence[int], costs: Sequence[int], most: int
    ) -> tuple[ChosenSpace | None, int]:
        """Copies of every chosen kind that read the labels, as few as were found to do.

        With the number of programs that it took, at most about `most`.
        """
        numbers = {kind: 1 for kind in chosen}
        tried = 0
        while tried < most:
            for seed in range(DRAWS):
                tried += 1
                parts = [
                    copy
                    for kind, number in numbers.items()
                    for copy in self.copies(kind, number, seed)
                ]
                points = np.column_stack([part.points for part in parts])
                search = find_readout(points, self.labels)
                if search.readout is not None:
                    cost = sum(
                        number * costs[self.kinds[kind][0]] for kind, number in numbers.items()
                    )
                    return ChosenSpace(tuple(parts), cost, False, search.readout), tried
                if all(len(self.kinds[kind]) == number for kind, number in numbers.items()):
                    return None, tried
            more = [kind for kind, number in numbers.items() if number < len(self.kinds[kind])]
            numbers[min(more, key=lambda kind: costs[self.kinds[kind][0]])] += 1
        return None, tried

    def copies(self, kind: int, number: int, seed: int) -> tuple[IrreduciblePart, ...]:
        """Some parts of one kind, drawn at random from all that R^S holds; all, where so many."""
        places = self.kinds[kind]
        if number == len(places):
            return tuple(self.parts[place] for place in places)
        size = self.parts[places[0]].dimension
        drawn = commuting_matrix(self.orbits, np.random.default_rng(seed))
        columns = drawn @ self.points_of(places[:number])
        basis = np.linalg.qr(columns)[0]
        if number == 1:
            return (IrreduciblePart(basis),)
        parts: list[IrreduciblePart] = []
        for begin in range(0, number * size, size):
            one = columns[:, begin : begin + size]
            for part in parts:
                one = one - part.points @ (part.points.T @ one)
            parts.append(IrreduciblePart(np.linalg.qr(one)[0]))
        return tuple(parts)

    @cached_property
    def kinds(self) -> dict[int, tuple[int, ...]]:
        """The places of the parts of every kind: those between which some matrix commutes."""
        everything = self.points_of(range(len(self.parts)))
        drawn = commuting_matrix(self.orbits, np.random.default_rng(0))
        between = everything.T @ drawn @ everything
        starts = np.concatenate([[0], np.cumsum(self.dimensions)[:-1]])
        sizes = np.sqrt(np.add.reduceat(np.add.reduceat(between**2, starts, 0), starts, 1))
        alike = sizes > SAME_KIND * sizes.max()
        kinds: dict[int, tuple[int, ...]] = {}
        left = set(range(len(self.parts)))
        for place in range(len(self.parts)):
            if place in left:
                members = tuple(np.flatnonzero(alike[place]).tolist())
                kinds[len(kinds)] = members
                left -= set(members)
        return kinds

    @cached_property
    def orbits(self) -> Integers:
        """A number for the orbit of every pair of states, `[S, S]`."""
        return orbits_of_pairs(self.generators)

    @cached_property
    def _like_start(self) -> tuple[Booleans, ...]:
        """For every part, the states with the point of the start."""
        return tuple(part.looks_like(self.start) for part in self.parts)

    def points_of(self, places: Sequence[int]) -> Floats:
        """The points in some parts, side by side: `[S, H]`."""
        return np.column_stack([self.parts[place].points for place in places])

    def _tell_apart(self, places: Sequence[int]) -> bool:
        """Whether all states have different points.

        Labels need that of a smallest machine whose states are all told apart: two states of one
        point get the same labels after every word.
        """
        if not self.states_are_told_apart:
            return True
        like = np.logical_and.reduce([self._like_start[place] for place in places])
        return int(like.sum()) == 1

    def _choice(self, places: Sequence[int], cost: int, smallest: bool) -> ChosenSpace:
        parts = tuple(self.parts[place] for place in places)
        if self.labels.tell_states_apart and 1 < self.num_states <= MOST_WIDENED:
            parts = self._widened(places)
        points = np.column_stack([part.points for part in parts])
        readout = find_readout(points, self.labels).readout
        assert readout is not None
        return ChosenSpace(parts, cost, smallest, readout)

    def _widened(self, places: Sequence[int]) -> tuple[IrreduciblePart, ...]:
        """Copies of some parts whose points are as far apart as in any of several draws.

        The symbols move all points as they move that of the start: its distances are all there
        are.
        """
        of_place = {place: kind for kind, places in self.kinds.items() for place in places}
        numbers = Counter(of_place[place] for place in places)
        drawn: dict[int, list[tuple[IrreduciblePart, ...]]] = {
            kind: [self.copies(kind, number, seed) for seed in range(WIDENING_DRAWS)]
            for kind, number in numbers.items()
        }
        best, widest = tuple(self.parts[place] for place in places), -1.0
        others = np.arange(self.num_states) != self.start
        for seed in range(WIDENING_DRAWS):
            parts = tuple(part for each in drawn.values() for part in each[seed])
            points = np.column_stack([part.points for part in parts])
            nearest = float(np.linalg.norm(points[others] - points[self.start], axis=1).min())
            if nearest > widest:
                best, widest = parts, nearest
        return best

    def _without_spare_parts(self, places: Sequence[int]) -> list[int]:
        """Some of the parts, of which none can be left out: the large ones go first.

        Where several states share labels, a part is also kept if the margin would become less than
        half of what all parts have.
        """
        kept, tried, whole = list(places), len(places), None
        if not self.labels.tell_states_apart:
            whole = find_readout(self.points_of(places), self.labels).readout
            assert whole is not None
            tried = min(MOST_LEFT_OUT, self._most_programs)
        for place in list(reversed(places))[:tried]:
            others = [each for each in kept if each != place]
            if not others or not self._tell_apart(others):
                continue
            found = whole and find_readout(self.points_of(others), self.labels).readout
            if whole is None or (found is not None and found.margin >= whole.margin / 2):
                kept = others
        return kept


def cheapest_sets(
    costs: Sequence[int], most: float = math.inf
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Sets of places with the sums of their costs, the cheapest one first; `most` at a time."""
    heap: list[tuple[int, tuple[int, ...]]] = [(0, ())]
    while heap and len(heap) < most:
        cost, chosen = heapq.heappop(heap)
        for place in range(chosen[-1] + 1 if chosen else 0, len(costs)):
            heapq.heappush(heap, (cost + costs[place], (*chosen, place)))
        yield cost, chosen


def state_space(
    generators: Integers,
    labels: Labels,
    start: int,
    symbols: Integers,
    num_alike: Integers,
    *,
    states_are_told_apart: bool,
) -> StateSpace:
    """The space of a machine's states whose group some permutations `[K, S]` generate.

    Raises `ArithmeticError` where the space cannot be decomposed.
    """
    parts = irreducible_parts(generators)
    return StateSpace(parts, generators, labels, states_are_told_apart, start, symbols, num_alike)
