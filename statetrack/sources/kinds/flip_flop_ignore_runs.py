"""Flip-flop under stress: one bit, written once, read after everything else was ignored."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from statetrack.sources.arrays import Bits, Booleans, Unsigned, smallest_type
from statetrack.sources.kinds import KINDS
from statetrack.sources.kinds.flip_flop import flip_flop
from statetrack.sources.sampler import Sampler


@KINDS.register("flip-flop-ignore-runs")
def flip_flop_ignore_runs() -> Sampler:
    """The bit that was written once, at the start, and is read at the end.

    Words are `w x`, then `i y` again and again, then `r` as the last symbol; a word of even
    length has the bit x after it once more. The written bit x and the ignored bits y are drawn
    evenly and independently. So a word of T symbols has one label, and the run between writing
    and reading has (T - 3) / 2 ignored bits, rounded down: all chance lies in the bits, none in
    how long the run is. Words of fewer than 3 symbols are not read.

    The symbols, the labels and the reading of any word are those of the kind `flip-flop` (Liu et
    al. 2023, arXiv 2306.00946), whose words have runs of geometric length: with an ignore rate p
    one is longer than n with chance p^n. The automaton is the same, but no weights of its states
    make runs that end where the word does, so the words come from a sampler.
    """
    return _IgnoreRuns()


class _IgnoreRuns(Sampler):
    """Words of one shape, read by the automaton of the flip-flop."""

    def __init__(self) -> None:
        self._reader = flip_flop()
        self.symbols = self._reader.symbols
        self.labels = self._reader.labels

    def num_bits(self, longest: int) -> int:
        """One for each symbol."""
        return longest

    def draw(self, bits: Bits, lengths: npt.NDArray[np.int64], longest: int) -> Unsigned:
        """Words `w x i y ... i y r`."""
        write, read, ignore, zero = (self.symbols.index(name) for name in "wri0")
        place = np.arange(longest)
        words = np.where(place % 2 == 0, ignore, zero + (bits >> 31))
        words[:, 0] = write
        written = words[:, :2][:, -1:].copy()
        last_read = ((lengths - 1) // 2 * 2)[:, None]
        words = np.where((place == last_read) & (last_read > 0), read, words)
        words = np.where((place == last_read + 1) & (last_read > 0), written, words)
        return words.astype(smallest_type(self.num_symbols))

    def read(self, words: npt.ArrayLike) -> tuple[Unsigned, Booleans]:
        """What the automaton of the flip-flop says."""
        return self._reader.read(words)
