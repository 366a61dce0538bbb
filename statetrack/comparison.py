"""Comparison of measurement and prediction: accuracy of runs on long words, and their algebra.

A prediction is about a class of models: with these settings, some weights track the task. So a
single replica that tracks it agrees with a *yes*, and disagrees with a *no*.

The facts of each run are gathered first, and judged afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from statetrack.algebra import Algebra, Prediction, analyse
from statetrack.errors import StatetrackError, TaskError
from statetrack.evidence import Bracket, Evidence, word_text
from statetrack.evidence import Verdict as Proven
from statetrack.models import MODELS
from statetrack.predicting import identification_by, predict
from statetrack.runs import EvaluationRow, RecordedRun, RunFolder, Summary, code_of, needs_plugin
from statetrack.scoring import horizon, rounded_down
from statetrack.spec import OWN, Task, WordSpec, current_name, golden_hash

Verdict = Literal["tracks", "partly", "no"]
Outcome = Literal[
    "agree",
    "predicted no, tracks",
    "predicted yes, not reached",
    "contradiction",
    "nothing predicted",
    "not evaluated",
    "diverged",
    "unfinished",
    "needs its plugin",
    "broken",
]

DISAGREEMENTS: tuple[Outcome, ...] = (
    "predicted no, tracks",
    "predicted yes, not reached",
    "contradiction",
)
"""The outcomes in which measurement and prediction differ, or a proof from either."""


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
    """

    replica: int
    verdict: Verdict
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


@dataclass(frozen=True)
class Comparison:
    """One run: its measured results, its prediction, and whether the two agree.

    `selected` is the result of the replica that validation selected, `best` that of the best
    evaluated one; a replica that diverged has no result. `size_given` is the run's value of the
    setting that the prediction names in `size_of`. `identified` says whether words of the training
    lengths identify the task's machine. Unknown values are None, and an empty text in `reason` and
    `advice`.
    """

    run: Path
    outcome: Outcome
    task: str | None = None
    model: str | None = None
    settings: Mapping[str, Any] | None = None
    predicted: Literal["yes", "no", "unknown"] | None = None
    prediction: Prediction | None = None
    size_given: Any = None
    identified: bool | None = None
    selected: Measured | None = None
    best: Measured | None = None
    num_replicas: int | None = None
    num_diverged: int = 0
    num_evaluated: int = 0
    num_tracking: int = 0
    reason: str = ""
    advice: str = ""

    @property
    def readable(self) -> bool:
        """Whether the run's files could be read, and its model and its task are known."""
        return self.settings is not None

    @property
    def disagrees(self) -> bool:
        """Whether measurement and prediction differ."""
        return self.outcome in DISAGREEMENTS

    def to_json(self) -> dict[str, Any]:
        """The comparison as plain values."""
        prediction = None if self.prediction is None else self.prediction.to_json()
        return asdict(self) | {
            "run": str(self.run),
            "prediction": prediction,
            "disagrees": self.disagrees,
        }


@dataclass(frozen=True)
class Facts:
    """The facts about a readable run on which its outcome depends.

    `prediction` is None where nothing can be predicted; `unpredictable` is then the reason.
    `summary` is None where training has not finished. `measured` has the replicas that were
    evaluated beyond the training lengths.
    """

    run: RecordedRun
    settings: Mapping[str, Any]
    prediction: Prediction | None
    unpredictable: str
    summary: Summary | None
    measured: Mapping[int, Measured]
    brackets: Mapping[int, Bracket] = field(default_factory=dict)
    """Of each replica about which there is evidence, what is proven and where it fails."""
    identified: bool | None = None
    """Whether words of the training lengths identify the task's machine; None if not known."""

    @property
    def best(self) -> Measured | None:
        """The result of the best replica."""
        selected = None if self.summary is None else self.summary.selected
        return max(self.measured.values(), key=lambda one: _merit(one, selected), default=None)

    @property
    def size_given(self) -> Any:
        """The run's value of the setting that the prediction names in `size_of`."""
        needs = self.prediction.needs if self.prediction else ()
        return needs[0].given if needs else None


class Algebras:
    """The algebra of each task, computed once for all runs on it."""

    def __init__(self) -> None:
        self._known: dict[str, Algebra] = {}
        self._identified: dict[tuple[str, WordSpec], bool | None] = {}

    def of(self, task: Task) -> Algebra:
        """The algebra of a task.

        Raises `TaskError` for a task without an automaton.
        """
        automaton, name = task.automaton, golden_hash(task)
        if name not in self._known:
            self._known[name] = analyse(automaton)
        return self._known[name]

    def identified_by(self, words: WordSpec, task: Task) -> bool | None:
        """Whether words identify the machine of a task; None where it is not known.

        Raises `TaskError` for a task without an automaton.
        """
        machine, key = self.of(task).machine, (golden_hash(task), words)
        if key not in self._identified:
            found = identification_by(words, machine)
            self._identified[key] = found.by_words_up_to(words.lengths.longest)
        return self._identified[key]


