"""What the commands draw with: one console, one look of tables, one way to print JSON."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

PIPED_WIDTH = 160
"""Columns where output goes to a file or another program and nobody set COLUMNS."""


def console() -> Console:
    """Standard output; lines are not broken at 80 columns where nobody is looking."""
    nobody = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    return Console(width=PIPED_WIDTH if nobody else None, highlight=False, emoji=False)


def plain_table(*headings: str, right: tuple[str, ...] = ()) -> Table:
    """A table without frames; the columns named in `right` hold numbers."""
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        header_style="bold",
        collapse_padding=True,
    )
    for heading in headings:
        is_number = heading in right
        table.add_column(
            heading,
            justify="right" if is_number else "left",
            no_wrap=is_number or heading == headings[0],
            overflow="fold",
        )
    return table


def facts(rows: list[tuple[str, Any]]) -> Table:
    """Names and values in two columns."""
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, value if isinstance(value, Text) else Text(str(value)))
    return table


def print_json(content: Any) -> None:
    """One JSON value on standard output, and nothing else."""
    print(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False))


def prose(docstring: str, console: Console) -> None:
    """A docstring for the terminal's width: paragraphs are filled, indented lines kept."""
    for paragraph in docstring.split("\n\n"):
        if paragraph.startswith(" "):
            console.print(Text(paragraph), soft_wrap=True)
        else:
            console.print(Text(" ".join(paragraph.split())))
        console.print()
