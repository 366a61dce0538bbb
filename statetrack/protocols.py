"""Protocols: everything a published number depends on, in a file named after its paper.

`tasks/protocols/NAME.yaml` holds training settings for every model (`settings`), and model
settings for those models that have them (`models`). `--protocol NAME` makes them defaults.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import Field

from statetrack.registry import Registry, files_in, tasks_folder
from statetrack.settings import Line, Settings, build, read_yaml


class Protocol(Settings):
    """One protocol file."""

    title: Line
    reference: Line
    settings: dict[str, Any] = Field(default_factory=dict)
    models: dict[str, dict[str, Any]] = Field(default_factory=dict)


def read_protocol(path: Path) -> Protocol:
    """The protocol that a file holds; `SettingsError` where it is not one."""
    return build(Protocol, read_yaml(path), str(path))


PROTOCOLS: Registry[Protocol] = Registry(
    "protocol",
    find=lambda: files_in(tasks_folder() / "protocols", read_protocol),
    listing="statetrack list protocols",
)


def settings_for(protocol: str, model: str) -> dict[str, Any]:
    """The settings that a protocol prescribes for a model, flat."""
    found = PROTOCOLS[protocol]
    return {**found.settings, **found.models.get(model, {})}
