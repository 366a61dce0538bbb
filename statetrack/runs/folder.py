"""The run folder: the only code that knows the names of files inside a run.

It writes and reads typed values; torch is imported only where weights are read or written. The
table of the files is `files.FILES`.

Every file but the `.jsonl` is written under a temporary name and then renamed, so a killed process
leaves either the old file or the new one. An incomplete last line of a `.jsonl` is not read, and
the next line replaces it. One process at a time trains a run, or appends: see `locking`.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import shutil
import warnings
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from statetrack import yaml_text
from statetrack.errors import RunError, StatetrackWarning, setting
from statetrack.plugins import PluginFiles
from statetrack.runs import locking
from statetrack.runs.files import (
    FILES,
    LARGEST_JSON,
    LONGEST_ROW,
    append_to_file,
    final_name,
    is_file,
    is_folder,
    read_file,
    read_lines,
    reason_of,
    require_file,
    synchronise,
    temporary_name,
    write_file,
)
from statetrack.runs.loggers import LOGS
from statetrack.runs.replacing import drop_replaced, replace_run, require_replaceable
from statetrack.runs.rows import EvaluationRow, EvidenceRow, Identity, Summary, read_row
from statetrack.scoring import plain
from statetrack.settings import read_yaml
from statetrack.training import Record

if TYPE_CHECKING:
    from torch import Tensor

T = TypeVar("T")
OfWeights = TypeVar("OfWeights", EvaluationRow, EvidenceRow)
"""A row about weights, whose hash it has."""

FORMAT = 1
"""Version of the names above and of those inside the files; raised when one changes meaning."""

_START_AGAIN = "delete it to train from the start"

RUNS = Path("runs")
"""The folder of runs that are given no folder of their own."""

SIGNS_OF_A_RUN = ("config.yaml", "task.yaml", "summary.json", "metrics.jsonl")
"""A folder with any of these is a run, possibly a damaged one."""


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
        files: dict[str, str | bytes] = {}
        files |= {"task.yaml": task, "environment.json": to_json(environment, indent=2) + "\n"}
        if frequencies is not None:
            files[f"words{frequencies[0]}"] = frequencies[1]
        for number, plugin in enumerate(plugins, start=1):
            for original, text in plugin.texts.items():
                own = original == plugin.path.name
                name = (
                    original if not own else "plugin.py" if number == 1 else f"plugin_{number}.py"
                )
                if files.setdefault(name, text) != text:
                    file = plugin.path.parent / original
                    raise RunError(f"{file}: a run keeps a copy, and '{name}' is taken: rename it")
        files["config.yaml"] = to_yaml(config)
        return cls.create(path, files, force=force)

    @classmethod
    def create(
        cls, path: Path, files: Mapping[str, str | bytes], *, force: bool = False
    ) -> RunFolder:
        """A new run folder with these files in it, created with all of them or not at all.

        An existing folder is used only if it is empty, and is refused otherwise; with `force`, one
        that is a run and nothing else is replaced: see `replacing`.
        """
        exists = os.path.lexists(path)
        replaces = force and exists and not _is_empty_folder(path)
        if replaces:
            require_replaceable(path, {name.partition("/")[0] for name in files})
            exists = False
        if exists and not _is_empty_folder(path):
            unfinished = is_run(path) and not cls(path).finished
            hint = f", or continue it with `statetrack train --resume {path}`" if unfinished else ""
            hint += f", or replace it by {setting('force')}" if is_run(path) else ""
            raise RunError(
                f"{path}: already exists and is not empty: choose another {setting('out')}{hint}"
            )
        made = path if exists else path.with_name(temporary_name(path.name))
        written: list[Path] = []
        try:
            try:
                made.mkdir(parents=True, exist_ok=exists)
                for name, text in files.items():
                    (made / name).parent.mkdir(parents=True, exist_ok=True)
                    # two processes may have been given the same empty folder: one gets it
                    (made / name).touch(exist_ok=False)
                    written.append(made / name)
                    cls(made).write_file(name, text)
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
            raise RunError(
                f"{path}: there is no such run folder; `statetrack list runs` shows them"
            )
        if not is_run(path):
            raise RunError(f"{path}: not a run folder (it has no config.yaml)")
        return cls(path)

    @property
    def finished(self) -> bool:
        """Whether training has finished."""
        return os.path.lexists(self.path / "summary.json")

    @property
    def config_file(self) -> Path:
        """config.yaml."""
        return self.path / "config.yaml"

    def config(self) -> dict[str, Any]:
        """Read config.yaml."""
        require_file(self.config_file)
        return read_yaml(self.config_file, RunError)

    def environment(self) -> dict[str, Any]:
        """Read environment.json."""
        content = self.read_json("environment.json")
        for key, value in content.items():
            if isinstance(value, dict | list):
                self._damaged("environment.json", f"'{key}' is neither a text nor a number")
        return content

    @property
    def task_file(self) -> Path:
        """task.yaml, which is a file.

        Raises `RunError` where it is not.
        """
        require_file(self.path / "task.yaml", f"is missing; {self._advice()}")
        return self.path / "task.yaml"

    @property
    def frequencies_file(self) -> Path | None:
        """The run's copy of the file of frequencies that its words are drawn by, if it has one."""
        names = (f"words{ending}" for ending in (".csv", ".yaml", ".yml", ".jsonl"))
        return next((self.path / name for name in names if (self.path / name).is_file()), None)

    def task_name(self) -> str:
        """The task's name as rows of evaluations have it: one way of writing what was asked for."""
        found = read_yaml(self.task_file, RunError).get("name")
        return str(self.config().get("task") if found is None else found)

    def task_reference(self) -> str:
        """Where task.yaml says that the task comes from."""
        return str(read_yaml(self.task_file, RunError).get("reference", ""))

    def automaton(self) -> dict[str, Any]:
        """The description of the automaton, or of the sampler, in task.yaml."""
        found = read_yaml(self.task_file, RunError).get("automaton")
        if not isinstance(found, dict):
            raise RunError(f"{self.task_file}: is damaged: 'automaton' holds no names and values")
        return found

    def identity(self) -> Identity:
        """What weights and checkpoints of this run belong to, as its files say now."""
        task = self.path / "task.yaml"
        return Identity.of(self.config(), read_file(task) if os.path.lexists(task) else None)

    @property
    def plugins(self) -> list[Path]:
        """plugin.py, plugin_2.py and so on: the user's own files that the run needs."""
        return [
            path
            for path in (self.path / "plugin.py", *sorted(self.path.glob("plugin_[2-9].py")))
            if is_file(path)
        ]

    @property
    def code(self) -> list[Path]:
        """Every Python file in the folder, at any depth: what opening the run could execute."""
        return sorted(self.path.rglob("*.py"))

    def write_file(self, name: str, content: str | bytes) -> None:
        """Write a file of the run; text is encoded as UTF-8."""
        content = content.encode() if isinstance(content, str) else content
        write_file(self.path / name, content)

    def write_text(self, name: str, text: str) -> None:
        """Write a text file of the run."""
        self.write_file(name, text)

    def write_json(self, name: str, content: Mapping[str, Any]) -> None:
        """Write environment.json or summary.json."""
        self.write_text(name, to_json(content, indent=2) + "\n")

    def read_json(self, name: str) -> dict[str, Any]:
        """Read environment.json or summary.json."""
        missing = f"is missing; {self._advice()}"
        text = read_file(self.path / name, missing=missing, largest=LARGEST_JSON)
        return _from_json(text, str(self.path / name))

    def append(self, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Append rows to a `.jsonl`, all of them or none, after those of other processes."""
        path, longest = self.path / name, FILES[name].longest
        content = _lines(rows, path, longest)
        with locking.appending(path):
            append_to_file(path, content, longest)

    def rows(self, name: str) -> list[dict[str, Any]]:
        """The rows of a `.jsonl`; a last line cut short by a kill is left out."""
        path, longest = self.path / name, FILES[name].longest
        return [
            _from_json(line, f"{path}, line {number}")
            for number, line in enumerate(read_lines(path, longest), start=1)
        ]

    @contextmanager
    def training(self) -> Iterator[None]:
        """The right to train the run, which one process at a time has.

        What a killed process left half-written is removed. Raises `RunError` at once where another
        process has that right, and where the folder cannot be written.
        """
        with locking.training(self.path):
            self._remove_half_written()
            yield

    def _remove_half_written(self) -> None:
        """Delete temporary files: who trains the run is the only process that writes such files."""
        with suppress(OSError):
            for path in list(self.path.iterdir()):
                if final_name(path.name) and is_file(path):
                    path.unlink(missing_ok=True)

    def summary(self) -> Summary:
        """Read summary.json."""
        path = self.path / "summary.json"
        summary = read_row(Summary, self.read_json(path.name), str(path))
        if (wrong := _wrong_in_summary(summary)) is not None:
            self._damaged(path.name, wrong)
        return summary

    def write_summary(self, summary: Summary) -> None:
        """Write summary.json, after which the run is finished, and what it replaced is deleted."""
        self.write_json("summary.json", asdict(summary))
        drop_replaced(self.path)

    def records(self) -> list[Record]:
        """Read metrics.jsonl: the records of training, in their order."""
        records = list(self._typed(Record, "metrics.jsonl"))
        for number, record in enumerate(records, start=1):
            if record.step < 1 or record.replica < 0:
                self._damaged(f"metrics.jsonl, line {number}", "steps begin at 1, replicas at 0")
        return records

    def append_records(self, records: Iterable[Record]) -> None:
        """Append records to metrics.jsonl, without their fields that are None.

        Only who trains the run may do that: see `training`.
        """
        given = map(asdict, records)
        rows = [{key: value for key, value in row.items() if value is not None} for row in given]
        if rows:
            path = self.path / "metrics.jsonl"
            append_to_file(path, _lines(rows, path))

    def evaluations(self) -> list[EvaluationRow]:
        """Read eval.jsonl: the rows about the weights that the run has now, in their order.

        Which rows these are, and what is said of the others: see `evidence`.
        """
        again = "evaluate the run again"
        return self._current(list(self._typed(EvaluationRow, "eval.jsonl")), "eval.jsonl", again)

    def append_evaluation(self, rows: Sequence[EvaluationRow]) -> None:
        """Append rows to eval.jsonl."""
        self.append("eval.jsonl", map(_evaluation, rows))

    def evidence(self) -> list[EvidenceRow]:
        """Read evidence.jsonl: the rows about the weights that the run has now, in their order.

        Rows of a kind that this version does not know are left out, and stay in the file. Rows
        about other weights are left out too, and a `StatetrackWarning` says how many; those
        without a hash, and all where there are no weights to compare with, are taken as they are.
        """
        rows = [row for row in self._evidence() if row is not None]
        return self._current(rows, "evidence.jsonl", "look for the evidence again")

    def _current(self, rows: list[OfWeights], name: str, again: str) -> list[OfWeights]:
        """The rows about the weights that the run has now; a warning counts the others."""
        if not rows:
            return rows
        if self.extended:  # what has no hash was found before, by an earlier version
            hashed = self.weights_hash()
            current = [row for row in rows if hashed and row.weights == hashed]
        else:
            hashed = self.weights_hash() if any(row.weights for row in rows) else None
            current = [
                row for row in rows if None in (hashed, row.weights) or row.weights == hashed
            ]
        if stale := len(rows) - len(current):
            warnings.warn(
                f"{self.path / name}: {stale} of its rows are about other weights than "
                f"the run has now, and are not counted; {again}",
                StatetrackWarning,
                stacklevel=4,
            )
        return current

    def _evidence(self) -> Iterator[EvidenceRow | None]:
        for number, row in enumerate(self.rows("evidence.jsonl"), start=1):
            yield EvidenceRow.from_json(row, f"{self.path / 'evidence.jsonl'}, line {number}")

    def append_evidence(self, rows: Sequence[EvidenceRow]) -> None:
        """Append rows to evidence.jsonl."""
        self.append("evidence.jsonl", [row.to_json() for row in rows])

    def cell(self) -> dict[str, Any] | None:
        """Read cell.json, or None where the run is not a finished cell of a suite."""
        return self.read_json("cell.json") if os.path.lexists(self.path / "cell.json") else None

    def write_cell(self, result: Mapping[str, Any]) -> None:
        """Write cell.json."""
        self.write_json("cell.json", result)

    def alone(self) -> AbstractContextManager[None]:
        """The right to train and measure the run as a point of a sweep: see `locking.point`."""
        return locking.point(self.path)

    def begun(self) -> float:
        """When the last process that runs this point began, by the file system's clock; 0: none."""
        return locking.time_of_point(self.path)

    def newest_step(self) -> int:
        """The step of the last record of training, quickly; 0 where there is none."""
        try:
            with (self.path / "metrics.jsonl").open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - LONGEST_ROW))
                whole = file.read().rpartition(b"\n")[0]
            return int(json.loads(whole.rpartition(b"\n")[2])["step"])
        except (OSError, ValueError, KeyError, TypeError):
            return 0

    def begin_measurement(self, how: Mapping[str, Any]) -> list[EvaluationRow]:
        """The rows of an interrupted measurement that was made in the same way, in measuring.jsonl.

        One that was made otherwise is deleted, and another one begun.
        """
        name = "measuring.jsonl"
        first = to_json({"measured": how})
        kept = self.rows(name)
        if kept and to_json(kept[0]) == first:
            return [read_row(EvaluationRow, row, str(self.path / name)) for row in kept[1:]]
        self.write_text(name, first + "\n")
        return []

    def append_to_measurement(self, rows: Iterable[EvaluationRow]) -> None:
        """Append rows to measuring.jsonl. Only who has the right to measure may do that."""
        path = self.path / "measuring.jsonl"
        append_to_file(path, _lines(map(_evaluation, rows), path))

    def end_measurement(self) -> None:
        """Delete measuring.jsonl and the lock of a point, once its result is complete."""
        self.drop_measurement()
        locking.remove_point_lock(self.path)

    def drop_measurement(self) -> None:
        """Delete measuring.jsonl, once its rows are in eval.jsonl and in cell.json."""
        with suppress(OSError):
            (self.path / "measuring.jsonl").unlink(missing_ok=True)

    def _typed(self, kind: type[T], name: str) -> Iterator[T]:
        for number, row in enumerate(self.rows(name), start=1):
            yield read_row(kind, row, f"{self.path / name}, line {number}")

    def cut_metrics(self, step: int) -> None:
        """Remove the records after `step`, which training will write again."""
        rows = zip(self.rows("metrics.jsonl"), self.records(), strict=True)
        kept = [row for row, record in rows if record.step <= step]
        self.write_text("metrics.jsonl", "".join(to_json(row) + "\n" for row in kept))

    def write_checkpoint(self, state: dict[str, Any], identity: Identity | None = None) -> None:
        """Write checkpoint.pt, with the identity of the run; by default as its files say now."""
        import torch

        identity = identity or self.identity()
        # a loss of power must not leave a checkpoint of later steps than the records
        synchronise(self.path / "metrics.jsonl")
        content = io.BytesIO()
        torch.save({**state, "identity": to_json(identity.to_json())}, content)
        write_file(self.path / "checkpoint.pt", content.getvalue())

    def checkpoint(self) -> dict[str, Any] | None:
        """Read checkpoint.pt, or None where training was stopped before the first.

        Raises `RunError` where it is damaged, or of other settings or another task.
        """
        return self._state("checkpoint.pt")

    def last(self) -> dict[str, Any] | None:
        """Read last.pt, the state after the last step; None where there is none.

        Raises `RunError` as `checkpoint` does.
        """
        return self._state("last.pt")

    def _state(self, name: str) -> dict[str, Any] | None:
        path = self.path / name
        if not os.path.lexists(path):
            return None
        import torch

        content = io.BytesIO(read_file(path))
        try:
            with zipfile.ZipFile(content) as records:
                if records.testzip() is not None:  # torch.load does not compare checksums
                    self.refuse_checkpoint(name=name)
            content.seek(0)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of pickles that nobody here writes
                state = torch.load(content, map_location="cpu", weights_only=True)
        except Exception:  # damaged pickles raise nearly everything
            self.refuse_checkpoint(name=name)
        if not isinstance(state, dict) or not all(isinstance(key, str) for key in state):
            self.refuse_checkpoint(name=name)
        if (stored := state.pop("identity", None)) is not None:
            about = _from_json(str(stored).encode(), str(path))
            advice = "" if name == "last.pt" else f"; {_START_AGAIN}"
            self._require_identity(name, about, advice)
        return state

    def refuse_checkpoint(self, why: str = "", name: str = "checkpoint.pt") -> NoReturn:
        """Raise `RunError`: checkpoint.pt, or last.pt, cannot be continued from."""
        because = f" ({why})" if why else ""
        advice = "the run cannot be extended" if name == "last.pt" else _START_AGAIN
        raise RunError(f"{self.path / name}: is damaged{because}: {advice}")

    def drop_checkpoint(self) -> None:
        """Delete checkpoint.pt and the lock of training, once the run has finished."""
        with suppress(OSError):  # the run has finished, and nobody reads the checkpoint any more
            (self.path / "checkpoint.pt").unlink(missing_ok=True)
        locking.remove_training_lock(self.path)

    def keep_last(self) -> None:
        """Keep checkpoint.pt as last.pt, once the run has finished: it is of the last step."""
        with suppress(OSError):  # then the run cannot be extended
            (self.path / "checkpoint.pt").replace(self.path / "last.pt")
        self.drop_checkpoint()

    def drop_last(self) -> None:
        """Delete last.pt, of a run that will not be extended."""
        with suppress(OSError):
            (self.path / "last.pt").unlink(missing_ok=True)

    @property
    def extended(self) -> bool:
        """Whether training was extended, or is about to be."""
        return bool(self.config().get("extended_at")) or self.extending

    @property
    def extending(self) -> bool:
        """Whether an extension is being begun: `begin_extension` says how it is completed."""
        return os.path.lexists(self.path / "extension.json")

    def begin_extension(self, config: Mapping[str, Any], about: Mapping[str, Any]) -> None:
        """Turn a finished run into an unfinished one with these settings, after its last step.

        `about` is what extensions.jsonl keeps of it. Only who has the right to train the run may do
        that. Once extension.json is there, nothing is lost: what is stopped then, `end_beginning`
        completes. Raises `RunError` where last.pt is missing, damaged or of other settings.
        """
        state = self.last()
        if state is None:
            raise RunError(
                f"{self.path}: has no last.pt, the state after its last step (it is deleted, or "
                "was not kept by an earlier version), so it cannot be extended: train it again, "
                f"with {setting('config')} {self.config_file}"
            )
        task = self.identity().task_hash
        self.write_checkpoint(state, Identity(config, task))
        self.write_json("extension.json", {"config": config, "about": about})
        self.end_beginning()

    def end_beginning(self) -> None:
        """Complete what `begin_extension` began: the result of the shorter training goes.

        Raises `RunError` where extension.json is damaged.
        """
        begun = self.read_json("extension.json")
        config, about = begun.get("config"), begun.get("about")
        if not isinstance(config, dict) or not isinstance(about, dict):
            self._damaged("extension.json", "it does not say what the run becomes")
        try:
            for name in ("summary.json", "weights.safetensors", "last.pt"):
                (self.path / name).unlink(missing_ok=True)
            if about not in self.rows("extensions.jsonl"):
                self.append("extensions.jsonl", [about])
            self.write_text("config.yaml", to_yaml(config))
            (self.path / "extension.json").unlink(missing_ok=True)
        except OSError as problem:
            raise RunError(f"{self.path}: cannot be extended: {reason_of(problem)}") from None

    def write_weights(self, weights: dict[str, Tensor], identity: Identity | None = None) -> None:
        """Write weights.safetensors, each tensor [R, ...], with the identity of the run.

        By default it is the one that the run's files have now.
        """
        import safetensors.torch

        alone = {name: value.detach().cpu().contiguous() for name, value in weights.items()}
        about = {"format": FORMAT} | (identity or self.identity()).to_json()
        about["tensors_sha256"] = _hash_of(alone)
        content = safetensors.torch.save(alone, {"statetrack": to_json(about)})
        write_file(self.path / "weights.safetensors", content)

    def weights(self) -> dict[str, Tensor]:
        """Read weights.safetensors.

        Raises `RunError` where it is damaged, or of other settings or another task.
        """
        import safetensors.torch

        path = self.path / "weights.safetensors"
        require_file(path, f"is missing; {self._advice()}")
        try:
            with safetensors.safe_open(path, "pt") as file:
                metadata = file.metadata() or {}
            weights: dict[str, Tensor] = safetensors.torch.load_file(path)
        except Exception as problem:  # damaged headers raise nearly everything
            raise RunError(f"{path}: is damaged ({reason_of(problem)})") from None
        about = _from_json(metadata.get("statetrack", "{}").encode(), str(path))
        if about.get("format") != FORMAT:
            raise RunError(
                f"{path}: is of format {about.get('format', 'unknown')}, and this version of "
                f"statetrack reads format {FORMAT}"
            )
        if about.get("tensors_sha256", (found := _hash_of(weights))) != found:
            raise RunError(f"{path}: is damaged: its tensors are not those that were written")
        self._require_identity("weights.safetensors", about)
        return weights

    def weights_hash(self) -> str | None:
        """The hash that weights.safetensors has of its tensors, which are not read.

        None where there is no such file, and where an earlier version wrote no hash.
        """
        import safetensors

        path = self.path / "weights.safetensors"
        if not os.path.lexists(path):
            return None
        require_file(path)
        try:
            with safetensors.safe_open(path, "np") as file:
                metadata = file.metadata() or {}
        except Exception as problem:  # damaged headers raise nearly everything
            raise RunError(f"{path}: is damaged ({reason_of(problem)})") from None
        about = _from_json(metadata.get("statetrack", "{}").encode(), str(path))
        found = about.get("tensors_sha256")
        return found if isinstance(found, str) else None

    def _require_identity(self, name: str, about: Mapping[str, Any], advice: str = "") -> None:
        """Raise `RunError` where a file of the run was written with other settings or tasks."""
        stored = Identity.from_json(about, str(self.path / name))
        if (difference := stored.difference(self.identity())) is not None:
            raise RunError(f"{self.path}: {name} does not belong to {difference}{advice}")

    def _damaged(self, name: str, why: str) -> NoReturn:
        raise RunError(f"{self.path / name}: is damaged: {why}")

    def _advice(self) -> str:
        return f"if training was interrupted, `statetrack train --resume {self.path}` continues it"


