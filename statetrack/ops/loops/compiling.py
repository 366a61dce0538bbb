"""Machine code of the loops: numba compiles them for the machine when they are first called.

Once in float32 and once in float64, which takes seconds. The machine code is kept in the user's
cache, or where `NUMBA_CACHE_DIR` says, in a folder for these very files and this version of numba:
so it serves every environment and checkout that has the same, and no other. Processes that need the
same loop at once may each compile it; they write and read what is kept one after the other, since
two that write at once would give one name to code for different types.
"""

from __future__ import annotations

import gc
import hashlib
import logging
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, wraps
from pathlib import Path
from typing import Any, TypeVar, cast

import filelock
import numba
import torch
from numba.core import types
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from numba.core.runtime.nrt import rtsys
from numba.misc.appdirs import AppDirs
from torch import Tensor

from statetrack.ops.loops.memory import Address

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

_LOG = logging.getLogger("statetrack")
_FOLDERS = 8  # for the loops of so many versions, of at most 15 MB each
_LONGEST_WAIT = 10.0  # seconds for another process that reads or writes, which takes milliseconds


def loop(function: Callable[..., None]) -> Callable[..., None]:
    """The function, called from Python with tensors, and compiled for their type at first.

    Tensors are contiguous, all of one type but those of whole numbers (int64), and None stands for
    one that there is not; the other arguments are numbers, and tuples of whole numbers.
    """
    dispatcher = _compiled(function, from_python=True)
    entries: dict[tuple[torch.dtype, ...], Callable[..., None]] = {}

    @wraps(function)
    def called(*given: Any) -> None:
        kinds = tuple([each.dtype for each in given if isinstance(each, Tensor)])
        entry = entries.get(kinds)
        if entry is None:
            entry = entries[kinds] = _compiled_for(dispatcher, given)
        entry(
            *[
                each.data_ptr() if isinstance(each, Tensor) else 0 if each is None else each
                for each in given
            ]
        )

    return called


def _compiled_for(dispatcher: Any, given: Sequence[Any]) -> Callable[..., None]:
    """The machine code for the types of these arguments, whose tensors have one but whole numbers.

    What there is for them already is not compiled anew.
    """
    kinds = {each.dtype for each in given if isinstance(each, Tensor)} - {torch.int64}
    assert len(kinds) == 1, f"tensors of one type, not {kinds}"
    (dtype,) = kinds
    with _no_garbage_collected():
        code: Callable[..., None] = dispatcher.compile(tuple(_type(each, dtype) for each in given))
    return code


def part(function: FunctionT) -> FunctionT:
    """A function that loops call: addresses of numbers (`Array`), numbers and tuples of both."""
    return cast(FunctionT, _compiled(function, from_python=False))


@contextmanager
def _no_garbage_collected() -> Iterator[None]:
    """Numba makes many objects and no garbage to speak of: to search it is a tenth of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _type(given: Any, dtype: torch.dtype) -> Any:
    """What a loop gets for what it is given."""
    if given is None or isinstance(given, Tensor):
        whole = given is not None and given.dtype == torch.int64
        return Address(types.int64 if whole else _TYPES[dtype])
    if isinstance(given, tuple):
        return types.UniTuple(types.int64, len(given))
    return _TYPES[type(given)]


_TYPES = {
    torch.float32: types.float32,
    torch.float64: types.float64,
    bool: types.boolean,
    int: types.int64,
    float: types.float64,
}


def _compiled(function: Callable[..., Any], *, from_python: bool) -> Any:
    """The function, kept on disk where one can write."""
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}}
    options |= {"no_cpython_wrapper": not from_python, "no_cfunc_wrapper": True}
    result: Any = _of_general_types(numba.njit(**options)(function))
    try:
        result._cache = cast(Any, _MachineCode)(function)
    except RuntimeError:  # there is no folder that can be written
        _LOG.debug("%s is not kept when it is compiled", function.__name__)
    return result


def _of_general_types(dispatcher: Any) -> Any:
    """A loop that others call with any whole number by the same code.

    Numba would compile it anew for each number that a call writes down, which takes as long again.
    """
    known = dispatcher.get_call_template

    def general(kind: Any) -> Any:
        if isinstance(kind, types.BaseTuple):
            parts = cast(Any, kind).types
            return types.BaseTuple.from_types([general(part) for part in parts])
        return types.unliteral(kind)

    def of_general_types(args: Any, kws: Any) -> Any:
        return known([general(each) for each in args], {key: general(kws[key]) for key in kws})

    dispatcher.get_call_template = of_general_types
    return dispatcher


# --- on disk ---


class _Folder(_CacheLocator):
    """Where machine code is kept."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> _Folder | None:
        """The folder of these very loops in the user's cache; None if it cannot be written."""
        told = cast(Any, numba).config.CACHE_DIR
        own = AppDirs("statetrack", appauthor=False).user_cache_dir
        cache = Path(told, "statetrack") if told else Path(own)
        path = cache / "loops" / _fingerprint()[:16]
        is_new = not path.exists()
        try:
            cast(Any, cls(path)).ensure_cache_path()  # the folder's time becomes that of this use
            if is_new:
                _delete_long_unused(path.parent)
        except OSError as problem:
            _LOG.debug("compiled loops are not kept in %s: %s", path, problem)
            return None
        return cls(path)

    def get_cache_path(self) -> str:
        """The folder's path."""
        return str(self._path)

    def get_source_stamp(self) -> str:
        """What the machine code in it is of."""
        return _fingerprint()

    def get_disambiguator(self) -> str:
        """The same for all: functions of one name are in files of other names."""
        return "loop"


class _InFolder(CompileResultCacheImpl):
    _locator_classes = [cast(Any, _Folder)]


class _MachineCode(FunctionCache):
    """The machine code of a function on disk, of no use when a file of this package has changed."""

    _impl_class = _InFolder

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What is on disk for types of arguments; None where it is still to be compiled.

        Not by numba's own function of that name, which imports all that code could be made of: of
        what is compiled, all that is still needed is the memory that it asks for.
        """
        rtsys.initialize(target_context)
        reading: Any = self
        with self._alone(), reading._guard_against_spurious_io_errors():
            found = reading._load_overload(sig, target_context)
        if found is None:
            _announce()
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled, unless the disk refuses it."""
        try:
            with self._alone():
                cast(Any, super()).save_overload(sig, data)
        except OSError as problem:
            _LOG.debug("a compiled loop is not kept: %s", problem)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """While no other process reads or writes in this folder, if it can be locked."""
        lock = filelock.FileLock(Path(self.cache_path) / "statetrack-loops.lock")
        try:
            lock.acquire(timeout=_LONGEST_WAIT)
        except (OSError, NotImplementedError, filelock.Timeout) as problem:
            _LOG.debug("the folder of compiled loops cannot be locked: %s", problem)
        try:
            yield
        finally:
            lock.release()


def _delete_long_unused(folder: Path) -> None:
    """Delete the folders of other loops but those used last."""
    by_use = sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in by_use[_FOLDERS:]:
        shutil.rmtree(path, ignore_errors=True)


@cache
def _announce() -> None:
    """Say, once in a process, why its first step takes long."""
    once = {"once": True}  # for processes that work together, of which one says it
    _LOG.info("compiling loops for this machine, once: 5 to 20 seconds", extra=once)


@cache
def _fingerprint() -> str:
    """The hash of this package's files and of the version that compiles them."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    parts = [numba.__version__.encode(), *(file.read_bytes() for file in files)]
    return hashlib.sha256(b"".join(parts)).hexdigest()
