"""The entries of a report, gathered from run folders, or from a suite and its folder.

Nothing is trained, evaluated or written here, and no run's plugin is executed. What cannot be read
is an entry too, with its error.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from statetrack import __version__
from statetrack.errors import RunError, SettingsError, StatetrackError, TaskError, nearest, setting
from statetrack.predicting import predict
from statetrack.report.entries import Entry, State, common_length, newest_lengths
from statetrack.report.placing import Placeable, in_order, places_of
from statetrack.report.training import TrainedPoint, training_lines, training_of
from statetrack.report.wanted import Report
from statetrack.runs import (
    RUNS,
    WITHOUT_EFFECT,
    Algebras,
    EvaluationRow,
    Experiment,
    RunFacts,
    RunFolder,
    code_of,
    files,
    find_run_folders,
    is_folder,
    is_run,
    last_of_each,
    read_error,
    settings_hash,
    train_command,
)
from statetrack.spec import Task, current_name, load_task
from statetrack.sweep import (
    BUDGETS,
    MOST_TABLE_LENGTHS,
    SUITES,
    SWEEP_FILE,
    Done,
    Failed,
    Measurement,
    Point,
    PointResult,
    Suite,
    compare_published,
    departures_from_paper,
    folder_of,
    load_suite,
    points_of,
    result_in,
    task_difference,
)


def make_report(
    *places: Path | str, folder: Path | str | None = None, budget: str | None = None
) -> Report:
    """The report of run folders, or of folders that hold some; or of one suite, by its name.

    The folder of a sweep is reported as the suite that was run in it. Without any places, the
    report is that of the folder `runs`.

    A folder goes before a suite of the same name. The runs of a suite are in `folder`, by default
    where `statetrack reproduce` puts them, and `budget` is the one that it was run with.

    Raises `StatetrackError` for a place that is neither, and for a folder without runs.
    """
    places = places or (RUNS,)
    strange = [str(place) for place in places if not is_folder(Path(place))]
    suites = [place for place in strange if _is_suite(place)]
    if strange and not suites and places != (RUNS,):
        meant = nearest(strange[0], SUITES)
        raise RunError(
            f"{strange[0]}: there is no such folder and no such suite.{meant} Give run folders, or "
            "what holds them, or one of `statetrack list suites`"
        )
    if not suites:
        if folder is not None or budget is not None:
            given = "folder" if folder is not None else "budget"
            raise SettingsError(f"{setting(given)}: belongs to a suite, and none is named")
        if len(places) == 1 and (Path(places[0]) / SWEEP_FILE).is_file():
            swept = Path(places[0])
            found = gather_suite(load_suite(str(swept)), swept, name=swept.resolve().name)
        else:
            found = gather_runs([Path(place) for place in places])
        return replace(found, command=_command(places))
    if len(places) > 1:
        raise SettingsError(f"suite '{suites[0]}': a report is of one suite, or of run folders")
    name = Path(suites[0]).stem
    own = folder or folder_of(suites[0], budget)
    found = gather_suite(suites[0], own, name=name, budget=budget)
    return replace(found, command=_command(places, folder=folder, budget=budget))


def _command(places: Sequence[Path | str], **options: Path | str | None) -> str:
    """The command that makes a report."""
    given = [word for name, value in options.items() if value for word in (f"--{name}", str(value))]
    return shlex.join(["statetrack", "report", *map(str, places), *given])


def _is_suite(place: Path | str) -> bool:
    return str(place).endswith(".yaml") or str(place) in SUITES


def gather_runs(paths: Iterable[Path]) -> Report:
    """The report of run folders, or of folders that hold some at any depth.

    Unfinished, diverged and damaged runs are entries too. The table shows the lengths at which all
    evaluated runs were evaluated last; else the longest length that all have, or most.

    Raises `RunError` for a folder that is no run and contains none.
    """
    folders = find_run_folders(paths)
    reading = _Reading()
    read = [reading.run(folder) for folder in folders]
    known = [one.entry for one in read if one.entry.model and one.entry.task]
    asked = [
        Placeable(one.model, one.task, one.settings, one.task_version, one.task_hash)
        for one in known
    ]
    places = places_of(asked)
    placed = {
        entry.run: replace(entry, row=place.row, column=place.column, axes=place.axes)
        for entry, place in zip(known, places, strict=True)
    }
    entries = tuple(placed.get(one.entry.run, one.entry) for one in read)
    rows, columns = in_order(asked, places)
    newest = newest_lengths(entries)
    return Report(
        title=_title(entries),
        entries=entries,
        row_names=tuple(rows),
        column_names=tuple(columns),
        length=max(newest, default=0) or common_length(entries),
        lengths=newest if len(newest) > 1 else (),
        training=_training(entries, [one.experiment for one in read]),
    )


def gather_suite(
    suite: Suite | str, folder: Path | str, *, name: str = "", budget: str | None = None
) -> Report:
    """The report of a suite whose runs are in a folder; points that were not run yet are waiting.

    `suite` can be its name, and `budget` the one that it is run with, by default `minutes`. A point
    is reported as it was run: where that is otherwise than the suite says now, a note of its entry
    says in what.

    Raises `StatetrackError` for a suite that cannot be run, and an unknown budget.
    """
    if isinstance(suite, str):
        name, suite = name or Path(suite).stem, load_suite(suite)
    within = budget or (BUDGETS[0] if suite.budgets else None)
    suite = suite.for_budget(budget)
    points = points_of(suite, Path(folder), {}, to_train=False)
    reading = _Reading()
    read = [reading.point(point, suite) for point in points]
    entries = _with_verdicts(suite, points, read)
    return Report(
        title=suite.title,
        entries=entries,
        row_names=tuple(suite.rows),
        column_names=tuple(suite.columns),
        length=suite.length,
        lengths=_shown_lengths(suite, entries),
        measure=suite.measure,
        suite=name or None,
        budget=within,
        reference=suite.reference,
        departures=suite.departures,
        differences=departures_from_paper(suite, points),
        training=_training(entries, [one.experiment for one in read]),
    )


def _title(entries: Sequence[Entry]) -> str:
    """The model and the task of a single run, or how many runs there are."""
    if len(entries) == 1:
        (one,) = entries
        return f"{one.row} on {one.column}" if one.row else "1 run"
    return f"{len(entries)} runs"


def _shown_lengths(suite: Suite, entries: Sequence[Entry]) -> tuple[int, ...]:
    """The lengths of a suite's table, and those at which all its points were evaluated since."""
    own = suite.table_lengths or (suite.length,)
    shown = tuple(sorted({*own, *newest_lengths(entries)}))
    return shown if 1 < len(shown) <= MOST_TABLE_LENGTHS else own if len(own) > 1 else ()


