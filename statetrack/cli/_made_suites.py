"""Suites made of options: models, tasks, and settings with one value or several.

--model "deltanet --beta double,lstm" --task s3,modular-addition:m=5 --set hidden=32,64
"""

from __future__ import annotations

import re
import typing
from collections.abc import Mapping, Sequence
from typing import Any

from statetrack.catalogue import inner_type
from statetrack.cli._chosen_models import chosen_models
from statetrack.errors import SettingsError, nearest_or_known
from statetrack.models import MODEL_FACTS
from statetrack.settings import Settings, is_plain_number
from statetrack.spec import names_in, split_at_commas
from statetrack.sweep import Suite
from statetrack.training import DataSettings, TrainSettings

_TRUTH = {"on": True, "true": True, "yes": True, "off": False, "false": False, "no": False}


def made_suite(
    models: Sequence[str],
    tasks: Sequence[str],
    settings: Mapping[str, Any],
    axes: Mapping[str, list[Any]],
) -> Suite:
    """The suite of these models and tasks.

    Raises `SettingsError` where there are none, or one is named twice, and `UnknownNameError` for
    a model that does not exist.
    """
    rows: dict[str, Any] = {}
    for text in models:
        if not text.strip():
            continue
        for name, given in chosen_models(text, "--model").items():
            own = given.model_dump(mode="json", include=given.model_fields_set)
            if name in rows:
                raise SettingsError(f"--model: '{name}' is named twice")
            rows[name] = {"model": name.split()[0], **own} if own else name
    columns = [name for text in tasks for name in task_names(text)]
    for what, named in (("model", rows), ("task", columns)):
        if not named:
            raise SettingsError(
                f"sweep: give a file, or --model and --task: there is no {what}; "
                f"`statetrack list {what}s` shows all"
            )
    if len({*columns}) < len(columns):
        raise SettingsError("--task: a task is named twice")
    number = f"{len(rows)} models on {len(columns)} tasks"
    for singular in ("models", "tasks"):
        number = re.sub(rf"\b1 {singular}", f"1 {singular[:-1]}", number)
    return Suite(
        title=number,
        settings=dict(settings),
        models=rows,
        tasks={name: name for name in columns},
        axes=dict(axes),
    )


def task_names(text: str) -> list[str]:
    """The tasks in a text, with commas between.

    `dihedral:n=6,generators=[r,s],s5` are two (`statetrack.spec.names` says how they are told).
    """
    return [name for name in names_in(text, f"tasks '{text}'") if name]


def settings_and_axes(
    given: Sequence[str], own: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """The settings with one value, those of `own` among them, and those with several.

    Raises `SettingsError` for what is no `NAME=VALUES`, for an unknown name, with the nearest, and
    for a setting that is given twice.
    """
    settings, axes = dict(own), dict[str, list[Any]]()
    known = _known_settings()
    for text in given:
        written, equals, values = text.partition("=")
        name = written.strip().removeprefix("--").replace("-", "_")
        if not equals or not values.strip():
            raise SettingsError(f"--set {text}: write it as NAME=VALUE, or NAME=VALUE,VALUE")
        if name not in known:
            told = nearest_or_known(name, known)
            raise SettingsError(f"--set {text}: there is no setting '{name}'.{told}")
        if name in settings or name in axes:
            raise SettingsError(f"--set {text}: '{name}' is given twice")
        found = _values(values, known[name])
        if len({repr(value) for value in found}) < len(found):
            raise SettingsError(f"--set {text}: a value is given twice")
        if len(found) == 1:
            settings[name] = found[0]
        else:
            axes[name] = found
    return settings, axes


def _known_settings() -> dict[str, Any]:
    """Every setting of words, of training and of any model, and the type of its values."""
    models = [facts.settings_class for facts in MODEL_FACTS.values()]
    kinds: list[type[Settings]] = [DataSettings, TrainSettings, *models]
    known = {name: field.annotation for kind in kinds for name, field in kind.model_fields.items()}
    return {name: kind for name, kind in known.items() if name != "task"}


def _values(text: str, kind: Any) -> list[Any]:
    """The values in a text: lists with `;` between, where a value is a list itself."""
    core = inner_type(kind)
    if typing.get_origin(core) in (tuple, list):
        return [
            [_value(part, core) for part in each.split(",") if part.strip()]
            for each in text.split(";")
        ]
    return [_value(part, core) for part in split_at_commas(text, f"--set: '{text}'")]


def _value(text: str, kind: Any) -> Any:
    text = text.strip()
    if kind is bool:
        return _TRUTH.get(text.lower(), text)
    if re.fullmatch(r"[-+]?[0-9]+", text):
        return int(text)
    return float(text) if is_plain_number(text) else text
