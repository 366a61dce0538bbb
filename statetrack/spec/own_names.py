r"""Tasks that are written out in their names: regular expressions and permutations.

    regex:(ab|ba)*                                   whether the word so far is one of these
    regex:(ab|ba)*;labels=next-symbols,words=members the same with arguments of the kind
    regex:(open close)*;alphabet=[open,close,look]   symbols longer than a letter
    permutations:(1 2 3),(1 2)                       the product so far, in the group they generate
    permutations:r=(1 2 3 4),s=(2 4);image_of=1      with names for the symbols, and an argument

A pattern ends at the first `;`; a `;` that is a symbol is written `\;`. Permutations are cycles
with commas or spaces between their points, which are counted from 1; or all images, as in `2 3 1`;
or the identity, `e`. Symbols without a name are called by their cycles: `(1,2,3)`. Left out,
`points` is the greatest that is named, and `alphabet` has the symbols that the pattern names.
Words of a language that can be left for good are `mixed` unless `words` says otherwise: uniform
ones would hardly ever belong to it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from statetrack.errors import TaskError, nearest_or_known
from statetrack.settings import build
from statetrack.sources import (
    MOST_POINTS,
    acceptor,
    arguments_of,
    build_source,
    can_be_left,
    cycle_name,
    read_permutation,
)
from statetrack.spec import names
from statetrack.spec.files import default_lengths
from statetrack.spec.task import Task, TaskSpec
from statetrack.text import LONGEST_NAME, flaw_in, shortened

EXAMPLES: Final = {"regex": "regex:(ab|ba)*", "permutations": "permutations:(1 2 3),(1 2)"}
"""The kinds whose tasks can be written out in a name, and such a name."""


_TEXTS: Final = ("alphabet",)
"""Arguments whose values are texts as they stand: `alphabet=01` has two symbols."""


def task_of(text: str) -> Task:
    """The task that a name writes out.

    Raises `TaskError` for a name that does not, and for arguments that the kind does not take.
    """
    kind, _, rest = text.partition(":")
    where = f"task '{shortened(text)}'"
    body, values = _parts(kind, rest, where)
    if not body:
        raise TaskError(f"{where}: nothing follows '{kind}:'; write it as in {EXAMPLES[kind]}")
    known = [argument.name for argument in arguments_of(kind)]
    free = [name for name in known if name not in ("pattern", "generators")]
    for key in values:
        if key not in free:
            raise TaskError(f"{where}: there is no argument '{key}'.{nearest_or_known(key, free)}")
    read = {"regex": _regex, "permutations": _permutations}[kind]
    written, description, title = read(body, values, where)
    name = f"{kind}:{written}"
    if flaw := flaw_in(name, most=LONGEST_NAME):
        raise TaskError(f"{where}: the task's name {flaw}; write the task into a file")
    source = build_source({"kind": kind, **description}, where)
    train_length, test_lengths = default_lengths(source)
    content = {
        "title": title,
        "version": 1,
        "reference": "own",
        "automaton": {"kind": kind, **description},
        "train_length": train_length,
        "test_lengths": test_lengths,
    }
    return Task(name, build(TaskSpec, content, where, TaskError), source)


def _with_values(written: str, values: Mapping[str, Any]) -> str:
    """What is written out, with its arguments in one order."""
    said = {key: values[key] for key in sorted(values)}
    return f"{written};{names.key_values(said, _TEXTS)}" if said else written


def _parts(kind: str, rest: str, where: str) -> tuple[str, dict[str, Any]]:
    r"""What is written out, and the arguments after the first `;` that has no backslash before."""
    found = re.fullmatch(r"(?P<body>(?:[^;\\]|\\.|\\$)*)(?P<sign>;(?P<arguments>.*))?", rest, re.S)
    assert found is not None, rest
    if not found["sign"]:
        return found["body"].strip(), {}
    try:
        return found["body"].strip(), names.arguments(found["arguments"], where, _TEXTS)
    except TaskError as wrong:
        hint = r"; a ';' that is a symbol is written \;" if kind == "regex" else ""
        raise TaskError(f"{wrong}{hint}") from None


def _regex(body: str, values: Mapping[str, Any], where: str) -> tuple[str, dict[str, Any], str]:
    """A pattern with its arguments as a name has them, the description, and a title."""
    alphabet = values.get("alphabet")
    if not isinstance(alphabet, str | list | None):
        raise TaskError(f"{where}: alphabet: '{alphabet}' is neither letters nor a list of names")
    try:
        found = acceptor(body, None if alphabet is None else tuple(alphabet))
    except TaskError as wrong:
        raise TaskError(f"{where}: {wrong}") from None
    own = "mixed" if can_be_left(found.delta, found.accepting) else "uniform"
    usual = {"labels": "membership", "words": own, "alphabet": None}
    said = {key: value for key, value in values.items() if value != usual[key]}
    asked = "Whether the word so far matches"
    if values.get("labels") == "next-symbols":
        asked = "Which symbols can come next in"
    title = f"{asked} {shortened(body)}"
    return _with_values(body, said), {"pattern": body, "words": own, **values}, title


def _permutations(
    body: str, values: Mapping[str, Any], where: str
) -> tuple[str, dict[str, Any], str]:
    """Permutations with their arguments as a name has them, the description, and a title."""
    given = [_named(part, where) for part in names.split_at_commas(body, where)]
    points = values.get("points", max([2, *(_points(text) for _, text in given)]))
    if type(points) is not int or not 2 <= points <= MOST_POINTS:
        raise TaskError(f"{where}: points: {points} is not a number from 2 to {MOST_POINTS}")
    generators: dict[str, str] = {}
    for name, text in given:
        try:
            cycles = cycle_name(read_permutation(text, points))
        except TaskError as wrong:
            raise TaskError(f"{where}: {wrong}") from None
        if (symbol := name or cycles) in generators:
            raise TaskError(
                f"{where}: '{symbol}' stands for two permutations: name them, as in r=..."
            )
        generators[symbol] = cycles
    each = [
        cycles if symbol == cycles else f"{symbol}={cycles}"
        for symbol, cycles in generators.items()
    ]
    said = {key: value for key, value in values.items() if key != "points" and value is not None}
    if points != max([2, *map(_points, generators.values())]):
        said["points"] = points
    description = {**values, "points": points, "generators": generators}
    title = f"The product of the permutations {shortened(', '.join(each))}"
    return _with_values(",".join(each), said), description, title


def _points(text: str) -> int:
    """The greatest point that a permutation names, or how many images it gives."""
    numbers = [int(number) for number in re.findall("[0-9]{1,9}", text)]
    return max([*numbers, len(numbers) if "(" not in text else 0], default=0)


def _named(part: str, where: str) -> tuple[str, str]:
    """The name of a permutation, empty where it has none, and the permutation."""
    found = re.fullmatch(r"\s*(?:(?P<name>[^\s=()\[\],;]+)\s*=)?\s*(?P<text>.*?)\s*", part, re.S)
    assert found is not None, part
    text = found["text"]
    if re.fullmatch(r"\[[^\[\]]*\]", text):
        text = text[1:-1].strip()
    if not text:
        raise TaskError(f"{where}: a permutation is missing between commas")
    return found["name"] or "", text
