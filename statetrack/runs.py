"""The run folder: the only code that knows the names of files inside a run.

    config.yaml           every setting, flat: `statetrack train --config` repeats the run
    task.yaml             the task, complete in itself
    plugin.py             the user's own model file, where there was one
    environment.json      versions, machine, command, start
    metrics.jsonl         one record per line: step, replica, loss, accuracy, validation_*
    checkpoint.pt         what `--resume` needs; gone once training has finished
    weights.safetensors   the best weights of every replica, each tensor [R, ...]
    summary.json          every replica's outcome and the selected one; stands when finished
    eval.jsonl            one row per replica and length, appended by `statetrack eval`

Every file but the two `.jsonl` is written beside its place and then moved there, so a killed
process leaves either the old file or the new one. A line of the two that was cut short is not
read, and the next one is written over it.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import safetensors.torch
import torch
import yaml
from safetensors import SafetensorError
from torch import Tensor

from statetrack.errors import RunError
from statetrack.scoring import plain
from statetrack.settings import read_yaml

FORMAT = 1
"""Version of the names above and of those inside the files; raised when one changes meaning."""

LONGEST_ROW = 1 << 16
"""More bytes than any line of the two `.jsonl` has."""


@dataclass(frozen=True)
class RunFolder:
    """One run on disk.

    Raises `RunError` where a file is missing, foreign or damaged.
    """

    path: Path

    @classmethod
    def create(cls, path: Path, files: Mapping[str, str]) -> RunFolder:
        """A new run folder with these text files in it, which appears whole or not at all.

        An existing folder is taken only if it is empty; anything else is refused.
        """
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            unfinished = (path / "config.yaml").is_file() and not cls(path).finished
            hint = f", or go on with `statetrack train --resume {path}`" if unfinished else ""
            raise RunError(f"{path}: already exists and is not empty: choose another --out{hint}")
        beside = path if path.exists() else path.with_name(f".{path.name}.{os.getpid()}")
        try:
            beside.mkdir(parents=True, exist_ok=True)
            for name, text in files.items():
                cls(beside).write_text(name, text)
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
        if not (path / "config.yaml").is_file():
            raise RunError(f"{path}: not a run folder (it has no config.yaml)")
        return cls(path)

    @property
    def finished(self) -> bool:
        """Whether training has come to its end."""
        return (self.path / "summary.json").is_file()

    def config(self) -> dict[str, Any]:
        """Read config.yaml."""
        return read_yaml(self.path / "config.yaml", RunError)

    @property
    def task_file(self) -> Path:
        """task.yaml."""
        return self.path / "task.yaml"

    @property
    def plugin_file(self) -> Path | None:
        """plugin.py, if the run needs one."""
        path = self.path / "plugin.py"
        return path if path.is_file() else None

    def write_text(self, name: str, text: str) -> None:
        """Write a text file of the run."""
        self._write(name, lambda path: path.write_text(text, encoding="utf-8"))

    def write_json(self, name: str, content: dict[str, Any]) -> None:
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

    def append(self, name: str, rows: Iterable[dict[str, Any]]) -> None:
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

    def cut_metrics(self, step: int) -> None:
        """Forget the records after `step`, which training will write again."""
        kept = [row for row in self.rows("metrics.jsonl") if row["step"] <= step]
        self.write_text("metrics.jsonl", "".join(to_json(row) + "\n" for row in kept))

    def write_checkpoint(self, state: dict[str, Any]) -> None:
        """Write checkpoint.pt."""
        self._write("checkpoint.pt", lambda path: torch.save(state, path))

    def checkpoint(self) -> dict[str, Any] | None:
        """Read checkpoint.pt, or None where training was stopped before the first."""
        path = self.path / "checkpoint.pt"
        if not path.is_file():
            return None
        try:
            state = torch.load(path, map_location="cpu", weights_only=True)
        except (RuntimeError, EOFError, pickle.UnpicklingError):
            raise RunError(f"{path}: is damaged: delete it to train from the start") from None
        assert isinstance(state, dict)
        return state

    def write_weights(self, weights: dict[str, Tensor]) -> None:
        """Write weights.safetensors, each tensor [R, ...]."""
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
        return f"if training was interrupted, `statetrack train --resume {self.path}` goes on"

    def _write(self, name: str, write: Callable[[Path], object]) -> None:
        path = self.path / name
        beside = path.with_name(f".{name}.{os.getpid()}")
        try:
            write(beside)
            beside.replace(path)
        except (OSError, RuntimeError, SafetensorError) as problem:
            beside.unlink(missing_ok=True)
            raise RunError(f"{path}: cannot be written: {_reason(problem)}") from None


def to_json(content: Any, indent: int | None = None) -> str:
    """Strict JSON: what is no number (NaN, infinity) becomes null."""
    return json.dumps(plain(content), indent=indent, allow_nan=False)


def to_yaml(content: dict[str, Any]) -> str:
    """The text of a YAML file, keys in the order given."""
    return str(yaml.safe_dump(content, sort_keys=False, allow_unicode=True))


def _row(line: bytes, where: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError:
        raise RunError(f"{where}: is damaged: not JSON") from None
    if not isinstance(row, dict):
        raise RunError(f"{where}: is damaged: it holds no names and values")
    return row


def _drop_cut_line(file: BinaryIO) -> None:
    """Take away a last line that a kill or a full disk left without its end."""
    end = file.seek(0, os.SEEK_END)
    begin = file.seek(max(0, end - LONGEST_ROW))
    file.truncate(begin + file.read().rfind(b"\n") + 1)


def _reason(problem: Exception) -> str:
    reason = getattr(problem, "strerror", None) or str(problem).strip() or type(problem).__name__
    return str(reason).splitlines()[0]


def find_runs(folder: Path) -> list[RunFolder]:
    """The runs directly inside a folder, oldest first."""
    if not folder.is_dir():
        return []
    configs = sorted(folder.glob("*/config.yaml"), key=lambda path: path.stat().st_mtime_ns)
    return [RunFolder(path.parent) for path in configs]


def newest_run(folder: Path) -> RunFolder:
    """The run that was started last.

    Raises `RunError` where there is none.
    """
    runs = find_runs(folder)
    if not runs:
        raise RunError(f"there is no run in {folder}/ yet: `statetrack train` makes one")
    return runs[-1]
