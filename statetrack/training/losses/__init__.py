"""Losses, one file each: a file `squared_error.py` registers the loss `squared-error`.

A registered function makes the loss from settings: `(TrainSettings) -> Loss`. Here is what is
taken of losses and answers: means over scored positions, and right answers.

R replicas, B batch, T time, C labels.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from statetrack.ops import has_numbers, native, natively

Loss = Callable[[Tensor, Tensor], Tensor]
"""Logits [..., C] and labels [...] to one loss per position, [...]."""


def mean_over_scored(values: Tensor, scored: Tensor) -> Tensor:
    """The mean of values [R, B, T] over the scored positions of each replica: [R]."""
    total = (values * scored).flatten(1).sum(1)
    return total / scored.flatten(1).sum(1).clamp(min=1)


def by_loop(logits: Tensor) -> bool:
    """Whether a compiled loop reads logits, whatever computed them."""
    return has_numbers(logits) and logits.numel() > 0 and natively("auto", logits)


def answers_of(logits: Tensor) -> tuple[Tensor, Tensor]:
    """The label with the largest logit, the first of several, and whether all logits are finite.

    Both are [...] of logits [..., C]. Without a loop quicker than by `argmax` and `isfinite`, and
    nothing as large as the logits is made: the largest logit is NaN if any is, and zero times NaN
    or infinity is NaN.
    """
    if by_loop(logits):
        return native.answers(logits)
    largest, labels = logits.max(-1)
    return labels, (largest * 0 + logits.amin(-1) * 0) == 0


def accuracy(logits: Tensor, labels: Tensor, scored: Tensor) -> Tensor:
    """The fraction of scored positions with the right answer, for each replica: [R].

    An answer is right only where all its logits are finite: the largest of logits that are NaN
    would be the first.
    """
    answers, finite = answers_of(logits)
    return mean_over_scored(((answers == labels) & finite).float(), scored)


def words_right(logits: Tensor, labels: Tensor, scored: Tensor) -> Tensor:
    """The fraction of words with the right answer at every scored position, of each replica: [R].

    Words without a scored position do not count.
    """
    answers, finite = answers_of(logits)
    wrong = ((answers != labels) | ~finite) & scored
    counted = scored.any(-1)
    return (counted & ~wrong.any(-1)).sum(-1) / counted.sum(-1).clamp(min=1)


def lead(logits: Tensor, labels: Tensor) -> Tensor:
    """By how much the logit of the label is above the largest other one: [...]."""
    index = labels.unsqueeze(-1)
    others = logits.scatter(-1, index, -torch.inf).amax(-1)
    return logits.gather(-1, index).squeeze(-1) - others


def smallest_margin(logits: Tensor, labels: Tensor, scored: Tensor) -> float:
    """The least by which the logit of a right answer exceeds all others, over scored positions."""
    return float(lead(logits, labels)[scored].amin())
