"""Machine files of other programs, read as automata and written from them: a file per format.

A format is a module of this folder, called as it is named: it registers a `MachineFormat`, and
every command that reads or writes machine files then knows it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from statetrack.registry import Registry, modules_in

if TYPE_CHECKING:
    from statetrack.sources.automaton import Automaton
    from statetrack.sources.formats._text import MachineText


@dataclass(frozen=True)
class MachineFormat:
    """How a machine is read from text, and written.

    `endings` are those of files' names, the usual one first. `read(text)` returns what the text
    says; it raises `TaskError` with the line and what is wrong. `write(automaton)` is the text of a
    smallest machine, from which the same machine is read; it raises `TaskError` for names that the
    format cannot hold.
    """

    endings: tuple[str, ...]
    read: Callable[[str], MachineText]
    write: Callable[[Automaton], str]


MACHINE_FORMATS: Registry[MachineFormat] = Registry(
    "machine format",
    lambda: modules_in("statetrack.sources.formats"),
    listing="statetrack gen --help",
)


def format_of(name: str) -> str | None:
    """The format that a file's name ends in; None where it is none of a machine."""
    for known, form in MACHINE_FORMATS.items():
        if name.endswith(form.endings):
            return known
    return None


def endings() -> tuple[str, ...]:
    """How the names of machine files end."""
    return tuple(ending for form in MACHINE_FORMATS.values() for ending in form.endings)
