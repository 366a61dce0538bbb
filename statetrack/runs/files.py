"""The files of a run: a table that says what each holds, and how it is read and written.

Every file but the `.jsonl` is written under a temporary name and then renamed, so a killed process
leaves either the old file or the new one. An incomplete last line of a `.jsonl` is not read, and
the next line replaces it. What a file holds is read as the type that the table says, or refused
with the file, the line and the key. torch is imported only where weights are read or written.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import warnings
import zipfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

from statetrack import yaml_text
from statetrack.errors import RunError
from statetrack.runs import locking
from statetrack.runs.disk import (
    LONGEST_ROW,
    append_to_file,
    is_file,
    read_file,
    read_lines,
    reason_of,
    require_file,
    synchronise,
    write_file,
)
from statetrack.runs.rows import MOST, EvaluationRow, EvidenceRow, Identity, Summary, read_row
from statetrack.scoring import plain
from statetrack.settings import read_yaml
from statetrack.text import as_argument
from statetrack.training import Record

if TYPE_CHECKING:
    from torch import Tensor

T = TypeVar("T")
Values = dict[str, Any]
"""Names and plain values."""

FORMAT = 1
"""Version of the names below and of those inside the files; raised when one changes meaning."""

LONGEST_EVIDENCE = 1 << 20
"""An upper bound of the bytes in a line of evidence.jsonl, which may hold a long word."""

LARGEST_JSON = 1 << 25
"""An upper bound of the bytes in a `.json` file of a run."""

MISSING = "is missing"
"""What is said of a file that is not there."""


def missing_from(run: Path) -> str:
    """What is said of a file that a run gets, in its folder: what to do differs at its end."""
    config = as_argument(run / CONFIG.name)
    if is_file(run / SUMMARY.name):
        return f"{MISSING}: `statetrack train --config {config}` trains such a run again"
    return (
        f"{MISSING}; if training was interrupted, `statetrack train --resume {as_argument(run)}` "
        "continues it"
    )


@dataclass(frozen=True)
class RunFile(Generic[T]):
    """A file of a run, which holds one thing: its name, and what that is, and when it exists.

    `load` reads it from its path, and `dump` makes the bytes that are written. Reading raises
    `RunError` where the file is damaged, and where it is `missing`.
    """

    name: str
    about: str
    load: Callable[[Path], T]
    dump: Callable[[T], bytes]
    missing: Callable[[Path], str] = missing_from

    def read(self, run: Path) -> T:
        """What the file holds in the folder of a run."""
        return self.load(self.require(run))

    def require(self, run: Path) -> Path:
        """The path of the file, which is there."""
        require_file(run / self.name, self.missing(run))
        return run / self.name

    def write(self, run: Path, content: T) -> None:
        """Write the file, in place of the one that is there."""
        write_file(run / self.name, self.dump(content))


@dataclass(frozen=True)
class RowFile(Generic[T]):
    """A `.jsonl` of a run, to which rows are appended: none are there where there is no file.

    `load` makes a row of the plain values of a line, said to stand at a place, and `dump` the
    reverse. Rows are of at most `longest` bytes. Where several processes may append at once, it is
    `shared`.
    """

    name: str
    about: str
    load: Callable[[Values, str], T]
    dump: Callable[[T], Mapping[str, Any]]
    longest: int = LONGEST_ROW
    shared: bool = True

    def read(self, run: Path) -> list[T]:
        """The rows; a last line cut short by a kill is left out."""
        return [
            self.load(row, f"{run / self.name}, line {number}")
            for number, row in enumerate(self.plain_rows(run), start=1)
        ]

    def plain_rows(self, run: Path) -> list[Values]:
        """The rows as the plain values that stand in the file."""
        path = run / self.name
        lines = enumerate(read_lines(path, self.longest), start=1)
        return [from_json(line, f"{path}, line {number}") for number, line in lines]

    def append(self, run: Path, rows: Iterable[T]) -> None:
        """Append rows, all of them or none, after those of other processes.

        To a file that is not `shared`, only who has the right to train or measure may do that.
        """
        path, content = run / self.name, self._lines(run, map(self.dump, rows))
        if not self.shared:
            append_to_file(path, content, self.longest)
        else:
            with locking.appending(path):
                append_to_file(path, content, self.longest)

    def write(self, run: Path, rows: Iterable[Mapping[str, Any]]) -> None:
        """Write the file with these rows of plain values, in place of the one that is there."""
        write_file(run / self.name, self._lines(run, rows))

    def _lines(self, run: Path, rows: Iterable[Mapping[str, Any]]) -> bytes:
        lines = [f"{to_json(row)}\n".encode() for row in rows]
        if any(len(line) > self.longest for line in lines):
            raise RunError(
                f"{run / self.name}: cannot be written: a row has more than {self.longest:,} bytes"
            )
        return b"".join(lines)


@dataclass(frozen=True)
class StateFile:
    """The state of training at a step, with the settings and the task that it is of.

    `advice` says what is left to do where training cannot go on from it.
    """

    name: str
    about: str
    advice: str

    def read(self, run: Path) -> Values | None:
        """The state; None where there is none.

        Raises `RunError` where it is damaged, or of other settings or another task.
        """
        path = run / self.name
        if not os.path.lexists(path):
            return None
        import torch

        content = io.BytesIO(read_file(path))
        try:
            with zipfile.ZipFile(content) as records:
                if records.testzip() is not None:  # torch.load does not compare checksums
                    self.refuse(run)
            content.seek(0)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of pickles that nobody here writes
                state = torch.load(content, map_location="cpu", weights_only=True)
        except Exception:  # damaged pickles raise nearly everything
            self.refuse(run)
        if not isinstance(state, dict) or not all(isinstance(key, str) for key in state):
            self.refuse(run)
        if (stored := state.pop("identity", None)) is not None:
            about = from_json(str(stored).encode(), str(path))
            _require_identity(path, about, f"; {self.advice}")
        return state

    def write(self, run: Path, state: Values, identity: Identity | None = None) -> None:
        """Write a state of the run's own settings and task: those of its files, or these."""
        import torch

        # a loss of power must not leave a state of later steps than the records
        synchronise(run / METRICS.name)
        content = io.BytesIO()
        of = identity or identity_of(run)
        torch.save({**state, "identity": to_json(of.to_json())}, content)
        write_file(run / self.name, content.getvalue())

    def refuse(self, run: Path, why: str = "") -> NoReturn:
        """Raise `RunError`: training cannot go on from it."""
        because = f" ({why})" if why else ""
        raise RunError(f"{run / self.name}: is damaged{because}: {self.advice}")


