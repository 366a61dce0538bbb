"""Machines written into files of other programs, by `gen --format dot` and `extract --out`."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from statetrack import sources, spec
from statetrack.cli import options
from statetrack.cli._files import require_writable
from statetrack.cli._json import print_json
from statetrack.errors import (
    DatasetError,
    SettingsError,
    StatetrackError,
    StatetrackWarning,
    nearest,
)
from statetrack.text import visible


def machine_format(out: Path, name: str | None) -> str:
    """The format of a file, by its name or as it is asked for; the name must end in its way.

    Raises `SettingsError` for a format that is not known, and for a name that ends in another way:
    the file could not be read as a task.
    """
    if name is not None and name not in sources.MACHINE_FORMATS:
        known = ", ".join(sources.MACHINE_FORMATS)
        raise SettingsError(
            f"--format {name}: there are {known}.{nearest(name, sources.MACHINE_FORMATS)}"
        )
    found = sources.format_of(out.name)
    if name is None:
        if found is None:
            every = ", ".join(form.endings[0] for form in sources.MACHINE_FORMATS.values())
            raise SettingsError(
                f"--out: {out}: the file's name must end in .yaml or in one of {every}"
            )
        return found
    if found != name:
        endings = " or ".join(sources.MACHINE_FORMATS[name].endings)
        raise SettingsError(f"--out: {out}: the name of a file of {name} must end in {endings}")
    return name


def machine_text(task: spec.Task, form: str) -> str:
    """The text of a task's machine; warns of what the task says and the file does not."""
    for sentence in sources.what_is_left_out(task.automaton):
        warnings.warn(f"{task.name}: left out is {sentence}", StatetrackWarning, stacklevel=2)
    return sources.write_machine(task.automaton, form)


def write_machines(
    names: Sequence[str], form: str, out: Path | None, as_json: bool, *, force: bool = False
) -> None:
    """Write the machine of every task into a file of its own, and say where.

    Raises `SettingsError` for options of datasets, and before anything is written for a file that
    is there already; with `force`, for one that is no machine.
    """
    unknown = [name for name in names if name.startswith("-")]
    if unknown:
        raise SettingsError(
            f"{unknown[0].partition('=')[0]}: {options.written('format', form)} writes a "
            "machine, which has no words: only --out goes with it"
        )
    if not names:
        raise SettingsError(f"{options.written('format', form)}: name a task, or several")
    tasks = [spec.load_task(name) for name in names]
    if out is not None:
        if len(tasks) > 1:
            raise SettingsError(f"--out {out}: is one file: name one task")
        paths = [out]
        machine_format(out, form)
    else:
        paths = [Path("data") / _file_name(task, form) for task in tasks]
    for path in paths:
        if paths.count(path) > 1:
            raise DatasetError(f"{path}: two of the tasks would be written there: name each once")
        if path.exists() and force:
            _require_machine(path)
        elif path.exists():
            raise DatasetError(
                f"{path}: already there, and nothing is written over: choose another --out, "
                "remove what is there first, or replace a machine by --force"
            )
    texts = [machine_text(task, form) for task in tasks]
    if out is None:
        Path("data").mkdir(exist_ok=True)
    for path, text in zip(paths, texts, strict=True):
        write_text(path, text)
        if not as_json:
            typer.echo(f"written to {visible(str(path))}")
    if as_json:
        print_json({"machines": [_as_json(*each) for each in zip(tasks, paths, strict=True)]})


def _as_json(task: spec.Task, path: Path) -> dict[str, Any]:
    machine = spec.load_task(str(path)).automaton
    sizes = {"states": machine.num_states, "symbols": machine.num_symbols}
    return {"task": task.name, "file": str(path), "bytes": path.stat().st_size} | sizes


def _require_machine(path: Path) -> None:
    """Raise `DatasetError` for a file that is no machine: it is not replaced."""
    try:
        spec.load_task(str(path))
    except StatetrackError as problem:
        raise DatasetError(
            f"{path}: is no machine file, and --force replaces nothing else: "
            f"{' '.join(str(problem).split())}"
        ) from None


def write_text(path: Path, text: str) -> None:
    """Write the file that `--out` names; raises `SettingsError` where that is not possible."""
    require_writable(path, "--out")
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise SettingsError(f"--out: {path}: cannot be written: {problem.strerror}") from None


def _file_name(task: spec.Task, form: str) -> str:
    """The name of a task's file; of a task that comes from a file, its stem."""
    path = Path(task.name)
    name = spec.folder_name(path.stem if spec.is_path(task.name) else task.name)
    if not name:
        raise DatasetError(f"task '{task.name}': no file can be named after it: give --out")
    return name + sources.MACHINE_FORMATS[form].endings[0]
