"""How long a sweep would take: measured on a few steps of each kind of point, before any is run.

A *shape* is what the seconds of a step depend on: the model with its settings, the numbers of
symbols and labels, the words of a batch and the replicas. Of each distinct one the first steps are
timed after a step to warm up, and short evaluations; a total budget bounds the time for all. Points
of a shape that was not timed are scaled from the nearest one by what they compute. Nothing is
written.

What is not known in advance is not counted: replicas that stop early, searches for evidence that
end before their time, and all but the beginning of a search for operators at the end of training.
"""

from __future__ import annotations

import heapq
import math
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from statetrack.errors import RunError
from statetrack.evaluation import evaluate
from statetrack.runs import (
    Experiment,
    RunFolder,
    is_run,
    make_replica,
    prepare,
    strongest_by_length,
)
from statetrack.spec import Task, load_task
from statetrack.sweep.points import Point
from statetrack.sweep.results import NO_SEARCH, SEED, Searching, kept_result
from statetrack.sweep.suite import Suite
from statetrack.training import BLOCK, TaskWords, Trainer

BUDGET = 30.0
"""Seconds for all measurements together."""

MOST_STEPS = 20
"""The most steps that are timed of a shape."""

SHORTEST = 16
"""The length from which on evaluations are timed; it is doubled while there is time."""

Clock = Callable[[], float]

_NOT_OF_A_SHAPE = frozenset(
    "task seed seeds lrs steps loss label_smoothing beta1 beta2 epsilon weight_decay schedule "
    "warmup clip validate_every patience stop_loss checkpoint_every robust_size robust_start "
    "threads curriculum".split()
)
"""Settings that leave the seconds of a step nearly as they are, or are counted apart."""


@dataclass(frozen=True)
class Estimate:
    """What one point would compute, and the seconds that it would take on this machine.

    `weights` are those of one replica, `words_per_step` those of all replicas together. `measured`
    is False where the seconds are scaled from another shape. A point that is finished has no
    seconds left, and one that was interrupted has those of the remaining steps.
    """

    row: str
    column: str
    run: str
    finished: bool
    weights: int
    replicas: int
    steps: int
    words_per_step: int
    training_seconds: float = 0.0
    evaluation_seconds: float = 0.0
    evidence_seconds: float = 0.0
    measured: bool = True

    @property
    def seconds(self) -> float:
        """The seconds of the point in all."""
        return self.training_seconds + self.evaluation_seconds + self.evidence_seconds

    def to_json(self) -> dict[str, Any]:
        """The estimate as plain values, seconds to the millisecond."""
        return {
            name: round(value, 3) if isinstance(value, float) else value
            for name, value in vars(self).items()
        } | {"seconds": round(self.seconds, 3)}


@dataclass(frozen=True)
class Estimates:
    """What all points would take, with so many run at once.

    `measuring_seconds` is what the measurements took. Seconds are those of one process alone on a
    core: points that run at once share its memory and caches, and take longer by that.
    """

    points: tuple[Estimate, ...]
    jobs: int
    measuring_seconds: float

    @property
    def processor_seconds(self) -> float:
        """The seconds of all points, one after the other."""
        return sum(point.seconds for point in self.points)

    @property
    def seconds(self) -> float:
        """The seconds until the last point ends, where each free process takes the next one."""
        free = [0.0] * max(1, self.jobs)
        for point in self.points:
            heapq.heappush(free, heapq.heappop(free) + point.seconds)
        return max(free)

    def to_json(self) -> dict[str, Any]:
        """The estimates as plain values."""
        return {
            "points": [point.to_json() for point in self.points],
            "jobs": self.jobs,
            "num_finished": sum(point.finished for point in self.points),
            "processor_seconds": round(self.processor_seconds, 3),
            "seconds": round(self.seconds, 3),
            "measuring_seconds": round(self.measuring_seconds, 3),
        }


def estimate(
    suite: Suite,
    points: Sequence[Point],
    jobs: int,
    searching: Searching = NO_SEARCH,
    budget: float = BUDGET,
) -> Estimates:
    """What the points of a suite would take with `jobs` at once, measured in `budget` seconds.

    Raises `StatetrackError` for a point that could not be trained.
    """
    started = time.perf_counter()
    works = [_Work.of(suite, point, searching) for point in points]
    shapes: dict[_Shape, _Work] = {}
    for work in works:
        if not work.about.finished:
            shapes.setdefault(work.shape, work)
    costs: dict[_Shape, _Cost] = {}
    threads = torch.get_num_threads()
    try:
        for place, (shape, work) in enumerate(_models_first(shapes)):
            left = budget - (time.perf_counter() - started)
            if left > 0 or not costs:
                costs[shape] = _measured(suite, work, max(left, 0.0) / (len(shapes) - place))
    finally:
        torch.set_num_threads(threads)
    found = tuple(work.estimated(suite, costs) for work in works)
    return Estimates(found, jobs, time.perf_counter() - started)


