"""The grammar of task names.

A task's name is one of

    s5                              a file of the `tasks` folder
    modular-addition:m=25           the same, with arguments of its automaton replaced
    product(parity,cyclic:n=3)      tasks side by side, over all tuples of their symbols
    regex:(ab|ba)*;labels=next-symbols  a regular expression, written out, with arguments after `;`
    permutations:(1 2 3),(1 2)      permutations, written out (`spec.loading` says how)
    path/to/mine.yaml               a file of one's own; takes arguments in the same way
    path/to/broker.dot:missing=stay a machine file; takes `missing` and `start`
    path/to/traces.csv              a file of recorded traces; takes `machine`, and what that takes

Where several names stand in one text, commas are between them. What follows a comma belongs to the
name before it where it is `key=value`, and behind `permutations:` where it is a permutation. A name
in round brackets stands for itself, and so does one in quotes, in which two quotes are one.

Shipped tasks have further names: earlier ones, which still work, with a note of what they are.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Container, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

from statetrack import yaml_text
from statetrack.errors import TaskError
from statetrack.registry import Alias
from statetrack.sources import (
    ENDINGS,
    MOST_TRANSITIONS,
    arguments_of,
    endings,
    format_of,
    is_trace_file,
)

LONGEST_FOLDER_NAME = 150
"""Bytes of a folder's name; file systems take 255, and more is added to some."""

LONGEST_TASK_NAME = 4096
"""Letters of a task's name."""

_WRITTEN_OUT = re.compile(r"(?<![A-Za-z0-9])(?:regex|permutations):")
_MOST_OF_A_PATTERN = 60
"""Letters of a folder's name before the hash of a task that is written out in its name."""

DEEPEST = 20
"""How deep brackets may stand inside each other in a task's name."""

_ENDING = "(?:" + "|".join(map(re.escape, (".yaml", *endings(), *ENDINGS))) + ")"

_OWN = ("regex", "permutations")
_KEY_AND_VALUE = re.compile(r"[^\s=()\[\]:,;]+\s*=")
"""How an argument begins, or a permutation with a name; no task's name does."""
_PERMUTATION = re.compile(r"(?:\([0-9\s,]*\)\s*)+|\[[0-9\s,]*\]|[0-9][0-9\s]*|e", re.ASCII)


ALIASES: Final = {
    f"d{depth}": Alias(
        f"dyck-1-depth-{depth}",
        f"task 'd{depth}' is dyck-1-depth-{depth}: balanced brackets at most {depth} deep; the "
        f"dihedral group of {2 * depth} elements is dihedral:n={depth}",
    )
    for depth in (2, 3, 4, 12)
}
"""By their names in Bhattamishra et al. (2020), arXiv 2009.11264, D_n are bounded brackets; beside
`s4` and `a4` they read like groups."""

_FAMILIES: Final = {
    "s": "symmetric",
    "a": "alternating",
    "d": "dihedral",
    "z": "cyclic",
    "c": "cyclic",
}
"""The tasks whose argument `n` chooses a group, by the letter that names such groups."""


def own_kind(text: str) -> str | None:
    """The kind of a task that is written out in its name: `regex`, `permutations` or None."""
    kind, colon, _ = text.partition(":")
    return kind if colon and kind in _OWN else None


def check_length(text: str) -> None:
    """Raises `TaskError` for a name of more than `LONGEST_TASK_NAME` letters."""
    if len(text) > LONGEST_TASK_NAME:
        raise TaskError(
            f"task '{text[:30]}...': its name has {len(text)} letters, the most is "
            f"{LONGEST_TASK_NAME}: write the task into a file"
        )


def is_path(name: str) -> bool:
    """Whether a name is that of a file."""
    if own_kind(name):
        return False
    return name.endswith(".yaml") or format_of(name) is not None or is_trace_file(name)


def is_product(text: str) -> bool:
    """Whether a name is written `product(...)`."""
    return text.startswith(("product(", "product ("))


