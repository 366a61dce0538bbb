"""Words that read the same symbol are adjacent rows, so that one product covers all of them.

States are in the order of the current step's groups, and one permutation brings them into the
order of the next step's; the order of the words is restored once, at the end.

T time, G lanes, B batch, V symbols, H hidden.
"""

from __future__ import annotations

import torch
from torch import Tensor

from statetrack.ops._grouping import Grouping, group
from statetrack.ops.lanes import is_due
from statetrack.ops.lookup import lane_symbols


def states(
    operators: Tensor,
    symbols: Tensor,
    first: Tensor,
    inputs: Tensor | None,
    normalise_every: int,
    num_blocks: int,
) -> Tensor:
    """All states, the first one included: [T + 1, G, B, H]."""
    grouping = _group_words(operators, symbols)
    matrices = operators.flatten(0, 1).mT
    terms = None if inputs is None else grouping.arrange(inputs.flatten(1, 2)).unbind(0)
    moves = grouping.place[:-1].gather(1, grouping.word[1:]).unbind(0)
    placed = first.new_empty(*grouping.word.shape, first.shape[-1])
    steps = placed.unbind(0)
    operand = first.flatten(0, 1).index_select(0, grouping.word[0])
    for t, step in enumerate(steps):
        if t > 0:
            torch.index_select(steps[t - 1], 0, moves[t - 1], out=operand)
        grouping.multiply(t, operand, matrices, step)
        if terms is not None:
            step.add_(terms[t])
        if is_due(t, normalise_every):
            step.div_(_norms(step, grouping, t, num_blocks, first.shape[1]))
    result = first.new_empty(len(steps) + 1, *first.shape)
    result[0] = first
    result[1:] = grouping.restore(placed).view_as(result[1:])
    return result


def adjoints(operators: Tensor, symbols: Tensor, gradient: Tensor) -> Tensor:
    """The gradient of the loss by every state, the first one's included: [T + 1, G, B, H].

    g_t = dL/dh_t (direct) + A(x_{t+1})^T g_{t+1}.
    """
    grouping = _group_words(operators, symbols)
    matrices = operators.flatten(0, 1)
    moves = grouping.place[1:].gather(1, grouping.word[:-1]).unbind(0)
    placed = grouping.arrange(gradient.flatten(1, 2))
    steps = placed.unbind(0)
    product, moved = torch.empty_like(steps[0]), torch.empty_like(steps[0])
    for t in range(len(steps) - 1, -1, -1):
        grouping.multiply(t, steps[t], matrices, product)
        if t > 0:
            steps[t - 1].add_(torch.index_select(product, 0, moves[t - 1], out=moved))
    result = gradient.new_empty(len(steps) + 1, *gradient.shape[1:])
    result[0] = product.index_select(0, grouping.place[0]).view_as(result[0])
    result[1:] = grouping.restore(placed).view_as(result[1:])
    return result


def operator_gradient(
    adjoints: Tensor, previous: Tensor, symbols: Tensor, num_symbols: int
) -> Tensor:
    """dL/dA_v = sum of g_t h_{t-1}^T over all (t, b) with x_t = v, from [T, G, B, H] each.

    One matrix product per symbol, over all steps at once: [G, V, H, H].
    """
    keys = lane_symbols(symbols, num_symbols).view(1, -1)
    num_groups = len(symbols) * num_symbols
    grouping = group(keys, num_groups, adjoints.shape[-1])
    left = grouping.spread(adjoints.flatten(0, 2).unsqueeze(0))[0]
    right = grouping.spread(previous.flatten(0, 2).unsqueeze(0))[0]
    hidden = adjoints.shape[-1]
    return grouping.correlate(0, left, right).view(-1, num_symbols, hidden, hidden)


def _group_words(operators: Tensor, symbols: Tensor) -> Grouping:
    num_lanes, num_symbols, hidden, _ = operators.shape
    keys = lane_symbols(symbols, num_symbols).flatten(1)
    return group(keys, num_lanes * num_symbols, hidden)


def _norms(rows: Tensor, grouping: Grouping, step: int, num_blocks: int, batch: int) -> Tensor:
    """For each place, the largest magnitude in its word's state, over all blocks: [P, 1]."""
    largest: Tensor = torch.linalg.vector_norm(rows, ord=torch.inf, dim=1)
    if num_blocks > 1:
        by_word = largest[grouping.place[step]].view(-1, num_blocks, batch)
        of_all_blocks = by_word.amax(1, keepdim=True).expand_as(by_word)
        largest = of_all_blocks.flatten()[grouping.word[step]]
    return largest.clamp_min_(torch.finfo(rows.dtype).tiny).unsqueeze(1)
