"""How a command delivers a table: in the terminal, as JSON, or into a file of any report format."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from statetrack.cli._terminal import require_writable
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
OR_A_FILE = "; or a file of the table, whose ending says the format, as in .md or .csv; repeatable."
"""What the help of `--out` adds where it names the folder of runs first."""

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


def folder_and_files(
    out: Sequence[Path] | None, *, force: bool
) -> tuple[Path | None, tuple[Path, ...]]:
    """The folder of runs and the files of the table that `--out` names, which are looked at.

    A name with the ending of a format is a file's, unless it is that of a folder. Raises
    `SettingsError` for several folders, and as `wanted_file` does.
    """
    endings = {FORMATS[name].ending for name in FORMATS}
    files = [each for each in out or () if each.suffix in endings and not each.is_dir()]
    folders = [each for each in out or () if each not in files]
    if len(folders) > 1:
        named = " and ".join(map(str, folders))
        raise SettingsError(f"--out: {named}: runs are kept in one folder")
    if force and not files:
        raise SettingsError("--force replaces the file that --out names: name one")
    for file in files:
        require_replaceable(file, force=force)
    return (folders[0] if folders else None), tuple(files)


def require_replaceable(file: Path, *, force: bool) -> None:
    """Raise `SettingsError` for a file that could not be written, or is there without `--force`."""
    require_writable(file, "--out")
    if file.exists() and not force:
        raise SettingsError(f"--out {file}: is there already: name another file, or give --force")


def write_document(
    document: Document,
    file: Path,
    form: str | None = None,
    *,
    called: str = "table",
    quietly: bool = False,
) -> None:
    """Write a document to a file, in the format of its ending or another one, and say so."""
    write_file(file, FORMATS[form or format_of(file)].draw(document), "--out")
    if not quietly:
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