@dataclass(frozen=True)
class WeightsFile:
    """Weights, each tensor [R, ...], with the settings and the task that they are of."""

    name: str
    about: str

    def read(self, run: Path) -> dict[str, Tensor]:
        """The weights.

        Raises `RunError` where they are damaged, or of other settings or another task.
        """
        import safetensors.torch

        path = run / self.name
        require_file(path, missing_from(run))
        about = _metadata(path, "pt")
        try:
            weights: dict[str, Tensor] = safetensors.torch.load_file(path)
        except Exception as problem:  # damaged headers raise nearly everything
            raise RunError(f"{path}: is damaged ({reason_of(problem)})") from None
        if about.get("format") != FORMAT:
            raise RunError(
                f"{path}: is of format {about.get('format', 'unknown')}, and this version of "
                f"statetrack reads format {FORMAT}"
            )
        if about.get("tensors_sha256", (found := _hash_of(weights))) != found:
            raise RunError(f"{path}: is damaged: its tensors are not those that were written")
        _require_identity(path, about)
        return weights

    def write(
        self, run: Path, weights: dict[str, Tensor], identity: Identity | None = None
    ) -> None:
        """Write weights of the run's own settings and task: those of its files, or these."""
        import safetensors.torch

        alone = {name: value.detach().cpu().contiguous() for name, value in weights.items()}
        about = {"format": FORMAT} | (identity or identity_of(run)).to_json()
        about["tensors_sha256"] = _hash_of(alone)
        content = safetensors.torch.save(alone, {"statetrack": to_json(about)})
        write_file(run / self.name, content)

    def hash_in(self, run: Path) -> str | None:
        """The hash that the file has of its tensors, which are not read.

        None where there is no such file, and where an earlier version wrote no hash. Raises
        `RunError` where its head is damaged, or says other settings or another task.
        """
        path = run / self.name
        if not os.path.lexists(path):
            return None
        require_file(path)
        about = _metadata(path, "np")
        _require_identity(path, about)
        found = about.get("tensors_sha256")
        return found if isinstance(found, str) else None


