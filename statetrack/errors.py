r"""Every error that a user can cause, in one tree.

    StatetrackError                 shown as one line; exit code 1
    ├── UnknownNameError            a model, task, kind or option that does not exist
    ├── SettingsError               a setting with a wrong name, type or value
    ├── TaskError                   a task file, task name or automaton that is not valid
    ├── DatasetError                a dataset folder that cannot be written or read
    ├── RunError                    a run folder that is missing, foreign or half-written
    ├── BuildError                  exact weights that are not known, or cannot be
    └── DeviceError                 a device that was requested and is not available

`StatetrackWarning` is not an error: execution continues. A `TaskWarning` is one about a file.

A message says where (file, key, setting), what is wrong (the value) and what to do
(the nearest name, the allowed range). Programming errors are `assert`s instead.

The library names settings as Python arguments, `hidden=64`; the command line writes them as
options, `--hidden 64`. So a message names a setting with `setting(name, value)`, and
`StatetrackError.message` writes it in a given notation. A message is one printable line, whatever
the names and values in it: what cannot be printed is shown as an escape, such as `\x1b`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable
from typing import Any, Self

from statetrack.text import visible
from statetrack.usual_names import OPTIONS, meant

MOST_NAMED = 20
"""The most known names that a message lists."""

WHERE_NOT_FINITE = (
    "look at what the model divides by and exponentiates, or at how its weights are drawn"
)
"""What to do about a user's model whose logits are not finite."""

Notation = Callable[..., str]
"""How a setting is written: `(name)`, or `(name, value)` where a message gives its value."""

_MARKED = re.compile("\x02(?P<name>[^=\x03]+)(?:=(?P<value>[^\x03]*))?\x03")
"""A setting inside a message, between two control characters."""


class StatetrackError(Exception):
    """The base class: an error that a user can cause and can correct."""

    def message(self, notation: Notation) -> str:
        """The message, printable, with every setting in it written in a notation."""

        def written(found: re.Match[str]) -> str:
            try:
                values = [] if found["value"] is None else [ast.literal_eval(found["value"])]
            except (ValueError, SyntaxError, MemoryError, RecursionError):
                return found[0]  # a text in the message has such characters: it is no setting
            return notation(found["name"], *values)

        return visible(" ".join(_MARKED.sub(written, super().__str__()).splitlines()))

    def renamed(self, name: str, other: str) -> Self:
        """The same error, whose message calls a setting by another name."""

        def changed(found: re.Match[str]) -> str:
            return found[0].replace(name, other, 1) if found["name"] == name else found[0]

        return type(self)(_MARKED.sub(changed, super().__str__()))

    def __str__(self) -> str:
        return self.message(_as_argument)


class StatetrackWarning(UserWarning):
    """A result that was computed does not mean what it seems to; `of` names the run or the file."""

    def __init__(self, line: str, of: object = "") -> None:
        super().__init__(f"{of}: {line}" if str(of) else line)
        self.line, self.of = line, str(of)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.line, self.of)


class TaskWarning(StatetrackWarning):
    """A file leaves open what a task needs, and something was made of it."""


class UnknownNameError(StatetrackError):
    """A name that is not in the registry."""


class SettingsError(StatetrackError):
    """A setting with a wrong name, type or value."""


class TaskError(StatetrackError):
    """A task file, task name or automaton that is not valid."""


class DatasetError(StatetrackError):
    """A dataset that cannot be written or read."""


class RunError(StatetrackError):
    """A run folder that is missing, foreign or half-written."""


class BuildError(StatetrackError):
    """Weights that a model was to be given by construction, and that are not known or cannot be."""


class DeviceError(StatetrackError):
    """A device or precision that was requested and is not available."""


def setting(name: str, *value: Any) -> str:
    """A setting, for the message of an error: its name, or its name and its value.

    In Python it is written `hidden` or `hidden=64`, and on the command line `--hidden` or
    `--hidden 64`; `plugin` as a call of `st.load_plugin`, and `--plugin`. A value must be a Python
    literal.
    """
    return f"\x02{name}\x03" if not value else f"\x02{name}={value[0]!r}\x03"


def _as_argument(name: str, *value: Any) -> str:
    if name == "plugin":  # an option of every command, and in Python a function
        return f"st.load_plugin({', '.join(map(repr, value))})"
    return name if not value else f"{name}={value[0]!r}"


def nearest(name: str, known: Iterable[str]) -> str:
    """` Did you mean 'lstm'?`, with the leading space, or nothing where none is meant."""
    found = meant(name, known)
    return f" Did you mean '{found}'?" if found else ""


def nearest_or_known(name: str, known: Iterable[str]) -> str:
    """The text of `nearest` or, where no name is close, ` Known are: a, b.`, the first names."""
    names = list(known)
    shown = ", ".join(names[:MOST_NAMED]) or "none"
    more = ", ..." if len(names) > MOST_NAMED else "."
    return nearest(name, names) or f" Known are: {shown}{more}"


def nearest_setting_or_known(name: str, known: Iterable[str]) -> str:
    """The same of settings, which have usual names, as `learning_rate`, of their own."""
    names = list(known)
    found = meant(name, names, [OPTIONS], cutoff=1.0)
    return f" Did you mean '{found}'?" if found else nearest_or_known(name, names)
