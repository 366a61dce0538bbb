"""The searches of a command, one after the other within a budget of work, and what they find.

Those of `certify` make a bracket: the longest length at which every word is answered rightly lies
between the length that is proven and the position of the first failure that was found.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from statetrack.errors import SettingsError, nearest
from statetrack.evidence.budget import SearchBudget
from statetrack.evidence.kinds.certificate import Certificate
from statetrack.evidence.kinds.error_control import ErrorControl
from statetrack.evidence.kinds.exhaustive import Exhaustive
from statetrack.evidence.kinds.extraction import Extraction
from statetrack.evidence.kinds.myhill_nerode import MyhillNerode
from statetrack.evidence.kinds.representation import Representation
from statetrack.evidence.kinds.trajectory import Trajectory
from statetrack.evidence.kinds.worst_case import WorstCase
from statetrack.evidence.records import Evidence, Failure, Verdict, kinds_of

if TYPE_CHECKING:
    from torch import nn

    from statetrack.evidence.rounding_horizons import RoundingHorizon
    from statetrack.evidence.subject import Subject
    from statetrack.rounding import Rounding
    from statetrack.sources import Source
    from statetrack.spec import Task

Found = TypeVar("Found", bound=Evidence)

Skipped = tuple[str, str]
"""A kind of evidence that a model does not allow to be looked for, and the reason."""


def search(
    command: str,
    subject: Subject,
    *,
    budget: SearchBudget,
    seed: int = 0,
    only: Collection[str] = (),
    given: dict[str, dict[str, object]] | None = None,
) -> Iterator[Evidence | Skipped]:
    """What each search of a command finds, within one budget; `only` names some of the kinds.

    The work that one leaves is for those after it. `given` has further arguments of searches.
    """
    kinds = kinds_of(command)
    found: list[Evidence] = []
    for place, kind in enumerate(kinds):
        if only and kind.kind not in only:
            continue
        budget.say(kind.kind)
        waiting = len(kinds) - place
        share = 1.0 if waiting == 1 else kind.share or 1 / waiting
        own = (given or {}).get(kind.kind, {})
        if kind is WorstCase:
            own = {"beyond": proven_length(found), **own}
        try:
            found.append(kind.search(subject, budget=budget.part(share), seed=seed, **own))
        except SettingsError as reason:
            yield kind.kind, str(reason)
        else:
            yield found[-1]


def proven_length(evidence: Iterable[Evidence]) -> int:
    """The length up to which every word is proven right by some evidence; of all lengths, none.

    A network that is proven for all lengths is searched like any other: the words that are tried
    then test the proof.
    """
    return int(max((each.proves for each in evidence if each.proves < math.inf), default=0))


NAMED = ("exhaustive", "worst_case", "extraction", "certificate", "error_control")
"""The kinds that a bracket has a name for; `others` are the rest of those of `certify`."""


class ContradictionError(RuntimeError):
    """A proof and a failure that cannot both be true: a mistake in this program, not in its use."""


@dataclass(frozen=True)
class Bracket:
    """The evidence about one model on one task, each kind at most once; None was not looked for.

    `wrong_at` is the earliest position at which a random word was answered wrongly, where some was.
    `skipped` names kinds that could not be looked for, each with the reason. `expected` is where
    rounding should lead to a wrong answer, under a rounding model.
    """

    exhaustive: Exhaustive | None = None
    worst_case: WorstCase | None = None
    extraction: Extraction | None = None
    certificate: Certificate | None = None
    error_control: ErrorControl | None = None
    wrong_at: int | None = None
    skipped: tuple[tuple[str, str], ...] = ()
    others: tuple[Evidence, ...] = ()
    expected: RoundingHorizon | None = None

    @classmethod
    def of(
        cls,
        evidence: Iterable[Evidence],
        skipped: Iterable[tuple[str, str]] = (),
        wrong_at: int | None = None,
        expected: RoundingHorizon | None = None,
    ) -> Bracket:
        """The bracket of some evidence; of several of one kind the last counts."""
        last = {each.kind.replace("-", "_"): each for each in evidence}
        named = {name: last.pop(name, None) for name in NAMED}
        others = tuple(each for each in last.values() if "certify" in each.commands)
        given = {"wrong_at": wrong_at, "skipped": tuple(skipped), "expected": expected}
        return cls(**named, **given, others=others)  # type: ignore[arg-type]

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """All that was found."""
        named = (getattr(self, name) for name in NAMED)
        found = [each for each in (*named, *self.others) if each is not None]
        return tuple(sorted(found, key=lambda each: each.place))

    @property
    def _proofs(self) -> list[tuple[float, str]]:
        """The length up to which each proof goes, infinity for every length, and its kind."""
        return [(each.proves, each.kind) for each in self.evidence if each.proves > 0]

    @property
    def verdict(self) -> Verdict:
        """What is proven."""
        longest = max((length for length, _ in self._proofs), default=0)
        return "all lengths" if longest == math.inf else "to length" if longest else "not proven"

    @property
    def proven(self) -> int | None:
        """The length up to which every word is proven to be right; None for every length."""
        longest = max((length for length, _ in self._proofs), default=0)
        return None if longest == math.inf else int(longest)

    @property
    def proven_by(self) -> str | None:
        """The kind of evidence that proves it; None where nothing is proven."""
        return max(self._proofs, default=(0, None))[1]

    @property
    def failure(self) -> Failure | None:
        """The shortest word that was sought and is answered wrongly."""
        seen = (failure for each in self.evidence for failure in each.failures)
        return min(seen, key=lambda each: each.position, default=None)

    @property
    def fails_at(self) -> int | None:
        """The length of the shortest word that is known to be answered wrongly."""
        failure = self.failure
        known = (None if failure is None else failure.position, self.wrong_at)
        return min(filter(None, known), default=None)

    @property
    def right_to(self) -> int:
        """The length up to which every word that was tried is right, or proven to be right."""
        if self.fails_at is not None:
            return self.fails_at - 1
        tried = 0 if self.worst_case is None else self.worst_case.tested
        return max(tried, self.proven or 0)

    @property
    def tried(self) -> bool:
        """Whether the network was asked any word."""
        return any(each.tried for each in self.evidence)

    @property
    def contradiction(self) -> str | None:
        """The proof and the failure that exclude each other, in words; None where none do."""
        position = self.fails_at
        if position is None:
            return None
        for length, kind in self._proofs:
            if position <= length:
                to = "of every length" if length == math.inf else f"of up to {length:,} symbols"
                return (
                    f"the evidence '{kind}' proves that every word {to} is answered rightly, and "
                    f"symbol {position:,} of a word is answered wrongly"
                )
        return None

    def require_consistent(self) -> None:
        """Raise `ContradictionError` where a word fails that is proven to be right."""
        if (wrong := self.contradiction) is not None:
            raise ContradictionError(f"{wrong}: both cannot be true, so a search has a mistake")


def certify(
    model: nn.Module,
    task: Task | str | Path | Source,
    *,
    seconds: float = 40.0,
    seed: int = 0,
    report: Callable[[str], None] | None = None,
    rounding: Rounding | str | Path | None = None,
) -> Bracket:
    """To which length a model is proven to be right on every word, and where it fails.

    The model maps symbols [B, T] to logits [B, T, C]. The searches end after `seconds` of
    work; `report` is told what they are doing. `rounding` is that of `evaluate`.

    Raises `SettingsError` where the task has no automaton, and for what is no time or no seed, and
    `ContradictionError` where a word fails that is proven to be right, which is a mistake of this
    program.
    """
    from statetrack.evidence.rounding_horizons import expected_horizon
    from statetrack.evidence.subject import Subject

    budget = SearchBudget.asked("certify", seconds, seed, report)
    subject = Subject(model, task, rounding=rounding)
    found = sorted_out(search("certify", subject, budget=budget, seed=seed))
    bracket = Bracket.of(*found, expected=expected_horizon(subject, seed=seed))
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
    def trajectory(self) -> Trajectory | None:
        """How far apart states are along words that keep states of the automaton apart."""
        return self.get(Trajectory)

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
    measurements end after `seconds` of work; `report` is told what they are doing.

    Raises `SettingsError` where the task has no automaton, for a part that there is not, and for
    what is no time or no seed.
    """
    from statetrack.evidence.subject import Subject

    budget = SearchBudget.asked("probe", seconds, seed, report)
    subject = Subject(model, task)
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