def compare(folders: Sequence[Path]) -> list[Comparison]:
    """Every run compared with its prediction, by task, then model; unreadable runs come last.

    A task that several runs share is analysed once. No run's plugin is executed: a run whose names
    are not registered is unreadable.
    """
    algebras = Algebras()
    compared = [_compare(folder, algebras) for folder in folders]
    models = {name: place for place, name in enumerate(MODELS)}
    return sorted(
        compared,
        key=lambda one: (
            not one.readable,
            one.task or "",
            models.get(one.model or "", 0),
            one.run.as_posix(),
        ),
    )


def _compare(path: Path, algebras: Algebras) -> Comparison:
    try:
        folder = RunFolder.open(path)
        if needs_plugin(folder):
            return _unopened(folder)
        return judge(gather(RecordedRun.read(path), algebras))
    except (StatetrackError, OSError) as problem:
        return Comparison(path, "broken", reason=" ".join(str(problem).split()))


def _unopened(folder: RunFolder) -> Comparison:
    """The comparison of a run that its own plugin, which is not executed here, would define."""
    config = folder.config()
    model, task = str(config.get("model")), str(config.get("task"))
    return Comparison(
        folder.path,
        "needs its plugin",
        task=task,
        model=model,
        reason=f"{code_of(folder)}, for {model} on {task}; no code of a run is run here",
        advice="read it, then give it with --plugin",
    )


def gather(run: RecordedRun, algebras: Algebras) -> Facts:
    """The facts about a run.

    Raises `RunError` where a file of it is missing or damaged.
    """
    settings = run.experiment.model_settings.model_dump(mode="json")
    prediction, unpredictable = _predict(run, algebras)
    summary = run.summary if run.finished else None
    brackets = {} if summary is None else _brackets(run, summary)
    return Facts(
        run=run,
        settings=settings,
        prediction=prediction,
        unpredictable=unpredictable,
        summary=summary,
        measured={} if summary is None else _measure(run, summary, brackets),
        brackets=brackets,
        identified=_identified(run, algebras) if prediction else None,
    )


def _identified(run: RecordedRun, algebras: Algebras) -> bool | None:
    """Whether the training words identify the machine; None where it is not known.

    That is known where every word of the task's is drawn.
    """
    if run.experiment.data.words not in (OWN, "uniform"):
        return None
    return algebras.identified_by(run.words.spec, run.task)


def judge(facts: Facts) -> Comparison:
    """The outcome of a run, with its reason and what to do."""
    run, best, prediction, summary = facts.run, facts.best, facts.prediction, facts.summary
    measured = facts.measured.values()
    bare = Comparison(
        run.path,
        "agree",
        task=current_name(run.task.name),
        model=run.experiment.model,
        settings=facts.settings,
        predicted=None if prediction is None else prediction.answer,
        prediction=prediction,
        size_given=facts.size_given,
        identified=facts.identified,
        best=best,
        num_evaluated=len(measured),
        num_tracking=sum(one.verdict == "tracks" for one in measured),
    )
    if summary is None:
        return replace(
            bare,
            outcome="unfinished",
            reason="training has not come to its end",
            advice=f"`statetrack train --resume {run.path}`",
        )
    bare = replace(bare, num_replicas=len(summary.replicas), num_diverged=len(summary.diverged))
    if summary.selected is None:
        return replace(
            bare,
            outcome="diverged",
            reason="no replica has a finite validation loss, so none was trained",
            advice="train again with lower --lrs, or with gradients clipped (--clip 1)",
        )
    bare = replace(bare, selected=facts.measured.get(summary.selected))
    if (wrong := _contradiction(facts)) is not None:
        return replace(
            bare,
            outcome="contradiction",
            reason=wrong,
            advice=f"look again (`statetrack certify {run.path} --all`), and report it if it is "
            "still there",
        )
    if best is None:
        longest = run.words.lengths.longest
        far = max([*run.task.spec.test_lengths, 10 * longest])
        return replace(
            bare,
            outcome="not evaluated",
            reason=f"no test words are longer than the {longest} symbols of training",
            advice=f"`statetrack eval {run.path} --length {far}`",
        )
    if prediction is None:
        return replace(bare, outcome="nothing predicted", reason=facts.unpredictable)
    return _judge_prediction(bare, best, prediction)


