r"""A report as LaTeX: a table with the rules of the package booktabs.

It needs `\usepackage{booktabs}` and text in UTF-8, and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from statetrack.markup import latex
from statetrack.report.long_form import MAIN, LongRow, as_text, is_number
from statetrack.report.matrix import Cell, Matrix
from statetrack.text import visible


def matrix_latex(
    matrix: Matrix, *, bold: bool = False, caption: str | None = None, label: str | None = None
) -> str:
    r"""The table as an environment `table`; with `bold`, the best of each column stands out.

    `caption` replaces what the table says of itself, and is escaped like all other text. Notes are
    comments, so that nothing of them is printed by mistake.
    """
    floors = [["floor", *map(latex_text, matrix.floors)]] if matrix.floors else []
    rows = [
        [latex_text(name), *(_cell(cell, bold) for cell in cells)]
        for name, cells in zip(matrix.row_names, matrix.cells, strict=True)
    ]
    said = f"{matrix.title}: {matrix.caption}" if caption is None else caption
    return _table(
        ["", *map(latex_text, matrix.column_names)],
        [rows, floors],
        "l" + "r" * len(matrix.column_names),
        f"{said}.".replace("..", ".") if caption is None else said,
        label,
        matrix.notes,
    )


def long_latex(
    rows: Sequence[LongRow],
    columns: Sequence[str] = MAIN,
    *,
    caption: str | None = None,
    label: str | None = None,
) -> str:
    """One line for each run and length."""
    lines = [
        [_dash(latex_text(as_text(name, getattr(row, name)))) for name in columns] for row in rows
    ]
    places = "".join("r" if is_number(rows, name) else "l" for name in columns)
    return _table([latex_text(name) for name in columns], [lines], places, caption, label, ())


def latex_text(text: str) -> str:
    """A text of one line; two hyphens stay two, and are not made a dash."""
    return re.sub("-(?=-)", "-{}", latex(visible(text)))


def _cell(cell: Cell, bold: bool) -> str:
    text = latex_text(cell.text).replace("±", r"$\pm$").replace(r"\textgreater{}=", r"$\geq$")
    text = re.sub(r"^-(?=\d)", "$-$", _dash(text))
    text = rf"\textbf{{{text}}}" if bold and cell.best else text
    return rf"{text} {{\scriptsize {cell.right}}}" if cell.right else text


def _dash(text: str) -> str:
    """A dash where there is no number."""
    return "--" if text == "-" else text


def _table(
    head: Sequence[str],
    sections: Sequence[Sequence[Sequence[str]]],
    places: str,
    caption: str | None,
    label: str | None,
    notes: Sequence[str],
) -> str:
    lines = [r"% needs \usepackage{booktabs}"]
    lines += [f"% {visible(note)}" for note in notes]
    lines += [r"\begin{table}", r"\centering"]
    if caption is not None:
        lines.append(rf"\caption{{{latex_text(caption)}}}")
    if label is not None:
        lines.append(rf"\label{{{label}}}")
    lines += [rf"\begin{{tabular}}{{{places}}}", r"\toprule", _line(head)]
    for section in filter(None, sections):
        lines += [r"\midrule", *map(_line, section)]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"]) + "\n"


def _line(cells: Sequence[str]) -> str:
    # a cell that begins with a bracket would be read as an option of the line before it
    safe = [f"{{}}{cell}" if cell.startswith(("[", "*")) else cell for cell in cells]
    return " & ".join(safe) + r" \\"