def is_there(run: Path, file: AnyFile) -> bool:
    """Whether a run has a file, or something else that bears its name."""
    return os.path.lexists(run / file.name)


def remove(run: Path, *files: AnyFile) -> None:
    """Delete files of a run that nobody reads any more, where they are there and can be."""
    for file in files:
        with suppress(OSError):
            (run / file.name).unlink(missing_ok=True)


def identity_of(run: Path) -> Identity:
    """What weights and states of training of a run belong to, as its files say now."""
    task = read_file(run / TASK.name) if is_there(run, TASK) else None
    return Identity.of(CONFIG.read(run), task)


def _require_identity(path: Path, about: Mapping[str, Any], advice: str = "") -> None:
    """Raise `RunError` where a file of a run was written with other settings or another task."""
    stored = Identity.from_json(about, str(path))
    if (difference := stored.difference(identity_of(path.parent))) is not None:
        raise RunError(f"{path.parent}: {path.name} does not belong to {difference}{advice}")


def _metadata(path: Path, framework: str) -> Values:
    """What stands in the head of a file of weights."""
    import safetensors

    try:
        with safetensors.safe_open(path, framework) as file:
            metadata = file.metadata() or {}
    except Exception as problem:  # damaged headers raise nearly everything
        raise RunError(f"{path}: is damaged ({reason_of(problem)})") from None
    return from_json(metadata.get("statetrack", "{}").encode(), str(path))