def _evaluation(row: EvaluationRow) -> dict[str, Any]:
    return row.to_json() | {"evaluation_seed": row.evaluation_seed, "weights": row.weights}


def to_json(content: Any, indent: int | None = None) -> str:
    """Strict JSON: NaN and infinity become null."""
    return json.dumps(plain(content), indent=indent, allow_nan=False)


def to_yaml(content: Mapping[str, Any]) -> str:
    """The text of a YAML file, keys in the order given."""
    return yaml_text.dump(content)


def _from_json(text: bytes, where: str) -> dict[str, Any]:
    """The object that a strict JSON text holds."""

    def refuse(constant: str) -> NoReturn:
        raise ValueError(f"{constant} is not JSON")

    try:
        content = json.loads(text.decode(), parse_constant=refuse)
    except RecursionError:
        raise RunError(f"{where}: is damaged: nested too deeply") from None
    except ValueError as problem:
        raise RunError(f"{where}: is damaged: not JSON ({reason_of(problem)})") from None
    if not isinstance(content, dict):
        raise RunError(f"{where}: is damaged: it holds no names and values")
    return content


def _lines(rows: Iterable[Mapping[str, Any]], path: Path, longest: int = LONGEST_ROW) -> bytes:
    """Rows as lines of a `.jsonl`."""
    lines = [f"{to_json(row)}\n".encode() for row in rows]
    if any(len(line) > longest for line in lines):
        raise RunError(f"{path}: cannot be written: a row has more than {longest:,} bytes")
    return b"".join(lines)


