"""A report in the format that is asked for: for a terminal, a paper, or another program."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from rich.console import Group, RenderableType

from statetrack.errors import SettingsError
from statetrack.report.entries import Measure, Over, Report
from statetrack.report.files import csv_text, json_text, parquet_bytes
from statetrack.report.html import page
from statetrack.report.latex import long_latex, matrix_latex
from statetrack.report.long_form import COLUMNS, MAIN, LongRow, chosen_columns, long_rows
from statetrack.report.markdown import long_markdown, matrix_markdown
from statetrack.report.matrix import OF_SELECTED, Matrix, matrix_of
from statetrack.report.terminal import long_view, matrix_view
from statetrack.report.verdicts import legend, verdict_table, verdicts_markdown
from statetrack.sweep import Compared, Of

Format = Literal["rich", "markdown", "latex", "csv", "parquet", "json", "html"]

COMPLETE: tuple[Format, ...] = ("csv", "parquet", "json", "html")
"""The formats that hold every measure of every run, and not one table."""

WHOLE: tuple[Format, ...] = ("json", "html")
"""Those of them that have no columns or lengths to choose."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What of a report is wanted, and how it is drawn; None is the default.

    `long` asks for one line for each run and length in place of a table, `best` for the best of
    each task in bold, `published` for each published number with its verdict, `transpose` for tasks
    as rows. Raises `SettingsError` for what a format has no place for.
    """

    form: Format = "rich"
    measure: Measure | None = None
    of: Of | None = None
    over: Over | None = None
    length: int | None = None
    long: bool = False
    columns: str | None = None
    best: bool = False
    caption: str | None = None
    label: str | None = None
    published: bool = False
    transpose: bool = False

    def __post_init__(self) -> None:
        complete = self.form in COMPLETE
        refused = {
            "measure": complete and self.measure is not None,
            "of": complete and self.of is not None,
            "over": complete and self.over is not None,
            "best": complete and self.best,
            "length": self.form in WHOLE and self.length is not None,
            "columns": self.form in WHOLE and self.columns is not None,
            "published": self.published and (complete or self.long),
            "transpose": self.transpose and (complete or self.long),
            "caption": self.form != "latex" and self.caption is not None,
            "label": self.form != "latex" and self.label is not None,
        }
        if self.published and self.form == "latex":
            raise SettingsError("--published: --format latex has no place for it: markdown has")
        for name in (name for name, wrong in refused.items() if wrong):
            why = "it holds everything" if complete or self.long else "that is LaTeX's"
            raise SettingsError(f"--{name}: --format {self.form} has no place for it: {why}")
        if self.long and self.form == "html":
            raise SettingsError("--long: --format html has no place for it: it holds everything")
        if self.long and not complete:
            for name in ("measure", "of", "over", "best"):
                if getattr(self, name):
                    raise SettingsError(f"--{name}: --long has no place for it: it has them all")
        elif self.columns is not None and not complete:
            raise SettingsError("--columns: belongs to the long form: give --long too")
        if self.over is not None and self.measure in OF_SELECTED:
            raise SettingsError(f"--over: '{self.measure}' is of the selected replica")
        if self.label is not None and not re.fullmatch(r"[\w:.-]+", self.label, re.ASCII):
            raise SettingsError(
                f"--label {self.label}: only letters, digits and `:._-` are allowed"
            )
        if self.columns is not None:
            chosen_columns(self.columns)

    def of_report(self, report: Report) -> str | bytes:
        """The report as the content of a file; for a terminal see `view`."""
        match self.form:
            case "json":
                return json_text(report)
            case "csv":
                return csv_text(self._rows(report), self._columns(COLUMNS))
            case "parquet":
                return parquet_bytes(self._rows(report), self._columns(COLUMNS))
            case "html":
                return page(report)
            case "markdown" if self.long:
                return long_markdown(self._rows(report), self._columns(MAIN))
            case "markdown":
                table = matrix_markdown(self._matrix(report), bold=self.best)
                verdicts = verdicts_markdown(_compared(report)) if self.published else ""
                return "\n".join(filter(None, [table, verdicts]))
            case "latex":
                about = {"caption": self.caption, "label": self.label}
                if self.long:
                    return long_latex(self._rows(report), self._columns(MAIN), **about)
                return matrix_latex(self._matrix(report), bold=self.best, **about)
        raise AssertionError(f"{self.form} is drawn by `view`")

    def view(self, report: Report, width: int) -> RenderableType:
        """The report for a terminal of a width."""
        if self.long:
            columns = None if self.columns is None else chosen_columns(self.columns)
            return long_view(self._rows(report), columns)
        table = matrix_view(self._matrix(report), width, bold=self.best)
        compared = _compared(report) if self.published else []
        return Group(table, verdict_table(compared), *legend(compared)) if compared else table

    def _rows(self, report: Report) -> list[LongRow]:
        rows = long_rows(report, self.length)
        if self.length is not None and all(row.length is None for row in rows):
            raise SettingsError(f"--length {self.length}: no run was evaluated there")
        return rows

    def _columns(self, default: tuple[str, ...]) -> tuple[str, ...]:
        return default if self.columns is None else chosen_columns(self.columns)

    def _matrix(self, report: Report) -> Matrix:
        found = matrix_of(
            report,
            measure=self.measure,
            of=self.of,
            over=self.over or "all",
            length=self.length,
        )
        return found.transposed() if self.transpose else found


def _compared(report: Report) -> list[Compared]:
    """The published numbers of all runs."""
    return [each for entry in report.entries for each in entry.compared]
