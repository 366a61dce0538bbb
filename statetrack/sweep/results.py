"""The result of a suite's cell, which the table shows; torch is not imported here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from statetrack.runs.rows import EvaluationRow, read_row


@dataclass(frozen=True)
class CellResult:
    """The result of a cell: the content of cell.json.

    `rows` are those of every replica at the suite's length, `curves` also those at
    `curve_lengths`; `success` is the fraction of replicas with every answer right, `horizon` the
    horizon of the selected one.
    """

    row: str
    column: str
    run: str
    rows: tuple[EvaluationRow, ...]
    curves: tuple[EvaluationRow, ...]
    selected: EvaluationRow
    success: float
    horizon: int
    steps: int
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """The result as plain values."""
        return vars(self) | {
            "rows": [row.to_json() for row in self.rows],
            "curves": [row.to_json() for row in self.curves],
            "selected": self.selected.to_json(),
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any], where: str) -> CellResult:
        """The result of plain values.

        Raises `RunError`, whose message begins with `where`, for values of another form.
        """
        rows = {
            name: [
                read_row(EvaluationRow, row, f"{where}, {name}") for row in content.get(name, ())
            ]
            for name in ("rows", "curves")
        }
        selected = read_row(EvaluationRow, content.get("selected", {}), f"{where}, selected")
        return read_row(cls, {**content, **rows, "selected": selected}, where)
