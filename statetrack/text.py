r"""What text may be, and how text of any kind is shown, in Markdown and BibTeX as well.

Names, titles and references come from files that anybody may have written, and go to terminals,
pages and reports. They are printable characters on one line: a control character can move the
cursor, give a terminal commands or hide what stands beside it, and so can characters that turn
the direction of writing. Text is checked with `flaw_in` where it comes in, and shown with
`visible` where it goes out, for a file name or an older file may hold anything.

Inside Markdown and BibTeX it is written so that a reader sees the same text. Markdown is that of
GitHub: tables, strikethrough and formulas between dollars, beside CommonMark. HTML is not allowed
through. (Rich, the terminal's library, takes no markup here: see `statetrack.report.formats.rich`.
Matplotlib writes SVG, and escapes XML itself.)
"""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

LONGEST_NAME = 1_000
"""The most characters of a name: of a state, symbol, label or task, a row or column."""

LONGEST_LINE = 10_000
"""The most characters of a title or a reference."""

GREATEST_SEED: Final = 2**53
"""The greatest seed: beyond it, many readers of JSON round whole numbers."""

_SPACES = "Zs"
"""The Unicode category of spaces of every width, which can be shown as they are."""

_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")


def flaw_in(text: str, *, most: int = LONGEST_LINE) -> str | None:
    """What is wrong with a text that is to be printable, on one line and short; None if nothing.

    The answer is printable itself: it names a character that cannot be printed by its escape.
    """
    if not text.strip():
        return "is empty: text must stand there"
    if len(text) > most:
        return f"has {len(text):,} characters, and {most:,} are the most"
    return None if text.isprintable() else _first_flaw(text, "characters on one line")


def flaw_in_lines(text: str) -> str | None:
    """What is wrong with a text of several lines, which may also hold tabs; None if nothing."""
    plain = text.replace("\n", " ").replace("\t", " ")
    return None if plain.isprintable() else _first_flaw(plain, "characters, newlines and tabs")


def visible(text: str, *, lines: bool = False) -> str:
    r"""A text with its unprintable characters as escapes, such as `\x1b`, so that it has no effect.

    With `lines`, newlines and tabs are kept.
    """
    if text.isprintable():
        return text
    kept = "\n\t" if lines else ""
    return "".join(
        letter
        if letter.isprintable() or letter in kept or unicodedata.category(letter) == _SPACES
        else escape_of(letter)
        for letter in text
    )


def as_argument(path: Path | str) -> str:
    """A file or folder as a word of a command line that can be copied into a shell."""
    name = str(path)
    return shlex.quote(f"./{name}" if name.startswith("-") else name)


def command_line(words: Iterable[str]) -> str:
    r"""Words as one printable line that a shell reads as these words.

    A word that does not print, such as one of two lines, is quoted as `$'...\n...'` (bash, zsh).
    """
    return " ".join(
        shlex.quote(word) if word.isprintable() else _ansi_quoted(word) for word in words
    )


def _ansi_quoted(word: str) -> str:
    def written(letter: str) -> str:
        if letter in "\\'":
            return f"\\{letter}"
        if letter.isprintable():
            return letter
        # of a character above ASCII, \x would be a byte
        return f"\\u{ord(letter):04x}" if 127 < ord(letter) < 256 else escape_of(letter)

    return f"$'{''.join(map(written, word))}'"


def is_plain_number(text: str) -> bool:
    """Whether a text is a number in ASCII digits: no `1_000`, no digits of other scripts."""
    return _NUMBER.fullmatch(text.strip(" ")) is not None


def shortened(text: str, most: int = 60) -> str:
    """A text as a message quotes it: its beginning, where it is longer."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def escape_of(letter: str) -> str:
    r"""A character as a Python escape: `\x1b`, `\n`, `\u202e`."""
    return letter.encode("unicode_escape").decode("ascii")


def _first_flaw(text: str, allowed: str) -> str:
    place, letter = next(
        (place, letter) for place, letter in enumerate(text, start=1) if not letter.isprintable()
    )
    return f"has {escape_of(letter)} at position {place}: only printable {allowed} are allowed"


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
