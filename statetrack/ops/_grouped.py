"""Words that read the same symbol are adjacent rows, so that one product covers all of them.

States are in the order of the current step's groups, and one permutation brings them into the
order of the next step's; the order of the words is restored once, at the end.

T steps, G lanes, B batch, W = G B words at each step, V symbols, n = G V groups (lane and symbol),
P places for words, H hidden.
"""

from __future__ import annotations

import abc
from dataclasses import dataclass

import torch
from torch import Tensor

from statetrack.ops.lanes import is_due, power_of_two
from statetrack.ops.symbol_tables import lane_symbols


@dataclass(frozen=True)
class Grouping(abc.ABC):
    """The place (row) of every word at every step, and how groups are multiplied.

    place: the place of each word, [T, W].
    word: the word at each place, [T, P]; any word for a place that is empty.
    """

    place: Tensor
    word: Tensor

    @abc.abstractmethod
    def multiply(self, step: int, rows: Tensor, matrices: Tensor, out: Tensor) -> None:
        """Multiply every group of rows [P, H] by its matrix of [n, H, H], into `out` [P, H]."""

    @abc.abstractmethod
    def correlate(self, step: int, left: Tensor, right: Tensor) -> Tensor:
        """The sum of left^T right over each group's rows, [P, H] each: [n, H, H]."""

    def arrange(self, rows: Tensor) -> Tensor:
        """Rows by word, [T, W, H], put in their places: [T, P, H]; other places hold any row."""
        index = _flat_index(self.word, self.place.shape[1])
        return rows.flatten(0, 1).index_select(0, index).view(*self.word.shape, -1)

    def restore(self, rows: Tensor) -> Tensor:
        """Rows by place, [T, P, H], back in the order of the words: [T, W, H]."""
        index = _flat_index(self.place, self.word.shape[1])
        return rows.flatten(0, 1).index_select(0, index).view(*self.place.shape, -1)

    def spread(self, rows: Tensor) -> Tensor:
        """Rows by word, [T, W, H], put in their places: [T, P, H]; other places hold zeros."""
        places = rows.new_zeros(self.word.numel(), rows.shape[-1])
        places.index_copy_(0, _flat_index(self.place, self.word.shape[1]), rows.flatten(0, 1))
        return places.view(*self.word.shape, -1)


@dataclass(frozen=True)
class Padded(Grouping):
    """Every group has the same number of places: one product of a batch of matrices."""

    width: int

    def multiply(self, step: int, rows: Tensor, matrices: Tensor, out: Tensor) -> None:
        groups = rows.unflatten(0, (-1, self.width))
        torch.bmm(groups, matrices, out=out.unflatten(0, (-1, self.width)))

    def correlate(self, step: int, left: Tensor, right: Tensor) -> Tensor:
        groups = left.unflatten(0, (-1, self.width)), right.unflatten(0, (-1, self.width))
        return torch.bmm(groups[0].mT, groups[1])


@dataclass(frozen=True)
class Packed(Grouping):
    """No place is empty: one product per group. counts: T lists of n."""

    counts: list[list[int]]

    def multiply(self, step: int, rows: Tensor, matrices: Tensor, out: Tensor) -> None:
        counts = self.counts[step]
        groups = zip(rows.split(counts), matrices, out.split(counts), counts, strict=True)
        for group, matrix, product, count in groups:
            if count > 0:
                torch.mm(group, matrix, out=product)

    def correlate(self, step: int, left: Tensor, right: Tensor) -> Tensor:
        counts = self.counts[step]
        sums = left.new_empty(len(counts), left.shape[1], right.shape[1])
        groups = zip(left.split(counts), right.split(counts), sums, strict=True)
        for left_group, right_group, total in groups:
            torch.mm(left_group.t(), right_group, out=total)
        return sums


def group(keys: Tensor, num_groups: int, hidden: int) -> Grouping:
    """The faster of the two groupings of words by `keys` [T, W] in 0 .. n - 1."""
    num_steps, num_words = keys.shape
    ordered, order = keys.sort(dim=1, stable=True)
    steps = torch.arange(num_steps, device=keys.device).unsqueeze(1) * num_groups
    counts = torch.bincount((keys + steps).flatten(), minlength=num_steps * num_groups)
    counts = counts.view(num_steps, num_groups)
    width = int(counts.max())
    ranks = torch.arange(num_words, device=keys.device)
    if not padding_pays(num_groups, width, num_words, hidden):
        place = torch.empty_like(order).scatter_(1, order, ranks.expand_as(order))
        return Packed(place, order, counts.tolist())
    starts = counts.cumsum(1) - counts
    places = ordered * width + ranks - starts.gather(1, ordered)  # of the ordered words
    place = torch.empty_like(order).scatter_(1, order, places)
    word = order.new_zeros(num_steps, num_groups * width).scatter_(1, places, order)
    return Padded(place, word, width)


def padding_pays(num_groups: int, width: int, num_words: int, hidden: int) -> bool:
    """Whether arithmetic on empty places costs less than one product per group.

    A product takes 3 to 4 microseconds to launch, in which two cores do about 2^20
    multiplications. Padding is 2 to 5 times faster where matrices are small (hidden 64, 5 to 120
    symbols), and slower with large batches or where all words read the same symbol: there the
    number of places, and so the memory, is many times the number of words; it is bounded too.
    """
    num_places = num_groups * width
    wasted = (num_places - num_words) * hidden * hidden
    affordable = num_places <= 4 * num_words + 16 * num_groups
    return affordable and wasted <= num_groups * _PRODUCTS_PER_LAUNCH


_PRODUCTS_PER_LAUNCH = 2**20


def _flat_index(index: Tensor, size: int) -> Tensor:
    """Indices within each of T rows of the given size, as indices into the flattened rows."""
    return (index + torch.arange(len(index), device=index.device).unsqueeze(1) * size).flatten()


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
            step.div_(power_of_two(_norms(step, grouping, t, num_blocks, first.shape[1])))
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
    largest = rows.abs().amax(1)
    if num_blocks > 1:
        by_word = largest[grouping.place[step]].view(-1, num_blocks, batch)
        of_all_blocks = by_word.amax(1, keepdim=True).expand_as(by_word)
        largest = of_all_blocks.flatten()[grouping.word[step]]
    return largest.unsqueeze(1)
