"""Comparison of measurement and prediction: accuracy of runs on long words, and their algebra.

A prediction is about a class of models: with these settings, some weights track the task. So a
single replica that tracks it agrees with a *yes*, and disagrees with a *no*.

The facts of each run are read first (`RunFacts`), and judged afterwards. Reports and the atlas
judge by the same facts, and say the same words (`VERDICTS`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from statetrack.algebra import Answer, Prediction
from statetrack.errors import StatetrackError
from statetrack.evidence import Bracket
from statetrack.models import MODELS
from statetrack.runs import files
from statetrack.runs.config import Experiment
from statetrack.runs.facts import Algebras, Measured, RunFacts
from statetrack.runs.folder import RunFolder
from statetrack.runs.plugins import code_of, needs_plugin
from statetrack.scoring import rounded_down
from statetrack.spec import current_name
from statetrack.text import as_argument

Judged = Literal[
    "agree",
    "predicted no, tracks",
    "predicted yes, not reached",
    "contradiction",
    "nothing predicted",
    "tests nothing",
    "not evaluated",
    "diverged",
    "unfinished",
    "needs its plugin",
    "broken",
]
"""What measurement says of a prediction, or why it says nothing."""

VERDICTS: Mapping[Judged, str] = {
    "agree": "agrees",
    "predicted no, tracks": "DISAGREES",
    "predicted yes, not reached": "not reached",
    "contradiction": "CONTRADICTION",
    "nothing predicted": "nothing predicted",
    "tests nothing": "tests nothing",
    "not evaluated": "not evaluated",
    "diverged": "diverged",
    "unfinished": "unfinished",
    "needs its plugin": "needs its plugin",
    "broken": "cannot be read",
}
"""The words for each outcome, in every table, page and sentence."""

DISAGREEMENTS: tuple[Judged, ...] = ("predicted no, tracks", "contradiction")
"""The outcomes in which measurement and prediction differ, or a proof from either."""


def judged(
    can: Answer | None, answer: Answer | None, *, tracks: bool, tests: bool = True
) -> Judged:
    """Whether what was measured agrees with what was predicted; None: nothing was.

    `can` is said of the class of models, `answer` of the settings that the model has. That a run
    does not reach what a model can is no disagreement: training may fail. `tests` is False where
    every word that was tried has one possible answer.
    """
    if not tests:
        return "tests nothing"
    if answer == "no":
        return "predicted no, tracks" if tracks else "agree"
    if answer == "yes":
        return "agree" if tracks else "predicted yes, not reached"
    return "agree" if can == "yes" and tracks else "nothing predicted"


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
    outcome: Judged
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
            config = folder.read(files.CONFIG)
            model, task = str(config.get("model")), str(config.get("task"))
            return Comparison(
                path,
                "needs its plugin",
                task=task,
                model=model,
                reason=f"{code_of(folder)}, for {model} on {task}; no code of a run is run here",
                advice="read it, then give it with --plugin",
            )
        return judge(RunFacts.read(path, algebras))
    except (StatetrackError, OSError) as problem:
        return Comparison(path, "broken", reason=" ".join(str(problem).split()))


def judge(run: RunFacts) -> Comparison:
    """The outcome of a run, with its reason and what to do.

    Raises `RunError` where a file of it is missing or damaged.
    """
    prediction, summary = run.prediction, run.summary if run.finished else None
    brackets = run.brackets()
    measured = run.measured(brackets)
    selected = None if summary is None else summary.selected
    best = max(measured.values(), key=lambda one: _merit(one, selected), default=None)
    needs = prediction.needs if prediction else ()
    bare = Comparison(
        run.path,
        "agree",
        task=current_name(run.task.name),
        model=run.experiment.model,
        settings=run.experiment.model_settings.model_dump(mode="json"),
        predicted=None if prediction is None else prediction.answer,
        prediction=prediction,
        size_given=needs[0].given if needs else None,
        identified=run.identified,
        best=best,
        num_evaluated=len(measured),
        num_tracking=sum(one.verdict == "tracks" for one in measured.values()),
    )
    if summary is None:
        return replace(
            bare,
            outcome="unfinished",
            reason="training has not come to its end",
            advice=f"`statetrack train --resume {as_argument(run.path)}`",
        )
    bare = replace(bare, num_replicas=len(summary.replicas), num_diverged=len(summary.diverged))
    if selected is None:
        return replace(
            bare,
            outcome="diverged",
            reason="no replica has a finite validation loss, so none was trained",
            advice="train again with lower --lrs, or with gradients clipped (--clip 1)",
        )
    bare = replace(bare, selected=measured.get(selected))
    if (wrong := _contradiction(brackets, bare.predicted)) is not None:
        return replace(
            bare,
            outcome="contradiction",
            reason=wrong,
            advice=f"look again (`statetrack certify {as_argument(run.path)} --all`), and report "
            "it if it is still there",
        )
    if best is None:
        longest = run.words.lengths.longest
        far = max([*run.task.spec.test_lengths, 10 * longest])
        return replace(
            bare,
            outcome="not evaluated",
            reason=f"no test words are longer than the {longest} symbols of training",
            advice=f"`statetrack eval {as_argument(run.path)} --length {far}`",
        )
    if prediction is None:
        return replace(bare, outcome="nothing predicted", reason=run.unpredictable)
    return _judge_prediction(bare, best, prediction, run.experiment)


def _contradiction(brackets: Mapping[int, Bracket], predicted: Answer | None) -> str | None:
    """Proofs that exclude a failing word, or the prediction; None where there are none."""
    for replica, bracket in brackets.items():
        if (wrong := bracket.contradiction) is not None:
            return f"CONTRADICTION in replica {replica}: {wrong}"
        if bracket.verdict == "all lengths" and predicted == "no":
            return (
                f"CONTRADICTION: predicted no, and the evidence '{bracket.proven_by}' proves that "
                f"replica {replica} is right on every word of every length"
            )
    return None


def _judge_prediction(
    bare: Comparison, best: Measured, found: Prediction, experiment: Experiment
) -> Comparison:
    """The outcome of a run that was evaluated and has a prediction."""
    run, below = as_argument(bare.run), _too_small(found, bare.predicted)
    tracks = best.verdict == "tracks"
    outcome = judged(found.can, bare.predicted, tracks=tracks, tests=best.tests)
    bare = replace(bare, outcome=outcome)
    if bare.outcome == "tests nothing":
        return replace(
            bare,
            reason=f"words of up to {best.length:,} symbols have one possible answer, so that a "
            "constant is right on all of them",
            advice=f"test longer words (`statetrack eval {run} --length {10 * best.length}`), "
            "or words that are drawn otherwise (--words)",
        )
    if bare.outcome == "nothing predicted":
        too_small = f"not known whether this size is enough: {below}"
        return replace(bare, reason=too_small if below else found.theorem)
    if bare.outcome == "predicted no, tracks":
        return replace(
            bare,
            reason=f"{_predicted_no(below)}, {_right_beyond(best)}{_whose(bare, best)}",
            advice="the prediction is about words of every length: test longer ones "
            f"(`statetrack eval {run} --length {10 * best.length}`) and more of them "
            f"(--samples), and seek one that fails (`statetrack certify {run}`); accuracy on "
            "shorter words does not contradict it",
        )
    if bare.outcome == "predicted yes, not reached":
        if experiment.built is not None:
            reason, advice = _not_held(bare, best)
        else:
            reason, advice = _not_reached(bare, best, experiment.training.loss)
        return replace(bare, reason=reason, advice=advice)
    return replace(bare, reason=_agreement(bare, best, below))


def _too_small(found: Prediction, predicted: str | None) -> str:
    """The settings because of which a model that can is predicted to track the task no more."""
    if found.can != "yes":
        return ""
    needs = [need for need in found.unmet if need.met == predicted]
    return ", ".join(need.lack for need in needs)


def _predicted_no(below: str) -> str:
    """That no is predicted; and because of which settings, where larger ones would do."""
    return f"predicted no ({below})" if below else "predicted no"


def _agreement(bare: Comparison, best: Measured, below: str) -> str:
    if best.verdict == "tracks":
        size = f" at some size ({below})" if bare.predicted == "unknown" else ""
        return f"predicted yes{size}, {_right_beyond(best)}{_whose(bare, best)}"
    return f"{_predicted_no(below)}, {_right_and_not_beyond(best)}{_whose(bare, best)}"


def _whose(bare: Comparison, best: Measured) -> str:
    """Of which replica that is said, where it is not the selected one, which tables show."""
    if bare.selected == best:
        return ""
    return f", by replica {best.replica}, the best, and not by the selected one"


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


def _not_reached(bare: Comparison, best: Measured, loss: str) -> tuple[str, str]:
    """Why weights that exist may not have been found by a loss, and what to do."""
    run = as_argument(bare.run)
    unseen = (bare.num_replicas or 0) - bare.num_diverged - bare.num_evaluated
    others = f"evaluate the other {unseen} replicas (`statetrack eval {run} --all`)"
    reason = f"predicted yes, {_right_and_not_beyond(best)}{_whose(bare, best)}"
    if best.verdict == "partly":
        corrects = bare.prediction is None or bare.prediction.robust != "no"
        if best.horizon and best.nonfinite_from is None and not corrects:
            reason += "; this class corrects no errors, so small errors accumulate with length"
        tries = ["more --steps"]
        if loss == "cross-entropy":  # it has no finite optimum (docs/losses.md)
            tries.insert(
                0,
                "a loss that has an exact optimum "
                f"(`statetrack train --from {run} --loss squared-error`)",
            )
    else:
        reason += "; the weights exist, and training did not find them"
        tries = ["more --seeds", "more --steps", "other --lrs or another --loss"]
    if bare.identified is False:
        reason += "; words of the training lengths do not identify the machine"
        tries.insert(0, "longer words (--train-length)")
    return reason, "; ".join([others] * (unseen > 0) + tries)


def _not_held(bare: Comparison, best: Measured) -> tuple[str, str]:
    """Why weights that were set by construction are not right everywhere, and what to do."""
    reason = f"predicted yes, {_right_and_not_beyond(best)}{_whose(bare, best)}"
    return (
        f"{reason}; its weights were set by construction, and rounding or noise moved them",
        "build it without --noise, or with --precision float64",
    )


def _merit(measured: Measured, selected: int | None) -> tuple[bool, int, int, float, bool]:
    """A key that is largest for the best replica; among equals, for the selected one."""
    tracks = measured.verdict == "tracks"
    reach = measured.length if tracks else measured.horizon
    own = measured.replica == selected
    return tracks, reach, measured.length, measured.accuracy, own
