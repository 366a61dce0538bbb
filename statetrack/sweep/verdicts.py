"""The verdict on each published number: whether what was measured agrees with it.

A published number is compared with one measured statistic: the table's `measure` at the mean over
its `lengths`, of the replicas that `of` says: the selected one, the best of all, or median and mean
of those with the learning rate of the selected one. Selection never looks at test words; `best`
does, and is taken only where the paper reports its best run. Both are ranges: ours is what the test
words leave open (95 % intervals; of a horizon also what lies between two tested lengths), the
published one reaches `within` to both sides, or to where its source looked. In this order:

- *not comparable*, where nothing was measured: the point failed or was not run, all its replicas
  diverged, or the table's lengths were not tested;
- *not comparable*, where the question is another: what the table says under `unlike`; another task
  or training length than the suite has in its paper's settings, or labels that ask for less;
- *impossible*, as predicted, where theory says that neither model can track the task at such
  lengths, and our range lies within the published one. No training is needed for it, so that it is
  no agreement;
- *not comparable*, where training was not finished: the model is not right on 99 % of words of the
  training lengths, has seen fewer words than the paper's (or nobody knows how many those were), and
  is no better than published and not solved. Failing then says nothing, and least of all where the
  published model failed too;
- *not comparable*, where our range has numbers inside and outside the published one: too few test
  words, or too few tested lengths; and where it comes as close to its end as `NEAR` and was run
  with fewer than `SEEDS` seeds;
- *agrees*, where our range lies within the published one;
- *differs* otherwise. What was trained otherwise than in the paper is named.

A row that the source prints once for several of ours counts once: it differs where one of ours
does, and is not comparable where one is not.

torch is not imported here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, NamedTuple

from statetrack.errors import StatetrackError
from statetrack.runs import WITHOUT_EFFECT, EvaluationRow, Experiment, RunFolder, Summary, files
from statetrack.scoring import (
    NOISE,
    ReplicaSpread,
    horizon_of,
    rescale,
    rounded_down,
    rounded_up,
    wilson,
)
from statetrack.spec import current_name, load_task
from statetrack.sweep.results import Done, Point, PointResult
from statetrack.sweep.suite import TRAINED_BY, Measure, Of, PublishedTable, Suite, Trust
from statetrack.training import PROTOCOLS

Verdict = Literal["agrees", "differs", "impossible", "not comparable"]

VERDICTS: tuple[Verdict, ...] = ("agrees", "differs", "impossible", "not comparable")

FINISHED = 0.99
"""The share of words of the training lengths, right at every position, that is finished."""

NEAR = 0.05
"""How close to the end of what agrees a number is near it; of a horizon, a share of it."""

SEEDS = 3
"""The seeds that a number near the end is run with before it counts."""


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One published number beside what was measured.

    `row` is the row's name in the source, and `rows` are those of ours that it stands for.
    `measured` is None where nothing was, and else that of the row which decides; `why` names the
    difference of protocol, or of numbers, or the theorem. `right` of `replicas` answered every test
    word rightly at every position. `unlike` numbers are not comparable whatever is measured.
    """

    row: str
    rows: tuple[str, ...]
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
    unlike: bool = False

    def is_about(self, places: Container[tuple[str, str]]) -> bool:
        """Whether one of our rows, at its column, is among some rows and columns."""
        return any((row, self.column) in places for row in self.rows)

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
    theorems: dict[tuple[str, str], str] = {}
    rows = suite.rows
    compared = []
    for table in suite.published_tables:
        for row, values in table.values.items():
            ours = [each for each in table.covers.get(row, (row,)) if each in rows]
            for column, value in values.items():
                each_of_ours = [
                    _Beside(
                        suite=suite,
                        table=table,
                        row=one,
                        column=column,
                        published=value,
                        point=places.get((one, column)),
                        result=found.get((one, column)),
                        summary_of=summary_of,
                        theorems=theorems,
                    ).compared()
                    for one in ours or [row]
                ]
                compared.append(_together(row, each_of_ours))
    return tuple(compared)


def open_numbers(suite: Suite, points: Iterable[Point]) -> dict[tuple[str, str], float]:
    """How many published numbers wait for each of some points, by row and column.

    One that stands for several rows counts in parts. Those that are not comparable whatever is
    measured wait for nothing.
    """
    waiting = dict.fromkeys(((point.row, point.column) for point in points), 0.0)
    for table in suite.published_tables:
        for row, values in () if table.unlike else table.values.items():
            ours = table.covers.get(row, (row,))
            for place in ((one, column) for column in values for one in ours):
                if place in waiting:
                    waiting[place] += 1 / len(ours)
    return {place: number for place, number in waiting.items() if number}


