"""A place of the table as a page tells it: its prediction, what was measured, what was published.

Everything here is plain text, which the templates escape.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from statetrack.report.entries import FIELDS, Entry, Gathered, horizon_of_entry, worst_text
from statetrack.report.evidence import bracket_lines, evidence_lines
from statetrack.report.table import interval, share
from statetrack.report.verdicts import WORDS, published_text
from statetrack.runs import DISAGREEMENTS, VERDICTS, EvaluationRow, Judged
from statetrack.scoring import wilson
from statetrack.sweep import Compared

Expected = Literal["can", "cannot", "size", "open", "none"]
"""What is predicted: it can; it cannot; its size is too small; not decided; nothing at all."""

Reached = Literal["right", "partly", "floor", "nothing"]
"""What the selected replica reached: right on every word; above the floor; not even that."""

MARKS = {"agrees": "✓", "differs": "≠", "impossible": "⊥", "not comparable": "∅"}
"""The sign before each verdict on a published number."""

MEASURES = {
    "accuracy": "accuracy",
    "scaled": "accuracy, chance at 0",
    "prefixes": "words right at every position",
    "horizon": "longest length",
    "success": "replicas right on every word",
}
"""What a published number is of."""

TRUSTS = {
    "primary": "read in the paper",
    "second-hand": "second-hand: read in a digest",
    "figure": "read off a figure",
    "sentence": "read in a sentence about many numbers",
}
"""Where a published number was read."""


NOTABLE: tuple[Judged, ...] = (*DISAGREEMENTS, "predicted yes, not reached", "tests nothing")
"""The outcomes that a place of the table names."""


@dataclass(frozen=True)
class LengthLine:
    """One length in an entry: the selected replica's row, and how many replicas are right."""

    length: int
    row: EvaluationRow | None
    right: int
    tested: int


@dataclass(frozen=True)
class ReplicaLine:
    """One replica in an entry: its seed, its rate, and an accuracy for each length.

    `said` is that it was selected, or diverged, or nothing.
    """

    replica: int
    seed: int
    lr: float
    said: str
    accuracies: Sequence[str]


