"""The points of a suite, each of which is a run, and what becomes of each; torch-free.

That is its result, which the table shows, or its failure. A result is kept in the point's folder,
and is taken for the point's again only where that folder holds the run that the suite asks for,
measured as it says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from statetrack import __version__
from statetrack.errors import RunError, SettingsError, StatetrackError, TaskError, setting
from statetrack.evidence import (
    Bracket,
    Certificate,
    ErrorControl,
    Evidence,
    Exhaustive,
    Extraction,
    WorstCase,
)
from statetrack.plugins import loaded_plugins
from statetrack.runs import (
    EvaluationRow,
    Experiment,
    RunFacts,
    RunFolder,
    Summary,
    evidence_to_json,
    files,
    is_run,
    load_given,
    read_evidence,
    read_row,
)
from statetrack.spec import (
    Task,
    current_name,
    folder_name,
    golden_hash,
    load_task,
    own_kind,
)
from statetrack.sweep.executors import Failed
from statetrack.sweep.suite import Suite
from statetrack.training import TaskWords


@dataclass(frozen=True)
class Point:
    """One model with settings on one task, trained as one population; the place of its run.

    `axes` are the settings that the suite varies, `plugins` the user's files that are loaded for
    it. `task_copy` is the task's file in a run, where that of the suite cannot be read and the
    point is only read. It has plain values only, so that it can be sent to a worker process.
    """

    row: str
    column: str
    values: dict[str, Any]
    protocol: str
    path: Path
    plugins: tuple[Path, ...]
    axes: Mapping[str, Any] = field(default_factory=dict)
    task_copy: Path | None = None

    @property
    def name(self) -> str:
        """Its row and column, as messages name them."""
        return f"suite row '{self.row}', column '{self.column}'"

    def __getstate__(self) -> dict[str, Any]:
        """Its plain values alone, and no experiment that was made of them."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @cached_property
    def experiment(self) -> Experiment:
        """The experiment that the values make, to be read: torch is not imported for it."""
        copy = {} if self.task_copy is None else {"task": str(self.task_copy)}
        return self._made(self.values | copy, to_build=False)

    @property
    def settings(self) -> dict[str, Any]:
        """What `experiment` holds as plain values, with the task's name in the suite."""
        return self.experiment.values() | {"task": str(self.values["task"])}

    @property
    def trainable(self) -> Experiment:
        """The experiment that the values make, of which a model can be built."""
        return self._made(self.values, to_build=True)

    def _made(self, values: Mapping[str, Any], *, to_build: bool) -> Experiment:
        for plugin in self.plugins:
            load_given(plugin)
        where = f"suite row '{self.row}'"
        return Experiment.from_values(values, where, protocol=self.protocol, to_build=to_build)


def points_of(
    suite: Suite, out: Path, overrides: Mapping[str, Any], *, to_train: bool = True
) -> list[Point]:
    """Every point of a suite, its settings checked, column by column.

    Without `to_train`, it is not checked that their models can be built, and torch is not imported:
    for points that are only read. A task whose file cannot be read is then that of a run of its
    column, which has a copy.

    A setting has the first of these values that is given: `overrides`, the cell's, the column's,
    the axis's, the row's, the suite's. Raises `StatetrackError` for a point that could not be
    trained, and for names that make no folders, or the same one.
    """
    named, described = suite.rows, suite.columns
    columns, rows = folders_of("column", described), folders_of("row", named)
    longest = max([suite.length, *suite.curve_lengths, *suite.horizon_lengths])
    points = []
    for column, given in described.items():
        if "task" not in given:
            raise SettingsError(f"suite column '{column}': 'task' is missing")
        folder = out / columns[column]
        try:
            task, copy = _task_of(given["task"], None if to_train else folder)
            task.source.check_length(longest)
        except StatetrackError as problem:
            if column == given["task"]:
                raise
            raise type(problem)(f"suite column '{column}': {problem.args[0]}") from problem
        for row, own in named.items():
            if "model" not in own.settings:
                raise SettingsError(f"suite row '{row}': 'model' is missing")
            cell = suite.cells.get(column, {}).get(own.model, {})
            values = {**suite.settings, **own.settings, **given, **cell, **overrides}
            path, plugins = folder / rows[row], loaded_plugins()
            point = Point(row, column, values, suite.protocol, path, plugins, own.axes, copy)
            if to_train:
                require_trainable(point, task)
            else:
                _ = point.experiment  # which raises where its settings are wrong
            points.append(point)
    return points


