"""Few terms a b^T whose span contains all operators of an irreducible part.

By Schur's lemma the matrices that commute with a real irreducible part of dimension d form the real
numbers, the complex numbers or the quaternions, of dimension 1, 2 or 4. The operators are then the
matrices over these of d, d/2 or d/4 rows, and a number in such a matrix is a block:

- a real one is a term: d^2 terms;
- a complex one is [[x, -y], [y, x]] = (x - y) e_1 e_1^T + (x + y) e_2 e_2^T
  + y (e_1 + e_2)(e_1 - e_2)^T (Gauss): 3 (d/2)^2 = 3/4 d^2 terms;
- a quaternion w + x i + y j + z k, in the basis (v, iv, jv, kv) of what commutes with it, is a
  matrix that, with the last three columns negated, is the table q[r xor c] of (-w, x, y, z), a sum
  of four terms of Hadamard's matrix, but for 2w, -2z, -2x and -2y at (0, 0), (1, 2), (2, 3) and
  (3, 1): 8 (d/4)^2 = 1/2 d^2 terms.

Letters: V matrices, d dimension, K terms.
"""

from __future__ import annotations

import numpy as np

from statetrack.sources import Floats

MOST_DIMENSIONS = 16
"""The largest part for which what commutes with it is worked out: by d^4 numbers."""

COMMUTES = 1e-8
"""Singular values below this, of the equations of commuting, are rounding."""

COMPLEX_TERMS = (
    np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]),
    np.array([[1.0, 0.0, 1.0], [0.0, 1.0, -1.0]]),
)
HADAMARD = np.array([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]], float)
UNIT = np.eye(4)
QUATERNION_TERMS = (
    np.column_stack([HADAMARD, UNIT[:, [0, 1, 2, 3]]]),
    np.diag([1.0, -1.0, -1.0, -1.0]) @ np.column_stack([HADAMARD, UNIT[:, [0, 2, 3, 1]]]),
)


def commuting_dimension(matrices: Floats) -> int:
    """The dimension, 1, 2 or 4, of what commutes with irreducible matrices `[V, d, d]`.

    1 where the part is too large to work it out.
    """
    size = matrices.shape[1]
    if size % 2 or size > MOST_DIMENSIONS:
        return 1
    return len(_commuting(matrices))


def num_terms(dimension: int, commuting: int) -> int:
    """The number of terms for a part, of what commutes with which the dimension is known."""
    return {1: dimension**2, 2: 3 * dimension**2 // 4, 4: dimension**2 // 2}[commuting]


def spanning_terms(matrices: Floats) -> tuple[Floats, Floats]:
    """Columns a `[d, K]` and b `[d, K]` of terms that span irreducible orthogonal matrices."""
    size = matrices.shape[1]
    kind = commuting_dimension(matrices)
    if kind == 1:
        rows, columns = np.divmod(np.arange(size * size), size)
        return np.eye(size)[:, rows], np.eye(size)[:, columns]
    units = _imaginary_units(_commuting(matrices))
    basis = _basis(units, size)
    left, right = COMPLEX_TERMS if kind == 2 else QUATERNION_TERMS
    blocks = [basis[:, begin : begin + kind] for begin in range(0, size, kind)]
    sides = [(row @ left, column @ right) for row in blocks for column in blocks]
    return np.hstack([first for first, _ in sides]), np.hstack([second for _, second in sides])


def gains_of(matrices: Floats, left: Floats, right: Floats) -> Floats:
    """The gains `[V, K]` with which terms sum up to matrices `[V, d, d]`.

    Raises `ArithmeticError` where some matrix is no such sum.
    """
    terms = np.einsum("ik,jk->ijk", left, right).reshape(-1, left.shape[1])
    flat = matrices.reshape(len(matrices), -1)
    gains: Floats = np.linalg.lstsq(terms, flat.T, rcond=None)[0].T.astype(np.float64)
    if np.abs(gains @ terms.T - flat).max() > COMMUTES:
        raise ArithmeticError("the terms do not span the operators")
    return gains


def _commuting(matrices: Floats) -> Floats:
    """An orthonormal basis of the matrices that commute with some, `[dimension, d, d]`."""
    size = matrices.shape[1]
    unit = np.eye(size)
    draw = np.random.default_rng(0)
    if len(matrices) > 4:
        matrices = np.tensordot(draw.normal(size=(4, len(matrices))), matrices, 1)
    equations = np.vstack([np.kron(unit, each.T) - np.kron(each, unit) for each in matrices])
    _, sizes, rows = np.linalg.svd(equations, full_matrices=False)
    found: Floats = rows[sizes < COMMUTES * max(float(sizes.max()), 1.0)]
    return found.reshape(-1, size, size)


def _imaginary_units(commuting: Floats) -> list[Floats]:
    """i, or i, j and k = i j: matrices whose square is -1, among those that commute."""
    size = commuting.shape[1]
    skew = commuting - commuting.transpose(0, 2, 1)
    _, sizes, rows = np.linalg.svd(skew.reshape(len(skew), -1), full_matrices=False)
    independent = rows[sizes > COMMUTES].reshape(-1, size, size) * np.sqrt(size)
    if len(independent) == 1:
        return [independent[0]]
    return [independent[0], independent[1], independent[0] @ independent[1]]


def _basis(units: list[Floats], size: int) -> Floats:
    """An orthonormal basis of vectors, each followed by what the units make of it."""
    basis = np.zeros((size, 0))
    while basis.shape[1] < size:
        outside = np.eye(size) - basis @ basis.T
        vector = outside[:, np.linalg.norm(outside, axis=0).argmax()]
        vector = vector / np.linalg.norm(vector)
        basis = np.column_stack([basis, vector, *(unit @ vector for unit in units)])
    return basis
