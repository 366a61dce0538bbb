"""Certificates: what is proven about the answers of a model to all words.

Each class of models has its own method, in a module of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from torch import nn

from statetrack.evidence.budget import Budget
from statetrack.evidence.certificate.linear import certify_linear, is_linear
from statetrack.evidence.certificate.saturating import certify_saturating, saturates
from statetrack.evidence.rows import Certificate, not_proven
from statetrack.evidence.subject import Subject


class Method(Protocol):
    """A proof: a certificate of a subject, within a budget."""

    def __call__(self, subject: Subject, *, budget: Budget, seed: int = 0) -> Certificate:
        """What is proven."""


METHODS: list[tuple[Callable[[nn.Module], bool], Method]] = [
    (is_linear, certify_linear),
    (saturates, certify_saturating),
]
"""For which models which method is; the first that fits is taken."""


def find_certificate(subject: Subject, *, budget: Budget, seed: int = 0) -> Certificate:
    """What is proven about all words, by the method for the model's class."""
    for fits, method in METHODS:
        if fits(subject.model):
            return method(subject, budget=budget, seed=seed)
    return not_proven("no method for this class of models")
