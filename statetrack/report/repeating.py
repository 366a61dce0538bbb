"""The command that repeats a run alone, made from the settings that are not defaults.

The command line that a run was started with is not repeated: it may name a file that has changed
since, and other versions have other defaults.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from statetrack.models import MODEL_FACTS
from statetrack.training import DataSettings, TrainSettings


def train_command(config: Mapping[str, Any], plugins: Sequence[Path] = ()) -> str:
    """The `statetrack train` line whose settings are these: the content of a config.yaml.

    `plugins` are the files that define what the run needs. Raises `UnknownNameError` for a model
    that is not registered.
    """
    words = ["statetrack", "train", "--model", str(config["model"])]
    for plugin in plugins:
        words += ["--plugin", str(plugin)]
    for name, value in own_settings(config).items():
        words += _option(name, value)
    return shlex.join(words)


def own_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """The settings in a config.yaml, but the model, that are not the defaults of its model.

    Raises `UnknownNameError` for a model that is not registered.
    """
    facts = MODEL_FACTS[str(config["model"])]
    defaults: dict[str, Any] = {}
    for part in (DataSettings, facts.settings_class, TrainSettings):
        own = {key: facts.training_defaults[key] for key in _shared(part, facts.training_defaults)}
        defaults |= part(**own).model_dump(mode="json")
    return {
        name: value
        for name, value in config.items()
        if name != "model" and (name not in defaults or value != defaults[name])
    }


def _shared(kind: type[Any], values: Mapping[str, Any]) -> list[str]:
    return [key for key in values if key in kind.model_fields]


def _option(name: str, value: Any) -> list[str]:
    flag = "--" + name.replace("_", "-")
    if isinstance(value, bool):
        return [flag if value else f"--no-{flag[2:]}"]
    text = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return [f"{flag}={text}"] if text.startswith("-") or not text else [flag, text]
