"""What to say of an option that a command or a model does not have.

It may be an option of another model or of another command, have another name here, or be misspelt.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Collection, Mapping

from typer.models import OptionInfo

from statetrack.cli._commands import find_commands
from statetrack.usual_names import OPTIONS, meant

SURE, NEAR = 0.8, 0.6
"""How alike two names are of which one is a misspelling, and may be one."""


def advice(
    option: str,
    own: Collection[str],
    models: Mapping[str, Collection[str]] | None = None,
    command: str | None = None,
) -> str:
    """A sentence on an unknown option; empty where nothing is like it.

    `own` are the options that could be meant; `models` gives those of every other model. Those of
    other commands are looked for where `command` is named. All are without their `--`.
    """
    name = option.lstrip("-").replace("_", "-")
    models = models or {}
    of_models = {each for options in models.values() for each in options}
    if name in of_models and name not in own:
        return f"Models that have it: {', '.join(_having(name, models))}."
    if found := _meant(name, own, SURE):
        return f"Did you mean --{found}?"
    commands = {} if command is None else _options_of_others(command)
    if having := _having(name, commands):
        return f"Commands that have it: {', '.join(having)}."
    if found := _meant(name, own, NEAR):
        return f"Did you mean --{found}?"
    if found := _meant(name, of_models, NEAR):
        return f"Did you mean --{found}? Models that have it: {', '.join(_having(found, models))}."
    every = {each for options in commands.values() for each in options}
    if found := _meant(name, every, SURE):
        return (
            f"Did you mean --{found}? Commands that have it: {', '.join(_having(found, commands))}."
        )
    return ""


def _meant(name: str, known: Collection[str], cutoff: float) -> str | None:
    usual = (OPTIONS,)
    return meant(name, sorted(known), usual, cutoff) or (
        meant(name.removeprefix("no-"), sorted(known), usual, cutoff)
        if name.startswith("no-")
        else None
    )


def _having(name: str, options: Mapping[str, Collection[str]]) -> list[str]:
    return [owner for owner, names in options.items() if name in names]


def _options_of_others(command: str) -> dict[str, set[str]]:
    """The options of every other command; their modules are imported for it."""
    from statetrack.cli._help import flags_of

    found: dict[str, set[str]] = {}
    for each in find_commands().values():
        if each.name != command:
            built = importlib.import_module(each.module).build([])
            found[each.name] = {
                name.removeprefix("--")
                for parameter in inspect.signature(built, eval_str=True).parameters.values()
                for info in getattr(parameter.annotation, "__metadata__", ())
                if isinstance(info, OptionInfo)
                for name in flags_of(parameter)
            }
    return found
