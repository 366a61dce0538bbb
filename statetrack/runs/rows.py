"""The rows of a run: the outcome of each replica, the scores of an evaluation, and evidence.

They are typed in memory, and plain values in the files of a run folder; torch is not imported here.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from functools import cache
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

from pydantic import TypeAdapter, ValidationError

from statetrack.errors import RunError
from statetrack.evidence import EVIDENCE, Evidence
from statetrack.scoring import Score
from statetrack.settings import explain, shown
from statetrack.training import Finish

if TYPE_CHECKING:
    from statetrack.evidence import Subject

T = TypeVar("T")


@dataclass(frozen=True)
class Outcome:
    """The outcome of one replica, at its best weights.

    `validation_prefix_accuracy` is the share of validation words with every answer right; None in
    runs of earlier versions. `best_step` is 0, and the validation is None, where the replica
    diverged before any validation with a finite loss: its weights are then the initial ones. Of
    weights that were built it is 0 too, with an accuracy. `stopped` says why training ended
    early, and is empty where it did not; `diverged_at` is the first step whose training loss was
    not finite, None where none was or it is not known. `finish` is what the end of training did to
    the best weights, whose step stays `best_step`; None without the setting `finish`.
    """

    replica: int
    seed: int
    lr: float
    validation_accuracy: float | None
    validation_loss: float | None
    best_step: int
    stopped: str
    finish: Finish | None = None
    diverged_at: int | None = None
    validation_prefix_accuracy: float | None = None

    def __post_init__(self) -> None:
        _require_replica(self)
        if self.diverged_at is not None and self.diverged_at < 1:
            raise ValueError("'diverged_at': steps begin at 1")

    @property
    def diverged(self) -> bool:
        """Whether the replica has no trained weights, since no validation loss was finite."""
        return self.best_step == 0 and self.validation_accuracy is None


SHARES = (
    *("accuracy", "low", "high", "symbol_accuracy", "prefix_accuracy", "floor", "chance"),
    "shortcut_accuracy",
)
"""The fields of a score that are shares, or NaN where nothing is scored."""

LEAST_SCALED = 1e12
"""How far below 0 a scaled accuracy may be, whatever the floor."""


def _require_replica(one: Outcome | EvaluationRow | EvidenceRow) -> None:
    """Raise `ValueError` for what is the number or the learning rate of no replica."""
    if one.replica < 0 or not 0 < one.lr < math.inf:
        raise ValueError("'replica' is at least 0, and 'lr' a number above 0")


@dataclass(frozen=True)
class Summary:
    """The outcome of a finished run: the content of summary.json.

    `selected` is None where all replicas diverged. A file of an earlier version may name a
    replica even then: that is None too. `weights` is the hash of the weights that it is about, as
    weights.safetensors has it; None of a run that has not finished, or of an earlier version.
    """

    steps: int
    seconds: float
    selected: int | None
    replicas: tuple[Outcome, ...]
    weights: str | None = None

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

    def __post_init__(self) -> None:
        _require_replica(self)
        if self.length < 1 or self.sequences < 0:
            raise ValueError("'length' is at least 1, and 'sequences' at least 0")
        for name in ("nonfinite_from", "first_error"):
            if (position := getattr(self, name)) is not None and position < 1:
                raise ValueError(f"'{name}': positions begin at 1 (given: {position})")
        for name in SHARES:
            if (value := getattr(self, name)) is not None and (value < 0 or value > 1):
                raise ValueError(f"'{name}': must be between 0 and 1 (given: {value})")
        for name in ("scaled", "scaled_to_floor"):
            if abs(value := getattr(self, name)) > LEAST_SCALED:
                raise ValueError(f"'{name}': must be 1 at most (given: {value})")
        if len({math.isnan(each) for each in (self.accuracy, *self.interval)}) > 1:
            raise ValueError("'accuracy', 'low' and 'high': all three are numbers, or none is")
        if math.isnan(self.floor) and not math.isnan(self.accuracy):
            raise ValueError("'floor': must be a number where 'accuracy' is one")

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


@dataclass(frozen=True)
class Conditions:
    """How something was searched for: what else its result depends on.

    `torch` is the version of torch, `dtype` and `device` are those of the model, `seed` and
    `seconds` those of the search; `seconds` is None where it is bounded by work alone.
    """

    torch: str
    dtype: str
    device: str
    seed: int
    seconds: float | None

    @classmethod
    def of(cls, subject: Subject, seed: int, seconds: float | None) -> Conditions:
        """Those of a search that reads a model."""
        import torch

        dtype = str(subject.dtype).removeprefix("torch.")
        return cls(str(torch.__version__), dtype, str(subject.device), seed, seconds)


@dataclass(frozen=True, kw_only=True)
class EvidenceRow:
    """What was found about one replica, on the words of a task.

    `version` is that of statetrack, and `found` the time, UTC, ISO 8601. `weights` is the hash of
    the weights that it was found of, as weights.safetensors has it; None where that has none.
    `conditions` are None in rows of earlier versions, and where nothing was searched for.
    """

    replica: int
    seed: int
    lr: float
    selected: bool
    task: str
    version: str
    found: str
    weights: str | None
    conditions: Conditions | None = None
    evidence: Evidence

    def __post_init__(self) -> None:
        _require_replica(self)

    @property
    def kind(self) -> str:
        """The name of its kind of evidence."""
        return self.evidence.kind

    def to_json(self) -> dict[str, Any]:
        """The row as evidence.jsonl has it."""
        return self.about | {"evidence": evidence_to_json(self.evidence)}

    @property
    def origin(self) -> dict[str, Any]:
        """Of which weights it was found, when, by which versions and how, as plain values."""
        found = {"statetrack": self.version, "found": self.found, "weights": self.weights}
        return found if self.conditions is None else found | asdict(self.conditions)

    @property
    def about(self) -> dict[str, Any]:
        """All of the row but the evidence, as plain values."""
        about = {field.name: getattr(self, field.name) for field in fields(self)[:-1]}
        return about | {"conditions": None if self.conditions is None else asdict(self.conditions)}

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


def known_evidence(rows: Iterable[EvidenceRow]) -> list[EvidenceRow]:
    """Of every replica, task and kind of evidence what its rows say together (`Evidence.merged`).

    Rows count that are about the same weights as the last one about that replica and task; of a
    kind of which there are none, those that do not say of which weights they are.
    """
    every = list(rows)
    current = {(row.replica, row.task): row.weights for row in every}
    known: dict[tuple[int, str, str], EvidenceRow] = {}
    for row in every:
        if row.weights not in (None, current[row.replica, row.task]):
            continue
        key = (row.replica, row.task, row.kind)
        before = known.get(key)
        if before is not None and before.weights is not None and row.weights is None:
            continue
        known[key] = row if before is None else merged_row(before, row)
    return list(known.values())


def merged_row(before: EvidenceRow, row: EvidenceRow) -> EvidenceRow:
    """The row whose evidence the two amount to; the later one where they cannot be compared.

    That is where their weights differ, and where another version of statetrack found the earlier
    one, so that no proof outlives the mending of what made it.
    """
    if (before.weights, before.version) != (row.weights, row.version):
        return row
    if before.conditions is None and row.conditions is not None:  # of an earlier version as well
        return row
    evidence = before.evidence.merged(row.evidence)
    return replace(before if evidence is before.evidence else row, evidence=evidence)


def read_row(kind: type[T], content: object, where: str) -> T:
    """A row of a file as one of the classes above, or as a `Record`; unknown keys are ignored.

    Null in the place of a number is NaN, which files do not have: a loss that diverged, or an
    accuracy over no labels. Raises `RunError`, whose message begins with `where`, where a key is
    missing or a value is of another type, and where there are no keys and values.
    """
    if not isinstance(content, Mapping):
        raise RunError(f"{where}: is damaged: it holds no names and values")
    try:
        row: T = _adapter(cast(Hashable, kind)).validate_python(_as_declared(kind, content))
    except ValidationError as invalid:
        raise RunError(f"{where}: is damaged: {explain(invalid)}") from None
    except _OtherTypeError as wrong:
        raise RunError(f"{where}: is damaged: {wrong}") from None
    return row


MOST = 2**63 - 1
"""The largest whole number that a row may have, as the formats of reports hold them."""

_CALLED: Mapping[type, str] = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "text",
}


class _OtherTypeError(Exception):
    """A value is not of the type that its field has."""


def _as_declared(declared: Any, content: Any, place: str = "") -> Any:
    """Content of a declared type, with NaN for null where that is `float`, and not also None.

    Numbers, truth and text are what they are: text that reads like a number is none. Raises
    `_OtherTypeError`. What else a type demands is left to pydantic.
    """
    if content is None:
        return math.nan if declared is float else None
    declared, origin, inside = _without_none(declared)
    if declared in _CALLED:
        _require(declared, content, place)
        return content
    if isinstance(content, Mapping):
        types = _types(cast(Hashable, declared)) if is_dataclass(declared) else {}
        if origin is Mapping:
            types = dict.fromkeys(content, inside[1])
        before = f"{place}." if place else ""
        return {
            key: _as_declared(types.get(key), value, f"{before}{key}")
            for key, value in content.items()
        }
    if origin is tuple and isinstance(content, list):
        each = inside[:1] * len(content) if inside[1:] == (...,) else inside
        if len(each) == len(content):
            pairs = enumerate(zip(each, content, strict=True))
            return [_as_declared(one, value, f"{place}.{n}") for n, (one, value) in pairs]
    return content


@cache
def _without_none(declared: Hashable) -> tuple[Any, Any, tuple[Any, ...]]:
    """A type that may be None as the one that it is otherwise, its origin and its arguments."""
    kinds = [kind for kind in get_args(declared) if kind is not NoneType]
    if get_origin(declared) is UnionType and len(kinds) == 1:
        (declared,) = kinds
    return declared, get_origin(declared), get_args(declared)


def _require(declared: type, content: object, place: str) -> None:
    """Raise `_OtherTypeError` unless a value is of its type, and a number not out of all bounds."""
    called = _CALLED[declared]
    if type(content) is int and declared in (int, float):
        fits = -MOST <= content <= MOST
        called = called if fits else f"{called} of at most 63 bits"
    elif declared is float:
        fits = type(content) is float and not math.isinf(content)
    else:
        fits = type(content) is declared
    if not fits:
        raise _OtherTypeError(f"'{place}': must be {called} (given: {shown(content)})")


@cache
def _types(kind: Hashable) -> dict[str, Any]:
    """The types of a dataclass's fields."""
    return get_type_hints(cast(Any, kind))


@cache
def _adapter(kind: Hashable) -> TypeAdapter[Any]:
    adapter: TypeAdapter[Any] = TypeAdapter(cast(Any, kind))
    return adapter


# --- the identity of a run: the settings and the task that decide what its weights are ---

WITHOUT_EFFECT: frozenset[str] = frozenset({"device", "threads", "kernel", "checkpoint_every"})
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