def _hash_of(tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 of names and values."""
    import torch

    found = hashlib.sha256()
    for name in sorted(tensors):
        found.update(name.encode() + b"\0")
        found.update(tensors[name].reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()


def _wrong_in_summary(summary: Summary) -> str | None:
    """What cannot be in a summary; None where there is nothing."""
    if summary.steps < 0 or not 0 <= summary.seconds < math.inf:
        return "steps and seconds are not negative"
    if [one.replica for one in summary.replicas] != list(range(len(summary.replicas))):
        return "its replicas are not numbered from 0, each once"
    for one in summary.replicas:
        if not 0 <= one.best_step <= summary.steps:
            return f"the best step of replica {one.replica} is {one.best_step} of {summary.steps}"
        if one.validation_accuracy is not None and not 0 <= one.validation_accuracy <= 1:
            return f"the accuracy of replica {one.replica} is not between 0 and 1"
    return None


def write_error(path: Path, content: Mapping[str, Any]) -> Path:
    """Keep why a point of a sweep failed; return the file.

    It is error.json in the point's folder, or stands beside it where there is no run.
    """
    file = path / "error.json" if is_run(path) else _beside(path)
    drop_error(path)
    with suppress(OSError):  # writing says why
        file.parent.mkdir(parents=True, exist_ok=True)
    write_file(file, (to_json(content, indent=2) + "\n").encode())
    return file


def read_error(path: Path) -> str | None:
    """Why a point of a sweep failed, as `write_error` has kept it; None where it did not.

    Raises `RunError` where the file that keeps it is damaged.
    """
    for file in (path / "error.json", _beside(path)):
        if is_file(file):
            said = _from_json(read_file(file, largest=LARGEST_JSON), str(file)).get("error")
            return str(said or "it is not known why")
    return None


def drop_error(path: Path) -> None:
    """Delete what `write_error` has written, if anything."""
    for file in (path / "error.json", _beside(path)):
        with suppress(OSError):
            file.unlink(missing_ok=True)


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.error.json")


def is_run(path: Path) -> bool:
    """Whether a path is a run folder."""
    return is_file(path / "config.yaml")


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

    for path, inside, files in os.walk(place, onerror=note_unreadable):
        here = Path(path)
        if not set(SIGNS_OF_A_RUN).isdisjoint(files + inside):
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


def _is_empty_folder(path: Path) -> bool:
    try:
        return is_folder(path) and not any(path.iterdir())
    except OSError:
        return False
