"""The work of `statetrack atlas`: survey machines, train models on them, show the tables."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from statetrack.atlas import Limits, MachineFile, MachineRow, Models, machine_files, survey_all
from statetrack.cli import _tables as tables
from statetrack.cli._chosen_models import chosen_models
from statetrack.cli._files import require_writable
from statetrack.cli._interrupt import INTERRUPTED, interruptible
from statetrack.cli._json import print_json
from statetrack.cli._progress import searching
from statetrack.errors import SettingsError, StatetrackError
from statetrack.report import (
    ATLAS_LEGEND,
    Document,
    Table,
    atlas_markdown,
    atlas_table,
    atlas_values,
    facts,
    family_table,
    machine_facts,
    models_table,
)
from statetrack.sweep import available_cores
from statetrack.text import visible

SURVEYED = "mamba,gla,deltanet,gated-deltaproduct,bilinear,lstm,transformer"
"""The models whose answers a survey has, where none are named."""

TRAINED = (
    "mamba --width 32,gla --width 32,deltanet --width 32,bilinear --hidden 64,lstm --hidden 64,"
    "transformer --width 32"
)
"""The models that are trained, where none are named."""

OF_TRAINING: dict[str, Any] = {
    "budget": "minutes",
    "lengths": "20,500",
    "samples": 0,
    "seeds": 0,
    "steps": 0,
    "finished": False,
}
"""The options of training, and their defaults."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a command line asks for; the names are those of the options."""

    machines: Path
    recursive: bool
    models: str
    seconds: int
    memory: float
    jobs: int
    out: Path
    written: Sequence[Path]
    train: bool
    budget: str
    lengths: str
    samples: int
    seeds: int
    steps: int
    finished: bool
    markdown: Path | None
    as_csv: bool
    as_json: bool


def show_atlas(asked: Asked) -> None:
    """Survey the machines, and print what is known of them; with `train` what models do on them.

    Raises `StatetrackError` where a file could not be surveyed, once everything is printed.
    """
    if asked.as_csv and asked.as_json:
        raise SettingsError("--json: does not go with --csv: give one of the two")
    if asked.markdown is not None:
        require_writable(asked.markdown, "--markdown")
    if not asked.train:
        _refuse_settings_of_training(asked)
    files = machine_files(asked.machines, recursive=asked.recursive)
    models: Models = {
        text: settings.model_dump(mode="json", include=settings.model_fields_set)
        for text, settings in chosen_models(
            asked.models or (TRAINED if asked.train else SURVEYED)
        ).items()
    }
    rows = surveyed(files, models, asked)
    if asked.train:
        from statetrack.cli._atlas_training import show_training  # torch

        page, document = show_training(asked, files, models, rows)
    else:
        document = _document(rows, asked)
        _show(rows, asked, document)
        page = atlas_markdown(_title(asked), rows, command_of(asked))
    for file in asked.written:
        tables.write_document(document, file, quietly=asked.as_json or asked.as_csv)
    if asked.markdown is not None:
        tables.write_file(asked.markdown, page, "--markdown")
    _end(rows)


def _refuse_settings_of_training(asked: Asked) -> None:
    """Raise `SettingsError` for an option that says how to train, where nothing is trained."""
    for name, default in OF_TRAINING.items():
        if getattr(asked, name) != default:
            option = "length" if name == "lengths" else name
            raise SettingsError(f"--{option}: belongs to --train")


def _end(rows: Sequence[MachineRow]) -> None:
    """Name what was not finished, and what could not be read; `StatetrackError` for the latter."""
    for row in rows:
        if row.stopped and not row.error:
            typer.echo(visible(f"warning: {row.name}: not finished: {row.stopped}"), err=True)
    if failed := [row for row in rows if row.error]:
        for row in failed:
            typer.echo(visible(f"failed: {row.name}: {row.error}"), err=True)
        raise StatetrackError(f"{len(failed)} of {len(rows)} machine files could not be surveyed")


def surveyed(files: Sequence[MachineFile], models: Models, asked: Asked) -> list[MachineRow]:
    """The rows of all files, in their order.

    Raises `typer.Exit` where the work was interrupted; what was done by then is kept.
    """
    limits = Limits(asked.seconds, asked.memory)
    found: dict[str, MachineRow] = {}
    with interruptible() as stop, searching("surveying", math.inf) as progress:
        jobs = asked.jobs or available_cores()
        for row in survey_all(files, models, asked.out, limits, jobs, stop):
            found[row.name] = row
            progress.say(f"{len(found)} of {len(files)} machines")
    if len(found) < len(files):
        done = f"{len(found)} of {len(files)} machines surveyed"
        typer.echo(f"interrupted with {done}; the same command continues", err=True)
        raise typer.Exit(INTERRUPTED)
    return [found[file.name] for file in files]


def _document(rows: Sequence[MachineRow], asked: Asked) -> Document:
    """What is known of the machines that could be read."""
    read = [row for row in rows if not row.error]

    def parts() -> list[Table | str]:
        if not read:
            return []
        number = f"{len(read)} machine{'s' * (len(read) != 1)}"
        shown: list[Table | str] = [
            atlas_table(f"{number} of {asked.machines}", read),
            ATLAS_LEGEND,
        ]
        if len(read) == 1:
            return [*shown, facts(machine_facts(read[0]))]
        return [*shown, family_table(read), models_table(read)]

    return Document(
        title=_title(asked),
        parts=parts,
        rows=lambda: atlas_values(rows),
        json=lambda: [row.to_json() for row in rows],
    )


def _show(rows: Sequence[MachineRow], asked: Asked, document: Document) -> None:
    if asked.as_json:
        print_json([row.to_json() for row in rows])
    else:
        tables.show_document(document, "csv" if asked.as_csv else "rich")


def _title(asked: Asked) -> str:
    return f"Atlas of {asked.machines.name}"


def command_of(asked: Asked) -> str:
    """The command that makes a page, as far as it changes what stands in it."""
    words = ["statetrack", "atlas", str(asked.machines)]
    words += ["--recursive"] * asked.recursive
    if asked.models:
        words += ["--models", asked.models]
    if asked.train:
        words.append("--train")
        for name, default in OF_TRAINING.items():
            given = getattr(asked, name)
            if given != default and name != "finished":
                words += [f"--{'length' if name == 'lengths' else name}", str(given)]
    return shlex.join(words)
