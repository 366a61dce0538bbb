"""Small invariant spaces of rational functions on a machine's states, from which labels are read.

As `function_spaces`, over the rational numbers: each space has a basis of integer-valued functions,
so that symbols act on it by integer matrices (`lattices`). The irreducible parts of a group are
larger than over the real numbers: a rotation by 1/n of a turn takes as many dimensions as there are
numbers below n that have no divisor in common with it (all of its conjugates), and the quaternions
of Q8 take 4. The symmetric groups lose nothing.

*The search.* Over the rational numbers the eigenvectors of a random element span whole sums of
parts of one type. So vectors are looked for that are special to *several* words at once: a word w
of order n satisfies the product of Phi_m(w) over the divisors m of n, cyclotomic polynomials, and
functions f with Phi_m(w) f = 0 (m = 1: f is the same after w; m = 2: of the other sign; also
f o w = 0) are taken for words and m in random order, each within what is left from those before, as
long as anything is. What is left after each is followed to the smallest invariant space that it is
in, modulo the space that is grown. The chains begin with all functions, and with those that are
constant on sets that two words keep, where these are few: of a subgroup with few cosets. Where all
symbols permute states, what of a grown space is orthogonal to the space it grew from is invariant,
too, and sums are taken of what is found above 0 and above the constant functions. So what is found
is enough, and need not be the smallest.

S states, V symbols, d dimensions.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import numpy as np

from statetrack.algebra.function_spaces import (
    ChosenFunctions,
    FunctionSpaces,
    completions,
)
from statetrack.algebra.lattices import (
    PRIME,
    action_on,
    as_integers,
    echelon,
    extended,
    from_one,
    null_space,
    outside,
    product,
    saturated,
)
from statetrack.algebra.machine import Machine
from statetrack.algebra.separation import Readout, find_readout, margin_of
from statetrack.algebra.smallest_spaces import cheapest_sets
from statetrack.sources import Floats, Integers

MOST_WORDS = 24
"""Most words whose polynomials are looked at."""
CHAINS = 8
"""How often such polynomials are put in order, for each space that is grown."""
LONGEST_CHAIN = 24
"""Most polynomials that are put in order."""
MOST_FOLLOWED = 6
"""Most vectors of what is left that are followed, each time."""
MOST_PAIRED = 60
"""Most words of which any two are looked at together."""
MOST_SETS = 12
"""Most sets of states that two words keep."""
MOST_PARTITIONS = 16
"""Most partitions into such sets."""
MOST_CHOICES = 5_000
"""Most sums of spaces that are put in order."""
MOST_MIXED = 3
"""How many of their sums are followed, too: of copies of one part, one in general position."""
MIXED = 3
"""The largest coefficient of these sums."""
RANK = 1e-9
"""Singular values below this, as a part of the largest, are rounding."""
MOST_SPACES = 24
"""Most spaces that a search goes through; of functions on more than 40 states fewer."""

Condition = tuple[Integers, tuple[int, ...]]
"""A map of the states, and the coefficients of a polynomial in it, the constant one first."""


class RationalSpaces(FunctionSpaces):
    """The rational functions on the states of a complete machine."""

    def narrowest(self, bound: int, below: int) -> ChosenFunctions | None:
        """The space of the smallest dimension that is found, of at least a bound.

        None where none below a dimension is found.
        """
        programs = self._most_programs
        for space in self.found(below - 1):
            if not bound <= space.shape[1] < below or not programs or not self._may_read(space):
                continue
            programs -= 1
            readout = self._readout(space)
            if readout is not None:
                return self._construction([space], readout, space.shape[1], False)
        return None

    def of_smallest_blocks(self, bound: int, below: int) -> ChosenFunctions | None:
        """Spaces whose largest dimension is as small as is found, of at least a bound."""
        programs = self._most_programs
        within: list[Floats] = []
        for space in self._rational(below - 1):
            apart = self._num_points(np.column_stack(within)) if within else 0
            together = np.column_stack([*within, space])
            if self.labels.tell_states_apart and self._num_points(together) == apart:
                continue
            within.append(space)
            if not self._may_read(together) or not programs:
                continue
            programs -= 1
            if self._readout(together) is None:
                continue
            for each in sorted(within, key=lambda each: each.shape[1]):
                others = [other for other in within if other is not each]
                if others and self._readout(np.column_stack(others)) is not None:
                    within = others
            readout = self._readout(np.column_stack(within))
            if readout is not None:
                size = max(each.shape[1] for each in within)
                return self._construction(within, readout, size, False)
        return None

    def found(self, most: int) -> Iterator[Floats]:
        """Spaces of at most so many dimensions, small ones first, and sums of them."""
        return self._sums(most) if self._all_permute else self._rational(most)

    def _sums(self, most: int) -> Iterator[Floats]:
        """Sums of different spaces that are found, small ones first."""
        spaces: list[Floats] = []
        for space in self._rational(most):
            if not any(_within(smaller, space) for smaller in spaces):
                spaces.append(space)
        choices = cheapest_sets([space.shape[1] for space in spaces], MOST_CHOICES)
        for cost, places in itertools.islice(choices, 1, None):
            together = np.column_stack([spaces[place] for place in places])
            if cost <= most and np.linalg.matrix_rank(together) == cost:
                yield together

    def _rational(self, most: int) -> Iterator[Floats]:
        """The spaces that are found, small ones first, as bases of integers `[S, d]`.

        Spaces of what labels and symbols make of the states first, if that is not all.
        """
        if len(self._observed) < self.num_states:
            yield from self._grown(most, 0)
        yield from self._grown(most, 1)

    def _readout(self, space: Floats) -> Readout | None:
        """What reads the labels: found for orthonormal functions, since symbols turn their points.

        That is so where they permute states.
        """
        _, sizes, right = np.linalg.svd(space, full_matrices=False)
        rank = int((sizes > RANK * sizes[0]).sum())
        scaled = right[:rank].T / sizes[:rank]  # space @ scaled is orthonormal
        found = find_readout(space @ scaled, self.labels).readout
        if found is None:
            return None
        rows = found.rows @ scaled.T
        return Readout(rows, margin_of(space, rows, self.labels))

    def _may_read(self, space: Floats) -> bool:
        """Whether all states have points of their own, where labels need that."""
        return not self.labels.tell_states_apart or self._num_points(space) == self.num_states

    @staticmethod
    def _num_points(space: Floats) -> int:
        return len(np.unique(space, axis=0))

    def _grown(self, most: int, seed: int) -> Iterator[Floats]:
        """Spaces from the smallest up; with seed 0 of what labels and symbols make of the states.

        Of larger ones of one type, the one whose points are the farthest apart.
        """
        draw = np.random.default_rng(seed)
        ambient = np.eye(self.num_states, dtype=np.int64) if seed else self._observed
        nothing = np.zeros((0, self.num_states), np.int64)
        heap: list[tuple[int, float, int, Integers]] = [(0, 0.0, 0, nothing)]
        ties = 0
        seen: set[bytes] = set()
        count = 0
        most_spaces = max(min(MOST_SPACES, MOST_SPACES * 40**2 // self.num_states**2), 8)
        while heap and count < most_spaces:
            size, _, _, space = heapq.heappop(heap)
            count += 1
            if size:
                yield space.T.astype(np.float64)
            if self._all_permute and size and (size > 1 or np.ptp(space)):
                continue  # what is found above 0 and the constant functions is complete
            best: dict[bytes, tuple[float, Integers]] = {}
            for larger in self._larger(space, ambient, most, draw):
                mark = self._mark(larger)
                if mark is not None and mark not in seen:
                    width = self._width(larger)
                    if mark not in best or width > best[mark][0]:
                        best[mark] = width, larger
            seen |= best.keys()
            for width, larger in best.values():
                ties += 1
                heapq.heappush(heap, (len(larger), -width, ties, larger))

    def _width(self, space: Integers) -> float:
        """The distance of the start's point from the nearest other one, of an orthonormal basis."""
        points = np.linalg.qr(space.T.astype(np.float64))[0]
        distances = np.linalg.norm(points - points[self.start], axis=1)
        return round(float(np.delete(distances, self.start).min(initial=np.inf)), 9)

    def _mark(self, space: Integers) -> bytes | None:
        """The traces of words: the same for spaces of the same type. None of what is not kept."""
        try:
            traces = np.trace(action_on(space, np.array(self._words)).matrices, axis1=1, axis2=2)
        except ArithmeticError:
            return None
        mark: bytes = traces.tobytes()
        return mark

    def _larger(
        self, space: Integers, ambient: Integers, most: int, draw: np.random.Generator
    ) -> Iterator[Integers]:
        """Invariant spaces `[d, S]` above one, and what of them is orthogonal to it."""
        if len(space) >= most:
            return
        below = echelon(space)
        fresh = ambient[_independent(outside(ambient, below))]
        if not len(fresh):
            return
        followed: set[bytes] = set()
        spans: set[bytes] = set()
        for vector in self._special(fresh, below, draw):
            beyond = outside(vector[None], below)[0]
            if not beyond.any() or (line := from_one(beyond).tobytes()) in followed:
                continue
            followed.add(line)
            larger = self._closed_over(space, vector, most)
            if larger is None or (span := echelon(larger)[0].tobytes()) in spans:
                continue
            spans.add(span)
            try:
                yield saturated(larger)
                if len(space) and self._all_permute:
                    apart = null_space(space @ larger.T)  # [k, d]: their combinations
                    rows = [row for row in map(as_integers, apart) if row is not None]
                    if rows and len(rows) == len(apart):
                        yield saturated(np.array(rows) @ larger)
            except ArithmeticError:
                continue

    def _special(
        self, fresh: Integers, below: tuple[Integers, Integers], draw: np.random.Generator
    ) -> Iterator[Integers]:
        """Vectors `[S]` that words single out of fresh ones, modulo a space."""
        inside = echelon(np.vstack([fresh, below[0]]))
        for parts in self._partitions:
            if not outside(parts, inside).any():
                yield from self._singled_out(
                    parts[_independent(outside(parts, below))], below, draw
                )
        for _ in range(CHAINS):
            yield from self._singled_out(fresh, below, draw)

    def _singled_out(
        self, among: Integers, below: tuple[Integers, Integers], draw: np.random.Generator
    ) -> Iterator[Integers]:
        """The same of what words in random order leave of some vectors `[k, S]`."""
        left = among % PRIME
        if 0 < len(left) <= MOST_FOLLOWED:
            yield from _sums(left, draw)
        for place in draw.permutation(len(self._conditions))[:LONGEST_CHAIN]:
            if len(left) <= 1:
                return
            targets, coefficients = self._conditions[place]
            image, moved = np.zeros_like(left), left
            for coefficient in coefficients:
                image = image + coefficient * moved
                moved = moved[:, targets]
            kept = null_space(outside(image, below).T)
            if 0 < len(kept) < len(left):
                left = product(kept, left)
                if len(left) <= MOST_FOLLOWED:
                    yield from _sums(left, draw)
        if len(left) > MOST_FOLLOWED:
            yield from _sums(left[:MOST_FOLLOWED], draw)

    def _closed_over(self, space: Integers, vector: Integers, most: int) -> Integers | None:
        """A basis of the smallest invariant space with another and a vector; None beyond `most`."""
        basis = [*space, vector]
        known = echelon(np.array(basis))
        waiting = [vector]
        while waiting:
            one = waiting.pop()
            for move in self.moves:
                image = one[move]
                if outside(image[None], known).any():
                    basis.append(image)
                    if len(basis) > most:
                        return None
                    waiting.append(image)
                    known = extended(known, image)
        return np.array(basis)

    @cached_property
    def _observed(self) -> Integers:
        """The smallest invariant space with the indicators of all labels, `[d, S]`."""
        space = np.zeros((0, self.num_states), np.int64)
        for name in self.labels.names:
            indicator = (self.labels.asked & (self.labels.output == name)).astype(np.int64)
            if outside(indicator[None], echelon(space)).any():
                found = self._closed_over(space, indicator, self.num_states)
                assert found is not None
                space = found
        return space

    @cached_property
    def _all_permute(self) -> bool:
        return all(len(np.unique(move)) == len(move) for move in self.moves)

    @cached_property
    def _words(self) -> tuple[Integers, ...]:
        """Different maps that short words make."""
        return self._maps_of(self.moves, MOST_WORDS)

    @cached_property
    def _partitions(self) -> tuple[Integers, ...]:
        """Indicators `[k, S]` of sets of states that two words keep, few and large ones first."""
        words = self._maps_of(np.unique(self.actions, axis=0), MOST_PAIRED)
        alone = [_components(np.arange(self.num_states), each) for each in words]
        found: dict[bytes, Integers] = {}
        for place, one in enumerate(alone):
            for other in words[place:]:
                parts = _components(one, other)
                if 2 <= parts.max() + 1 <= MOST_SETS:
                    found[parts.tobytes()] = parts
        order = sorted(found.values(), key=lambda parts: int(parts.max()))[:MOST_PARTITIONS]
        return tuple(
            (parts == np.arange(parts.max() + 1)[:, None]).astype(np.int64) for parts in order
        )

    def _maps_of(self, moves: Integers, most: int) -> tuple[Integers, ...]:
        """Different maps of words of up to four letters, not constant: short words first.

        Of letters, those with large images come first.
        """
        images = [len(np.unique(move)) for move in moves]
        order = sorted(np.flatnonzero(np.array(images) > 1), key=lambda place: -images[place])
        moves = moves[order]
        same = np.arange(self.num_states)
        found: dict[bytes, Integers] = {same.tobytes(): same}
        level: Sequence[Integers] = [same]
        for _ in range(4):
            longer = []
            for before in level:
                for move in moves:
                    targets = np.asarray(move, np.int64)[before]
                    if targets.tobytes() not in found and len(found) < most:
                        found[targets.tobytes()] = targets
                        longer.append(targets)
            level = longer
        return tuple(found.values())

    @cached_property
    def _conditions(self) -> tuple[Condition, ...]:
        """Polynomials of words, each of which may map some functions to 0."""
        found: list[Condition] = []
        for targets in self._words:
            if np.array_equal(targets, np.arange(self.num_states)):
                continue
            lengths = _cycle_lengths(targets)
            orders = {m for n in lengths for m in range(1, n + 1) if n % m == 0}
            if len(np.unique(targets)) < len(targets):
                found.append((targets, (0, 1)))
            found += [(targets, cyclotomic(m)) for m in sorted(orders)]
        return tuple(found)


