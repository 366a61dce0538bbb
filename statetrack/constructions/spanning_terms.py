"""Terms a b^T whose span contains all operators of an irreducible part, as `num_terms` counts them.

Letters: V matrices, d dimension, K terms.
"""

from __future__ import annotations

import numpy as np

from statetrack.algebra import COMMUTES, commuting_dimension, commuting_matrices
from statetrack.sources import Floats

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


def spanning_terms(matrices: Floats) -> tuple[Floats, Floats]:
    """Columns a `[d, K]` and b `[d, K]` of terms that span irreducible orthogonal matrices."""
    size = matrices.shape[1]
    kind = commuting_dimension(matrices)
    if kind == 1:
        rows, columns = np.divmod(np.arange(size * size), size)
        return np.eye(size)[:, rows], np.eye(size)[:, columns]
    units = _imaginary_units(commuting_matrices(matrices))
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
