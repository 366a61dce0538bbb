"""Small invariant spaces of functions on a machine's states, from which its labels can be read.

Symbols act on functions of the states: f becomes f o delta_x. Let U be a space of functions that
every symbol maps into itself, with a basis u_1 .. u_H, and let the point of a state s be
h(s) = (u_1(s) .. u_H(s)). Then u_i o delta_x is a combination of the u_j, so there is a matrix A(x)
with A(x) h(s) = h(delta(s, x)): a linear model of width H whose state is the point of the machine's
state. It tracks the task where U holds logit functions that are right by a margin, which
`separation` decides. A sum of such spaces is a model with a block for each. So the smallest width
is the dimension of the smallest such U, and the smallest block size the least bound under which
invariant spaces together read the labels, as long as logits are functions of the state; of a model
whose logits are not, `width_bounds` says what is known.

*The search.* Spaces are grown one minimal step at a time, smallest first. In the quotient of all
functions by U, a random element of the algebra that the symbols generate has null vectors for each
of its eigenvalues; the smallest invariant space above U with such a vector is the next candidate
(Norton's and Parker's MeatAxe 1984, over floating-point numbers). Every candidate is closed under
all symbols up to rounding, which is checked. Where a type of step occurs several times, one is
drawn: so what is found is enough, and need not be the smallest. Words that are never drawn leave
A(x) free outside of the states in which x is drawn: several ways to complete the machine are tried.

Letters: S states, V symbols, H dimensions.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from statetrack.algebra.machine import Machine
from statetrack.algebra.monoid import MonoidBudget, transition_monoid
from statetrack.algebra.representations import IrreduciblePart
from statetrack.algebra.separation import Labels, Readout, find_readout, is_readable
from statetrack.algebra.smallest_spaces import ChosenSpace
from statetrack.sources import Floats, Integers, places_of

MOST_STATES = 128
"""Most states of a machine whose function spaces are searched."""
MOST_THOROUGH = 24
"""Most states for which spaces of many more dimensions than the least are looked for."""
LEVELS = (2, 3, 5, 8, 13, 21, 34, 55, 89, MOST_STATES)
"""Dimensions up to which spaces are searched, one after the other."""
MOST_SPACES = 30
"""Most spaces that a search goes through; of functions on more than 40 states fewer."""
FEW_PRODUCTS = MonoidBudget(most_elements=2_000, most_products=20_000)
"""How large a monoid may be for symbols that are products of others to be left out."""
MOST_PROGRAMS = 16
"""Most spaces, of functions on 20 states with two labels, that a search tries to read from."""
MOST_DRAWN_TWICE = 12
"""Most states for which spaces are drawn twice."""
MOST_EIGENVALUES = 40
"""Most eigenvalues of a random element whose null vectors are followed."""
NEW_DIRECTION = 1e-7
"""Lengths below this, of images of unit vectors, are rounding."""
CLOSED = 1e-8
"""How far images of a basis may lie outside of its span."""
SAME_EIGENVALUE = 1e-5
"""Eigenvalues this close, as a part of the largest, are one."""
BESIDE = 1e-10
"""How far beside an eigenvalue the inverse is taken whose largest vectors are null vectors."""


@dataclass(frozen=True, eq=False)
class ChosenFunctions(ChosenSpace):
    """Invariant spaces as parts, and the complete machine on whose states they are functions."""

    actions: Integers
    """The next states `[V, S]`."""
    start: int


@dataclass(frozen=True, eq=False)
class FunctionSpaces:
    """The functions on the states of a complete machine, some of whose states are asked for."""

    actions: Integers  # [V, S]
    start: int
    labels: Labels

    @cached_property
    def moves(self) -> Integers:
        """Maps of the states of which all that symbols make are products, `[number, S]`."""
        different = np.unique(self.actions, axis=0)
        monoid = transition_monoid(different, FEW_PRODUCTS)
        return different if monoid is None else monoid.generators.astype(np.int64)

    @property
    def num_states(self) -> int:
        """The number S of states."""
        return int(self.actions.shape[1])

    def narrowest(self, bound: int, below: int) -> ChosenFunctions | None:
        """The space of the smallest dimension that is found, of at least a bound.

        None where none below a dimension is found.
        """
        programs = self._most_programs
        tried = 0
        for most in self._levels(bound, below):
            spaces = [each for each in self._spaces(most) if bound <= each.shape[1] < below]
            for space in spaces[tried:]:
                readable = is_readable(space, self.labels)
                if readable:
                    readout = find_readout(space, self.labels).readout
                    if readout is not None:
                        size = space.shape[1]
                        return self._construction([space], readout, size, size == bound)
                programs -= 1
                if not programs:
                    return None
            tried = len(spaces)
        return None

    def of_smallest_blocks(self, bound: int, below: int) -> ChosenFunctions | None:
        """Spaces whose largest dimension is as small as is found, of at least a bound."""
        programs = self._most_programs
        tried = 0
        for most in self._levels(bound, below):
            spaces = [each for each in self._spaces(most) if each.shape[1] < below]
            for size in sorted({space.shape[1] for space in spaces}):
                within = [space for space in spaces if space.shape[1] <= size]
                if len(within) <= tried or not programs:
                    continue
                tried = len(within)
                programs -= 1
                if is_readable(np.column_stack(within), self.labels):
                    # small ones that are not needed to read the labels go first
                    kept = sorted(within, key=lambda space: -space.shape[1])
                    for space in list(reversed(kept))[: self._most_programs]:
                        others = [each for each in kept if each is not space]
                        if others and is_readable(np.column_stack(others), self.labels):
                            kept = others
                    readout = find_readout(np.column_stack(kept), self.labels).readout
                    if readout is not None:
                        return self._construction(kept, readout, size, size <= bound)
        return None

    def _levels(self, bound: int, below: int) -> Iterator[int]:
        """Dimensions up to which spaces are looked for: small ones first, whose search is short."""
        for most in LEVELS:
            if most >= bound:
                yield most
                if most >= below - 1 or self.num_states > MOST_THOROUGH:
                    return

    @property
    def _most_programs(self) -> int:
        size = max(len(self.labels.names) * int(self.labels.asked.sum()) ** 2, 1)
        return max(min(MOST_PROGRAMS, 1_000 * MOST_PROGRAMS // size), 3)

    def _spaces(self, most: int) -> list[Floats]:
        """The spaces of at most some dimension that are found, small ones first."""
        if most not in self._known:
            draws = 2 if self.num_states <= MOST_DRAWN_TWICE else 1
            found = [space for seed in range(draws) for space in self._grown(most, seed)]
            self._known[most] = sorted(found, key=lambda space: space.shape[1])
        return self._known[most]

    @cached_property
    def _known(self) -> dict[int, list[Floats]]:
        return {}

    def _construction(
        self, spaces: Sequence[Floats], readout: Readout, cost: int, smallest: bool
    ) -> ChosenFunctions:
        parts = tuple(IrreduciblePart(space) for space in spaces)
        return ChosenFunctions(parts, cost, smallest, readout, self.actions, self.start)

    def _grown(self, most: int, seed: int) -> Iterator[Floats]:
        """Invariant spaces of at most some dimension, small ones first, as orthonormal bases."""
        draw = np.random.default_rng(seed)
        elements = list(self._random_elements(draw))
        nothing = np.zeros((self.num_states, 0))
        heap: list[tuple[int, int, Floats]] = [(0, 0, nothing)]
        seen: set[tuple[int, float, float]] = set()
        count = 0
        most_spaces = max(min(MOST_SPACES, MOST_SPACES * 40**3 // self.num_states**3), 6)
        while heap and count < most_spaces:
            size, _, space = heapq.heappop(heap)
            count += 1
            if size:
                yield space
            for larger in self._next_larger(space, elements, most, draw):
                # two traces and the dimension are the same for spaces of the same type
                inside = larger.T @ elements[0] @ larger
                traces = float(np.trace(inside)), float(np.trace(inside @ inside))
                mark = larger.shape[1], round(traces[0], 5), round(traces[1], 5)
                if mark not in seen:
                    seen.add(mark)
                    heapq.heappush(heap, (larger.shape[1], len(seen), larger))

    def _random_elements(self, draw: np.random.Generator) -> Iterator[Floats]:
        """Random combinations of words, as matrices `[S, S]` on functions.

        The second one is of permutations and their inverses, where there are any: it is symmetric,
        so that its eigenvalues are real. To a complex eigenvalue of several copies of one type
        belong real vectors that lie in no single copy.
        """
        states = np.arange(self.num_states)
        permutations = [move for move in self.moves if len(np.unique(move)) == len(move)]
        for symbols in (list(self.moves), permutations):
            if not symbols:
                continue
            matrix = np.zeros((self.num_states, self.num_states))
            for length in (1, 2, 3):
                for _ in range(2 * len(symbols) if length == 1 else 8):
                    reached = states
                    for place in draw.integers(len(symbols), size=length):
                        reached = symbols[place][reached]
                    matrix[states, reached] += draw.normal()
            yield matrix + matrix.T if symbols is permutations else matrix

    def _next_larger(
        self, space: Floats, elements: Sequence[Floats], most: int, draw: np.random.Generator
    ) -> Iterator[Floats]:
        """Invariant spaces above one, each with a null vector of an element in the quotient."""
        if space.shape[1] >= min(most, len(space)):
            return
        # an orthonormal basis of what is orthogonal to the space
        outside: Floats = np.eye(len(space))
        if space.shape[1]:
            outside = np.linalg.svd(space, full_matrices=True)[0][:, space.shape[1] :]
        for element in elements:
            quotient = outside.T @ element @ outside
            done: list[complex] = []
            for value in _clustered(np.linalg.eigvals(quotient))[:MOST_EIGENVALUES]:
                if any(abs(value - each) < SAME_EIGENVALUE * max(1.0, abs(each)) for each in done):
                    continue
                vector = _null_vector(quotient, value, draw)
                larger = self._closed(space, outside @ vector[:, None], most)
                if larger is None:
                    continue
                step = larger[:, space.shape[1] :]
                done += np.linalg.eigvals(step.T @ element @ step).tolist()
                yield larger

    def _closed(self, space: Floats, columns: Floats, most: int) -> Floats | None:
        """The smallest invariant space with an invariant one and columns; None beyond `most`."""
        basis, fresh = space, columns / np.linalg.norm(columns, axis=0)
        fresh = _residual(basis, fresh)
        fresh = fresh / np.maximum(np.linalg.norm(fresh, axis=0), NEW_DIRECTION)
        while fresh.shape[1]:
            basis = np.column_stack([basis, fresh])
            if basis.shape[1] > most:
                return None
            images = np.column_stack([fresh[move] for move in self.moves])
            left, sizes, _ = np.linalg.svd(_residual(basis, images), full_matrices=False)
            fresh = _residual(basis, left[:, sizes > NEW_DIRECTION])
            fresh = np.linalg.qr(fresh)[0]
        images = np.column_stack([basis[move] for move in self.moves])
        return basis if np.abs(_residual(basis, images)).max() < CLOSED else None


def completions(machine: Machine) -> Iterator[FunctionSpaces]:
    """Complete machines that do as a machine does wherever words are drawn.

    The machine itself, where its sink counts as any other; and where it has one, machines
    without it, in which a symbol that is not drawn in a state does there what it does elsewhere: a
    constant map is continued as one, and a map that is one to one as a permutation. Any other one
    leaves the state as it is, or goes to the start.
    """
    automaton = machine.automaton
    number = automaton.num_labels
    asked = automaton.scored & machine.live
    labels = Labels(automaton.output, asked, number)
    if len(machine.delta) <= MOST_STATES and (
        machine.sink is None or automaton.num_states <= MOST_THOROUGH
    ):
        yield FunctionSpaces(machine.delta.T, automaton.start, labels)
    if machine.sink is None or not machine.live[automaton.start]:
        return
    kept = np.flatnonzero(machine.live)
    if len(kept) > MOST_STATES:
        return
    place = places_of(kept, len(machine.delta))
    partial, start = place[machine.delta[kept].T], int(place[automaton.start])
    inside = Labels(automaton.output[kept], asked[kept], number)
    for otherwise in (np.arange(len(kept)), np.full(len(kept), start)):
        maps = np.array([_continued(targets, otherwise) for targets in partial])
        yield FunctionSpaces(maps, start, inside)


def best_construction(
    search: Callable[[FunctionSpaces, int, int], ChosenFunctions | None],
    completed: Sequence[FunctionSpaces],
    bound: int,
    below: int,
) -> ChosenFunctions | None:
    """The construction of least cost that a search finds, over all completions of a machine."""
    best = None
    for spaces in completed:
        found = search(spaces, bound, below)
        if found is not None:
            best, below = found, found.cost
    return best


def _continued(targets: Integers, otherwise: Integers) -> Integers:
    """A map of all states that is a given one where that has no -1."""
    known = np.flatnonzero(targets >= 0)
    images = targets[known]
    if len(known) == len(targets):
        return targets
    if len(known) and (images == images[0]).all() and len(known) > 1:
        return np.full(len(targets), images[0])
    if len(np.unique(images)) < len(images):
        return np.where(targets >= 0, targets, otherwise)
    closed = targets.copy()
    before = np.full(len(targets), -1)
    before[images] = known
    for state in np.flatnonzero(targets < 0):  # the end of a chain goes to its beginning
        first = int(state)
        while before[first] >= 0:
            first = int(before[first])
        closed[state] = first
    return closed


def _residual(basis: Floats, columns: Floats) -> Floats:
    """What of columns lies outside of a span, worked out twice against rounding."""
    for _ in range(2):
        columns = columns - basis @ (basis.T @ columns)
    return columns


def _clustered(values: np.ndarray) -> list[complex]:
    """The means of eigenvalues that rounding tears apart, of each conjugate pair the upper one.

    Rounding moves the k eigenvalues of a Jordan block by the k-th root of the precision, but their
    mean only by the precision.
    """
    left = [complex(value) for value in values if value.imag >= -SAME_EIGENVALUE]
    scale = max(float(np.abs(values).max(initial=0.0)), 1.0)
    means = []
    while left:
        alike = [each for each in left if abs(each - left[0]) < SAME_EIGENVALUE * scale]
        left = [each for each in left if abs(each - left[0]) >= SAME_EIGENVALUE * scale]
        mean = sum(alike) / len(alike)
        means.append(complex(mean.real, mean.imag if abs(mean.imag) > SAME_EIGENVALUE else 0.0))
    return means


def _null_vector(matrix: Floats, value: complex, draw: np.random.Generator) -> Floats:
    """A random vector that a matrix multiplies by an eigenvalue; of a complex one its real part."""
    shift = (value if value.imag else value.real) + BESIDE
    vector = draw.normal(size=len(matrix)).astype(complex if value.imag else float)
    for _ in range(3):
        try:
            vector = np.linalg.solve(matrix - shift * np.eye(len(matrix)), vector)
        except np.linalg.LinAlgError:
            shift += BESIDE
            continue
        vector = vector / np.linalg.norm(vector)
    return np.ascontiguousarray(vector.real)
