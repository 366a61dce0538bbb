"""Run the notebook from a module to a paper, store what it prints, and write the page of the same.

    python docs/notebook.py

A cell is Python, a file (`%%writefile NAME`) or lines `!statetrack ...`. The page
`your-own-module.md` is made of the notebook's cells and stored outputs; a test holds it true, and
holds what the cells print now against what is stored.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import shutil
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
NOTEBOOK = HERE / "your-own-module.ipynb"
PAGE = HERE / "your-own-module.md"
FIGURE = HERE / "figures" / "your-own-module.svg"
COLUMNS = "88"
WIDTH = 100
"""Of longer lines, which no terminal's width breaks, on the page."""

FILE = "%%writefile "
COMMAND = "!statetrack "

Cell = dict[str, Any]


def cells() -> list[Cell]:
    """The cells of the notebook."""
    found: list[Cell] = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    return found


def source(cell: Cell) -> str:
    """The text of a cell."""
    return "".join(cell["source"])


def stored(cell: Cell) -> str:
    """What a cell printed when it was stored."""
    return "".join("".join(output["text"]) for output in cell.get("outputs", []))


def run_cells(of: list[Cell]) -> Iterator[tuple[Cell, str]]:
    """Run the cells of code in the current folder; each with what it prints."""
    names: dict[str, Any] = {}
    for cell in of:
        if cell["cell_type"] == "code":
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
                _run(source(cell), names)
            lines = map(str.rstrip, printed.getvalue().strip("\n").splitlines())
            yield cell, "\n".join(lines)


def _run(text: str, names: dict[str, Any]) -> None:
    if text.startswith(FILE):
        head, _, body = text.partition("\n")
        Path(head.removeprefix(FILE)).write_text(body + "\n", encoding="utf-8")
        print(f"Writing {head.removeprefix(FILE)}")
    elif text.startswith(COMMAND):
        from statetrack.cli.app import run

        for line in text.replace("\\\n", " ").splitlines():
            code = run(shlex.split(line.removeprefix(COMMAND)))
            if code:
                raise SystemExit(f"{line}: exit code {code}")
    else:
        exec(compile(text, NOTEBOOK.name, "exec"), names)


def _wrapped(printed: str) -> str:
    """An output whose sentences, and the caption of a table, fit the page."""
    lines = (textwrap.wrap(line, WIDTH, break_long_words=False) for line in printed.splitlines())
    return "\n".join("\n".join(parts) for parts in lines)


def page_of(of: list[Cell]) -> str:
    """The notebook as a Markdown page."""
    parts = [_block(cell) for cell in of]
    title, _, rest = parts[0].partition("\n")
    note = f"This page is a notebook, [`{NOTEBOOK.name}`]({NOTEBOOK.name}), with its outputs."
    return "\n\n".join([title, note, rest.strip(), *parts[1:]]) + "\n"


def _block(cell: Cell) -> str:
    text, printed = source(cell), _wrapped(stored(cell))
    if cell["cell_type"] == "markdown":
        return text
    if text.startswith(FILE):
        head, _, body = text.partition("\n")
        return f"<!-- file: {head.removeprefix(FILE)} -->\n```python\n{body}\n```"
    if text.startswith(COMMAND):
        lines = re.sub("^!", "$ ", text, flags=re.MULTILINE)
        reason = "<!-- not run: a test runs the notebook itself -->"
        return f"{reason}\n```console\n{lines}\n{printed}\n```"
    shown = f"\n\n```text\n{printed}\n```" if printed else ""
    return f"```python\n{text}\n```{shown}"


def main() -> None:
    """Run the notebook in a folder of its own, and write it, the page and the figure."""
    os.environ["COLUMNS"] = COLUMNS
    sys.path.insert(0, str(HERE.parent))
    content = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for count, (cell, printed) in enumerate(run_cells(content["cells"]), start=1):
            lines = printed.splitlines(keepends=True)
            stream = {"name": "stdout", "output_type": "stream", "text": lines}
            cell["outputs"] = [stream] if printed else []
            cell["execution_count"] = count
        shutil.copy("figure.svg", FIGURE)
    written = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    NOTEBOOK.write_text(written, encoding="utf-8")
    PAGE.write_text(page_of(content["cells"]), encoding="utf-8")


if __name__ == "__main__":
    main()