@dataclass(frozen=True)
class _Shape:
    """What the seconds of a step depend on."""

    model: str
    settings: tuple[tuple[str, str], ...]
    num_symbols: int
    num_labels: int
    longest: int
    prefixes_are_words: bool
    replicas: int


@dataclass(frozen=True)
class _Cost:
    """The measured seconds of a shape: of a step, a validation, a batch of words, an evaluation.

    `finish` is the least that the end of a replica's training takes; `shortcuts` are those of the
    predictors without a state that every evaluation is compared with. `evaluations` has the seconds
    of one replica on all test words by length; `computed` is what a step computes, as
    `_Work.computed` counts it, and `weights` are those of one replica.
    """

    step: float
    validation: float
    words: float
    shortcuts: float
    finish: float
    evaluations: Mapping[int, float]
    computed: float
    weights: int

    def evaluation(self, length: int) -> float:
        """The seconds of one replica at a length, continued as a power beyond the longest timed."""
        if length in self.evaluations:
            return self.evaluations[length]
        *_, (one, before), (two, last) = [(0, 0.0), *sorted(self.evaluations.items())]
        power = math.log(last / before) / math.log(two / one) if before and one else 1.0
        return float(last * (length / two) ** min(max(power, 0.5), 2.2))


@dataclass(frozen=True)
class _Work:
    """A point, and what is known of it before anything is timed."""

    experiment: Experiment
    task: Task
    about: Estimate
    shape: _Shape
    steps_left: int
    trained: bool
    evaluated: bool

    @classmethod
    def of(cls, suite: Suite, point: Point, searching: Searching) -> _Work:
        """What a point would compute."""
        experiment, task = point.trainable, load_task(point.values["task"])
        with torch.random.fork_rng(devices=[]), torch.device("meta"):
            try:
                model = make_replica(experiment, task)
            except (RuntimeError, NotImplementedError, TypeError, ValueError):
                model = None
        if model is None:  # it cannot be built without values
            model = make_replica(experiment, task)
        kept = kept_result(suite, point)
        finished = kept is not None and not searching.missing(kept)
        sought = searching.seconds if kept is None else searching.missing(kept)
        training, replicas = experiment.training, len(experiment.replicas)
        about = Estimate(
            row=point.row,
            column=point.column,
            run=str(point.path),
            finished=finished,
            weights=sum(weight.numel() for weight in model.parameters()),
            replicas=replicas,
            steps=training.steps,
            words_per_step=training.batch_size * replicas,
            evidence_seconds=0.0 if finished else sum(sought.values()),
        )
        steps_left, trained = _left(point.path, training.steps)
        values = experiment.values()
        shape = _Shape(
            experiment.model,
            tuple((name, str(values[name])) for name in values if name not in _NOT_OF_A_SHAPE),
            task.source.num_symbols,
            task.source.num_labels,
            TaskWords(task, experiment.data, training).lengths.longest,
            task.source.prefixes_are_words,
            replicas,
        )
        return cls(experiment, task, about, shape, steps_left, trained, kept is not None)

    @property
    def computed(self) -> float:
        """What a step computes, roughly: every weight is used for every symbol."""
        return float(max(1, self.about.weights) * self.about.words_per_step * self.shape.longest)

    def estimated(self, suite: Suite, costs: Mapping[_Shape, _Cost]) -> Estimate:
        """The estimate, from the cost of this shape or of the nearest one."""
        if self.about.finished:
            return self.about
        nearest = min(costs, key=lambda other: self._distance(other, costs[other]))
        cost = costs[nearest]
        training, training_seconds = self.experiment.training, 0.0
        if not self.trained:
            validations = math.ceil(self.steps_left / training.validate_every)
            training_seconds = (
                self.steps_left * (cost.step + cost.words)
                + validations * cost.validation
                + self.about.replicas * cost.finish
            )
        evaluation_seconds = 0.0
        if not self.evaluated:
            evaluation_seconds = self._evaluation(suite, cost)
        return replace(
            self.about,
            training_seconds=training_seconds * self.computed / cost.computed,
            evaluation_seconds=evaluation_seconds * self.about.weights / cost.weights,
            measured=self.shape in costs,
        )

    def _evaluation(self, suite: Suite, cost: _Cost) -> float:
        """The seconds of all replicas at the suite's lengths, and of one at those far beyond."""
        near = {suite.length, *suite.curve_lengths}
        far = {*suite.horizon_lengths}
        if self.shape.prefixes_are_words:  # one pass over words of the longest
            near, far = {max(near)}, {max(far)} if far else set()
        seconds = self.shape.replicas * sum(map(cost.evaluation, near))
        share = suite.horizon_samples / suite.samples
        return seconds + share * sum(map(cost.evaluation, far)) + cost.shortcuts * (1 + bool(far))

    def _distance(self, shape: _Shape, cost: _Cost) -> tuple[bool, bool, float]:
        """How far a shape is: its own is nearest, then one of its model, by what it computes."""
        return (
            shape != self.shape,
            shape.model != self.shape.model,
            abs(math.log(self.computed / cost.computed)),
        )


