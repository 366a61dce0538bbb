"""The run folder: how one is made, replaced, opened, extended and found.

What its files are and hold is the table `files.FILES`. One process at a time trains a run, or
appends: see `locking`.

A run is replaced on purpose only: the new one takes the folder once it has been checked and begun;
until it has finished, the old one stands beside it, as `.NAME.replaced`. So a start that fails
changes nothing, and a training that is stopped or killed has lost nothing: renamed back, the folder
is the old run again.
"""

from __future__ import annotations

import json
import os
import shutil
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from statetrack.errors import RunError, StatetrackWarning, setting
from statetrack.plugins import PluginFiles
from statetrack.runs import files, locking
from statetrack.runs.disk import (
    final_name,
    is_file,
    is_folder,
    reason_of,
    synchronise,
    temporary_name,
    write_file,
)
from statetrack.runs.files import RowFile, RunFile, is_there
from statetrack.runs.loggers import LOGS
from statetrack.runs.own_code import remember_code
from statetrack.runs.rows import EvaluationRow, EvidenceRow, Identity
from statetrack.text import as_argument

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
W = TypeVar("W")
W_contra = TypeVar("W_contra", contravariant=True)
OfWeights = TypeVar("OfWeights", EvaluationRow, EvidenceRow)
"""A row about weights, whose hash it has."""

RUNS = Path("runs")
"""The folder of runs that are given no folder of their own."""

SIGNS_OF_A_RUN = tuple(
    file.name for file in (files.CONFIG, files.TASK, files.SUMMARY, files.METRICS)
)
"""A folder with any of these is a run, possibly a damaged one."""

FREQUENCIES = tuple(f"words{ending}" for ending in (".csv", ".yaml", ".yml", ".jsonl"))
"""What the run's copy of the file may be called that its words are drawn by."""

_OF_A_RUN = frozenset(
    {
        *(*files.FILES, *FREQUENCIES),
        *(locking.TRAINING, locking.APPENDING, locking.POINT, *LOGS),
        *(f"plugin_{number}.py" for number in range(2, 10)),
    }
)
"""Everything that a run folder holds, but for the modules of a plugin."""


class Readable(Protocol[T_co]):
    """A file of the table that is read."""

    def read(self, run: Path, /) -> T_co:
        """What it holds in the folder of a run."""


class Writable(Protocol[W_contra]):
    """A file of the table that is written whole."""

    def write(self, run: Path, content: W_contra, /) -> None:
        """Write it."""


