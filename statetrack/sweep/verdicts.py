"""The verdict on each published number: whether what was measured agrees with it.

A published number is compared with one measured statistic: the table's `measure` at the mean over
its `lengths`, of the replicas that `of` says. Selection never looks at test words; `best` does,
and is taken only where the paper reports its best run. In this order:

- *not comparable*, where nothing was measured: the point failed or was not run, all its replicas
  diverged, or the table's lengths were not tested;
- *not comparable*, where the question is another: what the table says under `unlike`; another task,
  supervision or training length than the suite has in its paper's settings;
- *not comparable*, where training was not finished: the model is not right on 99 % of words of the
  training lengths, has seen fewer words than the paper's (or nobody knows how many those were), and
  is no better than published and not solved. Failing then says nothing, and least of all where the
  published model failed too. Equal numbers count where theory says that neither model can track the
  task;
- *agrees*, where the two numbers are at most `within` apart (of a horizon: that share of it);
- *not comparable*, where the 95 % interval of what was measured comes as close to the published
  number as that: too few test words;
- *differs* otherwise. What was trained otherwise than in the paper is named.

torch is not imported here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from statetrack.errors import StatetrackError
from statetrack.runs import Experiment, RunFolder, Summary, files
from statetrack.scoring import ReplicaSpread, horizon_of, rescale, rounded_down, rounded_up
from statetrack.spec import WordSpec, current_name, load_task
from statetrack.sweep.results import Done, Point, PointResult
from statetrack.sweep.suite import TRAINED_BY, Measure, Of, PublishedTable, Suite, Trust
from statetrack.text import shortened

Verdict = Literal["agrees", "differs", "not comparable"]

VERDICTS: tuple[Verdict, ...] = ("agrees", "differs", "not comparable")

FIELDS: Mapping[Measure, str] = {
    "accuracy": "accuracy",
    "scaled": "scaled",
    "prefixes": "prefix_accuracy",
}
"""The field of a row that has a number of one length."""

FINISHED = 0.99
"""The accuracy on words of the training lengths from which on training counts as finished."""


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One published number beside what was measured.

    `measured` is None where nothing was; `why` names the difference of protocol, or of numbers.
    `right` of `replicas` answered every test word rightly at every position.
    """

    row: str
    column: str
    source: str
    reference: str
    trust: Trust
    measure: Measure
    of: Of
    lengths: tuple[int, ...]
    published: float
    measured: float | None
    verdict: Verdict
    why: str
    right: int = 0
    replicas: int = 0

    def to_json(self) -> dict[str, Any]:
        """The comparison as plain values."""
        return dict(vars(self))


def counts(compared: Iterable[Compared]) -> dict[Verdict, int]:
    """How many published numbers have each verdict."""
    given = [each.verdict for each in compared]
    return {verdict: given.count(verdict) for verdict in VERDICTS}


def kept_summary(run: Path) -> Summary | None:
    """The outcome of training that a run's folder holds; None where it cannot be read."""
    try:
        return RunFolder(run).read(files.SUMMARY)
    except StatetrackError:
        return None


def compare_published(
    suite: Suite,
    points: Sequence[Point],
    results: Iterable[Done],
    summary_of: Callable[[Path], Summary | None] = kept_summary,
) -> tuple[Compared, ...]:
    """Every published number of a suite with its verdict, table by table and row by row.

    `suite` is the one that was run, so as its budget changes it.
    """
    places = {(point.row, point.column): point for point in points}
    found = {(result.row, result.column): result for result in results}
    compared = []
    for table in suite.published_tables:
        for row, values in table.values.items():
            for column, value in values.items():
                beside = _Beside(
                    suite=suite,
                    table=table,
                    row=row,
                    column=column,
                    published=value,
                    point=places.get((row, column)),
                    result=found.get((row, column)),
                    summary_of=summary_of,
                )
                compared.append(beside.compared())
    return tuple(compared)


def papers_experiment(suite: Suite, point: Point) -> Experiment | None:
    """A point as the paper trains it: in the suite's budget `paper`, or by its protocol alone.

    None where the suite has neither.
    """
    paper = suite.paper
    if paper is not None and point.row in paper.rows and point.column in paper.columns:
        own, column = paper.rows[point.row].settings, paper.columns[point.column]
        values = {**paper.settings, **own, **column}
        protocol = paper.protocol
    elif suite.whole.protocol:
        values = {name: value for name, value in point.values.items() if name not in TRAINED_BY}
        protocol = suite.whole.protocol
    else:
        return None
    return Experiment.from_values(values, point.name, protocol=protocol, to_build=False)


