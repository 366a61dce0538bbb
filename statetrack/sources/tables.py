"""Look-up tables by which an automaton reads and draws the symbols of many words at once.

Letters: S states, V symbols, B words, T time, K symbols per look-up.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from statetrack.sources.arrays import Bits, Booleans, Floats, Integers, Unsigned, smallest_type
from statetrack.sources.randomness import one_of

LARGEST_TABLE = 2**16
"""Most entries of a look-up table for more than one symbol: larger ones do not fit the cache."""

WORDS_AT_ONCE = 4096
SYMBOLS_AT_ONCE = 4096


class Runner:
    """What states emit after every symbol of words: `emitted[delta[state, symbol]]`, and so on.

    It reads K symbols with one look-up, in a table whose 64-bit entries hold the K emissions in the
    low half and the next state in the high half. Words lie time-major inside, so that one call
    serves all of them. `delta [S, V]` and `emitted [S]` (values below `num_values`) are given;
    calling it takes words `[..., T]` and the states `[...]` they start in. Emissions have the
    smallest unsigned type that holds them.
    """

    def __init__(self, delta: Integers, emitted: Integers, num_values: int) -> None:
        num_states, num_symbols = delta.shape
        self.num_symbols = num_symbols
        self.dtype = smallest_type(num_values)
        self.symbols_per_step = _symbols_per_step(num_states, num_symbols, self.dtype.itemsize)
        self._stride = num_symbols**self.symbols_per_step
        self._table = _packed_table(delta, emitted, self.symbols_per_step, self.dtype)

    def __call__(self, words: npt.NDArray[np.integer], state: npt.ArrayLike) -> Unsigned:
        """What is emitted after every symbol: `[..., T]`."""
        length = words.shape[-1]
        states = np.broadcast_to(np.asarray(state, np.int64), words.shape[:-1]).reshape(-1)
        rows = words.reshape(len(states), length)
        assert rows.size == 0 or 0 <= rows.min() <= rows.max() < self.num_symbols
        result = np.empty(rows.shape, self.dtype)
        for first in range(0, len(rows), WORDS_AT_ONCE):
            part = slice(first, first + WORDS_AT_ONCE)
            offsets = states[part] * self._stride
            for begin in range(0, length, SYMBOLS_AT_ONCE):
                time = slice(begin, begin + SYMBOLS_AT_ONCE)
                emissions, offsets = self._run(rows[part, time], offsets)
                result[part, time] = emissions
        return result.reshape(words.shape)

    def _run(self, rows: npt.NDArray[np.integer], offsets: Integers) -> tuple[Unsigned, Integers]:
        """Emissions `[B, T]`, and the rows' last offsets in the table (exact where K divides T)."""
        codes = _codes(rows, self.num_symbols, self.symbols_per_step)  # [T/K, B]
        packed = np.empty(codes.shape, "<i8")
        halves = packed.view("<i4").reshape(*codes.shape, 2)
        index = np.empty(len(rows), np.int64)
        for step in range(len(codes)):
            np.add(offsets, codes[step], out=index)
            self._table.take(index, out=packed[step], mode="clip")
            offsets = halves[step, :, 1]
        width = self.symbols_per_step * self.dtype.itemsize
        emissions = packed.view(f"<u{width}")[:, :: 8 // width].T.copy().view(self.dtype)
        return emissions[:, : rows.shape[1]], offsets.astype(np.int64)


def _symbols_per_step(num_states: int, num_symbols: int, bytes_per_value: int) -> int:
    """The largest K of 4, 2 and 1 whose emissions fit 32 bits and whose table fits the cache."""
    for count in (4, 2):
        fits = count * bytes_per_value <= 4 and num_symbols <= 256
        if fits and num_states * num_symbols**count <= LARGEST_TABLE:
            return count
    return 1


def _packed_table(delta: Integers, emitted: Integers, count: int, dtype: np.dtype) -> Integers:
    """Entry `s * V^K + code`: the K emissions, then the state they end in, times V^K."""
    num_states, num_symbols = delta.shape
    stride = num_symbols**count
    assert num_states * stride < 2**31
    packed = np.zeros((num_states, stride), "<i8")
    state = np.broadcast_to(np.arange(num_states)[:, None], packed.shape)
    code = np.arange(stride)
    for place in range(count):
        state = delta[state, code // num_symbols ** (count - 1 - place) % num_symbols]
        packed |= emitted[state] << (8 * dtype.itemsize * place)
    table: Integers = (packed | state * stride << 32).ravel()
    return table


def _codes(rows: npt.NDArray[np.integer], num_symbols: int, count: int) -> npt.NDArray[np.integer]:
    """K symbols as one number in base V, time first: `[ceil(T/K), B]` from `[B, T]`.

    Symbols are bytes here, so K of them are one machine word and the digits are joined by
    arithmetic on whole words: neighbours first, then pairs. Words are filled up with symbol 0.
    """
    if count == 1:
        return np.ascontiguousarray(rows.T)
    num_rows, length = rows.shape
    filled = np.zeros((num_rows, -(-length // count) * count), np.uint8)
    filled[:, :length] = rows
    digits = filled.view(f"<u{count}").T.copy()
    if count == 2:
        return (digits & 0xFF) * np.uint16(num_symbols) + (digits >> 8)
    pairs = (digits & 0x00FF00FF) * np.uint32(num_symbols) + (digits >> 8 & 0x00FF00FF)
    return (pairs & 0xFFFF) * np.uint32(num_symbols**2) + (pairs >> 16)


class SymbolSampler:
    """Turns random bits into the symbols of words, by the weights `[S, V]` of their states.

    `drawable [S, V]` says which symbols are ever drawn, and `shift [S, V]` what is added to the
    weights at a position, times `shift_at(position)`; None where they stay as they are. A symbol of
    weight 0 is never drawn.
    """

    def __init__(
        self,
        delta: Integers,
        weights: Floats,
        drawable: Booleans,
        shift: Floats,
        shift_at: Callable[[int], float] | None,
    ) -> None:
        self._delta, self._shift_at = delta, shift_at
        self._num_symbols = delta.shape[1]
        self._dtype = smallest_type(self._num_symbols)
        self._weights, self._shift = weights.cumsum(axis=1), shift.cumsum(axis=1)
        # whether no later symbol can be drawn in a state: [S, V]
        self._last = drawable[:, ::-1].cumsum(axis=1)[:, ::-1] <= drawable
        self._ends = self._upper_ends(self._weights)

    def draw(self, bits: Bits, state: npt.ArrayLike, position: int = 0) -> Unsigned:
        """Symbols `[..., T]` from bits `[..., T]`, for words that continue in `state [...]`.

        `position` says how many symbols come before.
        """
        states = np.broadcast_to(state, bits.shape[:-1]).astype(np.int64)
        symbols = np.empty(bits.shape, self._dtype)
        ends = self._ends
        for time in range(bits.shape[-1]):
            if self._shift_at is not None:
                chance = self._shift_at(position + time)
                ends = self._upper_ends(self._weights + chance * self._shift)
            places = np.searchsorted(ends, (states << 32) + bits[..., time], side="right")
            drawn = places - states * self._num_symbols
            symbols[..., time] = drawn
            states = self._delta[states, drawn]
        return symbols

    def _upper_ends(self, cumulative: Floats) -> Integers:
        """Cumulative chances times 2**32, plus 2**32 for each earlier state: `[S * V]`, rising.

        In state s the integer b draws the first symbol whose entry exceeds 2**32 s + b. The
        interval of a symbol of weight 0 is empty, also of the last ones of a state, because the
        last symbol that can be drawn has exactly the entry 2**32 (s + 1).
        """
        ends = np.rint(cumulative * 2.0**32).astype(np.int64)
        ends[self._last] = 2**32
        return (ends + (np.arange(len(ends))[:, None] << 32)).ravel()


def uniform_symbols(num_symbols: int, bits: Bits) -> Unsigned:
    """Symbols that are all equally likely, one from each integer."""
    return one_of(num_symbols, bits).astype(smallest_type(num_symbols))