@dataclass(frozen=True)
class Place:
    """One entry at its place of the table, in words; `number` is its place in the report."""

    report: Gathered
    entry: Entry
    number: int

    @property
    def anchor(self) -> str:
        """The id of its drawer."""
        return f"run-{self.number}"

    @property
    def name(self) -> str:
        """Its row and column; its folder, where it has no place in the table."""
        of = (self.entry.row, self.entry.column)
        return " on ".join(of) if all(of) else str(self.entry.run)

    # --- what is predicted ---

    @property
    def expected(self) -> Expected:
        """What is predicted, in one of five words."""
        prediction = self.entry.prediction
        if prediction is None:
            return "none"
        if prediction.can == "yes" and prediction.answer != "yes":
            return "size" if prediction.answer == "no" else "open"
        known: dict[str, Expected] = {"yes": "can", "no": "cannot", "unknown": "open"}
        return known[prediction.can]

    @property
    def expected_text(self) -> str:
        """The prediction, as short as it stands in the table."""
        prediction = self.entry.prediction
        if prediction is None:
            return "no prediction"
        if self.expected == "can":
            return f"can: {_signed(prediction.needs[0].bounds)}" if prediction.needs else "can"
        if self.expected == "cannot":
            return "cannot"
        if not prediction.unmet:
            return "not decided"
        told = "too small" if self.expected == "size" else "not decided"
        return f"{told}: {_signed(prediction.unmet[0].lack)}"

    @property
    def needs(self) -> Sequence[str]:
        """Every size that the prediction asks for, with the one that the model has."""
        prediction = self.entry.prediction
        needs = () if prediction is None else prediction.needs
        return [f"{_signed(need.bounds)} (here {need.given:,})" for need in needs]

    @property
    def outcome(self) -> Judged:
        """What the measurement says of the prediction, as `compare` has it."""
        judged = self.entry.judged
        return "unfinished" if judged is None else judged.outcome

    @property
    def verdict(self) -> str:
        """The outcome in the words of every table."""
        return VERDICTS[self.outcome]

    @property
    def why(self) -> str:
        """The reason for the outcome, in a sentence without its full stop."""
        judged = self.entry.judged
        return "there is no run that is finished" if judged is None else judged.reason

    @property
    def disagrees(self) -> bool:
        """Whether measurement and prediction differ, or a proof from either."""
        return self.outcome in DISAGREEMENTS

    @property
    def notable(self) -> bool:
        """Whether the outcome is named at its place of the table."""
        return self.outcome in NOTABLE

    # --- what was measured ---

    @property
    def at_length(self) -> tuple[EvaluationRow, ...]:
        """The rows of every replica at the length of the table."""
        return self.entry.at(self.report.length)

    @property
    def selected(self) -> EvaluationRow | None:
        """The selected replica's row at the length of the table."""
        return next((row for row in self.at_length if row.selected), None)

    @property
    def right(self) -> int:
        """How many replicas are right on every test word at the length of the table."""
        return sum(row.all_right for row in self.at_length)

    @property
    def right_text(self) -> str:
        """`2/3`, of all replicas, those that diverged among them; `1/1 tested` of those tested."""
        if self.all_tested:
            return f"{self.right}/{self.entry.replicas}"
        return f"{self.right}/{len(self.at_length)} tested"

    @property
    def all_tested(self) -> bool:
        """Whether every replica that did not diverge was tested at the length of the table."""
        return len(self.at_length) + self.entry.diverged >= self.entry.replicas

    @property
    def right_interval(self) -> str:
        """The 95 % interval of the share of right replicas; empty where not all are tested."""
        return interval(*wilson(self.right, self.entry.replicas)) if self.all_tested else ""

    @property
    def measured(self) -> str:
        """The number in the table, or in a word why there is none."""
        measure = self.report.measure
        if not self.at_length or (measure == "success" and not self.all_tested):
            return self._missing
        if measure == "horizon":
            return f"{horizon_of_entry(self.entry) or 0:,}"
        if measure == "worst":
            return worst_text(self.entry.bracket)
        if measure == "success":
            return share(self.right / self.entry.replicas)
        row = self.selected
        return "diverged" if row is None else share(getattr(row, FIELDS[measure]))

    @property
    def _missing(self) -> str:
        if self.entry.state != "finished":
            return self.entry.state
        gone = self.entry.replicas and self.entry.diverged == self.entry.replicas
        return "diverged" if gone else "not tested"

    @property
    def reached(self) -> Reached:
        """How far the selected replica came at the length of the table."""
        row = self.selected
        if row is None:
            return "nothing"
        if row.all_right:
            return "right"
        return "partly" if row.low > row.floor else "floor"

    @property
    def shortcut(self) -> str:
        """The shortcut that is right as often as the selected replica, by its interval; or empty.

        Then the accuracy is no evidence of state tracking. Of a replica that is not above the floor
        it is not said.
        """
        row, found = self.selected, self.best_shortcut
        if row is None or found is None or self.reached not in ("right", "partly"):
            return ""
        name, accuracy = found
        return name if accuracy >= row.low else ""

    @property
    def best_shortcut(self) -> tuple[str, float] | None:
        """The shortcut that is right most often on the same words, and how often.

        None where that is the best constant answer, whose exact accuracy is the floor.
        """
        row = self.selected
        if row is None or row.shortcut is None or row.shortcut_accuracy is None:
            return None
        return None if row.shortcut == "constant" else (row.shortcut, row.shortcut_accuracy)

    @property
    def worst_case(self) -> str:
        """Up to which length every word is right that was sought to fail, or proven; or empty.

        `1,701`, `≥ 30,000` where no word that was tried fails, and `all lengths, proven`.
        """
        bracket = self.entry.bracket
        if not (bracket.worst_case or bracket.certificate or bracket.proven_by):
            return ""
        if bracket.fails_at is not None:
            return f"{bracket.right_to:,}"
        if bracket.proven is None:
            return "all lengths, proven"
        return f"≥ {bracket.right_to:,}" if bracket.right_to else ""

    @property
    def bracket(self) -> Sequence[str]:
        """What is proven, and the word that fails first; nothing where nothing was looked for."""
        entry, found = self.entry, self.entry.bracket
        if not found.evidence or not entry.symbols:
            return ()
        return bracket_lines(found, entry.symbols, entry.labels)

    @property
    def evidence(self) -> Sequence[tuple[str, str]]:
        """Each kind of evidence, and what it says."""
        found = self.entry.bracket
        lines = evidence_lines(found)
        if found.error_control is not None:
            lines.append((found.error_control.kind, f"fails {found.error_control.cell}"))
        return lines

    @property
    def lengths(self) -> Sequence[LengthLine]:
        """Every length that was tested."""
        return [
            LengthLine(
                length,
                next((row for row in rows if row.selected), None),
                sum(row.all_right for row in rows),
                len(rows),
            )
            for length in self.entry.lengths
            if (rows := self.entry.at(length))
        ]

    @cached_property
    def replicas(self) -> Sequence[ReplicaLine]:
        """Every replica that was tested or diverged."""
        of: dict[int, dict[int, EvaluationRow]] = {}
        for row in self.entry.rows:
            of.setdefault(row.replica, {})[row.length] = row
        lines = [
            ReplicaLine(one.replica, one.seed, one.lr, "diverged", ("",) * len(self.entry.lengths))
            for one in self.entry.outcomes
            if one.diverged and one.replica not in of
        ]
        for replica, rows in of.items():
            one = next(iter(rows.values()))
            said = "selected" if one.selected else ""
            accuracies = [
                share(rows[length].accuracy) if length in rows else ""
                for length in self.entry.lengths
            ]
            lines.append(ReplicaLine(replica, one.seed, one.lr, said, accuracies))
        return sorted(lines, key=lambda line: line.replica)

    # --- what was published ---

    @property
    def published(self) -> Sequence[Compared]:
        """The published numbers for this place."""
        return self.entry.compared

    @property
    def differs(self) -> bool:
        """Whether what was measured differs from a published number."""
        return any(each.verdict == "differs" for each in self.published)

    @property
    def stands_out(self) -> bool:
        """Whether a reader is to look at it: it failed, or is not as predicted or published."""
        return self.entry.state == "failed" or self.notable or self.differs

    @property
    def label(self) -> str:
        """The whole place in one sentence, for those who hear it."""
        parts = [f"{self.name}: measured {self.measured}"]
        if self.at_length:
            parts.append(f"{self.right_text} replicas right on every word")
        parts.append(f"predicted: {self.expected_text}")
        if self.notable:
            parts.append(self.verdict)
        parts += [
            f"published {published_text(each)}, {WORDS[each.verdict][0]}" for each in self.published
        ]
        return "; ".join(parts)


