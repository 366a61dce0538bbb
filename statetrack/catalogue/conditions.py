"""Conditions on the rows of a list: what `statetrack list --filter` takes.

    linear-attention            a word that stands in any text of the row
    linear                      a property of yes or no that holds
    states<=6  labels=2         a number and =, !=, <, <=, > or >=
    group=S3  kind!=regex       a text, or one of a list, in whole words, in any case
    "reference=Merrill 2024"    a value with spaces stands between quotation marks

All of them must hold.
"""

from __future__ import annotations

import math
import operator
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from statetrack.errors import SettingsError, nearest

Row = Mapping[str, Any]

_CONDITION = re.compile(r"([A-Za-z][A-Za-z_]*)(<=|>=|!=|=|<|>)(.*)", re.DOTALL)

_COMPARED: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True)
class Condition:
    """One condition: a word, with neither a key nor a sign, or a key, a sign and a value."""

    value: str
    key: str = ""
    sign: str = ""

    @property
    def asked(self) -> str:
        """The key or, of a word, the property that it may be."""
        return self.key or self.value

    def holds(self, row: Row) -> bool:
        """Whether a row fulfils it; what is not known fulfils none but `!=`.

        Raises `SettingsError` where a text is compared as a number.
        """
        if not self.key:
            return self._is_in(row)
        found = row.get(self.key)
        if self.sign in ("=", "!="):
            return _is(found, self.value) == (self.sign == "=")
        if found is None:
            return False
        if isinstance(found, bool) or not isinstance(found, int | float):
            raise SettingsError(
                f"--filter {self.key}{self.sign}{self.value}: '{self.key}' is no number: "
                "ask with = or !="
            )
        return _COMPARED[self.sign](found, float(self.value))

    def _is_in(self, row: Row) -> bool:
        """Whether the word is a property that holds or, where it is none, stands in a text."""
        if self.value in row and isinstance(row[self.value], bool | None):
            return row[self.value] is True
        return any(self.value.lower() in text.lower() for text in _texts(row.values()))


def conditions_of(written: Iterable[str], keys: Sequence[str]) -> list[Condition]:
    """The conditions in some texts; `keys` are those that rows can have.

    Raises `SettingsError` for a key that there is not, for a number that is none, and for a
    quotation mark without its end.
    """
    return [_condition(word, keys) for text in written for word in _words(text)]


def _words(text: str) -> list[str]:
    reader = shlex.shlex(text, posix=True)
    reader.whitespace_split, reader.commenters, reader.quotes, reader.escape = True, "", '"', ""
    try:
        return list(reader)
    except ValueError:
        raise SettingsError(f"--filter {text}: a quotation mark has no end") from None


def _condition(word: str, keys: Sequence[str]) -> Condition:
    match = _CONDITION.fullmatch(word)
    if match is None:
        return Condition(word)
    key, sign, value = match.groups()
    if key not in keys:
        raise SettingsError(
            f"--filter {word}: there is no '{key}' here.{nearest(key, keys)} "
            f"There are {', '.join(keys)}."
        )
    if not value:
        raise SettingsError(f"--filter {word}: a value is to stand behind the sign")
    if sign in _COMPARED and not _is_number(value):
        raise SettingsError(f"--filter {word}: '{value}' is no number")
    return Condition(value, key, sign)


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _is(found: Any, value: str) -> bool:
    """Whether a value of a row is what is asked for."""
    if isinstance(found, list):
        return any(str(each).lower() == value.lower() for each in found)
    if found is None:
        return value.lower() in ("none", "null", "-")
    if isinstance(found, bool):
        return value.lower() in (("yes", "true") if found else ("no", "false"))
    if isinstance(found, int | float):
        return _is_number(value) and found == float(value)
    pattern = rf"(?<![\w-]){re.escape(value)}(?![\w-])"
    return re.search(pattern, str(found), re.IGNORECASE) is not None


def _texts(values: Iterable[Any]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            yield from _texts(value)