def narrowest_rational(machine: Machine) -> ChosenFunctions | None:
    """The rational space of the smallest dimension that is found; None of too many states."""
    return _best(machine, RationalSpaces.narrowest)


def smallest_rational_blocks(machine: Machine) -> ChosenFunctions | None:
    """Rational spaces whose largest dimension is as small as is found; None of too many states."""
    return _best(machine, RationalSpaces.of_smallest_blocks)


def rational_functions(machine: Machine) -> Iterator[tuple[Integers, Integers]]:
    """The rational spaces that are found, as bases of integers `[S, d]`, the smallest ones first.

    With each, the maps `[V, S]` that symbols make of the states, which may leave out the sink.
    """
    for each in completions(machine):
        spaces = RationalSpaces(each.actions, each.start, each.labels)
        most = machine.automaton.num_states
        for space in spaces.found(most):
            yield np.rint(space).astype(np.int64), each.actions


def _best(
    machine: Machine, search: Callable[[RationalSpaces, int, int], ChosenFunctions | None]
) -> ChosenFunctions | None:
    best, below = None, machine.automaton.num_states + 1
    for each in completions(machine):
        found = search(RationalSpaces(each.actions, each.start, each.labels), 1, below)
        if found is not None:
            best, below = found, found.cost
    return best


