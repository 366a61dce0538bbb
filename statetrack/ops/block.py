"""The block-diagonal recurrence: N small matrices per symbol."""

from __future__ import annotations

from torch import Tensor

from statetrack.ops._lanes import check_normalise, widened
from statetrack.ops.dense import LaneRecurrence


def block_recurrence(
    operators: Tensor,
    symbols: Tensor,
    first: Tensor,
    inputs: Tensor | None = None,
    *,
    normalise_every: int = 0,
) -> Tensor:
    """h_t = A(x_t) h_{t-1} (+ u_t) for each of N blocks.

    operators [V, N, b, b], symbols [B, T], first [B, N, b], inputs [T, B, N, b] give the
    states [T, B, N, b].
    """
    num_blocks, size = first.shape[1:]
    assert operators.shape[1:] == (num_blocks, size, size), "operators are [V, N, b, b]"
    assert symbols.shape[0] == first.shape[0], "symbols are [B, T], first is [B, N, b]"
    check_normalise(normalise_every, inputs)
    states = LaneRecurrence.apply(
        widened(operators).transpose(0, 1),
        symbols.expand(num_blocks, *symbols.shape),
        widened(first).transpose(0, 1),
        None if inputs is None else widened(inputs).transpose(1, 2),
        normalise_every,
        num_blocks,
    )[0]
    return states.transpose(1, 2).contiguous()
