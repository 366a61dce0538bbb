"""How the words of a machine are drawn, as one text.

    task                 as the task says (the default)
    uniform              every symbol equally likely, everywhere and at every position
    group                words that stay inside a group of the machine: the largest that is not
                         solvable, or else the largest (`algebra.group_words` says how)
    group:S3, group:2    the same for a group by its name or its number
    weighted:FILE        by the frequencies of symbols in a file (`spec.frequencies`)

Symbols, labels and the meaning of the task stay; only the chances of words change.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from statetrack.errors import TaskError, nearest
from statetrack.sources import Automaton
from statetrack.spec.frequencies import file_of, frequencies_of, marked, read_marked

OWN: Final = "task"
"""The words that the task's own weights draw."""

KINDS = (OWN, "uniform", "group", "group:NAME", "weighted:FILE")
"""What a text may be."""

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


MOST_KEPT: Final = 16
"""How many of these automata are kept."""

_KEPT: dict[tuple[str, str], Automaton] = {}
