"""How long a sweep would take: measured on a few steps of each kind of point, before any is run.

A *shape* is what the seconds of a step depend on: the model with its settings, the numbers of
symbols and labels, the words of a batch and the replicas. Of each distinct one the first steps are
timed after a step to warm up, and short evaluations; a total budget bounds the time for all, but
one shape of each model is timed whatever is left. Points of a shape that was not timed are scaled
from the nearest one by what they compute. Nothing is written.

What a step computes, and keeps for its gradients, is worked out first, on torch's `meta` device,
which has shapes and no values: what does not fit into memory is refused, and of what would take too
long a part is timed, on fewer words and replicas. A model with more weights than `MOST_WEIGHTS` is
not built: its seconds are those of as many multiplications of matrices.

What is not known in advance is not counted: replicas that stop early, searches for evidence that
end before their time, and all but the beginning of a search for operators at the end of training.
"""

from __future__ import annotations

import heapq
import math
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from statetrack.audit import MOST_SYMBOLS
from statetrack.errors import RunError, SettingsError
from statetrack.evaluation import scored, stream_of
from statetrack.models import SequenceModel, with_shapes
from statetrack.ops import choose_device
from statetrack.runs import (
    Experiment,
    RunFolder,
    files,
    is_run,
    make_replica,
    prepare,
    strongest_by_length,
)
from statetrack.spec import Task, load_task
from statetrack.sweep.results import (
    NO_SEARCH,
    SEED,
    Point,
    Searching,
    kept_result,
    other_words,
)
from statetrack.sweep.suite import Suite
from statetrack.training import (
    BLOCK,
    LEAST_KEPT,
    TaskWords,
    Trainer,
    kept_by_symbol,
    require_memory,
)

BUDGET = 30.0
"""Seconds for all measurements together."""

MOST_STEPS = 20
"""The most steps that are timed of a shape."""

LEAST_TIMED = 8
"""Steps that a whole shape takes about, with validations, before its time can be over."""

SIDE = 512
"""The rows and columns of the matrices that are multiplied."""

SHORTEST = 16
"""The length from which on evaluations are timed; it is doubled while there is time."""

MOST_COMPUTED = 3e8
"""Steps that use weights more often than this are timed on a part of their words and replicas."""

MOST_KEPT = 2**28
"""Bytes: steps that keep more for their gradients are timed on a part of them too."""

LEAST_WEIGHTS = 1_000
"""Smaller models are counted as having so many: a symbol takes some time in any."""

MOST_WEIGHTS = 2**24
"""Models with more weights are not built to be timed."""

MOST_WHOLE, FEW_LONG = 2**12, 256
"""Symbols of test words on which a model that reads whole words is timed, and of the first word."""

FEW_SYMBOLS = 64
"""Words of a part are not shorter than this, if there are words or replicas to leave out."""

MOST_TESTED = 2**22
"""Symbols of test words that are read at once."""

MOST_DRAWN = 2**20
"""Symbols of test words on which predictors without a state are timed."""

LONGEST_DRAWN = 2**14
"""Symbols of a test word up to which predictors without a state are timed."""

