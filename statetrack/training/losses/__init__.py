"""Losses, one file each: a file `squared_error.py` registers the loss `squared-error`.

A registered function makes the loss from settings: `(TrainSettings) -> Loss`; what else is known of
the loss, `loss_kind` says. Here is what is taken of losses and answers: means over scored
positions, and right answers.

R replicas, B batch, T time, C labels.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeVar

import torch
from torch import Tensor

from statetrack.errors import SettingsError, setting
from statetrack.ops import has_numbers, native, natively
from statetrack.training.settings import LOSSES, TrainSettings

Loss = Callable[[Tensor, Tensor], Tensor]
"""Logits [..., C] and labels [...] to one loss per position, [...]."""

MakeT = TypeVar("MakeT", bound=Callable[[TrainSettings], Loss])


def loss_kind(
    *, uses: Collection[str] = (), height: Callable[[TrainSettings, int], float] | None = None
) -> Callable[[MakeT], MakeT]:
    """A decorator that says what a loss reads and where its minimum is.

    `uses` has `label_smoothing` where the loss reads this setting, which is refused with others.
    `height` gives the minimum for C labels: by how much the right logit is above all others there.
    Without it, no logits reach a minimum, or it is not known.
    """

    def enter(make: MakeT) -> MakeT:
        vars(make).update(uses=uses, height=height)
        return make

    return enter


def height_of(settings: TrainSettings) -> Callable[[TrainSettings, int], float] | None:
    """What the loss of some settings says of its minimum."""
    found: Callable[[TrainSettings, int], float] | None
    found = getattr(LOSSES[settings.loss], "height", None)
    return found


def require_smoothing(settings: TrainSettings) -> None:
    """Raise `SettingsError` where the loss does not use the label smoothing that is given."""
    if "label_smoothing" not in getattr(LOSSES[settings.loss], "uses", ()):
        raise SettingsError(
            f"{setting('label_smoothing', settings.label_smoothing)}: the loss is {settings.loss}, "
            f"which has none: add {setting('loss', 'smoothed-cross-entropy')}, or leave it out"
        )


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
