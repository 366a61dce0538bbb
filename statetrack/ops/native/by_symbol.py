"""Recurrences whose operator is the symbol's, with a linear readout, by a loop.

All tensors may have an axis of R replicas first. A first state of one word is that of all. Results
are the logits of all positions, and the last state; with `normalise_every` a state is divided by a
power of two after so many steps, without gradients.

B batch, T time, V symbols, C labels, H hidden, K rank, N blocks, b block size.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional

from statetrack.ops.lanes import check_normalise
from statetrack.ops.native.calls import Loop, Tensors, call, contiguous, known, loops, or_zeros


def read_by_matrices(
    matrices: Tensor, symbols: Tensor, first: Tensor, readout: Tensor, *, normalise_every: int = 0
) -> tuple[Tensor, Tensor]:
    """h_t = A(x_t) h_{t-1}, z_t = C h_t.

    matrices [V, H, H], symbols [B, T], first [B, H] and readout [C, H] give logits [B, T, C] and
    the last state [B, H].
    """
    assert matrices.shape[-2:] == (first.shape[-1],) * 2, "matrices are [V, H, H], first [B, H]"
    _check(symbols, first, readout)
    loop = _loop(_matrices_forward, _matrices_backward, normalise_every)
    logits, last = call(first, loop, matrices, symbols, readout, has_lanes=first.dim() == 3)
    return logits, last


def read_by_factors(
    core: Tensor,
    gains: Tensor,
    symbols: Tensor,
    first: Tensor,
    readout: Tensor,
    *,
    normalise_every: int = 0,
) -> tuple[Tensor, Tensor]:
    """z_t = s(x_t) * p_{t-1}, p_t = M z_t, logits = C z_t.

    core M [K, K], gains s [V, K], symbols [B, T], first p_0 [B, K] and readout [C, K] give logits
    [B, T, C] and the last z [B, K].
    """
    assert core.shape[-2:] == (first.shape[-1],) * 2, "core is [K, K], first [B, K]"
    assert gains.shape[-1] == first.shape[-1], "gains are [V, K], first [B, K]"
    _check(symbols, first, readout)
    loop = _loop(_factors_forward, _factors_backward, normalise_every)
    others = core, gains, symbols, readout
    logits, last = call(first, loop, *others, has_lanes=first.dim() == 3)
    return logits, last


def read_by_blocks(
    blocks: Tensor, symbols: Tensor, first: Tensor, readout: Tensor, *, normalise_every: int = 0
) -> tuple[Tensor, Tensor]:
    """The same as by matrices, which are of N blocks, H = N b.

    blocks [V, N, b, b], symbols [B, T], first [B, H] and readout [C, H] give logits [B, T, C] and
    the last state [B, H].
    """
    num_blocks, size, _ = blocks.shape[-3:]
    return _by_blocks(blocks, symbols, first, readout, (num_blocks, size, False), normalise_every)


def read_by_gains(
    gains: Tensor, symbols: Tensor, first: Tensor, readout: Tensor, *, normalise_every: int = 0
) -> tuple[Tensor, Tensor]:
    """The same by blocks of one number: gains [V, H]."""
    return _by_blocks(gains, symbols, first, readout, (gains.shape[-1], 1, False), normalise_every)


def read_by_angles(
    angles: Tensor, symbols: Tensor, first: Tensor, readout: Tensor
) -> tuple[Tensor, Tensor]:
    """The same by blocks that turn planes by angles [V, H / 2]."""
    return _by_blocks(angles, symbols, first, readout, (angles.shape[-1], 2, True), 0)


def _by_blocks(
    blocks: Tensor,
    symbols: Tensor,
    first: Tensor,
    readout: Tensor,
    kind: tuple[int, int, bool],
    normalise_every: int,
) -> tuple[Tensor, Tensor]:
    num_blocks, size, _ = kind
    assert first.shape[-1] == num_blocks * size, "blocks are [V, N, b, b], first [B, N b]"
    _check(symbols, first, readout)
    forward, backward = partial(_blocks_forward, kind), partial(_blocks_backward, kind)
    loop = _loop(forward, backward, normalise_every)
    logits, last = call(first, loop, blocks, symbols, readout, has_lanes=first.dim() == 3)
    return logits, last


def _check(symbols: Tensor, first: Tensor, readout: Tensor) -> None:
    """Symbols and a readout fit the first state: loops would not notice."""
    own, words = first.shape[:-1], symbols.shape[:-1]
    assert own in (words, (*words[:-1], 1)), "symbols are [B, T], of B first states or one"
    assert readout.shape[-1] == first.shape[-1], "a readout is [C, H] of first [B, H]"


def _loop(
    forward: Callable[..., tuple[Tensor, ...]],
    backward: Callable[..., Tensors],
    normalise_every: int,
) -> Loop:
    check_normalise(normalise_every, None)
    return Loop(partial(forward, normalise_every), backward)


def _padded(tensor: Tensor, axes: int) -> Tensor:
    """The tensor with zeros after its last `axes` axes, to whole vectors; contiguous."""
    lanes = loops("vectors").LANES
    missing = [-size % lanes for size in tensor.shape[: -axes - 1 : -1]]
    if not any(missing):
        return tensor.contiguous()
    return functional.pad(tensor, [part for size in missing for part in (0, size)]).contiguous()


def _zeros(like: Tensor) -> Tensor:
    """Zeros to which a loop adds: contiguous, whatever the strides of the tensor they are for."""
    return like.new_zeros(like.shape)


def _cut(tensor: Tensor, like: Tensor) -> Tensor:
    """The part of a padded tensor that has the shape of another one."""
    return tensor[tuple(map(slice, like.shape))]


# --- matrices ---


def _sizes(
    symbols: Tensor, table: Tensor, readout: Tensor, row: int, first: Tensor
) -> tuple[int, ...]:
    """G, B, T, V, C, N and F."""
    return (*symbols.shape, table.shape[1], readout.shape[1], row, first.shape[1])


def _by_first(found: Tensor, first: Tensor) -> Tensor:
    """The gradient by a first state of that of each word's, padded."""
    summed = found.sum(1, keepdim=True) if first.shape[1] == 1 else found
    return _cut(summed, first)


