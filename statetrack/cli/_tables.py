"""How a command delivers a table: in the terminal, as JSON, or into a file of any report format."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from statetrack.cli._files import require_writable
from statetrack.errors import SettingsError, StatetrackError
from statetrack.report import FORMATS, Document, console, format_of

Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="FILE",
        help="Write it to a file, whose ending says the format, as in .md, .tex, .csv or .html; "
        "- or none: standard output.",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace the file that --out names.")]


def wanted_file(out: Path | None, *, force: bool, as_json: bool = False) -> Path | None:
    """The file that `--out` names; None for standard output. It is looked at before any work.

    Raises `SettingsError` for an ending that is no format's, for a file that could not be written
    or that is there already, and for `--force` or `--json` that do not go with it.
    """
    file = None if out is None or str(out) == "-" else out
    if file is None:
        if force:
            raise SettingsError("--force replaces the file that --out names: name one")
        return None
    if as_json:
        raise SettingsError(f"--json: prints JSON: leave it out, or --out {file}")
    format_of(file)
    require_replaceable(file, force=force)
    return file


def require_replaceable(file: Path, *, force: bool) -> None:
    """Raise `SettingsError` for a file that could not be written, or is there without `--force`."""
    require_writable(file, "--out")
    if file.exists() and not force:
        raise SettingsError(f"--out {file}: is there already: name another file, or give --force")


def write_document(
    document: Document, file: Path, form: str | None = None, called: str = "table"
) -> None:
    """Write a document to a file, in the format of its ending or another one, and say so."""
    write_file(file, FORMATS[form or format_of(file)].draw(document), "--out")
    typer.echo(f"{called}: {file}")


def write_file(file: Path, content: str | bytes, option: str, then: str = "") -> None:
    """Write the content of a file; the error names the option, and says what to do then."""
    try:
        file.write_bytes(content.encode() if isinstance(content, str) else content)
    except OSError as problem:
        raise StatetrackError(
            f"{option} {file}: cannot be written: {problem.strerror}{then}"
        ) from None


def show_document(document: Document, form: str = "rich") -> None:
    """Print a document to standard output."""
    if form == "rich":
        to = console()
        for part in document.parts():
            to.print(part)
        return
    content = FORMATS[form].draw(document)
    assert isinstance(content, str), f"{form} is not text"
    sys.stdout.write(content)
