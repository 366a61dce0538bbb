"""The work of `statetrack atlas` without training: survey machines, and show the tables."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import typer

from statetrack.atlas.machine_files import MachineFile, machine_files
from statetrack.atlas.rows import MachineRow
from statetrack.atlas.surveying import Models
from statetrack.atlas.working import Limits, survey_all
from statetrack.cli._chosen_models import chosen_models
from statetrack.cli._files import require_writable
from statetrack.cli._interrupt import INTERRUPTED, interruptible
from statetrack.cli._json import print_json
from statetrack.cli._progress import searching
from statetrack.errors import SettingsError, StatetrackError
from statetrack.report.atlas import (
    LEGEND,
    atlas_csv,
    atlas_markdown,
    atlas_table,
    family_table,
    models_table,
)
from statetrack.report.drawing import console
from statetrack.sweep.cores import available_cores
from statetrack.text import visible

SURVEYED = "mamba,gla,deltanet,gated-deltaproduct,bilinear,lstm,transformer"
"""The models whose answers a survey has, where none are named."""


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
    markdown: Path | None
    as_csv: bool
    as_json: bool


def show_atlas(asked: Asked) -> None:
    """Survey the machines, and print what is known of them.

    Raises `StatetrackError` where a file could not be read, once everything is printed.
    """
    if asked.as_csv and asked.as_json:
        raise SettingsError("--json: does not go with --csv: give one of the two")
    if asked.markdown is not None:
        require_writable(asked.markdown, "--markdown")
    files = machine_files(asked.machines, recursive=asked.recursive)
    rows = surveyed(files, asked)
    if asked.as_json:
        print_json([row.to_json() for row in rows])
    elif asked.as_csv:
        print(atlas_csv(rows), end="")
    else:
        _draw(rows, asked.machines)
    if asked.markdown is not None:
        page = atlas_markdown(f"Machines of {asked.machines.name}", rows, _command(asked))
        try:
            asked.markdown.write_text(page, encoding="utf-8")
        except OSError as problem:
            raise StatetrackError(
                f"--markdown {asked.markdown}: cannot be written: {problem.strerror}"
            ) from None
    for row in rows:
        if row.stopped:
            typer.echo(visible(f"warning: {row.name}: not finished: {row.stopped}"), err=True)
    if failed := [row for row in rows if row.error]:
        for row in failed:
            typer.echo(visible(f"failed: {row.name}: {row.error}"), err=True)
        raise StatetrackError(f"{len(failed)} of {len(rows)} machine files could not be read")


def surveyed(files: Sequence[MachineFile], asked: Asked) -> list[MachineRow]:
    """The rows of all files, in their order.

    Raises `typer.Exit` where the work was interrupted; what was done by then is kept.
    """
    models: Models = {
        text: settings.model_dump(mode="json", include=settings.model_fields_set)
        for text, settings in chosen_models(asked.models or SURVEYED).items()
    }
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


def _draw(rows: Sequence[MachineRow], given: Path) -> None:
    to = console()
    read = [row for row in rows if not row.error]
    if read:
        to.print(atlas_table(f"{len(read)} machines of {given}", read, to.width))
        to.print(LEGEND)
        to.print(family_table(read))
        to.print(models_table(read))


def _command(asked: Asked) -> str:
    """The command that makes a page, as far as it changes what stands in it."""
    words = ["statetrack", "atlas", str(asked.machines)]
    words += ["--recursive"] * asked.recursive
    if asked.models:
        words += ["--models", asked.models]
    return shlex.join(words)
