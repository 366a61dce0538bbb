"""Everything about every run as plain values: the long form, for CSV and Parquet, and JSON.

The long form has a row for each run and length, with everything about both; a run without scores
has one row, whose length is None. docs/file-formats.md says what each column is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property, partial
from typing import Any

from statetrack.errors import SettingsError, nearest_or_known
from statetrack.report.entries import Entry, Gathered, Statistics, horizon_of_entry, statistics_at
from statetrack.report.formats.json import json_lines
from statetrack.report.table import Column, Table
from statetrack.runs import EvaluationRow, Outcome, evidence_to_json
from statetrack.scoring import plain, rounded_down, rounded_up

FORMAT = 1
"""The version of the names in JSON, CSV and Parquet; raised when one changes meaning."""


@dataclass(frozen=True)
class _At:
    """An entry at one length; None: it was evaluated at none."""

    entry: Entry
    length: int | None

    @cached_property
    def score(self) -> EvaluationRow | None:
        """The selected replica's row."""
        rows = () if self.length is None else self.entry.at(self.length)
        return next((row for row in rows if row.selected), None)

    @cached_property
    def statistics(self) -> Statistics | None:
        """What its replicas reach there."""
        return None if self.length is None else statistics_at(self.entry, self.length)

    @cached_property
    def chosen(self) -> Outcome | None:
        """The outcome of the replica that validation selected."""
        replica = self.entry.selected
        return next((one for one in self.entry.outcomes if one.replica == replica), None)


def as_text(name: str, value: Any) -> str:
    """A value as a reader is shown it; accuracies are rounded down, and what is above them up."""
    if value is None:
        return "-"
    if isinstance(value, float):
        if name == "seconds":
            return f"{value:.1f}"
        if name == "selected_lr":
            return f"{value:g}"
        digits = 3 if name.endswith(("_low", "_high")) else 2
        above = name.endswith(("_high", "deviation"))
        return rounded_up(value, digits) if above else rounded_down(value, digits)
    return f"{value:,}" if isinstance(value, int) else " ".join(str(value).split())


def _field(path: str, at: _At) -> Any:
    """What belongs to a row, by the names that lead to it; None where one on the way is None."""
    found: Any = at
    for name in path.split("."):
        found = None if found is None else getattr(found, name)
    return found


def _column(name: str, holds: type, of: Callable[[_At], Any]) -> Column:
    return Column(name, of=of, write=partial(as_text, name), holds=holds)


def _columns(
    names: str, holds: type, thing: str, of: str | None = None, before: str = ""
) -> list[Column]:
    """A column for each name: the field of that name (or `of`) of what belongs to a row."""
    return [
        _column(before + name, holds, partial(_field, f"{thing}.{of or name}"))
        for name in names.split()
    ]


def _over_replicas(thing: str, before: str = "") -> list[Column]:
    """The columns over replicas; those that begin with `seeds_` are at the selected rate."""

    def end(place: int, at: _At) -> float | None:
        ends = _field(f"{thing}.success_interval", at)
        return None if ends is None else float(ends[place])

    return [
        *_columns("evaluated right", int, thing, before=before),
        *_columns("success", float, thing, before=before),
        _column(f"{before}success_low", float, partial(end, 0)),
        _column(f"{before}success_high", float, partial(end, 1)),
        *_columns("best median mean deviation least", float, thing, before=before),
    ]


def _worst_case(at: _At) -> int | None:
    sought = at.entry.bracket.worst_case
    return None if sought is None or sought.tested == 0 else at.entry.bracket.right_to


def _proven(at: _At) -> str | None:
    found = at.entry.bracket
    sought = found.exhaustive or found.certificate or found.proven_by
    return found.verdict if sought else None


LONG_FORM: tuple[Column, ...] = (
    *_columns("row column model task state", str, "entry"),
    _column("length", int, lambda at: at.length),
    *_columns("trained_to", int, "entry"),
    *_columns("words", int, "score", "sequences"),
    *_columns("accuracy", float, "score"),
    *_columns("accuracy_low", float, "score", "low"),
    *_columns("accuracy_high", float, "score", "high"),
    *_columns(
        "symbol_accuracy prefix_accuracy floor chance scaled scaled_to_floor", float, "score"
    ),
    *_columns("first_error nonfinite_from merging_horizon", int, "score"),
    *_columns("selected_replica", int, "entry", "selected"),
    *_columns("selected_seed", int, "chosen", "seed"),
    *_columns("selected_lr", float, "chosen", "lr"),
    *_columns("replicas diverged", int, "entry"),
    *_over_replicas("statistics.everyone"),
    *_columns("seeds", int, "statistics.seeds", "replicas"),
    *_columns("seeds_diverged", int, "statistics.seeds", "diverged"),
    *_over_replicas("statistics.seeds", "seeds_"),
    _column("horizon", int, lambda at: horizon_of_entry(at.entry)),
    _column("worst_case", int, _worst_case),
    *_columns("fails_at", int, "entry.bracket"),
    _column("proven", str, _proven),
    *_columns("proven_length", int, "entry.bracket", "proven"),
    *_columns("predicted", str, "entry.prediction", "answer"),
    *_columns("theorem", str, "entry.prediction"),
    *_columns("steps", int, "entry"),
    *_columns("seconds", float, "entry"),
    *_columns("words_trained", int, "entry", "words"),
    *_columns("parameters dimensions task_version", int, "entry"),
    *_columns("task_hash settings_hash version machine device started", str, "entry"),
    _column("run", str, lambda at: at.entry.run.as_posix()),
    *_columns("command", str, "entry"),
    _column("settings", str, lambda at: _json(at.entry.settings)),
    _column("axes", str, lambda at: _json(at.entry.axes)),
    _column("compared", str, lambda at: _json([one.to_json() for one in at.entry.compared])),
    _column("notes", str, lambda at: "; ".join(at.entry.notes)),
    *_columns("error", str, "entry"),
)
"""The columns of the long form, in their order."""

