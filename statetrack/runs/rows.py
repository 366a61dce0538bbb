"""The rows of a run: the outcome of each replica, the scores of an evaluation, and evidence.

They are typed in memory, and plain values in the files of a run folder; torch is not imported here.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints, overload

from pydantic import TypeAdapter, ValidationError

from statetrack.errors import RunError
from statetrack.evidence import EVIDENCE, Evidence
from statetrack.scoring import Score
from statetrack.settings import explain
from statetrack.training import Finish

T = TypeVar("T")


@dataclass(frozen=True)
class Outcome:
    """The outcome of one replica, at its best weights.

    `best_step` is 0, and the validation is None, where the replica diverged before any validation
    with a finite loss: its weights are then the initial ones. `stopped` says why training ended
    early, and is empty where it did not. `finish` is what the end of training did to the best
    weights, whose step stays `best_step`; None without the setting `finish`.
    """

    replica: int
    seed: int
    lr: float
    validation_accuracy: float | None
    validation_loss: float | None
    best_step: int
    stopped: str
    finish: Finish | None = None

    @property
    def diverged(self) -> bool:
        """Whether the replica has no trained weights, since no validation loss was finite."""
        return self.best_step == 0


@dataclass(frozen=True)
class Summary:
    """The outcome of a finished run: the content of summary.json.

    `selected` is None where all replicas diverged. A file of an earlier version may name a
    replica even then: that is None too.
    """

    steps: int
    seconds: float
    selected: int | None
    replicas: tuple[Outcome, ...]

    def __post_init__(self) -> None:
        if not self.replicas:
            raise ValueError("'replicas': there is none")
        if self.selected is None:
            if trained := self.trained:
                raise ValueError(f"'selected': is null, and replica {trained[0]} did not diverge")
        elif self.selected not in (outcome.replica for outcome in self.replicas):
            raise ValueError(f"'selected': there is no replica {self.selected}")
        elif self.of(self.selected).diverged:
            object.__setattr__(self, "selected", None)

    @property
    def chosen(self) -> Outcome | None:
        """The outcome of the selected replica; None where all replicas diverged."""
        return None if self.selected is None else self.of(self.selected)

    @property
    def trained(self) -> tuple[int, ...]:
        """The replicas that did not diverge."""
        return tuple(outcome.replica for outcome in self.replicas if not outcome.diverged)

    @property
    def diverged(self) -> tuple[Outcome, ...]:
        """The outcomes of the replicas that diverged."""
        return tuple(outcome for outcome in self.replicas if outcome.diverged)

    def of(self, replica: int) -> Outcome:
        """The outcome of a replica.

        Raises `RunError` where the run has no such replica.
        """
        for outcome in self.replicas:
            if outcome.replica == replica:
                return outcome
        raise RunError(f"there is no replica {replica}: the run has {len(self.replicas)}, from 0")


@dataclass(frozen=True, kw_only=True)
class EvaluationRow(Score):
    """The score of one replica at one length, with the words it was measured on.

    `task` is None in rows that were written before it was recorded: then the words are those of
    the run's own task. `words` says how they were drawn; before that was recorded, as the task
    says. `shortcut` is the shortcut that is right most often on these words, and `merging_horizon`
    how many of their last symbols merge all states of the task in 99 % of them; None where no
    number is known to, and in rows of earlier versions. `weights` is the hash of the weights that
    were scored, as weights.safetensors has it; None of a run that has not finished.
    """

    replica: int
    seed: int
    lr: float
    selected: bool
    task: str | None = None
    words: str = "task"
    shortcut: str | None = None
    shortcut_accuracy: float | None = None
    evaluation_seed: int | None = None
    merging_horizon: int | None = None
    weights: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The row as `statetrack eval --json` prints it, in the documented order."""
        names = ("replica", "seed", "lr", "selected", "task", "words")
        about = {name: getattr(self, name) for name in names}
        score = {field.name: getattr(self, field.name) for field in fields(Score)}
        shortcut = {"shortcut": self.shortcut, "shortcut_accuracy": self.shortcut_accuracy}
        return about | score | shortcut | {"merging_horizon": self.merging_horizon}


