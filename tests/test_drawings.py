"""The pictures of the pages show what is recorded beside them."""

import importlib
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
AGAIN = "run `python docs/drawings.py`"


@pytest.fixture
def drawings(monkeypatch):
    """The module that draws."""
    monkeypatch.syspath_prepend(DOCS)
    return importlib.import_module("drawings")


def mark_of(picture: Path) -> str:
    found = re.search(r"<!-- rows (\w+) -->", picture.read_text(encoding="utf-8"))
    assert found is not None, picture.name
    return found[1]


def test_the_pictures_of_results_show_what_is_recorded(drawings):
    results = (DOCS / "results.md").read_text(encoding="utf-8")
    for name, picture in drawings.PICTURES.items():
        path = drawings.FIGURES / f"results-{name}.svg"
        assert mark_of(path) == drawings.recorded_digest(picture), AGAIN
        assert f"](figures/{path.name})" in results


def test_a_recorded_suite_is_read_with_every_replica_and_the_selected_one(drawings):
    report = drawings.recorded_report(drawings.PICTURES["parity"])
    assert report.column_names == ("parity",) and report.length == 256
    entry = report.find("Mamba [-1, 1]", "parity")
    assert [row.accuracy for row in entry.at(256)] == [1.0, 1.0, 1.0]
    assert sum(row.selected for row in entry.at(256)) == 1 and entry.trained_to == 40


def test_the_first_picture_shows_the_recorded_rows_and_the_predictions_of_today(drawings):
    path = drawings.FIGURES / "overview.svg"
    assert mark_of(path) == drawings.digest(drawings.ROWS.read_bytes()), AGAIN
    names = drawings.overview_report().row_names
    assert [name.split(": ")[1] for name in names] == ["predicted can", "predicted cannot"]
    text = path.read_text(encoding="utf-8")
    for name in names:
        assert f">{name}<" in text, AGAIN


def test_a_picture_inside_another_keeps_its_ids_apart(drawings):
    part = drawings.Part("0 0 1 1", '<path id="a"/><use xlink:href="#a" fill="#a0a0a0"/>')
    left, right = part.placed(1, 0, 1, 1), part.placed(2, 0, 1, 1)
    assert 'id="at1-a"' in left and 'href="#at1-a"' in left and 'fill="#a0a0a0"' in left
    assert 'id="at2-a"' in right and 'href="#at2-a"' in right
