"""Measured beside predicted: what runs showed on long words, and what the algebra says of them.

A prediction is about a class of models: with these settings, some weights track the task. So one
replica that tracks it is enough to agree with a *yes*, and one is enough to disagree with a *no*.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from statetrack.algebra.analysing import Algebra, analyse
from statetrack.algebra.prediction import Prediction
from statetrack.errors import RunError, StatetrackError, TaskError
from statetrack.evaluation import horizon_of
from statetrack.experiment import Setup, reopen
from statetrack.models import MODELS
from statetrack.predicting import predict
from statetrack.runs import RunFolder
from statetrack.spec import Task, golden_hash

Row = Mapping[str, Any]
Verdict = Literal["tracks", "partly", "no"]
Outcome = Literal[
    "agree",
    "predicted no, tracks",
    "predicted yes, not reached",
    "nothing predicted",
    "not evaluated",
    "unfinished",
    "broken",
]

DISAGREEMENTS: tuple[Outcome, ...] = ("predicted no, tracks", "predicted yes, not reached")
"""The outcomes in which measurement and prediction differ."""

SIGNS_OF_A_RUN = ("config.yaml", "task.yaml", "summary.json", "metrics.jsonl")
"""A folder with any of these is a run, or what is left of one."""

NUMBERS = ("accuracy", "replica", "length", "sequences", "low", "high", "floor")
"""What is read of a row of eval.jsonl."""


@dataclass(frozen=True)
class Measured:
    """What one replica did on words longer than those it was trained on.

    It `tracks` if no evaluation at any of these lengths found anything wrong. It does so `partly`
    if nothing was wrong up to one of them, or if it is above the floor at the longest: the lower
    end of the 95 % interval is. Of several evaluations at one length the worst counts.
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


@dataclass(frozen=True)
class Comparison:
    """One run: what was measured of it, what was predicted, and whether that agrees.

    `selected` is what the replica did that validation selected, `best` what the best of those did
    that were evaluated. `size_given` is the run's value of the setting that the prediction names
    in `size_of`. What is not known is None; `reason` and `advice` are empty where there is none.
    """

    run: Path
    outcome: Outcome
    task: str | None = None
    model: str | None = None
    settings: Mapping[str, Any] | None = None
    predicted: Literal["yes", "no", "unknown"] | None = None
    prediction: Prediction | None = None
    size_given: Any = None
    selected: Measured | None = None
    best: Measured | None = None
    num_replicas: int | None = None
    num_evaluated: int = 0
    num_tracking: int = 0
    reason: str = ""
    advice: str = ""

    @property
    def disagrees(self) -> bool:
        """Whether measurement and prediction differ."""
        return self.outcome in DISAGREEMENTS

    def to_json(self) -> dict[str, Any]:
        """All of it as plain values."""
        prediction = None if self.prediction is None else self.prediction.to_json()
        return asdict(self) | {
            "run": str(self.run),
            "prediction": prediction,
            "disagrees": self.disagrees,
        }


def find_run_folders(places: Iterable[Path]) -> list[Path]:
    """The run folders that the given ones are, or hold at any depth: each once, in order of name.

    Damaged ones are among them. Raises `RunError` for a place that is or holds none.
    """
    found: dict[Path, Path] = {}
    for place in places:
        if not place.is_dir():
            raise RunError(
                f"{place}: there is no such folder: give run folders, or what holds them"
            )
        signs = [path for sign in SIGNS_OF_A_RUN for path in place.rglob(sign)]
        folders = sorted({path.parent for path in signs})
        if not folders:
            raise RunError(f"{place}: holds no run: `statetrack train` makes one")
        for folder in folders:
            found.setdefault(folder.resolve(), folder)
    return list(found.values())


def compare(folders: Sequence[Path]) -> list[Comparison]:
    """Every run beside its prediction, by task, then model; those that cannot be read come last.

    A task that several runs share is analysed once.
    """
    algebras: dict[str, Algebra] = {}
    compared = [_compare(folder, partial(_algebra_of, algebras)) for folder in folders]
    models = {name: place for place, name in enumerate(MODELS)}
    return sorted(
        compared,
        key=lambda one: (
            one.task is None,
            one.task or "",
            models.get(one.model or "", 0),
            one.run.as_posix(),
        ),
    )


