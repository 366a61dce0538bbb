"""The pictures of the pages, drawn by the program from what was recorded; nothing is trained.

    python docs/drawings.py

`figures/overview.svg` shows the rows of `figures/overview.json`, which `statetrack eval --json`
printed, with what `predict` says of each model. The others show tables of `results.md`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from statetrack.pictures import Choice, Look, draw_report, draw_task
from statetrack.predicting import predict
from statetrack.report import Entry, Report
from statetrack.runs import EvaluationRow
from statetrack.scoring import rescale, wilson
from statetrack.spec import load_task

DOCS = Path(__file__).parent
FIGURES = DOCS / "figures"
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


class Recorded(NamedTuple):
    """A table of `results.md` that is drawn: under which heading, and what stands in the text."""

    heading: str
    kind: str
    length: int
    words: int
    trained_to: int


PICTURES: Mapping[str, Recorded] = {
    "hierarchy": Recorded("The hierarchy", "heat", 500, 2000, 10),
    "groups": Recorded("The smallest block that carries a group", "heat", 500, 2000, 10),
    "householder": Recorded("How many Householder factors a group takes", "length", 20, 2000, 10),
    "parity": Recorded("Negative eigenvalues and parity", "length", 256, 1000, 40),
}
"""By the name of the file."""


def section(page: str, heading: str) -> str:
    """The text under a heading of the second level."""
    found = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", page, re.M | re.S)
    assert found is not None, heading
    return found[1]


def tables(text: str) -> Iterator[list[dict[str, str]]]:
    """The tables of a text, row by row."""
    for table in re.findall(r"^(\|.*\n\| ?-.*\n(?:\|.*\n)+)", text, re.M):
        head, _, *lines = (
            [c.strip() for c in line.split("|")[1:-1]] for line in table.splitlines()
        )
        yield [dict(zip(head, line, strict=True)) for line in lines]


def report_of(title: str, entries: Sequence[Entry], length: int) -> Report:
    """A report whose rows and columns stand in the order in which they come."""
    return Report(
        title=title,
        entries=tuple(entries),
        row_names=tuple(dict.fromkeys(entry.row for entry in entries)),
        column_names=tuple(dict.fromkeys(entry.column for entry in entries)),
        length=length,
    )


def recorded_report(page: str, picture: Recorded) -> Report:
    """The tables under a heading: accuracies of all replicas, at one length and by length."""
    found = list(tables(section(page, picture.heading)))
    cells = [row for table in found if "all replicas" in table[0] for row in table]
    by_length = {
        (row["task"], row["model"]): row
        for table in found
        if "20" in table[0] or "64" in table[0]
        for row in table
    }
    entries = []
    for cell in cells:
        values = [float(value) for value in cell["all replicas"].split()]
        selected = values.index(float(cell["selected"]))
        right = int(cell["right"].split("/")[0])
        lengths = {picture.length: values}
        for key, text in by_length.get((cell["task"], cell["model"]), {}).items():
            if key.isdigit():
                lengths[int(key)] = [float(value) for value in text.split()]
        entries.append(
            Entry(
                row=cell["model"],
                column=cell["task"],
                run=Path(),
                state="finished",
                model=cell["model"],
                task=cell["task"],
                settings={},
                rows=tuple(_rows(lengths, selected, right, float(cell["floor"]), picture)),
                replicas=len(values),
                trained_to=picture.trained_to,
            )
        )
    return report_of("", entries, picture.length)


def _rows(
    lengths: Mapping[int, Sequence[float]],
    selected: int,
    right: int,
    floor: float,
    picture: Recorded,
) -> Iterator[EvaluationRow]:
    for length, values in sorted(lengths.items()):
        best = sorted(range(len(values)), key=lambda replica, of=values: -of[replica])[:right]
        for replica, value in enumerate(values):
            low, high = wilson(round(value * picture.words), picture.words)
            all_right = length == picture.length and replica in best
            yield EvaluationRow(
                replica=replica,
                seed=replica,
                lr=1.0,  # not recorded, and not drawn
                selected=replica == selected,
                length=length,
                sequences=picture.words,
                accuracy=value,
                low=low,
                high=high,
                symbol_accuracy=value,
                prefix_accuracy=1.0 if all_right else 0.0,
                floor=floor,
                chance=floor,
                scaled=rescale(value, floor),
                scaled_to_floor=rescale(value, floor),
            )


def draw_recorded(name: str, page: str) -> None:
    """A picture of tables of the results, which says what it was drawn from."""
    picture = PICTURES[name]
    path = FIGURES / f"results-{name}.svg"
    choice = Choice(of="median" if picture.kind == "length" else "selected")
    draw_report(recorded_report(page, picture), picture.kind, path, choice, LOOK)
    content = path.read_text(encoding="utf-8")
    mark = f"<!-- rows {table_digest(page, picture)} -->\n"
    path.write_text(content.rstrip() + "\n" + mark, encoding="utf-8")


def table_digest(page: str, picture: Recorded) -> str:
    """What a picture says of the tables that it shows."""
    text = section(page, picture.heading)
    return digest(json.dumps(list(tables(text)), sort_keys=True).encode())


def main() -> None:
    """Draw all of them."""
    draw_overview(FIGURES / "overview.svg")
    page = (DOCS / "results.md").read_text(encoding="utf-8")
    for name in PICTURES:
        draw_recorded(name, page)


if __name__ == "__main__":
    main()
