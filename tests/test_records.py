"""Recorded tables: they are read back as they were measured, and stale where inputs changed."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from statetrack.evidence import SearchBudget, Subject
from statetrack.evidence.worst_words import find_worst_case
from statetrack.report import recorded
from statetrack.report.recorded import (
    RecordedCell,
    RecordedTable,
    dependencies,
    settings_of,
)
from statetrack.report.repeated import decided_cells, pairs_of, repeated_page
from statetrack.runs import Run, RunFolder, files
from statetrack.sweep import (
    SUITES,
    Budget,
    Local,
    Point,
    PointResult,
    Suite,
    compare_published,
    points_of,
    run_suite,
)

DOCS = Path(__file__).parents[1] / "docs"
RECORDED = DOCS / "recorded"
RECORDS = sorted(each for each in RECORDED.rglob("*.json") if each.stem != "estimates")

TINY = Suite(
    title="Two models",
    reference="A paper",
    settings={"steps": 30, "seeds": 2, "hidden": 8, "validation_words": 32},
    models={"signs": "diagonal-real", "positive": "diagonal-positive"},
    tasks={"parity": "parity"},
    length=40,
    samples=200,
    curve_lengths=(20,),
    measure="scaled",
    budgets={"minutes": Budget(says="all of it")},
    published={"signs": {"parity": 1.0}, "positive": {"parity": 0.0}},
    published_trust="primary",
)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Point], list[PointResult]]:
    """The tiny suite, trained."""
    suite = TINY.for_budget(None)
    points = points_of(suite, tmp_path_factory.mktemp("recorded"), {})
    done = list(run_suite(suite, points, Local(jobs=1)))
    assert all(isinstance(each, PointResult) for each in done)
    return points, [each for each in done if isinstance(each, PointResult)]


@pytest.fixture
def table(
    measured: tuple[list[Point], list[PointResult]], monkeypatch: pytest.MonkeyPatch
) -> RecordedTable:
    """The record of the tiny suite, which is registered as `tiny`."""
    monkeypatch.setattr(recorded, "SUITES", {"tiny": TINY})
    points, results = measured
    return RecordedTable(
        name="tiny",
        command="statetrack reproduce tiny",
        date="2026-01-01",
        version="0.1.0",
        commit="abc",
        machine="a processor",
        seconds=1.0,
        depends=dependencies(points),
        suite="tiny",
        settings=settings_of(TINY.for_budget(None), points),
        cells=[
            RecordedCell.of(each, RunFolder(Path(each.run)).read(files.SUMMARY)) for each in results
        ],
    )


def test_a_record_gives_the_same_verdicts_as_the_runs(
    table: RecordedTable, measured: tuple[list[Point], list[PointResult]], tmp_path: Path
) -> None:
    points, results = measured
    table.write(tmp_path / "tiny.json")
    again = RecordedTable.read(tmp_path / "tiny.json")
    assert again.compared == compare_published(TINY.for_budget(None), points, results)
    for kept, was in zip(again.results, results, strict=True):
        counted = ("replicas", "num_right", "success", "steps", "horizon")
        assert [getattr(kept, n) for n in counted] == [getattr(was, n) for n in counted]
        assert shares(kept) == shares(was)
    # earlier versions wrote a horizon without the lengths of curves
    earlier = replace(again, cells=[replace(cell, horizon=-1) for cell in again.cells])
    assert [each.horizon for each in earlier.results] == [each.horizon for each in results]


def test_a_record_keeps_what_was_found_of_the_selected_replica(
    measured: tuple[list[Point], list[PointResult]], tmp_path: Path, table: RecordedTable
) -> None:
    result = measured[1][1]
    run = Run.open(result.run)
    ((_, model),) = run.models([0])
    found = find_worst_case(Subject(model, run.task), budget=SearchBudget(0.05))
    searched = replace(result, evidence=(found,), searched={found.kind: 0.05}, first_error=7)
    cell = RecordedCell.of(searched, run.folder.read(files.SUMMARY))
    replace(table, cells=[cell, table.cells[0]]).write(tmp_path / "tiny.json")
    kept, *others = RecordedTable.read(tmp_path / "tiny.json").results
    assert kept.evidence == (found,) and kept.searched == searched.searched
    assert kept.bracket == searched.bracket and kept.bracket.fails_at is not None
    assert [(each.searched, each.evidence) for each in others] == [({}, ())]


def shares(result: PointResult) -> dict[tuple[int, int], tuple[float, ...]]:
    """What verdicts read of each row, by replica and length."""
    return {
        (row.replica, row.length): (
            row.accuracy,
            row.prefix_accuracy,
            row.low,
            row.high,
            row.scaled,
        )
        for row in result.every_row
    }


def test_a_record_holds_until_something_it_depends_on_changes(
    table: RecordedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert table.why_stale() == []
    said = replace(table, stale=["nobody knows"])
    assert said.why_stale() == ["nobody knows"]
    longer = TINY.model_copy(update={"settings": {**TINY.settings, "steps": 31}})
    monkeypatch.setattr(recorded, "SUITES", {"tiny": longer})
    assert replace(table).why_stale() == [
        "signs on parity: steps: 30 then, 31 now",
        "positive on parity: steps: 30 then, 31 now",
    ]
    monkeypatch.setattr(recorded, "SUITES", {"tiny": TINY.model_copy(update={"samples": 300})})
    assert replace(table).why_stale() == ["tested with samples: 200 then, 300 now"]
    older = dict(table.settings[""])
    del older["robust"]  # a setting that is newer than the record, at its default
    monkeypatch.setattr(recorded, "SUITES", {"tiny": TINY})
    assert replace(table, settings={**table.settings, "": older}).why_stale() == []
    monkeypatch.setattr(recorded, "SUITES", {"tiny": TINY})
    monkeypatch.setattr(recorded, "SAME_SINCE", "9.9")
    assert table.why_stale() == [f"training: {table.depends['training']} then, 9.9 now"]
    monkeypatch.undo()
    monkeypatch.setattr(recorded, "SUITES", {"tiny": TINY})
    monkeypatch.setattr(recorded, "golden_hash", lambda task: "other words than those")
    assert [why.split(":")[0] for why in table.why_stale()] == ["task parity"]


def test_a_record_from_another_seed_holds_and_is_read_beside_the_first(
    table: RecordedTable, tmp_path: Path
) -> None:
    suite = replace(table, seed=200).suite_now
    points = points_of(suite, tmp_path, {}, to_train=False)
    assert {point.experiment.training.seed for point in points} == {200}
    again = replace(table, seed=200, settings=settings_of(suite, points))
    assert again.why_stale() == [] and replace(again, seed=None).why_stale()
    assert decided_cells(table) == [("signs", "parity")]  # too few words for the other
    assert pairs_of(table, again) == list(zip(table.compared, again.compared, strict=True))
    page = repeated_page({"tiny": table}, {"tiny": again})
    assert "2 cells of 1 pages: of 1 verdicts, 1 are the same" in page
    fewer = replace(again, cells=table.cells[1:])
    assert [first.row for first, _ in pairs_of(table, fewer)] == ["positive"]
    assert "0 cells of 0 pages" in repeated_page({"tiny": table}, {"tiny": replace(again, seed=7)})


@pytest.fixture(scope="module")
def script() -> Iterator[ModuleType]:
    """docs/recorded.py."""
    spec = importlib.util.spec_from_file_location("recorded_pages", DOCS / "recorded.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.fixture(scope="module")
def found(script: ModuleType) -> dict[str, RecordedTable]:
    """Every record, by its name."""
    records: dict[str, RecordedTable] = script.records()
    return records


@pytest.mark.parametrize("file", RECORDS, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_a_record_that_claims_to_hold_does(file: Path, found: dict[str, RecordedTable]) -> None:
    """Make it again (`make record`), or say in `stale` why its numbers are no longer those."""
    kept = found[file.stem] if file.parent == RECORDED else RecordedTable.read(file)
    assert kept.stale or kept.why_stale() == []


def test_pages_are_those_of_the_records(
    script: ModuleType, found: dict[str, RecordedTable]
) -> None:
    for page, text in script.pages(found):
        assert page.read_text("utf-8") == text, f"{page.name}: run `make reproductions`"


def test_what_is_finished_stands_beside_what_was_recorded_before(
    script: ModuleType, table: RecordedTable
) -> None:
    parts = (replace(table, cells=[cell]) for cell in table.cells)
    signs, positive = (replace(each, depends=dependencies(each.points)) for each in parts)
    both = script.with_kept(positive, signs)
    assert [cell.row for cell in both.cells] == ["signs", "positive"]
    assert both.why_stale() == [] and both.settings == table.settings
    assert script.with_kept(positive, replace(signs, stale=["nobody knows"])) == positive
    assert script.with_kept(positive, positive) == positive
    other = {**table.settings.get("signs on parity", {}), "steps": 999}
    changed = replace(table, settings={**table.settings, "signs on parity": other})
    kept = script.with_kept(replace(table, cells=[]), changed)
    assert [cell.row for cell in kept.cells] == ["positive"]


def test_every_suite_of_published_numbers_is_told_of(
    script: ModuleType, found: dict[str, RecordedTable]
) -> None:
    told = "\n".join(script.status(found))
    for name in SUITES:
        if SUITES[name].published_tables:
            assert f"{name}: " in told
