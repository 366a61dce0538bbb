"""The searches of a command, one after the other within a budget of time, and what they find."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from statetrack.errors import SettingsError, nearest
from statetrack.evidence.bracket import Bracket
from statetrack.evidence.kinds.error_control import ErrorControl
from statetrack.evidence.kinds.myhill_nerode import MyhillNerode
from statetrack.evidence.kinds.representation import Representation
from statetrack.evidence.records import Budget, Evidence, kinds_of

if TYPE_CHECKING:
    from torch import nn

    from statetrack.evidence.subject import Subject
    from statetrack.sources import Source
    from statetrack.spec import Task

Found = TypeVar("Found", bound=Evidence)

Skipped = tuple[str, str]
"""A kind of evidence that a model does not allow to be looked for, and the reason."""


def search(
    command: str,
    subject: Subject,
    *,
    budget: Budget,
    seed: int = 0,
    only: Collection[str] = (),
    given: dict[str, dict[str, object]] | None = None,
) -> Iterator[Evidence | Skipped]:
    """What each search of a command finds, within one budget; `only` names some of the kinds.

    The time that one leaves is for those after it. `given` has further arguments of searches.
    """
    kinds = kinds_of(command)
    for place, kind in enumerate(kinds):
        if only and kind.kind not in only:
            continue
        budget.say(kind.kind)
        waiting = len(kinds) - place
        share = 1.0 if waiting == 1 else kind.share or 1 / waiting
        own = (given or {}).get(kind.kind, {})
        try:
            yield kind.search(subject, budget=budget.part(share), seed=seed, **own)
        except SettingsError as reason:
            yield kind.kind, str(reason)


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
    from statetrack.evidence.subject import Subject

    subject, budget = Subject(model, task), Budget(seconds, report)
    bracket = Bracket.of(*sorted_out(search("certify", subject, budget=budget, seed=seed)))
    bracket.require_consistent()
    return bracket


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
    from statetrack.evidence.subject import Subject

    subject, budget = Subject(model, task), Budget(seconds, report)
    require_parts(only)
    return Probe(*sorted_out(search("probe", subject, budget=budget, seed=seed, only=only)))


def require_parts(only: Collection[str]) -> None:
    """Raise `SettingsError` for a part of a probe that there is not."""
    known = [kind.kind for kind in kinds_of("probe")]
    for name in only:
        if name not in known:
            raise SettingsError(
                f"there is no part '{name}' of a probe.{nearest(name, known)} "
                f"Parts: {', '.join(known)}"
            )


def sorted_out(
    found: Iterator[Evidence | Skipped],
) -> tuple[tuple[Evidence, ...], tuple[Skipped, ...]]:
    """What was found, and what was skipped."""
    every = list(found)
    evidence = tuple(each for each in every if isinstance(each, Evidence))
    return evidence, tuple(each for each in every if not isinstance(each, Evidence))