def words_and_lengths(experiment: Experiment) -> WordSpec:
    """The lengths of an experiment's training words, and which of their symbols have labels."""
    data = experiment.data
    return WordSpec.of(
        load_task(data.task), train_length=data.train_length, supervision=data.supervision
    )


def trained_otherwise(ours: Experiment, papers: Experiment) -> list[str]:
    """What an experiment does otherwise than its paper's, apart from the words: `loss a for b`."""
    here, there = ours.values(), papers.values()
    names = (
        *("loss", "label_smoothing", "optimizer", "schedule", "weight_decay", "clip", "finish"),
        *("robust", "freeze", "curriculum", "train_samples"),
        *(name for name in type(ours.model_settings).model_fields),
    )
    said = []
    if ours.model != papers.model:
        said.append(f"model {ours.model} for {papers.model}")
    for name in names:
        if name == "label_smoothing" and "smoothed-cross-entropy" not in (
            here["loss"],
            there["loss"],
        ):
            continue
        if name in there and here[name] != there[name]:
            said.append(f"{name.replace('_', ' ')} {_shown(here[name])} for {_shown(there[name])}")
    return said


def departures_from_paper(suite: Suite, points: Sequence[Point]) -> str:
    """Every setting in which any point is trained otherwise than its paper does, with both values.

    It is computed from the settings; empty where nothing differs, or the paper's are not known.
    """
    found: dict[str, tuple[list[str], list[str]]] = {}
    for point in points:
        paper = papers_experiment(suite, point)
        if paper is None:
            continue
        here, there = point.experiment.values(), paper.values()
        for name in {**here, **there}:
            if name in _ABOUT_THE_MACHINE or here.get(name) == there.get(name):
                continue
            for texts, values in zip(found.setdefault(name, ([], [])), (here, there), strict=True):
                text = _shown(values[name]) if name in values else "none"
                if text not in texts:
                    texts.append(text)
    said = [
        f"{name.replace('_', ' ')} {_either(ours)} for {_either(theirs)}"
        for name, (ours, theirs) in found.items()
    ]
    return "; ".join(said)


_ABOUT_THE_MACHINE = frozenset({"seed", "checkpoint_every", "device", "threads"})
"""Settings that change no result, and the first seed."""


