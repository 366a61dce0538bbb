"""The user's own files that a run needs: of its model, its loss, its optimiser, its task.

A run folder may come from anywhere, and its plugin is code: it is executed only for whoever asked
for that.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from statetrack.errors import (
    RunError,
    SettingsError,
    StatetrackError,
    StatetrackWarning,
    setting,
)
from statetrack.models import MODELS
from statetrack.plugins import PluginFiles, load_copy, load_plugin, plugin_of
from statetrack.registry import Registry
from statetrack.runs import files
from statetrack.runs.folder import RunFolder, find_runs_below, is_run
from statetrack.runs.own_code import is_own_code
from statetrack.sources import KINDS
from statetrack.training import LOSSES, OPTIMISERS

Named = tuple[Registry[Any], str]
"""A name, and the registry that it is looked up in."""


def plugins_of(config: Mapping[str, Any], automaton: Mapping[str, Any]) -> list[PluginFiles]:
    """The plugins that a configuration and a task's automaton need, the model's first."""
    return _plugins_of(_names(config, automaton))


def needs_plugin(folder: RunFolder) -> bool:
    """Whether a run looks up a name that its plugin alone defines, and that has to be trusted.

    One that a run of this machine was begun with (`own_code`) is imported; of any other nothing is
    executed. Raises `RunError` where a file of the run cannot be read.
    """
    if not _lacks_names(folder):
        return False
    if is_own_code(folder.path, folder.code):
        with suppress(SettingsError):  # for whoever opens the run to say
            _load(folder)
    return _lacks_names(folder)


def _lacks_names(folder: RunFolder) -> bool:
    """Whether a run has a plugin, and looks up a name that is not registered."""
    return bool(folder.plugins) and not all(
        name in registry for registry, name in _names_of(folder)
    )


def _load(folder: RunFolder) -> None:
    for plugin in folder.plugins:
        load_copy(plugin)


def code_of(folder: RunFolder) -> str:
    """The Python files of a run in words: its plugin, and how many there are beside it."""
    others = len(folder.code) - 1
    more = f" and {others} more .py file{'s' * (others > 1)}" if others else ""
    return f"{folder.plugins[0]}{more}"


def load_plugins(folder: RunFolder, *, trust: bool) -> None:
    """Have all names registered that a run needs, from its own plugin if that is trusted.

    It is trusted too where a run of this machine was begun with it (`own_code`). Where the names
    are registered already, the run's plugin is not executed; there is a `StatetrackWarning` if
    they come from other files than those that the run was trained with.

    Raises `RunError` where the plugin is needed and not trusted, and `SettingsError` where it
    cannot be imported.
    """
    if not _lacks_names(folder):
        _warn_of_other_files(folder)
    elif not trust and not is_own_code(folder.path, folder.code):
        raise RunError(
            f"{folder.path}: needs its plugin {code_of(folder)}, which is code that is run: read "
            f"it, then give {setting('trust_plugin', True)}, or {setting('plugin', 'FILE.py')}"
        )
    else:
        _load(folder)


def load_own_code(folder: Path) -> None:
    """Have the names registered that the runs of a sweep need, where their plugins are one's own.

    What cannot be read or imported is for whoever opens a run of it to say.
    """
    for run in find_runs_below([folder]):
        with suppress(StatetrackError):
            needs_plugin(run)


def load_given(path: Path) -> None:
    """Import a plugin that was given by hand.

    One that lies in a run folder is imported from the texts in it alone, as a trusted one is.
    Raises `SettingsError` where it cannot be imported.
    """
    load_copy(path) if is_run(path.parent) and path.is_file() else load_plugin(path)


def _warn_of_other_files(folder: RunFolder) -> None:
    """Warn where what is registered does not come from the files that the run keeps copies of."""
    if not folder.plugins:
        return
    used = _plugins_of(_names_of(folder))
    if not used:
        _warn(
            folder, "the names it needs now come from installed packages, and not from its plugin"
        )
    for plugin in used:
        for name, text in plugin.texts.items():
            original = plugin.path.parent / name
            copies = folder.plugins if original == plugin.path else [folder.path / name]
            texts = {copy: copy.read_bytes() for copy in copies if copy.is_file()}
            if texts and text not in texts.values():
                kept = ", ".join(f"{copy} {_digest(texts[copy])}" for copy in texts)
                _warn(
                    folder,
                    f"it was trained with another version of {original} than is used now "
                    f"(SHA-256 {_digest(text)}; its copy: {kept})",
                )
                break


def _warn(folder: RunFolder, what: str) -> None:
    warnings.warn(StatetrackWarning(what, folder.path), stacklevel=2)


def _digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:12]


def _plugins_of(named: Iterable[Named]) -> list[PluginFiles]:
    found: dict[Path, PluginFiles] = {}
    for registry, name in named:
        if (plugin := plugin_of(registry.home(name))) is not None:
            found.setdefault(plugin.path, plugin)
    return list(found.values())


def _names_of(folder: RunFolder) -> list[Named]:
    """The names that a run looks up."""
    config, automaton = folder.read(files.CONFIG), folder.read(files.TASK).get("automaton")
    if not isinstance(automaton, dict):
        where = folder.path / files.TASK.name
        raise RunError(f"{where}: is damaged: 'automaton' holds no names and values")
    return list(_names(config, automaton))


def _names(config: Mapping[str, Any], automaton: Mapping[str, Any]) -> Iterator[Named]:
    """The names that a configuration and an automaton look up, each with its registry."""
    for key, registry in (("model", MODELS), ("loss", LOSSES), ("optimizer", OPTIMISERS)):
        if key in config:
            yield registry, str(config[key])
    for kind in dict.fromkeys(_kinds_in(automaton, set())):
        yield KINDS, kind


def _kinds_in(content: Any, visited: set[int]) -> Iterator[str]:
    """Every kind that the description of an automaton names, at any depth.

    What stands in several places of a YAML file under one name is visited once.
    """
    if id(content) in visited or not isinstance(content, (Mapping, list)):
        return
    visited.add(id(content))
    if isinstance(content, Mapping):
        if isinstance(kind := content.get("kind"), str):
            yield kind
    for value in content.values() if isinstance(content, Mapping) else content:
        yield from _kinds_in(value, visited)
