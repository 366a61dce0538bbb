"""What text may be, and how text of any kind is shown.

Names, titles and references come from files that anybody may have written, and go to terminals,
pages and reports. They are printable characters on one line: a control character can move the
cursor, give a terminal commands or hide what stands beside it, and so can characters that turn
the direction of writing. Text is checked with `flaw_in` where it comes in, and shown with
`visible` where it goes out, for a file name or an older file may hold anything.
"""

from __future__ import annotations

import unicodedata

LONGEST_NAME = 1_000
"""The most characters of a name: of a state, symbol, label or task, a row or column."""

LONGEST_LINE = 10_000
"""The most characters of a title or a reference."""

_SPACES = "Zs"
"""The Unicode category of spaces of every width, which can be shown as they are."""


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
