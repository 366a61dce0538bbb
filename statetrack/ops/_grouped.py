"""Words that read the same symbol are put next to each other: one matrix product per symbol.

No wasted arithmetic, at the price of as many products per step as there are symbols. States
stay in the order of the current step's groups and go to the next step's by one permutation.

T time, G lanes, B batch, V symbols, H hidden.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from statetrack.ops._lanes import is_due, normalise_
from statetrack.ops.lookup import lane_symbols


@dataclass(frozen=True)
class _Plan:
    """How the words of each step are grouped.

    order: the word that stands at each place, [T, G * B].
    place: the place at which each word stands, [T, G * B].
    counts: how many words read each symbol of each lane, T lists of G * V.
    """

    order: Tensor
    place: Tensor
    counts: list[list[int]]

    def natural(self, grouped: Tensor) -> Tensor:
        """Rows in the order of the groups, [T, G * B, H], in the order of the words."""
        offsets = torch.arange(len(self.place), device=self.place.device) * self.place.shape[1]
        return grouped.flatten(0, 1).index_select(0, (self.place + offsets[:, None]).flatten())

    def grouped(self, natural: Tensor) -> Tensor:
        """Rows in the order of the words, [T, G * B, H], in the order of the groups."""
        offsets = torch.arange(len(self.order), device=self.order.device) * self.order.shape[1]
        rows = (self.order + offsets[:, None]).flatten()
        return natural.flatten(0, 1).index_select(0, rows).view(natural.shape)


def _plan(symbols: Tensor, num_symbols: int) -> _Plan:
    keys = lane_symbols(symbols, num_symbols).flatten(1)  # [T, G * B]
    order = keys.argsort(dim=1, stable=True)
    place = order.argsort(dim=1)
    num_groups = symbols.shape[0] * num_symbols
    steps = torch.arange(len(keys), device=keys.device)[:, None] * num_groups
    counts = torch.bincount((keys + steps).flatten(), minlength=len(keys) * num_groups)
    return _Plan(order, place, counts.view(-1, num_groups).tolist())


def states(
    operators: Tensor,
    symbols: Tensor,
    first: Tensor,
    inputs: Tensor | None,
    normalise_every: int,
    num_blocks: int,
) -> Tensor:
    """All states, the first one included: [T + 1, G, B, H]."""
    plan = _plan(symbols, operators.shape[1])
    num_steps, num_words = plan.order.shape
    matrices = operators.flatten(0, 1).mT.unbind(0)
    terms = None if inputs is None else plan.grouped(inputs.flatten(1, 2)).unbind(0)
    moves = _moves(plan.place[:-1], plan.order[1:])
    grouped = first.new_empty(num_steps, num_words, first.shape[-1])
    steps = grouped.unbind(0)
    operand = first.flatten(0, 1).index_select(0, plan.order[0])
    for t in range(num_steps):
        if t > 0:
            torch.index_select(steps[t - 1], 0, moves[t - 1], out=operand)
        _multiply(operand, matrices, plan.counts[t], steps[t])
        if terms is not None:
            steps[t].add_(terms[t])
        if is_due(t, normalise_every):
            normalise_(steps[t], (1,))
    result = first.new_empty(num_steps + 1, *first.shape)
    result[0] = first
    result[1:] = plan.natural(grouped).view_as(result[1:])
    return result


def adjoints(operators: Tensor, symbols: Tensor, gradient: Tensor) -> Tensor:
    """The gradient of the loss by every state, the first one's included: [T + 1, G, B, H].

    g_t = dL/dh_t (direct) + A(x_{t+1})^T g_{t+1}, in the order of the groups throughout.
    """
    plan = _plan(symbols, operators.shape[1])
    num_steps, num_words = plan.order.shape
    matrices = operators.flatten(0, 1).unbind(0)
    moves = _moves(plan.place[1:], plan.order[:-1])
    grouped = plan.grouped(gradient.flatten(1, 2))
    steps = grouped.unbind(0)
    product = torch.empty_like(steps[0])
    for t in range(num_steps - 1, -1, -1):
        _multiply(steps[t], matrices, plan.counts[t], product)
        if t > 0:
            steps[t - 1].add_(product.index_select(0, moves[t - 1]))
    result = gradient.new_empty(num_steps + 1, *gradient.shape[1:])
    result[0] = product.index_select(0, plan.place[0]).view_as(result[0])
    result[1:] = plan.natural(grouped).view_as(result[1:])
    return result


def _moves(place: Tensor, order: Tensor) -> tuple[Tensor, ...]:
    """For each step, where the words of one grouping stand in another's: T times [G * B]."""
    return place.gather(1, order).unbind(0)


def _multiply(
    rows: Tensor, matrices: tuple[Tensor, ...], counts: list[int], out: Tensor
) -> None:
    """Multiply each group of rows by its symbol's matrix."""
    groups = zip(rows.split(counts), matrices, counts, out.split(counts), strict=True)
    for group, matrix, count, product in groups:
        if count > 0:
            torch.mm(group, matrix, out=product)
