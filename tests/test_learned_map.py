"""The map of what is learned: where a cell stands, the order of theory, and its two sources."""

from __future__ import annotations

import importlib
import math
import re
from dataclasses import replace
from html import escape
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from statetrack.errors import SettingsError
from statetrack.pictures import Choice, Look, draw_learned, draw_report
from statetrack.pictures.learned_map import SHADES, draw_map, map_caption
from statetrack.report import (
    STANDINGS,
    LearnedMap,
    MapCell,
    RecordedTable,
    Report,
    Standing,
    gather_suite,
    map_page,
)
from statetrack.report.entries import worst_text
from statetrack.report.learned import standing_of
from statetrack.report.recorded import RecordedCell, dependencies, settings_of
from statetrack.runs import RunFolder, files
from statetrack.sweep import Local, PointResult, Searching, Suite, points_of, run_suite
from tests.claims.cells import tasks_with_automata

SMALL = Suite(
    title="Three models",
    settings={"steps": 150, "seeds": 2, "validation_words": 64},
    models={
        "signs": {"model": "diagonal-real", "hidden": 8},
        "positive": {"model": "diagonal-positive", "hidden": 8},
        "gru": {"model": "gru", "hidden": 4, "steps": 10},
    },
    tasks={"cyclic": "cyclic:n=3", "parity": "parity"},
    length=60,
    samples=100,
    curve_lengths=(20,),
)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Report, LearnedMap]:
    """The report of a small suite, and the map of its record."""
    folder = tmp_path_factory.mktemp("map")
    points = points_of(SMALL, folder, {})
    done = list(run_suite(SMALL, points, Local(jobs=1), searching=Searching(worst=0.3)))
    results = [each for each in done if isinstance(each, PointResult)]
    assert len(results) == 6
    cells = [
        RecordedCell.of(each, RunFolder(Path(each.run)).read(files.SUMMARY)) for each in results
    ]
    about = {"date": "2026-01-01", "version": "0", "commit": "", "machine": "", "seconds": 1.0}
    table = RecordedTable(
        **{"name": "small", "command": "", "suite": "small", **about},
        depends=dependencies(points),
        settings=settings_of(SMALL, points),
        cells=cells,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("statetrack.report.recorded.SUITES", {"small": SMALL})
        return gather_suite(SMALL, folder), LearnedMap.of_records(table)


def test_the_map_of_a_report_is_that_of_its_record(both: tuple[Report, LearnedMap]) -> None:
    report, of_record = both
    found = LearnedMap.of(map(MapCell.of_entry, report.entries))
    assert found == of_record
    standings = {(cell.row, cell.column): cell.standing for cell in found.cells}
    assert standings["signs", "parity"] == "learned"
    for row, column in (("signs", "cyclic"), ("positive", "cyclic"), ("positive", "parity")):
        assert standings[row, column] == "cannot"
    assert {standings["gru", column] for column in ("cyclic", "parity")} == {"not learned"}
    assert found.find("signs", "parity").right >= 1
    assert found.find("signs", "parity").holds_to == 60
    assert found.find("positive", "nothing") is None


def test_a_cell_has_the_worst_case_horizon_of_its_selected_replica(
    both: tuple[Report, LearnedMap],
) -> None:
    report, found = both
    for entry in report.entries:
        cell = found.find(entry.row, entry.column)
        assert cell.fails_at == entry.bracket.fails_at
        assert cell.worst == worst_text(entry.bracket).removesuffix(" (CPU time)")
    right = found.find("signs", "parity")
    assert right.right_to >= 60 and right.worst
    assert replace(right, right_to=1701, fails_at=None).worst == ">= 1,701"
    assert replace(right, right_to=1701, fails_at=1702).worst == "1,701"
    assert replace(right, right_to=math.inf, fails_at=None).worst == "all lengths"
    unsought = replace(right, right_to=None, fails_at=None)
    assert unsought.worst == "" and "worst-case" not in unsought.says


def test_a_cell_that_is_not_right_says_how_far_it_came(both: tuple[Report, LearnedMap]) -> None:
    report, found = both
    short = found.find("gru", "parity")
    entry = next(each for each in report.entries if (each.row, each.column) == ("gru", "parity"))
    assert short.fitted == max(each.validation_prefix_accuracy for each in entry.outcomes) < 0.99
    assert re.fullmatch(
        r"\d+(\.\d)? % of validation words are right after 10 steps \(99 % count as learned\)",
        short.why,
    )
    assert short.says.endswith(short.why)
    held = replace(short, standing="not held", fitted=1.0, longest=500, at_longest=0.99999)
    assert held.why == (
        "100 % of validation words are right, 99.9 % of words of 500 symbols are right"
    )
    assert not any(each.why for each in found.cells if each.standing in ("learned", "cannot"))
    assert {each.built for each in found.cells} == {None}
    assert replace(short, built=True).says == f"{short.says}; exact weights are built"
    assert replace(short, built=False).says == short.says


def test_rows_and_columns_are_in_the_order_of_theory(both: tuple[Report, LearnedMap]) -> None:
    found = both[1]
    assert found.rows == ("positive", "signs", "gru")
    assert found.columns == ("parity", "cyclic")
    assert list(found.counts()) == ["learned", "not learned", "cannot"]
    lines = found.to_markdown(by="row").splitlines()
    assert lines[0] == "| model | learned | not learned | cannot |"
    assert lines[2:] == ["| positive |  |  | 2 |", "| signs | 1 |  | 1 |", "| gru |  | 2 |  |"]


@pytest.mark.parametrize(
    ("can", "answer", "right", "fitted", "expected"),
    [
        ("yes", "yes", True, True, "learned"),
        ("yes", "unknown", True, False, "learned"),
        ("yes", "no", True, True, "learned"),
        ("yes", "yes", False, True, "not held"),
        ("yes", "yes", False, False, "not learned"),
        ("yes", "no", False, True, "too small"),
        ("no", "no", False, True, "cannot"),
        ("no", "no", True, True, "DISAGREES"),
        ("unknown", "unknown", True, True, "open, learned"),
        (None, None, False, True, "open"),
    ],
)
def test_where_a_cell_stands(
    can: str, answer: str, right: bool, fitted: bool, expected: Standing
) -> None:
    assert standing_of(can, answer, right=right, fitted=fitted) == expected
    assert standing_of(can, answer, right=right, fitted=fitted, tests=False) == "tests nothing"


def test_a_figure_has_every_row_column_standing_and_number(
    both: tuple[Report, LearnedMap], tmp_path: Path
) -> None:
    report, found = both
    path = tmp_path / "map.svg"
    caption = draw_report(report, "map", path, Choice(), Look())
    text = path.read_text("utf-8")
    for name in (*found.rows, *found.columns, "Three models"):
        assert f">{name}<" in text
    for standing, number in found.counts().items():
        assert f">{standing}: {STANDINGS[standing]} ({number})<" in text
    assert "6 cells, 2 replicas in each" in caption[0]
    draw_learned(found, tmp_path / "narrow.svg", Look(width=3.25, title="", legend=False))
    narrow = (tmp_path / "narrow.svg").read_text("utf-8")
    assert re.search(r'width="234pt"', narrow) and "Three models" not in narrow
    figure = draw_map(found, "", Look(width=3.25, title=""))
    told = [text for axes in figure.axes for text in axes.texts if ": " in text.get_text()]
    assert told and all(text.get_window_extent().x1 <= figure.bbox.x1 for text in told)


def test_a_caption_counts_runs_without_a_square(
    both: tuple[Report, LearnedMap], tmp_path: Path
) -> None:
    report = both[0]
    assert not any("not drawn" in line for line in map_caption(both[1]))
    untested = replace(report.entries[0], judged=None)
    other = replace(report, entries=(untested, *report.entries[1:]))
    caption = draw_report(other, "map", tmp_path / "map.svg", Choice(), Look())
    assert "not drawn: 1 run not evaluated on words longer than training's" in caption
    assert "5 cells" in caption[0]


def test_the_page_has_every_cell_and_loads_nothing(both: tuple[Report, LearnedMap]) -> None:
    found = both[1]
    page = map_page(found, "Three <models>", ["6 cells"], SHADES)
    assert "Three &lt;models&gt;" in page and "default-src &#39;none&#39;" in page
    assert not re.search(r"(src|href)=|@import|url\(", page)
    cells = re.findall(r'<td class="s(\d+)" data-standing="(\d+)" title="([^"]*)">(\d*)</td>', page)
    assert len(cells) == len(found.cells) == 6
    numbers = {name: number for number, name in enumerate(SHADES)}
    for cell in found.cells:
        shown = str(cell.right or cell.holds_to or "")
        assert (*[str(numbers[cell.standing])] * 2, escape(cell.says), shown) in cells
    assert {cell.family for cell in found.cells} == {"bilinear", "non-linear"}
    assert re.findall("<option>(.*)</option>", page) == ["bilinear", "non-linear"]
    right = found.find("signs", "parity")
    assert right.says == (
        "signs on parity: learned (can, and is right beyond training); right beyond training: "
        f"{right.right} of 2; every word right up to length 60; worst-case horizon of the selected "
        f"replica: {right.worst}"
    )


def test_without_words_beyond_training_there_is_no_map(tmp_path: Path) -> None:
    empty = Report(title="T", entries=(), row_names=(), column_names=(), length=0)
    with pytest.raises(SettingsError, match="no run was evaluated on words longer"):
        draw_report(empty, "map", tmp_path / "map.svg", Choice(), Look())


def test_page_and_figure_are_those_of_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    docs = Path(__file__).parents[1] / "docs"
    monkeypatch.syspath_prepend(docs)
    learned = importlib.import_module("learned")
    made = {learned.PAGE: learned.RECORD, learned.FIGURE: learned.RECORD}
    made[learned.FILTERED] = learned.RECORD
    for path, record in {**made, learned.HELD_PAGE: learned.HELD}.items():
        assert learned.mark(record) in path.read_text("utf-8"), "run `python docs/learned.py`"
    found = learned.recorded_map(RecordedTable.read(learned.RECORD))
    assert {each.column for each in found.cells} == set(tasks_with_automata())
    kept = pq.read_table(learned.CELLS).to_pylist()
    assert kept == [vars(cell) for cell in found.cells], "run `python docs/learned.py`"
    region = learned.LEARNING_PAGE.read_text("utf-8").split(learned.BEGIN)[1]
    assert region.split(learned.END)[0] == learned.judging.region()