FEW_SAMPLES = 1_000
"""The words that are drawn of a fixed training set at most."""

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
    is False where the seconds are scaled from another shape, or from a part of a step. A point that
    is finished has no seconds left, and one that was interrupted has those of the remaining steps.
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
    tell: Callable[[str], None] = lambda line: None,
) -> Estimates:
    """What the points of a suite would take with `jobs` at once, measured in `budget` seconds.

    `tell` is told what is looked at, line by line.

    Raises `StatetrackError` for a point that could not be trained, also for want of memory.
    """
    started = time.perf_counter()
    works, shapes = [], dict[_Shape, _Work]()
    for place, point in enumerate(points, start=1):
        tell(f"sizes of point {place} of {len(points)}: {point.row} on {point.column}")
        work = _Work.of(suite, point, searching)
        works.append(work)
        if not work.about.finished and work.shape not in shapes:
            shapes[work.shape] = work
            work.require_memory()
    costs: dict[_Shape, _Cost] = {}
    threads = torch.get_num_threads()
    try:
        for place, (shape, work) in enumerate(_models_first(shapes)):
            left = budget - (time.perf_counter() - started)
            if left > 0 or all(shape.model != timed.model for timed in costs):
                about = work.about
                tell(f"timing {place + 1} of {len(shapes)}: {about.row} on {about.column}")
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
    of one replica on all test words by length, of a model that reads words piece by piece where
    `streams`; `computed` is what a step computes, as
    `_Work.computed` counts it, and `weights` are those of one replica. Of a part of a step,
    `is_whole` is False, and `computed` what the part computes.
    """

    step: float
    validation: float
    words: float
    shortcuts: float
    finish: float
    evaluations: Mapping[int, float]
    computed: float
    weights: int
    is_whole: bool = True
    streams: bool = True

    def evaluation(self, length: int) -> float:
        """The seconds of one replica at a length L, beyond the longest timed a L + b L^2.

        With b = 0 where words are read piece by piece. Neither a nor b is negative.
        """
        if length in self.evaluations:
            return self.evaluations[length]
        *_, (one, before), (two, last) = [(0, 0.0), *sorted(self.evaluations.items())]
        if self.streams or not one:
            each = (last - before) / (two - one) if last > before else last / two
            return float(last + each * (length - two))
        square = max(0.0, last / two - before / one) / (two - one)
        square = min(square, last / two**2)
        return float((last / two - square * two) * length + square * length**2)


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
        with _named(point):
            model = with_shapes(lambda: make_replica(experiment, task))
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

    @property
    def symbols(self) -> int:
        """The symbols that a step reads, or a validation, whichever are more."""
        validated = self.experiment.training.validation_words * self.about.replicas
        return max(self.about.words_per_step, validated) * self.shape.longest

    @cached_property
    def kept(self) -> float:
        """About the bytes that are kept of so many symbols; 0 where they are surely few."""
        if self.symbols * max(LEAST_KEPT, 4 * self.about.weights) <= MOST_KEPT:
            return 0.0
        return self.symbols * (kept_by_symbol(self._make) or float(LEAST_KEPT))

    def require_memory(self) -> None:
        """Raise `SettingsError` where training surely needs more memory than is free."""
        device = choose_device(self.experiment.training.device)
        words = TaskWords(self.task, self.experiment.data, self.experiment.training)
        with _named(self.about):
            require_memory(self._make, words, device)

    def _make(self) -> SequenceModel:
        return make_replica(self.experiment, self.task)

    def part(self) -> _Work:
        """The same with fewer words and replicas, of which a step computes `MOST_COMPUTED`.

        Nor does it keep more than `MOST_KEPT` bytes.
        """
        training, longest = self.experiment.training, self.shape.longest
        room = MOST_COMPUTED / max(self.about.weights, LEAST_WEIGHTS)
        if self.kept > MOST_KEPT:
            room = min(room, MOST_KEPT * self.symbols / self.kept)
        if self.symbols <= room:
            return self
        length = min(longest, FEW_SYMBOLS) if self.shape.prefixes_are_words else longest
        words = max(1, min(training.batch_size, int(room / length)))
        if self.shape.prefixes_are_words:
            length = max(1, min(longest, int(room / words)))
        seeds = max(1, min(training.seeds, int(room / (length * words))))
        lrs = max(1, min(len(training.lrs), int(room / (length * words * seeds))))
        changed = training.model_copy(
            update={
                "batch_size": words,
                "seeds": seeds,
                "lrs": training.lrs[:lrs],
                "finish": "none",
                "validation_words": max(1, min(training.validation_words, int(room / length))),
            }
        )
        data = self.experiment.data
        asked = {"train_length": str(length), "curriculum": 0.0} if length < longest else {}
        smaller = replace(self.experiment, training=changed, data=data.model_copy(update=asked))
        replicas = len(smaller.replicas)
        about = replace(self.about, replicas=replicas, words_per_step=words * replicas)
        shape = replace(self.shape, longest=length, replicas=replicas)
        return replace(self, experiment=smaller, about=about, shape=shape)

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
            measured=self.shape in costs and costs[self.shape].is_whole,
        )

    def _evaluation(self, suite: Suite, cost: _Cost) -> float:
        """The seconds of all replicas at the suite's lengths, and of one at those far beyond.

        Words that are drawn in further ways take as long as those drawn as in training.
        """
        near = {suite.length, *suite.curve_lengths}
        far = {*suite.horizon_lengths}
        if self.shape.prefixes_are_words:  # one pass over words of the longest
            near, far = {max(near)}, {max(far)} if far else set()
        seconds = self.shape.replicas * sum(map(cost.evaluation, near)) + cost.shortcuts
        seconds *= 1 + len(other_words(suite, self.task, self.experiment.data.words))
        share = suite.horizon_samples / suite.samples
        return seconds + share * sum(map(cost.evaluation, far)) + cost.shortcuts * bool(far)

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
        done = max((record.step for record in folder.read(files.METRICS)), default=0)
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


@contextmanager
def _named(point: Point | Estimate) -> Iterator[None]:
    """Name the point of which a setting is refused."""
    try:
        yield
    except SettingsError as error:
        raise SettingsError(f"{point.row} on {point.column}: {error}") from None


def _measured(suite: Suite, work: _Work, seconds: float) -> _Cost:
    """The cost of a shape, in about so many seconds: of a part, where the whole takes longer."""
    if work.about.weights > MOST_WEIGHTS:
        return _by_arithmetic(suite, work)
    part = work.part()
    cost = _timed(suite, part, seconds)
    if part is work:
        return cost
    share = cost.computed / work.computed
    whole, some = work.experiment.training, part.experiment.training
    words = whole.validation_words / whole.batch_size
    validation = cost.validation * words * some.batch_size / some.validation_words
    fits = work.kept <= MOST_KEPT
    if fits and LEAST_TIMED * (cost.step + validation / 2) / share < seconds / 2:
        return _timed(suite, work, seconds)
    return replace(cost, validation=validation, is_whole=False)


def _by_arithmetic(suite: Suite, work: _Work) -> _Cost:
    """The cost of a shape that is not built, from the seconds of one multiplication."""
    square = torch.rand(SIDE, SIDE)
    clock = _clock(torch.device("cpu"))
    torch.set_num_threads(1)
    each = min(_seconds_of(lambda: square @ square, clock) for _ in range(9)) / SIDE**3
    training, weights = work.experiment.training, work.about.weights
    one_pass = max(each, 1e-13) * weights
    validation = one_pass * work.shape.replicas * training.validation_words * work.shape.longest
    tested = {length: one_pass * suite.samples * length for length in (SHORTEST, 2 * SHORTEST)}
    step = 3 * max(each, 1e-13) * work.computed  # forwards, and twice as much backwards
    return _Cost(step, validation, 0.0, 0.0, 0.0, tested, work.computed, weights, is_whole=False)


def _timed(suite: Suite, work: _Work, seconds: float) -> _Cost:
    """The cost of a shape, measured in about so many seconds, half of them on training."""
    started, data = time.perf_counter(), work.experiment.data
    samples = {"train_samples": min(data.train_samples, FEW_SAMPLES)}
    # as in a process of a sweep, with one thread, whose time the clock tells
    training = work.experiment.training.model_copy(update={"threads": 1})
    fewer = data.model_copy(update=samples)
    experiment = replace(work.experiment, data=fewer, training=training)
    torch.set_num_threads(1)
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
            import statetrack.training.finish  # noqa: F401  # not to time its import

            finish = _seconds_of(lambda: next(trainer.finish()), clock)
        symbols = training.seeds * training.batch_size * work.shape.longest
        count = max(1, min(BLOCK, training.steps, MOST_TESTED // symbols))
        drawn = _seconds_of(lambda: prepared.batches.block(0, count), clock) / count
        model = make_replica(experiment, work.task).to(prepared.batches.device).eval()
    step = statistics.median(steps)
    tested = _timed_evaluations(suite, work, model, clock, started + seconds)
    return _Cost(
        step,
        max(0.0, statistics.median(validations) - step),
        drawn,
        _shortcut_seconds(suite, experiment, work.task, clock),
        finish,
        tested,
        work.computed,
        max(1, work.about.weights),
        streams=stream_of(model) is not None,
    )


def _timed_steps(
    trainer: Trainer, clock: Clock, deadline: float
) -> tuple[list[float], list[float]]:
    """The seconds of steps without and with a validation.

    Of four at least, if so many are trained. The first two warm up: in the first, loops are
    compiled or loaded and words are drawn, in the second, which has a validation, those that read
    words without gradients. They take none of the time, and count where there are no others.
    """
    taken: list[float] = []
    begun, before = time.perf_counter(), clock()
    for _ in trainer.run():
        taken.append(clock() - before)
        if len(taken) <= 2:
            now = time.perf_counter()
            deadline, begun = deadline + now - begun, now
        last = trainer.step >= min(MOST_STEPS, trainer.settings.steps)
        if last or (len(taken) > 3 and time.perf_counter() > deadline):
            break
        before = clock()
    plain = taken[2::2] or taken[1:2] or taken
    return plain, taken[3::2] or taken[1:2] or plain


def _shortcut_seconds(suite: Suite, experiment: Experiment, task: Task, clock: Clock) -> float:
    """The seconds of predictors without a state, from words that are not too long and not many."""
    asked = sorted({suite.length, *suite.curve_lengths})
    measured = [length for length in asked if suite.samples * length <= MOST_SYMBOLS]
    if not measured:
        return 0.0
    lengths = sorted({min(each, LONGEST_DRAWN) for each in measured})
    samples = max(1, min(suite.samples, MOST_DRAWN // lengths[-1]))
    words = TaskWords(task, experiment.data, experiment.training)
    seconds = _seconds_of(lambda: strongest_by_length(words, task, lengths, samples, SEED), clock)
    return seconds * measured[-1] / lengths[-1] * suite.samples / samples


def _timed_evaluations(
    suite: Suite, work: _Work, model: torch.nn.Module, clock: Clock, deadline: float
) -> dict[int, float]:
    """The seconds of one replica on all test words, by length: doubled while there is time.

    What reads words piece by piece is timed on all of them, in pieces as large as later; what
    reads them as a whole on fewer, since time may grow with the square of their length.
    """
    longest = max([suite.length, *suite.curve_lengths])
    found: dict[int, float] = {}
    whole = stream_of(model) is None
    length = min(longest, max(SHORTEST, min(longest // 2, FEW_LONG)) if whole else SHORTEST)
    device = next((weight.device for weight in model.parameters()), None)

    most = MOST_COMPUTED / (SHORTEST * max(work.about.weights, LEAST_WEIGHTS))
    samples = max(1, min(suite.samples, MOST_TESTED // SHORTEST, int(most)))

    def seconds() -> float:
        words = max(1, min(samples, MOST_WHOLE // length)) if whole else samples

        def score() -> None:
            for _ in scored(model, work.task, [length], num_words=words, device=device):
                pass

        return _seconds_of(score, clock) * suite.samples / words

    begun = time.perf_counter()
    seconds()  # to warm up, and to compile what reads words of this kind
    deadline += time.perf_counter() - begun
    while True:
        begun = time.perf_counter()
        found[length] = seconds()
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
