"""Running an automaton over many words at once: what it emits after every symbol.

`run_by_steps` is the definition. `Runner` gives the same and is fast: it reads K symbols with
one look-up, in a table whose 64-bit entries hold the K emissions in the low half and the next
state in the high half. Words lie time-major inside, so that one call serves all of them.

Letters: S states, V symbols, B words, T time, K symbols per look-up.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from statetrack.sources.arrays import Unsigned, smallest_type

LARGEST_TABLE = 2**16
"""Most entries of a look-up table for more than one symbol: larger ones do not fit the cache."""

WORDS_AT_ONCE = 4096
SYMBOLS_AT_ONCE = 4096


def run_by_steps(
    delta: npt.NDArray[np.int64],
    emitted: npt.NDArray[np.int64],
    words: npt.NDArray[np.integer],
    state: npt.ArrayLike,
) -> npt.NDArray[np.int64]:
    """The definition: one symbol after the other. `[..., T]` from words `[..., T]`."""
    states = np.broadcast_to(state, words.shape[:-1])
    result = np.empty(words.shape, np.int64)
    for time in range(words.shape[-1]):
        states = delta[states, words[..., time]]
        result[..., time] = emitted[states]
    return result


class Runner:
    """What `run_by_steps` does, for one automaton, many symbols at a time.

    `delta [S, V]` and `emitted [S]` (values below `num_values`) are its tables; calling it takes
    words `[..., T]` and the states `[...]` they start in. Emissions have the smallest unsigned
    type that holds them.
    """

    def __init__(
        self, delta: npt.NDArray[np.int64], emitted: npt.NDArray[np.int64], num_values: int
    ) -> None:
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

    def _run(
        self, rows: npt.NDArray[np.integer], offsets: npt.NDArray[np.int64]
    ) -> tuple[Unsigned, npt.NDArray[np.int64]]:
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


def _packed_table(
    delta: npt.NDArray[np.int64], emitted: npt.NDArray[np.int64], count: int, dtype: np.dtype
) -> npt.NDArray[np.int64]:
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
    table: npt.NDArray[np.int64] = (packed | state * stride << 32).ravel()
    return table


def _codes(
    rows: npt.NDArray[np.integer], num_symbols: int, count: int
) -> npt.NDArray[np.unsignedinteger] | npt.NDArray[np.integer]:
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
