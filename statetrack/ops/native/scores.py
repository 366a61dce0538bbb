"""Losses and answers of logits by loops.

C labels.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from statetrack.ops.native.calls import Loop, Tensors, call, known, loops


def cross_entropy(logits: Tensor, labels: Tensor, smoothing: float = 0.0) -> Tensor:
    """-log softmax(z)[label] of logits [..., C] and labels [...]: [...].

    With a smoothing s, 1 - s times that and s times the mean over all labels.
    """
    loop = Loop(partial(_entropy_forward, smoothing), partial(_entropy_backward, smoothing))
    return call(logits, loop, known(labels, logits.shape[-1]))[0]


def squared_error(logits: Tensor, labels: Tensor) -> Tensor:
    """The sums over c of (z_c + 1 / C - [c is the label])^2 of logits z [..., C]: [...]."""
    return call(logits, _ERROR, known(labels, logits.shape[-1]))[0]


def answers(logits: Tensor) -> tuple[Tensor, Tensor]:
    """The first label of the largest of logits [..., C], and whether all are finite: [...]."""
    found = torch.empty(2, *logits.shape[:-1], dtype=torch.int64)
    given = logits.detach().contiguous()
    loops("scores").find_answers(given, *found.unbind(0), _sizes(given))
    return found[0], found[1].bool()


def _entropy_forward(
    smoothing: float, keep: bool, logits: Tensor, labels: Tensor
) -> tuple[Tensor, ...]:
    losses, sums = logits.new_empty(labels.shape), logits.new_empty(*labels.shape, 2)
    given = logits.contiguous(), labels.contiguous()
    loops("scores").entropy_forward(*given, losses, sums, _sizes(logits), smoothing)
    return losses, sums


def _entropy_backward(
    smoothing: float, given: list[Tensor], sums: Tensor, by_losses: Tensor
) -> Tensors:
    logits, labels = (part.contiguous() for part in given)
    found = logits.new_empty(logits.shape)
    arrays = logits, labels, sums, by_losses.contiguous(), found
    loops("scores").entropy_backward(*arrays, _sizes(logits), smoothing)
    return found, None


def _error_forward(keep: bool, logits: Tensor, labels: Tensor) -> tuple[Tensor, ...]:
    losses = logits.new_empty(labels.shape)
    given = logits.contiguous(), labels.contiguous()
    loops("scores").error_forward(*given, losses, _sizes(logits))
    return losses, logits.new_empty(0)


def _error_backward(given: list[Tensor], kept: Tensor, by_losses: Tensor) -> Tensors:
    logits, labels = (part.contiguous() for part in given)
    found = logits.new_empty(logits.shape)
    loops("scores").error_backward(logits, labels, by_losses.contiguous(), found, _sizes(logits))
    return found, None


_ERROR = Loop(_error_forward, _error_backward)


def _sizes(logits: Tensor) -> tuple[int, int]:
    """M and C."""
    labels = logits.shape[-1]
    return logits.numel() // labels, labels
