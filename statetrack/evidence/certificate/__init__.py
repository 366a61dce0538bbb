"""Certificates: what is proven about all words, by the method for the class of the model."""

from __future__ import annotations

from statetrack.evidence.certificate.linear import certify_linear, is_linear
from statetrack.evidence.certificate.saturating import certify_saturating, saturates
from statetrack.evidence.kinds.certificate import Certificate, not_proven
from statetrack.evidence.records import Budget
from statetrack.evidence.subject import Subject


def find_certificate(subject: Subject, *, budget: Budget, seed: int = 0) -> Certificate:
    """What is proven about all words, by the method for the model's class."""
    if is_linear(subject.model):
        return certify_linear(subject, budget=budget)
    if saturates(subject.model):
        return certify_saturating(subject, budget=budget, seed=seed)
    return not_proven("no method for this class of models")
