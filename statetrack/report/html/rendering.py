"""The page of a report: templates, style and script of this package, put into one file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from statetrack.references import ids_in
from statetrack.report.entries import Gathered
from statetrack.report.html import panels
from statetrack.report.html.places import MARKS, MEASURES, NOTABLE, TRUSTS, Place, records_of
from statetrack.report.matrix import WHAT
from statetrack.report.plain_values import COLUMNS, long_form
from statetrack.report.table import interval, share
from statetrack.report.verdicts import legend, measured_text, published_text
from statetrack.runs import DISAGREEMENTS, VERDICTS, EvaluationRow
from statetrack.scoring import plain
from statetrack.text import visible

POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)
"""What a browser may load for the page: nothing that is not in it."""

ADDRESSES = {"arXiv": "https://arxiv.org/abs/{}", "doi": "https://doi.org/{}"}
"""Where a paper of an id is found."""


def page(report: Gathered) -> str:
    """The report as one HTML file that needs nothing else: no server, no network, no script.

    The same report gives the same page.
    """
    places = [Place(report, entry, number) for number, entry in enumerate(report.entries, start=1)]
    at = {(place.entry.row, place.entry.column): place for place in places}
    axis = panels.Axis.of(report.entries)
    columns = [
        (name, [at[row, name] for row in report.row_names if (row, name) in at])
        for name in report.column_names
    ]
    without = [place for place in places if not (place.entry.row and place.entry.column)]
    entries = report.entries
    compared = report.compared
    return rendered(
        "page.html",
        report=report,
        what=WHAT[report.measure],
        script=own_text("script.js"),
        places=places,
        at=at,
        columns=columns,
        without=without,
        panels={place.number: panels.panel_of(place.entry, axis) for place in places},
        combined={
            name: panels.combined_panels([place.entry for place in of], axis)
            for name, of in columns
        },
        axis=axis,
        canvas=panels,
        has_curves=any(len(entry.lengths) > 1 for entry in entries),
        records=[records_of(name, of) for name, of in columns],
        outstanding=[place for place in places if place.stands_out],
        states=Counter(entry.state for entry in entries),
        verdicts=Counter(each.verdict for each in compared),
        trust_marks=legend(compared),
        outcomes=Counter(place.outcome for place in places),
        notable=NOTABLE,
        disagreements=DISAGREEMENTS,
        expected={place.expected for place in places},
        has_shortcuts=any(place.shortcut for place in places),
        has_worst_cases=any(place.worst_case for place in places),
        samples=sorted({row.sequences for place in places for row in place.at_length}),
        versions=sorted({entry.version for entry in entries if entry.version}),
        dates=sorted({entry.started[:10] for entry in entries if entry.started}),
        replicas=sum(entry.replicas for entry in entries),
        diverged=sum(entry.diverged for entry in entries),
        seconds=sum(entry.seconds for entry in entries),
        rows=row_data(report),
        file_name=re.sub(r"[^a-z0-9]+", "-", report.title.lower()).strip("-")[:60] or "report",
    )


def rendered(template: str, **given: Any) -> str:
    """A page by a template of this package, with the style and the policy of all pages."""
    found = _environment().get_template(template)
    return found.render(policy=POLICY, style=own_text("style.css"), **given)


@cache
def _environment() -> Environment:
    """Templates in which every text is escaped, and an unknown name is an error."""
    found = Environment(
        loader=FunctionLoader(_content),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: visible(value, lines=True) if type(value) is str else value,
    )
    found.policies["json.dumps_kwargs"] = {
        "separators": (",", ":"),
        "allow_nan": False,
    }
    filters: Mapping[str, Callable[..., Any]] = {
        "share": share,
        "published": published_text,
        "measured": measured_text,
        "papers": _with_links,
        "count": lambda number: f"{number:,}",
        "seconds": _seconds,
        "mark": MARKS.__getitem__,
        "verdict": VERDICTS.__getitem__,
        "measure": MEASURES.__getitem__,
        "trust": TRUSTS.__getitem__,
    }
    found.filters.update(filters)
    found.globals["interval_of"] = lambda row: interval(row.low, row.high)
    return found


def _content(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")


def own_text(name: str) -> Markup:
    """A file of this package that goes into the page as it is."""
    return Markup(_content(name))


def _with_links(text: str) -> Markup:
    """A text in which the ids of papers lead to them."""
    addresses = {}
    for paper in ids_in(text):
        scheme, _, identifier = paper.partition(":")
        addresses[identifier] = ADDRESSES[scheme].format(identifier)
    if not addresses:
        return Markup.escape(visible(text))
    longest_first = sorted(addresses, key=len, reverse=True)
    parts = re.split(f"({'|'.join(map(re.escape, longest_first))})", text)
    link = Markup('<a href="{}" rel="noreferrer">{}</a>')
    return Markup("").join(
        link.format(addresses[part], part) if part in addresses else visible(part) for part in parts
    )


def _seconds(seconds: float) -> str:
    """`0.3 s`, `41 s`, `12 min`, `3.4 h`."""
    if seconds < 120:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


OF_ENTRIES = (
    *("row", "column", "run", "state", "model", "task", "task_version", "task_hash"),
    *("settings_hash", "command", "version", "machine", "replicas", "diverged", "steps", "words"),
    *("seconds", "parameters", "dimensions", "trained_to", "error"),
)
"""What is said of every entry."""

OF_REPLICAS = ("replica", "seed", "lr", "selected")
"""What a row says of its replica."""


def row_data(report: Gathered) -> Mapping[str, Any]:
    """The rows of a report as compact data, which the page makes its downloads from.

    `entries`, `scores` and `rows` are lists of values, in the order of the names of fields, which
    stand once, as does a score that several replicas have: most that are right have the same. A row
    is the number of its entry, the number of its score, and what is said of its replica. `long` is
    the report in its long form.
    """
    others = (*OF_REPLICAS, "task", "words")  # the latter are those of the entry
    of_scores = [each.name for each in fields(EvaluationRow) if each.name not in others]
    scores: dict[tuple[Any, ...], int] = {}
    rows = []
    for number, entry in enumerate(report.entries):
        for row in entry.rows:
            score = tuple(plain(getattr(row, name)) for name in of_scores)
            of = scores.setdefault(score, len(scores))
            rows.append([number, of, *(getattr(row, name) for name in OF_REPLICAS)])
    return {
        "title": report.title,
        "entry_fields": OF_ENTRIES,
        "replica_fields": OF_REPLICAS,
        "score_fields": of_scores,
        "entries": [
            [
                str(entry.run) if name == "run" else plain(getattr(entry, name))
                for name in OF_ENTRIES
            ]
            for entry in report.entries
        ],
        "scores": list(scores),
        "rows": rows,
        "long": _long_form(report),
    }


def _long_form(report: Gathered) -> Mapping[str, Any]:
    """The report in its long form; what is the same at all lengths of a run stands once.

    `once` are the numbers of such columns. A run is their values, and a line of the values of the
    other columns for each length.
    """
    lines = long_form(report.entries).values()
    runs = []
    for entry in report.entries:
        number = max(1, len(entry.lengths))
        runs.append(lines[:number])
        lines = lines[number:]
    places = range(len(COLUMNS))
    once = [n for n in places if all(run[0][n] == line[n] for run in runs for line in run)]
    return {
        "columns": COLUMNS,
        "once": once,
        "runs": [
            [
                [run[0][n] for n in once],
                [[line[n] for n in places if n not in once] for line in run],
            ]
            for run in runs
        ],
    }