@dataclass(frozen=True)
class _Read:
    """An entry, and what it was made from, where that could be read.

    `result` is what a suite measured, at the length and of the words that it says now, and `task`
    the run's own copy.
    """

    entry: Entry
    experiment: Experiment | None
    result: PointResult | None = None
    task: Task | None = None


class _Reading:
    """Reads runs one after the other; what several have in common is computed once."""

    def __init__(self) -> None:
        self._algebras = Algebras()
        self._sizes: dict[object, tuple[int | None, int | None]] = {}
        self._tasks: dict[str, Task] = {}

    def run(self, path: Path, of: tuple[Suite, Point] | None = None) -> _Read:
        """The entry of a run folder, whose place in the table is still to be found.

        With a suite and its point, its scores are those that the suite measured.
        """
        try:
            run = RunFacts(RunFolder.open(path), self._algebras)
            if run.needs_plugin:
                code = f"needs its plugin {code_of(run.folder)}: no code of a run is run here"
                return _unread(path, f"{code}; read it, then give it with --plugin")
            return self._of(RunFacts.read(path, self._algebras), of)
        except (StatetrackError, OSError) as problem:
            return _unread(path, " ".join(str(problem).split()))

    def point(self, point: Point, suite: Suite) -> _Read:
        """The entry of a suite's point."""
        wanted = point.experiment
        read = self.run(point.path, (suite, point)) if is_run(point.path) else None
        if read is None:
            read = _Read(self._waiting(point, wanted), wanted)
        entry = replace(read.entry, row=point.row, column=point.column, axes=dict(point.axes))
        try:
            why = read_error(point.path)
        except StatetrackError as problem:
            why = str(problem)
        if entry.state != "failed" and why is not None:
            # a point that was measured may still have failed in the search for evidence
            state: State = "finished" if entry.state == "finished" else "failed"
            entry = replace(entry, state=state, error=why)
        if not entry.model:
            entry = replace(entry, model=wanted.model, task=wanted.data.task)
        result = read.result
        if read.task is not None:
            said = _trained_otherwise(entry, point)
            if difference := task_difference(read.task, self._task_of(wanted), wanted):
                result = None
                said.append(f"trained on another task than the suite's now ({difference})")
            entry = replace(entry, notes=(*entry.notes, *said))
        return _Read(entry, read.experiment or wanted, result)

    def _of(self, run: RunFacts, of: tuple[Suite, Point] | None) -> _Read:
        parameters, dimensions = (run.environment.get(n, "") for n in ("parameters", "dimensions"))
        if not isinstance(parameters, int) or not isinstance(dimensions, int | None):
            parameters, dimensions = self._size_of(run)
        entry = Entry.of(run, parameters, dimensions)
        read = _Read(entry, run.experiment) if of is None else _measured(entry, run, *of)
        return replace(read, task=run.task)

    def _task_of(self, experiment: Experiment) -> Task:
        """The task that an experiment has now."""
        name = experiment.data.task
        if name not in self._tasks:
            self._tasks[name] = load_task(name)
        return self._tasks[name]

    def _waiting(self, point: Point, experiment: Experiment) -> Entry:
        """The entry of a point that has no run yet."""
        config, task = experiment.values(), self._task_of(experiment)
        try:
            prediction = predict(self._algebras.of(task), experiment.model_settings)
        except TaskError:
            prediction = None
        return Entry(
            row=point.row,
            column=point.column,
            run=point.path,
            state="waiting",
            model=experiment.model,
            task=task.name,
            settings=config,
            settings_hash=settings_hash(config),
            command=train_command(config, point.plugins),
            replicas=len(experiment.replicas),
            prediction=prediction,
        )

    def _size_of(self, run: RunFacts) -> tuple[int | None, int | None]:
        """The weights of one replica and the numbers in its state, where nothing recorded them.

        Runs of earlier versions have not recorded them, so that the model is built.
        """
        import torch

        from statetrack.models import num_parameters, state_size
        from statetrack.runs import Run, make_replica

        source, settings = run.task.source, run.experiment.model_settings
        key = (run.experiment.model, settings, source.num_symbols, source.num_labels)
        if key not in self._sizes:
            with torch.random.fork_rng(devices=[]):  # the caller's random numbers stay as they are
                experiment = Run.open(run.path).experiment
                model = make_replica(experiment, run.task, to_read=True)
            self._sizes[key] = num_parameters(model), state_size(model)
        return self._sizes[key]