@dataclass(frozen=True, kw_only=True)
class _Beside:
    """A published number, and the point that it is compared with."""

    suite: Suite
    table: PublishedTable
    row: str
    column: str
    published: float
    point: Point | None
    result: Done | None
    summary_of: Callable[[Path], Summary | None]

    def compared(self) -> Compared:
        table, lengths = self.table, self.lengths
        result = self.result if isinstance(self.result, PointResult) else None
        measured = None if result is None else self._statistic(result, self._measured_of)
        verdict, why = self._verdict(result, measured)
        notes = [why, table.note, "best of all replicas" * (table.of == "best")]
        return Compared(
            row=self.row,
            column=self.column,
            source=table.source,
            reference=table.reference or self.suite.reference,
            trust=table.trust,
            measure=table.measure,
            of=table.of,
            lengths=lengths,
            published=self.published,
            measured=measured,
            verdict=verdict,
            why="; ".join(filter(None, notes)),
            right=0 if result is None else result.num_right,
            replicas=0 if result is None else result.replicas,
        )

    @property
    def lengths(self) -> tuple[int, ...]:
        """The lengths that the number is about; none of a horizon, which all tested are about."""
        if self.table.measure == "horizon":
            return ()
        return self.table.lengths or (self.suite.whole.length,)

    def _verdict(self, result: PointResult | None, measured: float | None) -> tuple[Verdict, str]:
        if result is None:
            error = getattr(self.result, "error", "")
            return "not comparable", f"not measured: {error}" if error else "not measured"
        if measured is None:
            return "not comparable", self._nothing_measured(result)
        if self.table.unlike:
            return "not comparable", self.table.unlike
        assert self.point is not None
        ours = self.point.experiment
        paper = papers_experiment(self.suite, self.point)
        if paper is not None and (question := [*_other_question(ours, paper)]):
            return "not comparable", "; ".join(question)
        if self._beyond_tested(result, measured):
            return "not comparable", f"tested to {max(_lengths(result)):,} symbols only"
        share = _share_of_words(result.steps, ours, paper)
        unfinished = self._unfinished(result, measured, share)
        alike = abs(measured - self.published) <= self._within
        theorem = self._theorem(result, ours, paper) if unfinished and alike else ""
        if unfinished and not theorem:
            return "not comparable", unfinished
        if alike:
            return "agrees", theorem or f"at most {self._apart} apart"
        if doubtful := self._too_few_words(result):
            return "not comparable", doubtful
        causes = trained_otherwise(ours, paper) if paper is not None else []
        if share is not None and share < 1:
            causes.append(f"{_percent(share)} of the paper's training words")
        known = f"; trained with {', '.join(causes)}" if causes else ""
        return "differs", f"{self._difference(measured)}{known}"

    @property
    def _within(self) -> float:
        if self.table.measure == "horizon":
            return self.table.within * self.published
        return self.table.within + 1e-9  # 0.95 and 1.0 are 0.05 apart, and a little more in binary

    @property
    def _apart(self) -> str:
        within = self.table.within
        return f"{within:.0%}" if self.table.measure == "horizon" else f"{within:g}"

    def _difference(self, measured: float) -> str:
        apart = abs(measured - self.published)
        text = f"{apart:.2f}" if apart >= 0.01 else f"{apart:.1g}"
        if self.table.measure == "horizon":
            text = f"{apart:,.0f} symbols"
        return f"{text} {'above' if measured > self.published else 'below'}"

    # --- what was measured ---

    def _statistic(
        self, result: PointResult, value_of: Callable[[PointResult, int], float | None]
    ) -> float | None:
        """The table's statistic of a number that each replica has; None where nothing was scored.

        A replica that diverged counts as 0.
        """
        if self.table.measure == "success":
            return result.success if result.measured.length in self.lengths else None
        if not result.every_row:
            return None
        if self.table.of == "selected":
            chosen = result.selected
            return None if chosen is None else value_of(result, chosen.replica)
        trained = {row.replica for row in result.every_row}
        values = []
        for replica in range(result.replicas):
            value = value_of(result, replica) if replica in trained else 0.0
            if value is None or math.isnan(value):
                return None
            values.append(value)
        found: float | None = getattr(ReplicaSpread.of(values), self.table.of)
        return found

    def _measured_of(self, result: PointResult, replica: int) -> float | None:
        """The table's measure of one replica; None where a length was not tested."""
        rows = {row.length: row for row in result.every_row if row.replica == replica}
        if self.table.measure == "horizon":
            rising = sorted((length, row.accuracy) for length, row in rows.items())
            return float(horizon_of(rising, self.table.threshold))
        if not set(self.lengths) <= set(rows):
            return None
        value = fmean(getattr(rows[length], FIELDS[self.table.measure]) for length in self.lengths)
        return None if math.isnan(value) else value

    def _nothing_measured(self, result: PointResult) -> str:
        if not result.every_row:
            return "not measured: all replicas diverged"
        asked = ", ".join(f"{length:,}" for length in self.lengths)
        tested = ", ".join(f"{length:,}" for length in _lengths(result))
        return f"not measured at length {asked}: tested at {tested}"

    def _beyond_tested(self, result: PointResult, measured: float) -> bool:
        """Whether a horizon ends where the test did, and the published one later."""
        longest = max(_lengths(result))
        return (
            self.table.measure == "horizon" and measured == longest < self.published - self._within
        )

    def _too_few_words(self, result: PointResult) -> str:
        """Why the test cannot tell the two numbers apart; empty where it can.

        Of one length and the selected replica, whose accuracy has an interval.
        """
        table = self.table
        if table.of != "selected" or table.measure not in ("accuracy", "scaled"):
            return ""
        chosen = {row.length: row for row in result.every_row if row.selected}
        if len(self.lengths) != 1 or self.lengths[0] not in chosen:
            return ""
        row = chosen[self.lengths[0]]
        low, high = row.interval
        if table.measure == "scaled":
            low, high = rescale(low, row.chance), rescale(high, row.chance)
        if low - self._within > self.published or high + self._within < self.published:
            return ""
        words = "1 test word does" if row.sequences == 1 else f"{row.sequences:,} test words do"
        return (
            f"{words} not tell them apart: 95 % interval {rounded_down(low)} to {rounded_up(high)}"
        )

    # --- whether training was finished ---

    def _unfinished(self, result: PointResult, measured: float, share: float | None) -> str:
        """Why a failure says nothing; empty where training was finished, or the number is better.

        A solved test needs no more training, whatever validation says.
        """
        if share is not None and share >= 1:
            return ""
        if self.table.measure == "horizon":
            solved = measured >= max(_lengths(result))
        else:
            solved = measured >= 1 - self.table.within
        if solved or measured > self.published + self._within:
            return ""
        learned = self._learned(result)
        if learned is not None and learned >= FINISHED:
            return ""
        words = (
            "how many words the paper trained on is not known"
            if share is None
            else f"{_percent(share)} of the paper's training words"
        )
        known = "not known" if learned is None else rounded_down(learned)
        return f"{words}; accuracy on training lengths {known}"

    def _learned(self, result: PointResult) -> float | None:
        """The accuracy on words of the training lengths, of the same replicas as the number.

        None where the run does not say it.
        """
        summary = self.summary_of(Path(result.run))
        if summary is None:
            return None
        accuracies = {each.replica: each.validation_accuracy or 0.0 for each in summary.replicas}
        if self.table.measure == "success":
            return fmean(accuracies.values())
        if self.table.of == "best":
            values = {r: self._measured_of(result, r) or 0.0 for r in accuracies}
            return accuracies[max(values, key=lambda replica: values[replica])]
        return self._statistic(result, lambda _, replica: accuracies.get(replica, 0.0))

    def _theorem(self, result: PointResult, ours: Experiment, paper: Experiment | None) -> str:
        """Why neither model can track the task, however trained; empty where theory leaves it open.

        Without the paper's settings, only what no size would change counts. What holds of a model
        whose state grows with the word is about its limit alone, and forbids no length; and none
        forbids to fit the training lengths.
        """
        from statetrack.models import recurrence_of
        from statetrack.predicting import predict

        recurrence = recurrence_of(ours.model_settings)
        shortest = min(self.lengths or _lengths(result))
        is_beyond = shortest > words_and_lengths(ours).lengths.longest
        if recurrence is None or not recurrence.has_state or not is_beyond:
            return ""
        try:
            task = load_task(ours.data.task)
            mine = predict(task, ours.model_settings)
            its = mine if paper is None else predict(task, paper.model_settings)
        except StatetrackError:
            return ""
        hopeless = mine.can == "no" or (paper is not None and mine.answer == its.answer == "no")
        return f"impossible by theory: {shortened(mine.theorem, 120)}" if hopeless else ""


