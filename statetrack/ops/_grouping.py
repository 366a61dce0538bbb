"""An order of rows in which those that are multiplied by the same matrix are adjacent.

T steps, W words at each step, n groups (lane and symbol), P places for words, H hidden.
"""

from __future__ import annotations

import abc
from dataclasses import dataclass

import torch
from torch import Tensor


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
