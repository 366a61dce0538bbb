"""Robust training, one kind per file: a file `interval.py` registers the kind `interval`.

What training asks of the states around those of a word, or of the answers beyond being right, so
that answers stay right where states are not exact. Every kind has a size, which is 0 at first and
then grows (`size_at`).

R replicas, B batch, T time, C labels.
"""

from __future__ import annotations

import abc
from typing import ClassVar

from torch import Tensor, nn

from statetrack.errors import SettingsError, setting
from statetrack.models import RecurrentModel, WithBoxes
from statetrack.training.losses import Loss, mean_over_scored
from statetrack.training.population import Population
from statetrack.training.settings import TrainSettings
from statetrack.training.words import Words


class Robust(abc.ABC):
    """What is minimised at a training step, and by which loss the best weights are chosen.

    `default_size` is the size where the settings give none. Raises `SettingsError` for a model
    that this kind of training is not possible with.
    """

    default_size: ClassVar[float]

    def __init__(self, settings: TrainSettings, model: nn.Module) -> None:
        self.settings = settings
        self.size = settings.robust_size or self.default_size
        self.check(model)

    @abc.abstractmethod
    def check(self, model: nn.Module) -> None:
        """Raise `SettingsError` unless a model can be trained in this way."""

    def size_at(self, step: int) -> float:
        """The size at step number `step` (from 0).

        It is 0 for a share of the steps, `robust_start`; then it grows from a thousandth to the
        whole size, by the same factor at every step, until half of the others are done: errors
        that grow by a factor with every symbol are so made smaller one symbol after the other.
        """
        done, start = step / self.settings.steps_at(step), self.settings.robust_start
        grown = 2 * (done - start) / (1 - start)
        return self.size * 1000.0 ** min(0.0, grown - 1) if grown > 0 else 0.0

    @abc.abstractmethod
    def train(
        self, population: Population, words: Words, loss: Loss, step: int
    ) -> tuple[Tensor, Tensor]:
        """Logits [R, B, T, C], for the accuracy, and the loss of each replica [R]."""

    @staticmethod
    def with_loss(logits: Tensor, words: Words, loss: Loss) -> tuple[Tensor, Tensor]:
        """Logits [R, B, T, C] and their mean loss [R]: what `train` gives where that is all."""
        return logits, mean_over_scored(loss(logits, words.labels), words.scored)

    def validate(self, population: Population, words: Words, logits: Tensor, loss: Loss) -> Tensor:
        """The loss by which the best weights are chosen, [R]: by default that of the logits."""
        return mean_over_scored(loss(logits, words.labels), words.scored)


def require_boxes(model: nn.Module, kind: str, *, such_as: str) -> None:
    """Raise `SettingsError` unless a model takes boxes of states to boxes."""
    if not (isinstance(model, WithBoxes) and isinstance(model, RecurrentModel)):
        raise SettingsError(
            f"{setting('robust', kind)} needs a model whose steps have bounds, and "
            f"{type(model).__name__} has none: take {setting('robust', 'noise')} or another "
            f"model, such as {such_as}"
        )
