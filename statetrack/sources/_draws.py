"""Random choices that are the same on every machine and in every version of NumPy.

Only the raw 64-bit output of a bit generator is promised to stay as it is, so the choices are
made from that.
"""

from __future__ import annotations

import numpy as np


class Draws:
    """A stream of choices that `seed` fixes."""

    def __init__(self, seed: int) -> None:
        self._bits = np.random.PCG64(np.random.SeedSequence(seed))

    def below(self, bound: int) -> int:
        """A whole number from 0 to `bound - 1`, all equally likely."""
        limit = 2**64 - 2**64 % bound
        while (bits := int(self._bits.random_raw())) >= limit:
            pass
        return bits % bound

    def permutation(self, size: int) -> tuple[int, ...]:
        """A permutation of 0 to `size - 1`, all equally likely (Fisher and Yates)."""
        order = list(range(size))
        for last in range(size - 1, 0, -1):
            other = self.below(last + 1)
            order[last], order[other] = order[other], order[last]
        return tuple(order)
