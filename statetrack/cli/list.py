"""List models, tasks, automaton kinds, protocols, suites or runs."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from statetrack.catalogue import LISTINGS, RUN_FOLDERS, Listing, Row
from statetrack.cli import _terminal as terminal
from statetrack.cli import options
from statetrack.cli._terminal import print_json
from statetrack.errors import SettingsError, UnknownNameError, nearest
from statetrack.report import Document, Table, console, plain_columns

PLACE = 4
"""Its place among the commands that `statetrack --help` lists."""


def command(
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
    out: terminal.Out = None,
    force: terminal.Force = False,
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
        if wanted or out:
            option = "--filter" if wanted else "--out"
            raise SettingsError(f"{option}: say which list: one of {', '.join(LISTINGS)}")
        _explain(as_json)
        return
    if what not in LISTINGS:
        known = ", ".join(LISTINGS)
        raise UnknownNameError(
            f"there is no list of '{what}'.{nearest(what, LISTINGS)} There are: {known}."
        )
    file = terminal.wanted_file(out, force=force, as_json=as_json)
    chosen = LISTINGS[what]
    folders = RUN_FOLDERS if folder is None else (folder,)
    rows = chosen.filtered(folders, wanted or ())
    document = Document(
        title=what,
        parts=lambda: list(_parts(chosen, rows)),
        rows=lambda: chosen.values(rows),
        json=lambda: rows,
    )
    if file is not None:
        terminal.write_document(document, file)
    elif as_json:
        print_json(rows)
    elif rows:
        _draw(chosen, rows)
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
    about = [[f"statetrack list {name}", chosen.about] for name, chosen in LISTINGS.items()]
    console().print(Table(plain_columns("command", "what it lists"), about))


def _broken(rows: Sequence[Row]) -> list[str]:
    """What is said of rows that could not be loaded."""
    return [f"{row['name']}: {row['error']}" for row in rows if "error" in row]


def _parts(chosen: Listing, rows: Sequence[Row]) -> Iterator[Table | str]:
    if (table := chosen.table(rows)).rows:
        yield table
    if note := chosen.note():
        yield note
    yield from _broken(rows)


def _draw(chosen: Listing, rows: Sequence[Row]) -> None:
    to = console()
    if (table := chosen.table(rows)).rows:
        to.print(table)
    if note := chosen.note():
        to.print(Text(note, "dim"))
    for line in _broken(rows):
        to.print(Text(line, style="red"), soft_wrap=True)
