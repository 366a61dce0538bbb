"""Every state is multiplied by the operators of all symbols; the product for the symbol is kept.

It takes V times the arithmetic, and is the faster way on a GPU: one product and one selection per
step, with shapes that do not depend on the symbols, so that the host never synchronises and the
whole loop can be captured in a CUDA graph.

T time, G lanes, B batch, V symbols, H hidden.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from statetrack.ops.lanes import is_due, normalise_


def states(
    operators: Tensor,
    symbols: Tensor,
    first: Tensor,
    inputs: Tensor | None,
    normalise_every: int,
    num_blocks: int,
) -> Tensor:
    """All states, the first one included: [T + 1, G, B, H]."""
    num_lanes, num_symbols, hidden, _ = operators.shape
    batch, num_steps = symbols.shape[1:]
    columns = operators.flatten(1, 2).mT  # [G, H, V * H]
    result = first.new_empty(num_steps + 1, num_lanes, batch, hidden)
    result[0] = first
    steps = result.unbind(0)
    rows = result.flatten(1, 2).unbind(0)
    product = first.new_empty(num_lanes, batch, num_symbols * hidden)
    candidates = product.view(-1, hidden)  # [G * B * V, H]
    chosen = _chosen_rows(symbols, num_symbols)
    for t in range(num_steps):
        torch.bmm(steps[t], columns, out=product)
        torch.index_select(candidates, 0, chosen[t], out=rows[t + 1])
        if inputs is not None:
            steps[t + 1].add_(inputs[t])
        if is_due(t, normalise_every):
            normalise_(steps[t + 1].unflatten(0, (-1, num_blocks)), (1, 3))
    return result


def adjoints(operators: Tensor, symbols: Tensor, gradient: Tensor) -> Tensor:
    """The gradient of the loss by every state, the first one's included: [T + 1, G, B, H].

    g_t = dL/dh_t (direct) + A(x_{t+1})^T g_{t+1}. The adjoint has an axis of symbols, with
    zeros for those that were not read, so that one product covers all words.
    """
    num_lanes, num_symbols, hidden, _ = operators.shape
    batch, num_steps = symbols.shape[1:]
    stacked = operators.flatten(1, 2)  # [G, V * H, H]
    result = gradient.new_empty(num_steps + 1, num_lanes, batch, hidden)
    result[-1] = gradient[-1]
    steps = result.unbind(0)
    direct = gradient.unbind(0)
    read = _read(symbols, num_symbols, gradient.dtype)
    spread = gradient.new_empty(num_lanes, batch, num_symbols, hidden)
    flat = spread.flatten(2)
    for t in range(num_steps, 0, -1):
        torch.mul(read[t - 1], steps[t].unsqueeze(2), out=spread)
        if t > 1:
            torch.baddbmm(direct[t - 2], flat, stacked, out=steps[t - 1])
        else:
            torch.bmm(flat, stacked, out=steps[0])
    return result


def operator_gradient(
    adjoints: Tensor, previous: Tensor, symbols: Tensor, num_symbols: int
) -> Tensor:
    """dL/dA_v = sum of g_t h_{t-1}^T over all (t, b) with x_t = v, from [T, G, B, H] each.

    Gives [G, V, H, H]. The adjoints have an axis of symbols as in `adjoints`, for a limited
    number of steps at once, so that memory is bounded.
    """
    num_steps, num_lanes, batch, hidden = adjoints.shape
    length = max(1, _SLAB_NUMBERS // (num_lanes * batch * num_symbols * hidden))
    total = adjoints.new_zeros(num_lanes, num_symbols * hidden, hidden)
    for start in range(0, num_steps, length):
        slab = slice(start, start + length)
        read = _read(symbols[:, :, slab], num_symbols, adjoints.dtype)
        spread = (read * adjoints[slab].unsqueeze(3)).flatten(3)  # [T, G, B, V * H]
        by_lane = spread.transpose(0, 1).flatten(1, 2)
        total.baddbmm_(by_lane.mT, previous[slab].transpose(0, 1).flatten(1, 2))
    return total.view(num_lanes, num_symbols, hidden, hidden)


def _read(symbols: Tensor, num_symbols: int, dtype: torch.dtype) -> Tensor:
    """One where a symbol [G, B, T] was read, zero elsewhere: [T, G, B, V, 1]."""
    return one_hot(symbols.permute(2, 0, 1), num_symbols).to(dtype).unsqueeze(-1)


def _chosen_rows(symbols: Tensor, num_symbols: int) -> tuple[Tensor, ...]:
    """For each step, the rows of the symbols that were read, in [G * B * V]: T times [G * B]."""
    num_lanes, batch, _ = symbols.shape
    words = torch.arange(num_lanes * batch, device=symbols.device) * num_symbols
    return (words + symbols.permute(2, 0, 1).flatten(1)).unbind(0)


_SLAB_NUMBERS = 2**27  # half a gigabyte in float32
