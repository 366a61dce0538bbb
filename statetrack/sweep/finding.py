"""Evidence about the selected replica of a cell: what a suite looks for beyond accuracies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from statetrack.errors import SettingsError
from statetrack.evidence import (
    EVIDENCE,
    Budget,
    Evidence,
    Exhaustive,
    Extraction,
    Failure,
    WorstCase,
)
from statetrack.runs import Run
from statetrack.sweep.results import PointResult
from statetrack.sweep.searching import KINDS, Searching

SEED = 0
"""The seed of the searches."""


def _failures(found: Iterable[Evidence]) -> tuple[Failure, ...]:
    """The failing words that searches for them have found."""
    sought = (each for each in found if isinstance(each, Exhaustive | WorstCase))
    return tuple(failure for each in sought for failure in each.failures)


def with_evidence(
    result: PointResult, run: Run, searching: Searching, stop: Callable[[], bool]
) -> Iterator[PointResult]:
    """A result with the evidence that is asked for and that it lacks, again after each kind.

    Ends where `stop` returns True, before the last. What is found is appended to the run's
    evidence. A replica that diverged, a task without an automaton and a model that a search cannot
    read have none.
    """
    missing = searching.missing(result)
    found = {each.kind: each for each in result.evidence}
    subjects = iter(()) if result.selected is None else run.subjects()
    try:
        outcome, subject = next(subjects)
    except (StopIteration, SettingsError):
        yield replace(result, searched={**result.searched, **missing})
        return
    for kind, seconds in missing.items():
        given = {"known": _failures(found.values())} if kind == Extraction.kind else {}
        try:
            evidence = EVIDENCE[kind].search(
                subject, budget=Budget(seconds, stop=stop), seed=SEED, **given
            )
        except SettingsError:
            pass
        else:
            if stop():
                return
            found[kind] = run.add_evidence(evidence, outcome).evidence
        in_order = tuple(found[kind] for kind in KINDS if kind in found)
        searched = {**result.searched, kind: seconds}
        result = replace(result, evidence=in_order, searched=searched)
        yield result
