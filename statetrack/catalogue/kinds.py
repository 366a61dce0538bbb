"""Kinds of automata and samplers: their arguments, an example, and the tasks of each."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from statetrack.errors import StatetrackError
from statetrack.sources import KINDS, arguments_of
from statetrack.spec import list_tasks


def describe_kind(name: str) -> dict[str, Any]:
    """All facts about a kind, as plain values: the output of `show --json`.

    The example is the automaton of the task that says least. Raises `UnknownNameError` for a kind
    that does not exist.
    """
    documentation = inspect.getdoc(KINDS[name]) or ""
    used = dict(_tasks_of(name))
    described = [spec for spec in used.values() if spec["kind"] == name]
    return {
        "name": name,
        "type": "kind",
        "summary": documentation.partition("\n")[0],
        "description": documentation,
        "arguments": [
            {
                "name": each.name,
                "help": each.help,
                "required": each.required,
                "default": _plain(each.default),
            }
            for each in arguments_of(name)
        ],
        "example": min(described, key=lambda spec: len(str(spec)), default=None),
        "tasks": list(used),
    }


def _tasks_of(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The shipped tasks whose automaton, or a part of it, is of a kind; and that automaton."""
    for task_name, task in list_tasks():
        if isinstance(task, StatetrackError):
            continue
        automaton = dict(task.spec.automaton)
        if name in _kinds_in(automaton):
            yield task_name, automaton


def _kinds_in(description: Any) -> Iterator[str]:
    if isinstance(description, dict):
        if isinstance(kind := description.get("kind"), str):
            yield kind
        description = list(description.values())
    if isinstance(description, list | tuple):
        for each in description:
            yield from _kinds_in(each)


def _plain(value: Any) -> Any:
    """A default as JSON has it; what JSON has not, as text."""
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    return value if value is None or isinstance(value, str | int | float) else str(value)