def _numbers(symbols: Tensor) -> Tensor:
    """The symbols as numbers."""
    return symbols.to(torch.int64).contiguous()


def _matrices_forward(
    every: int, keep: bool, first: Tensor, matrices: Tensor, symbols: Tensor, readout: Tensor
) -> tuple[Tensor, ...]:
    columns, starts, weights = _padded(matrices.mT, 2), _padded(first, 1), _padded(readout, 1)
    sizes = _sizes(symbols, matrices, readout, columns.shape[-1], first)
    lanes, words, steps, _, labels, size, _ = sizes
    states = first.new_empty(lanes, steps + 1 if keep else 2, words, size)
    logits = first.new_empty(lanes, words, steps, labels)
    given = contiguous(columns, starts, weights, states, logits)
    numbers = known(_numbers(symbols), sizes[3])
    loops("by_symbol").matrices_forward(numbers, *given, sizes, every, keep)
    last = states[:, steps if keep else steps % 2, ..., : first.shape[-1]]
    return logits, last.contiguous(), states


def _matrices_backward(
    given: list[Tensor], states: Tensor, by_logits: Tensor | None, by_last: Tensor | None
) -> Tensors:
    first, matrices, symbols, readout = given
    rows, weights = _padded(matrices, 2), _padded(readout, 1)
    sizes = _sizes(symbols, matrices, readout, rows.shape[-1], first)
    by_rows, by_weights = _zeros(rows), _zeros(weights)
    by_first = first.new_empty(*symbols.shape[:2], sizes[5])
    arrays = contiguous(
        rows,
        weights,
        states,
        or_zeros(by_logits, (*symbols.shape, readout.shape[1]), first),
        None if by_last is None else _padded(by_last, 1),
        by_rows,
        by_first,
        by_weights,
    )
    numbers = _numbers(symbols)
    loops("by_symbol").matrices_backward(numbers, *arrays, sizes, by_last is not None)
    return _by_first(by_first, first), _cut(by_rows, matrices), None, _cut(by_weights, readout)


