"""A run as its files have it, and what they say of it, without torch: the one reading of a run.

`compare`, reports, lists, figures and the atlas read runs by `RunFacts`; `Run`, which trains and
scores, has the same facts. Each is read once it is asked for, and numpy is imported where the task
is read, so that a list of many runs does without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from statetrack.errors import RunError, StatetrackError, TaskError, setting
from statetrack.evidence import Bracket, Evidence, word_text
from statetrack.evidence import Verdict as Proven
from statetrack.runs import files
from statetrack.runs.folder import Readable, RunFolder
from statetrack.runs.rows import EvaluationRow, EvidenceRow, Outcome, Summary, known_evidence
from statetrack.scoring import horizon

if TYPE_CHECKING:
    from statetrack.algebra import Algebra, Prediction
    from statetrack.runs.config import Experiment
    from statetrack.runs.tensors import Unfinished
    from statetrack.spec import Task, WordSpec
    from statetrack.training import Record, Replica, TaskWords

T = TypeVar("T")

State = Literal["finished", "unfinished", "diverged"]

Tracking = Literal["tracks", "partly", "no"]


@dataclass(frozen=True)
class Measured:
    """The result of one replica on words longer than those it was trained on.

    It `tracks` if every answer at every position is right in every evaluation at any of these
    lengths, and `partly` if that holds up to one of them, or if at the longest the lower end of the
    95 % interval of the accuracy is above the floor. Of several evaluations at one length the worst
    counts. `nonfinite_from` is the first position of the words of `length` at which a logit was NaN
    or infinite, or None.

    A word that is known to be answered wrongly makes it `partly` at best: `fails_at` is the
    position of the first wrong answer, `failing_word` the word. `worst_case` is the length up to
    which all words are right that were sought to make it fail. `proven` says what is proven,
    `proven_length` to which length (None: every length), and `machine` whether the machine that was
    extracted is the task's. They are None where they are not known.

    Words with one possible answer test nothing, for a constant is right on them: `tests` says
    whether there were others.
    """

    replica: int
    verdict: Tracking
    horizon: int
    length: int
    sequences: int
    accuracy: float
    low: float
    high: float
    floor: float
    nonfinite_from: int | None
    fails_at: int | None = None
    failing_word: str | None = None
    worst_case: int | None = None
    proven: Proven | None = None
    proven_length: int | None = None
    machine: bool | None = None
    tests: bool = True

    @classmethod
    def of(
        cls,
        rows: Mapping[int, EvaluationRow],
        reach: int,
        longest_trained: int,
        tests: Callable[[EvaluationRow], bool],
    ) -> Measured:
        """The result of one replica, from the worst row of each length and its horizon."""
        beyond = sorted(length for length in rows if length > longest_trained)
        farthest = rows[beyond[-1]]
        if all(rows[length].all_right for length in beyond):
            verdict: Tracking = "tracks"
        elif reach > longest_trained or farthest.low > farthest.floor:
            verdict = "partly"
        else:
            verdict = "no"
        return Measured(
            replica=farthest.replica,
            verdict=verdict,
            horizon=reach,
            length=farthest.length,
            sequences=farthest.sequences,
            accuracy=farthest.accuracy,
            low=farthest.low,
            high=farthest.high,
            floor=farthest.floor,
            nonfinite_from=farthest.nonfinite_from,
            tests=any(tests(rows[length]) for length in reversed(beyond)),
        )

    def weighed_with(self, bracket: Bracket | None, symbols: Sequence[str]) -> Measured:
        """What random words say of a replica, with the words that were sought and proofs."""
        if bracket is None:
            return self
        failure, worst, machine = bracket.failure, bracket.worst_case, bracket.extraction
        tracks = self.verdict == "tracks"
        return replace(
            self,
            verdict="partly" if tracks and failure is not None else self.verdict,
            fails_at=bracket.fails_at,
            failing_word=None if failure is None else word_text(failure, symbols),
            worst_case=None if worst is None else bracket.right_to,
            proven=bracket.verdict,
            proven_length=bracket.proven,
            machine=None if machine is None else machine.equivalent,
        )


class Algebras:
    """The algebra of each task, computed once for all runs on it."""

    def __init__(self) -> None:
        self._known: dict[str, Algebra] = {}
        self._identified: dict[tuple[str, WordSpec], bool | None] = {}

    def of(self, task: Task) -> Algebra:
        """The algebra of a task.

        Raises `TaskError` for a task without an automaton.
        """
        from statetrack.predicting import algebra_of
        from statetrack.spec import golden_hash

        automaton, name = task.automaton, golden_hash(task)
        if name not in self._known:
            self._known[name] = algebra_of(automaton)
        return self._known[name]

    def identified_by(self, words: WordSpec, task: Task) -> bool | None:
        """Whether words identify the machine of a task; None where it is not known.

        Raises `TaskError` for a task without an automaton.
        """
        from statetrack.predicting import identification_by
        from statetrack.spec import golden_hash

        machine, key = self.of(task).machine, (golden_hash(task), words)
        if key not in self._identified:
            found = identification_by(words, machine)
            self._identified[key] = found.by_words_up_to(words.lengths.longest)
        return self._identified[key]


@dataclass(frozen=True)
class _ReadOnce(RunFolder):
    """A run on disk that is looked at as it is now: each of its files is read once."""

    _held: dict[object, Any] = field(default_factory=dict, compare=False)

    def read(self, file: Readable[T]) -> T:
        """What a file of the run holds, which is not to be changed."""
        if file not in self._held:
            self._held[file] = super().read(file)
        found: T = self._held[file]
        return found

    def weights_hash(self) -> str | None:
        """The hash of the run's weights, whose head is read once."""
        if files.WEIGHTS not in self._held:
            self._held[files.WEIGHTS] = super().weights_hash()
        found: str | None = self._held[files.WEIGHTS]
        return found


