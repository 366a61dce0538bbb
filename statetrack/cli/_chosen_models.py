"""Models as `--models` names them: names with commas between, each with options of its own.

    deltanet --beta double,deltaproduct --householders 2,lstm

The options are those of `statetrack train --model NAME`, in the same notation.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Any

import typer

from statetrack import models
from statetrack.catalogue import as_text
from statetrack.cli import options
from statetrack.cli._usage import (
    UsageError,
    refuse_missing_values,
    refuse_odd_numbers,
    refuse_unknown,
)
from statetrack.errors import SettingsError, StatetrackError, UnknownNameError, nearest
from statetrack.settings import Settings, build


def chosen_models(written: str, option: str = "--models") -> dict[str, Settings]:
    """The settings of every model in a text, by the text that gives them; of all, where empty.

    The key of a model is its name and the options that were given, each once, in the order of the
    settings: `deltanet --beta double`.

    Raises `UnknownNameError` for a model or an option that does not exist, with those that do, and
    `SettingsError` for a value that the option refuses; both say which model is meant. Only what
    was given is in the `model_fields_set` of a model's settings.
    """
    try:
        return _chosen_models(written)
    except StatetrackError as problem:
        said = str(problem.args[0]).replace("--models:", f"{option}:", 1)
        raise type(problem)(said) from None


def _chosen_models(written: str) -> dict[str, Settings]:
    if not written.strip():
        return {name: models.MODEL_FACTS[name].settings_class() for name in models.MODELS}
    found = dict(_chosen(name, words) for name, *words in _split(written))
    if not found:
        raise UnknownNameError(f"--models: '{written}' names no model")
    return found


def _split(written: str) -> Iterator[list[str]]:
    """The words of every model; a comma between quotes separates nothing."""
    reader = shlex.shlex(written, posix=True, punctuation_chars=",")
    reader.whitespace_split, reader.commenters = True, ""
    words: list[str] = []
    try:
        for word in [*reader, ","]:
            if not word.strip(","):
                yield from [words] if words else []
                words = []
            else:
                words.append(word)
    except ValueError:
        raise SettingsError(f"--models: a quotation mark is not closed: {written}") from None


def _chosen(name: str, words: Sequence[str]) -> tuple[str, Settings]:
    """A model's own text, and its settings."""
    if name not in models.MODELS:
        hint = nearest(name, models.MODELS) or " `statetrack list models` shows all."
        if "," not in name and not name.startswith("-"):
            raise UnknownNameError(f"--models: there is no model '{name}'.{hint}")
        raise UnknownNameError(
            f"--models: '{name}' is no model: each is written as NAME --option value, with commas "
            "between models"
        )
    kind = models.MODEL_FACTS[name].settings_class
    given = _given(name, kind, words)
    settings = build(kind, given, f"--models: {name}")
    shown = [_written(each, getattr(settings, each)) for each in kind.model_fields if each in given]
    return " ".join([name, *shown]), settings


def _given(name: str, kind: type[Settings], words: Sequence[str]) -> dict[str, Any]:
    """The values of the options that stand behind a model's name."""
    found: dict[str, Any] = {}

    def keep(context: typer.Context, **values: Any) -> None:
        refuse_unknown(context.args, name, kind.model_fields, fields_of_models, "")
        for each, value in values.items():
            source = context.get_parameter_source(each)
            if source is not None and source.name == "COMMANDLINE":
                found[each] = value

    parameters = options.parameters(kind, "")
    app = typer.Typer(add_completion=False)
    app.command(
        name,
        add_help_option=False,
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    )(options.with_parameters(keep, [options.CONTEXT, *parameters]))
    try:
        refuse_missing_values(words, parameters)
        refuse_odd_numbers(words, parameters)
        typer.main.get_command(app).main(args=list(words), prog_name=name, standalone_mode=False)
    except UnknownNameError as unknown:
        told = str(unknown) if str(unknown).startswith(f"{name} ") else f"{name}: {unknown}"
        raise UnknownNameError(f"--models: {told} {_known_options(name, kind)}") from None
    except UsageError as misused:
        told = " ".join(misused.format_message().split()).rstrip(".")
        told = told.removeprefix("Invalid value: ")
        raise SettingsError(
            f"--models: {name}: {told[:1].lower()}{told[1:]}. {_known_options(name, kind)}"
        ) from None
    return found


def _known_options(name: str, kind: type[Settings]) -> str:
    return f"Options of {name}: {', '.join(map(options.flag, kind.model_fields))}."


def fields_of_models() -> dict[str, set[str]]:
    """The names of the settings of every model."""
    return {
        name: set(facts.settings_class.model_fields) for name, facts in models.MODEL_FACTS.items()
    }


def _written(name: str, value: Any) -> str:
    """A setting as an option; a value with a comma or a space in quotes."""
    if isinstance(value, bool):
        return options.written(name, value)
    text = as_text(value)
    quoted = f"'{text}'" if "," in text else shlex.quote(text)
    return f"{options.flag(name)} {quoted}"