def _task_of(name: str, column: Path | None) -> tuple[Task, Path | None]:
    """A task by its name, and the file of a run in this column that it is read from, if it is."""
    try:
        return load_task(name), None
    except StatetrackError:
        for copy in sorted(column.glob(f"*/{files.TASK.name}")) if column else ():
            with suppress(StatetrackError):
                return load_task(str(files.TASK.require(copy.parent))), copy
        raise


def require_trainable(point: Point, task: Task | None = None) -> None:
    """Raise `StatetrackError`, which names the point, where its model cannot be built.

    `task` is that of the point, where it has been read already.
    """
    from statetrack.models import with_shapes  # torch
    from statetrack.runs import make_replica

    experiment = point.trainable
    tracked = task or load_task(experiment.data.task)
    try:
        if with_shapes(lambda: make_replica(experiment, tracked)) is None:
            make_replica(experiment, tracked)
    except StatetrackError as problem:
        raise type(problem)(f"{point.name}: {problem.args[0]}") from problem


def folders_of(what: str, names: Iterable[str]) -> dict[str, str]:
    """The folder of each row or column, in lower case: not all file systems tell `A` from `a`.

    Raises `SettingsError` for a name that makes none, and for two that make the same.
    """
    taken: dict[str, str] = {}
    for name in names:
        folder = folder_name(name if own_kind(name) else name.lower()).lower()
        if not folder:
            raise SettingsError(
                f"suite {what} '{name}': a name needs a letter or a digit, since its folder is "
                "called after it"
            )
        if folder in taken:
            raise SettingsError(
                f"suite {what}s '{taken[folder]}' and '{name}' would share the folder '{folder}': "
                "names must differ in more than signs and capitals"
            )
        taken[folder] = name
    return {name: folder for folder, name in taken.items()}


SEED, HORIZON_SEED = 0, 1
"""The seeds of the test words: at the suite's lengths, and at those of the horizon."""

POSITIONS = "every"
"""Of which positions of a word the answers count in `success` and `horizon`."""

SOUGHT = (
    Certificate.kind,
    Exhaustive.kind,
    WorstCase.kind,
    Extraction.kind,
    ErrorControl.kind,
)
"""The kinds of evidence that can be looked for, in the order in which they are."""


def other_words(suite: Suite, task: Task, own: str) -> list[str]:
    """The ways of a suite to draw test words, but for `own`, that a task has."""
    found = []
    for words in dict.fromkeys(suite.test_words):
        with suppress(TaskError):  # such as words inside a group, of a machine without one
            if words != own:
                task.with_words(words)
                found.append(words)
    return found


@dataclass(frozen=True)
class Measurement:
    """What the numbers of a cell depend on besides the trained weights.

    `task_hash` is that of the words and labels, see `golden_hash`; the other names are those of
    suite files. `positions` are those whose answers count in `success` and `horizon`: earlier
    versions counted the last one of a word, and did not say so.
    """

    task_hash: str
    task_version: int
    length: int
    samples: int
    seed: int
    curve_lengths: tuple[int, ...]
    horizon_lengths: tuple[int, ...]
    horizon_samples: int
    horizon_seed: int
    positions: str = "last"
    test_words: tuple[str, ...] = ()

    @classmethod
    def of(cls, suite: Suite, task: Task) -> Measurement:
        """How a suite measures a model on a task."""
        return cls(
            task_hash=golden_hash(task),
            task_version=task.spec.version,
            length=suite.length,
            samples=suite.samples,
            seed=SEED,
            curve_lengths=suite.curve_lengths,
            horizon_lengths=suite.horizon_lengths,
            horizon_samples=suite.horizon_samples,
            horizon_seed=HORIZON_SEED,
            positions=POSITIONS,
            test_words=suite.test_words,
        )


