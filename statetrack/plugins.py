"""Users' own Python files, which register models, kinds and the like when they are imported.

A plugin can import the modules of its own folder, as a script can. A run keeps copies of all
these files, so that it can be opened where the originals are missing.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from statetrack.errors import SettingsError, setting

PREFIX = "statetrack_plugin_"
"""The prefix of the module names of plugins."""


@dataclass(frozen=True)
class _Plugin:
    """A plugin that was imported, and the modules of its folder that it imported, by name."""

    path: Path
    beside: dict[str, Path]


_PLUGINS: dict[str, _Plugin] = {}
"""Every plugin that this process imported, by the name of its module."""


def load_plugin(path: Path) -> None:
    """Import a user's own Python file, so that what it registers can be used by name.

    Raises `SettingsError` where the file is missing or cannot be imported.
    """
    here = setting("plugin", str(path))
    if not path.is_file():
        raise SettingsError(f"{here}: there is no such file")
    file = path.resolve()
    place = zlib.crc32(str(file).encode())  # every run folder has a `plugin.py`
    name = f"{PREFIX}{path.stem}_{place:08x}"
    if name in sys.modules:
        return
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise SettingsError(f"{here}: not a Python file (its name must end in .py)")
    module = importlib.util.module_from_spec(spec)
    before = set(sys.modules)
    sys.modules[name] = module
    try:
        with _imports_from(file.parent):
            spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        for new in {name, *_modules_in(file.parent)} - before:
            del sys.modules[new]
        raise SettingsError(f"{here}: cannot be imported: {_reason(error, file.parent)}") from error
    _PLUGINS[name] = _Plugin(file, _modules_in(file.parent))


def loaded_plugins() -> tuple[Path, ...]:
    """Every plugin that this process has loaded."""
    return tuple(plugin.path for name, plugin in _PLUGINS.items() if name in sys.modules)


def plugin_files(thing: object) -> list[Path]:
    """The user's own files that a registered component comes from; none for a shipped one.

    The plugin is first, then the modules of its folder that were imported with it, including
    those of packages in that folder.
    """
    home = str(getattr(thing, "__module__", ""))
    for name, plugin in _PLUGINS.items():
        if home == name or home in plugin.beside:
            return [plugin.path, *sorted(plugin.beside.values())]
    return []


def line_of(error: BaseException) -> str | None:
    """`FILE.py, line 12` for an error raised in a user's own file; None for any other.

    Frames of other packages are ignored; the innermost of the remaining ones is either in a user's
    file or in statetrack, and decides.
    """
    folders = {plugin.path.parent for plugin in _PLUGINS.values()}
    for module, file, line in _frames(error):
        if module.partition(".")[0] == "statetrack":
            return None
        if any(_is_users(module, file, folder) for folder in folders):
            return f"{_shown(file)}, line {line}"
    return None


def _reason(error: BaseException, folder: Path) -> str:
    """An error at import in one line, with the innermost line of a user's file."""
    if isinstance(error, SystemExit):
        what = "it ends the program"
    else:
        what = f"{type(error).__name__}: {error}"
    if isinstance(error, SyntaxError):  # names its file and line itself
        return what
    for module, file, line in _frames(error):
        if module.partition(".")[0] != "statetrack" and _is_users(module, file, folder):
            return f"{what} ({_shown(file)}, line {line})"
    return what


def _frames(error: BaseException) -> Iterator[tuple[str, Path, int]]:
    """The module, file and line of each frame of a traceback, innermost first."""
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        yield str(frame.f_globals.get("__name__", "")), Path(frame.f_code.co_filename), line


def _is_users(module: str, file: Path, folder: Path) -> bool:
    return module.startswith(PREFIX) or file in _places(module, folder)


def _places(module: str, folder: Path) -> tuple[Path, Path]:
    """The two paths in a folder that a module of this name can have."""
    place = folder.joinpath(*module.split("."))
    return place.with_name(f"{place.name}.py"), place / "__init__.py"


def _modules_in(folder: Path) -> dict[str, Path]:
    """The imported modules whose files are in a folder and match their names; not statetrack."""
    files = {name: getattr(module, "__file__", None) for name, module in [*sys.modules.items()]}
    return {
        name: Path(file)
        for name, file in files.items()
        if file is not None
        and file.startswith(str(folder))
        and name.partition(".")[0] != "statetrack"
        and Path(file) in _places(name, folder)
    }


@contextmanager
def _imports_from(folder: Path) -> Iterator[None]:
    """Import modules from a folder in preference to those of the same names elsewhere.

    Modules of these names that another plugin imported from its own folder are forgotten first.
    """
    for plugin in _PLUGINS.values():
        for name in plugin.beside if plugin.path.parent != folder else ():
            if any(place.exists() for place in _places(name, folder)):
                sys.modules.pop(name, None)
    importlib.invalidate_caches()
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


def _shown(file: Path) -> str:
    """A path as messages show it: relative if it is below the working directory."""
    here = Path.cwd()
    return str(file.relative_to(here) if file.is_relative_to(here) else file)
