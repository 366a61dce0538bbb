"""How the words of a machine are drawn, as one text.

    task                 as the task says (the default)
    uniform              every symbol equally likely, everywhere and at every position
    group                words that stay inside a group of the machine: the largest that is not
                         solvable, or else the largest (`algebra.group_words` says how)
    group:S3, group:2    the same for a group by its name or its number
    weighted:FILE        by the frequencies of symbols in a file

Symbols, labels and the meaning of the task stay; only the chances of words change.

Files of frequencies say how likely words have each symbol:

    symbol,weight                    coin: 3            locked: {coin: 3, push: 1}
    coin,3                           push: 1            unlocked: {push: 1}
    push,1

CSV with these two names in its first line; YAML with a weight for each symbol; or YAML with the
weights in each state. Weights are relative to each other. A symbol or a state that a file leaves
out has the weight 0: it is never drawn, and a state without weights must not be reached.

A file of recorded traces (`sources.trace_files`, CSV or JSON lines) gives how often each symbol was
recorded in each state, once the machine has read them (`sources.corpus.weights_of`).
"""

from __future__ import annotations

import csv
import hashlib
import io
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from statetrack.errors import TaskError, nearest, nearest_or_known
from statetrack.settings import read_yaml
from statetrack.sources import MOST_BYTES as MOST_BYTES_OF_TRACES
from statetrack.sources import (
    Automaton,
    Floats,
    WrongTrace,
    is_header_of_traces,
    reachable,
    read_bytes,
    read_traces,
    weights_of,
)
from statetrack.text import is_plain_number, shortened

MOST_BYTES: Final = 2**20
"""The largest file of weights that is read; in CSV and JSON lines it is that of traces."""

GREATEST: Final = 1e9
"""The greatest weight."""

HEADER = ["symbol", "weight"]
"""The first line of a CSV file."""

_MARKED = re.compile(r"(?P<file>.+)#(?P<mark>[0-9a-f]{8})")

OWN: Final = "task"
"""The words that the task's own weights draw."""

KINDS = (OWN, "uniform", "group", "group:NAME", "weighted:FILE")
"""What a text may be."""

MOST_KEPT: Final = 16
"""How many automata that draw the words of a group are kept."""

_KEPT: dict[tuple[str, str], Automaton] = {}

_TAKES = {"group": "NAME", "weighted": "FILE"}


def check_words(text: str) -> str:
    """A text that says how words are drawn, written in one way.

    A file's name gets a mark of what stands in the file (`FILE#1a2b3c4d`), so that words of two
    contents are never taken for the same. Raises `TaskError` for any other text, and for a file
    that cannot be read; whether a machine has such words is not looked at.
    """
    text = text.strip()
    kind, colon, what = text.partition(":")
    what = what.strip()
    if kind == "weighted" and what:
        return f"weighted:{marked(what)}"
    if kind == "group" and (what or not colon):
        return f"group:{what}" if what else kind
    if kind in _TAKES:
        raise TaskError(f"words '{text}': write {kind}:{_TAKES[kind]}")
    if text not in (OWN, "uniform"):
        hint = nearest(kind, ("task", "uniform", "group", "weighted"))
        if text.isdecimal():
            hint = " How many words there are is another option."
        if "," in text:
            kinds = [part.strip() for part in text.split(",")]
            several = " ".join(f"--words {each}" for each in kinds)
            hint = (
                f" One is meant here: `eval` takes {several}, and "
                f"`sweep --set words={','.join(kinds)}` trains on each."
            )
        raise TaskError(f"words '{text}': words are one of {', '.join(KINDS)}.{hint}")
    return text


def automaton_drawing(automaton: Automaton, words: str, copy: Path | None = None) -> Automaton:
    """An automaton by which words are drawn as a text of `check_words` says.

    `copy` is read in place of the file that the text names, if it names one.
    It has the same symbols and labels, and any word has the same labels as before; a symbol that
    the task never draws in a state is not drawn there. Raises `TaskError` for a machine without
    such a group, and for a file of other symbols, or another file than the text was made for.
    """
    kind, _, what = words.partition(":")
    if kind == "uniform":
        return automaton.with_weights(automaton.drawable)
    if kind == "group":
        return _group_words(automaton, what)
    if kind == "weighted":
        return automaton.with_weights(frequencies_of(automaton, what, copy))
    return automaton


def file_in(words: str) -> tuple[str, bytes] | None:
    """The ending of the name of the file that a text names, and its content; None without one.

    Raises `TaskError` where it cannot be read, or is not the one that the text was made for.
    """
    kind, _, file = words.partition(":")
    return (file_of(file).suffix.lower(), read_marked(file)) if kind == "weighted" else None


def _group_words(automaton: Automaton, group: str) -> Automaton:
    """An automaton that draws words of a group; the last ones are kept: a large machine takes long.

    Raises `TaskError` where the machine has no such group.
    """
    from statetrack.algebra import chosen_walk

    key = automaton.fingerprint(), group
    if key not in _KEPT:
        while len(_KEPT) >= MOST_KEPT:
            _KEPT.pop(next(iter(_KEPT)), None)
        _KEPT[key] = chosen_walk(automaton, group).automaton
    return _KEPT[key]


def marked(file: str) -> str:
    """A file's name with a mark of what stands in it: `FILE#1a2b3c4d`; as it is where it has one.

    Raises `TaskError` where the file cannot be read.
    """
    return file if _MARKED.fullmatch(file) else f"{file}#{_mark(_read(Path(file)))}"


def file_of(file: str) -> Path:
    """The path of a file whose name has its mark."""
    found = _MARKED.fullmatch(file)
    assert found is not None, file
    return Path(found["file"])


