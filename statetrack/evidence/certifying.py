"""Everything that bounds how far a model is right: searched for one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from torch import nn

from statetrack.errors import SettingsError
from statetrack.evidence.bracket import Bracket
from statetrack.evidence.budget import Budget
from statetrack.evidence.certificate import find_certificate
from statetrack.evidence.exhaustive import find_exhaustive
from statetrack.evidence.rows import Certificate, Evidence, Exhaustive, WorstCase
from statetrack.evidence.subject import Subject
from statetrack.evidence.worst_words import find_worst_case
from statetrack.sources import Source
from statetrack.spec import Task

Search = Callable[..., Evidence]

SEARCHES: dict[str, Search] = {
    Exhaustive.kind: find_exhaustive,
    WorstCase.kind: find_worst_case,
    Certificate.kind: find_certificate,
}
"""Every search in its order."""

Skipped = tuple[str, str]
"""A kind of evidence that a model does not allow to be looked for, and the reason."""


def certify(
    model: nn.Module,
    task: Task | str | Path | Source,
    *,
    seconds: float = 40.0,
    seed: int = 0,
    report: Callable[[str], None] | None = None,
) -> Bracket:
    """To which length a model is proven to be right on every word, and where it fails.

    The model maps symbols [B, T] to logits [B, T, C]. The searches end after `seconds`; `report`
    is told what they are doing.

    Raises `SettingsError` where the task has no automaton, and `ContradictionError` where a word
    fails that is proven to be right, which is a mistake of this program.
    """
    found: list[Evidence] = []
    skipped: list[Skipped] = []
    budget = Budget(seconds, report)
    for each in search_bounds(Subject(model, task), budget=budget, seed=seed):
        if isinstance(each, Evidence):
            found.append(each)
        else:
            skipped.append(each)
    bracket = Bracket.of(found, skipped)
    bracket.require_consistent()
    return bracket


def search_bounds(
    subject: Subject, *, budget: Budget, seed: int = 0
) -> Iterator[Evidence | Skipped]:
    """What each search finds: each has its share of the time that those before it have left."""
    for waiting, (kind, find) in zip(range(len(SEARCHES), 0, -1), SEARCHES.items(), strict=True):
        budget.say(kind)
        try:
            yield find(subject, budget=budget.part(1 / waiting), seed=seed)
        except SettingsError as reason:
            yield kind, str(reason)
