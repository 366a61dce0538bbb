"""Datasets on disk: a folder with the splits in `data`, a README, and `card.json`.

A folder is written completely or not at all. One that is not empty is never overwritten, unless it
is a dataset that is to be replaced: it goes once the new one is complete.
"""

from __future__ import annotations

import glob
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from statetrack.data.card import card_of, fingerprint, parse_card, read_card, readme_of
from statetrack.data.distinct import words_from
from statetrack.data.formats import FORMATS, FormatName
from statetrack.data.formats.filling import Extent, Writing, reason
from statetrack.data.parts import HeldPart, Part
from statetrack.data.splits import DrawingProgress, Request, Splits, silent, spool_splits
from statetrack.data.texts import AS_TOKENS, TextRequest
from statetrack.errors import DatasetError
from statetrack.sources import Batch, RandomBits, Source
from statetrack.spec import Task

_MARGIN: Final = 1.1
"""How much more room is asked for than a dataset is estimated to take."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """What a dataset's folder holds: its card and its splits, each `[N, T]`."""

    card: dict[str, Any]
    splits: dict[str, Batch]


def write_dataset(
    folder: Path,
    task: Task,
    splits: Splits,
    *,
    format: FormatName = "parquet",
    command: str = "",
    text: TextRequest = AS_TOKENS,
    force: bool = False,
) -> dict[str, Any]:
    """Write a dataset into a new folder and return its card.

    With `force`, the folder may hold a dataset, which is replaced once this one is complete.

    `command` is the command line that makes it again, for the card; `text` says how the format
    `lm-eval` writes words.

    Raises `DatasetError` where the folder holds something already, cannot be written (the disk is
    full or read-only: nothing is left behind then), or the format cannot hold these splits.
    """
    parts: dict[str, Part] = {name: HeldPart.of(batch) for name, batch in splits.parts.items()}
    held = Splits(parts, splits.lengths, splits.supervision, splits.seed, splits.distinct)
    with _appearing_whole(folder, force=force) as unfinished:
        writing = Writing(task, splits.seed, text)
        return _write_files(unfinished, folder, held, writing, format, command)


def write_large_dataset(
    folder: Path,
    task: Task,
    request: Request,
    *,
    format: FormatName = "parquet",
    command: str = "",
    text: TextRequest = AS_TOKENS,
    progress: DrawingProgress = silent,
    force: bool = False,
) -> dict[str, Any]:
    """Draw a dataset of any size and write it into a new folder; return its card.

    The words are those of `draw_splits`. They go over files in the unfinished folder, so memory
    does not grow with their number. `progress` is told how far it is; `force` is that of
    `write_dataset`.

    Raises `DatasetError` as `write_dataset` does, and before anything is drawn where the disk has
    no room for it; and `SettingsError` as `draw_splits` does.
    """
    estimate_size(task.source, request, format, text).check_room(folder)
    # whether the format can hold the words is seen by a few of them
    some = words_from(task.source, request.lengths, RandomBits(request.seed, "distinct"), 0, 8)
    FORMATS[format].refuse(task.source.label_words(*some, request.supervision))
    with _appearing_whole(folder, force=force) as unfinished:
        words = unfinished / "words"
        splits = spool_splits(task.source, request, words, progress)
        writing = Writing(task, request.seed, text)
        card = _write_files(unfinished, folder, splits, writing, format, command, progress)
        shutil.rmtree(words)
        return card


def _write_files(
    unfinished: Path,
    folder: Path,
    splits: Splits[Part],
    writing: Writing,
    format: FormatName,
    command: str,
    progress: DrawingProgress = silent,
) -> dict[str, Any]:
    """Write the files of a dataset that will be called `folder`."""

    def watched(stage: str) -> dict[str, Part]:
        return {
            name: part.watched(partial(progress, f"{stage} {name}", total=part.num_words))
            for name, part in splits.parts.items()
        }

    card = card_of(writing.task, replace(splits, parts=watched("counting")), format, command)
    written = json.dumps(card, indent=2, ensure_ascii=False) + "\n"
    parse_card(written, folder / "card.json")
    (unfinished / "data").mkdir()
    for name, part in watched("writing").items():
        FORMATS[format].write(unfinished / "data", name, part, writing)
    FORMATS[format].finish(unfinished, list(splits.parts), writing)
    (unfinished / "card.json").write_text(written, encoding="utf-8")
    inside = Path(os.path.relpath(folder)) if folder.is_absolute() else folder
    shown = folder.name if ".." in inside.parts else inside.as_posix()
    (unfinished / "README.md").write_text(readme_of(card, shown), encoding="utf-8")
    return card


def read_dataset(folder: Path | str) -> Dataset:
    """The dataset that `write_dataset` has written, in any format.

    Its folder may come from anywhere: the card is checked first, and every file is then held
    against the card.

    Raises `DatasetError` where it is not there, cannot be read, or has been changed since, and
    where its words take more memory than `MOST_BYTES`.
    """
    folder = Path(folder)
    _put_back(folder)
    card = read_card(folder)
    read = FORMATS[card.format].read
    splits: dict[str, Batch] = {}
    for name, declared in card.declared().items():
        try:
            splits[name] = read(folder / "data", name, declared)
        except OSError as problem:
            raise DatasetError(f"{folder}: {name} cannot be read: {reason(problem)}") from None
    if fingerprint({name: HeldPart.of(batch) for name, batch in splits.items()}) != card.sha256:
        raise DatasetError(
            f"{folder}: the data are not those of card.json: they were changed after they were "
            "written; write the dataset again"
        )
    return Dataset(card.model_dump(mode="json"), splits)