def factors_of(text: str) -> list[str]:
    """The task names inside `product(...)`; `key=value` belongs to the name before it.

    Raises `TaskError` for brackets that do not match, and for fewer than two names.
    """
    if not text.endswith(")"):
        raise TaskError(f"task '{text}': the bracket after 'product' is not closed at the end")
    factors = names_in(text[text.index("(") + 1 : -1], f"task '{text}'")
    if len(factors) < 2 or not all(factors):
        raise TaskError(f"task '{text}': a product takes two tasks or more, separated by commas")
    return factors


def names_in(text: str, where: str) -> list[str]:
    """The names in a text, with commas between; `where` opens the message.

    Raises `TaskError` for brackets and quotes that do not match.
    """
    names: list[str] = []
    for part in map(str.strip, split_at_commas(text, where)):
        permutes = bool(names) and own_kind(names[-1]) == "permutations"
        further = permutes and _PERMUTATION.fullmatch(part)
        if names and (further or _KEY_AND_VALUE.match(part)):
            names[-1] += f",{part}"
        elif part.startswith("(") and part.endswith(")"):
            names.append(part[1:-1].strip())
        elif part[:1] in ("'", '"') and len(part) > 1 and part[-1] == part[0]:
            names.append(part[1:-1].replace(part[0] * 2, part[0]).strip())
        else:
            names.append(part)
    return names


def _one_of_several(name: str) -> str:
    """A name as it is written among others: what `names_in` reads as this one name."""
    plain = [] if own_kind(name) == "permutations" else [name]
    for written in [*plain, f"({name})"]:
        with suppress(TaskError):
            if names_in(f"{written},s3", "") == [name, "s3"]:
                return written
    return '"' + name.replace('"', '""') + '"'


def current_name(text: str) -> str:
    """A name with the present names of tasks in place of earlier ones, inside products too."""
    if is_product(text):
        return product_name(map(current_name, factors_of(text)))
    name, colon, rest = text.partition(":")
    return f"{ALIASES[name].name}{colon}{rest}" if name in ALIASES else text


def product_name(names: Iterable[str]) -> str:
    """The name of tasks side by side: what `factors_of` reads."""
    return f"product({','.join(map(_one_of_several, names))})"


def base_and_arguments(text: str) -> tuple[str, dict[str, Any]]:
    """The name before the colon and the arguments after it, with their values.

    Raises `TaskError` for a name that cannot be read.
    """
    matched = re.fullmatch(rf"(?P<name>.*?{_ENDING}|[^:]*)(?P<colon>:(?P<arguments>.*))?", text)
    name = matched["name"].strip() if matched else ""
    if matched is None or not name:
        raise TaskError(f"task '{text}': write NAME, NAME:key=value,key=value or FILE.yaml")
    return name, arguments(matched["arguments"], f"task '{text}'") if matched["colon"] else {}


def key_values(values: Mapping[str, Any], texts: Container[str] = ()) -> str:
    """Arguments with their values: what `arguments` reads, with the same `texts`."""
    return ",".join(
        f"{key}={_as_text(value) if key in texts else _flow(value)}"
        for key, value in values.items()
    )


def _as_text(value: Any) -> str:
    """A text, or a list of texts, as a task's name writes it where it is read as it stands."""
    if isinstance(value, list):
        return f"[{','.join(map(_as_text, value))}]"
    return value if re.fullmatch(r"[\w-]+", value) else json.dumps(value)


def folder_name(text: str) -> str:
    """A task's name, or another text, as the name of a folder: only letters, digits and `-=.`.

    That of a task that is written out in its name ends in a hash, since signs tell such apart.
    It neither begins nor ends with `-` or `.`, so it is never `..`, and is empty where nothing else
    is left. A long one is cut to `LONGEST_FOLDER_NAME` and ends in a hash of the whole text.
    """
    plain = "".join(letter if letter.isalnum() or letter in "-=." else "-" for letter in text)
    plain = plain.strip("-.")
    if _WRITTEN_OUT.search(text):  # `(ab)*` and `(ab)+` would be one
        plain = re.sub("--+", "-", plain)[:_MOST_OF_A_PATTERN].strip("-.")
        return f"{plain}-{hashlib.sha256(text.encode(errors='backslashreplace')).hexdigest()[:8]}"
    if len(plain.encode()) <= LONGEST_FOLDER_NAME:
        return plain
    end = "-" + hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()[:12]
    return plain.encode()[: LONGEST_FOLDER_NAME - len(end)].decode(errors="ignore") + end


