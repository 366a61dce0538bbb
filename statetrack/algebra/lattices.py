"""Lattices of integer-valued functions on a machine's states, and the integer matrices on them.

Symbols act on functions of the states: f becomes f o delta_x. A space U of rational functions that
every symbol maps into itself holds the lattice U n Z^S of those whose values are integers, and
symbols map that into itself too. Let its basis be u_1 .. u_d, and the point of a state s be
h(s) = (u_1(s) .. u_d(s)). Then A(x) h(s) = h(delta(s, x)) with matrices A(x) of integers, and the
points make up all of Z^d as their integer combinations: conversely, a lattice that points generate
is one that A(x) maps into itself. Short functions are small points (`reduced`).

Equations are solved modulo a prime, and the few numbers that solve them are read as fractions of
small numbers (`as_integers`). That an answer is right is checked in integers: see `action_on`.

S states, V symbols, d dimensions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from statetrack.sources import Integers

PRIME = 2**31 - 1
"""The modulus of equations: products of two residues fit into 64 bits."""
LARGEST_NUMBER = 2**12
"""The largest numerator that a residue is read as."""
LARGEST_DENOMINATOR = 24
"""The largest common denominator of a solution."""
LARGEST_ENTRY = 2**20
"""Numbers of bases stay below this: floating-point numbers hold their products exactly."""
LOVASZ = 0.99
"""The share of Lovasz' condition: 1 would be the shortest bases, with no bound on the steps."""


@dataclass(frozen=True, eq=False)
class IntegerAction:
    """Integer matrices of symbols, and an integer point of every state that they move as states.

    `matrices[x] @ points[s]` is `points[delta[s, x]]`, checked for all of them.
    """

    matrices: Integers  # [V, d, d]
    points: Integers  # [S, d]

    @property
    def dimension(self) -> int:
        """The dimension d."""
        return int(self.points.shape[1])


def action_on(functions: Integers, actions: Integers) -> IntegerAction:
    """The action of maps of the states `[V, S]` on functions `[d, S]` that generate a lattice.

    Raises `ArithmeticError` where integer matrices do not map their points as states are mapped.
    """
    points = functions.T
    inverse = np.linalg.pinv(points.astype(np.float64))  # [d, S]
    matrices = np.stack(
        [np.rint(inverse @ points[targets]).astype(np.int64).T for targets in actions]
    )
    for matrix, targets in zip(matrices, actions, strict=True):
        if not np.array_equal(points @ matrix.T, points[targets]):
            raise ArithmeticError("functions whose span is not kept, or that lack integer ones")
    return IntegerAction(matrices, points)


def echelon_rows(rows: Iterable[Sequence[int]]) -> list[list[int]]:
    """Rows in echelon form that generate the lattice that some rows of whole numbers generate."""
    left = [list(row) for row in rows if any(row)]
    basis: list[list[int]] = []
    for place in range(len(left[0]) if left else 0):
        mine = [row for row in left if row[place]]
        left = [row for row in left if not row[place]]
        while len(mine) > 1:
            mine.sort(key=lambda row: abs(row[place]))
            first, rest = mine[0], mine[1:]
            mine = [first]
            for row in rest:
                times = row[place] // first[place]
                row = [own - times * other for own, other in zip(row, first, strict=True)]
                if any(row):
                    (mine if row[place] else left).append(row)
        basis += mine
    return basis


def saturated(functions: Integers) -> Integers:
    """A reduced basis `[d, S]` of all integer-valued functions in the span of independent ones.

    In a basis of the lattice that their points generate, the points' coordinates are the values of
    such a basis: of Hermite's normal form, whose numbers may grow, so of a short basis.

    Raises `ArithmeticError` where numbers become too large.
    """
    short = reduced(functions)
    basis = echelon_rows(short.T.tolist())  # of points
    assert len(basis) == len(short), "functions are independent"
    if all(abs(column[place]) == 1 for place, column in enumerate(basis)):
        return short
    rows = []
    for point in short.T.tolist():
        coordinates = []
        for place, column in enumerate(basis):
            times = point[place] // column[place]
            point = [own - times * other for own, other in zip(point, column, strict=True)]
            coordinates.append(times)
        assert not any(point)
        rows.append(coordinates)
    return reduced(_bounded(rows).T)


