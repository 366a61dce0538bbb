"""Users' own Python files, which register models, kinds and the like when they are imported.

A plugin can import the modules of its own folder, as a script can. A run keeps copies of all
these files, so that it can be opened where the originals are missing. A copy is imported by its
text alone: whoever has read the `.py` files of a run has read all that is then executed.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import traceback
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import NoReturn

from statetrack.errors import SettingsError, setting
from statetrack.registry import forget
from statetrack.text import as_argument

PREFIX = "statetrack_plugin_"
"""The prefix of the module names of plugins."""


@dataclass(frozen=True)
class PluginFiles:
    """What a plugin consists of: its own file, and its texts as they were imported.

    `texts` has the bytes of every file by its path relative to the plugin's folder: the plugin's
    own first, then the modules of that folder that it imported.
    """

    path: Path
    texts: dict[str, bytes]


@dataclass(frozen=True)
class _Plugin:
    """A plugin that was imported, and the modules of its folder that it imported, by name.

    `seen` are the names of all modules that were looked at for it.
    """

    files: PluginFiles
    beside: dict[str, Path]
    seen: set[str]

    @property
    def folder(self) -> Path:
        return self.files.path.parent


_PLUGINS: dict[str, _Plugin] = {}
"""Every plugin that this process imported, by the name of its module."""


def load_plugin(path: Path | str, *, called: str = "") -> None:
    """Import a user's own Python file, so that what it registers can be used by name.

    What it prints while it is imported goes to standard error. Messages begin with what it is
    `called`, by default with this call (or the option of a command). Raises `SettingsError` where
    the file is missing, cannot be imported, or has changed since this process imported it.
    """
    here, path = called or setting("plugin", str(path)), Path(path)
    if not path.is_file():
        wrong = "is no file: name one in Python" if path.exists() else "there is no such file"
        raise SettingsError(f"{here}: {wrong}")
    file = path.resolve()
    _load(file, here, _imports_from(file.parent))


def load_copy(path: Path) -> None:
    """Import a run's copy of a plugin, from the texts of the run's `.py` files alone.

    Bytecode and compiled modules in the run folder are not used, now or later. Raises
    `SettingsError` as `load_plugin` does.
    """
    file = path.parent.resolve() / path.name
    _load(file, str(path), _imports_texts_from(file.parent))


def _load(file: Path, here: str, importing: AbstractContextManager[None]) -> None:
    place = zlib.crc32(str(file).encode())  # every run folder has a `plugin.py`
    name = f"{PREFIX}{file.stem}_{place:08x}"
    text = file.read_bytes()
    if name in sys.modules:
        known = _PLUGINS.get(name)
        if known is not None and known.files.texts[file.name] != text:
            raise SettingsError(
                f"{here}: has changed since this process imported it: start a new one"
            )
        return
    if file.suffix != ".py":
        raise SettingsError(f"{here}: not a Python file (its name must end in .py)")
    if file.stem == "__init__":
        raise SettingsError(f"{here}: a package: give a file beside it that imports it")
    spec = importlib.util.spec_from_loader(name, _Text(name, str(file)))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    before = set(sys.modules)
    sys.modules[name] = module
    try:
        with importing, redirect_stdout(sys.stderr):
            spec.loader.exec_module(module)
    except BaseException as error:
        unfinished = {name, *_modules_in(file.parent, sys.modules.keys() - before)}
        forget(unfinished)
        for new in unfinished:
            del sys.modules[new]
        if not isinstance(error, (Exception, SystemExit)):
            raise  # an interruption
        raise SettingsError(f"{here}: cannot be imported: {_reason(error, file.parent)}") from error
    _PLUGINS[name] = _Plugin(PluginFiles(file, {file.name: text}), {}, set())
    _note_modules(_PLUGINS[name])


def loaded_plugins() -> tuple[Path, ...]:
    """Every plugin that this process has loaded."""
    return tuple(plugin.files.path for name, plugin in _PLUGINS.items() if name in sys.modules)


def plugin_of(home: str) -> PluginFiles | None:
    """The user's own files that the module `home` belongs to; None for any other module."""
    for name, plugin in _PLUGINS.items():
        if home == name or home in plugin.beside:
            _note_modules(plugin)  # a package may import its modules when they are needed
            return plugin.files
    return None


def _note_modules(plugin: _Plugin) -> None:
    """Add the modules of a plugin's folder that were imported by now, with their texts."""
    new = sys.modules.keys() - plugin.seen
    plugin.seen.update(new)
    for name, file in sorted(_modules_in(plugin.folder, new).items()):
        place = file.relative_to(plugin.folder).as_posix()
        if place not in plugin.files.texts:
            plugin.files.texts[place] = file.read_bytes()
            plugin.beside[name] = file