@contextmanager
def _appearing_whole(folder: Path, *, force: bool) -> Iterator[Path]:
    """A new folder beside `folder`, renamed to it once everything has been written.

    With `force`, a dataset that is there goes then, and not before.
    """
    unfinished = folder.parent / f".{folder.name}-{os.getpid()}.unfinished"
    try:
        _put_back(folder)
        _refuse_if_taken(folder, force=force)
        folder.parent.mkdir(parents=True, exist_ok=True)
        unfinished.mkdir()
        try:
            yield unfinished
            _give_place(folder, unfinished, force=force)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    except OSError as problem:
        raise DatasetError(f"{folder}: cannot be written: {reason(problem)}") from None


def _give_place(folder: Path, new: Path, *, force: bool) -> None:
    """Rename a new folder; with `force`, the dataset that has its name is deleted after that."""
    if folder.exists() and not any(folder.iterdir()):
        folder.rmdir()
    if not folder.exists():
        new.rename(folder)
        return
    _refuse_if_taken(folder, force=force)  # something may have come since
    old = folder.parent / f".{folder.name}-{os.getpid()}.replaced"
    folder.rename(old)
    try:
        new.rename(folder)
    except OSError:
        old.rename(folder)
        raise
    shutil.rmtree(old.rename(old.with_suffix(".unfinished")), ignore_errors=True)


def _put_back(folder: Path) -> None:
    """Where the program was killed between the two renames of `_give_place`, undo the first."""
    if not folder.exists():
        for old in folder.parent.glob(f".{glob.escape(folder.name)}-*.replaced"):
            old.rename(folder)
            return


def _refuse_if_taken(folder: Path, *, force: bool) -> None:
    if folder.exists() and not folder.is_dir():
        raise DatasetError(f"{folder}: is a file: choose another folder")
    above = next(each for each in folder.absolute().parents if each.exists())
    if not above.is_dir():
        raise DatasetError(f"{folder}: {above} is a file: choose another folder")
    if folder.exists() and any(folder.iterdir()):
        if not force:
            raise DatasetError(
                f"{folder}: is not empty, and nothing is written over: "
                "choose another folder, or remove this one first"
            )
        require_replaceable(folder)


def require_replaceable(folder: Path) -> None:
    """Raise `DatasetError` unless a folder is a dataset that was written here, and nothing else."""
    if folder.is_symlink() or not folder.is_dir():
        raise DatasetError(f"{folder}: is no folder of its own: only datasets are replaced")
    card = read_card(folder)
    for path in sorted((*folder.iterdir(), *(folder / "data").glob("*"))):
        name = path.name
        if path.parent == folder:
            own = name in ("data", "card.json", "README.md")
            known = own or FORMATS[card.format].beside(name)
        else:
            known = any(re.match(rf"{re.escape(split)}([.-]|$)", name) for split in card.declared())
        if not known:
            raise DatasetError(
                f"{folder}: holds '{path.relative_to(folder)}', which is no file of this dataset, "
                "and only datasets are replaced: choose another folder, or remove it yourself"
            )


@dataclass(frozen=True)
class DiskSize:
    """The size of a dataset, as far as it is known before its words."""

    num_words: int
    num_symbols: int
    written: int  # bytes
    beside: int  # bytes, until it is finished

    def __add__(self, other: DiskSize) -> DiskSize:
        return DiskSize(
            self.num_words + other.num_words,
            self.num_symbols + other.num_symbols,
            self.written + other.written,
            self.beside + other.beside,
        )

    def check_room(self, folder: Path) -> None:
        """Raises `DatasetError` where the disk that is to hold the folder has no room for it."""
        needed = int(_MARGIN * (self.written + self.beside))
        places = (folder, *folder.absolute().parents)
        there = next((place for place in places if os.path.isdir(place)), None)
        free = 0 if there is None else shutil.disk_usage(there).free
        if needed > free:
            raise DatasetError(
                f"{folder}: {self.num_words:,} words take about {in_bytes(needed)} of the disk "
                f"until they are written ({in_bytes(self.written)} afterwards), but it has only "
                f"{in_bytes(free)} left: ask for fewer words, or choose another disk"
            )


def estimate_size(
    source: Source, request: Request, format: FormatName, text: TextRequest = AS_TOKENS
) -> DiskSize:
    """The size of a dataset; of the compressed formats as if symbols and labels were random.

    Raises `SettingsError` where words cannot be written as the text that is asked for.
    """
    written = int(FORMATS[format].size(Extent(source, request, text)))
    beside = request.bytes_beside(source)
    return DiskSize(request.num_words, request.num_symbols, written, beside)


def in_bytes(number: int) -> str:
    """A number of bytes for people: `1.2 GB`."""
    if number < 1_000_000:
        return f"{number / 1e3:,.1f} kB"
    return f"{number / 1e6:,.1f} MB" if number < 1_000_000_000 else f"{number / 1e9:,.1f} GB"