@dataclass(frozen=True)
class RunFolder:
    """One run on disk.

    Raises `RunError` where a file is missing, foreign or damaged.
    """

    path: Path

    @classmethod
    def start(
        cls,
        path: Path,
        *,
        config: Mapping[str, Any],
        task: str,
        environment: Mapping[str, Any],
        plugins: Sequence[PluginFiles] = (),
        frequencies: tuple[str, bytes] | None = None,
        force: bool = False,
    ) -> RunFolder:
        """A new run folder with the files that are written before training: see `create`.

        `task` is the text of a task file. `frequencies` are those that words are drawn by: the
        ending of the file's name, and what stands in it. `plugins` are the user's own files; the
        modules that one imports from its own folder are kept next to it.
        """
        made: dict[str, str | bytes] = {files.TASK.name: task}
        made[files.ENVIRONMENT.name] = files.ENVIRONMENT.dump(dict(environment))
        if frequencies is not None:
            made[f"words{frequencies[0]}"] = frequencies[1]
        for number, plugin in enumerate(plugins, start=1):
            for original, text in plugin.texts.items():
                own = original == plugin.path.name
                name = (
                    original
                    if not own
                    else files.PLUGIN.name
                    if number == 1
                    else f"plugin_{number}.py"
                )
                if made.setdefault(name, text) != text:
                    file = plugin.path.parent / original
                    raise RunError(f"{file}: a run keeps a copy, and '{name}' is taken: rename it")
        made[files.CONFIG.name] = files.CONFIG.dump(dict(config))
        folder = cls.create(path, made, force=force)
        if plugins:
            remember_code(folder.path, folder.code)
        return folder

    @classmethod
    def create(
        cls, path: Path, content: Mapping[str, str | bytes], *, force: bool = False
    ) -> RunFolder:
        """A new run folder with these files in it, created with all of them or not at all.

        An existing folder is used only if it is empty, and is refused otherwise; with `force`, one
        that is a run and nothing else is replaced.
        """
        exists = os.path.lexists(path)
        replaces = force and exists and not _is_empty_folder(path)
        if replaces:
            require_replaceable(path, {name.partition("/")[0] for name in content})
            exists = False
        if exists and not _is_empty_folder(path):
            raise _taken(path)
        made = path if exists else path.with_name(temporary_name(path.name))
        written: list[Path] = []
        try:
            try:
                made.mkdir(parents=True, exist_ok=exists)
                for name, text in content.items():
                    (made / name).parent.mkdir(parents=True, exist_ok=True)
                    # two processes may have been given the same empty folder: one gets it
                    (made / name).touch(exist_ok=False)
                    written.append(made / name)
                    write_file(made / name, text.encode() if isinstance(text, str) else text)
                if replaces:
                    replace_run(path, made, was_finished=cls(path).finished)
                elif made != path:
                    made.rename(path)
                    synchronise(path.parent)
            except BaseException:
                if made != path:
                    shutil.rmtree(made, ignore_errors=True)
                for file in written:
                    file.unlink(missing_ok=True)
                raise
        except (OSError, RunError) as problem:
            reason = reason_of(problem).rpartition(": ")[2]
            raise RunError(f"{path}: cannot be made: {reason}") from None
        return cls(path)

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """An existing run folder."""
        if not is_folder(path):
            wrong = "is no folder" if path.exists() else "there is no such run folder"
            raise RunError(f"{path}: {wrong}; `statetrack list runs` shows the runs")
        if not is_run(path):
            raise RunError(f"{path}: not a run folder (it has no config.yaml)")
        return cls(path)

    @property
    def finished(self) -> bool:
        """Whether training has finished."""
        return is_there(self.path, files.SUMMARY)

    def read(self, file: Readable[T]) -> T:
        """What a file of the run holds, as the type that it has; of a `.jsonl` the rows.

        Raises `RunError` where it is missing or damaged.
        """
        return file.read(self.path)

    def find(self, file: RunFile[T]) -> T | None:
        """What a file of the run holds; None where there is none.

        Raises `RunError` where it is damaged.
        """
        return file.read(self.path) if is_there(self.path, file) else None

    def write(self, file: Writable[W], content: W) -> None:
        """Write a file of the run, in place of the one that is there."""
        file.write(self.path, content)

    def append(self, file: RowFile[T], rows: Iterable[T]) -> None:
        """Append rows to a `.jsonl` of the run, all of them or none."""
        file.append(self.path, rows)

    @property
    def frequencies_file(self) -> Path | None:
        """The run's copy of the file of frequencies that its words are drawn by, if it has one."""
        return next((p for name in FREQUENCIES if (p := self.path / name).is_file()), None)

    @property
    def plugins(self) -> list[Path]:
        """plugin.py, plugin_2.py and so on: the user's own files that the run needs."""
        others = sorted(self.path.glob("plugin_[2-9].py"))
        return list(filter(is_file, (self.path / files.PLUGIN.name, *others)))

    @property
    def code(self) -> list[Path]:
        """Every Python file in the folder, at any depth: what opening the run could execute."""
        return sorted(self.path.rglob("*.py"))

    @contextmanager
    def training(self) -> Iterator[None]:
        """The right to train the run, which one process at a time has.

        What a killed process left half-written is removed. Raises `RunError` at once where another
        process has that right, and where the folder cannot be written.
        """
        with locking.training(self.path):
            with suppress(OSError):  # who trains the run is the only process that writes such files
                for path in list(self.path.iterdir()):
                    if final_name(path.name) and is_file(path):
                        path.unlink(missing_ok=True)
            yield

    def cut_metrics(self, step: int) -> None:
        """Remove the records after a step, which training will write again."""
        rows = zip(files.METRICS.plain_rows(self.path), self.read(files.METRICS), strict=True)
        files.METRICS.write(self.path, [row for row, record in rows if record.step <= step])

    def weights_hash(self) -> str | None:
        """The hash of the run's weights: see `WeightsFile.hash_in`."""
        return files.WEIGHTS.hash_in(self.path)

    def evaluations(self) -> list[EvaluationRow]:
        """The rows of eval.jsonl about the weights that the run has now, in their order.

        Which rows these are, and what is said of the others: see `evidence`.
        """
        rows = self.read(files.EVALUATIONS)
        return self._current(rows, files.EVALUATIONS.name, "evaluate the run again")

    def evidence(self) -> list[EvidenceRow]:
        """The rows of evidence.jsonl about the weights that the run has now, in their order.

        Rows of a kind that this version does not know are left out, and stay in the file. Rows
        about other weights are left out too, and a `StatetrackWarning` says how many; those
        without a hash, and all where there are no weights to compare with, are taken as they are.
        """
        rows = [row for row in self.read(files.EVIDENCE) if row is not None]
        return self._current(rows, files.EVIDENCE.name, "look for the evidence again")

    def _current(self, rows: list[OfWeights], name: str, again: str) -> list[OfWeights]:
        """The rows about the weights that the run has now; a warning counts the others."""
        if not rows:
            return rows
        if self.extended:  # what has no hash was found before, by an earlier version
            hashed = self.weights_hash()
            current = [row for row in rows if hashed and row.weights == hashed]
        else:
            known = any(row.weights for row in rows)
            hashed = self.weights_hash() if known else None
            current = [
                row for row in rows if None in (hashed, row.weights) or row.weights == hashed
            ]
        if stale := len(rows) - len(current):
            warnings.warn(
                StatetrackWarning(
                    f"{stale} of its rows are about other weights than the run has now, and are "
                    f"not counted; {again}",
                    self.path / name,
                ),
                stacklevel=4,
            )
        return current

    @property
    def extended(self) -> bool:
        """Whether training was extended, or is about to be."""
        return bool(self.read(files.CONFIG).get("extended_at")) or self.extending

    @property
    def extending(self) -> bool:
        """Whether an extension is being begun: `begin_extension` says how it is completed."""
        return is_there(self.path, files.EXTENSION)

    def begin_extension(self, config: Mapping[str, Any], about: Mapping[str, Any]) -> None:
        """Turn a finished run into an unfinished one with these settings, after its last step.

        `about` is what extensions.jsonl keeps of it. Only who has the right to train the run may do
        that. Once extension.json is there, nothing is lost: what is stopped then, `end_beginning`
        completes. Raises `RunError` where last.pt is missing, damaged or of other settings.
        """
        state = self.read(files.LAST)
        if state is None:
            raise RunError(
                f"{self.path}: has no last.pt, the state after its last step (it is deleted, or "
                "was not kept by an earlier version), so it cannot be extended: train it again, "
                f"with {setting('config')} {self.path / files.CONFIG.name}"
            )
        task = files.identity_of(self.path).task_hash
        files.CHECKPOINT.write(self.path, state, Identity(config, task))
        self.write(files.EXTENSION, (dict(config), dict(about)))
        self.end_beginning()

    def end_beginning(self) -> None:
        """Complete what `begin_extension` began: the result of the shorter training goes.

        Raises `RunError` where extension.json is damaged.
        """
        config, about = self.read(files.EXTENSION)
        try:
            for file in (files.SUMMARY, files.WEIGHTS, files.LAST):
                (self.path / file.name).unlink(missing_ok=True)
            if about not in self.read(files.EXTENSIONS):
                self.append(files.EXTENSIONS, [about])
            self.write(files.CONFIG, config)
            (self.path / files.EXTENSION.name).unlink(missing_ok=True)
        except OSError as problem:
            raise RunError(f"{self.path}: cannot be extended: {reason_of(problem)}") from None