def _signed(bounds: str) -> str:
    """Bounds with the sign of a page: `hidden ≥ 5`."""
    return bounds.replace(">=", "≥")


TIED = 3
"""The most entries of one record that are named."""


@dataclass(frozen=True)
class TaskRecord:
    """The best value of one kind in a column, and the places that have it."""

    value: str
    places: tuple[Place, ...]
    more: int


@dataclass(frozen=True)
class Records:
    """The records of a column; None where no entry that is right has such a number."""

    column: str
    right: int
    dimensions: TaskRecord | None
    words: TaskRecord | None
    seconds: TaskRecord | None


def records_of(column: str, places: Sequence[Place]) -> Records:
    """The records among the places of a column."""
    right = [place for place in places if place.reached == "right"]
    return Records(
        column,
        len(right),
        dimensions=_least(right, lambda place: place.entry.dimensions, "{:,}"),
        words=_least(right, lambda place: place.entry.words or None, "{:,}"),
        seconds=_least(right, lambda place: place.entry.seconds or None, "{:,.1f} s"),
    )


def _least(
    places: Sequence[Place], number: Callable[[Place], float | None], text: str
) -> TaskRecord | None:
    """The least number, and who has it."""
    known = [(value, place) for place in places if (value := number(place)) is not None]
    if not known:
        return None
    least = min(value for value, _ in known)
    have = [place for value, place in known if value == least]
    return TaskRecord(text.format(least), tuple(have[:TIED]), len(have) - len(have[:TIED]))
