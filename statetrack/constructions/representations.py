"""Linear representations of a task's machine: matrices for its symbols, a point for every state.

Reading x moves points as it moves states: A(x) point[s] = point[delta(s, x)].

V symbols, S states, n dimensions, K terms.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import block_diag

from statetrack.algebra import Algebra, ChosenFunctions, IrreduciblePart, Machine
from statetrack.constructions.case import NotBuilt
from statetrack.constructions.spanning_terms import gains_of, spanning_terms
from statetrack.sources import Floats, Integers

SMALL = 1e-9
"""What counts as zero."""


@dataclass(frozen=True, eq=False)
class LinearRepresentation:
    """Matrices `[V, n, n]` and points `[S, n]`; the rows of states that are never live are 0."""

    matrices: Floats
    points: Floats

    @property
    def size(self) -> int:
        """The dimension n."""
        return int(self.points.shape[1])

    def padded(self, size: int) -> LinearRepresentation:
        """The same in a larger space, with zeros. Raises `NotBuilt` where it is too small."""
        more = size - self.size
        if more < 0:
            raise NotBuilt(f"the representation has {self.size} dimensions, {size} are predicted")
        matrices = np.pad(self.matrices, ((0, 0), (0, more), (0, more)))
        return LinearRepresentation(matrices, np.pad(self.points, ((0, 0), (0, more))))


def of_part(part: IrreduciblePart, algebra: Algebra) -> LinearRepresentation:
    """An irreducible part of the space of a group machine's states."""
    return LinearRepresentation(part.matrices(algebra.machine.delta.T), part.points)


def of_functions(choice: ChosenFunctions, algebra: Algebra) -> list[LinearRepresentation]:
    """Spaces of functions on the states of a complete machine, which may leave out the sink."""
    live = algebra.machine.live
    found = []
    for part in choice.parts:
        points = part.points
        if len(points) < len(live):
            points = np.zeros((len(live), part.dimension))
            points[live] = part.points
        found.append(LinearRepresentation(part.matrices(choice.actions), points))
    return found


def direct_sum(parts: Sequence[LinearRepresentation]) -> LinearRepresentation:
    """Representations side by side."""
    matrices = [block_diag(*each) for each in zip(*(p.matrices for p in parts), strict=True)]
    return LinearRepresentation(
        np.stack(matrices), np.column_stack([part.points for part in parts])
    )


def one_hot(algebra: Algebra) -> LinearRepresentation:
    """States as unit vectors (Ebrahimi and Memisevic 2025, Proposition 1); a sink is 0."""
    return unit_vectors(algebra.machine)


def unit_vectors(machine: Machine) -> LinearRepresentation:
    """The same for a machine."""
    live = np.flatnonzero(machine.live)
    points = np.zeros((len(machine.delta), len(live)))
    points[live, np.arange(len(live))] = 1
    return LinearRepresentation(
        np.stack([points[targets][live].T for targets in machine.delta.T]), points
    )


def observed(algebra: Algebra) -> LinearRepresentation:
    """What labels and symbols make of the states: as large as the rank of the Hankel matrix.

    The space is spanned by the indicators of labels, pulled back through symbols (Carlyle and Paz
    1971); a state's point is its projection onto it.
    """
    machine = algebra.machine
    asked = machine.live & machine.automaton.scored
    labels = np.unique(machine.automaton.output[asked])
    columns = [(asked & (machine.automaton.output == label)).astype(float) for label in labels]
    moves = [np.where(machine.live, targets, 0) for targets in machine.delta.T]
    while True:
        more = [np.where(machine.live, each[to], 0.0) for each in columns for to in moves]
        values, vectors = np.linalg.eigh(sum(np.outer(each, each) for each in columns + more))
        basis = vectors[:, values > SMALL * max(1.0, values[-1])]
        if basis.shape[1] == len(columns):
            break
        columns = list(basis.T)
    states = np.eye(len(basis)) * machine.live
    moved = np.stack([states[targets] * machine.live[:, None] for targets in machine.delta.T])
    return LinearRepresentation(basis.T @ moved.transpose(0, 2, 1) @ basis, basis)


def smallest_known(algebra: Algebra) -> LinearRepresentation:
    """The smallest sum of irreducible parts that reads all labels, or of what is observed."""
    found = [one_hot(algebra)]
    if algebra.linear_dimension is not None and algebra.linear_dimension < found[0].size:
        found.append(observed(algebra))
    choice = algebra.space and algebra.space.with_smallest_sum(algebra.space.dimensions)
    if choice:
        found.append(direct_sum([of_part(part, algebra) for part in choice.parts]))
    elif not algebra.is_group and algebra.narrowest:
        found += of_functions(algebra.narrowest, algebra)
    return min(found, key=lambda each: each.size)


def smallest_blocks(algebra: Algebra) -> list[LinearRepresentation]:
    """Representations whose largest is as small as known: irreducible parts, or a single one."""
    choice = algebra.space and algebra.space.with_smallest_largest(algebra.space.dimensions)
    whole = smallest_known(algebra)
    if not algebra.is_group and algebra.smallest_blocks:
        return of_functions(algebra.smallest_blocks, algebra)
    if choice and choice.cost <= whole.size:
        return [of_part(part, algebra) for part in choice.parts]
    return [whole]


# --- states as coordinates ---