_DECIDES: tuple[Verdict, ...] = ("differs", "not comparable", "agrees", "impossible")
"""Of several rows that the source prints as one, the first of these that one of them has."""


def _together(row: str, ours: Sequence[Compared]) -> Compared:
    """One published number beside all rows of ours that it stands for."""
    decides = min(ours, key=lambda each: _DECIDES.index(each.verdict))
    if len(ours) == 1:
        return replace(decides, row=row)
    return replace(
        decides,
        row=row,
        rows=tuple(each.row for each in ours),
        why=f"{decides.row}: {decides.why}",
        right=sum(each.right for each in ours),
        replicas=sum(each.replicas for each in ours),
    )


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


def papers_unknown(suite: Suite) -> tuple[str, ...]:
    """The settings of the paper's protocol that the paper does not give: values are taken there."""
    protocol = (suite.paper or suite.whole).protocol
    return PROTOCOLS[protocol].unknown if protocol else ()


_LABELS = {"every": "after every symbol", "last": "after the last symbol only"}


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
    mine, its = ours.words_of(), papers.words_of()
    if mine.supervision != its.supervision:
        said.append(f"labels {_LABELS[mine.supervision]}, there {_LABELS[its.supervision]}")
    return said


def departures_from_paper(suite: Suite, points: Sequence[Point]) -> str:
    """Every setting in which any point is trained otherwise than its paper does, with both values.

    It is computed from the settings; empty where nothing differs, or the paper's are not known.
    Settings that the protocol names as unknown are left out.
    """
    found: dict[str, tuple[list[str], list[str]]] = {}
    out = {*_ABOUT_THE_MACHINE, *papers_unknown(suite)}
    for point in points:
        paper = papers_experiment(suite, point)
        if paper is None:
            continue
        here, there = point.experiment.values(), paper.values()
        for name in {**here, **there}:
            if name in out or here.get(name) == there.get(name):
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


_ABOUT_THE_MACHINE: frozenset[str] = WITHOUT_EFFECT | {"seed"}
"""Settings that change no result, and the first seed."""