def _measured(entry: Entry, run: RunFacts, suite: Suite, point: Point) -> _Read:
    """A suite's point, with the scores that the suite measured, and at other lengths by `eval`."""
    result = result_in(run, point) if entry.state == "finished" else None
    if result is None:
        notes = ("trained, and not measured yet",) if entry.state == "finished" else ()
        return _Read(replace(entry, state="unfinished", rows=(), notes=notes), run.experiment)
    kinds = {each.kind: each for each in (*result.evidence, *entry.evidence)}
    wanted = Measurement.of(suite, run.words.drawn)
    far = _far_rows(run, result)
    scored = last_of_each([*far, *result.every_row])
    since = [row for row in run.last_rows if row.length not in {row.length for row in scored}]
    measured = replace(
        entry,
        rows=last_of_each([*scored, *since]),
        every_row=far,
        newest_lengths=tuple(
            length for length in entry.newest_lengths if any(row.length == length for row in since)
        ),
        evidence=tuple(kinds.values()),
        searched=dict(result.searched),
        notes=tuple(_otherwise(vars(result.measured), vars(wanted), f"measured {OTHERWISE}")),
    )
    same = replace(result.measured, **{name: getattr(wanted, name) for name in NOT_COMPARED})
    return _Read(measured, run.experiment, result if same == wanted else None)