def arguments(text: str, where: str, texts: Container[str] = ()) -> dict[str, Any]:
    """The values in `key=value,key=value`; `where` opens the message, such as `task 's5:m=2'`.

    Those of the keys `texts` are texts as they stand, `01` too, but for lists and quoted ones; any
    value of the signs `-`, `+` and `*` alone is, which YAML may take for a list or an alias.
    Raises `TaskError` for a text that cannot be read.
    """
    values: dict[str, Any] = {}
    for part in split_at_commas(text, where):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not (key and equals and value):
            raise TaskError(f"{where}: '{part}' is not key=value")
        if key in values:
            raise TaskError(f"{where}: '{key}' is given twice")
        try:
            as_text = key in texts or re.fullmatch(r"[-+*]+", value)
            values[key] = _texts(value, where) if as_text else yaml_text.load(value)
        except yaml_text.YamlProblem as problem:
            raise TaskError(f"{where}: the value '{value}' cannot be read: {problem}") from None
    return values


def _texts(value: str, where: str) -> Any:
    """A text as it stands, or quoted, or a list of such texts in square brackets."""
    if value[0] == "[" and value[-1] == "]":
        parts = split_at_commas(value[1:-1], where)
        return [_texts(part.strip(), where) if part.strip() else "" for part in parts]
    return yaml_text.load(value) if value[0] in "\"'" else value


def split_at_commas(text: str, where: str) -> list[str]:
    """Split at commas that stand outside brackets and quotes; `where` opens the message.

    In what has `regex:` before it, a backslash takes the letter behind it for no comma, bracket or
    quote. Raises `TaskError` for brackets and quotes that do not match.
    """
    parts, open_brackets, quote, escaped = [""], [], "", False
    for letter in text:
        if escaped:
            parts[-1] += letter
            escaped = False
            continue
        escaped = letter == "\\" and not quote and "regex:" in parts[-1]
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in "([{":
            open_brackets.append({"(": ")", "[": "]", "{": "}"}[letter])
            if len(open_brackets) > DEEPEST:
                raise TaskError(f"{where}: its brackets are more than {DEEPEST} deep")
        elif letter in ")]}" and (not open_brackets or open_brackets.pop() != letter):
            raise TaskError(f"{where}: '{letter}' closes no bracket")
        if letter == "," and not open_brackets and not quote:
            parts.append("")
        else:
            parts[-1] += letter
    if open_brackets or quote:
        raise TaskError(f"{where}: '{quote or open_brackets[-1]}' is missing")
    return parts


def _flow(value: Any) -> str:
    """A value as a task's name writes it: YAML on one line."""
    plain = isinstance(value, str) and re.fullmatch(r"[A-Za-z][\w-]*", value)
    if plain and yaml_text.is_plain(value):
        return str(value)
    return json.dumps(value, separators=(",", ":"))


def group_meant(name: str, tasks: Container[str]) -> str:
    """A sentence for a name that is no task but reads like a group, such as `d5`; empty for others.

    It says which of all tasks is that group, or which is the nearest that can be loaded.
    """
    found = re.fullmatch("([sadzc])_?([1-9][0-9]{0,3})", name, re.ASCII | re.IGNORECASE)
    if found is None:
        return ""
    if (plain := name.lower()) in tasks and plain not in ALIASES:
        return f" Did you mean '{plain}'?"
    family, number = _FAMILIES[found[1].lower()], int(found[2])
    (n,) = (each for each in arguments_of(family) if each.name == "n")
    group = f" The {family} group {found[1].upper()}{number} is"
    if n.least is not None and number < n.least:
        return f"{group} too small: the smallest is `{_group(family, int(n.least))}`."
    if n.most is not None and number > n.most:
        return f"{group} too large: the largest is `{_group(family, int(n.most))}`."
    return f"{group} `{_group(family, number)}`."


def _group(family: str, n: int) -> str:
    """The task of a group: under some of its elements where a table of all would be too large."""
    fits = family != "symmetric" or math.factorial(n) ** 2 <= MOST_TRANSITIONS
    return f"{family}:n={n}" if fits else f"{family}:n={n},generators=swaps"
