"""The run folder: the only code that knows the names of files inside a run.

It writes and reads typed values; torch is imported only where weights are read or written.

    config.yaml           every setting, flat: `statetrack train --config` repeats the run
    task.yaml             the task, complete in itself
    plugin.py             the user's own file, if the run needs one, next to copies of the modules
                          that it imports; plugin_2.py for a second one
    environment.json      versions, machine, command, start
    metrics.jsonl         one record per line: step, replica, loss, accuracy, validation_*
    checkpoint.pt         the state that `--resume` needs; deleted once training has finished
    weights.safetensors   the best weights of every replica, each tensor [R, ...]
    summary.json          every replica's outcome and the selected one; exists when finished
    eval.jsonl            one row per replica and length, appended by `statetrack eval`
    cell.json             the result of a suite's cell, if the run is one

Every file but the two `.jsonl` is written under a temporary name and then renamed, so a killed
process leaves either the old file or the new one. An incomplete last line of the two is not read,
and the next line replaces it.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from safetensors import SafetensorError

from statetrack import yaml_text
from statetrack.errors import RunError, setting
from statetrack.plugins import PluginFiles
from statetrack.runs.rows import EvaluationRow, Summary, read_row
from statetrack.scoring import plain
from statetrack.settings import read_yaml
from statetrack.training.records import Record

if TYPE_CHECKING:
    from torch import Tensor

T = TypeVar("T")

FORMAT = 1
"""Version of the names above and of those inside the files; raised when one changes meaning."""

LONGEST_ROW = 1 << 16
"""An upper bound of the bytes in a line of the two `.jsonl`."""

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
    ) -> RunFolder:
        """A new run folder with the files that are written before training: see `create`.

        `task` is the text of a task file. `plugins` are the user's own files; the modules that one
        imports from its own folder are kept next to it.
        """
        files: dict[str, str | bytes] = {}
        files |= {"task.yaml": task, "environment.json": to_json(environment, indent=2) + "\n"}
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
        return cls.create(path, files)

    @classmethod
    def create(cls, path: Path, files: Mapping[str, str | bytes]) -> RunFolder:
        """A new run folder with these files in it, created with all of them or not at all.

        An existing folder is used only if it is empty, and is refused otherwise.
        """
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            unfinished = is_run(path) and not cls(path).finished
            hint = f", or continue it with `statetrack train --resume {path}`" if unfinished else ""
            raise RunError(
                f"{path}: already exists and is not empty: choose another {setting('out')}{hint}"
            )
        beside = path if path.exists() else path.with_name(f".{path.name}.{os.getpid()}")
        try:
            beside.mkdir(parents=True, exist_ok=True)
            for name, text in files.items():
                cls(beside).write_file(name, text)
            if beside != path:
                beside.rename(path)
        except (OSError, RunError) as problem:
            if beside != path:
                shutil.rmtree(beside, ignore_errors=True)
            raise RunError(f"{path}: cannot be made: {_reason(problem)}") from None
        return cls(path)

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """An existing run folder."""
        if not path.is_dir():
            raise RunError(
                f"{path}: there is no such run folder; `statetrack list runs` shows them"
            )
        if not is_run(path):
            raise RunError(f"{path}: not a run folder (it has no config.yaml)")
        return cls(path)

    @property
    def finished(self) -> bool:
        """Whether training has finished."""
        return (self.path / "summary.json").is_file()

    @property
    def config_file(self) -> Path:
        """config.yaml."""
        return self.path / "config.yaml"

    def config(self) -> dict[str, Any]:
        """Read config.yaml."""
        return read_yaml(self.config_file, RunError)

    def environment(self) -> dict[str, Any]:
        """Read environment.json."""
        return self.read_json("environment.json")

    @property
    def task_file(self) -> Path:
        """task.yaml."""
        return self.path / "task.yaml"

    def task_reference(self) -> str:
        """Where task.yaml says that the task comes from."""
        return str(read_yaml(self.task_file, RunError).get("reference", ""))

    def automaton(self) -> dict[str, Any]:
        """The description of the automaton, or of the sampler, in task.yaml."""
        found = read_yaml(self.task_file, RunError).get("automaton")
        if not isinstance(found, dict):
            raise RunError(f"{self.task_file}: is damaged: 'automaton' holds no names and values")
        return found

    @property
    def plugins(self) -> list[Path]:
        """plugin.py, plugin_2.py and so on: the user's own files that the run needs."""
        return [
            path
            for path in (self.path / "plugin.py", *sorted(self.path.glob("plugin_[2-9].py")))
            if path.is_file()
        ]

    @property
    def code(self) -> list[Path]:
        """Every Python file in the folder, at any depth: what opening the run could execute."""
        return sorted(self.path.rglob("*.py"))

    def write_file(self, name: str, content: str | bytes) -> None:
        """Write a file of the run; text is encoded as UTF-8."""
        content = content.encode() if isinstance(content, str) else content
        (self.path / name).parent.mkdir(parents=True, exist_ok=True)
        self._write(name, lambda path: path.write_bytes(content))

    def write_text(self, name: str, text: str) -> None:
        """Write a text file of the run."""
        self.write_file(name, text)

    def write_json(self, name: str, content: Mapping[str, Any]) -> None:
        """Write environment.json or summary.json."""
        self.write_text(name, to_json(content, indent=2) + "\n")

    def read_json(self, name: str) -> dict[str, Any]:
        """Read environment.json or summary.json."""
        path = self.path / name
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise RunError(f"{path}: is missing; {self._advice()}") from None
        except ValueError as problem:
            raise RunError(f"{path}: is damaged ({problem})") from None
        if not isinstance(content, dict):
            raise RunError(f"{path}: is damaged (it holds no names and values)")
        return content

    def append(self, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Append rows to metrics.jsonl or eval.jsonl."""
        path = self.path / name
        lines = "".join(to_json(row) + "\n" for row in rows)
        try:
            with path.open("a+b") as file:
                _drop_cut_line(file)
                file.write(lines.encode())
        except OSError as problem:
            raise RunError(f"{path}: cannot be written: {_reason(problem)}") from None

    def rows(self, name: str) -> list[dict[str, Any]]:
        """The rows of metrics.jsonl or eval.jsonl; a last line cut short by a kill is left out."""
        path = self.path / name
        if not path.is_file():
            return []
        *lines, _ = path.read_bytes().split(b"\n")
        return [_row(line, f"{path}, line {number}") for number, line in enumerate(lines, start=1)]

    def summary(self) -> Summary:
        """Read summary.json."""
        return read_row(Summary, self.read_json("summary.json"), str(self.path / "summary.json"))

    def write_summary(self, summary: Summary) -> None:
        """Write summary.json, after which the run is finished."""
        self.write_json("summary.json", asdict(summary))

    def records(self) -> list[Record]:
        """Read metrics.jsonl: the records of training, in their order."""
        return list(self._typed(Record, "metrics.jsonl"))

    def append_records(self, records: Iterable[Record]) -> None:
        """Append records to metrics.jsonl, without their fields that are None."""
        plain = map(asdict, records)
        self.append(
            "metrics.jsonl",
            ({key: value for key, value in row.items() if value is not None} for row in plain),
        )

    def evaluations(self) -> list[EvaluationRow]:
        """Read eval.jsonl: the rows of all evaluations, in their order."""
        return list(self._typed(EvaluationRow, "eval.jsonl"))

    def append_evaluation(self, rows: Sequence[EvaluationRow]) -> None:
        """Append rows to eval.jsonl."""
        self.append(
            "eval.jsonl",
            [row.to_json() | {"evaluation_seed": row.evaluation_seed} for row in rows],
        )

    def cell(self) -> dict[str, Any] | None:
        """Read cell.json, or None where the run is not a finished cell of a suite."""
        return self.read_json("cell.json") if (self.path / "cell.json").is_file() else None

    def write_cell(self, result: Mapping[str, Any]) -> None:
        """Write cell.json."""
        self.write_json("cell.json", result)

    def _typed(self, kind: type[T], name: str) -> Iterator[T]:
        for number, row in enumerate(self.rows(name), start=1):
            yield read_row(kind, row, f"{self.path / name}, line {number}")

    def cut_metrics(self, step: int) -> None:
        """Remove the records after `step`, which training will write again."""
        rows = zip(self.rows("metrics.jsonl"), self.records(), strict=True)
        kept = [row for row, record in rows if record.step <= step]
        self.write_text("metrics.jsonl", "".join(to_json(row) + "\n" for row in kept))

    def write_checkpoint(self, state: dict[str, Any]) -> None:
        """Write checkpoint.pt."""
        import torch

        self._write("checkpoint.pt", lambda path: torch.save(state, path))

    def checkpoint(self) -> dict[str, Any] | None:
        """Read checkpoint.pt, or None where training was stopped before the first."""
        path = self.path / "checkpoint.pt"
        if not path.is_file():
            return None
        import torch

        try:
            state = torch.load(path, map_location="cpu", weights_only=True)
        except (RuntimeError, EOFError, pickle.UnpicklingError):
            raise RunError(f"{path}: is damaged: delete it to train from the start") from None
        assert isinstance(state, dict)
        return state

    def write_weights(self, weights: dict[str, Tensor]) -> None:
        """Write weights.safetensors, each tensor [R, ...]."""
        import safetensors.torch

        metadata = {"statetrack": json.dumps({"format": FORMAT, "config": self.config()})}
        plain = {name: value.detach().cpu().contiguous() for name, value in weights.items()}
        self._write(
            "weights.safetensors",
            lambda path: safetensors.torch.save_file(plain, path, metadata),
        )

    def drop_checkpoint(self) -> None:
        """Delete checkpoint.pt, once the run has finished."""
        (self.path / "checkpoint.pt").unlink(missing_ok=True)

    def weights(self) -> dict[str, Tensor]:
        """Read weights.safetensors."""
        import safetensors.torch

        path = self.path / "weights.safetensors"
        if not path.is_file():
            raise RunError(f"{path}: is missing; {self._advice()}")
        try:
            with safetensors.safe_open(path, "pt") as file:
                about = json.loads((file.metadata() or {}).get("statetrack", "{}"))
            weights: dict[str, Tensor] = safetensors.torch.load_file(path)
        except (SafetensorError, OSError, ValueError) as problem:
            raise RunError(f"{path}: is damaged ({problem})") from None
        if about.get("format") != FORMAT:
            raise RunError(
                f"{path}: is of format {about.get('format', 'unknown')}, and this version of "
                f"statetrack reads format {FORMAT}"
            )
        return weights

    def _advice(self) -> str:
        return f"if training was interrupted, `statetrack train --resume {self.path}` continues it"

    def _write(self, name: str, write: Callable[[Path], object]) -> None:
        path = self.path / name
        beside = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            write(beside)
            beside.replace(path)
        except (OSError, RuntimeError, SafetensorError) as problem:
            beside.unlink(missing_ok=True)
            raise RunError(f"{path}: cannot be written: {_reason(problem)}") from None


def to_json(content: Any, indent: int | None = None) -> str:
    """Strict JSON: NaN and infinity become null."""
    return json.dumps(plain(content), indent=indent, allow_nan=False)


def to_yaml(content: Mapping[str, Any]) -> str:
    """The text of a YAML file, keys in the order given."""
    return yaml_text.dump(content)


def _row(line: bytes, where: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError:
        raise RunError(f"{where}: is damaged: not JSON") from None
    if not isinstance(row, dict):
        raise RunError(f"{where}: is damaged: it holds no names and values")
    return row


def _drop_cut_line(file: BinaryIO) -> None:
    """Remove a last line without its end, as a killed process or a full disk leaves it."""
    end = file.seek(0, os.SEEK_END)
    begin = file.seek(max(0, end - LONGEST_ROW))
    file.truncate(begin + file.read().rfind(b"\n") + 1)


def _reason(problem: Exception) -> str:
    reason = getattr(problem, "strerror", None) or str(problem).strip() or type(problem).__name__
    return str(reason).splitlines()[0]


def is_run(path: Path) -> bool:
    """Whether a path is a run folder."""
    return (path / "config.yaml").is_file()


def find_run_folders(places: Iterable[Path]) -> list[Path]:
    """The run folders among the given folders and in them at any depth, once each, by name.

    Damaged ones are included. Raises `RunError` for a folder that is no run and contains none.
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


def find_runs(folder: Path) -> list[RunFolder]:
    """The runs directly inside a folder, oldest first."""
    if not folder.is_dir():
        return []
    configs = sorted(folder.glob("*/config.yaml"), key=lambda path: path.stat().st_mtime_ns)
    return [RunFolder(path.parent) for path in configs]


def newest_run(folder: Path) -> RunFolder:
    """The run that was started last.

    Raises `RunError` for a folder without runs.
    """
    runs = find_runs(folder)
    if not runs:
        raise RunError(f"there is no run in {folder}/ yet: `statetrack train` makes one")
    return runs[-1]
