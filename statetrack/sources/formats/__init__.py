"""Machine files of other programs, read as automata and written from them: a file per format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from statetrack.errors import TaskError
from statetrack.sources.automaton import Automaton
from statetrack.sources.formats import dot
from statetrack.sources.formats._machine import MachineText, automaton_of


@dataclass(frozen=True)
class MachineFormat:
    """How a machine is read from text.

    `read(text)` returns what the text says; it raises `TaskError` with the line and what is wrong.
    """

    endings: tuple[str, ...]
    read: Callable[[str], MachineText]


MACHINE_FORMATS: Final[dict[str, MachineFormat]] = {
    "dot": MachineFormat((".dot", ".gv"), dot.read),
}


def format_of(name: str) -> str | None:
    """The format that a file's name ends in; None where it is none of a machine."""
    for known, form in MACHINE_FORMATS.items():
        if name.endswith(form.endings):
            return known
    return None


def read_machine(path: Path) -> Automaton:
    """The automaton that a machine file describes.

    Raises `TaskError`, opened by the file's name, for a file that cannot be read as a machine.
    """
    name = format_of(path.name)
    assert name is not None, path
    try:
        return automaton_of(MACHINE_FORMATS[name].read(path.read_text("utf-8")))
    except (OSError, UnicodeDecodeError) as error:
        raise TaskError(f"{path}: cannot be read: {error}") from None
    except TaskError as wrong:
        raise TaskError(f"{path}: {wrong}") from None
