"""Machine files of other programs, read as automata and written from them: a file per format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from statetrack.errors import TaskError
from statetrack.sources.automaton import Automaton
from statetrack.sources.formats import (
    _dot_writing,
    aldebaran,
    att,
    dot,
    jflap,
    kiss2,
    scxml,
    xstate,
)
from statetrack.sources.formats._machine import MOST_BYTES, MachineText, Missing, automaton_of
from statetrack.sources.formats._reading import MOST_EDGES
from statetrack.sources.formats._writing import machine_to_write
from statetrack.sources.formats._writing import what_is_left_out as what_is_left_out
from statetrack.sources.text_files import placed, read_text
from statetrack.yaml_text import no_collection


@dataclass(frozen=True)
class MachineFormat:
    """How a machine is read from text, and written.

    `read(text)` returns what the text says; it raises `TaskError` with the line and what is wrong.
    `write(automaton)` is the text of a `machine_to_write`, from which the same machine is read.
    """

    endings: tuple[str, ...]
    read: Callable[[str], MachineText]
    write: Callable[[Automaton], str]


MACHINE_FORMATS: Final[dict[str, MachineFormat]] = {
    "dot": MachineFormat((".dot", ".gv"), dot.read, _dot_writing.write),
    "kiss2": MachineFormat((".kiss2", ".kiss"), kiss2.read, kiss2.write),
    "aut": MachineFormat((".aut",), aldebaran.read, aldebaran.write),
    "jff": MachineFormat((".jff",), jflap.read, jflap.write),
    "fst": MachineFormat((".fst", ".att"), att.read, att.write),
    "scxml": MachineFormat((".scxml",), scxml.read, scxml.write),
    "xstate": MachineFormat((".xstate.json", ".json"), xstate.read, xstate.write),
}


def format_of(name: str) -> str | None:
    """The format that a file's name ends in; None where it is none of a machine."""
    for known, form in MACHINE_FORMATS.items():
        if name.endswith(form.endings):
            return known
    return None


def endings() -> tuple[str, ...]:
    """How the names of machine files end."""
    return tuple(ending for form in MACHINE_FORMATS.values() for ending in form.endings)


def read_machine(path: Path, missing: Missing = "sink") -> Automaton:
    """The automaton that a machine file describes.

    Raises `TaskError`, opened by the file's name, for a file that cannot be read as a machine.
    """
    machine = machine_in(path)
    try:
        with no_collection():
            return automaton_of(machine, missing)
    except TaskError as wrong:
        raise placed(path, wrong) from None


def machine_in(path: Path) -> MachineText:
    """What a machine file says, before anything is made of it.

    Raises `TaskError` as `read_machine` does.
    """
    name = format_of(path.name)
    assert name is not None, path
    text = read_text(path, MOST_BYTES)
    try:
        with no_collection():
            return MACHINE_FORMATS[name].read(text)
    except TaskError as wrong:
        raise placed(path, wrong) from None


def write_machine(automaton: Automaton, name: str) -> str:
    """The text of an automaton's smallest machine in a format: `read_machine` reads it back.

    The same words get the same labels, but for the empty word, after which formats whose
    transitions say the labels say nothing. Raises `TaskError` for a machine that is too large to be
    read, and for names that the format cannot hold.
    """
    automaton = machine_to_write(automaton)
    if automaton.delta.size > MOST_EDGES:
        raise TaskError(
            f"{automaton.num_states:,} states with {automaton.num_symbols:,} symbols are too many "
            f"for a file of a machine: it holds at most {MOST_EDGES:,} transitions"
        )
    return MACHINE_FORMATS[name].write(automaton)
