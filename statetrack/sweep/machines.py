"""Machine files by their families, and what is known of one machine, as plain values."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from statetrack.algebra import Answer, ComplexityClass
from statetrack.errors import TaskError
from statetrack.sources import endings, format_of

SEPARATOR = "__"
"""What stands in a file's name between the family and the rest of it."""

ALONE = "-"
"""The family of a file whose name and folder say none."""

NAMED = f"their names end in {', '.join(endings())}"
"""What messages say of machine files."""


@dataclass(frozen=True)
class MachineFile:
    """A machine file: where it is, what it is called in tables, and the family it belongs to.

    The family is what stands before `__` in the file's name, else the name of its sub-folder.
    """

    path: Path
    name: str
    family: str

    @property
    def digest(self) -> str:
        """The SHA-256 of its bytes; raises `TaskError` for a file that cannot be read."""
        try:
            with self.path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as problem:
            raise TaskError(f"{self.path}: cannot be read: {problem.strerror}") from None


def machine_files(given: Path, *, recursive: bool = False) -> list[MachineFile]:
    """The machine files of a folder in the order of their names; of a file, that one.

    Those of sub-folders belong to it with `recursive`. Raises `TaskError` where there are none, and
    for a file of another kind.
    """
    if not given.is_dir():
        if format_of(given.name) is None:
            raise TaskError(f"{given}: is no folder and no machine file: {NAMED}")
        if not given.is_file():
            raise TaskError(f"{given}: there is no such file or folder")
        return [MachineFile(given, given.stem, _family(given, given.parent))]
    inside = given.rglob("*") if recursive else given.iterdir()
    read = (path for path in inside if format_of(path.name) is not None and path.is_file())
    found = sorted(read, key=lambda path: path.as_posix())
    if not found:
        hint = "" if recursive else "; --recursive looks into its sub-folders"
        raise TaskError(f"{given}: holds no machine file: {NAMED}{hint}")
    stems = [path.relative_to(given).with_suffix("").as_posix() for path in found]
    return [
        MachineFile(
            path,
            stem if stems.count(stem) == 1 else path.relative_to(given).as_posix(),
            _family(path, given),
        )
        for path, stem in zip(found, stems, strict=True)
    ]


def _family(path: Path, folder: Path) -> str:
    before, separator, _ = path.stem.partition(SEPARATOR)
    inside = path.parent.relative_to(folder).parts
    return before if separator and before else inside[0] if inside else ALONE


@dataclass(frozen=True)
class GroupRow:
    """A group that words of a machine make; `count` is on how many sets of states."""

    name: str
    order: int
    solvable: bool
    count: int = 1


@dataclass(frozen=True)
class WitnessRow:
    """Words that show a group, by the names of symbols and states: see `algebra.Witness`."""

    words: tuple[tuple[str, ...], ...]
    states: tuple[str, ...]
    access: tuple[str, ...] = ()


@dataclass(frozen=True)
class MergingRow:
    """After how many symbols all states have merged, by the share of words that do so.

    Each is the least length at which that share has; None where there is none, or none was found.
    """

    half: int | None
    most: int | None
    """Nine words in ten."""
    nearly_all: int | None
    """99 words in 100: the merging horizon."""
    exact: bool
    never: bool = False
    """Whether no length has that share, since there are states that no word merges."""


@dataclass(frozen=True)
class AnswerRow:
    """What a class of models can do: at some size, and with the settings that the model has."""

    can: Answer
    as_set: Answer
    size_of: str | None = None
    size: int | None = None


@dataclass(frozen=True, kw_only=True)
class MachineRow:
    """What is known of one machine; None stands for what was not worked out.

    `given_states` are those of the file, `states` those that a model has to tell apart.
    `complexity` is the class of its labels. `groups` come largest first, and are all that words
    make. `seconds` are of the processor. `error` says in one line why the file cannot be read, and
    `stopped` what was being worked out when the time or the memory ended; both are empty else. A
    row that has both met a mistake of the program there.
    """

    name: str
    family: str
    given_states: int | None = None
    states: int | None = None
    inputs: int | None = None
    outputs: int | None = None
    aperiodic: bool | None = None
    solvable: bool | None = None
    groups: tuple[GroupRow, ...] | None = None
    complexity: ComplexityClass | None = None
    witness: WitnessRow | None = None
    merging: MergingRow | None = None
    answers: Mapping[str, AnswerRow] = field(default_factory=dict)
    seconds: float = 0.0
    error: str = ""
    stopped: str = ""

    @property
    def largest(self) -> GroupRow | None:
        """The largest group; None where there is none, or none is known."""
        return self.groups[0] if self.groups else None

    def to_json(self) -> dict[str, Any]:
        """The row as plain values."""
        return asdict(self)