def _left(path: Path, steps: int) -> tuple[int, bool]:
    """The steps that a run has left, and whether its training has finished."""
    if not is_run(path):
        return steps, False
    folder = RunFolder.open(path)
    try:
        done = max((record.step for record in folder.records()), default=0)
    except RunError:
        done = 0
    return max(0, steps - done), folder.finished


def _models_first(shapes: Mapping[_Shape, _Work]) -> Iterable[tuple[_Shape, _Work]]:
    """The shapes in an order in which every model comes before a second shape of any."""
    turns: dict[str, int] = {}
    placed = []
    for place, (shape, work) in enumerate(shapes.items()):
        turn = turns[shape.model] = turns.get(shape.model, -1) + 1
        placed.append((turn, place, shape, work))
    return [(shape, work) for _, _, shape, work in sorted(placed, key=lambda each: each[:2])]


def _measured(suite: Suite, work: _Work, seconds: float) -> _Cost:
    """The cost of a shape, measured in about so many seconds, half of them on training."""
    experiment, started = work.experiment, time.perf_counter()
    torch.set_num_threads(1)  # as in a process of a sweep
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(experiment.training.seed)
        prepared = prepare(experiment, work.task)
        training = experiment.training
        often = training.model_copy(update={"validate_every": 2, "patience": 0, "stop_loss": 0.0})
        trainer = Trainer(*prepared, often, prepared.batches.device)
        clock = _clock(prepared.batches.device)
        steps, validations = _timed_steps(trainer, clock, started + seconds / 2)
        finish = 0.0
        if training.finish != "none":
            import statetrack.training.finish.exact  # noqa: F401  # not to time its import

            finish = _seconds_of(lambda: next(trainer.finish()), clock)
        count = min(BLOCK, training.steps)
        drawn = _seconds_of(lambda: prepared.batches.block(0, count), clock) / count
        model = make_replica(experiment, work.task).to(prepared.batches.device).eval()
    step = statistics.median(steps)
    return _Cost(
        step,
        max(0.0, statistics.median(validations) - step),
        drawn,
        _seconds_of(lambda: _shortcuts(suite, work), clock),
        finish,
        _timed_evaluations(suite, work, model, clock, started + seconds),
        work.computed,
        max(1, work.about.weights),
    )


def _timed_steps(
    trainer: Trainer, clock: Clock, deadline: float
) -> tuple[list[float], list[float]]:
    """The seconds of steps without and with a validation, after two of them to warm up."""
    steps: list[float] = []
    validations: list[float] = []
    before = clock()
    for _ in trainer.run():
        now = clock()
        if trainer.step > 2:
            (validations if trainer.step % 2 == 0 else steps).append(now - before)
        last = trainer.step >= min(MOST_STEPS, trainer.settings.steps)
        if (last or time.perf_counter() > deadline) and (validations or last):
            break
        before = clock()
    some = [clock() - before]
    return steps or some, validations or some


def _shortcuts(suite: Suite, work: _Work) -> None:
    words = TaskWords(work.task, work.experiment.data, work.experiment.training)
    lengths = sorted({suite.length, *suite.curve_lengths})
    strongest_by_length(words, work.task, lengths, suite.samples, SEED)


def _timed_evaluations(
    suite: Suite, work: _Work, model: torch.nn.Module, clock: Clock, deadline: float
) -> dict[int, float]:
    """The seconds of one replica on all test words, by length: doubled while there is time."""
    longest = max([suite.length, *suite.curve_lengths])
    found: dict[int, float] = {}
    length = min(SHORTEST, longest)
    device = next((weight.device for weight in model.parameters()), None)

    def score() -> None:
        for _ in evaluate(model, work.task, [length], num_words=suite.samples, device=device):
            pass

    score()  # warms up
    while True:
        begun = time.perf_counter()
        found[length] = _seconds_of(score, clock)
        lasted = time.perf_counter() - begun
        left = deadline - time.perf_counter()
        if length == longest or (len(found) > 1 and left < 4 * lasted):
            return found
        length = min(2 * length, longest)


def _clock(device: torch.device) -> Clock:
    """Seconds of this process on its core, whatever else the machine does; on a GPU, of the wall.

    What is measured computes with one thread.
    """
    if device.type != "cuda":
        return time.process_time

    def synchronised() -> float:
        torch.cuda.synchronize(device)
        return time.perf_counter()

    return synchronised


def _seconds_of(action: Callable[[], Any], clock: Clock) -> float:
    started = clock()
    action()
    return clock() - started
