"""Loops over matrix states, the last of these where it is wanted, and what is kept of them.

W words, T time, N heads, K key size, V value size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from torch import Tensor

from statetrack.ops.native.calls import Loop, Tensors, contiguous, loops, or_zeros, rows_of_each

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


def matrix_loop(
    family: str,
    name: str,
    sizes_of: Callable[[Sequence[Tensor | None]], tuple[int, ...]],
    corrections_of: Callable[[Sequence[Tensor | None]], int],
    *,
    flags: tuple[bool, ...] = (),
    adds: bool = True,
) -> Loop:
    """The loop `name` of a family, over states [W, N, K, V] and some sequences [W, T, ...].

    Sizes of sequences are W, T and N, then what the loop takes, of which the last but one is V;
    flags follow them. Corrections are rows [V] of each head that the backward pass needs. With
    `adds` that pass adds to gradients, which begin as zeros.
    """

    def forward(keep: bool, state: Tensor, *sequences: Tensor | None) -> tuple[Tensor, ...]:
        sizes = sizes_of(sequences)
        assert state.shape[-1] == sizes[-2], f"{state.shape} for values of {sizes[-2]} numbers"
        outputs = state.new_empty(*sizes[:3], sizes[-2])
        last, room = last_state(state, sizes[0])
        kept = states_kept(last, sizes[1], corrections_of(sequences), keep)
        given, strides = rows_of_each(*sequences)
        arrays = contiguous(state, outputs, room, kept)
        run = getattr(loops(family), f"{name}_forward")
        run(*given, *arrays, (*sizes, len(state)), *flags, strides)
        return outputs, last, kept

    def backward(
        inputs: list[Tensor | None], kept: Tensor, by_outputs: Tensor | None, by_last: Tensor | None
    ) -> Tensors:
        state, *sequences = inputs
        assert state is not None
        sizes = sizes_of(sequences)
        given, strides = rows_of_each(*sequences)
        by_outputs = or_zeros(by_outputs, (*sizes[:3], sizes[-2]), state)
        found = [None if part is None else part.new_empty(part.shape) for part in sequences]
        if adds:
            for part in found:
                if part is not None:
                    part.zero_()
        by_first = state.new_empty(state.shape) if state.requires_grad else None
        tensors = (state, kept, by_outputs, by_last, *found, by_first)
        arrays = contiguous(*tensors)
        run = getattr(loops(family), f"{name}_backward")
        run(*given, *arrays, (*sizes, len(state)), *flags, strides)
        return by_first, *found

    return Loop(forward, backward, repeats=True)
