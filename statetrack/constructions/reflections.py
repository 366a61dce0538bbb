"""Orthogonal matrices as products of reflections (Cartan and Dieudonne).

n factors, d dimensions.
"""

from __future__ import annotations

import numpy as np

from statetrack.constructions.case import NotBuilt
from statetrack.sources import Floats


def reflections_of(matrix: Floats, num_factors: int) -> Floats:
    """Unit vectors k of reflections I - 2 k k^T whose product, first one first, is the matrix.

    Zero vectors stand for reflections that are not needed: `[num_factors, d]`. Raises `NotBuilt`
    where more are needed.
    """
    left, vectors = matrix.copy(), []
    while np.abs(left - np.eye(len(left))).max() > 1e-9:
        deviation = np.linalg.svd(left - np.eye(len(left)))[2][0]  # moved most
        vector = left @ deviation - deviation
        vector /= np.linalg.norm(vector)
        left = left - 2 * np.outer(vector, vector @ left)
        vectors.append(vector)
    if len(vectors) > num_factors:
        raise NotBuilt(f"a symbol needs {len(vectors)} reflections, {num_factors} are predicted")
    spare = [np.zeros(len(matrix))] * (num_factors - len(vectors))
    return np.array([*vectors[::-1], *spare])