def _algebra_of(known: dict[str, Algebra], task: Task) -> Algebra:
    automaton, name = task.automaton, golden_hash(task)
    if name not in known:
        known[name] = analyse(automaton)
    return known[name]


def _compare(path: Path, algebra_of: Callable[[Task], Algebra]) -> Comparison:
    try:
        setup, folder = reopen(path)
        return _compare_run(setup, folder, algebra_of)
    except (StatetrackError, OSError) as problem:
        return Comparison(path, "broken", reason=" ".join(str(problem).split()))


def _compare_run(
    setup: Setup, folder: RunFolder, algebra_of: Callable[[Task], Algebra]
) -> Comparison:
    settings = setup.experiment.model_settings.model_dump(mode="json")
    about = partial(
        Comparison,
        folder.path,
        task=setup.task.name,
        model=setup.experiment.model,
        settings=settings,
    )
    prediction, unpredictable = _predict(setup, algebra_of)
    if prediction is not None:
        about = partial(
            about,
            predicted=prediction.answer,
            prediction=prediction,
            size_given=None if prediction.given is None else prediction.given.value,
        )
    if not folder.finished:
        return about(
            "unfinished",
            reason="training has not come to its end",
            advice=f"`statetrack train --resume {folder.path}`",
        )
    num_replicas, selected = _replicas(folder)
    longest = setup.lengths.longest
    measured = _measure(folder, setup.task.name, longest)
    about = partial(
        about,
        num_replicas=num_replicas,
        selected=measured.get(selected),
        best=max(measured.values(), key=lambda one: _merit(one, selected), default=None),
        num_evaluated=len(measured),
        num_tracking=sum(one.verdict == "tracks" for one in measured.values()),
    )
    if not measured:
        far = max([*setup.task.spec.test_lengths, 10 * longest])
        return about(
            "not evaluated",
            reason=f"no test words are longer than the {longest} symbols of training",
            advice=f"`statetrack eval {folder.path} --length {far}`",
        )
    if prediction is None:
        return about("nothing predicted", reason=unpredictable)
    return _judge(about, folder.path)


def _predict(setup: Setup, algebra_of: Callable[[Task], Algebra]) -> tuple[Prediction | None, str]:
    """What theory says of a run, or why it says nothing."""
    try:
        algebra = algebra_of(setup.task)
    except TaskError as problem:
        return None, str(problem)
    return predict(algebra, setup.experiment.model_settings), ""


def _judge(about: Callable[..., Comparison], path: Path) -> Comparison:
    """The outcome of a run that was evaluated and has a prediction."""
    bare = about("agree")
    best, found = bare.best, bare.prediction
    assert best is not None and found is not None
    tracks = best.verdict == "tracks"
    if bare.predicted == "unknown":
        too_small = found.can == "yes" and found.size is not None
        return about(
            "nothing predicted",
            reason=f"{found.size_of} {bare.size_given} is below the {found.size} that is known to "
            "do; whether less does is not known"
            if too_small
            else found.theorem,
        )
    if bare.predicted == "no" and tracks:
        far = 10 * best.length
        return about(
            "predicted no, tracks",
            reason=f"predicted no, measured right up to {best.length:,}",
            advice="the prediction is about all words, however long: test longer ones "
            f"(`statetrack eval {path} --length {far}`) and more of them (--samples); short words "
            "may not need what the task does",
        )
    if bare.predicted == "yes" and not tracks:
        return about("predicted yes, not reached", **_not_reached(bare, best))
    return about("agree", reason=_agreement(bare, best))


def _agreement(bare: Comparison, best: Measured) -> str:
    if best.verdict == "tracks":
        chosen = bare.selected
        few = "" if chosen == best else f", by replica {best.replica} and not by the selected one"
        return f"predicted yes, measured right up to {best.length:,}{few}"
    if best.horizon:
        return f"predicted no, measured right up to {best.horizon:,} and not beyond"
    return "predicted no, not right at any length tested"


