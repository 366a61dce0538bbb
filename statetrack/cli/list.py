"""List models, tasks, automaton kinds, protocols, suites or runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from statetrack.catalogue.lists import LISTINGS, Row
from statetrack.cli import options
from statetrack.cli._json import print_json
from statetrack.errors import UnknownNameError, nearest
from statetrack.report.drawing import console, plain_table, share
from statetrack.text import visible

WIDE, WIDEST = 110, 170
"""The widths of the terminal from which a table shows more columns."""


@dataclass(frozen=True)
class Columns:
    """The columns of a list in narrow, wide and the widest terminals, and those with numbers."""

    narrow: tuple[str, ...]
    wide: tuple[str, ...] = ()
    widest: tuple[str, ...] = ()
    right: tuple[str, ...] = ()

    def in_width(self, width: int) -> tuple[str, ...]:
        """The columns that a terminal of this width shows."""
        wide = self.wide or self.narrow
        return (self.widest or wide) if width >= WIDEST else wide if width >= WIDE else self.narrow


_OF_MODELS = ("linear", "transition", "kernels", "state", "parameters")

COLUMNS: Mapping[str, Columns] = {
    "models": Columns(
        ("name", *_OF_MODELS),
        wide=("name", *_OF_MODELS, "summary"),
        widest=("name", "family", *_OF_MODELS, "summary", "source"),
        right=("state", "parameters"),
    ),
    "tasks": Columns(
        ("name", "states", "symbols", "title"),
        wide=("name", "states", "symbols", "labels", "title", "reference"),
        right=("states", "symbols", "labels"),
    ),
    "kinds": Columns(("name", "arguments", "summary")),
    "protocols": Columns(("name", "title", "reference")),
    "suites": Columns(
        ("name", "models", "tasks", "title"),
        wide=("name", "models", "tasks", "title", "reference"),
        right=("models", "tasks"),
    ),
    "runs": Columns(
        ("run", "state", "validation"),
        wide=("run", "model", "task", "state", "step", "steps", "validation"),
        right=("step", "steps", "validation"),
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
    folder: Annotated[
        Path, typer.Option("--runs", metavar="FOLDER", help="Where `list runs` looks.")
    ] = Path("runs"),
    as_json: options.PrintJson = False,
) -> None:
    """List models, tasks, automaton kinds, protocols, suites or runs.

    `statetrack show NAME` describes a model or a task in detail.

    Examples:
        statetrack list tasks
        statetrack list models --json
        statetrack list runs --runs sweeps/mine

    """
    if not what:
        _explain(as_json)
        return
    if what not in LISTINGS:
        known = ", ".join(LISTINGS)
        raise UnknownNameError(
            f"there is no list of '{what}'.{nearest(what, LISTINGS)} There are: {known}."
        )
    chosen = LISTINGS[what]
    rows = list(chosen.rows(folder))
    if as_json:
        print_json(rows)
    elif rows:
        _draw(COLUMNS[what], rows, chosen.note() if chosen.note else "", console())
    else:
        console().print(Text(chosen.empty.format(folder=folder)))


def _explain(as_json: bool) -> None:
    if as_json:
        print_json({name: chosen.about for name, chosen in LISTINGS.items()})
        return
    table = plain_table("command", "what it lists")
    for name, chosen in LISTINGS.items():
        table.add_row(f"statetrack list {name}", chosen.about)
    console().print(table)


def _draw(shown: Columns, rows: list[Row], note: str, to: Console) -> None:
    columns = shown.in_width(to.width)
    table = plain_table(*columns, right=shown.right)
    broken = []
    for row in rows:
        if "error" in row:
            broken.append(row)
            continue
        if row.get("needs_plugin"):
            row = row | {"state": f"{row['state']}, needs its plugin"}
        table.add_row(*(Text(_cell(row[column])) for column in columns))
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