def states_of(algebra: Algebra) -> Integers:
    """The live states, the start first: the state of every coordinate, `[n]`."""
    machine = algebra.machine
    live = np.flatnonzero(machine.live)
    start = machine.automaton.start
    return np.concatenate([[start], live[live != start]])


def maps_of(algebra: Algebra) -> tuple[Integers, Integers]:
    """The different maps of coordinates `[K, n]` that symbols make, and each symbol's, `[V]`."""
    machine, order = algebra.machine, states_of(algebra)
    place = np.zeros(len(machine.delta), np.int64)
    place[order] = np.arange(len(order))
    moves, which = np.unique(place[machine.delta[order]].T, axis=0, return_inverse=True)
    return moves, which.ravel()


# --- sums of terms of rank one ---


@dataclass(frozen=True, eq=False)
class Terms:
    """A(x) = left diag(gains(x)) right^T: `left` and `right [n, K]`, `gains [V, K]`."""

    left: Floats
    right: Floats
    gains: Floats

    @property
    def rank(self) -> int:
        """The number K of terms."""
        return int(self.left.shape[1])


def fewest_terms(algebra: Algebra) -> tuple[LinearRepresentation, Terms]:
    """The representation with the fewest known terms of rank one, with these terms."""
    whole = smallest_known(algebra)
    found = [(whole, _terms(whole)), (one_hot(algebra), moves_of(algebra))]
    choice = algebra.space and algebra.space.with_smallest_sum(algebra.space.ranks)
    if choice:
        parts = [of_part(part, algebra) for part in choice.parts]
        found.append((direct_sum(parts), side_by_side([_part_terms(part) for part in parts])))
    return min(found, key=lambda each: each[1].rank)


def moves_of(algebra: Algebra) -> Terms:
    """A term for each pair of a state and a next state, on unit vectors."""
    machine = algebra.machine
    states = one_hot(algebra).points
    pairs = sorted(
        {
            (int(state), int(target))
            for state in np.flatnonzero(machine.live)
            for target in machine.delta[state]
            if machine.live[target]
        }
    )
    gains = [[to[state] == target for state, target in pairs] for to in machine.delta.T]
    return Terms(
        states[[target for _, target in pairs]].T,
        states[[state for state, _ in pairs]].T,
        np.array(gains, float),
    )


def side_by_side(terms: Sequence[Terms]) -> Terms:
    """The terms of a direct sum."""
    return Terms(
        block_diag(*(each.left for each in terms)),
        block_diag(*(each.right for each in terms)),
        np.column_stack([each.gains for each in terms]),
    )


def _terms(representation: LinearRepresentation) -> Terms:
    """All of n x n; the identity and what each symbol turns beside it; each symbol's own terms.

    Whichever are fewest. Turns of one plane, which commute, take three (Gauss).
    """
    matrices, size = representation.matrices, representation.size
    turns = []
    if size == 2 and _are_turns(matrices):
        cosine, sine = matrices[:, 0, 0], matrices[:, 1, 0]
        turns = [
            Terms(
                np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]),
                np.array([[1.0, 0.0, 1.0], [0.0, 1.0, -1.0]]),
                np.stack([cosine - sine, cosine + sine, sine], axis=1),
            )
        ]
    places = list(itertools.product(range(size), repeat=2))
    unit = np.eye(size)
    everything = Terms(
        unit[:, [row for row, _ in places]],
        unit[:, [column for _, column in places]],
        matrices.reshape(len(matrices), -1),
    )
    identity = Terms(unit, unit, np.ones((len(matrices), size)))
    beside = _joined([identity, _own_terms(matrices - unit)])
    found = [*turns, everything, beside, _own_terms(matrices)]
    return min(found, key=lambda each: each.rank)


def _part_terms(part: LinearRepresentation) -> Terms:
    """The fewest terms for an irreducible part: also those that span all that it has room for."""
    left, right = spanning_terms(part.matrices)
    found = [_terms(part)]
    with contextlib.suppress(ArithmeticError):
        found.append(Terms(left, right, gains_of(part.matrices, left, right)))
    return min(found, key=lambda each: each.rank)


def _are_turns(matrices: Floats) -> bool:
    return bool(
        np.allclose(matrices[:, 0, 0], matrices[:, 1, 1])
        and np.allclose(matrices[:, 0, 1], -matrices[:, 1, 0])
    )


def _own_terms(matrices: Floats) -> Terms:
    """The terms of every different matrix alone, by singular values."""
    different, which = np.unique(np.round(matrices, 9), axis=0, return_inverse=True)
    left, right, gains = [], [], []
    for place in range(len(different)):
        matrix = matrices[np.flatnonzero(which.ravel() == place)[0]]
        columns, sizes, rows = np.linalg.svd(matrix)
        for term in np.flatnonzero(sizes > SMALL):
            left.append(columns[:, term] * sizes[term])
            right.append(rows[term])
            gains.append((which.ravel() == place).astype(float))
    size = matrices.shape[1]
    if not left:
        return Terms(np.zeros((size, 0)), np.zeros((size, 0)), np.zeros((len(matrices), 0)))
    return Terms(np.stack(left, 1), np.stack(right, 1), np.stack(gains, 1))


def _joined(terms: Sequence[Terms]) -> Terms:
    return Terms(
        np.column_stack([each.left for each in terms]),
        np.column_stack([each.right for each in terms]),
        np.column_stack([each.gains for each in terms]),
    )
