"""Certificates: what is proven about all words, by the method for the class of the model."""

from __future__ import annotations

from statetrack.evidence.certificate.linear import certify_linear
from statetrack.evidence.certificate.saturating import certify_saturating
from statetrack.evidence.kinds.certificate import Certificate, not_proven
from statetrack.evidence.records import SearchBudget
from statetrack.evidence.subject import Subject
from statetrack.models import LinearModel, WithBoxes


def find_certificate(subject: Subject, *, budget: SearchBudget, seed: int = 0) -> Certificate:
    """What is proven about all words, by the method for the model's class."""
    if isinstance(subject.model, LinearModel):
        return certify_linear(subject, budget=budget)
    if isinstance(subject.model, WithBoxes):
        return certify_saturating(subject, budget=budget, seed=seed)
    return not_proven("no method for this class of models")
