"""The user's own files that a run needs: of its model, its loss, its optimiser, its task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from statetrack.models import MODELS
from statetrack.plugins import load_plugin, plugin_files
from statetrack.registry import Registry
from statetrack.runs.folder import RunFolder
from statetrack.settings import read_yaml
from statetrack.sources import KINDS
from statetrack.training.registries import LOSSES, OPTIMISERS


def plugins_of(config: Mapping[str, Any], automaton: Mapping[str, Any]) -> list[list[Path]]:
    """The user's own files that a configuration and a task's automaton need.

    One list for each plugin: its file first, then the modules of its folder that it imports. The
    model's plugin comes first.
    """
    found: dict[Path, list[Path]] = {}
    for registry, name in _names(config, automaton):
        files = plugin_files(registry[name])
        if files:
            found.setdefault(files[0], files)
    return list(found.values())


def load_plugins(folder: RunFolder) -> None:
    """Load a run's copies of plugins, unless the names that the run needs are registered.

    Raises `SettingsError` where one cannot be imported.
    """
    plugins = folder.plugins
    if not plugins:
        return
    automaton = read_yaml(folder.task_file).get("automaton")
    named = _names(folder.config(), automaton if isinstance(automaton, dict) else {})
    if any(name not in registry for registry, name in named):
        for plugin in plugins:
            load_plugin(plugin)


def _names(
    config: Mapping[str, Any], automaton: Mapping[str, Any]
) -> Iterator[tuple[Registry[Any], str]]:
    """The names that a configuration and an automaton look up, each with its registry."""
    for key, registry in (("model", MODELS), ("loss", LOSSES), ("optimizer", OPTIMISERS)):
        if key in config:
            yield registry, str(config[key])
    for kind in _kinds_in(automaton):
        yield KINDS, kind


def _kinds_in(content: Any) -> Iterator[str]:
    """Every kind that the description of an automaton names, at any depth."""
    if isinstance(content, Mapping):
        if isinstance(kind := content.get("kind"), str):
            yield kind
        for value in content.values():
            yield from _kinds_in(value)
    elif isinstance(content, list):
        for value in content:
            yield from _kinds_in(value)
