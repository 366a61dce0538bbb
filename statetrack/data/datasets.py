"""Datasets on disk: a folder with the splits in `data`, a README, and `card.json`.

A folder is written completely or not at all. One that is not empty is never overwritten, unless it
is a dataset that is to be replaced: it goes once the new one is complete.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from statetrack.data.card import card_of, fingerprint, readme_of
from statetrack.data.card_schema import parse_card, read_card
from statetrack.data.distinct import words_from
from statetrack.data.formats import FORMATS, FormatName, lm_eval, writer
from statetrack.data.formats.filling import reason
from statetrack.data.formats.word_problem import refuse_left_out
from statetrack.data.large import LargeSplits, Progress, Request, draw_large_splits
from statetrack.data.parts import HeldPart, Part, WatchedPart
from statetrack.data.sizes import estimate_size
from statetrack.data.splits import Splits
from statetrack.data.texts import AS_TOKENS, TextRequest
from statetrack.errors import DatasetError
from statetrack.sources import Batch, RandomBits, Source
from statetrack.spec import Task


def _silent(stage: str, done: int, total: int) -> None:
    """Progress that nobody watches."""


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
    parts = {name: HeldPart(batch) for name, batch in splits.parts.items()}
    with _appearing_whole(folder, force=force) as unfinished:
        return _write_files(unfinished, folder, task, splits, parts, format, command, text)


def write_large_dataset(
    folder: Path,
    task: Task,
    request: Request,
    *,
    format: FormatName = "parquet",
    command: str = "",
    text: TextRequest = AS_TOKENS,
    progress: Progress = _silent,
    force: bool = False,
) -> dict[str, Any]:
    """Draw a dataset of any size and write it into a new folder; return its card.

    The words are those of `draw_splits`. They go over files in the unfinished folder, so memory
    does not grow with their number. `progress` is told how far it is; `force` is that of
    `write_dataset`.

    Raises `DatasetError` as `write_dataset` does, and before anything is drawn where the disk has
    no room for it; and `SettingsError` as `draw_large_splits` does.
    """
    estimate_size(task.source, request, format, text).check_room(folder)
    _refuse_format(task.source, request, format)
    with _appearing_whole(folder, force=force) as unfinished:
        words = unfinished / "words"
        splits = draw_large_splits(task.source, request, words, progress)
        card = _write_files(
            unfinished, folder, task, splits, splits.parts, format, command, text, progress
        )
        shutil.rmtree(words)
        return card


def _refuse_format(source: Source, request: Request, format: FormatName) -> None:
    """Raises `DatasetError` where a format cannot hold the words: seen by a few of them."""
    if format == "csv":
        width = 1 + source.num_bits(request.lengths.longest)
        bits = RandomBits(request.seed, "distinct").read(0, 8 * width).reshape(8, width)
        words = words_from(source, request.lengths, bits)
        refuse_left_out(source.label_words(words.symbols, words.lengths, request.supervision))


def _write_files(
    unfinished: Path,
    folder: Path,
    task: Task,
    splits: Splits | LargeSplits,
    parts: Mapping[str, Part],
    format: FormatName,
    command: str,
    text: TextRequest,
    progress: Progress = _silent,
) -> dict[str, Any]:
    """Write the files of a dataset that will be called `folder`."""

    def watched(stage: str) -> dict[str, Part]:
        return {
            name: WatchedPart(part, partial(progress, f"{stage} {name}", total=part.num_words))
            for name, part in parts.items()
        }

    write = writer(format, task, splits.seed, text)
    card = card_of(task, splits, watched("counting"), format, command)
    written = json.dumps(card, indent=2, ensure_ascii=False) + "\n"
    parse_card(written, folder / "card.json")
    (unfinished / "data").mkdir()
    for name, part in watched("writing").items():
        write(unfinished / "data", name, part)
    if isinstance(write, lm_eval.Writer):
        write.finish(unfinished, list(parts))
    (unfinished / "card.json").write_text(written, encoding="utf-8")
    (unfinished / "README.md").write_text(readme_of(card, _path_shown(folder)), encoding="utf-8")
    return card


def _path_shown(folder: Path) -> str:
    """A folder's path from the working directory, or its name where it is not below that."""
    inside = Path(os.path.relpath(folder)) if folder.is_absolute() else folder
    return folder.name if ".." in inside.parts else inside.as_posix()