def read_marked(file: str, copy: Path | None = None) -> bytes:
    """What stands in a file whose name has its mark, or in a copy of it.

    Raises `TaskError` where it cannot be read, or is not the one with that mark.
    """
    path = copy or file_of(file)
    written = _read(path)
    if not file.endswith(f"#{_mark(written)}"):
        raise TaskError(f"{path}: is not the file that it was: its mark was {file[-8:]}")
    return written


def frequencies_of(automaton: Automaton, file: str, copy: Path | None = None) -> Floats:
    """The chances `[S, V]` that a file gives, whose name has its mark; `copy` is read instead.

    Raises `TaskError` where the file cannot be read, is not the one with that mark, names what
    the machine does not have, or leaves a state in which nothing can be drawn.
    """
    written, path = read_marked(file, copy), copy or file_of(file)
    name, suffix = str(path), path.suffix.lower()
    first_line = written.removeprefix(b"\xef\xbb\xbf").partition(b"\n")[0].decode(errors="replace")
    if suffix == ".jsonl" or (suffix == ".csv" and is_header_of_traces(first_line)):
        weights = _recorded(automaton, path)
    else:
        weights = _given(automaton, path, written)
    weights = np.where(automaton.drawable, weights, 0.0)
    drawn = weights.any(axis=1)
    stuck = reachable(automaton.delta, automaton.start, weights > 0) & ~drawn
    if stuck.any():
        state = automaton.states[int(stuck.argmax())]
        raise TaskError(f"{name}: words reach the state '{state}', where no symbol has a weight")
    weights[~drawn] = automaton.weights[~drawn]  # no word comes there
    chances: Floats = weights / weights.sum(axis=1, keepdims=True)
    return chances


def _given(automaton: Automaton, path: Path, written: bytes) -> Floats:
    """The weights that a file says."""
    name = str(path)
    if path.suffix.lower() == ".csv":
        given: Mapping[str, Any] = _read_csv(name, written)
    else:
        given = read_yaml(path, TaskError)
    if any(isinstance(value, Mapping) for value in given.values()):
        return _by_state(automaton, given, name)
    return np.tile(_row(automaton, given, name), (automaton.num_states, 1))


def _recorded(automaton: Automaton, path: Path) -> Floats:
    """How often each symbol was recorded in each state."""
    traces = read_traces(path)
    try:
        return weights_of(traces, automaton)
    except WrongTrace as wrong:
        raise TaskError(f"{path}, line {traces[wrong.index].line}: {wrong.reason}") from None
    except TaskError as wrong:
        raise TaskError(f"{path}: {wrong}") from None


def _mark(written: bytes) -> str:
    return hashlib.sha256(written.replace(b"\r\n", b"\n")).hexdigest()[:8]


def _read(path: Path) -> bytes:
    if path.suffix.lower() not in (".csv", ".yaml", ".yml", ".jsonl"):
        raise TaskError(
            f"{path}: frequencies are read from a file that ends in .csv or .yaml, or from traces "
            "in .csv or .jsonl"
        )
    most = MOST_BYTES if path.suffix.lower() in (".yaml", ".yml") else MOST_BYTES_OF_TRACES
    written = read_bytes(path, most)
    if len(written) > most:
        raise TaskError(f"{path}: is larger than {most:,} bytes: too large for frequencies")
    return written


def _by_state(automaton: Automaton, given: Mapping[str, Any], name: str) -> Floats:
    weights = np.zeros((automaton.num_states, automaton.num_symbols))
    for state, row in given.items():
        if state not in automaton.states:
            hint = nearest_or_known(state, automaton.states)
            raise TaskError(f"{name}: the machine has no state '{shortened(state)}'.{hint}")
        if not isinstance(row, Mapping):
            raise TaskError(f"{name}: state '{shortened(state)}': give weights of symbols")
        weights[automaton.states.index(state)] = _row(automaton, row, name)
    return weights


def _row(automaton: Automaton, given: Mapping[Any, Any], name: str) -> Floats:
    """The weight of every symbol: `[V]`."""
    weights = np.zeros(automaton.num_symbols)
    for symbol, weight in given.items():
        if symbol not in automaton.symbols:
            hint = nearest_or_known(str(symbol), automaton.symbols)
            raise TaskError(f"{name}: the machine has no symbol '{shortened(str(symbol))}'.{hint}")
        number = isinstance(weight, int | float) and not isinstance(weight, bool)
        if not number or not 0 <= weight <= GREATEST:
            raise TaskError(
                f"{name}: symbol '{shortened(symbol)}': its weight must be a number from 0 to "
                f"{GREATEST:g} (given: {shortened(str(weight))})"
            )
        weights[automaton.symbols.index(symbol)] = weight
    return weights


def _read_csv(name: str, written: bytes) -> dict[str, float]:
    """The weight of every symbol that a CSV file names.

    Raises `TaskError`, with the line, for a file that is not such a file.
    """
    try:
        text = written.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise TaskError(f"{name}: cannot be read: it is not UTF-8 text") from None
    weights: dict[str, float] = {}
    rows = csv.reader(io.StringIO(text), strict=True)
    try:
        if [cell.strip() for cell in next(rows, [])] != HEADER:
            raise TaskError(f"{name}, line 1: the first line must be {','.join(HEADER)}")
        for row in filter(None, rows):
            where = f"{name}, line {rows.line_num}"
            if len(row) != len(HEADER) or not is_plain_number(row[1]):
                raise TaskError(f"{where}: not a symbol and its weight")
            if row[0] in weights:
                raise TaskError(f"{where}: symbol '{shortened(row[0])}' has a weight already")
            weights[row[0]] = float(row[1])
    except csv.Error as problem:
        raise TaskError(f"{name}, line {rows.line_num}: not CSV: {problem}") from None
    return weights
