"""A read-only mapping from names to components, which are found by the paths of their files.

The path of a file determines a name: `statetrack/models/bilinear_cp.py` defines the model
`bilinear-cp`, `tasks/s5.yaml` the task `s5`. So names are known before anything is imported, and a
component is loaded on first access. Nothing is replaced silently: registering a name twice is an
error, and the error for an unknown name suggests the nearest one.

A component may need a package that an extra of statetrack installs: `import_extra` imports it, or
says what installs it.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from statetrack.errors import SettingsError, StatetrackError, UnknownNameError, nearest
from statetrack.text import LONGEST_NAME, flaw_in

if TYPE_CHECKING:
    import importlib.metadata


T = TypeVar("T")
Load = Callable[[], object]


@dataclass(frozen=True)
class Alias:
    """Another name of a component: the name by which it is listed, and what to say to a user."""

    name: str
    note: str


class Registry(Mapping[str, T], Generic[T]):
    """A read-only mapping of the components of one kind, each loaded on first access.

    `find` returns, for every name, a function that loads it: either by returning the component,
    or by importing a module in which `register(name)` decorates it. `listing` is the command that
    lists the names, and `hint` what else is said of an unknown one. `entry_points` is the group of
    entry points by which installed packages add components; it is looked up only for a name that
    `find` does not have, or for all names. `open_sets` makes components that nothing lists: of a
    name `hf:gpt2` the function under `hf` makes the component from the whole name. `aliases` are
    further names, such as earlier ones: they are found, and neither listed nor counted.

    Raises `UnknownNameError` for a name it does not have, `ValueError` for a name that is
    registered twice, and `StatetrackError` where entry points repeat a name.
    """

    def __init__(
        self,
        kind: str,
        find: Callable[[], Mapping[str, Load]],
        *,
        listing: str,
        hint: str = "",
        entry_points: str | None = None,
        open_sets: Mapping[str, Callable[[str], object]] | None = None,
        aliases: Mapping[str, Alias] | None = None,
    ) -> None:
        self.kind = kind
        self._find = find
        self._listing = listing
        self.hint = hint
        self._entry_points = entry_points
        self._open_sets = dict(open_sets or {})
        self.aliases: Mapping[str, Alias] = dict(aliases or {})
        self._found: dict[str, Load] | None = None
        self._elsewhere: dict[str, Load] | None = None
        self._things: dict[str, T] = {}
        self._homes: dict[str, str] = {}
        self._loading = ""
        _EVERY.append(self)

    def register(self, name: str) -> Callable[[T], T]:
        """A decorator that registers a component under `name`.

        Raises `ValueError` for a name that is not printable, on one line.
        A name that `find` has given can be registered only by its own file or entry point.
        """

        def enter(thing: T) -> T:
            if flaw := flaw_in(name, most=LONGEST_NAME):
                raise ValueError(f"the name of a {self.kind} {flaw}")
            home = str(sys._getframe(1).f_globals.get("__name__", ""))
            own = home.startswith("statetrack.") or name == self._loading
            taken = name in self._things or name in self.aliases
            if taken or (name in self._names() and not own):
                raise ValueError(f"{self.kind} {name!r} is registered twice")
            self._things[name] = thing
            self._homes[name] = home
            return thing

        return enter

    def _own(self) -> dict[str, Load]:
        """What `find` gives."""
        if self._found is None:
            self._found = dict(self._find())
        return self._found

    def _names(self) -> dict[str, Load]:
        """What `find` gives and what entry points name."""
        if self._elsewhere is None:
            elsewhere = {} if self._entry_points is None else named_by(self._entry_points)
            for name, load in elsewhere.items():
                if name in self._own():
                    raise StatetrackError(
                        f"{described(load.args[0])} repeats the name of a {self.kind} that "
                        "statetrack has: update that package, or uninstall it"
                    )
            self._elsewhere = dict(elsewhere)
        return self._own() | self._elsewhere

    def _made(self, name: object) -> Callable[[str], object] | None:
        """What makes a component of an open set; None for any other name."""
        prefix, colon, _ = name.partition(":") if isinstance(name, str) else ("", "", "")
        return self._open_sets.get(prefix) if colon else None

    def listed_name(self, name: str) -> str:
        """The name by which a component is listed: of an alias the other one."""
        return self.aliases[name].name if name in self.aliases else name

    def __getitem__(self, name: str) -> T:
        name = self.listed_name(name)
        if make := self._made(name):
            return make(name)  # type: ignore[return-value]
        if name not in self._things:
            loaders = self._own() if name in self._own() else self._names()
            if name not in loaders:
                hint = nearest(name, self)
                raise UnknownNameError(
                    f"there is no {self.kind} '{name}'.{hint} "
                    f"`{self._listing}` shows all {len(self)}.{self.hint}"
                )
            self._loading = name
            try:
                loaded = loaders[name]()
            finally:
                self._loading = ""
            if name not in self._things:
                self._things[name] = loaded  # type: ignore[assignment]
        return self._things[name]

    def home(self, name: str) -> str:
        """The module that registered a component, or else the one in which it is defined."""
        name = self.listed_name(name)
        thing = self[name]
        return self._homes.get(name, str(getattr(thing, "__module__", "")))

    def loaded(self) -> Mapping[str, T]:
        """The components that are already loaded, by name, those of plugins included."""
        return dict(self._things)

    def __contains__(self, name: object) -> bool:
        known = name in self._things or name in self._own() or self._made(name) is not None
        return known or name in self.aliases or name in self._names()

    def __iter__(self) -> Iterator[str]:
        return iter(sorted({*self._things, *self._names()}))

    def __len__(self) -> int:
        return len({*self._things, *self._names()})


_EVERY: list[Registry[Any]] = []


def forget(homes: Collection[str]) -> None:
    """Remove from every registry what modules registered that were not imported to their end."""
    for registry in _EVERY:
        for name in [name for name, home in registry._homes.items() if home in homes]:
            del registry._things[name], registry._homes[name]


def modules_in(package: str) -> Mapping[str, Load]:
    """A loader for every public module of a package.

    A module `bilinear_cp` gives the name `bilinear-cp`; importing it registers the thing.
    """
    spec = importlib.util.find_spec(package)
    assert spec is not None and spec.submodule_search_locations is not None, package
    stems = sorted(
        path.stem
        for folder in spec.submodule_search_locations
        for path in Path(folder).glob("*.py")
        if not path.stem.startswith("_")
    )
    return {
        stem.replace("_", "-"): partial(importlib.import_module, f"{package}.{stem}")
        for stem in stems
    }


def named_by(entry_points: str) -> dict[str, partial[object]]:
    """A loader for every entry point of a group that an installed package has.

    The loader raises `StatetrackError` where the package cannot be imported; likewise this
    function, where two packages have the same name.
    """
    import importlib.metadata  # slow to import, and needed only for names from elsewhere

    found: dict[str, partial[object]] = {}
    for entry in importlib.metadata.entry_points(group=entry_points):
        if (other := found.setdefault(entry.name, partial(_load, entry)).args[0]) != entry:
            raise StatetrackError(
                f"{described(other)} and {described(entry)} have the same name: uninstall one"
            )
    return found


def described(entry: importlib.metadata.EntryPoint) -> str:
    """An entry point in words, with the package that has it."""
    package = "an installed package" if entry.dist is None else f"the package {entry.dist.name}"
    return f"the entry point '{entry.name} = {entry.value}' of {package}"


def _load(entry: importlib.metadata.EntryPoint) -> object:
    try:
        return entry.load()
    except (ImportError, AttributeError) as problem:
        raise StatetrackError(
            f"{described(entry)} cannot be loaded ({type(problem).__name__}: {problem}): "
            "update that package, or uninstall it"
        ) from problem


def files_in(folder: Path, read: Callable[[Path], object]) -> dict[str, Load]:
    """A loader for every YAML file of a folder, by the file's stem."""
    return {path.stem: partial(read, path) for path in sorted(folder.glob("*.yaml"))}


def tasks_folder() -> Path:
    """The folder of the shipped tasks, protocols and suites.

    It is inside an installed package, or next to the package in a checkout.
    """
    package = Path(__file__).parent
    installed = package / "tasks"
    return installed if installed.is_dir() else package.parent / "tasks"


@cache
def missing_kernels() -> str | None:
    """What the kernels of flash-linear-attention need and is not installed; None if all is."""
    for module, package in (("fla", "fla-core"), ("triton", "triton")):
        if importlib.util.find_spec(module) is None:
            return f"{package} is not installed (pip install '.[fla]' in the checkout)"
    return None


def import_extra(module: str, extra: str, needed_by: str) -> Any:
    """An optional package, imported.

    Raises `SettingsError`, which says what installs it, where it is missing or cannot be imported.
    """
    advice = f"`pip install '.[{extra}]'` in statetrack's checkout installs it"
    if importlib.util.find_spec(module) is None:
        raise SettingsError(f"{needed_by} needs {module}, which is not installed: {advice}")
    try:
        return importlib.import_module(module)
    except ImportError as problem:
        raise SettingsError(
            f"{needed_by} needs {module}, which cannot be imported ({problem}): {advice} anew"
        ) from None
