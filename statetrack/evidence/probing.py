"""Everything that is measured of how a model keeps its state: one part after the other."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from torch import nn

from statetrack.errors import SettingsError, nearest
from statetrack.evidence.budget import Budget
from statetrack.evidence.error_control import find_error_control
from statetrack.evidence.myhill_nerode import find_myhill_nerode
from statetrack.evidence.representation import find_representation
from statetrack.evidence.rows import ErrorControl, Evidence, MyhillNerode, Representation
from statetrack.evidence.subject import Subject
from statetrack.sources import Source
from statetrack.spec import Task

Search = Callable[..., Evidence]
Found = TypeVar("Found", bound=Evidence)

SEARCHES: dict[str, tuple[float, Search]] = {
    Representation.kind: (0.4, find_representation),
    MyhillNerode.kind: (0.3, find_myhill_nerode),
    ErrorControl.kind: (1.0, find_error_control),
}
"""Every part in its order, with the share that it gets of the time that is left."""

Skipped = tuple[str, str]
"""A part that a model does not allow to be measured, and the reason."""


@dataclass(frozen=True)
class Probe:
    """What was measured of a model, and what it does not allow to be measured, with the reason."""

    evidence: tuple[Evidence, ...] = ()
    skipped: tuple[Skipped, ...] = ()

    def get(self, kind: type[Found]) -> Found | None:
        """The part of one kind; None where it was not measured."""
        return next((each for each in self.evidence if isinstance(each, kind)), None)

    @property
    def representation(self) -> Representation | None:
        """The linear representation that was learned."""
        return self.get(Representation)

    @property
    def myhill_nerode(self) -> MyhillNerode | None:
        """Whether words are told apart that the task tells apart, and others are not."""
        return self.get(MyhillNerode)

    @property
    def error_control(self) -> ErrorControl | None:
        """How errors of the state grow, and where the decoder fails by them."""
        return self.get(ErrorControl)


def probe(
    model: nn.Module,
    task: Task | str | Path | Source,
    *,
    only: Collection[str] = (),
    seconds: float = 40.0,
    seed: int = 0,
    report: Callable[[str], None] | None = None,
) -> Probe:
    """How a model keeps its state: the representation it learned, its classes, how errors grow.

    The model maps symbols [B, T] to logits [B, T, C]. `only` names parts, by default all. The
    measurements end after `seconds`; `report` is told what they are doing.

    Raises `SettingsError` where the task has no automaton, and for a part that there is not.
    """
    found: list[Evidence] = []
    skipped: list[Skipped] = []
    budget = Budget(seconds, report)
    for each in search_parts(Subject(model, task), budget=budget, only=only, seed=seed):
        if isinstance(each, Evidence):
            found.append(each)
        else:
            skipped.append(each)
    return Probe(tuple(found), tuple(skipped))


def search_parts(
    subject: Subject, *, budget: Budget, only: Collection[str] = (), seed: int = 0
) -> Iterator[Evidence | Skipped]:
    """What each part finds, within one budget: the time that one leaves is for those after it."""
    for kind in parts_of(only):
        share, find = SEARCHES[kind]
        budget.say(kind)
        try:
            yield find(subject, budget=budget.part(share), seed=seed)
        except SettingsError as reason:
            yield kind, str(reason)


def parts_of(only: Collection[str]) -> Sequence[str]:
    """The names of the parts that are asked for, in their order: all where none are named."""
    for name in only:
        if name not in SEARCHES:
            raise SettingsError(
                f"there is no part '{name}' of a probe.{nearest(name, SEARCHES)} "
                f"Parts: {', '.join(SEARCHES)}"
            )
    return [kind for kind in SEARCHES if kind in only or not only]