@dataclass(frozen=True)
class PointResult:
    """The result of a cell: the content of cell.json.

    `replicas` is their number, `rows` are those of every replica that did not diverge, at the
    suite's length; `curves` are also those at `curve_lengths`, and `others` those on words that are
    drawn in other ways than in training (`test_words`), at all these lengths. `selected` is None
    where all replicas diverged. `success` is the fraction of all replicas with every answer right,
    `horizon` the horizon of the selected one, and `first_error` the earliest position at which any
    of its random words, of whatever length, is answered wrongly. `measured` says how. `evidence` is
    about the selected one, each kind once; `searched` has the seconds that were given to each kind
    looked for.
    """

    row: str
    column: str
    run: str
    replicas: int
    rows: tuple[EvaluationRow, ...]
    curves: tuple[EvaluationRow, ...]
    selected: EvaluationRow | None
    success: float
    horizon: int
    steps: int
    seconds: float
    measured: Measurement
    first_error: int | None = None
    others: tuple[EvaluationRow, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    searched: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.horizon < 0:
            raise ValueError(f"'horizon': must be at least 0 (given: {self.horizon})")

    @property
    def every_row(self) -> tuple[EvaluationRow, ...]:
        """The rows on words drawn as in training, at the suite's length and the further ones."""
        return self.curves or self.rows

    @property
    def bracket(self) -> Bracket:
        """What is proven of the selected replica, and where it fails."""
        return Bracket.of(self.evidence, wrong_at=self.first_error)

    @property
    def num_right(self) -> int:
        """The number of replicas with every answer right."""
        return num_right(self.rows)

    def to_json(self) -> dict[str, Any]:
        """The result as plain values."""
        return vars(self) | {
            "rows": [row.to_json() for row in self.rows],
            "curves": [row.to_json() for row in self.curves],
            "others": [row.to_json() for row in self.others],
            "selected": None if self.selected is None else self.selected.to_json(),
            "measured": vars(self.measured),
            "evidence": [evidence_to_json(each) for each in self.evidence],
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any], where: str) -> PointResult:
        """The result of plain values; an earlier version wrote no evidence.

        Raises `RunError`, whose message begins with `where`, for values of another form.
        """
        rows = content.get("evidence", [])
        if not isinstance(rows, list):
            raise RunError(f"{where}, evidence: is damaged: it is no list")
        evidence = [read_evidence(row, f"{where}, evidence") for row in rows]
        known = [each for each in evidence if each is not None]
        return read_row(cls, {"curves": [], **content, "evidence": known}, where)


def num_right(rows: Iterable[EvaluationRow]) -> int:
    """The number of rows in which every answer at every scored position is right."""
    return sum(row.all_right for row in rows)


Done: TypeAlias = PointResult | Failed
"""What became of a point."""


@dataclass(frozen=True)
class Searching:
    """The seconds for the worst word of each cell, and for every other kind; 0: not looked for."""

    worst: float = 0.0
    others: float = 0.0

    @property
    def seconds(self) -> dict[str, float]:
        """The seconds for each kind that is looked for."""
        given = {kind: self.worst if kind == WorstCase.kind else self.others for kind in SOUGHT}
        return {kind: seconds for kind, seconds in given.items() if seconds}

    def missing(self, result: PointResult) -> dict[str, float]:
        """The seconds for each kind that a result lacks, or has of a shorter search.

        More time would change nothing of a search that came to its end.
        """
        complete = {each.kind for each in result.evidence if each.complete}
        return {
            kind: seconds
            for kind, seconds in self.seconds.items()
            if result.searched.get(kind, 0.0) < seconds and kind not in complete
        }


NO_SEARCH: Searching = Searching()
"""Accuracies are enough."""


# --- what a point's folder holds already ---


class AnotherRunError(RunError):
    """The folder of a point holds a run of other settings, or on another task."""


def kept_result(suite: Suite, point: Point) -> PointResult | None:
    """The result in a point's folder; None for a point that is to be trained or evaluated.

    A result that was measured otherwise than the suite says now is not used. Raises
    `AnotherRunError` where the folder holds a run of other settings, or on another task.
    """
    if not is_run(point.path):
        return None
    folder = RunFolder.open(point.path)
    task, wanted = refuse_another(folder, point), point.experiment
    kept = result_in(RunFacts(folder), point) if folder.finished else None
    if kept is None:
        return None
    drawn = TaskWords(task, wanted.data, wanted.training, folder.frequencies_file).drawn
    now, then = Measurement.of(suite, drawn), kept.measured
    if (now.task_hash, now.task_version) != (then.task_hash, then.task_version):
        raise _another(
            folder,
            f"a run on other words: this version of statetrack draws those of {task.name} "
            "differently",
        )
    if now != then:
        return None
    return kept


