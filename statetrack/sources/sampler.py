"""Samplers: where the words of a task come from when its language is not regular.

A sampler draws whole words, and labels any word that it is given, but it has no finite set of
states, so nothing that needs an automaton can be computed from it. Words may be conditioned on
their length, so a prefix of a drawn word need not be distributed like a drawn word.

Letters: N words, K choices.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from statetrack.sources.arrays import Bits, Booleans, Integers
from statetrack.sources.source import Source


class Sampler(Source):
    """A source given by two procedures: one that draws words, and one that labels them."""

    noun: ClassVar[str] = "a sampler"


def one_of(counts: npt.NDArray[np.integer] | int, bits: Bits) -> Integers:
    """A number from 0 to count - 1 for each integer, all equally likely; 0 where a count is 0."""
    scaled = bits.astype(np.uint64) * np.asarray(counts, np.uint64)
    return (scaled >> np.uint64(32)).astype(np.int64)


def one_true(choices: Booleans, bits: Bits) -> Integers:
    """The place of one True in each row `[N, K]`, all equally likely; 0 in a row without any."""
    seen = choices.cumsum(axis=1)
    wanted = one_of(seen[:, -1], bits)
    places: Integers = (seen > wanted[:, None]).argmax(axis=1)
    return places
