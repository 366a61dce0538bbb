"""Random bits and choices that are the same on every machine and in every version of NumPy.

Only the raw output of a bit generator is used, because numpy guarantees that output,
while the methods of `numpy.random.Generator` may change between its versions.

Letters: N words, K choices.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from statetrack.sources.arrays import Bits, Booleans, Integers

# A purpose's position in this list is part of its spawn key: only append.
StreamPurpose = Literal["train", "validation", "test", "distinct", "shuffle", "repeat", "reveal"]
_PERIOD = 2**128


class RandomBits:
    """An endless sequence of uniform 32-bit integers, one per seed, purpose and variant.

    PCG64 (O'Neill, 2014) can be advanced by any number of steps, so `read` at any position costs
    the same. Sequences of one seed differ in the spawn key of its `SeedSequence`.
    """

    def __init__(self, seed: int, purpose: StreamPurpose, variant: int = 0) -> None:
        assert seed >= 0 and variant >= 0, (seed, variant)
        key = (get_args(StreamPurpose).index(purpose), variant)
        self._generator = np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key))
        self._place = 0  # of the generator, in 64-bit steps

    def read(self, first: int, count: int) -> Bits:
        """The integers `first .. first + count - 1` of the sequence."""
        step, skipped = divmod(first, 2)
        num_steps = (skipped + count + 1) // 2
        if step != self._place:
            self._generator.advance((step - self._place) % _PERIOD)
        self._place = step + num_steps
        pairs: npt.NDArray[np.uint64] = self._generator.random_raw(num_steps).astype(
            "<u8", copy=False
        )
        return pairs.view("<u4")[skipped : skipped + count]


def one_of(counts: npt.NDArray[np.integer] | int, bits: Bits) -> Integers:
    """A number from 0 to count - 1 for each integer, all equally likely; 0 where a count is 0.

    The multiply-and-shift method: no value is likelier than another by more than one part in
    `2**32 / count`.
    """
    scaled = np.multiply(bits, np.asarray(counts, np.uint64), dtype=np.uint64)
    scaled >>= np.uint64(32)
    return scaled.view(np.int64)


def one_true(choices: Booleans, bits: Bits) -> Integers:
    """The place of one True in each row `[N, K]`, all equally likely; 0 in a row without any."""
    seen = choices.cumsum(axis=1)
    wanted = one_of(seen[:, -1], bits)
    places: Integers = (seen > wanted[:, None]).argmax(axis=1)
    return places


class Draws:
    """A stream of choices for the tables of a random machine, which `seed` fixes."""

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