class _Range(NamedTuple):
    """A number as it was read, and the least and the greatest that it can be."""

    value: float
    low: float
    high: float

    def inside(self, other: _Range) -> bool:
        """Whether all of it lies within another."""
        return other.low - NOISE <= self.low and self.high <= other.high + NOISE

    def apart(self, other: _Range) -> bool:
        """Whether the two have no number in common."""
        return self.high < other.low - NOISE or other.high + NOISE < self.low


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
    theorems: dict[tuple[str, str], str] = field(default_factory=dict)  # those already looked up

    def compared(self) -> Compared:
        table, lengths = self.table, self.lengths
        result = self.result if isinstance(self.result, PointResult) else None
        measured = None if result is None else self._statistic(result, self._measured_of)
        verdict, why = self._verdict(result, measured)
        notes = [why, table.note, "best of all replicas" * (table.of == "best")]
        return Compared(
            row=self.row,
            rows=(self.row,),
            column=self.column,
            source=table.source,
            reference=table.reference or self.suite.reference,
            trust=table.trust,
            measure=table.measure,
            of=table.of,
            lengths=lengths,
            published=self.published,
            measured=None if measured is None else measured.value,
            verdict=verdict,
            why="; ".join(filter(None, notes)),
            right=0 if result is None else result.num_right,
            replicas=0 if result is None else result.replicas,
            unlike=bool(table.unlike),
        )

    @property
    def lengths(self) -> tuple[int, ...]:
        """The lengths that the number is about; none of a horizon, which all tested are about."""
        if self._is_horizon:
            return ()
        return self.table.lengths or (self.suite.whole.length,)

    def _verdict(self, result: PointResult | None, measured: _Range | None) -> tuple[Verdict, str]:
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
        if paper is not None and (question := self._other_question(ours, paper)):
            return "not comparable", question
        alike, apart = measured.inside(self._agreeing), measured.apart(self._agreeing)
        if alike and (theorem := self._theorem(ours, paper)):
            return "impossible", theorem
        share = None
        if paper is not None and "steps" not in papers_unknown(self.suite):
            share = _share_of_words(result.steps, ours, paper)
        if unfinished := self._unfinished(result, measured, share):
            return "not comparable", unfinished
        if not (alike or apart):
            return "not comparable", self._undecided(result, measured)
        seeds = len({replica.seed for replica in ours.replicas})
        if seeds < SEEDS and (near := self._near(measured)):
            seeds_run = f"{seeds} seed was" if seeds == 1 else f"{seeds} seeds were"
            return "not comparable", f"{near}, and {seeds_run} run, of {SEEDS} that it takes there"
        if alike:
            return "agrees", self._agreement
        causes = trained_otherwise(ours, paper) if paper is not None else []
        if share is not None and share < 1:
            causes.append(f"{_percent(share)} of the paper's training words")
        known = f"; trained with {', '.join(causes)}" if causes else ""
        return "differs", f"{self._difference(measured.value)}{known}"

    def _other_question(self, ours: Experiment, paper: Experiment) -> str:
        """What the model is asked otherwise than in the paper: task, words, lengths, supervision.

        A label after every symbol asks for what one after the last symbol does, of a word and of
        its prefixes. So shorter words, and such labels in place of the last one alone where the
        number is about last positions, are another training and no other question.
        """
        found = []
        if current_name(ours.data.task) != current_name(paper.data.task):
            found.append(f"task {ours.data.task} for {paper.data.task}")
        if ours.data.words != paper.data.words:
            found.append(f"words '{ours.data.words}' for '{paper.data.words}'")
        here, there = ours.words_of(), paper.words_of()
        at_last = self.table.measure in ("accuracy", "scaled")
        same_labels = here.supervision == there.supervision
        asks_no_less = here.supervision == "every" and (same_labels or at_last)
        same_longest = here.lengths.longest == there.lengths.longest
        if str(here.lengths) != str(there.lengths) and not (asks_no_less and same_longest):
            found.append(f"trained on lengths {here.lengths} for {there.lengths}")
        if not (same_labels or asks_no_less):
            found.append(f"labels {_LABELS[here.supervision]}, there {_LABELS[there.supervision]}")
        return "; ".join(found)

    # --- what agrees with the published number ---

    @property
    def _is_horizon(self) -> bool:
        return self.table.measure == "horizon"

    @cached_property
    def _agreeing(self) -> _Range:
        """The published number, and the least and the greatest that agree with it.

        A share of 0 agrees with all that are below: scaled accuracies fall below 0 by chance. A
        horizon is known up to the next length that the source tested: 0, which stands for a cross,
        up to its first, and its longest for all that are longer.
        """
        table, number = self.table, self.published
        if not self._is_horizon:
            is_failure = table.measure != "accuracy" and number <= table.within
            return _Range(
                number, -math.inf if is_failure else number - table.within, number + table.within
            )
        if not number:
            return _Range(0, -math.inf, min(table.tested, default=0))
        within = table.within * number
        longer = [length for length in table.tested if length > number]
        is_longest = bool(table.tested) and not longer
        high = math.inf if is_longest else min(longer, default=number) + within
        return _Range(number, number - within, high)

    @property
    def _agreement(self) -> str:
        within = self.table.within
        if not self._is_horizon:
            return f"at most {within:g} apart"
        if not self.published:
            return f"both below {self._agreeing.high:,.0f}"
        return f"at most {within:.0%} apart"

    def _difference(self, measured: float) -> str:
        apart = abs(measured - self.published)
        text = f"{apart:.2f}" if apart >= 0.01 else f"{apart:.1g}"
        if self._is_horizon:
            text = f"{apart:,.0f} symbols"
        return f"{text} {'above' if measured > self.published else 'below'}"

    def _near(self, measured: _Range) -> str:
        """How close the number is to where agreeing ends; empty where it is not."""
        ends = [end for end in self._agreeing[1:] if math.isfinite(end)]
        unit = max(1.0, self.published) if self._is_horizon else 1.0
        read = [measured.value]
        if self._is_horizon:
            read += [each for each in measured[1:] if math.isfinite(each)]
        reachable = [end for end in ends if self._is_horizon or end < 1]
        distance = min((abs(each - end) / unit for each in read for end in reachable), default=1.0)
        if round(distance, 2) >= NEAR:
            return ""
        if self._is_horizon:
            return f"{distance * unit:,.0f} symbols from where agreeing ends"
        return f"{distance:.2f} from where agreeing ends"

    # --- what was measured ---

    def _statistic(
        self, result: PointResult, value_of: Callable[[PointResult, int], _Range | None]
    ) -> _Range | None:
        """The table's statistic of a number that each replica has; None where nothing was scored.

        Median and mean are of the replicas with the learning rate of the selected one, as a source
        reports them of seeds at the rate that it chose. A replica that diverged counts as 0. The
        statistic of the least and of the greatest values is the range.
        """
        if self.table.measure == "success":
            if result.measured.length not in self.lengths:
                return None
            right = round(result.success * result.replicas)
            return _Range(result.success, *wilson(right, result.replicas))
        if not result.every_row:
            return None
        if self.table.of == "selected":
            chosen = result.selected
            return None if chosen is None else value_of(result, chosen.replica)
        trained = {row.replica for row in result.every_row}
        values = []
        for replica in self._counted(result):
            value = value_of(result, replica) if replica in trained else _Range(0.0, 0.0, 0.0)
            if value is None or any(map(math.isnan, value)):
                return None
            values.append(value)
        return _Range(
            *(getattr(ReplicaSpread.of(each), self.table.of) for each in zip(*values, strict=True))
        )

    def _counted(self, result: PointResult) -> Iterable[int]:
        """The replicas that `of` is about, by number; all where none was selected."""
        assert self.point is not None
        replicas, chosen = self.point.experiment.replicas, result.selected
        if self.table.of == "best" or chosen is None:
            return range(result.replicas)
        rate = replicas[chosen.replica].lr
        return [each for each in range(result.replicas) if replicas[each].lr == rate]

    def _measured_of(self, result: PointResult, replica: int) -> _Range | None:
        """The table's measure of one replica; None where a length was not tested."""
        rows = {row.length: row for row in result.every_row if row.replica == replica}
        if self._is_horizon:
            return self._horizon([rows[length] for length in sorted(rows)])
        if not set(self.lengths) <= set(rows):
            return None
        ranges = [_scored(rows[length], self.table.measure) for length in self.lengths]
        found = _Range(*map(fmean, zip(*ranges, strict=True)))
        if self.table.lengths_from is not None:
            shorter = [length for length in rows if length < self.table.lengths_from]
            first = _scored(rows[max(shorter)], self.table.measure).high if shorter else 1.0
            highs = [first, *(each.high for each in ranges[:-1])]
            found = found._replace(high=max(found.high, fmean(highs)))
        return None if math.isnan(found.value) else found

    def _horizon(self, rising: Sequence[EvaluationRow]) -> _Range:
        """The longest tested length that passes, and between which lengths it can lie.

        It is at least the last one up to which all pass for sure, and below the first that fails
        for sure.
        """
        threshold = self.table.threshold
        fails = [row.length for row in rising if row.high < threshold]
        return _Range(
            float(horizon_of([(row.length, row.accuracy) for row in rising], threshold)),
            float(horizon_of([(row.length, row.low) for row in rising], threshold)),
            float(fails[0]) if fails else math.inf,
        )

    def _nothing_measured(self, result: PointResult) -> str:
        if not result.every_row:
            return "not measured: all replicas diverged"
        asked = ", ".join(f"{length:,}" for length in self.lengths)
        tested = ", ".join(f"{length:,}" for length in _lengths(result))
        return f"not measured at length {asked}: tested at {tested}"

    def _undecided(self, result: PointResult, measured: _Range) -> str:
        """Why the test cannot tell the two numbers apart."""
        if self.table.measure == "success":
            said = f"{result.replicas:,} replicas do"
        else:
            words = min(row.sequences for row in result.every_row)
            said = "1 test word does" if words == 1 else f"{words:,} test words do"
        if not self._is_horizon:
            interval = f"{rounded_down(measured.low)} to {rounded_up(measured.high)}"
            if self.table.lengths_from is not None:
                said = f"{said.removesuffix(' do')} at {len(self.lengths)} lengths do"
            return f"{said} not tell them apart: 95 % interval {interval}"
        after = min((n for n in _lengths(result) if n > measured.value), default=math.inf)
        if (measured.low, measured.high) != (measured.value, after):
            open_end = math.isinf(measured.high)
            between = f"{measured.low:,.0f} and {'more' if open_end else f'{measured.high:,.0f}'}"
            return f"{said} not tell them apart: it lies between {between}"
        if math.isinf(after):
            return f"tested to {measured.value:,.0f} symbols only"
        return f"it lies between two tested lengths, {measured.value:,.0f} and {after:,.0f}"

    # --- whether training was finished ---

    def _unfinished(self, result: PointResult, measured: _Range, share: float | None) -> str:
        """Why a failure says nothing; empty where training was finished, or the number is better.

        A solved test needs no more training, whatever validation says, and replicas that are right
        on every test word are trained.
        """
        if share is not None and share >= 1:
            return ""
        if self._is_horizon:
            solved = measured.value >= max(_lengths(result))
        else:
            solved = measured.value >= 1 - self.table.within
        if self.table.measure == "success" and self.published > self.table.within:
            solved = solved or measured.inside(self._agreeing)
        if solved or measured.low > self._agreeing.high:
            return ""
        learned = self._learned(result)
        if learned is not None and learned >= FINISHED:
            return ""
        words = (
            "how many words the paper trained on is not known"
            if share is None
            else f"it saw {_percent(share)} of the paper's training words"
        )
        known = "a share not known" if learned is None else rounded_down(learned)
        return f"training was not finished: {known} of words of its lengths right; {words}"

    def _learned(self, result: PointResult) -> float | None:
        """The share of right words of the training lengths, of the same replicas as the number.

        None where the run does not say it.
        """
        summary = self.summary_of(Path(result.run))
        if summary is None:
            return None
        shares = {}
        for each in summary.replicas:
            if each.diverged:
                shares[each.replica] = 0.0
            elif each.validation_prefix_accuracy is None:
                return None
            else:
                shares[each.replica] = each.validation_prefix_accuracy
        if self.table.measure == "success":
            return fmean(shares.values())
        if self.table.of == "best":
            values = {r: self._measured_of(result, r) or _Range(0.0, 0.0, 0.0) for r in shares}
            return shares[max(values, key=lambda replica: values[replica].value)]

        def share_of(_: PointResult, replica: int) -> _Range:
            share = shares.get(replica, 0.0)
            return _Range(share, share, share)

        found = self._statistic(result, share_of)
        return None if found is None else found.value

    def _theorem(self, ours: Experiment, paper: Experiment | None) -> str:
        """Why neither model can have more than published; empty where theory leaves it open.

        It says so of failures that reach beyond the training lengths, which no theorem forbids to
        fit.
        """
        if self._is_horizon:
            fails_by = self._agreeing.high
        else:
            fails_by = max(self.lengths) if self._agreeing.high < 1 else math.inf
        if math.isinf(fails_by) or fails_by <= ours.words_of().lengths.longest:
            return ""
        place = self.row, self.column
        if place not in self.theorems:
            self.theorems[place] = _theorem(ours, paper)
        return self.theorems[place]