def _contradiction(facts: Facts) -> str | None:
    """Proofs that exclude a failing word, or the prediction; None where there are none."""
    for replica, bracket in facts.brackets.items():
        if (wrong := bracket.contradiction) is not None:
            return f"CONTRADICTION in replica {replica}: {wrong}"
        prediction = facts.prediction
        if bracket.verdict == "all lengths" and prediction and prediction.answer == "no":
            return (
                f"CONTRADICTION: predicted no, and the evidence '{bracket.proven_by}' proves that "
                f"replica {replica} is right on every word of every length"
            )
    return None


def _predict(run: RecordedRun, algebras: Algebras) -> tuple[Prediction | None, str]:
    """The prediction for a run, or None and the reason why there is none."""
    try:
        algebra = algebras.of(run.task)
    except TaskError as problem:
        return None, str(problem)
    return predict(algebra, run.experiment.model_settings), ""


def _judge_prediction(bare: Comparison, best: Measured, found: Prediction) -> Comparison:
    """The outcome of a run that was evaluated and has a prediction."""
    tracks = best.verdict == "tracks"
    below = _too_small(found, bare.predicted)
    if bare.predicted == "unknown":
        too_small = f"{below}, which is known to suffice; whether less does is not known"
        return replace(
            bare,
            outcome="nothing predicted",
            reason=too_small if below else found.theorem,
        )
    if bare.predicted == "no" and tracks:
        far = 10 * best.length
        return replace(
            bare,
            outcome="predicted no, tracks",
            reason=f"{_predicted_no(below)}, {_right_beyond(best)}",
            advice="the prediction is about words of every length: test longer ones "
            f"(`statetrack eval {bare.run} --length {far}`) and more of them (--samples), and seek "
            f"one that fails (`statetrack certify {bare.run}`); accuracy on shorter words does not "
            "contradict it",
        )
    if bare.predicted == "yes" and not tracks:
        reason, advice = _not_reached(bare, best)
        return replace(bare, outcome="predicted yes, not reached", reason=reason, advice=advice)
    return replace(bare, reason=_agreement(bare, best, below))


def _too_small(found: Prediction, predicted: str | None) -> str:
    """The settings because of which a model that can is predicted to track the task no more."""
    if found.can != "yes":
        return ""
    needs = [need for need in found.unmet if need.met == predicted]
    return ", ".join(
        f"{need.setting} {need.given} is below {need.value or need.least}" for need in needs
    )


def _predicted_no(below: str) -> str:
    """That no is predicted; and because of which settings, where larger ones would do."""
    return f"predicted no ({below})" if below else "predicted no"


def _agreement(bare: Comparison, best: Measured, below: str) -> str:
    if best.verdict == "tracks":
        chosen = bare.selected
        few = "" if chosen == best else f", by replica {best.replica} and not by the selected one"
        return f"predicted yes, {_right_beyond(best)}{few}"
    return f"{_predicted_no(below)}, {_right_and_not_beyond(best)}"


def _right_beyond(best: Measured) -> str:
    """Up to where a replica is right that tracks the task; it may err on words of training."""
    if best.horizon == best.length:
        return f"measured right up to {best.length:,}"
    return f"measured right at every length beyond those of training, up to {best.length:,}"


def _right_and_not_beyond(best: Measured) -> str:
    """Up to where a replica is right that does not track the task."""
    if best.horizon == best.length and best.failing_word is not None:
        return (
            f"right on every random word up to {best.horizon:,}, wrong at symbol "
            f"{best.fails_at:,} of {best.failing_word}"
        )
    right = f"measured right up to {best.horizon:,} and not beyond"
    if not best.horizon:
        right = "at no length tested is every answer right"
    return f"{right} ({_at_the_longest(best)})"


def _at_the_longest(best: Measured) -> str:
    """How often a replica's last answer is right at the longest length, and the floor."""
    if best.low > best.floor:
        beside = f"the floor is {rounded_down(best.floor)}"
    else:
        beside = f"which is not above the floor, {rounded_down(best.floor)}"
    number = "1 word" if best.sequences == 1 else f"{best.sequences:,} words"
    told = (
        f"at length {best.length:,} the last answer is right on {rounded_down(best.accuracy)} of "
        f"{number}, {beside}"
    )
    if best.nonfinite_from is not None:
        told += f"; logits are NaN or infinite from position {best.nonfinite_from:,}"
    return told


