"""An iterator whose work is done as it is iterated, and that says so where it is dropped unused."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from typing import TypeVar

from statetrack.errors import StatetrackWarning

T = TypeVar("T")


class Pending(Iterator[T]):
    """Items of a generator; a `StatetrackWarning` where none was asked for when it is dropped."""

    def __init__(self, items: Iterator[T], unused: str) -> None:
        self._items = items
        self._unused = unused

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        self._unused = ""
        return next(self._items)

    def close(self) -> None:
        """End the work, as a generator's `close` does."""
        self._unused = ""
        if (close := getattr(self._items, "close", None)) is not None:
            close()

    def __del__(self) -> None:
        if self._unused and not sys.is_finalizing():  # modules may be gone at the program's end
            warnings.warn(self._unused, StatetrackWarning, stacklevel=2)
