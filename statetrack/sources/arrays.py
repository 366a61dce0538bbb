"""The types of arrays, and the smallest one that holds given values."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Booleans = npt.NDArray[np.bool_]
Unsigned = npt.NDArray[np.unsignedinteger]
Bits = npt.NDArray[np.uint32]


def smallest_type(count: int) -> np.dtype[np.unsignedinteger]:
    """The smallest unsigned type that holds `0 .. count - 1`, the same on every machine."""
    return np.dtype(np.min_scalar_type(count - 1)).newbyteorder("<")