def _scored(row: EvaluationRow, measure: Measure) -> _Range:
    """A share of one row, with its 95 % interval."""
    if measure == "prefixes":
        share = row.prefix_accuracy
        right = 0 if math.isnan(share) else round(share * row.sequences)
        return _Range(share, *wilson(right, row.sequences))
    if measure == "scaled":
        return _Range(row.scaled, rescale(row.low, row.chance), rescale(row.high, row.chance))
    return _Range(row.accuracy, row.low, row.high)


def _theorem(ours: Experiment, paper: Experiment | None) -> str:
    """Why neither model can track the task, however trained; empty where theory leaves it open.

    Without the paper's settings, only what no size would change counts. What holds of a model
    whose state grows with the word is about its limit alone, and forbids no length.
    """
    from statetrack.models import recurrence_of
    from statetrack.predicting import predict

    recurrence = recurrence_of(ours.model_settings)
    if recurrence is None or not recurrence.has_state:
        return ""
    try:
        task = load_task(ours.data.task)
        mine = predict(task, ours.model_settings)
        its = mine if paper is None else predict(task, paper.model_settings)
    except StatetrackError:
        return ""
    hopeless = mine.can == "no" or (paper is not None and mine.answer == its.answer == "no")
    return mine.theorem if hopeless else ""


def _share_of_words(steps: int, ours: Experiment, paper: Experiment) -> float:
    """The training words of a replica as a share of the paper's."""
    theirs = paper.training.steps * paper.training.batch_size
    return steps * ours.training.batch_size / theirs


def _lengths(result: PointResult) -> list[int]:
    return sorted({row.length for row in result.every_row})


def _percent(share: float) -> str:
    """A share below 1, which is not written as 100 %."""
    return f"{min(100 * share, 99):.2g} %"


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
