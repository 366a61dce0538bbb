"""Suites: every cell a run, measured once; names, interruptions and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from statetrack.errors import RunError, SettingsError, StatetrackError
from statetrack.runs.folder import RunFolder
from statetrack.runs.run import Run
from statetrack.spec import folder_name, load_task
from statetrack.spec.names import LONGEST_FOLDER_NAME
from statetrack.sweep.cells import cells_of
from statetrack.sweep.running import run_suite
from statetrack.sweep.suite import SUITES, load_suite
from tests.test_run import SMALL, start, stop_after, the_error_of, train_until

SUITE: dict[str, Any] = {
    "title": "Two models on two tasks",
    "settings": {
        **{key: value for key, value in SMALL.items() if key not in ("model", "task", "hidden")},
        "steps": 10,
        "seeds": 2,
        "lrs": [0.01],
    },
    "models": {
        "Signs": "diagonal-real",
        "Blocks of 3": {"model": "bilinear-block", "hidden": 6, "block_size": 3},
    },
    "tasks": {"parity": "parity", "mod 3": "modular-addition:m=3"},
    "length": 30,
    "samples": 40,
    "horizon_lengths": [90, 60],
    "horizon_samples": 10,
    "published": {"Signs": {"parity": 1.0}},
}


def suite_file(path: Path, **changes: Any) -> str:
    path.write_text(yaml.safe_dump({**SUITE, **changes}, sort_keys=False))
    return str(path)


def test_a_suite_trains_and_evaluates_every_cell_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = load_suite(suite_file(tmp_path / "suite.yaml"))
    cells = cells_of(suite, tmp_path / "out", {})
    assert [(cell.column, cell.row) for cell in cells] == [
        ("parity", "Signs"),
        ("parity", "Blocks of 3"),
        ("mod 3", "Signs"),
        ("mod 3", "Blocks of 3"),
    ]
    assert len({cell.path for cell in cells}) == 4
    results = list(run_suite(suite, cells, jobs=1))
    assert [(r.column, r.row) for r in results] == [(c.column, c.row) for c in cells]
    for result in results:
        assert len(result.rows) == 2 and result.selected in result.rows
        assert result.selected.length == 30 and result.steps == 10
        right = [row.accuracy == 1.0 for row in result.rows]
        assert result.success == sum(right) / 2
        assert result.horizon in (0, 30, 60, 90)
        assert RunFolder.open(Path(result.run)).finished

    def never(*_: object) -> None:
        raise AssertionError("a finished cell was trained again")

    monkeypatch.setattr(Run, "train", never)
    again = list(run_suite(suite, cells_of(suite, tmp_path / "out", {}), jobs=1))
    assert [one.to_json() for one in again] == [one.to_json() for one in results]


def test_an_interrupted_suite_goes_on_where_it_was(tmp_path: Path) -> None:
    suite = load_suite(suite_file(tmp_path / "suite.yaml", models={"Signs": "diagonal-real"}))
    cells = cells_of(suite, tmp_path / "out", {})
    first = next(iter(run_suite(suite, cells, jobs=1)))
    train_until(start(cells[1].experiment, cells[1].path), stop_after(4))
    results = list(run_suite(suite, cells, jobs=1))
    assert results[0].to_json() == first.to_json()
    assert results[1].steps == 10


def test_a_cell_with_other_settings_is_neither_used_nor_overwritten(tmp_path: Path) -> None:
    suite = load_suite(suite_file(tmp_path / "suite.yaml", models={"Signs": "diagonal-real"}))
    cells = cells_of(suite, tmp_path / "out", {})
    list(run_suite(suite, cells, jobs=1))
    changed = cells_of(suite, tmp_path / "out", {"steps": 11})
    message = the_error_of(RunError, lambda: list(run_suite(suite, changed, jobs=1)))
    assert message.startswith(f"{changed[0].path}: holds a run with other settings")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"published": {"Sings": {"parity": 1.0}}}, "names the row 'Sings'"),
        ({"published": {"Signs": {"s5": 1.0}}}, "names the column 's5'"),
        ({"lenght": 5}, "unknown key 'lenght'. Did you mean 'length'?"),
        ({"samples": 0}, "'samples'"),
    ],
    ids=str,
)
def test_a_suite_that_cannot_be_is_one_line(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    path = suite_file(tmp_path / "suite.yaml", **changes)
    found = the_error_of(SettingsError, lambda: load_suite(path))
    assert found.startswith(f"{path}: ") and message in found


@pytest.mark.parametrize(
    ("models", "message"),
    [
        ({"Signs": {"hidden": 3}}, "suite row 'Signs': 'model' is missing"),
        ({"Signs": {"model": "diagonal-real", "rank": 3}}, "suite row 'Signs': unknown setting"),
        ({"Signs": "diagonal-rael"}, "there is no model 'diagonal-rael'"),
        (
            {"Blocks": {"model": "bilinear-block", "hidden": 7, "block_size": 2}},
            "block_size=2 does not divide hidden 7",
        ),
    ],
    ids=str,
)
def test_a_cell_that_could_not_be_trained_is_found_before_any_is(
    tmp_path: Path, models: dict[str, Any], message: str
) -> None:
    suite = load_suite(suite_file(tmp_path / "suite.yaml", models=models, published={}))
    found = the_error_of(StatetrackError, lambda: cells_of(suite, tmp_path / "out", {}))
    assert message in found
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("models", "tasks", "message"),
    [
        (
            {"+ conv": "diagonal-real", "- conv": "diagonal-positive"},
            {"parity": "parity"},
            "suite rows '+ conv' and '- conv' would share the folder 'conv'",
        ),
        (
            {"Signs": "diagonal-real"},
            {"A": "parity", "a": "s3"},
            "suite columns 'A' and 'a' would share the folder 'a'",
        ),
        ({"Signs": "diagonal-real"}, {"..": "parity"}, "suite column '..': a name needs a letter"),
        ({"Signs": "diagonal-real"}, {".": "parity"}, "suite column '.': a name needs a letter"),
        ({"+ -": "diagonal-real"}, {"parity": "parity"}, "suite row '+ -': a name needs a letter"),
    ],
    ids=str,
)
def test_names_that_make_no_folder_of_their_own_are_refused_before_training(
    tmp_path: Path, models: dict[str, str], tasks: dict[str, str], message: str
) -> None:
    path = suite_file(tmp_path / "suite.yaml", models=models, tasks=tasks, published={})
    suite = load_suite(path)
    assert message in the_error_of(SettingsError, lambda: cells_of(suite, tmp_path / "out", {}))
    assert not (tmp_path / "out").exists()


def test_the_cells_of_shipped_suites_have_folders_of_their_own() -> None:
    for name, suite in SUITES.items():
        paths = [cell.path for cell in cells_of(suite, Path("out"), {})]
        assert len({*paths}) == len(suite.models) * len(suite.tasks), name


HOSTILE = ["", ".", "..", "...", "-.-", "/", "../x", "/etc", "a/../../b", "C:\\x", "x\0y", "\udcff"]


@pytest.mark.parametrize("text", [*HOSTILE, ".x.", "y" * 999, "\U0001d7d8" * 99, "./" * 99 + "z"])
def test_the_name_of_a_folder_stays_in_its_folder(text: str) -> None:
    name = folder_name(text)
    assert Path("here", name).parent == Path("here") or not name
    assert not name.startswith((".", "-")) and not name.endswith((".", "-"))
    assert len(name.encode()) <= LONGEST_FOLDER_NAME
    assert all(letter.isalnum() or letter in "-=." for letter in name)


def test_a_long_name_makes_a_folder_of_its_own() -> None:
    one, other = (folder_name("é" * 300 + end) for end in "ab")
    assert one != other and one[:60] == other[:60]
    assert folder_name("modular-addition:m=25") == "modular-addition-m=25"


@pytest.mark.parametrize("name", ["..", "../../elsewhere", "x" * 400])
def test_a_task_by_any_name_is_trained_inside_the_folder_of_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    document = yaml.safe_load(load_task("parity").document()) | {"name": name}
    Path("mine.yaml").write_text(yaml.safe_dump(document))
    run = Run.start(model="diagonal-real", task="mine.yaml")
    assert run.path.parent == Path("runs") and run.path.is_dir()