def kept_beside(path: Path) -> Path:
    """Where the old run is while the new one is trained."""
    return path.with_name(f".{path.name}.replaced")


def require_replaceable(path: Path, own: Collection[str] = ()) -> None:
    """Raise `RunError` unless a folder is a run that nobody trains, and holds nothing else.

    `own` are names that a new run has there too, such as modules of its plugin.
    """
    elsewhere = f"choose another {setting('out')}, or remove it yourself"
    if path.is_symlink() or not (path / files.CONFIG.name).is_file():
        raise RunError(
            f"{path}: is no run folder, and only runs are replaced by {setting('force')}: "
            f"{elsewhere}"
        )
    try:
        names = sorted(os.listdir(path))
    except OSError as problem:
        raise RunError(f"{path}: cannot be read: {reason_of(problem)}") from None
    for name in names:
        if name not in _OF_A_RUN and name not in own and final_name(name) not in _OF_A_RUN:
            raise RunError(
                f"{path}: holds '{name}', which is no file of a run, and {setting('force')} "
                f"replaces nothing but runs: {elsewhere}"
            )
    with locking.training(path):
        pass
    if locking.TRAINING not in names:
        locking.remove_training_lock(path)


def replace_run(path: Path, made: Path, *, was_finished: bool) -> None:
    """Give the folder `made`, beside it, the place of the run at `path`.

    The old run is kept beside it; in place of one that was kept before, unless the old run has
    not finished: then that one stays, and the unfinished one goes.
    """
    kept = kept_beside(path)
    if kept.exists() and not was_finished:
        away = made.with_name(f"{made.name}.old")
        path.rename(away)
    else:
        if kept.exists():
            shutil.rmtree(kept)
        away = kept
        path.rename(away)
    try:
        made.rename(path)
    except OSError:
        away.rename(path)
        raise
    if away != kept:
        shutil.rmtree(away, ignore_errors=True)