def _not_reached(bare: Comparison, best: Measured) -> dict[str, str]:
    """Why weights that exist may not have been found."""
    unseen = (bare.num_replicas or 0) - bare.num_evaluated
    others = f"look at the other {unseen} replicas (`statetrack eval {bare.run} --all`)"
    if best.verdict == "partly" and best.horizon:
        hardly = (
            "; this class corrects no errors, so that small ones add up"
            if bare.prediction and bare.prediction.robust == "no"
            else ""
        )
        reason = f"predicted yes, measured right up to {best.horizon:,}, not {best.length:,}"
        tries = ["train on with a loss that has an exact optimum (--loss)", "more --steps"]
        return {"reason": reason + hardly, "advice": "; ".join([others] * (unseen > 0) + tries)}
    tries = ["more --seeds", "more --steps", "other --lrs or another --loss"]
    return {
        "reason": "predicted yes, not reached: the weights exist, and training did not find them",
        "advice": "; ".join([others] * (unseen > 0) + tries),
    }


def _replicas(folder: RunFolder) -> tuple[int, int]:
    """How many replicas a run has, and which is selected."""
    outcome = folder.read_json("summary.json")
    replicas, selected = outcome.get("replicas"), outcome.get("selected")
    if not isinstance(replicas, list) or not isinstance(selected, int):
        raise RunError(f"{folder.path / 'summary.json'}: is damaged (it names no replica)")
    return len(replicas), selected


def _measure(folder: RunFolder, task: str, longest_trained: int) -> dict[int, Measured]:
    """What each replica did that was evaluated on the task's words beyond those of training."""
    worst: dict[int, dict[int, Row]] = {}
    for number, row in enumerate(folder.rows("eval.jsonl"), start=1):
        if row.get("task", task) != task or row.get("accuracy", ...) is None:
            continue  # words of another task, or none with a scored position
        for key in NUMBERS:
            if not isinstance(row.get(key), int | float):
                where = f"{folder.path / 'eval.jsonl'}, line {number}"
                raise RunError(f"{where}: is damaged: '{key}' is no number")
        kept = worst.setdefault(row["replica"], {})
        before = kept.get(row["length"])
        if before is None or _evidence(row) < _evidence(before):
            kept[row["length"]] = row
    measured = {}
    for replica, rows in worst.items():
        if max(rows) > longest_trained:
            measured[replica] = _measured(rows, longest_trained)
    return measured


def _evidence(row: Row) -> tuple[float, float]:
    """In rising order: lower accuracy, then more words."""
    return row["accuracy"], -row["sequences"]


def _measured(rows: Mapping[int, Row], longest_trained: int) -> Measured:
    """The verdict on one replica, from one row for each length."""
    beyond = sorted(length for length in rows if length > longest_trained)
    farthest = rows[beyond[-1]]
    horizon = horizon_of((length, rows[length]["accuracy"]) for length in sorted(rows))
    if all(rows[length]["accuracy"] == 1.0 for length in beyond):
        verdict: Verdict = "tracks"
    elif horizon > longest_trained or farthest["low"] > farthest["floor"]:
        verdict = "partly"
    else:
        verdict = "no"
    return Measured(
        replica=farthest["replica"],
        verdict=verdict,
        horizon=horizon,
        length=farthest["length"],
        sequences=farthest["sequences"],
        accuracy=farthest["accuracy"],
        low=farthest["low"],
        high=farthest["high"],
        floor=farthest["floor"],
    )


def _merit(measured: Measured, selected: int) -> tuple[bool, int, int, float, bool]:
    """In rising order: what a better replica did; among equals the selected one is the best."""
    tracks = measured.verdict == "tracks"
    reach = measured.length if tracks else measured.horizon
    own = measured.replica == selected
    return tracks, reach, measured.length, measured.accuracy, own
