r"""Text inside Markdown and BibTeX, written so that a reader sees the same text.

Markdown is that of GitHub: tables, strikethrough and formulas between dollars, beside CommonMark.
HTML is not allowed through. (Rich, the terminal's library, takes no markup here: see
`statetrack.report.formats.rich`. Matplotlib writes SVG, and escapes XML itself.)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_MARKDOWN = re.compile(r"[\\`*_\[\]<>&|~$#]")
"""Characters that begin something inside a line of Markdown, wherever they stand in it."""

_LATEX = {
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    **{letter: f"\\{letter}" for letter in "{}$&%#_"},
}


def markdown(text: str) -> str:
    """A text of one line inside a line of Markdown: a heading, a sentence, a cell of a table."""
    return _MARKDOWN.sub(r"\\\g<0>", text)


def markdown_code(text: str) -> str:
    """A text of one line as code inside a line of Markdown.

    It stands between more backticks than it has. A bar would end the cell of a table even there,
    and spaces at its ends would be lost, so a text with these is written in HTML.
    """
    if "|" in text or text != text.strip() or not text:
        return f"<code>{''.join(map(_numbered, text))}</code>"
    ticks = "`" * (_longest_run(text) + 1)
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{space}{text}{space}{ticks}"


def markdown_block(text: str, language: str = "") -> str:
    """Lines of text as a block of code in Markdown, between longer fences than it has."""
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"{fence}{language}\n{text}\n{fence}\n"


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are Markdown already: made by `markdown` or `markdown_code`."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def latex(text: str) -> str:
    """A text inside LaTeX or a field of BibTeX."""
    return "".join(_LATEX.get(letter, letter) for letter in text)


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)


def _numbered(letter: str) -> str:
    """A character in HTML; punctuation by its number, which means nothing to Markdown."""
    return letter if letter.isalnum() else f"&#{ord(letter)};"
