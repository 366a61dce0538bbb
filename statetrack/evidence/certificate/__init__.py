"""Certificates: what is proven about all words, by the method for the class of the model."""

from __future__ import annotations

from statetrack.evidence.certificate.ellipsoids import LARGEST_SIZE, certify_ellipsoids
from statetrack.evidence.certificate.linear import certify_linear
from statetrack.evidence.certificate.rounded import certify_rounded
from statetrack.evidence.certificate.saturating import certify_saturating
from statetrack.evidence.kinds.certificate import Certificate, not_proven
from statetrack.evidence.records import SearchBudget
from statetrack.evidence.subject import Subject
from statetrack.models import Rounded, WithBoxes, has_boxes, has_tanh_step, is_linear


def find_certificate(subject: Subject, *, budget: SearchBudget, seed: int = 0) -> Certificate:
    """What is proven about all words, by the method for the model's class."""
    if isinstance(subject.model, Rounded):
        return certify_rounded(subject, budget=budget, seed=seed)
    if is_linear(subject.model):
        return certify_linear(subject, budget=budget)
    if has_boxes(subject.model):
        return _certify_network(subject, budget, seed)
    return not_proven("no method for this class of models")


def proves_quickly(subject: Subject) -> bool:
    """Whether a certificate takes a second at most: of linear models, there is little to search."""
    return is_linear(subject.model)


def _certify_network(subject: Subject, budget: SearchBudget, seed: int) -> Certificate:
    """What boxes prove, or ellipsoids where boxes do not prove all lengths and these prove more."""
    assert isinstance(subject.model, WithBoxes)
    step = subject.model.tanh_step(0.0) if has_tanh_step(subject.model) else None
    if step is None or step.matrices.shape[-1] > LARGEST_SIZE:
        return certify_saturating(subject, budget=budget, seed=seed)
    boxes = certify_saturating(subject, budget=budget.part(0.35), seed=seed)
    if boxes.verdict == "all lengths":
        return boxes
    ellipsoids = certify_ellipsoids(subject, budget=budget, seed=seed)
    return ellipsoids if ellipsoids.proves > boxes.proves else boxes
