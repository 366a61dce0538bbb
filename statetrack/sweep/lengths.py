"""Lengths in a suite's file: numbers, or the ranges that the command line takes."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator


def _written_out(value: Any) -> Any:
    """Lengths with the ranges among them written out; numbers alone are read without NumPy."""
    if isinstance(value, str) or (
        isinstance(value, list | tuple) and any(isinstance(each, str) for each in value)
    ):
        from statetrack.spec import written_out

        return written_out(value)
    return value


Lengths = Annotated[tuple[int, ...], BeforeValidator(_written_out)]
"""Lengths, as numbers or as the ranges that the command line takes."""
