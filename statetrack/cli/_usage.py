"""What is wrong with a command line, in one line, and what to do.

An unknown option may be one of another model or of another command, have another name here, or be
misspelt. Typer has no public names for its exceptions, so they are told apart by what they know.
"""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import typer
from typer.models import OptionInfo

from statetrack.catalogue import flag, inner_type
from statetrack.cli._help import find_commands, flags_of, function_of, info_of
from statetrack.errors import UnknownNameError
from statetrack.text import is_plain_number
from statetrack.usual_names import OPTIONS, meant

UsageError: type[typer.BadParameter] = typer.BadParameter.__mro__[1]
"""What Typer raises for a command line that it cannot parse."""


class UnknownOptionError(UnknownNameError):
    """An option that does not exist: of a command, or of a model behind its name."""


SURE, NEAR = 0.8, 0.6
"""How alike two names are of which one is a misspelling, and may be one."""


def peek(argv: Sequence[str], option: str) -> str | None:
    """The value of an option before anything is parsed, or None; the last one counts."""
    values = peek_all(argv, option)
    return values[-1] if values else None


def peek_all(argv: Sequence[str], option: str) -> list[str]:
    """Every value given to an option, as `--option value` or `--option=value`."""
    values = []
    for word, following in itertools.zip_longest(argv, argv[1:]):
        if word == option and following is not None:
            values.append(following)
        elif word.startswith(option + "="):
            values.append(word.removeprefix(option + "="))
    return values


def refuse_unknown(
    args: Sequence[str],
    name: str,
    own: Collection[str],
    others: Callable[[], Mapping[str, Collection[str]]],
    otherwise: str = "`--help` shows those it has.",
    command: str | None = None,
) -> None:
    """Raise `UnknownOptionError` for words that Typer did not parse, with a suggestion.

    `args` are those words (`context.args`), `name` the chosen model, `own` the names of its
    fields. `others` gives the field names of every other model; it is called only where there is
    an error, because it imports them. `otherwise` stands where no known option is near. Where
    `command` is named, the options of other commands are looked through as well, but for a model
    of the user's own, which has no `others`: its own options are then what can be meant.
    """
    if not args:
        return
    options = [
        word for word in args if word.startswith("-") and not word[1:2].isdigit() and word != "-"
    ]
    if not options:
        own_file = " A file of your own is given as --plugin FILE.py."
        raise UnknownOptionError(
            f"'{args[0]}' belongs to no option: every setting is written --name value."
            + (own_file if args[0].endswith(".py") else "")
        )

    def bare(names: Collection[str]) -> set[str]:
        return {flag(each).removeprefix("--") for each in names}

    option = options[0].partition("=")[0]
    models = {each: bare(names) for each, names in others().items()}
    said = advice(option, bare(own), models, command if models else None)
    told = [said, otherwise] if not models else [said or otherwise]
    raise UnknownOptionError(" ".join([f"{name} has no option {option}.", *filter(None, told)]))


MAY_BE_EMPTY = frozenset({"--caption", "--extended-at", "--label", "--prompt", "--title"})
"""Options whose value may be empty text."""


def refuse_missing_values(argv: Sequence[str], given: Iterable[inspect.Parameter]) -> None:
    """Raise `typer.BadParameter` where an option would take the next option as its value.

    So where a value or an argument is empty, as a variable of the shell is that is not set.
    """
    kinds = {flag(parameter.name): inner_type(parameter.annotation) for parameter in given}
    for option, value in itertools.pairwise(argv):
        takes_value = kinds.get(option, bool) is not bool
        if takes_value and value.partition("=")[0] in kinds:
            raise typer.BadParameter(f"{option} needs a value: it is followed by {value}")
        if not value and option not in MAY_BE_EMPTY:
            named = takes_value or (option.startswith("--") and option not in kinds)
            raise typer.BadParameter(
                f"{option} needs a value: it is followed by an empty one"
                if named
                else "an argument is empty: give a name or a path, or leave it out"
            )
    for word in argv:
        option, sign, value = word.partition("=")
        if sign and not value and option in kinds.keys() - MAY_BE_EMPTY:
            raise typer.BadParameter(f"{option} needs a value: none follows the `=`")


def refuse_odd_numbers(argv: Sequence[str], given: Iterable[inspect.Parameter]) -> None:
    """Raise `typer.BadParameter` for `1_000`, digits of other scripts, `nan` and `inf`."""
    for parameter in given:
        if inner_type(parameter.annotation) in (int, float):
            option = flag(parameter.name)
            for value in peek_all(argv, option):
                refuse_odd_number(value, option)


