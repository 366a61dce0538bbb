"""The work of `statetrack gen`: draw words of tasks and write them into folders."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text
from tqdm import tqdm

from statetrack.catalogue.commands import GenSettings
from statetrack.cli import options
from statetrack.data import (
    Splits,
    draw_splits,
    parse_lengths,
    write_dataset,
)
from statetrack.errors import DatasetError
from statetrack.report import drawing
from statetrack.spec import Task, WordSpec, folder_name, load_task

STARTER_SET = ("parity", "modular-addition", "s3", "random-fsm")
"""Written where no task is named: two abelian groups, a non-abelian group, and no group."""


def write_datasets(
    names: Sequence[str], settings: GenSettings, out: Path | None, test_lengths: Sequence[str]
) -> None:
    """Write a dataset for each task, or for the starter set, and show what was written."""
    loaded = [load_task(name) for name in names or STARTER_SET]
    folders = _folders(loaded, out)
    lengths = parse_lengths(test_lengths) if test_lengths else None
    table = drawing.plain_table(
        "task", "split", "words", "length", "size", right=("words", "length", "size")
    )
    steps = list(zip(loaded, folders, strict=True))
    for task, folder in tqdm(steps, "writing", leave=False, disable=None):
        splits = _draw(task, settings, lengths)
        command = _command(task, settings, splits)
        card = write_dataset(folder, task, splits, format=settings.format, command=command)
        _add_rows(table, card, folder)
    to = drawing.console()
    to.print(table)
    for folder in folders:
        to.print(Text.assemble("written to ", (str(folder), "bold")), soft_wrap=True)


def _folders(tasks: Sequence[Task], out: Path | None) -> list[Path]:
    """The folder of each task's dataset; raises, before anything is drawn, where one is in use."""
    if out is not None and len(tasks) == 1:
        folders = [out]
    else:
        folders = [(out or Path("data")) / _folder_name(task) for task in tasks]
    for folder in folders:
        if folders.count(folder) > 1:
            raise DatasetError(f"{folder}: two of the tasks would be written there: name each once")
    taken = [str(path) for path in folders if _is_taken(path)]
    if taken:
        raise DatasetError(
            f"{', '.join(taken)}: already there, and nothing is written over: "
            "choose another --out, or remove what is there first"
        )
    return folders


def _is_taken(path: Path) -> bool:
    return path.is_file() or (path.is_dir() and any(path.iterdir()))


def _folder_name(task: Task) -> str:
    """The name of a task's folder; of a task file, its stem."""
    name = folder_name(Path(task.name).stem if task.name.endswith(".yaml") else task.name)
    if not name:
        raise DatasetError(
            f"task '{task.name}': no folder can be named after it: give --out, and this task alone"
        )
    return name


def _draw(task: Task, settings: GenSettings, test_lengths: list[int] | None) -> Splits:
    words = WordSpec.of(task, train_length=settings.length, supervision=settings.supervision)
    return draw_splits(
        task.source,
        words.lengths,
        settings.samples,
        settings.validation_samples,
        test_lengths or task.spec.test_lengths,
        settings.test_samples,
        words.supervision,
        settings.seed,
    )


def _command(task: Task, settings: GenSettings, splits: Splits) -> str:
    """The command line that writes this dataset again, with nothing left to defaults."""
    resolved = settings.model_dump() | {
        "length": str(splits.lengths),
        "supervision": splits.supervision,
    }
    words = [word for name, value in resolved.items() for word in (options.flag(name), str(value))]
    tests = [split.removeprefix("test_len") for split in splits.parts if "test_len" in split]
    words += [word for length in tests for word in ("--test-length", length)]
    return shlex.join(["statetrack", "gen", task.name, *words])


def _add_rows(table: Table, card: dict[str, Any], folder: Path) -> None:
    for index, (split, facts) in enumerate(card["splits"].items()):
        shortest, longest = facts["shortest"], facts["longest"]
        table.add_row(
            Text("" if index else card["task"]),
            split,
            f"{facts['words']:,}",
            str(longest) if shortest == longest else f"{shortest}-{longest}",
            _size(_bytes_of(split, folder / "data")),
            end_section=index == len(card["splits"]) - 1,
        )


def _bytes_of(split: str, folder: Path) -> int:
    """The size of a split's files: `split.*`, `split-*`, or what is in the folder `split`."""
    files = [*folder.glob(f"{split}.*"), *folder.glob(f"{split}-*"), *folder.glob(f"{split}/*")]
    return sum(path.stat().st_size for path in files)


def _size(num_bytes: int) -> str:
    if num_bytes < 1_000_000:
        return f"{num_bytes / 1e3:,.1f} kB"
    return f"{num_bytes / 1e6:,.1f} MB"