class RunFacts:
    """The settings, the task, the outcome, the scores and the evidence of a run.

    No model can be built of it: `Run.open` reads a run for that. Runs with the same `algebras` have
    those of their tasks computed once.
    """

    def __init__(self, folder: RunFolder, algebras: Algebras | None = None) -> None:
        self.folder = folder
        self.unfinished: Unfinished | None = None
        self._algebras = algebras or Algebras()
        self._one_answer: dict[tuple[str, int], bool] = {}

    @classmethod
    def read(cls, path: Path | str, algebras: Algebras | None = None) -> RunFacts:
        """The run of an existing folder as it is now, whose settings and task are known.

        Raises `RunError` where the folder is not a run, and where the names that it needs are
        registered by its own plugin alone.
        """
        from statetrack.runs.plugins import load_plugins

        folder = _ReadOnce.open(Path(path))
        load_plugins(folder, trust=False)
        run = RunFacts(folder, algebras)
        _ = run.experiment, run.task
        return run

    @cached_property
    def config(self) -> dict[str, Any]:
        """What config.yaml holds."""
        return self.folder.read(files.CONFIG)

    @cached_property
    def experiment(self) -> Experiment:
        """The settings, to be read only.

        Raises `StatetrackError` where they are damaged, and where a name is not registered.
        """
        from statetrack.runs.config import Experiment

        return Experiment.from_values(self.config, self._config_file, to_build=False)

    @cached_property
    def task(self) -> Task:
        """The run's own copy of the task.

        Raises `StatetrackError` where it is damaged, and where its kind is not registered.
        """
        from statetrack.spec import load_task

        return load_task(str(files.TASK.require(self.path)))

    @cached_property
    def needs_plugin(self) -> bool:
        """Whether a name that the run needs is registered by its own plugin alone."""
        if not self.folder.plugins:  # most runs have none
            return False
        from statetrack.runs.plugins import needs_plugin

        return needs_plugin(self.folder)

    @property
    def _config_file(self) -> str:
        return str(self.path / files.CONFIG.name)

    @cached_property
    def _extent(self) -> tuple[tuple[Replica, ...], int]:
        """Every seed at every learning rate, and the steps, whatever the other settings are."""
        from statetrack.settings import build
        from statetrack.training import TrainSettings, replicas_of

        names = ("seed", "seeds", "lrs", "steps")
        given = {name: self.config[name] for name in names if name in self.config}
        complete = len(given) == len(names)  # as training writes them: the model need not be known
        training = (
            build(TrainSettings, given, self._config_file) if complete else self.experiment.training
        )
        seeds = range(training.seed, training.seed + training.seeds)
        return replicas_of(seeds, training.lrs), training.steps

    @property
    def path(self) -> Path:
        """The run's folder."""
        return self.folder.path

    @property
    def finished(self) -> bool:
        """Whether training has finished."""
        return self.folder.finished

    @property
    def state(self) -> State:
        """Whether training has finished, and with trained weights."""
        if not self.finished:
            return "unfinished"
        return "diverged" if self.summary.chosen is None else "finished"

    @property
    def step(self) -> int:
        """The steps of training so far."""
        if self.finished:
            return self.summary.steps
        return max((record.step for record in self.records), default=0)

    @cached_property
    def environment(self) -> Mapping[str, Any]:
        """What environment.json holds."""
        return self.folder.read(files.ENVIRONMENT)

    @cached_property
    def prediction(self) -> Prediction | None:
        """The prediction for the run's settings on its task; None without an automaton."""
        from statetrack.predicting import predict

        try:
            algebra = self._algebras.of(self.task)
        except TaskError:
            return None
        return predict(algebra, self.experiment.model_settings)

    @property
    def unpredictable(self) -> str:
        """Why nothing can be predicted; empty where something is."""
        try:
            self._algebras.of(self.task)
        except TaskError as problem:
            return str(problem)
        return ""

    @property
    def identified(self) -> bool | None:
        """Whether words of the training lengths identify the task's machine; None if not known.

        That is known where every word of the task's is drawn, and something is predicted.
        """
        from statetrack.spec import OWN

        if self.experiment.data.words not in (OWN, "uniform") or self.prediction is None:
            return None
        return self._algebras.identified_by(self.words.spec, self.task)

    @cached_property
    def words(self) -> TaskWords:
        """The words that the run is trained and validated on."""
        from statetrack.training import TaskWords

        copy = self.folder.frequencies_file
        return TaskWords(self.task, self.experiment.data, self.experiment.training, copy)

    @property
    def records(self) -> list[Record]:
        """The records of training so far."""
        records, num_replicas = self.folder.read(files.METRICS), len(self._extent[0])
        for number, record in enumerate(records, start=1):
            if record.replica >= num_replicas:
                raise RunError(
                    f"{self.path}: line {number} of metrics.jsonl does not belong to config.yaml: "
                    f"there is no replica {record.replica}"
                )
        return records

    @property
    def summary(self) -> Summary:
        """The outcome of the run.

        Raises `RunError` where training has not finished, where it is that of another run, and
        where the weights are.
        """
        if self.unfinished is not None:
            return self.unfinished.summary
        summary, (replicas, steps) = self.folder.read(files.SUMMARY), self._extent
        weights = self.folder.weights_hash()
        if len(summary.replicas) != len(replicas):
            wrong = f"it has {len(summary.replicas)} replicas and not {len(replicas)}"
        elif summary.steps > steps:
            wrong = f"it has {summary.steps} steps of {steps}"
        elif (stranger := next(filter(self._is_foreign, summary.replicas), None)) is not None:
            wrong = f"it has {_named(stranger)}"
        elif None not in (summary.weights, weights) and summary.weights != weights:
            raise RunError(
                f"{self.path}: summary.json does not belong to weights.safetensors: it was written "
                "with other weights"
            )
        else:
            return summary
        raise RunError(f"{self.path}: summary.json does not belong to config.yaml: {wrong}")

    @property
    def selected(self) -> Outcome:
        """The outcome of the replica that validation selected.

        Raises `RunError` where training has not finished, and where all replicas diverged.
        """
        chosen = self.summary.chosen
        if chosen is None:
            raise RunError(
                f"{self.path}: the run diverged: no replica has a finite validation loss, so none "
                f"is selected; train it again with lower {setting('lrs')}, or with gradients "
                f"clipped ({setting('clip', 1.0)})"
            )
        return chosen

    @property
    def rows(self) -> list[EvaluationRow]:
        """The rows of all evaluations so far.

        Raises `RunError` where one is not of this run.
        """
        rows = self.folder.evaluations()
        for number, row in enumerate(rows, start=1):
            if self._is_foreign(row):
                raise RunError(
                    f"{self.path}: line {number} of eval.jsonl does not belong to config.yaml: "
                    f"it has {_named(row)}"
                )
        return rows

    def evidence(self, kind: type[Evidence] | None = None) -> list[EvidenceRow]:
        """The evidence about the run's weights, merged: one row of each replica, task and kind.

        With `kind`, only of that kind. Raises `RunError` where a row is not of this run, or names
        symbols or labels that the task has not.
        """
        rows = self.folder.evidence()
        if (stranger := next(filter(self._is_foreign, rows), None)) is not None:
            raise RunError(
                f"{self.path}: evidence.jsonl does not belong to config.yaml: it has "
                f"{_named(stranger)}"
            )
        source = self.task.source
        for row in rows:
            for failure in row.evidence.failures:
                word = (*failure.prefix, *failure.period, *failure.suffix)
                labels = (failure.label, failure.answer or 0)
                if not {*word} <= {*range(source.num_symbols)} or not {*labels} <= {
                    *range(source.num_labels)
                }:
                    raise RunError(
                        f"{self.path}: evidence.jsonl does not belong to task.yaml: a word of it "
                        "has other symbols or labels"
                    )
        return [
            row for row in known_evidence(rows) if kind is None or isinstance(row.evidence, kind)
        ]

    def _is_foreign(self, one: Outcome | EvaluationRow | EvidenceRow) -> bool:
        """Whether no replica of this run has that number, seed and learning rate."""
        replicas, _ = self._extent
        return not (
            0 <= one.replica < len(replicas)
            and (one.seed, one.lr) == (replicas[one.replica].seed, replicas[one.replica].lr)
        )

    def has_own_words(self, row: EvaluationRow) -> bool:
        """Whether a row was measured on words of the run's own task, drawn as in training."""
        return self.is_own(row) and row.words == self.experiment.data.words

    def is_own(self, row: EvaluationRow) -> bool:
        """Whether a row was measured on words of the run's own task, however they were drawn."""
        return row.task in (None, self.task.name)

    def counts(self, row: EvaluationRow) -> bool:
        """Whether a row counts in what is measured of the run's task.

        All words of the task's do; of a run that was trained on words drawn otherwise, which may
        lack some symbols, those that are drawn as in training.
        """
        from statetrack.spec import OWN

        everything = self.experiment.data.words in (OWN, "uniform")
        return self.is_own(row) and (everything or self.has_own_words(row))

    def tests(self, row: EvaluationRow) -> bool:
        """Whether words like those of a row have more than one right answer, as far as is known."""
        key = (row.words, row.length)
        if key not in self._one_answer:
            own = self.has_own_words(row)
            try:
                drawn = self.words.drawn if own else self.task.with_words(row.words)
                self._one_answer[key] = drawn.source.has_one_answer(row.length)
            except StatetrackError:  # the file that weighs them may be gone
                self._one_answer[key] = False
        return not self._one_answer[key]

    @property
    def last_rows(self) -> tuple[EvaluationRow, ...]:
        """The rows on the run's own words: the last of each replica and length."""
        return last_of_each(filter(self.has_own_words, self.rows))

    @property
    def newest_lengths(self) -> tuple[int, ...]:
        """The lengths at which the selected replica was evaluated last, on the run's own words."""
        found: list[EvaluationRow] = []
        for row in reversed([row for row in self.rows if row.selected and self.has_own_words(row)]):
            earlier = found and (
                row.length >= found[-1].length
                or row.sequences != found[-1].sequences
                or row.evaluation_seed != found[-1].evaluation_seed
            )
            if earlier:  # rows of one evaluation stand in rising order of length
                break
            found.append(row)
        return tuple(row.length for row in reversed(found))

    def brackets(self) -> dict[int, Bracket]:
        """Of each replica about which there is evidence, what is proven and where it fails.

        Evidence on the run's own task counts, about replicas that did not diverge. Empty where
        training has not finished.
        """
        if not self.finished:
            return {}
        trained = self.summary.trained
        found: dict[int, list[Evidence]] = {}
        for each in self.evidence():
            if each.task == self.task.name and each.replica in trained:
                found.setdefault(each.replica, []).append(each.evidence)
        wrong: dict[int, int] = {}
        for row in filter(self.is_own, self.rows):
            if row.first_error is not None:
                wrong[row.replica] = min(row.first_error, wrong.get(row.replica, row.first_error))
        return {
            replica: Bracket.of(evidence, wrong_at=wrong.get(replica))
            for replica, evidence in found.items()
        }

    def measured(self, brackets: Mapping[int, Bracket]) -> dict[int, Measured]:
        """The result of each replica that was evaluated on words longer than those of training.

        Of rows of one length that with the most errors counts, whichever seed its words have and
        however they are drawn: a replica that tracks is right on all of them. Without replicas that
        diverged, of which earlier versions scored the initial weights.
        """
        if not self.finished:
            return {}
        trained, longest_trained = self.summary.trained, self.words.lengths.longest
        worst: dict[int, dict[int, EvaluationRow]] = {}
        every: dict[int, list[EvaluationRow]] = {}
        for row in filter(self.counts, self.rows):
            if row.replica not in trained or row.accuracy != row.accuracy:
                continue  # words of which no position is scored
            every.setdefault(row.replica, []).append(row)
            kept = worst.setdefault(row.replica, {})
            before = kept.get(row.length)
            if before is None or _least_for_worst(row) < _least_for_worst(before):
                kept[row.length] = row
        symbols = self.task.source.symbols
        return {
            replica: Measured.of(
                rows, horizon(every[replica]), longest_trained, self.tests
            ).weighed_with(brackets.get(replica), symbols)
            for replica, rows in worst.items()
            if max(rows) > longest_trained
        }


def last_of_each(rows: Iterable[EvaluationRow]) -> tuple[EvaluationRow, ...]:
    """Of every replica and length the last row, by length and replica."""
    last = {(row.length, row.replica): row for row in rows}
    return tuple(last[key] for key in sorted(last))


def _least_for_worst(row: EvaluationRow) -> tuple[bool, float, float, float]:
    """A key that is least for the worst evaluation: lower accuracy, then more words."""
    return row.all_right, row.accuracy, row.prefix_accuracy, -row.sequences


def _named(one: Outcome | EvaluationRow | EvidenceRow) -> str:
    return f"replica {one.replica} with seed {one.seed} and learning rate {one.lr:g}"
