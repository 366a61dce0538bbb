"""The description of a suite in the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from statetrack.catalogue import as_text
from statetrack.references import ids_in, references
from statetrack.report import FittedTable, drawing
from statetrack.runs import Experiment
from statetrack.spec import Lengths
from statetrack.sweep import Budget, Suite

MEASURES = {
    "accuracy": "accuracy of the selected replica",
    "scaled": "accuracy of the selected replica with chance at 0",
    "success": "share of replicas that are right on every test word",
}

MOST_LENGTHS = 12
"""The most lengths that are written out."""


def draw_suite(name: str, suite: Suite, file: Path, console: Console) -> None:
    """What a suite trains, tests and is compared with, and what each budget changes."""
    console.print(Text.assemble((name, "bold"), ("  suite", "dim")))
    console.print(Text(suite.title))
    console.print()
    console.print(drawing.facts(list(_facts(suite, file))))
    for heading, table in (
        ("rows", _named(suite, suite.models)),
        ("columns", _named(suite, suite.tasks)),
        ("budgets", _budgets(suite)),
        ("published", _published(suite)),
    ):
        if table.row_count:
            console.print()
            console.print(Text(heading, style="bold"))
            console.print(table)


def _facts(suite: Suite, file: Path) -> Iterator[tuple[str, Any]]:
    if suite.reference:
        yield "paper", suite.reference
        known = references()
        for paper in ids_in(suite.reference):
            if paper in known:
                yield "", f"{known[paper].title} ({known[paper].year})"
    if suite.departures:
        yield "otherwise than there", suite.departures
    yield "protocol", suite.protocol or "none: the models' own training"
    if suite.settings:
        yield "settings", _written(suite.settings)
    for axis, values in suite.axes.items():
        yield f"axis {axis}", ", ".join(map(as_text, values))
    points, replicas = _counts(suite)
    yield "points", f"{points:,}: {len(suite.rows):,} rows x {len(suite.columns):,} columns"
    yield "replicas", f"{replicas:,} in all, by seeds and learning rates"
    yield "table", f"{MEASURES[suite.measure]}, on {suite.samples:,} words of length {suite.length}"
    if suite.curve_lengths:
        yield "every replica also at", _lengths(suite.curve_lengths)
    if suite.horizon_lengths:
        far = _lengths(suite.horizon_lengths)
        yield "the selected one also at", f"{far}, on {suite.horizon_samples:,} words"
    yield "file", str(file)


def _counts(suite: Suite) -> tuple[int, int]:
    """The points of a suite, and their replicas."""
    found = [
        len(
            Experiment.from_values(
                {**suite.settings, **row.settings, **column},
                f"suite row '{name}'",
                protocol=suite.protocol,
                to_build=False,
            ).replicas
        )
        for name, row in suite.rows.items()
        for column in suite.columns.values()
    ]
    return len(found), sum(found)


def _named(suite: Suite, given: Mapping[str, str | dict[str, Any]]) -> FittedTable:
    """The rows or the columns: what each is, and its settings."""
    of_models = given is suite.models
    kind = "model" if of_models else "task"
    table = drawing.plain_table("name", kind, "settings")
    for name, content in given.items():
        own = {kind: content} if isinstance(content, str) else dict(content)
        table.add_row(Text(name), Text(str(own.pop(kind, ""))), Text(_written(own)))
    return table


def _budgets(suite: Suite) -> FittedTable:
    table = drawing.plain_table("budget", "changes", "which means")
    for name, budget in suite.budgets.items():
        table.add_row(name, Text("; ".join(_changes(budget))), Text(budget.says))
    return table


def _changes(budget: Budget) -> Iterator[str]:
    """What a budget changes, in words."""
    if budget.protocol is not None:
        yield f"protocol {budget.protocol}" if budget.protocol else "no protocol"
    if budget.settings:
        yield _written(budget.settings)
    alike: dict[str, list[str]] = {}
    for row, settings in budget.models.items():
        alike.setdefault(_written(settings), []).append(row)
    for settings_of_rows, rows in alike.items():
        yield f"{', '.join(rows)}: {settings_of_rows}"
    for name in ("length", "samples", "curve_lengths", "horizon_lengths", "horizon_samples"):
        value = getattr(budget, name)
        if value is not None:
            yield f"{name} {_lengths(value) if isinstance(value, tuple) else value}"


def _published(suite: Suite) -> FittedTable:
    """The tables of published numbers, with where and how they were read."""
    table = drawing.plain_table(
        "source",
        "paper",
        "read",
        "numbers",
        "measure",
        "at",
        right=("numbers",),
        left_out=("at", "measure", "read"),
    )
    if suite.published:
        numbers = sum(map(len, suite.published.values()))
        cells = (suite.published_as, suite.reference, suite.published_trust)
        table.add_row(*map(Text, cells), f"{numbers:,}", suite.measure, str(suite.length))
    for one in suite.tables:
        numbers = sum(map(len, one.values.values()))
        at = _lengths(one.lengths) if one.lengths else str(suite.length)
        cells = (one.source, one.reference or suite.reference, one.trust)
        measure = f"{one.measure}, {one.of}"
        table.add_row(*map(Text, cells), f"{numbers:,}", measure, at)
        for note in filter(None, (one.note, one.unlike and f"not comparable: {one.unlike}")):
            table.add_row("", Text(note, style="dim"))
    return table


def _written(settings: Mapping[str, Any]) -> str:
    """Settings as a suite file has them, on one line."""
    return ", ".join(
        f"{name} {'taken away' if value is None else as_text(value)}"
        for name, value in settings.items()
    )


def _lengths(lengths: Lengths) -> str:
    """A few lengths, or the first and last of many."""
    if len(lengths) <= MOST_LENGTHS:
        return ", ".join(f"{length:,}" for length in lengths)
    return f"{len(lengths)} lengths from {min(lengths):,} to {max(lengths):,}"