def read_dataset(folder: Path | str) -> Dataset:
    """The dataset that `write_dataset` has written, in any format.

    Its folder may come from anywhere: the card is checked first, and every file is then held
    against the card.

    Raises `DatasetError` where it is not there, cannot be read, or has been changed since, and
    where its words take more memory than `MOST_BYTES`.
    """
    folder = Path(folder)
    card = read_card(folder)
    read = FORMATS[card.format].read
    splits: dict[str, Batch] = {}
    for name, declared in card.declared().items():
        try:
            splits[name] = read(folder / "data", name, declared)
        except OSError as problem:
            raise DatasetError(f"{folder}: {name} cannot be read: {reason(problem)}") from None
    if fingerprint({name: HeldPart(batch) for name, batch in splits.items()}) != card.sha256:
        raise DatasetError(
            f"{folder}: the data are not those of card.json: they were changed after they were "
            "written; write the dataset again"
        )
    return Dataset(card.model_dump(mode="json"), splits)


def check_labels(batch: Batch, source: Source, where: str) -> None:
    """Hold every label that is asked for against what the source reads.

    Raises `DatasetError`, opened by `where`, for the first that differs.
    """
    greatest = int(batch.symbols.max(initial=0))
    if greatest >= source.num_symbols:
        raise DatasetError(
            f"{where}: symbol {greatest} occurs, but the task has "
            f"{source.num_symbols}, counted from 0"
        )
    right = source.label_words(batch.symbols, batch.lengths).labels
    wrong = np.argwhere(batch.scored & (right != batch.labels))
    if len(wrong):
        word, time = wrong[0].tolist()
        raise DatasetError(
            f"{where}: word {word + 1}: the label at position {time + 1} is "
            f"{batch.labels[word, time]}, but the task says {right[word, time]}"
        )


@contextmanager
def _appearing_whole(folder: Path, *, force: bool) -> Iterator[Path]:
    """A new folder beside `folder`, renamed to it once everything has been written.

    With `force`, a dataset that is there goes then, and not before.
    """
    unfinished = folder.parent / f".{folder.name}-{os.getpid()}.unfinished"
    try:
        _refuse_if_taken(folder, force=force)
        folder.parent.mkdir(parents=True, exist_ok=True)
        unfinished.mkdir()
        try:
            yield unfinished
            _give_place(folder, unfinished)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    except OSError as problem:
        raise DatasetError(f"{folder}: cannot be written: {reason(problem)}") from None


def _give_place(folder: Path, new: Path) -> None:
    """Rename a new folder; the dataset that has its name is deleted after that."""
    if folder.exists() and not any(folder.iterdir()):
        folder.rmdir()
    if not folder.exists():
        new.rename(folder)
        return
    require_replaceable(folder)  # something may have come since
    old = folder.parent / f".{folder.name}-{os.getpid()}.replaced"
    folder.rename(old)
    try:
        new.rename(folder)
    except OSError:
        old.rename(folder)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _refuse_if_taken(folder: Path, *, force: bool) -> None:
    if folder.exists() and not folder.is_dir():
        raise DatasetError(f"{folder}: is a file: choose another folder")
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
            known = name in ("data", "card.json", "README.md")
            if card.format == "lm-eval":
                known = known or name in ("splits.py", "__pycache__") or path.suffix == ".yaml"
        else:
            known = any(re.match(rf"{re.escape(split)}([.-]|$)", name) for split in card.declared())
        if not known:
            raise DatasetError(
                f"{folder}: holds '{path.relative_to(folder)}', which is no file of this dataset, "
                "and only datasets are replaced: choose another folder, or remove it yourself"
            )