# --- factors ---


def _factors_forward(
    every: int,
    keep: bool,
    first: Tensor,
    core: Tensor,
    gains: Tensor,
    symbols: Tensor,
    readout: Tensor,
) -> tuple[Tensor, ...]:
    columns = _padded(core.mT, 2)
    rows = [_padded(part, 1) for part in (gains, first, readout)]
    sizes = _sizes(symbols, gains, readout, columns.shape[-1], first)
    lanes, words, steps, _, labels, size, _ = sizes
    kept = first.new_empty(lanes, 2, steps if keep else 2, words, size)
    logits = first.new_empty(lanes, words, steps, labels)
    given = contiguous(columns, *rows, kept, logits)
    numbers = known(_numbers(symbols), sizes[3])
    loops("by_symbol").factors_forward(numbers, *given, sizes, every, keep)
    last = kept[:, 1, steps - 1 if keep else (steps - 1) % 2, ..., : first.shape[-1]]
    return logits, last.contiguous(), kept


def _factors_backward(
    given: list[Tensor], kept: Tensor, by_logits: Tensor | None, by_last: Tensor | None
) -> Tensors:
    first, core, gains, symbols, readout = given
    matrix, factors, weights = _padded(core, 2), _padded(gains, 1), _padded(readout, 1)
    sizes = _sizes(symbols, gains, readout, matrix.shape[-1], first)
    found = [_zeros(part) for part in (matrix, factors)]
    by_first = first.new_empty(*symbols.shape[:2], sizes[5])
    by_weights = _zeros(weights)
    arrays = contiguous(
        matrix,
        factors,
        weights,
        kept,
        or_zeros(by_logits, (*symbols.shape, readout.shape[1]), first),
        None if by_last is None else _padded(by_last, 1),
        *found,
        by_first,
        by_weights,
    )
    numbers = _numbers(symbols)
    loops("by_symbol").factors_backward(numbers, *arrays, sizes, by_last is not None)
    by_core, by_gains = _cut(found[0], core), _cut(found[1], gains)
    return _by_first(by_first, first), by_core, by_gains, None, _cut(by_weights, readout)


# --- blocks ---


def _blocks_forward(
    kind: tuple[int, int, bool],
    every: int,
    keep: bool,
    first: Tensor,
    blocks: Tensor,
    symbols: Tensor,
    readout: Tensor,
) -> tuple[Tensor, ...]:
    num_blocks, size, turns = kind
    sizes = lanes, words, steps, num_symbols, labels, _, _ = _sizes(
        symbols, blocks, readout, num_blocks, first
    )
    row = size * (num_blocks + -num_blocks % loops("vectors").LANES)
    states = first.new_empty(lanes, words, steps + 1 if keep else 2, row)
    logits = first.new_empty(lanes, words, steps, labels)
    last = first.new_empty(lanes, words, first.shape[-1])
    numbers = known(_numbers(symbols), num_symbols)
    loops("blocks_by_symbol").blocks_forward(
        numbers, *contiguous(blocks, first, readout), states, logits, last, sizes, size, turns,
        every, keep,
    )  # fmt: skip
    return logits, last, states


def _blocks_backward(
    kind: tuple[int, int, bool],
    given: list[Tensor],
    states: Tensor,
    by_logits: Tensor | None,
    by_last: Tensor | None,
) -> Tensors:
    num_blocks, size, turns = kind
    first, blocks, symbols, readout = given
    sizes = _sizes(symbols, blocks, readout, num_blocks, first)
    by_logits = or_zeros(by_logits, (*symbols.shape, readout.shape[1]), first)
    found = by_blocks, by_first, by_readout = [
        part.new_empty(part.shape) for part in (blocks, first, readout)
    ]
    arrays = contiguous(blocks, readout, states, by_logits, by_last)
    loops("blocks_by_symbol").blocks_backward(
        _numbers(symbols), *arrays, *found, sizes, size, turns
    )
    return by_first, by_blocks, None, by_readout
