"""One read-only mapping from names to things, found by place.

A file's place gives its name: `statetrack/models/bilinear_cp.py` holds the model
`bilinear-cp`, `tasks/s5.yaml` the task `s5`. So names are known before anything is
imported, and a thing is loaded when it is first asked for. Nothing is ever silently
replaced: a name given twice is an error, and an unknown one names the nearest.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

from statetrack.errors import UnknownNameError, nearest

T = TypeVar("T")
Load = Callable[[], object]


class Registry(Mapping[str, T], Generic[T]):
    """A read-only mapping of the things of one kind, each loaded when first asked for.

    `find` returns, for every name, a function that loads it: either by returning the
    thing, or by importing a module in which `register(name)` decorates it.

    Raises `UnknownNameError` for a name it does not have, and `ValueError` for a name
    registered twice (a programmer's mistake).
    """

    def __init__(self, kind: str, find: Callable[[], Mapping[str, Load]], *, listing: str) -> None:
        self.kind = kind
        self._find = find
        self._listing = listing
        self._loaders: dict[str, Load] | None = None
        self._things: dict[str, T] = {}
        self._loading = ""

    def register(self, name: str) -> Callable[[T], T]:
        """A decorator that enters a thing under `name`.

        A name that is known beforehand belongs to the file or entry point that it was found by.
        """

        def enter(thing: T) -> T:
            home = str(getattr(thing, "__module__", ""))
            own = home.startswith("statetrack.") or name == self._loading
            if name in self._things or (name in self._names() and not own):
                raise ValueError(f"{self.kind} {name!r} is registered twice")
            self._things[name] = thing
            return thing

        return enter

    def _names(self) -> dict[str, Load]:
        if self._loaders is None:
            self._loaders = dict(self._find())
        return self._loaders

    def __getitem__(self, name: str) -> T:
        if name not in self._things:
            if name not in self._names():
                hint = nearest(name, self)
                raise UnknownNameError(
                    f"there is no {self.kind} '{name}'.{hint} "
                    f"`{self._listing}` shows all {len(self)}."
                )
            self._loading = name
            loaded = self._names()[name]()
            self._loading = ""
            if name not in self._things:
                self._things[name] = loaded  # type: ignore[assignment]
        return self._things[name]

    def loaded(self) -> Mapping[str, T]:
        """The things that are loaded already, by name: those of plugins, and any asked for."""
        return dict(self._things)

    def __contains__(self, name: object) -> bool:
        return name in self._things or name in self._names()

    def __iter__(self) -> Iterator[str]:
        return iter(sorted({*self._things, *self._names()}))

    def __len__(self) -> int:
        return len({*self._things, *self._names()})


def modules_in(package: str, entry_points: str | None = None) -> dict[str, Load]:
    """A loader for every public module of a package, and for every entry point of a group.

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
    loaders: dict[str, Load] = {
        stem.replace("_", "-"): partial(importlib.import_module, f"{package}.{stem}")
        for stem in stems
    }
    if entry_points is not None:
        for entry in importlib.metadata.entry_points(group=entry_points):
            if entry.name in loaders:
                raise ValueError(f"entry point {entry.value!r} repeats the name {entry.name!r}")
            loaders[entry.name] = entry.load
    return loaders


def files_in(folder: Path, read: Callable[[Path], object]) -> dict[str, Load]:
    """A loader for every YAML file of a folder, by the file's stem."""
    return {path.stem: partial(read, path) for path in sorted(folder.glob("*.yaml"))}


def tasks_folder() -> Path:
    """Where the shipped tasks, protocols and suites are.

    Inside an installed package, or beside the package in a checkout.
    """
    package = Path(__file__).parent
    installed = package / "tasks"
    return installed if installed.is_dir() else package.parent / "tasks"