def cyclotomic(order: int) -> tuple[int, ...]:
    """The coefficients of the polynomial of the primitive roots of unity, the constant one first.

    x^n - 1 is the product of those of the divisors of n.
    """
    found = [-1] + [0] * (order - 1) + [1]
    for divisor in range(1, order):
        if order % divisor == 0:
            by, quotient = cyclotomic(divisor), []
            while len(found) >= len(by):
                times = found[-1]  # both have leading coefficient 1
                quotient.append(times)
                shift = len(found) - len(by)
                found = [
                    own - (times * by[place - shift] if place >= shift else 0)
                    for place, own in enumerate(found)
                ][:-1]
            found = quotient[::-1]
    return tuple(found)


def _cycle_lengths(targets: Integers) -> set[int]:
    """The lengths of the cycles of a map of the states."""
    settled, lengths = targets, set()
    for _ in range(math.ceil(math.log2(max(len(targets), 2)))):
        settled = settled[settled]
    for state in np.unique(settled).tolist():
        reached, length = int(targets[state]), 1
        while reached != state:
            reached, length = int(targets[reached]), length + 1
        lengths.add(length)
    return lengths


def _within(one: Floats, other: Floats) -> bool:
    """Whether a space of functions `[S, d]` is a part of another one."""
    return bool(np.linalg.matrix_rank(np.column_stack([other, one])) == other.shape[1])


def _components(parts: Integers, targets: Integers) -> Integers:
    """The numbers `[S]` of sets of states, once each state is in one set with where a map leads."""
    found = parts
    while True:
        joined = np.minimum(found, found[targets])
        np.minimum.at(joined, targets, joined)
        lowest = np.full(parts.max() + 1, len(parts))
        np.minimum.at(lowest, parts, joined)
        joined = lowest[parts]
        if np.array_equal(joined, found):
            return np.unique(found, return_inverse=True)[1]
        found = joined


def _sums(rows: Integers, draw: np.random.Generator) -> Iterator[Integers]:
    """Rows `[k, S]` of residues and some of their sums, of those that are short integers."""
    weights = draw.integers(-MIXED, MIXED + 1, size=(MOST_MIXED, len(rows)))
    for row in [*rows, *product(weights % PRIME, rows)]:
        vector = as_integers(row)
        if vector is not None:
            yield vector


def _independent(rows: Integers) -> Integers:
    """Places of rows that are a basis of their span."""
    _, pivots = echelon(rows.T)
    return pivots
