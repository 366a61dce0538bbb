"""Whether what was measured of an entry agrees with its prediction, in a word and a sentence.

The rules are those of `statetrack compare`, applied to what a report holds: a prediction says what
some weights can do, so the best replica counts, over all test words that are longer than those of
training.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from statetrack.report.entries import Entry
from statetrack.runs import EvaluationRow, judged
from statetrack.scoring import rounded_down

Agreeing = Literal[
    "as predicted", "not as predicted", "contradiction", "nothing predicted", "not measured"
]


@dataclass(frozen=True)
class Agreement:
    """The outcome for one entry, and the reason in one sentence."""

    outcome: Agreeing
    why: str

    @property
    def disagrees(self) -> bool:
        """Whether measurement and prediction differ, or a proof from either."""
        return self.outcome in ("not as predicted", "contradiction")


def agreement_of(entry: Entry) -> Agreement:
    """Whether an entry's measurement agrees with its prediction."""
    bracket, prediction = entry.bracket, entry.prediction
    answer = None if prediction is None else prediction.answer
    if (wrong := bracket.contradiction) is not None:
        return Agreement("contradiction", wrong)
    if answer == "no" and bracket.verdict == "all lengths":
        return Agreement(
            "contradiction",
            f"predicted not to, and the evidence '{bracket.proven_by}' proves that every word of "
            "every length is answered rightly",
        )
    beyond = _beyond_training(entry)
    if not beyond:
        return Agreement("not measured", "no replica was tested on words longer than in training")
    longest = max(row.length for rows in beyond for row in rows)
    tracking = [rows for rows in beyond if _tracks(entry, rows)]
    outcome = judged(answer, tracks=bool(tracking))
    if outcome == "nothing predicted":
        return Agreement("nothing predicted", "no theorem decides it with these settings")
    if outcome == "predicted no, tracks":
        return Agreement(
            "not as predicted",
            f"predicted not to, and {_replicas(len(tracking))} right on every test word longer "
            f"than in training, up to {longest:,} symbols; the prediction is about words of every "
            "length",
        )
    if outcome == "predicted yes, not reached":
        return Agreement("not as predicted", f"predicted to, and {_fails(entry, beyond, longest)}")
    if answer == "yes":
        return Agreement(
            "as predicted",
            f"predicted to, and {_replicas(len(tracking))} right on every test word longer "
            f"than in training, up to {longest:,} symbols",
        )
    return Agreement("as predicted", f"predicted not to, and {_fails(entry, beyond, longest)}")


def _fails(entry: Entry, beyond: Sequence[Sequence[EvaluationRow]], longest: int) -> str:
    """That no replica tracks the task: the words, or the one word, on which the best fails."""
    right = sum(all(row.all_right for row in rows) for rows in beyond)
    if right and entry.bracket.failure is not None:
        return (
            "every random word is right, but the word that was sought and found is answered "
            f"wrongly at symbol {entry.bracket.failure.position:,}"
        )
    told = f"no replica is right on every test word longer than in training, up to {longest:,}"
    last = [
        row.accuracy for rows in beyond for row in rows if row.length == longest and row.sequences
    ]
    beside = (
        f" (the best is right on {rounded_down(max(last))} of the last answers)" if last else ""
    )
    return f"{told} symbols{beside}"


def _replicas(number: int) -> str:
    return "1 replica is" if number == 1 else f"{number} replicas are"


def _tracks(entry: Entry, rows: Sequence[EvaluationRow]) -> bool:
    """Whether a replica is right on all its test words, and on those sought to make it fail."""
    sought = rows[0].selected and entry.bracket.failure is not None
    return all(row.all_right for row in rows) and not sought


def _beyond_training(entry: Entry) -> list[list[EvaluationRow]]:
    """Of each replica the rows at lengths beyond those of training, where there are any."""
    rows: dict[int, list[EvaluationRow]] = {}
    for row in entry.rows:
        if entry.trained_to is None or row.length > entry.trained_to:
            rows.setdefault(row.replica, []).append(row)
    return list(rows.values())