def drop_replaced(path: Path) -> None:
    """Delete the run that one has replaced, which is complete now."""
    kept = kept_beside(path)
    with suppress(OSError):
        if (kept / files.CONFIG.name).is_file() and not kept.is_symlink():
            shutil.rmtree(kept)


def write_error(path: Path, content: Mapping[str, Any]) -> Path:
    """Keep why a point of a sweep failed; return the file.

    It is error.json in the point's folder, or stands beside it where there is no run.
    """
    file = path / files.ERROR.name if is_run(path) else _beside(path)
    drop_error(path)
    with suppress(OSError):  # writing says why
        file.parent.mkdir(parents=True, exist_ok=True)
    write_file(file, files.ERROR.dump(dict(content)))
    return file


def read_error(path: Path) -> str | None:
    """Why a point of a sweep failed, as `write_error` has kept it; None where it did not.

    Raises `RunError` where the file that keeps it is damaged.
    """
    for file in (path / files.ERROR.name, _beside(path)):
        if is_file(file):
            said = files.ERROR.load(file).get("error")
            return str(said or "it is not known why")
    return None


def drop_error(path: Path) -> None:
    """Delete what `write_error` has written, if anything."""
    for file in (path / files.ERROR.name, _beside(path)):
        with suppress(OSError):
            file.unlink(missing_ok=True)


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.{files.ERROR.name}")