@dataclass(frozen=True)
class Evaluation(Sequence[EvaluationRow]):
    """The rows of one evaluation, replica by replica and in rising order of length."""

    rows: tuple[EvaluationRow, ...]

    @property
    def selected(self) -> EvaluationRow:
        """The row of the selected replica at the longest length.

        Raises `RunError` where there is none, since all replicas diverged.
        """
        mine = [row for row in self.rows if row.selected]
        if not mine:
            raise RunError("the evaluation has no row of a selected replica: all of them diverged")
        return max(mine, key=lambda row: row.length)

    def at(self, length: int) -> tuple[EvaluationRow, ...]:
        """The rows of all evaluated replicas at a length."""
        return tuple(row for row in self.rows if row.length == length)

    def of(self, replica: int) -> tuple[EvaluationRow, ...]:
        """The rows of one replica at all lengths."""
        return tuple(row for row in self.rows if row.replica == replica)

    @overload
    def __getitem__(self, index: int) -> EvaluationRow: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[EvaluationRow, ...]: ...
    def __getitem__(self, index: int | slice) -> EvaluationRow | tuple[EvaluationRow, ...]:
        return self.rows[index]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[EvaluationRow]:
        return iter(self.rows)


@dataclass(frozen=True, kw_only=True)
class EvidenceRow:
    """What was found about one replica, on the words of a task.

    `version` is that of statetrack, and `found` the time, UTC, ISO 8601. `weights` is the hash of
    the weights that it was found of, as weights.safetensors has it; None where that has none.
    """

    replica: int
    seed: int
    lr: float
    selected: bool
    task: str
    version: str
    found: str
    weights: str | None
    evidence: Evidence

    @property
    def kind(self) -> str:
        """The name of its kind of evidence."""
        return self.evidence.kind

    def to_json(self) -> dict[str, Any]:
        """The row as evidence.jsonl has it."""
        about = {field.name: getattr(self, field.name) for field in fields(self)}
        return about | {"evidence": evidence_to_json(self.evidence)}

    @classmethod
    def from_json(cls, content: Mapping[str, Any], where: str) -> EvidenceRow | None:
        """The row that `to_json` gave; None where this version does not know its kind.

        Raises `RunError` as `read_row` does.
        """
        evidence = read_evidence(content.get("evidence"), where)
        return None if evidence is None else read_row(cls, {**content, "evidence": evidence}, where)


def evidence_to_json(evidence: Evidence) -> dict[str, Any]:
    """Evidence as files have it: its kind, and its fields."""
    return {"kind": evidence.kind} | asdict(evidence)


def read_evidence(content: object, where: str) -> Evidence | None:
    """The evidence that a file has; None where this version does not know its kind.

    Raises `RunError` as `read_row` does.
    """
    kind = content.get("kind") if isinstance(content, Mapping) else None
    if not isinstance(kind, str):
        raise RunError(f"{where}: is damaged: it does not say which kind of evidence it is")
    return read_row(EVIDENCE[kind], content, where) if kind in EVIDENCE else None


def latest_evidence(rows: Iterable[EvidenceRow]) -> list[EvidenceRow]:
    """Of every replica, task and kind of evidence the last row."""
    last = {(row.replica, row.task, row.kind): row for row in rows}
    return list(last.values())


def read_row(kind: type[T], content: object, where: str) -> T:
    """A row of a file as one of the classes above, or as a `Record`; unknown keys are ignored.

    Null in the place of a number is NaN, which files do not have: a loss that diverged, or an
    accuracy over no labels. Raises `RunError`, whose message begins with `where`, where a key is
    missing or a value is of another type, and where there are no keys and values.
    """
    if not isinstance(content, Mapping):
        raise RunError(f"{where}: is damaged: it holds no names and values")
    try:
        row: T = _adapter(cast(Hashable, kind)).validate_python(_with_nan(kind, content))
    except ValidationError as invalid:
        raise RunError(f"{where}: is damaged: {explain(invalid)}") from None
    return row


