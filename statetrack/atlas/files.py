"""The machine files of a folder, by their families."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

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
    found = sorted(_found(given, recursive), key=lambda path: path.as_posix())
    if not found:
        inside = "" if recursive else "; --recursive looks into its sub-folders"
        raise TaskError(f"{given}: holds no machine file: {NAMED}{inside}")
    stems = [path.relative_to(given).with_suffix("").as_posix() for path in found]
    return [
        MachineFile(
            path,
            stem if stems.count(stem) == 1 else path.relative_to(given).as_posix(),
            _family(path, given),
        )
        for path, stem in zip(found, stems, strict=True)
    ]


def _found(folder: Path, recursive: bool) -> Iterator[Path]:
    for path in folder.rglob("*") if recursive else folder.iterdir():
        if format_of(path.name) is not None and path.is_file():
            yield path


def _family(path: Path, folder: Path) -> str:
    before, separator, _ = path.stem.partition(SEPARATOR)
    if separator and before:
        return before
    inside = path.parent.relative_to(folder).parts
    return inside[0] if inside else ALONE