def _other_question(ours: Experiment, paper: Experiment) -> Iterator[str]:
    """What the model is asked otherwise than in the paper: task, lengths, supervision."""
    if current_name(ours.data.task) != current_name(paper.data.task):
        yield f"task {ours.data.task} for {paper.data.task}"
    if ours.data.words != paper.data.words:
        yield f"words '{ours.data.words}' for '{paper.data.words}'"
    here, there = words_and_lengths(ours), words_and_lengths(paper)
    if str(here.lengths) != str(there.lengths):
        yield f"trained on lengths {here.lengths} for {there.lengths}"
    if here.supervision != there.supervision:
        said = {"every": "after every symbol", "last": "after the last symbol only"}
        yield f"labels {said[here.supervision]}, there {said[there.supervision]}"


def _share_of_words(steps: int, ours: Experiment, paper: Experiment | None) -> float | None:
    """The training words of a replica as a share of the paper's; None where those are not known."""
    if paper is None:
        return None
    theirs = paper.training.steps * paper.training.batch_size
    return steps * ours.training.batch_size / theirs


def _lengths(result: PointResult) -> list[int]:
    return sorted({row.length for row in result.every_row})


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"


def _shown(value: Any) -> str:
    match value:
        case bool():
            return str(value)
        case int():
            return f"{value:,}"
        case float():
            return f"{value:g}"
        case list() | tuple():
            return "/".join(map(_shown, value))
        case _:
            return str(value)


def _either(texts: Sequence[str]) -> str:
    return " or ".join(filter(None, [", ".join(texts[:-1]), texts[-1]]))
