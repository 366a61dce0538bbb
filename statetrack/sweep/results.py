"""What is kept of a suite's cell, and shown in its table; torch is not imported here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from statetrack.runs.rows import EvaluationRow, read_row


@dataclass(frozen=True)
class CellResult:
    """What is shown of a cell: the content of cell.json.

    `rows` are those of every replica at the suite's length, `curves` the same at `curve_lengths`
    too; `success` is the share of replicas with nothing wrong, `horizon` the selected one's.
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

        Raises `RunError`, which `where` opens, where they are none.
        """
        rows = {
            name: [
                read_row(EvaluationRow, row, f"{where}, {name}") for row in content.get(name, ())
            ]
            for name in ("rows", "curves")
        }
        selected = read_row(EvaluationRow, content.get("selected", {}), f"{where}, selected")
        return read_row(cls, {**content, **rows, "selected": selected}, where)
