"""A command line that Typer cannot parse, in one line.

Typer has no public names for these exceptions, so they are told apart by what they know.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

import typer

from statetrack.cli._unknown_options import SURE, advice
from statetrack.cli.options import peek
from statetrack.usual_names import meant

UsageError: type[typer.BadParameter] = typer.BadParameter.__mro__[1]
"""What Typer raises for a command line that it cannot parse."""


def usage_line(error: Any, argv: Sequence[str]) -> str:
    """What is wrong with a command line, and what to do."""
    context = error.ctx
    command = "statetrack" if context is None else context.info_name
    see = f"`{_path(context, argv)} --help`"
    if hasattr(error, "possibilities"):
        option = error.option_name
        parameters = context.command.get_params(context) if context is not None else ()
        own = {name for each in parameters for name in (*each.opts, *each.secondary_opts)}
        long = {name.removeprefix("--") for name in own if name.startswith("--")}
        said = (
            _written_otherwise(option, parameters, long, _path(context, argv))
            or advice(option, long, command=command)
            or f"{see} shows those it has."
        )
        return f"{command} has no option {option}. {said}"
    if error.message.startswith("Missing command"):
        return "statetrack needs a command: `statetrack --help` lists them"
    parameter = getattr(error, "param", None)
    if parameter is not None and hasattr(error, "param_type"):
        return f"{command} needs {_missing(parameter)} {see} shows more."
    message = " ".join(error.message.split())
    if parameter is not None or getattr(error, "param_hint", None):
        where = _named(error)
        given = peek(argv, where) if message.startswith("Input should") else None
        told = _plain(message) + ("" if given is None else f" (given: {given})")
        return f"{where}: {told}" if where and where not in message else told
    if "unexpected extra argument" in message:
        words = message.rpartition(" (")[2].rstrip(").")
        return f"'{words}' belongs to no option and no argument of {command}. {see} shows more."
    if "requires" in message and hasattr(error, "option_name"):
        return f"{error.option_name} needs a value. {see} shows more."
    return message


def _written_otherwise(
    option: str, parameters: Sequence[Any], long: Collection[str], path: str
) -> str:
    """How a command takes what it has no option for: as an argument, or by `--set`; or empty."""
    name = option.removeprefix("--")
    taken = name.upper().rstrip("S")
    for each in parameters:
        places = re.findall("[A-Z]+", str(each.metavar or each.name).upper())
        if each.param_type_name == "argument" and taken in {word.rstrip("S") for word in places}:
            return f"It stands without an option: `{path} {taken}`."
    if "set" in long and not meant(name, long, cutoff=SURE):
        return f"A setting of a model or of training is written --set {name}=VALUES."
    return ""


def _path(context: Any, argv: Sequence[str]) -> str:
    """`statetrack eval`; Typer does not always give the context."""
    if context is not None:
        return str(context.command_path)
    return " ".join(["statetrack", *argv[:1]])


def _missing(parameter: Any) -> str:
    about = " ".join((getattr(parameter, "help", None) or "").split())
    if parameter.param_type_name == "option":
        name = max(parameter.opts, key=len)
    else:
        name = (parameter.metavar or parameter.name.upper()).strip("[]")
    return f"{name}: {about[:1].lower()}{about[1:]}" if about else f"{name}."


def _named(error: Any) -> str:
    """The option or argument that a value is refused for."""
    if error.param is None:
        hint = error.param_hint
        return hint if isinstance(hint, str) else " / ".join(hint or ())
    if error.param.param_type_name == "option":
        return str(max(error.param.opts, key=len))
    return str(error.param.metavar or error.param.name).strip("[]")


def _plain(message: str) -> str:
    return (
        message.removeprefix("Value error, ")
        .removesuffix(", unable to parse string as an integer")
        .removesuffix(", unable to parse string as a number")
        .replace("is not a valid integer range", "is not a whole number")
        .replace("is not a valid integer", "is not a whole number")
        .replace("is not a valid float range", "is not a number")
        .replace("is not a valid float", "is not a number")
        .removesuffix(".")
    )