def reduced(functions: Integers) -> Integers:
    """A basis `[d, S]` of the same lattice of short vectors (Lenstra, Lenstra and Lovasz 1982).

    Products are taken in floating point, so that how short they are is up to rounding; that they
    are a basis is not.
    """
    basis = functions.copy()
    place = 1
    while place < len(basis):
        # what follows the diagonal in each column is no part of the triangular matrix
        columns = np.linalg.qr(basis[: place + 1].T.astype(np.float64), mode="raw")[0].tolist()
        column = columns[place]
        for other in reversed(range(place)):
            times = round(column[other] / columns[other][other])
            if times:
                basis[place] -= times * basis[other]
                for row in range(other + 1):
                    column[row] -= times * columns[other][row]
        if abs(basis[place]).max() > LARGEST_ENTRY:
            raise ArithmeticError("a basis of large numbers")
        before = columns[place - 1][place - 1] ** 2
        if column[place] ** 2 + column[place - 1] ** 2 >= LOVASZ * before:
            place += 1
        else:
            basis[[place - 1, place]] = basis[[place, place - 1]]
            place = max(place - 1, 1)
    return basis


def echelon(rows: Integers) -> tuple[Integers, Integers]:
    """The reduced echelon form `[r, n]` of rows `[m, n]` modulo the prime, and its pivots `[r]`."""
    left = rows % PRIME
    pivots: list[int] = []
    for place in range(left.shape[1]):
        at = len(pivots)
        below = np.flatnonzero(left[at:, place])
        if not len(below):
            continue
        chosen = at + int(below[0])
        left[[at, chosen]] = left[[chosen, at]]
        left[at] = left[at] * pow(int(left[at, place]), -1, PRIME) % PRIME
        others = np.flatnonzero(left[:, place])
        others = others[others != at]
        left[others] = (left[others] - left[others, place][:, None] * left[at]) % PRIME
        pivots.append(place)
        if len(pivots) == len(left):
            break
    return left[: len(pivots)], np.array(pivots, np.int64)


def extended(space: tuple[Integers, Integers], row: Integers) -> tuple[Integers, Integers]:
    """The reduced echelon form of a space and one more row `[n]` that is outside of it."""
    basis, pivots = space
    left = outside(row[None], space)[0]
    pivot = int(np.flatnonzero(left)[0])
    left = from_one(left)
    basis = (basis - basis[:, pivot][:, None] * left) % PRIME
    return np.vstack([basis, left[None]]), np.append(pivots, pivot)


def from_one(residues: Integers) -> Integers:
    """The multiple of residues `[n]`, not all of them 0, whose first number is 1."""
    scaled: Integers = residues * pow(int(residues[np.flatnonzero(residues)[0]]), -1, PRIME) % PRIME
    return scaled


def outside(rows: Integers, space: tuple[Integers, Integers]) -> Integers:
    """Rows `[m, n]` less those of a space, in echelon form, that have the same pivots."""
    basis, pivots = space
    found: Integers = rows % PRIME
    return (found - product(found[:, pivots], basis)) % PRIME if len(pivots) else found


def null_space(rows: Integers) -> Integers:
    """The columns that rows `[m, n]` map to 0 modulo the prime, as rows `[n - rank, n]`."""
    basis, pivots = echelon(rows)
    free = np.setdiff1d(np.arange(rows.shape[1]), pivots)
    found = np.zeros((len(free), rows.shape[1]), np.int64)
    found[np.arange(len(free)), free] = 1
    found[:, pivots] = -basis[:, free].T % PRIME
    return found


def as_integers(residues: Integers) -> Integers | None:
    """The shortest integer multiple of residues `[n]` of fractions; None where it is long."""
    for denominator in range(1, LARGEST_DENOMINATOR + 1):
        found = residues * denominator % PRIME
        found = np.where(found > PRIME // 2, found - PRIME, found)
        if abs(found).max(initial=0) <= LARGEST_NUMBER:
            return found
    return None


def product(one: Integers, other: Integers) -> Integers:
    """The product of matrices of residues modulo the prime."""
    low = one & 0xFFFF  # sums of up to 2^16 products of 16 and 31 bits fit into 63
    high = one >> 16
    found: Integers = (low @ other % PRIME + (high @ other % PRIME << 16)) % PRIME
    return found


def _bounded(rows: list[list[int]]) -> Integers:
    if max(abs(value) for row in rows for value in row) > LARGEST_ENTRY:
        raise ArithmeticError("a basis of large numbers")
    return np.array(rows, np.int64)
