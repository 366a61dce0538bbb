"""The suite of minimal states: its sizes are those that the algebra predicts, and its record."""

import re
from pathlib import Path

import pytest

from statetrack.errors import SettingsError
from statetrack.registry import tasks_folder
from statetrack.settings import build
from statetrack.sources.named_groups import named_group
from statetrack.sweep import SUITES, Suite, points_of
from tests.minimal_state import AT, BELOW, HEAD, algebra_of, document, size_of

PAGE = Path(__file__).parents[1] / "docs" / "minimal-state.md"

SUITE = {
    "title": "Sizes of a cell",
    "models": {"below": {"model": "bilinear", "hidden": 7}, "at": "bilinear"},
    "tasks": {"S3": {"task": "s3", "steps": 3}, "parity": "parity"},
    "cells": {"S3": {"below": {"hidden": 2, "steps": 5}}},
}


def test_the_suite_is_what_the_algebra_predicts_now() -> None:
    shipped = tasks_folder() / "suites" / "minimal-state.yaml"
    assert shipped.read_text(encoding="utf-8") == document(), (
        "write it again: python -m tests.minimal_state > tasks/suites/minimal-state.yaml"
    )


def test_below_and_at_differ_in_their_size_alone() -> None:
    suite = SUITES["minimal-state"]
    assert list(suite.rows) == [BELOW, AT]
    assert len(suite.tasks) >= 80
    for cells in suite.cells.values():
        below, at = cells[BELOW], cells[AT]
        assert at["hidden"] - below["hidden"] == 1
        assert {**at, "hidden": 0, "block_size": 0} == {**below, "hidden": 0, "block_size": 0}


def recorded() -> list[dict[str, str]]:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")]
    start = rows.index(HEAD) + 2
    found = (dict(zip(HEAD, row, strict=False)) for row in rows[start:] if len(row) == len(HEAD))
    return list(found)


def test_no_recorded_group_was_solved_below_the_size_that_is_predicted_now() -> None:
    rows = recorded()
    assert len(rows) >= 40
    for row in rows:
        assert row["solved at H - 1"].startswith("0/")
        assert int(row["order"].replace(",", "")) == named_group(row["group"]).order
    for row in rows:
        if int(row["points"]) <= 12:
            assert int(row["predicted H"]) == size_of(algebra_of(row["group"]))


def test_the_page_counts_what_its_table_shows() -> None:
    rows, text = recorded(), " ".join(PAGE.read_text(encoding="utf-8").split())
    solved = [row for row in rows if not row["solved at H"].startswith("0/")]
    said = re.search(r"\*\*(\d+) groups\*\*.*?at H, (\d+) of them", text, re.DOTALL)
    assert said is not None
    assert [int(each) for each in said.groups()] == [len(rows), len(solved)]


def test_the_settings_of_a_cell_count_over_those_of_its_row_and_column(tmp_path: Path) -> None:
    suite = build(Suite, SUITE, "a suite")
    found = {(each.column, each.row): each.values for each in points_of(suite, tmp_path, {})}
    assert found["S3", "below"]["hidden"] == 2
    assert found["S3", "below"]["steps"] == 5
    assert found["S3", "at"]["steps"] == 3
    assert found["parity", "below"]["hidden"] == 7
    given = points_of(suite, tmp_path, {"hidden": 4})
    assert {each.values["hidden"] for each in given} == {4}


@pytest.mark.parametrize("cells", [{"S4": {"below": {}}}, {"S3": {"above": {}}}])
def test_cells_of_no_row_or_column_are_refused(cells: dict[str, dict[str, object]]) -> None:
    with pytest.raises(SettingsError) as caught:
        build(Suite, {**SUITE, "cells": cells}, "a suite")
    assert "'cells'" in str(caught.value)
