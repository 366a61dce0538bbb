"""Machine code of the loops: numba compiles them for the machine when they are first called.

Once in float32 and once in float64, which takes seconds. The machine code is kept on disk, next to
the package or where numba finds a folder that can be written, and serves as long as no file of this
package changes: numba itself would only notice a change of the file that a loop stands in, and not
one of a file whose functions it calls. Processes that need the same loop wait for the one that
compiles it: numba's index of a loop's types would lose an entry that two write at once.
"""

from __future__ import annotations

import hashlib
import logging
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import filelock
import numba
from numba.core import event
from numba.core.caching import FunctionCache, IndexDataCacheFile

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

LONGEST_WAIT = 300.0
"""Seconds to wait for another process that compiles; after it this one does so too."""


def compiled(function: FunctionT) -> FunctionT:
    """The function, compiled when it is first called, and kept on disk where one can write."""
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}}
    result: Any = numba.njit(**options)(function)
    try:
        result._cache = _MachineCode(function)
    except RuntimeError as problem:  # no folder can be written
        logging.getLogger("statetrack").debug("compiled loops are not kept: %s", problem)
    return cast(FunctionT, result)


def intrinsic(function: FunctionT) -> Any:
    """A function whose code is written in LLVM's instructions."""
    return numba.extending.intrinsic(function)


# --- on disk ---


class _Turn:
    """The turn of this process to compile, from a function that is not on disk until it is."""

    def __init__(self) -> None:
        self.functions = 0  # that are being compiled, each inside the one before
        self.lock: filelock.BaseFileLock | None = None

    def begin(self, folder: str) -> bool:
        """Wait for the turn; whether another process may have compiled something meanwhile."""
        self.functions += 1
        if self.functions > 1 or self.lock is not None:
            return False
        lock = filelock.FileLock(Path(folder) / "statetrack-loops.lock")
        try:
            lock.acquire(timeout=LONGEST_WAIT)
        except (OSError, NotImplementedError, filelock.Timeout):
            return False
        self.lock = lock
        return True

    def end(self) -> None:
        """One function is compiled, or could not be."""
        self.functions = max(0, self.functions - 1)
        if self.functions == 0 and self.lock is not None:
            self.lock.release()
            self.lock = None


_TURN = _Turn()


class _MachineCode(FunctionCache):
    """The machine code of a function on disk, of no use when a file of this package has changed."""

    def __init__(self, function: Callable[..., Any]) -> None:
        cast(Any, super()).__init__(function)
        self._cache_file = IndexDataCacheFile(
            cache_path=self.cache_path,
            filename_base=self._impl.filename_base,
            source_stamp=_fingerprint(),
        )

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What is on disk for types of arguments; where there is nothing, the turn begins."""
        find: Callable[..., Any] = super().load_overload
        found = find(sig, target_context)
        if found is None and _TURN.begin(self.cache_path):
            found = find(sig, target_context)
            if found is not None:
                _TURN.end()
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled, unless the disk refuses it."""
        try:
            cast(Any, super()).save_overload(sig, data)
        except OSError as problem:
            logging.getLogger("statetrack").debug("a compiled loop is not kept: %s", problem)
        finally:
            _TURN.end()


@cache
def _fingerprint() -> str:
    """The hash of this package's files."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


class _Watching(event.Listener):
    """Says once that loops are being compiled, and ends a turn whose function cannot be."""

    said = False

    def on_start(self, event: Any) -> None:
        """Called before numba compiles a function."""
        if not self.said and _is_loop(event):
            self.said = True
            logging.getLogger("statetrack").info(
                "compiling loops for this machine, once (about 5 to 20 seconds)"
            )

    def on_end(self, event: Any) -> None:
        """Called after it."""
        failed = sys.exc_info()[0] is not None  # numba's own `is_failed` says the opposite
        if failed and isinstance(event.data["dispatcher"]._cache, _MachineCode):
            _TURN.end()


def _is_loop(event: Any) -> bool:
    module: str = event.data["dispatcher"].py_func.__module__
    return module.startswith(__name__.rpartition(".")[0])


event.register("numba:compile", _Watching())
