"""The last of matrix states, where it is wanted, and what is kept for a backward pass."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from torch import Tensor

from statetrack.ops.native.calls import loops

_WHOLE_WORDS: ContextVar[bool] = ContextVar("_WHOLE_WORDS", default=False)


@contextmanager
def whole_words() -> Iterator[None]:
    """Inside it words are read from the initial state, and nobody reads a last one: it is NaN."""
    token = _WHOLE_WORDS.set(True)
    try:
        yield
    finally:
        _WHOLE_WORDS.reset(token)


def reads_whole_words() -> bool:
    """Whether states before words are initial ones, and those after them are not read."""
    return _WHOLE_WORDS.get()


def last_state(first: Tensor, words: int) -> tuple[Tensor, Tensor | None]:
    """The last state [W, N, K, V], and the same as room for it; NaN and None where it is not read.

    Large states take longer to write than short words to read.
    """
    if reads_whole_words():
        return first.new_full((), math.nan).expand(words, *first.shape[1:]), None
    last = first.new_empty(words, *first.shape[1:])
    return last, last


def states_kept(state: Tensor, steps: int, corrections: int, keep: bool) -> Tensor:
    """Room for states before chunks, but the first, and corrections; none unless to be kept."""
    lanes, chunk = loops("vectors").LANES, loops("matrix_states").CHUNK
    words, heads, key_size, value_size = state.shape
    rows = (steps - 1) // chunk * key_size + corrections
    size = heads * rows * -(-value_size // lanes) * lanes
    return state.new_empty(words, size if keep else 0)