def refuse_odd_number(text: str, where: str) -> None:
    """Raise `typer.BadParameter` for what Python reads as a number although it is not plain."""
    try:
        float(text)
    except ValueError:
        return  # no number at all: Typer and pydantic say so
    if not is_plain_number(text):
        raise typer.BadParameter(
            f"{where}: {text!r} is not a number: write it in the digits 0 to 9"
        )


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

    def near(known: Collection[str], cutoff: float) -> str | None:
        spellings = [name, name.removeprefix("no-")] if name.startswith("no-") else [name]
        found = (meant(each, sorted(known), (OPTIONS,), cutoff) for each in spellings)
        return next(filter(None, found), None)

    def having(what: str, found: str, owners: Mapping[str, Collection[str]]) -> str:
        those = [owner for owner, options in owners.items() if found in options]
        return f"{what} that have it: {', '.join(those)}."

    if name in of_models and name not in own:
        return having("Models", name, models)
    if found := near(own, SURE):
        return f"Did you mean --{found}?"
    commands = {} if command is None else options_of_others(command)
    every = {each for options in commands.values() for each in options}
    if name in every:
        return having("Commands", name, commands)
    if found := near(own, NEAR):
        return f"Did you mean --{found}?"
    if found := near(of_models, NEAR):
        return f"Did you mean --{found}? {having('Models', found, models)}"
    if found := near(every, SURE):
        return f"Did you mean --{found}? {having('Commands', found, commands)}"
    return ""


def options_of_others(command: str) -> dict[str, set[str]]:
    """The options of every other command; their modules are imported for it."""
    found: dict[str, set[str]] = {}
    for each in find_commands().values():
        if each.name != command:
            built = function_of(each, [])
            found[each.name] = {
                name.removeprefix("--")
                for parameter in inspect.signature(built, eval_str=True).parameters.values()
                if isinstance(info_of(parameter), OptionInfo)
                for name in flags_of(parameter)
            }
    return found


def usage_line(error: Any, argv: Sequence[str]) -> str:
    """What is wrong with a command line that Typer cannot parse, and what to do."""
    context, message = error.ctx, " ".join(error.message.split())
    command, path = "statetrack", " ".join(["statetrack", *argv[:1]])
    if context is not None:  # Typer does not always give it
        command, path = context.info_name, context.command_path
    see = f"`{path} --help`"
    if hasattr(error, "possibilities"):
        option = error.option_name
        parameters = () if context is None else context.command.get_params(context)
        names = {name for each in parameters for name in (*each.opts, *each.secondary_opts)}
        own = {name.removeprefix("--") for name in names if name.startswith("--")}
        said = (
            _written_otherwise(option, parameters, own, path)
            or advice(option, own, command=command)
            or f"{see} shows those it has."
        )
        return f"{command} has no option {option}. {said}"
    if message.startswith("Missing command"):
        return "statetrack needs a command: `statetrack --help` lists them"
    parameter = getattr(error, "param", None)
    hint = getattr(error, "param_hint", None) or ()
    name = hint if isinstance(hint, str) else " / ".join(hint)
    if parameter is not None:
        is_option = parameter.param_type_name == "option"
        name = max(parameter.opts, key=len) if is_option else parameter.metavar
        name = name or (parameter.name.upper() if hasattr(error, "param_type") else parameter.name)
        name = name if is_option else name.strip("[]")
    if parameter is not None and hasattr(error, "param_type"):
        about = " ".join((getattr(parameter, "help", None) or "").split())
        what = f"{name}: {about[:1].lower()}{about[1:]}" if about else f"{name}."
        return f"{command} needs {what} {see} shows more."
    if name:
        given = peek(argv, name) if message.startswith("Input should") else None
        told = _plain(message) + ("" if given is None else f" (given: {given})")
        return told if name in message else f"{name}: {told}"
    if "unexpected extra argument" in message:
        words = message.partition(" (")[2].removesuffix(".").removesuffix(")")
        return f"'{words}' belongs to no option and no argument of {command}. {see} shows more."
    if "requires" in message and hasattr(error, "option_name"):
        return f"{error.option_name} needs a value. {see} shows more."
    return message


def _written_otherwise(
    option: str, parameters: Sequence[Any], own: Collection[str], path: str
) -> str:
    """How a command takes what it has no option for: as an argument, or by `--set`; or empty."""
    name = option.removeprefix("--")
    taken = name.upper().rstrip("S")
    for each in parameters:
        places = re.findall("[A-Z]+", str(each.metavar or each.name).upper())
        if each.param_type_name == "argument" and taken in {word.rstrip("S") for word in places}:
            return f"It stands without an option: `{path} {taken}`."
    if "set" in own and not meant(name, own, cutoff=SURE):
        return f"A setting of a model or of training is written --set {name}=VALUES."
    return ""


def _plain(message: str) -> str:
    """A message of Typer or pydantic in plain words."""
    message = message.removeprefix("Value error, ")
    message = re.sub(", unable to parse string as an? (integer|number)$", "", message)
    message = re.sub("is not a valid integer( range)?", "is not a whole number", message)
    return re.sub("is not a valid float( range)?", "is not a number", message).removesuffix(".")
