"""List models, tasks, automaton kinds, protocols, suites or runs."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from statetrack.catalogue import ALGEBRA, LISTINGS, RUN_FOLDERS, Row
from statetrack.cli import options
from statetrack.cli._json import print_json
from statetrack.errors import SettingsError, UnknownNameError, nearest
from statetrack.report import console, plain_table, share
from statetrack.text import visible


@dataclass(frozen=True)
class Columns:
    """The columns of a list, those with numbers, and which a narrow terminal goes without first."""

    shown: tuple[str, ...]
    right: tuple[str, ...] = ()
    whole: tuple[str, ...] = ("name",)
    left_out: tuple[str, ...] = ()


_OF_MODELS = ("linear", "transition", "kernels", "state", "parameters")

COLUMNS: Mapping[str, Columns] = {
    "models": Columns(
        ("name", "family", *_OF_MODELS, "summary", "source"),
        right=("state", "parameters"),
        whole=("name", "linear"),
        left_out=("source", "family", "summary", "kernels", "parameters", "state"),
    ),
    "tasks": Columns(
        ("name", "states", "symbols", "labels", "title", "reference"),
        right=("states", "symbols", "labels"),
        left_out=("reference", "labels", "symbols"),
    ),
    "kinds": Columns(("name", "arguments", "summary"), left_out=("arguments",)),
    "protocols": Columns(("name", "title", "reference"), left_out=("reference",)),
    "suites": Columns(
        ("name", "models", "tasks", "title", "reference"),
        right=("models", "tasks"),
        left_out=("reference", "models", "tasks"),
    ),
    "runs": Columns(
        (
            *("run", "model", "task", "accuracy", "length", "state", "started", "validation"),
            *("step", "steps"),
        ),
        right=("accuracy", "length", "validation", "step", "steps"),
        whole=("run", "started", "model"),
        left_out=("steps", "step", "validation", "state", "started"),
    ),
}
"""The columns of each list; `--json` has everything."""

PLACE = 4
"""Its place among the commands that `statetrack --help` lists."""


def build(argv: list[str]) -> Callable[..., None]:
    """The command `statetrack list`."""
    return listing


def listing(
    what: Annotated[
        str, typer.Argument(metavar="WHAT", help=f"One of {', '.join(LISTINGS)}.")
    ] = "",
    wanted: Annotated[
        list[str] | None,
        typer.Option(
            "--filter",
            metavar="TEXT",
            help="Only rows in which every word stands, and of which every condition holds: "
            "linear, states<=6, group=S3, reference!=own; repeatable.",
        ),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--runs",
            metavar="FOLDER",
            help="Where `list runs` looks, at any depth; by default runs, sweeps and suites.",
        ),
    ] = None,
    as_json: options.PrintJson = False,
) -> None:
    """List models, tasks, automaton kinds, protocols, suites or runs.

    `statetrack show NAME` describes any of them in detail.

    Examples:
        statetrack list
        statetrack list tasks
        statetrack list tasks --filter "group=S3 states<=6"
        statetrack list models --filter linear --json
        statetrack list runs --filter "task=s3 accuracy>=0.99"

    """
    if not what:
        if wanted:
            raise SettingsError(f"--filter: say which list: one of {', '.join(LISTINGS)}")
        _explain(as_json)
        return
    if what not in LISTINGS:
        known = ", ".join(LISTINGS)
        raise UnknownNameError(
            f"there is no list of '{what}'.{nearest(what, LISTINGS)} There are: {known}."
        )
    chosen = LISTINGS[what]
    folders = RUN_FOLDERS if folder is None else (folder,)
    rows = chosen.filtered(folders, wanted or ())
    if as_json:
        print_json(rows)
    elif rows:
        _draw(COLUMNS[what], rows, chosen.note() if chosen.note else "", console())
    elif wanted:
        console().print(Text(f"none of the {what} matches --filter {shlex.join(wanted)}"))
    else:
        *others, last = (f"{each}/" for each in folders)
        where = f"{', '.join(others)} or {last}" if others else last
        console().print(Text(chosen.empty.format(folder=where)))


def _explain(as_json: bool) -> None:
    if as_json:
        print_json({name: chosen.about for name, chosen in LISTINGS.items()})
        return
    table = plain_table("command", "what it lists")
    for name, chosen in LISTINGS.items():
        table.add_row(f"statetrack list {name}", chosen.about)
    console().print(table)


def _draw(shown: Columns, rows: list[Row], note: str, to: Console) -> None:
    more = [name for name in ALGEBRA if any(name in row for row in rows)]
    columns = (shown.shown[0], *more, *shown.shown[1:])
    table = plain_table(*columns, right=shown.right, whole=shown.whole, left_out=shown.left_out)
    broken = []
    for row in rows:
        if "error" in row:
            broken.append(row)
            continue
        if row.get("needs_plugin"):
            row = row | {"state": f"{row['state']}, needs its plugin"}
        if row.get("started"):
            row = row | {"started": row["started"][:16].replace("T", " ")}
        table.add_row(*(_cell(row[column]) for column in columns))
    if table.row_count:
        to.print(table)
    if note:
        to.print(Text(note, "dim"))
    for row in broken:
        to.print(Text(f"{row['name']}: {row['error']}", style="red"), soft_wrap=True)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return share(value, digits=4)
    if isinstance(value, list):
        return ", ".join(str(item) for item in value)
    return visible(str(value))
