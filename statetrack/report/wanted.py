"""A report as it is asked for: what of it, and in which format."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from statetrack.errors import SettingsError, nearest_or_known
from statetrack.report.entries import Also, Gathered, Measure, Over
from statetrack.report.html import page
from statetrack.report.html.fragment import table_html
from statetrack.report.matrix import ALSO, OF_SELECTED, matrix_of
from statetrack.report.plain_values import COLUMNS, MAIN, chosen_columns, long_form, to_json
from statetrack.report.table import FORMATS, Document, Line, Table
from statetrack.report.verdicts import legend, summary, verdict_table
from statetrack.sweep import Of


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What of a report is wanted, and how it is drawn; None is the default.

    `long` asks for one line for each run and length in place of a table, `best` for the best of
    each task in bold, `published` for each published number with its verdict, `transpose` for tasks
    as rows, `also` for columns beside the numbers (by default those that a terminal has
    room for). Raises `SettingsError` for what a format has no place for.
    """

    form: str = "rich"
    measure: Measure | None = None
    of: Of | None = None
    over: Over | None = None
    length: int | Sequence[int] | None = None
    long: bool = False
    columns: str | None = None
    best: bool = False
    caption: str | None = None
    label: str | None = None
    published: bool = False
    transpose: bool = False
    also: Sequence[Also] | None = None

    def __post_init__(self) -> None:
        holds = FORMATS[self.form].holds
        complete = holds != "tables"
        refused = {
            "measure": complete and self.measure is not None,
            "of": complete and self.of is not None,
            "over": complete and self.over is not None,
            "best": complete and self.best,
            "length": holds == "everything" and self.length is not None,
            "columns": holds == "everything" and self.columns is not None,
            "published": self.published and (complete or self.long),
            "transpose": self.transpose and (complete or self.long),
            "also": bool(self.also) and (complete or self.long),
            "caption": "caption" not in FORMATS[self.form].options and self.caption is not None,
            "label": "label" not in FORMATS[self.form].options and self.label is not None,
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
        if self.transpose and self.also:
            raise SettingsError("--also: has no place where tasks are rows: leave out --transpose")
        for name in self.also or ():
            if name not in ALSO:
                raise SettingsError(f"--also: '{name}'.{nearest_or_known(name, ALSO)}")
        if self.label is not None and not re.fullmatch(r"[\w:.-]+", self.label, re.ASCII):
            raise SettingsError(
                f"--label {self.label}: only letters, digits and `:._-` are allowed"
            )
        if self.columns is not None:
            chosen_columns(self.columns)

    @property
    def lengths(self) -> tuple[int, ...]:
        """The lengths that are asked for, rising; none: those of the report."""
        if self.length is None:
            return ()
        return (self.length,) if isinstance(self.length, int) else tuple(sorted({*self.length}))

    def of_report(self, report: Gathered) -> str | bytes:
        """The report as the content of a file."""
        return FORMATS[self.form].draw(self.document(report))

    def document(self, report: Gathered) -> Document:
        """The report, for any format."""
        given = {"caption": self.caption, "label": self.label}
        return Document(
            title=report.title,
            parts=lambda: self._parts(report),
            rows=lambda: self._rows(report, COLUMNS),
            json=lambda: to_json(report),
            page=lambda: page(report),
            options={name: text for name, text in given.items() if text is not None},
        )

    def _parts(self, report: Gathered) -> Sequence[Table | str]:
        """What a reader is shown: one table, and every published number where that is wanted."""
        if self.long:
            return [self._long(report)]
        table = matrix_of(
            report,
            measure=self.measure,
            of=self.of,
            over=self.over or "all",
            lengths=self.lengths,
            best=self.best,
            transpose=self.transpose,
            also=self.also,
            fitted=self.form == "rich",
        )
        if self.form == "latex" and self.also is None:
            told = f"--also {','.join(ALSO)}: columns for these, or some of them"
            table = replace(table, notes=(*table.notes, told))
        if not self.published:
            return [table]
        if not (compared := report.compared):
            raise SettingsError(
                f"--published: '{report.title}' has no published numbers to compare with"
            )
        verdicts = verdict_table(compared)
        if self.form == "rich":
            return [table, verdicts, *legend(compared)]
        said = (*legend(compared), f"In all: {summary(compared)}")
        return [table, replace(verdicts, title=""), *(f"{line}." for line in said)]

    def _rows(self, report: Gathered, usual: tuple[str, ...], **look: Any) -> Table:
        columns = usual if self.columns is None else chosen_columns(self.columns)
        table = long_form(report.entries, self.lengths, columns, **look)
        for length in self.lengths:
            if not any(length in entry.lengths for entry in report.entries):
                raise SettingsError(f"--length {length}: no run was evaluated there")
        return table

    def _long(self, report: Gathered) -> Table:
        """One line for each run and length; columns that do not fit are named below.

        Of chosen columns, those that do not fit stand in a table below.
        """
        table = self._rows(
            report,
            MAIN,
            look="framed",
            more="--columns chooses, --format csv has all",
            in_blocks=self.columns is not None,
        )
        numbers = [
            any(isinstance(row[place], int | float) for row in map(_cells, table.rows))
            for place in range(len(table.columns))
        ]
        columns = [
            replace(
                column,
                kind="number"
                if is_number
                else "name"
                if place < 2 and self.columns is None
                else "text",
            )
            for place, (column, is_number) in enumerate(zip(table.columns, numbers, strict=True))
        ]
        return replace(table, columns=columns)


def _cells(row: Line | Sequence[Any]) -> Sequence[Any]:
    return row.cells if isinstance(row, Line) else row


@dataclass(frozen=True, kw_only=True, repr=False)
class Report(Gathered):
    """The entries of a report, and how their table is read.

    `row_names` and `column_names` are in the order of the table; `length` is the one whose
    accuracies it shows (0: nothing was evaluated), `lengths` all where there are several, and
    `measure` what of them. `suite` is the name of
    the suite, if it is one. An entry whose settings cannot be read has no place in the table: its
    row and column are empty. `training` says how the runs were trained, in lines;
    `departures` how training and testing differ from those of `reference`, and `differences` the
    settings in which they do, with both values. `command` is the one that makes the report.
    """

    def with_rows(self, names: Sequence[str]) -> Report:
        """The report of some rows alone, in this order."""
        kept = tuple(entry for entry in self.entries if entry.row in names)
        return replace(self, row_names=tuple(names), entries=kept)

    def __repr__(self) -> str:
        """The table, as it is printed in a width of 80."""
        return str(Wanted().of_report(self))

    def _repr_html_(self) -> str:
        """The table for a notebook."""
        return table_html(matrix_of(self))

    def to_markdown(self, **wanted: Any) -> str:
        """The table as Markdown; `wanted` are the fields of `statetrack.report.Wanted`."""
        return str(Wanted(form="markdown", **wanted).of_report(self))

    def to_latex(self, **wanted: Any) -> str:
        """The table as LaTeX; `wanted` likewise."""
        return str(Wanted(form="latex", **wanted).of_report(self))

    def to_dicts(self) -> list[dict[str, Any]]:
        """One dictionary for each run and length, with the columns of the CSV: for a data frame."""
        table = long_form(self.entries)
        return [dict(zip(table.names, row, strict=True)) for row in table.values()]