def _hash_of(tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 of names and values."""
    import torch

    found = hashlib.sha256()
    for name in sorted(tensors):
        found.update(name.encode() + b"\0")
        found.update(tensors[name].reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()


# --- texts of the files ---


def to_json(content: Any, indent: int | None = None) -> str:
    """Strict JSON: NaN and infinity become null."""
    return json.dumps(plain(content), indent=indent, allow_nan=False)


def to_yaml(content: Mapping[str, Any]) -> str:
    """The text of a YAML file, keys in the order given."""
    return yaml_text.dump(content)


def from_json(text: bytes, where: str) -> Values:
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


def read_json(path: Path) -> Values:
    """The object in a `.json` file."""
    return from_json(read_file(path, largest=LARGEST_JSON), str(path))


def json_bytes(content: Any) -> bytes:
    """A `.json` file."""
    return (to_json(content, indent=2) + "\n").encode()


def _yaml(path: Path) -> Values:
    return read_yaml(path, RunError)


def _yaml_bytes(content: Mapping[str, Any]) -> bytes:
    return to_yaml(content).encode()


def _damaged(where: Path | str, why: str) -> NoReturn:
    raise RunError(f"{where}: is damaged: {why}")


# --- what stands in them, by its type ---


def _environment(path: Path) -> Values:
    content = read_json(path)
    for key, value in content.items():
        if isinstance(value, dict | list):
            _damaged(path, f"'{key}' is neither a text nor a number")
        if type(value) is int and abs(value) > MOST:
            _damaged(path, f"'{key}' is a number of more than 63 bits")
    return content


def _record(row: Values, where: str) -> Record:
    record = read_row(Record, row, where)
    if record.step < 1 or record.replica < 0:
        _damaged(where, "steps begin at 1, replicas at 0")
    return record


def _of_record(record: Record) -> Values:
    return {name: value for name, value in asdict(record).items() if value is not None}


def _summary(path: Path) -> Summary:
    summary = read_row(Summary, read_json(path), str(path))
    if (wrong := _wrong_in_summary(summary)) is not None:
        _damaged(path, wrong)
    return summary


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
        share = one.validation_prefix_accuracy
        if share is not None and not 0 <= share <= 1:
            return f"the share of right words of replica {one.replica} is not between 0 and 1"
    return None


def _of_evaluation(row: EvaluationRow) -> Values:
    return row.to_json() | {"evaluation_seed": row.evaluation_seed, "weights": row.weights}


def _of_evidence(row: EvidenceRow | None) -> Values:
    assert row is not None, "only a row that is read may be of an unknown kind"
    return row.to_json()


def _extension(path: Path) -> tuple[Values, Values]:
    begun = read_json(path)
    config, about = begun.get("config"), begun.get("about")
    if not isinstance(config, dict) or not isinstance(about, dict):
        _damaged(path, "it does not say what the run becomes")
    return config, about


def _of_extension(begun: tuple[Values, Values]) -> bytes:
    return json_bytes(dict(zip(("config", "about"), begun, strict=True)))


def _as_it_is(row: Values, where: str) -> Values:
    return row


def _plain(row: Values) -> Values:
    return row


CONFIG: RunFile[Values] = RunFile(
    "config.yaml",
    "every setting, flat: `statetrack train --config` repeats the run",
    _yaml,
    _yaml_bytes,
    missing=lambda run: MISSING,
)
TASK: RunFile[Values] = RunFile("task.yaml", "the task, complete in itself", _yaml, _yaml_bytes)
PLUGIN: RunFile[bytes] = RunFile(
    "plugin.py",
    "the user's own file, if the run needs one, next to copies of the modules that it imports; "
    "plugin_2.py for a second one",
    read_file,
    bytes,
)
ENVIRONMENT: RunFile[Values] = RunFile(
    "environment.json", "versions, machine, command, start", _environment, json_bytes
)
METRICS: RowFile[Record] = RowFile(
    "metrics.jsonl",
    "one record per line: step, replica, loss, accuracy, validation_*",
    _record,
    _of_record,
    shared=False,
)
CHECKPOINT = StateFile(
    "checkpoint.pt",
    "the state that `--resume` needs; gone once training has finished",
    "delete it to train from the start",
)
LAST = StateFile(
    "last.pt",
    "the state after the last step, from which training may be extended",
    "the run cannot be extended",
)
EXTENSIONS: RowFile[Values] = RowFile(
    "extensions.jsonl",
    "one row per extension: from which step to which, and where it was begun",
    _as_it_is,
    _plain,
)
EXTENSION: RunFile[tuple[Values, Values]] = RunFile(
    "extension.json", "an extension that is being begun: its settings", _extension, _of_extension
)
WEIGHTS = WeightsFile(
    "weights.safetensors", "the best weights of every replica, each tensor [R, ...]"
)
INITIAL = WeightsFile(
    "initial.safetensors",
    "the weights that every replica starts from, each tensor [1, ...], where they are not random",
)
SUMMARY: RunFile[Summary] = RunFile(
    "summary.json",
    "every replica's outcome and the selected one; exists when training has finished",
    _summary,
    lambda summary: json_bytes(asdict(summary)),
)
EVALUATIONS: RowFile[EvaluationRow] = RowFile(
    "eval.jsonl",
    "one row per replica and length, appended by `statetrack eval`",
    partial(read_row, EvaluationRow),
    _of_evaluation,
)
EVIDENCE: RowFile[EvidenceRow | None] = RowFile(
    "evidence.jsonl",
    "one row per replica and kind of evidence, appended by `certify` and others",
    EvidenceRow.from_json,
    _of_evidence,
    longest=LONGEST_EVIDENCE,
)
CELL: RunFile[Values] = RunFile(
    "cell.json", "the result of a point of a sweep, if the run is one", read_json, json_bytes
)
ERROR: RunFile[Values] = RunFile(
    "error.json", "why that point failed, until it succeeds", read_json, json_bytes
)
MEASURING: RowFile[EvaluationRow] = RowFile(
    "measuring.jsonl",
    "how that point is scored, and the rows so far; until all are",
    partial(read_row, EvaluationRow),
    _of_evaluation,
    shared=False,
)

AnyFile = RunFile[Any] | RowFile[Any] | StateFile | WeightsFile

FILES: Mapping[str, AnyFile] = {
    file.name: file
    for file in (
        *(CONFIG, TASK, PLUGIN, ENVIRONMENT, METRICS, CHECKPOINT, LAST, EXTENSIONS, EXTENSION),
        *(WEIGHTS, INITIAL, SUMMARY, EVALUATIONS, EVIDENCE, CELL, ERROR, MEASURING),
    )
}
"""Every file of a run by its name, but for further plugins and the frequencies of words."""