NOT_COMPARED = tuple(
    "samples seed curve_lengths horizon_lengths horizon_samples horizon_seed".split()
)
"""What of a measurement may differ from the suite's for its numbers to stand beside published ones:
more words or further lengths, but not other words or another length."""


def _with_verdicts(
    suite: Suite, points: Sequence[Point], read: Sequence[_Read]
) -> tuple[Entry, ...]:
    """The entries with the published numbers beside them, compared with what was run."""
    ran = [
        point if not one.entry.outcomes else replace(point, values=dict(one.entry.settings))
        for point, one in zip(points, read, strict=True)
    ]
    results: list[Done] = []
    for point, one in zip(points, read, strict=True):
        if one.result is not None:
            results.append(
                replace(one.result, row=point.row, column=point.column, run=str(point.path))
            )
        elif one.entry.error:
            results.append(Failed(point.row, point.column, str(point.path), one.entry.error))
    compared = compare_published(suite, ran, results)
    return tuple(
        replace(
            one.entry,
            compared=tuple(
                each
                for each in compared
                if one.entry.row in each.rows and each.column == one.entry.column
            ),
        )
        for one in read
    )


def _far_rows(run: RunFacts, result: PointResult) -> tuple[EvaluationRow, ...]:
    """The rows of the selected replica that a suite measured at the lengths of its horizon.

    They are in the run's own file only, and are those of the suite's words by their seed; of
    several of one length, as `eval` with that seed adds some, the first on the most words.
    """
    measured = result.measured
    found = [
        row
        for row in run.rows
        if row.selected
        and row.evaluation_seed == measured.horizon_seed
        and row.sequences <= measured.horizon_samples
        and run.has_own_words(row)
        and row.length in measured.horizon_lengths
    ]
    return last_of_each(sorted(reversed(found), key=lambda row: row.sequences))


OTHERWISE = "otherwise than the suite says"


def _trained_otherwise(entry: Entry, point: Point) -> list[str]:
    """A note on the settings that differ, which may be the defaults of another version."""
    names = _differing(entry.settings, point.settings)
    if entry.version == __version__ or any(name in point.values for name in names):
        return _otherwise(entry.settings, point.settings, f"trained {OTHERWISE}")
    what = f"trained by statetrack {entry.version} otherwise than what are defaults now"
    return _otherwise(entry.settings, point.settings, what)


def _differing(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """The names of values that differ and have an effect."""
    names = [name for name in dict.fromkeys([*wanted, *found]) if name not in WITHOUT_EFFECT]
    differing = [name for name in names if found.get(name) != wanted.get(name)]
    if current_name(str(found.get("task"))) == current_name(str(wanted.get("task"))):
        differing = [name for name in differing if name != "task"]
    return differing


def _otherwise(found: Mapping[str, Any], wanted: Mapping[str, Any], what: str) -> list[str]:
    """A note that names the values which differ; none where none does."""
    differing = _differing(found, wanted)
    if not differing:
        return []
    shown = [f"{name} {found.get(name)}, not {wanted.get(name)}" for name in differing[:3]]
    more = "; ..." if len(differing) > 3 else ""
    return [f"{what}: {'; '.join(shown)}{more}"]


def _training(entries: Sequence[Entry], experiments: Sequence[Experiment | None]) -> str:
    """How the runs were trained, in lines; empty where it cannot be said."""
    known = [
        TrainedPoint(entry.row, entry.column, experiment)
        for entry, experiment in zip(entries, experiments, strict=True)
        if experiment is not None
    ]
    try:
        return "\n".join(training_lines(training_of(known))) if known else ""
    except StatetrackError:  # a task's own file may be gone, or a plugin's names unknown
        return ""


def _unread(path: Path, why: str) -> _Read:
    """The entry of a run that cannot be read, with what its settings say if they can be."""
    config: dict[str, Any] = {}
    try:
        config = RunFolder(path).read(files.CONFIG)
    except (StatetrackError, OSError):
        pass
    entry = Entry(
        row="",
        column="",
        run=path,
        state="failed",
        model=str(config.get("model", "")),
        task=str(config.get("task", "")),
        settings=config,
        settings_hash=settings_hash(config) if config else "",
        error=why,
    )
    return _Read(entry, None)
