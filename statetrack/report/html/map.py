"""The page of a map: every cell in a table that a script filters, in one file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from statetrack.report.html.rendering import own_text, rendered
from statetrack.report.learned import STANDINGS, LearnedMap, Standing


class Shaded(Protocol):
    """How cells of a standing look."""

    @property
    def colour(self) -> str:
        """Of a cell."""

    @property
    def ink(self) -> str:
        """Of what stands in it."""

    @property
    def hatch(self) -> str:
        """Empty where it has no lines."""


def map_page(
    found: LearnedMap, title: str, said: Sequence[str], shades: Mapping[Standing, Shaded]
) -> str:
    """The map as one HTML file, with what is said of it, and how each standing looks."""
    at = {(cell.row, cell.column): cell for cell in found.cells}
    families = {cell.row: cell.family for cell in found.cells}
    return rendered(
        "map.html",
        title=title,
        said=said,
        own_style=own_text("map.css"),
        script=own_text("map.js"),
        shades=shades,
        number_of={name: number for number, name in enumerate(shades)},
        standings=STANDINGS,
        counts=found.counts(),
        families=sorted(set(families.values())),
        tasks=found.columns,
        lines=[
            (row, families[row], [at.get((row, column)) for column in found.columns])
            for row in found.rows
        ],
    )
