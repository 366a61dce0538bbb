"""The irreducible parts of the space of a machine's states, as real orthogonal matrices.

Where every symbol permutes S states, it is an orthogonal matrix on R^S. A random symmetric matrix
that commutes with all of these has the irreducible parts of R^S as its eigenspaces. The matrices
that commute are those that are constant on the orbits of pairs of states.

Letters: V symbols, S states, K generators, d the dimension of a part.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from statetrack.sources import Booleans, Floats, Integers, orbits

MOST_STATES = 1024
"""The largest space that is decomposed: its matrices have S^2 entries, and it takes S^3 steps."""

SAME_EIGENVALUE = 1e-10
"""Eigenvalues this close, as a part of the largest, belong to one part."""

ORTHOGONAL = 1e-9
"""How far products of basis vectors may be from 0 and 1."""

SAME_POINT = 1e-6
"""Points this close are one."""

ATTEMPTS = 5


@dataclass(frozen=True, eq=False)
class Part:
    """An irreducible part of R^S: an orthonormal basis of it, and a point in it for every state."""

    points: Floats  # [S, d]: the columns are the basis, the rows the states' projections onto it

    @property
    def dimension(self) -> int:
        """The dimension d."""
        return int(self.points.shape[1])

    def matrices(self, actions: Integers) -> Floats:
        """The orthogonal matrices `[V, d, d]` of maps of the states `[V, S]`.

        A(x) points[s] = points[x[s]], so reading x and then y is A(y) A(x).
        """
        return np.stack([self.points[action].T @ self.points for action in actions])

    def looks_like(self, state: int) -> Booleans:
        """The states that have the same point as a given one, `[S]`."""
        distance = np.linalg.norm(self.points - self.points[state], axis=1)
        same: Booleans = distance < SAME_POINT
        return same


def irreducible_parts(permutations: Integers) -> tuple[Part, ...]:
    """R^S as an orthogonal sum of irreducible parts, smallest first.

    `permutations [K, S]` generate the group. A representation that occurs several times gives as
    many parts.

    Raises `ArithmeticError` where the eigenvalues are not clearly separated.
    """
    num_states = permutations.shape[1]
    orbit = orbits_of_pairs(permutations)
    for seed in range(ATTEMPTS):
        bases = _eigenspaces(orbit, np.random.default_rng(seed))
        if all(_is_invariant(basis, permutations) for basis in bases):
            return tuple(map(Part, sorted(bases, key=lambda basis: basis.shape[1])))
    raise ArithmeticError(f"a space of {num_states} dimensions could not be decomposed")


def orbits_of_pairs(permutations: Integers) -> Integers:
    """A number for the orbit of every pair of states, `[S, S]`, under permutations `[K, S]`."""
    num_states = permutations.shape[1]
    assert num_states <= MOST_STATES, num_states
    pairs = np.arange(num_states**2).reshape(num_states, num_states)
    maps = [pairs[each][:, each].ravel() for each in permutations]
    return orbits(maps, num_states**2).reshape(num_states, num_states)


def commuting_matrix(orbits_of_pairs: Integers, draw: np.random.Generator) -> Floats:
    """A random matrix `[S, S]` that commutes with all permutations: it is constant on orbits."""
    matrix: Floats = draw.normal(size=orbits_of_pairs.size)[orbits_of_pairs]
    return matrix


def _eigenspaces(orbit: Integers, draw: np.random.Generator) -> list[Floats]:
    """Orthonormal bases of the eigenspaces of a random symmetric matrix constant on orbits."""
    entries = commuting_matrix(orbit, draw)
    values, vectors = np.linalg.eigh(entries + entries.T)
    starts = np.flatnonzero(np.diff(values) > SAME_EIGENVALUE * np.abs(values).max()) + 1
    return np.split(vectors, starts, axis=1)


def _is_invariant(basis: Floats, permutations: Integers) -> bool:
    """Whether a subspace is invariant: it is not where part of an eigenspace was cut off."""
    for permutation in permutations:
        matrix = basis[permutation].T @ basis
        if np.abs(matrix.T @ matrix - np.eye(basis.shape[1])).max() > ORTHOGONAL:
            return False
    return True
