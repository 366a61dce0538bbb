"""The pictures of the pages, drawn by the program from what was recorded; nothing is trained.

    python docs/drawings.py

`figures/overview.svg` shows the rows of `figures/overview.json`, which `statetrack eval --json`
printed, with what `predict` says of each model. The others show suites of `recorded`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from statetrack.pictures import Choice, Look, draw_report, draw_task
from statetrack.predicting import predict
from statetrack.report import Entry, Report
from statetrack.report.recorded import RecordedTable
from statetrack.runs import EvaluationRow
from statetrack.spec import load_task

DOCS = Path(__file__).parent
FIGURES, RECORDED = DOCS / "figures", DOCS / "recorded"
ROWS = FIGURES / "overview.json"

LOOK = Look(width=6.75, style="paper", title="")


# --- the picture of the first page ---


def overview_report() -> Report:
    """The recorded rows, each model named with what theory says of it."""
    recorded = json.loads(ROWS.read_text(encoding="utf-8"))
    names = {field.name for field in dataclasses.fields(EvaluationRow)}
    entries = []
    for run in recorded["runs"]:
        said = predict(recorded["task"], run["model"], **run["settings"]).can
        rows = tuple(
            EvaluationRow(**{name: value for name, value in row.items() if name in names})
            for row in run["rows"]
        )
        entries.append(
            Entry(
                row=f"{run['name']}: predicted { ({'yes': 'can', 'no': 'cannot'}[said]) }",
                column="",
                run=Path(run["run"]),
                state="finished",
                model=run["model"],
                task=recorded["task"],
                settings=run["settings"],
                rows=rows,
                replicas=len({row.replica for row in rows}),
                trained_to=recorded["trained_to"],
            )
        )
    return report_of("", entries, 0)


def digest(content: bytes) -> str:
    """What a picture says of the rows that it shows."""
    return hashlib.sha256(content).hexdigest()[:16]


def draw_overview(path: Path) -> None:
    """The machine beside the accuracies, in one file."""
    recorded = json.loads(ROWS.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        machine, curves = Path(folder) / "machine.svg", Path(folder) / "curves.svg"
        draw_task(load_task(recorded["task"]), machine)
        look = Look(width=4.4, height=3.0, style="paper", title="")
        draw_report(overview_report(), "length", curves, Choice(), look)
        parts = [Part.read(each) for each in (machine, curves)]
    width, height = 744.0, 300.0
    boxes = [(8.0, 20.0, 250.0, 260.0), (266.0, 4.0, 470.0, 292.0)]
    inside = "".join(part.placed(*box) for part, box in zip(parts, boxes, strict=True))
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}">\n'
        f"<!-- rows {digest(ROWS.read_bytes())} -->\n"
        f'<rect width="{width:g}" height="{height:g}" fill="white"/>\n{inside}</svg>\n',
        encoding="utf-8",
    )


class Part(NamedTuple):
    """A picture that becomes a part of another."""

    view: str
    content: str

    @staticmethod
    def read(path: Path) -> Part:
        """The view and the content of an SVG file."""
        text = path.read_text(encoding="utf-8")
        view = re.search(r'<svg[^>]*viewBox="([^"]+)"', text)
        assert view is not None
        content = re.sub(r"\s*<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
        return Part(view[1], re.sub(r"^.*?<svg[^>]*>|</svg>\s*$", "", content, flags=re.DOTALL))

    def placed(self, x: float, y: float, width: float, height: float) -> str:
        """It, inside a box; ids are told apart by where it is."""
        content = re.sub(r'((?:\bid="|#))(\w+)', rf"\g<1>at{x:g}-\2", self.content)
        content = re.sub(r'(fill|stroke)(: ?|=")#at[\d.]+-', r"\1\2#", content)
        return (
            f'<svg x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" '
            f'viewBox="{self.view}">{content}</svg>\n'
        )


# --- the pictures of results ---


class Picture(NamedTuple):
    """The recorded suites that a picture shows, of which of their columns, and how."""

    suites: tuple[str, ...]
    kind: str
    columns: tuple[str, ...] = ()


PICTURES: Mapping[str, Picture] = {
    "hierarchy": Picture(("hierarchy",), "heat"),
    "groups": Picture(("groups",), "heat"),
    "householder": Picture(("householder-factors", "householder-factors-s5"), "length"),
    "parity": Picture(("negative-eigenvalues",), "length", ("parity",)),
}
"""By the name of the file."""


def recorded_report(picture: Picture) -> Report:
    """The cells of recorded suites: accuracies of all replicas, by length."""
    tables = [RecordedTable.read(RECORDED / f"{name}.json") for name in picture.suites]
    points = {(point.row, point.column): point for table in tables for point in table.points}
    entries = [
        Entry(
            row=result.row,
            column=result.column,
            run=Path(),
            state="finished",
            model=result.row,
            task=result.column,
            settings={},
            rows=result.every_row,
            replicas=result.replicas,
            diverged=result.replicas - len({row.replica for row in result.every_row}),
            trained_to=points[result.row, result.column].experiment.words_of().lengths.longest,
        )
        for table in tables
        for result in table.results
        if not picture.columns or result.column in picture.columns
    ]
    return report_of("", entries, tables[0].suite_now.length)


def report_of(title: str, entries: Sequence[Entry], length: int) -> Report:
    """A report whose rows and columns stand in the order in which they come."""
    return Report(
        title=title,
        entries=tuple(entries),
        row_names=tuple(dict.fromkeys(entry.row for entry in entries)),
        column_names=tuple(dict.fromkeys(entry.column for entry in entries)),
        length=length,
    )


def draw_recorded(name: str) -> None:
    """A picture of recorded suites, which says what it was drawn from."""
    picture = PICTURES[name]
    path = FIGURES / f"results-{name}.svg"
    choice = Choice(of="median" if picture.kind == "length" else "selected")
    draw_report(recorded_report(picture), picture.kind, path, choice, LOOK)
    content = path.read_text(encoding="utf-8")
    mark = f"<!-- rows {recorded_digest(picture)} -->\n"
    path.write_text(content.rstrip() + "\n" + mark, encoding="utf-8")


def recorded_digest(picture: Picture) -> str:
    """What a picture says of the cells that it shows."""
    entries = recorded_report(picture).entries
    shown = [(entry.row, entry.column, [row.to_json() for row in entry.rows]) for entry in entries]
    return digest(json.dumps(shown).encode())


def main() -> None:
    """Draw all of them."""
    draw_overview(FIGURES / "overview.svg")
    for name in PICTURES:
        draw_recorded(name)


if __name__ == "__main__":
    main()