def result_in(run: RunFacts, point: Point) -> PointResult | None:
    """The result that cell.json has of a point's finished run, however it was measured.

    None where there is none, and where an earlier version did not write how it was measured. A row
    or a column may be called otherwise now, if its folder is the same.

    Raises `RunError` where it is damaged, and where it is that of another point or training.
    """
    summary = run.summary
    try:
        content = run.folder.find(files.CELL)
        if content is None or "measured" not in content:
            return None
        kept = PointResult.from_json(content, f"{point.path}: cell.json")
        if (other := _another_result(kept, point, summary)) is not None:
            raise RunError(f"{point.path}: cell.json does not belong to {other}")
    except RunError as problem:
        raise RunError(
            f"{problem}; delete that file, and the point is evaluated again, not trained"
        ) from None
    return replace(kept, row=point.row, column=point.column, run=str(point.path))


def _another_result(kept: PointResult, point: Point, summary: Summary) -> str | None:
    """What a result is not about: its point or its training; None where it is about both."""
    names = {"row": (kept.row, point.path.name), "column": (kept.column, point.path.parent.name)}
    for what, (name, folder) in names.items():
        if folders_of(what, [name])[name] != folder:
            return f"{point.name}: its {what} is '{name}'"
    known = {
        one.replica: (one.seed, one.lr, one.replica == summary.selected) for one in summary.replicas
    }
    rows = (*kept.rows, *kept.curves, *kept.others)
    same = (
        (kept.replicas, kept.steps, kept.seconds)
        == (len(summary.replicas), summary.steps, summary.seconds)
        and all(known.get(row.replica) == (row.seed, row.lr, row.selected) for row in rows)
        and {row.replica for row in kept.rows} == set(summary.trained)
        and (kept.selected and kept.selected.replica) == summary.selected
    )
    return None if same else "summary.json: it has other replicas, or another training"


def refuse_another(folder: RunFolder, point: Point) -> Task:
    """The task of a point's run; `AnotherRunError` unless it is the one that the suite asks for.

    A setting that the run of an earlier version does not name was the default of its field: a
    model's own default may be newer than the run.
    """
    wanted = point.experiment
    found = wanted.defaults | folder.read(files.CONFIG)
    if "task" in found:
        found["task"] = current_name(str(found["task"]))
    asked = point.settings | {"task": current_name(point.settings["task"])}
    names = [name for name in dict.fromkeys([*asked, *found]) if found.get(name) != asked.get(name)]
    if found != asked:
        shown = [f"{name} {found.get(name)} there and {asked.get(name)} here" for name in names[:3]]
        more = "; ..." if len(names) > 3 else ""
        what = f"other settings ({'; '.join(shown)}{more})"
        version = folder.read(files.ENVIRONMENT).get("statetrack")
        if version != __version__ and not any(name in point.values for name in names):
            raise _another(
                folder,
                f"a run of statetrack {version} with {what}, none of which the suite names",
                "name those of the run in the suite to go on with it, ",
            )
        raise _another(folder, f"a run with {what}")
    task, now = load_task(str(files.TASK.require(folder.path))), load_task(wanted.data.task)
    if difference := task_difference(task, now, wanted):
        raise _another(folder, f"a run on another task ({difference})")
    return task


def _another(folder: RunFolder, what: str, advice: str = "") -> AnotherRunError:
    return AnotherRunError(
        f"{folder.path}: holds {what}: {advice}choose another {setting('out')}, or delete that "
        "folder"
    )


def task_difference(kept: Task, now: Task, experiment: Experiment) -> str:
    """What training or testing on two tasks would differ in; nothing for titles and the like."""
    if kept.spec.version != now.spec.version:
        return f"version {kept.spec.version} of {now.name} there and {now.spec.version} here"
    if golden_hash(kept) != golden_hash(now):
        return f"{now.name} has other words or labels there"
    before, after = experiment.words_of(kept), experiment.words_of(now)
    if before != after:
        there, here = (
            f"lengths {words.lengths} with supervision '{words.supervision}'"
            for words in (before, after)
        )
        return f"{now.name} is trained on {there} there, and on {here} here"
    return ""
