r"""LaTeX: each table with the rules of the package booktabs.

It needs `\usepackage{booktabs}` and text in UTF-8, and nothing else. Paragraphs and notes are
comments, so that nothing of them is printed by mistake.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from statetrack.report.table import FORMATS, Column, Document, ReportFormat, Styled, Table
from statetrack.text import latex, visible


def latex_text(text: str) -> str:
    """A text of one line; two hyphens stay two, and are not made a dash."""
    return re.sub("-(?=-)", "-{}", latex(visible(text)))


def table_latex(table: Table, caption: str | None = None, label: str | None = None) -> str:
    r"""The table as an environment `table`; what is strong is bold.

    `caption` replaces what the table says of itself, and is escaped like all other text.
    """
    if caption is None and (said := [each for each in (table.title, table.caption) if each]):
        caption = f"{': '.join(said)}.".replace("..", ".").replace("\n", " ")
    lines = [r"% needs \usepackage{booktabs}"]
    lines += [f"% {visible(note)}" for note in table.notes]
    lines += [r"\begin{table}", r"\centering"]
    if caption is not None:
        lines.append(rf"\caption{{{latex_text(caption)}}}")
    if label is not None:
        lines.append(rf"\label{{{label}}}")
    places = "".join("r" if column.kind == "number" else "l" for column in table.columns)
    head = [latex_text(column.under or column.heading) for column in table.columns]
    lines += [rf"\begin{{tabular}}{{{places}}}", r"\toprule", *_common_headings(table)]
    lines += [_line(head), r"\midrule"]
    rows = table.lines
    for number, row in enumerate(rows, start=1):
        cells = [_cell(*each) for each in zip(table.columns, row.cells, strict=False)]
        lines.append(_line([*cells, *[""] * (len(head) - len(cells))]))
        lines += [r"\midrule"] * (row.ends and number < len(rows))
    if not rows:
        lines.pop()
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"]) + "\n"


def _common_headings(table: Table) -> list[str]:
    """A line with the headings over several columns, and the rules below them; or none."""
    groups = [
        (over, len(list(columns))) for over, columns in groupby(c.over for c in table.columns)
    ]
    if not any(over for over, _ in groups):
        return []
    cells, rules, place = list[str](), list[str](), 1
    for over, number in groups:
        if over:
            cells.append(rf"\multicolumn{{{number}}}{{c}}{{{latex_text(over)}}}")
            rules.append(rf"\cmidrule(lr){{{place}-{place + number - 1}}}")
        else:
            cells += [""] * number
        place += number
    return [_line(cells), "".join(rules)]


def _cell(column: Column, cell: Any) -> str:
    text = latex_text(" ".join(column.text(cell).split()))
    text = "--" if text == "-" else text
    text = text.replace("±", r"$\pm$").replace("≥", r"$\geq$").replace("≤", r"$\leq$")
    if column.kind == "number":
        text = re.sub(r"^-(?=\d)", "$-$", text.replace(r"\textgreater{}=", r"$\geq$"))
    if not isinstance(cell, Styled):
        return text
    text = rf"\textbf{{{text}}}" if cell.strong else text
    return rf"{text} {{\scriptsize {latex_text(cell.beside)}}}" if cell.beside else text


def _line(cells: Sequence[str]) -> str:
    # a cell that begins with a bracket would be read as an option of the line before it
    safe = [f"{{}}{cell}" if cell.startswith(("[", "*")) else cell for cell in cells]
    return " & ".join(safe) + r" \\"


def _draw(document: Document) -> str:
    given = document.options
    return "\n".join(
        table_latex(part, given.get("caption"), given.get("label"))
        if isinstance(part, Table)
        else f"% {visible(part)}\n"
        for part in document.parts()
    )


FORMATS.register("latex")(ReportFormat(".tex", _draw, options=("caption", "label")))
