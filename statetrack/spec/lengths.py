"""The type of a setting that holds lengths; NumPy is not imported, as lists of suites need none."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator

from statetrack.errors import SettingsError
from statetrack.sources import parse_lengths


def _written_out(value: Any) -> Any:
    """A text, or the texts of a list, replaced by the lengths that they name; else the value."""
    if isinstance(value, str):
        return tuple(_named_by(value))
    if not isinstance(value, list | tuple):
        return value
    lengths: list[Any] = []
    for each in value:
        lengths += _named_by(each) if isinstance(each, str) else [each]
    return tuple(lengths)


def _named_by(text: str) -> list[int]:
    try:
        return parse_lengths([text])
    except SettingsError as wrong:  # as what pydantic puts the name of the setting before
        raise ValueError(wrong.args[0]) from None


Lengths = Annotated[tuple[int, ...], BeforeValidator(_written_out)]
"""Lengths, as numbers or as ranges: `[10, 50-200:50, 500-50000:x10]`."""