def newest_step(path: Path) -> int:
    """The step of the last record of a run's training, quickly; 0 where there is none."""
    try:
        with (path / files.METRICS.name).open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - files.METRICS.longest))
            whole = file.read().rpartition(b"\n")[0]
        return int(json.loads(whole.rpartition(b"\n")[2])["step"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0


def is_run(path: Path) -> bool:
    """Whether a path is a run folder."""
    return is_file(path / files.CONFIG.name)


def find_run_folders(places: Iterable[Path]) -> list[Path]:
    """The run folders among the given folders and in them at any depth, once each, by name.

    Damaged ones are included, and so is every folder that cannot be read; those whose name begins
    with a dot, and those of logs, are not. Raises `RunError` for a folder that is no run and
    contains none.
    """
    found: dict[Path, Path] = {}
    for place in places:
        if not is_folder(place):
            raise RunError(
                f"{place}: there is no such folder: give run folders, or what holds them"
            )
        folders = sorted(_run_folders_in(place))
        if not folders:
            raise RunError(f"{place}: holds no run: `statetrack train` makes one")
        for folder in folders:
            found.setdefault(folder.resolve(), folder)
    return list(found.values())


def _run_folders_in(place: Path) -> set[Path]:
    """Every folder with a sign of a run, and every one that cannot be listed; none is hidden."""
    found: set[Path] = set()

    def note_unreadable(problem: OSError) -> None:
        found.add(Path(problem.filename))

    for path, inside, names in os.walk(place, onerror=note_unreadable):
        here = Path(path)
        if not set(SIGNS_OF_A_RUN).isdisjoint(names + inside):
            found.add(here)
        inside[:] = [name for name in inside if not name.startswith(".") and name not in LOGS]
        links = (here / name for name in inside if os.path.islink(here / name))
        found.update(link for link in links if _started(link) is not None)
    return found


def find_runs(folder: Path) -> list[RunFolder]:
    """The runs directly inside a folder, oldest first; damaged ones are included."""
    if not is_folder(folder):
        return []
    inside = [path for path in folder.iterdir() if not path.name.startswith(".")]
    started = {path: when for path in inside if (when := _started(path)) is not None}
    return [RunFolder(path) for path in sorted(started, key=lambda path: (started[path], path))]


def find_runs_below(places: Iterable[Path]) -> list[RunFolder]:
    """The runs in some folders at any depth, oldest first; damaged ones are included.

    Folders that do not exist hold none.
    """
    found: dict[Path, tuple[int, Path]] = {}
    for place in filter(is_folder, places):
        for path in _run_folders_in(place):
            found.setdefault(path.resolve(), (_started(path) or 0, path))
    return [RunFolder(path) for _, path in sorted(found.values())]


def _started(folder: Path) -> int | None:
    """When a run was started, by the first of its files; None for what is no run folder."""
    try:
        names = os.listdir(folder)
        first = next((sign for sign in SIGNS_OF_A_RUN if sign in names), None)
        return None if first is None else (folder / first).lstat().st_mtime_ns
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:  # it may be a run: whoever reads it says why it cannot be read
        with suppress(OSError):
            return folder.lstat().st_mtime_ns
        return 0


def newest_run(folder: Path) -> RunFolder:
    """The run that was started last, also where it is damaged: no run is passed over silently.

    Raises `RunError` for a folder without runs.
    """
    runs = find_runs(folder)
    if not runs:
        raise RunError(f"there is no run in {folder}/ yet: `statetrack train` makes one")
    return runs[-1]


def require_new(out: Path, *, force: bool = False) -> None:
    """Raise `RunError` where a folder has something in it already, or could not be written.

    With `force`, a run may be there, and nothing else.
    """
    if os.path.lexists(out) and not _is_empty_folder(out):
        if not force:
            raise _taken(out)
        require_replaceable(out)
    above = next(each for each in (out.absolute(), *out.absolute().parents) if each.exists())
    if not above.is_dir():
        raise RunError(f"{out}: {above} is no folder: choose another {setting('out')}")
    if not os.access(above, os.W_OK | os.X_OK):
        raise RunError(f"{out}: {above} cannot be written: choose another {setting('out')}")


def _taken(path: Path) -> RunError:
    """That a folder has something in it, or is none, and what to do."""
    if not is_folder(path):
        return RunError(f"{path}: is there, and no folder: choose another {setting('out')}")
    unfinished = is_run(path) and not RunFolder(path).finished
    again = f"statetrack train --resume {as_argument(path)}"
    hint = f", or continue it with `{again}`" if unfinished else ""
    hint += f", or replace it by {setting('force')}" if is_run(path) else ""
    return RunError(
        f"{path}: already exists and is not empty: choose another {setting('out')}{hint}"
    )


def _is_empty_folder(path: Path) -> bool:
    try:
        return is_folder(path) and not any(path.iterdir())
    except OSError:
        return False
