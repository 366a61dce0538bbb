"""Machine code of the loops: numba compiles them for the machine when they are first called.

Once in float32 and once in float64. The machine code is kept on disk, next to the package or where
numba finds a folder, and serves as long as no file of this package changes: numba itself would only
notice a change of the file that a loop stands in, and not one of a file whose functions it calls.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core import types
from numba.core.caching import FunctionCache, IndexDataCacheFile

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


def compiled(function: FunctionT) -> FunctionT:
    """The function, compiled when it is first called, and kept on disk."""
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}}
    result: Any = _of_general_types(numba.njit(**options)(function))
    result._cache = _MachineCode(function)
    return cast(FunctionT, result)


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


class _MachineCode(FunctionCache):
    """The machine code of a function on disk, of no use when a file of this package has changed."""

    def __init__(self, function: Callable[..., Any]) -> None:
        cast(Any, super()).__init__(function)
        self._cache_file = IndexDataCacheFile(
            cache_path=self.cache_path,
            filename_base=self._impl.filename_base,
            source_stamp=_fingerprint(),
        )


@cache
def _fingerprint() -> str:
    """The hash of this package's files."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def intrinsic(function: FunctionT) -> Any:
    """A function whose code is written in LLVM's instructions."""
    return numba.extending.intrinsic(function)
