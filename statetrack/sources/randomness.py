"""Random bits that are the same on every machine and can be read from any position.

Only the raw output of a bit generator is used, because numpy guarantees that output,
while the methods of `numpy.random.Generator` may change between its versions.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

Purpose = Literal["train", "validation", "test", "distinct", "shuffle", "repeat", "reveal"]

# A purpose's position in this tuple is part of its spawn key: only append.
_PURPOSES: tuple[Purpose, ...] = (
    "train",
    "validation",
    "test",
    "distinct",
    "shuffle",
    "repeat",
    "reveal",
)
_PERIOD = 2**128


class RandomBits:
    """An endless sequence of uniform 32-bit integers, one per seed, purpose and variant.

    PCG64 (O'Neill, 2014) can be advanced by any number of steps, so `read` at any position costs
    the same. Sequences of one seed differ in the spawn key of its `SeedSequence`.
    """

    def __init__(self, seed: int, purpose: Purpose, variant: int = 0) -> None:
        assert seed >= 0 and variant >= 0, (seed, variant)
        key = (_PURPOSES.index(purpose), variant)
        self._generator = np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key))
        self._place = 0  # of the generator, in 64-bit steps

    def read(self, first: int, count: int) -> NDArray[np.uint32]:
        """The integers `first .. first + count - 1` of the sequence."""
        step, skipped = divmod(first, 2)
        num_steps = (skipped + count + 1) // 2
        if step != self._place:
            self._generator.advance((step - self._place) % _PERIOD)
        self._place = step + num_steps
        pairs: NDArray[np.uint64] = self._generator.random_raw(num_steps).astype("<u8", copy=False)
        return pairs.view("<u4")[skipped : skipped + count]


def below(bound: int, bits: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """Uniform integers `0 .. bound - 1`, one from each 32-bit integer.

    The multiply-and-shift method: no value is likelier than another by more than one part in
    `2**32 / bound`.
    """
    scaled = np.multiply(bits, np.uint64(bound), dtype=np.uint64)
    scaled >>= np.uint64(32)
    return scaled
