"""How much a command says on standard error: `--quiet`, as usual, or `--verbose`.

    quiet    warnings and errors only
    usual    progress and notes as well
    verbose  also what happens: versions, files read and written, times, tracebacks

Standard output never depends on it. It is set once for a command line, by `saying`; everything
that shows progress asks `is_quiet`.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

import typer

from statetrack import __version__
from statetrack.registry import tasks_folder
from statetrack.text import visible

Level = Literal["quiet", "usual", "verbose"]

_LEVELS: list[Level] = ["usual"]
"""The level is the last of these: that of the process, since progress is shown by threads too."""

QUIET, VERBOSE = ("-q", "--quiet"), ("-v", "--verbose")

LIBRARIES = {"torch": "torch", "numpy": "NumPy"}
"""The libraries whose versions are told, where they are imported."""


def is_quiet() -> bool:
    """Whether no progress and no notes are to be shown."""
    return _LEVELS[-1] == "quiet"


def is_verbose() -> bool:
    """Whether what happens is to be told."""
    return _LEVELS[-1] == "verbose"


def note(line: str) -> None:
    """Say something on standard error that is no warning, unless it is to be quiet."""
    if not is_quiet():
        typer.echo(visible(line), err=True)


def progress_bar(*given: Any, **named: Any) -> Any:
    """A bar of tqdm on standard error, on a terminal only; none where it is to be quiet."""
    from tqdm import tqdm

    usual: dict[str, Any] = {"file": sys.stderr, "disable": is_quiet() or None}
    return tqdm(*given, **usual | named)


def asked_for(argv: Sequence[str]) -> Level:
    """The level that a command line asks for; `--verbose` where it asks for both."""
    words = [word for word in argv if word.startswith("-")]
    if any(word in VERBOSE for word in words):
        return "verbose"
    return "quiet" if any(word in QUIET for word in words) else "usual"


@contextmanager
def saying(level: Level) -> Iterator[None]:
    """Let commands say as much as a level has, until the block ends."""
    _LEVELS.append(level)
    try:
        if level == "verbose":
            with _telling():
                yield
        else:
            yield
    finally:
        _LEVELS.pop()


@contextmanager
def _telling() -> Iterator[None]:
    """Tell what happens until the block ends, each line with the seconds since its beginning."""
    python = ".".join(map(str, sys.version_info[:3]))
    begun, used = time.perf_counter(), time.process_time()

    def tell(line: str) -> None:
        typer.echo(f"[{time.perf_counter() - begun:.2f} s] {visible(line)}", err=True)

    tell(f"statetrack {__version__}, Python {python}")
    files = _Files(tell)
    _WATCHING.append(files)
    _start_watching()
    try:
        yield
    finally:
        _WATCHING.remove(files)
        files.end()
        found = [(name, shown) for name, shown in LIBRARIES.items() if name in sys.modules]
        if found:
            tell(", ".join(f"{shown} {metadata.version(name)}" for name, shown in found))
        tell(f"CPU time {time.process_time() - used:.2f} s{_memory()}")


def _memory() -> str:
    """What memory the process took at most; empty where the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows has none
        return ""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    unit = 2**20 if sys.platform == "darwin" else 2**10  # bytes there, kibibytes elsewhere
    return f", memory at most {peak / unit:,.0f} MiB"


class _Files:
    """The user's files that are opened; each is told once as read, and once as written."""

    def __init__(self, tell: Any) -> None:
        self._tell = tell
        self._told: set[tuple[str, str]] = set()
        self._writing: dict[str, None] = {}

    def opened(self, path: str, writes: bool) -> None:
        """A file is opened; one that is written is told when it is complete."""
        if writes:
            self._writing[path] = None
        else:
            self._say("read", path)

    def renamed(self, path: str, to: str) -> None:
        """A file gets its name: files of runs are written beside their place."""
        if os.path.isdir(path):  # a folder that is complete only now
            for folder, _, files in os.walk(path):
                for file in sorted(files):
                    inside = os.path.join(folder, file)
                    self._writing.pop(inside, None)
                    self._say("wrote", os.path.join(to, os.path.relpath(inside, path)))
        elif path in self._writing:
            del self._writing[path]
            if any(part.startswith(".") for part in Path(to).parts if part != ".."):
                self._writing[to] = None  # in a folder that is not complete
            else:
                self._say("wrote", to)

    def end(self) -> None:
        """Tell what was written without a change of name."""
        for path in self._writing:
            if os.path.exists(path):
                self._say("wrote", path)

    def _say(self, did: str, path: str) -> None:
        if (did, path) not in self._told and not _is_of_system(path):
            self._told.add((did, path))
            self._tell(f"{did} {path}")


_WATCHING: list[_Files] = []


@cache
def _start_watching() -> None:
    """Let Python call `_watch`, once: it cannot be stopped again."""
    sys.addaudithook(_watch)


def _watch(event: str, given: tuple[Any, ...]) -> None:
    """Called by Python at every event of `sys.audit`."""
    if not _WATCHING or event not in ("open", "os.rename"):
        return
    names = [os.fsdecode(each) for each in given[:2] if isinstance(each, str | bytes | os.PathLike)]
    if event == "os.rename" and len(names) == 2:
        _WATCHING[-1].renamed(*names)
    elif event == "open" and isinstance(given[0], str | bytes | os.PathLike):
        flags = given[2] if isinstance(given[2], int) else 0
        _WATCHING[-1].opened(names[0], bool(flags & (os.O_WRONLY | os.O_RDWR)))


def _is_of_system(path: str) -> bool:
    """Whether a file belongs to Python, a library, this package's code or the system."""
    place = os.path.abspath(path)
    if place.startswith(_SYSTEM) or place.endswith((".pyc", ".lock")):
        return True
    if place.startswith(_SHIPPED):
        return True
    return os.path.isdir(place) or (place.startswith(_PACKAGE) and place.endswith(".py"))


_PACKAGE = f"{Path(__file__).parents[1]}{os.sep}"
_SHIPPED = f"{tasks_folder()}{os.sep}"


_SYSTEM = tuple(
    {
        *(f"{Path(each)}{os.sep}" for each in ("/proc", "/sys", "/dev", "/etc", "/usr")),
        *(f"{Path(each).resolve()}{os.sep}" for each in (sys.base_prefix, sys.prefix)),
        *(f"{each}{os.sep}" for each in (sys.base_prefix, sys.prefix)),
        *(f"{each}{os.sep}" for each in sysconfig.get_paths().values()),
    }
)
"""Where files are that are not the user's."""