def _not_reached(bare: Comparison, best: Measured) -> tuple[str, str]:
    """Why weights that exist may not have been found, and what to do."""
    unseen = (bare.num_replicas or 0) - bare.num_diverged - bare.num_evaluated
    others = f"evaluate the other {unseen} replicas (`statetrack eval {bare.run} --all`)"
    reason = f"predicted yes, {_right_and_not_beyond(best)}"
    if best.verdict == "partly":
        corrects = bare.prediction is None or bare.prediction.robust != "no"
        if best.horizon and best.nonfinite_from is None and not corrects:
            reason += "; this class corrects no errors, so small errors accumulate with length"
        tries = ["train on with a loss that has an exact optimum (--loss)", "more --steps"]
    else:
        reason += "; the weights exist, and training did not find them"
        tries = ["more --seeds", "more --steps", "other --lrs or another --loss"]
    if bare.identified is False:
        reason += "; words of the training lengths do not identify the machine"
        tries.insert(0, "longer words (--train-length)")
    return reason, "; ".join([others] * (unseen > 0) + tries)


def _brackets(run: RecordedRun, summary: Summary) -> dict[int, Bracket]:
    """The evidence about each replica on the run's own task, of those that did not diverge."""
    found: dict[int, list[Evidence]] = {}
    for each in run.evidence():
        if each.task == run.task.name and each.replica in summary.trained:
            found.setdefault(each.replica, []).append(each.evidence)
    wrong: dict[int, int] = {}
    for row in run.rows:
        if row.task in (None, run.task.name) and row.first_error is not None:
            wrong[row.replica] = min(row.first_error, wrong.get(row.replica, row.first_error))
    return {
        replica: Bracket.of(evidence, wrong_at=wrong.get(replica))
        for replica, evidence in found.items()
    }


def _measure(
    run: RecordedRun, summary: Summary, brackets: Mapping[int, Bracket]
) -> dict[int, Measured]:
    """The result of each replica that was evaluated on words longer than those of training.

    Of rows of one length that with the most errors counts, whichever seed its words have and
    however they are drawn: a replica that tracks is right on all of them.

    Without replicas that diverged, of which earlier versions scored the initial weights.
    """
    task, longest_trained = run.task.name, run.words.lengths.longest
    worst: dict[int, dict[int, EvaluationRow]] = {}
    for row in run.rows:
        if row.task not in (None, task) or row.accuracy != row.accuracy:
            continue  # words of another task, or none with a scored position
        if row.replica not in summary.trained:
            continue
        kept = worst.setdefault(row.replica, {})
        before = kept.get(row.length)
        if before is None or _evidence(row) < _evidence(before):
            kept[row.length] = row
    symbols = run.task.source.symbols
    return {
        replica: _with_evidence(_measured(rows, longest_trained), brackets.get(replica), symbols)
        for replica, rows in worst.items()
        if max(rows) > longest_trained
    }


def _with_evidence(measured: Measured, bracket: Bracket | None, symbols: Sequence[str]) -> Measured:
    """What random words say of a replica, weighed with the words that were sought and proofs."""
    if bracket is None:
        return measured
    failure, worst, machine = bracket.failure, bracket.worst_case, bracket.extraction
    tracks = measured.verdict == "tracks"
    return replace(
        measured,
        verdict="partly" if tracks and failure is not None else measured.verdict,
        fails_at=bracket.fails_at,
        failing_word=None if failure is None else word_text(failure, symbols),
        worst_case=None if worst is None else bracket.right_to,
        proven=bracket.verdict,
        proven_length=bracket.proven,
        machine=None if machine is None else machine.equivalent,
    )


def _evidence(row: EvaluationRow) -> tuple[bool, float, float, float]:
    """A key that is least for the worst evaluation: lower accuracy, then more words."""
    return row.all_right, row.accuracy, row.prefix_accuracy, -row.sequences


def _measured(rows: Mapping[int, EvaluationRow], longest_trained: int) -> Measured:
    """The verdict on one replica, from one row for each length."""
    beyond = sorted(length for length in rows if length > longest_trained)
    farthest = rows[beyond[-1]]
    reach = horizon(rows.values())
    if all(rows[length].all_right for length in beyond):
        verdict: Verdict = "tracks"
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
    )


def _merit(measured: Measured, selected: int | None) -> tuple[bool, int, int, float, bool]:
    """A key that is largest for the best replica; among equals, for the selected one."""
    tracks = measured.verdict == "tracks"
    reach = measured.length if tracks else measured.horizon
    own = measured.replica == selected
    return tracks, reach, measured.length, measured.accuracy, own