def _with_nan(declared: Any, content: Any) -> Any:
    """Content of a declared type, with NaN for null where that is `float`, and not also None."""
    if content is None:
        return math.nan if declared is float else None
    kinds = [kind for kind in get_args(declared) if kind is not NoneType]
    if get_origin(declared) is UnionType and len(kinds) == 1:
        declared = kinds[0]
    if is_dataclass(declared) and isinstance(content, Mapping):
        types = _types(cast(Hashable, declared))
        return {key: _with_nan(types.get(key), value) for key, value in content.items()}
    if get_origin(declared) is tuple and isinstance(content, list):
        inside = get_args(declared)
        each = inside[:1] * len(content) if inside[1:] == (...,) else inside
        if len(each) == len(content):
            return [_with_nan(one, value) for one, value in zip(each, content, strict=True)]
    return content


@cache
def _types(kind: Hashable) -> dict[str, Any]:
    """The types of a dataclass's fields."""
    return get_type_hints(cast(Any, kind))


@cache
def _adapter(kind: Hashable) -> TypeAdapter[Any]:
    adapter: TypeAdapter[Any] = TypeAdapter(cast(Any, kind))
    return adapter


# --- the identity of a run: the settings and the task that decide what its weights are ---

WITHOUT_EFFECT = frozenset({"device", "threads", "kernel", "checkpoint_every"})
"""Settings that say where and how the same function is computed."""

_NOT_SET = object()


@dataclass(frozen=True)
class Identity:
    """The settings of config.yaml, and the SHA-256 of task.yaml.

    `task_hash` is None where it was not recorded, and in a folder without a task.
    """

    config: Mapping[str, Any]
    task_hash: str | None = None

    @classmethod
    def of(cls, config: Mapping[str, Any], task: bytes | None) -> Identity:
        """The identity of a configuration and the content of a task file."""
        if task is None:
            return cls(config)
        return cls(config, hashlib.sha256(task.replace(b"\r\n", b"\n")).hexdigest())

    @classmethod
    def from_json(cls, content: Any, where: str) -> Identity:
        """The identity that a file carries.

        Raises `RunError`, whose message begins with `where`, for content of another form.
        """
        config = content.get("config") if isinstance(content, dict) else None
        task_hash = content.get("task_sha256") if isinstance(content, dict) else None
        if not isinstance(config, dict) or not isinstance(task_hash, str | None):
            raise RunError(f"{where}: is damaged: it does not say which settings it belongs to")
        return cls(config, task_hash)

    def to_json(self) -> dict[str, Any]:
        """The identity as plain values."""
        task = {} if self.task_hash is None else {"task_sha256": self.task_hash}
        return {"config": dict(self.config), **task}

    def difference(self, now: Identity) -> str | None:
        """What differs from the identity of the folder, with the file that has it; None if equal.

        It continues the sentence `this file does not belong to ...`.
        """
        for key in dict.fromkeys([*self.config, *now.config]):
            then, current = self.config.get(key, _NOT_SET), now.config.get(key, _NOT_SET)
            if key not in WITHOUT_EFFECT and then != current:
                return (
                    f"config.yaml: '{key}' was {_setting_shown(then)} when it was written, "
                    f"and is {_setting_shown(current)} now"
                )
        if None not in (self.task_hash, now.task_hash) and self.task_hash != now.task_hash:
            return "task.yaml: that file is not the one that it was trained with"
        return None


def settings_hash(config: Mapping[str, Any]) -> str:
    """A short hash of a run's settings, without those in `WITHOUT_EFFECT`: 12 hexadecimal digits.

    It does not depend on the order of the settings.
    """
    counted = {key: value for key, value in config.items() if key not in WITHOUT_EFFECT}
    text = json.dumps(counted, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _setting_shown(value: object) -> str:
    return "not set" if value is _NOT_SET else repr(value)