COLUMNS: tuple[str, ...] = tuple(column.name for column in LONG_FORM)
"""Their names."""

MAIN: tuple[str, ...] = (
    *("row", "column", "length", "words", "accuracy", "accuracy_low", "accuracy_high", "floor"),
    *("right", "replicas", "best", "median", "mean", "deviation", "horizon", "steps", "seconds"),
)
"""The columns that a reader is shown unless others are asked for; files have all."""


def _json(content: Any) -> str:
    return json.dumps(plain(content), ensure_ascii=False, default=str)


def long_form(
    entries: Iterable[Entry],
    lengths: Sequence[int] = (),
    columns: Sequence[str] = COLUMNS,
    **look: Any,
) -> Table:
    """Every run at every length it was evaluated at; with `lengths`, at these alone."""
    rows: list[_At] = []
    for entry in entries:
        those = [each for each in entry.lengths if not lengths or each in lengths]
        rows += [_At(entry, each) for each in those] or [_At(entry, None)]
    known = dict(zip(COLUMNS, LONG_FORM, strict=True))
    return Table.of([known[name] for name in columns], rows, **look)


def chosen_columns(text: str) -> tuple[str, ...]:
    """The columns that a text names, separated by commas.

    Raises `SettingsError` for a name that no column has, or that is given twice.
    """
    chosen = tuple(name.strip() for name in text.split(","))
    for name in chosen:
        if name not in COLUMNS:
            raise SettingsError(
                f"--columns: there is no column '{name}'.{nearest_or_known(name, COLUMNS)}"
            )
        if chosen.count(name) > 1:
            raise SettingsError(f"--columns: '{name}' is named twice")
    return chosen


def json_text(report: Gathered) -> str:
    """The report as one JSON object, letters of any script as they are."""
    return json_lines(to_json(report))


def to_json(report: Gathered) -> dict[str, Any]:
    """The report as plain values, which docs/file-formats.md names."""
    about = {each.name: getattr(report, each.name) for each in fields(report)}
    entries = [_entry_to_json(entry) for entry in about.pop("entries")]
    return {"format": FORMAT, **about, "entries": entries}


def _entry_to_json(entry: Entry) -> dict[str, Any]:
    """An entry as plain values: its fields, and what follows from them at each length."""
    bracket = entry.bracket
    content: dict[str, Any] = {field.name: getattr(entry, field.name) for field in fields(entry)}
    del content["every_row"]  # of which `horizon` and `bracket` say what is shown
    return content | {
        "run": entry.run.as_posix(),
        "settings": dict(entry.settings),
        "axes": dict(entry.axes),
        "outcomes": [asdict(one) for one in entry.outcomes],
        "rows": [row.to_json() | {"evaluation_seed": row.evaluation_seed} for row in entry.rows],
        "evidence": [evidence_to_json(each) for each in entry.evidence],
        "searched": dict(entry.searched),
        "prediction": None if entry.prediction is None else entry.prediction.to_json(),
        "judged": None
        if entry.judged is None
        else {name: getattr(entry.judged, name) for name in ("outcome", "reason", "advice")},
        "compared": [one.to_json() for one in entry.compared],
        "horizon": horizon_of_entry(entry),
        "bracket": {
            "proven": bracket.verdict,
            "proven_length": bracket.proven,
            "fails_at": bracket.fails_at,
            "right_to": bracket.right_to,
            "contradiction": bracket.contradiction,
        },
        "statistics": [_statistics_to_json(entry, length) for length in entry.lengths],
    }


OF_POPULATIONS = (
    *("replicas", "diverged", "evaluated", "right", "best", "median", "mean", "deviation"),
    *("least", "success", "success_interval"),
)
"""What JSON says of all replicas, and of the seeds at the selected learning rate."""


def _statistics_to_json(entry: Entry, length: int) -> dict[str, Any]:
    found = statistics_at(entry, length)
    return {
        "length": length,
        "lr": found.lr,
        "everyone": {name: getattr(found.everyone, name) for name in OF_POPULATIONS},
        "seeds": {name: getattr(found.seeds, name) for name in OF_POPULATIONS},
    }