def explain_mistake(error: BaseException, *, advice: bool = True) -> str | None:
    """`FILE.py, line 12: ...` for an error raised in a user's own file; None for any other.

    Frames of other packages are ignored; the innermost of the remaining ones is either in a user's
    file or in statetrack, and decides. One in statetrack that works on an object or a class of
    a user's file names that class: it may have a wrong shape, or lack what a model has; with
    `advice`, it says which command tells.
    """
    folders = {plugin.folder for plugin in _PLUGINS.values()}
    for module, file, line in _frames(error):
        if module.partition(".")[0] == "statetrack":
            return _mistake_in_class(error, advice)
        if any(_is_users(module, file, folder) for folder in folders):
            return f"{_shown(file)}, line {line}: {_what(error)}"
    return None


def _mistake_in_class(error: BaseException, advice: bool) -> str | None:
    """The class of a user's file that the innermost of statetrack's frames to have one works on."""
    for frame, _ in reversed(list(traceback.walk_tb(error.__traceback__))):
        for value in [*frame.f_locals.values()]:
            kind = value if isinstance(value, type) else type(value)
            if kind.__module__.startswith(PREFIX) and (files := plugin_of(kind.__module__)):
                file = _shown(files.path)
                how = f"; `statetrack check {as_argument(file)}` says which properties of a model "
                how += "do not hold"
                return f"{file}, class {kind.__name__}: {_what(error)}{how if advice else ''}"
    return None


def _reason(error: BaseException, folder: Path) -> str:
    """An error at import in one line, with the innermost line of a user's file."""
    what = _what(error)
    if isinstance(error, SyntaxError):  # names its file and line itself
        return what
    for module, file, line in _frames(error):
        if module.partition(".")[0] != "statetrack" and _is_users(module, file, folder):
            return f"{what} ({_shown(file)}, line {line})"
    return what


def _what(error: BaseException) -> str:
    """An error by its type and message; an end of the program, which has none, by what it is."""
    if isinstance(error, SystemExit):
        return "it ends the program, with `sys.exit` or the like"
    return f"{type(error).__name__}: {error}"


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


def _modules_in(folder: Path, names: Iterable[str]) -> dict[str, Path]:
    """Those of the imported modules whose files are in a folder and match their names.

    None of them is of statetrack.
    """
    try:
        there = {place.stem for place in folder.iterdir()} - {"statetrack"}
    except OSError:  # nothing is imported from a folder that cannot be listed
        return {}
    return {
        name: Path(file)
        for name in names
        if name.partition(".")[0] in there
        and (file := getattr(sys.modules.get(name), "__file__", None)) is not None
        and Path(file) in _places(name, folder)
    }


@contextmanager
def _imports_from(folder: Path) -> Iterator[None]:
    """Import modules from a folder in preference to those of the same names elsewhere."""
    _forget_namesakes(folder)
    importlib.invalidate_caches()
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


@contextmanager
def _imports_texts_from(folder: Path) -> Iterator[None]:
    """Likewise, but from texts alone: bytecode and compiled modules in the folder are ignored."""
    _forget_namesakes(folder)
    finder = _TextFinder(folder)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        finder.importing = False  # packages of the folder may import their modules later


def _forget_namesakes(folder: Path) -> None:
    """Forget modules that another plugin imported, if the folder has some of the same names."""
    for plugin in _PLUGINS.values():
        for name in plugin.beside if plugin.folder != folder else ():
            if any(place.exists() for place in _places(name, folder)):
                sys.modules.pop(name, None)


class _Text(importlib.machinery.SourceFileLoader):
    """Loads a module from its text, and neither reads nor writes bytecode."""

    def path_stats(self, path: object) -> NoReturn:
        """There is nothing to compare bytecode with, so that none is used."""
        raise OSError


class _TextFinder(importlib.abc.MetaPathFinder):
    """Finds the modules of one folder by their `.py` files, and by nothing else.

    Modules at the top of the folder are found while a plugin of the folder is `importing`, and
    those inside its packages always.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.importing = True

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The module of a name; of a package of this folder, there is no other."""
        if path is None:
            places = [str(self.folder)] if self.importing else []
        else:
            places = [place for place in path if Path(place).is_relative_to(self.folder)]
        for place in places:
            finder = importlib.machinery.FileFinder(place, (_Text, [".py"]))
            if (spec := finder.find_spec(name)) is not None:
                return spec
        if path is not None and places:
            raise ModuleNotFoundError(f"no file of the run defines {name!r}", name=name)
        return None


def _shown(file: Path) -> str:
    """A path as messages show it: relative if it is below the working directory."""
    here = Path.cwd()
    return str(file.relative_to(here) if file.is_relative_to(here) else file)
