"""Machine code of the loops: numba compiles them for the machine when they are first called.

Once in float32 and once in float64, which takes seconds. The machine code is kept on disk, next to
the package or where numba finds a folder that can be written, and serves as long as no file of this
package changes: numba itself would only notice a change of the file that a loop stands in, and not
one of a file whose functions it calls. Processes that need the same loop at once may each compile
it; they write and read what is kept one after the other, since two that write at once would give
one name to code for different types.
"""

from __future__ import annotations

import gc
import hashlib
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from pathlib import Path
from typing import Any, TypeVar, cast

import filelock
import numba
import torch
from numba.core import types
from numba.core.caching import FunctionCache, IndexDataCacheFile
from torch import Tensor

from statetrack.ops.loops.memory import Address

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

_LOG = logging.getLogger("statetrack")
_LONGEST_WAIT = 10.0  # seconds for another process that reads or writes, which takes milliseconds


def loop(function: Callable[..., None]) -> Callable[..., None]:
    """The function, called from Python with tensors, and compiled for their type at first.

    Tensors are contiguous, all of one type but those of whole numbers (int64), and None stands for
    one that there is not; the other arguments are numbers, and tuples of whole numbers.
    """
    dispatcher = _compiled(function, from_python=True)
    entries: dict[torch.dtype, Callable[..., None]] = {}

    @wraps(function)
    def called(*given: Any) -> None:
        kinds = {each.dtype for each in given if isinstance(each, Tensor)} - {torch.int64}
        assert len(kinds) == 1, f"tensors of one type, not {kinds}"
        (dtype,) = kinds
        if dtype not in entries:
            with _no_garbage_collected():
                entries[dtype] = dispatcher.compile(tuple(_type(each, dtype) for each in given))
        entries[dtype](*[_in_c(each) for each in given])

    return called


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


def _in_c(given: Any) -> Any:
    """The address of a tensor, 0 of none, and any other argument."""
    if isinstance(given, Tensor):
        return given.data_ptr()
    return 0 if given is None else given


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
        result._cache = _MachineCode(function)
    except RuntimeError as problem:  # numba found no folder that can be written
        _LOG.debug("compiled loops are not kept: %s", problem)
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
        """What is on disk for types of arguments; None where it is still to be compiled."""
        with self._alone():
            found = cast(Any, super()).load_overload(sig, target_context)
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


@cache
def _announce() -> None:
    """Say, once in a process, why its first step takes long."""
    once = {"once": True}  # for processes that work together, of which one says it
    _LOG.info("compiling loops for this machine, once: 5 to 20 seconds", extra=once)


@cache
def _fingerprint() -> str:
    """The hash of this package's files."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
