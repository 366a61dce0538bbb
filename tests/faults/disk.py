"""Every change that a program makes in a folder, counted, and a fault at one of them.

What Python does is seen: files opened to be written, every write to them, `fsync`, renaming,
deleting, folders made and removed. What a library writes in C++ to a path of its own is not; for
that there is `files_no_longer_than`.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Literal
from unittest import mock

Kind = Literal["kill", "kill half-way", "full", "full half-way", "broken", "read-only", "signal"]

ERRORS = {
    "full": errno.ENOSPC,
    "full half-way": errno.ENOSPC,
    "broken": errno.EIO,
    "read-only": errno.EROFS,
}

PATHS_OF = {
    **dict.fromkeys(("mkdir", "rmdir", "unlink", "remove", "truncate"), 1),
    **dict.fromkeys(("rename", "replace", "link", "symlink"), 2),
}
"""The functions of `os` that change a path, and how many paths they take."""

DESCRIPTORS = ("write", "fsync", "ftruncate", "fdatasync")
"""The functions of `os` that change an open file."""

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


@dataclass(frozen=True)
class Fault:
    """What happens at a point, and for `signal` which is sent."""

    kind: Kind
    number: int = signal.SIGTERM

    def strike(self, half: Callable[[], object] | None) -> None:
        """Happen: raise, kill this process, or send it a signal and go on."""
        if self.kind == "signal":
            os.kill(os.getpid(), self.number)
            return
        if self.kind.endswith("half-way") and half is not None:
            half()
        if self.kind.startswith("kill"):
            os.kill(os.getpid(), signal.SIGKILL)
        code = ERRORS[self.kind]
        raise OSError(code, os.strerror(code))


@dataclass
class Faults(AbstractContextManager["Faults"]):
    """Counts the changes in a folder; the fault strikes at point number `at`, counted from 0.

    An error strikes at that point and at all later ones that write, as a disk stays full, unless
    `once`. Deleting always works: a full disk does not prevent it.
    """

    folder: Path
    fault: Fault | None = None
    at: int = -1
    once: bool = False
    points: list[str] = field(default_factory=list)
    _stack: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Faults:
        self.folder = self.folder.absolute()
        replace = mock.patch.object
        for name, num_paths in PATHS_OF.items():
            call = self._of_paths(name, getattr(os, name), num_paths)
            self._stack.enter_context(replace(os, name, call))
        for name in DESCRIPTORS:
            call = self._of_descriptor(name, getattr(os, name))
            self._stack.enter_context(replace(os, name, call))
        self._stack.enter_context(replace(os, "open", self._os_open(os.open)))
        for module in (io, builtins):
            self._stack.enter_context(replace(module, "open", self._open(io.open)))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def pass_point(self, what: str, path: Any, half: Callable[[], object] | None = None) -> None:
        """Count a point in the folder, before its change is made."""
        text = os.fsdecode(path)
        if not Path(os.path.abspath(text)).is_relative_to(self.folder):
            return
        number = len(self.points)
        self.points.append(f"{what} {os.path.relpath(text, self.folder)}")
        if self.fault is None or number < self.at:
            return
        lasting = self.fault.kind in ERRORS and not self.once
        if number == self.at or (lasting and not what.startswith(("unlink", "remove", "rmdir"))):
            self.fault.strike(half if number == self.at else None)

    def _of_paths(self, name: str, real: Callable[..., Any], num_paths: int) -> Callable[..., Any]:
        def changed(*arguments: Any, **named: Any) -> Any:
            if named.get("dir_fd") is None:
                self.pass_point(name, arguments[num_paths - 1])
            return real(*arguments, **named)

        return changed

    def _of_descriptor(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def changed(descriptor: int, *arguments: Any) -> Any:
            path = _path_of(descriptor)
            if path is not None:
                half = None
                if name == "write":
                    part = bytes(arguments[0])[: len(arguments[0]) // 2]
                    half = lambda: real(descriptor, part)  # noqa: E731
                self.pass_point(name, path, half)
            return real(descriptor, *arguments)

        return changed

    def _os_open(self, real: Callable[..., int]) -> Callable[..., int]:
        def opened(path: Any, flags: int, *arguments: Any, **named: Any) -> int:
            if flags & WRITING and not isinstance(path, int) and named.get("dir_fd") is None:
                self.pass_point("open", path)
            return real(path, flags, *arguments, **named)

        return opened

    def _open(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def opened(file: Any, mode: str = "r", *arguments: Any, **named: Any) -> Any:
            if isinstance(file, int) or not set(mode) & set("wax+"):
                return real(file, mode, *arguments, **named)
            self.pass_point("open", file)
            plain = mode.replace("b", "").replace("t", "")
            raw = _Watched(self, file, plain, named.pop("opener", None))
            if "b" in mode and 0 in (*arguments, named.get("buffering")):
                return raw
            buffered = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
            if "b" in mode:
                return buffered
            keys = ("encoding", "errors", "newline")
            given = dict(zip(("buffering", *keys), arguments, strict=False)) | named
            return io.TextIOWrapper(buffered, **{key: given.get(key) for key in keys})

        return opened


class _Watched(io.FileIO):
    """A file, of which every write is a point."""

    def __init__(self, faults: Faults, path: Any, mode: str, opener: Any) -> None:
        super().__init__(path, mode, opener=opener)
        self._faults = faults

    def write(self, content: Any) -> int:
        """Write, unless the fault strikes; half of the content where it strikes half-way."""
        part = bytes(content)[: len(content) // 2]
        real = super().write
        self._faults.pass_point("write", self.name, lambda: real(part))
        return real(content)

    def truncate(self, size: int | None = None) -> int:
        """Cut the file off, unless the fault strikes."""
        self._faults.pass_point("truncate", self.name)
        return super().truncate(size)


def _path_of(descriptor: int) -> str | None:
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return None


@contextmanager
def files_no_longer_than(num_bytes: int) -> Iterator[None]:
    """The system cuts every write off at this size, of libraries in C++ too, as a full disk does.

    Python ignores the signal that comes with it, but a C++ library that was imported since may
    have put a handler of its own in its place.
    """
    handled = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handled)
