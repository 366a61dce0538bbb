"""Suites: every cell a run, measured once; names, interruptions and what is refused."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import filelock
import pytest
import yaml

from statetrack.errors import RunError, SettingsError, StatetrackError
from statetrack.evidence import Evidence, Failure, SearchBudget, Subject
from statetrack.models import MODEL_FACTS
from statetrack.report import TrainedPoint, gather_suite, training_lines, training_of
from statetrack.report.formats.markdown import table_markdown
from statetrack.report.suites import (
    cell_text,
    curves_markdown,
    evidence_table,
    suite_markdown,
    worst_text,
)
from statetrack.report.training import training_markdown
from statetrack.runs import Experiment, Run, RunFolder, Summary, files, locking
from statetrack.spec import TASKS, folder_name, load_task
from statetrack.spec.names import LONGEST_FOLDER_NAME
from statetrack.sweep import (
    SUITES,
    Failed,
    Local,
    Measurement,
    PointResult,
    Searching,
    Suite,
    available_cores,
    load_suite,
    points_of,
    run_suite,
)
from statetrack.sweep import results as results_module
from statetrack.sweep import work as work_module
from statetrack.sweep.executors import _quota
from statetrack.sweep.executors.local import KILLED
from statetrack.sweep.results import HORIZON_SEED, SEED, refuse_another
from statetrack.sweep.work import _result, run_point
from statetrack.training import PROTOCOLS, Record, settings_for
from tests.dying_work import DyingWork
from tests.faults import disk, sweeps
from tests.faults.processes import run_in_child
from tests.run_files import rows_in, write_weights
from tests.setups import certificate_of, outcome_of, row_of, worst_case_of
from tests.test_run import SMALL, start, stop_after, the_error_of, train_until

LOCAL = Local(jobs=1)

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
    "published_trust": "primary",
}


def suite_file(path: Path, **changes: Any) -> str:
    path.write_text(yaml.safe_dump({**SUITE, **changes}, sort_keys=False))
    return str(path)


def test_a_suite_trains_and_evaluates_every_cell_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = load_suite(suite_file(tmp_path / "suite.yaml"))
    cells = points_of(suite, tmp_path / "out", {})
    assert [(cell.column, cell.row) for cell in cells] == [
        ("parity", "Signs"),
        ("parity", "Blocks of 3"),
        ("mod 3", "Signs"),
        ("mod 3", "Blocks of 3"),
    ]
    assert len({cell.path for cell in cells}) == 4
    results = list(run_suite(suite, cells, LOCAL))
    assert [(r.column, r.row) for r in results] == [(c.column, c.row) for c in cells]
    for result in results:
        assert len(result.rows) == 2 and result.selected in result.rows
        assert result.selected.length == 30 and result.steps == 10
        right = [row.prefix_accuracy == 1.0 for row in result.rows]
        assert result.success == sum(right) / 2
        assert result.horizon in (0, 30, 60, 90)
        assert (result.first_error is None) == (result.horizon == 90)
        assert RunFolder.open(Path(result.run)).finished
    monkeypatch.setattr(Run, "train", never)
    again = list(run_suite(suite, points_of(suite, tmp_path / "out", {}), LOCAL))
    assert [one.to_json() for one in again] == [one.to_json() for one in results]


def test_an_interrupted_suite_goes_on_where_it_was(tmp_path: Path) -> None:
    suite = load_suite(suite_file(tmp_path / "suite.yaml", models={"Signs": "diagonal-real"}))
    cells = points_of(suite, tmp_path / "out", {})
    first = next(iter(run_suite(suite, cells, LOCAL)))
    train_until(start(cells[1].experiment, cells[1].path), stop_after(4))
    results = list(run_suite(suite, cells, LOCAL))
    assert results[0].to_json() == first.to_json()
    assert results[1].steps == 10


def test_a_cell_with_other_settings_is_neither_used_nor_overwritten(tmp_path: Path) -> None:
    suite = load_suite(suite_file(tmp_path / "suite.yaml", models={"Signs": "diagonal-real"}))
    cells = points_of(suite, tmp_path / "out", {})
    list(run_suite(suite, cells, LOCAL))
    changed = points_of(suite, tmp_path / "out", {"steps": 11})
    message = the_error_of(RunError, lambda: list(run_suite(suite, changed, LOCAL)))
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
        ({}, "suite column 'parity': there is no task 'party'. Did you mean 'parity'?"),
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
    own = {"models": models} if models else {"tasks": {"parity": "party"}}
    suite = load_suite(suite_file(tmp_path / "suite.yaml", published={}, **own))
    found = the_error_of(StatetrackError, lambda: points_of(suite, tmp_path / "out", {}))
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
    assert message in the_error_of(SettingsError, lambda: points_of(suite, tmp_path / "out", {}))
    assert not (tmp_path / "out").exists()


def test_the_points_of_shipped_suites_have_folders_of_their_own() -> None:
    for name, suite in SUITES.items():
        paths = [cell.path for cell in points_of(suite, Path("out"), {}, to_train=False)]
        assert len({*paths}) == len(suite.rows) * len(suite.tasks), name


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


# --- one cell, trained once ---

ONE: dict[str, Any] = {
    "models": {"Signs": "diagonal-real"},
    "tasks": {"mine": "mine.yaml"},
    "published": {},
    "horizon_lengths": [],
}


@pytest.fixture(scope="module")
def trained_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a task, and a suite of one cell on it that was run."""
    folder = tmp_path_factory.mktemp("suite")
    (folder / "mine.yaml").write_text(load_task("parity").document())
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        run_once(suite_of())
    return folder


@pytest.fixture
def in_a_copy(trained_once: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory is a copy of that folder, in which nothing is trained any more."""
    shutil.copytree(trained_once, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    monkeypatch.setattr(Run, "train", never)
    return Path("out/mine/signs")


def never(*_: object) -> NoReturn:
    raise AssertionError("a finished cell was trained again")


def suite_of(**changes: Any) -> Suite:
    return load_suite(suite_file(Path("suite.yaml"), **{**ONE, **changes}))


def run_once(suite: Suite, **overrides: Any) -> PointResult:
    (result,) = run_suite(suite, points_of(suite, Path("out"), overrides), LOCAL)
    assert isinstance(result, PointResult), result
    return result


@pytest.mark.parametrize(
    ("jobs", "order"), [(1, ["few", "many", "some"]), (2, ["many", "some", "few"])]
)
def test_of_points_that_are_run_at_once_those_of_most_steps_begin_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: int, order: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    begun: list[str] = []

    def none(executor: Local, work: object, points: Sequence[Any], stop: object) -> Iterator[Any]:
        begun.extend(point.row for point in points)
        return iter(())

    monkeypatch.setattr(Local, "map", none)
    steps = {"few": 5, "many": 20, "some": 10}
    models = {row: {"model": "diagonal-real", "steps": number} for row, number in steps.items()}
    suite = suite_of(models=models, tasks={"parity": "parity"}, settings={})
    assert list(run_suite(suite, points_of(suite, Path("out"), {}), Local(jobs=jobs))) == []
    assert begun == order


def lines_of(run: Path) -> list[str]:
    return (run / "eval.jsonl").read_text().splitlines()


@pytest.mark.parametrize(
    "changes",
    [
        {"length": 31},
        {"samples": 41},
        {"curve_lengths": [20]},
        {"horizon_lengths": [60]},
        {"horizon_lengths": [60], "horizon_samples": 11},
    ],
    ids=str,
)
def test_a_cell_that_was_measured_otherwise_is_evaluated_again(
    changes: dict[str, Any], in_a_copy: Path
) -> None:
    suite = suite_of(**changes)
    result = run_once(suite)
    measured = vars(result.measured) | {"curve_lengths": [*result.measured.curve_lengths]}
    assert {row.length for row in result.rows} == {suite.length}
    assert {row.sequences for row in result.rows} == {suite.samples}
    assert bool(result.curves) == bool(suite.curve_lengths)
    assert all(measured[name] == changes[name] for name in changes if name != "horizon_lengths")
    kept = json.loads((in_a_copy / "cell.json").read_text())
    assert kept["measured"]["length"] == suite.length
    assert PointResult.from_json(kept, "cell.json").to_json() == result.to_json()
    before = (in_a_copy / "cell.json").stat().st_mtime_ns
    assert run_once(suite).to_json() == result.to_json()
    assert (in_a_copy / "cell.json").stat().st_mtime_ns == before


def test_a_cell_of_an_earlier_version_is_not_trusted_but_evaluated_again(in_a_copy: Path) -> None:
    file = in_a_copy / "cell.json"
    right = json.loads(file.read_text())
    file.write_text(
        json.dumps({k: v for k, v in right.items() if k != "measured"} | {"success": 1})
    )
    run_once(suite_of())
    assert json.loads(file.read_text()) == right


def test_an_evaluation_is_not_kept_twice_after_a_kill_before_its_result(in_a_copy: Path) -> None:
    before = lines_of(in_a_copy)
    (in_a_copy / "cell.json").unlink()
    (in_a_copy / "eval.jsonl").write_text(before[0] + "\n")
    run_once(suite_of())
    assert sorted(lines_of(in_a_copy)) == sorted(before) and len(before) == 2
    (in_a_copy / "cell.json").unlink()
    run_once(suite_of())
    assert len(lines_of(in_a_copy)) == 2


def test_an_evaluation_that_is_interrupted_goes_on_with_the_next_replica(
    in_a_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (in_a_copy / "cell.json").read_text(), lines_of(in_a_copy)
    for name in ("cell.json", "eval.jsonl"):
        (in_a_copy / name).unlink()
    points = points_of(suite_of(), Path("out"), {})
    scored = watch(monkeypatch, Run, "models")
    assert list(run_suite(suite_of(), points, LOCAL, stop_after(2))) == []
    assert (in_a_copy / "measuring.jsonl").read_text().count("\n") == 2
    assert not (in_a_copy / "eval.jsonl").exists()
    run_once(suite_of())
    assert [list(replicas) for _, replicas in scored] == [[0, 1], [1]]
    assert ((in_a_copy / "cell.json").read_text(), lines_of(in_a_copy)) == before
    assert not (in_a_copy / "measuring.jsonl").exists()


def test_rows_of_an_interrupted_evaluation_of_other_words_are_not_used(
    in_a_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (in_a_copy / "cell.json").unlink()
    points = points_of(suite_of(), Path("out"), {})
    assert list(run_suite(suite_of(samples=41), points, LOCAL, stop_after(2))) == []
    assert {row.sequences for row in run_once(suite_of()).rows} == {40}


@pytest.mark.parametrize("kind", ["kill", "kill half-way"])
def test_an_evaluation_that_is_killed_at_any_write_ends_with_the_same_rows(
    kind: disk.Kind, in_a_copy: Path
) -> None:
    before = (in_a_copy / "cell.json").read_text(), lines_of(in_a_copy)

    def evaluate_again(fault: disk.Fault | None = None, at: int = -1) -> int:
        for name in ("cell.json", "eval.jsonl"):
            (in_a_copy / name).unlink(missing_ok=True)
        with disk.Faults(in_a_copy, fault, at=at) as faults:
            run_once(suite_of())
        return len(faults.points)

    num_points = evaluate_again()
    assert num_points > 10
    for at in range(1, num_points, 3 if kind == "kill" else 5):
        ended = run_in_child(lambda at=at: evaluate_again(disk.Fault(kind), at) and 0)  # type: ignore[misc]
        assert ended.was_killed, (at, ended.output)
        run_once(suite_of())
        assert ((in_a_copy / "cell.json").read_text(), lines_of(in_a_copy)) == before, at
        assert not (in_a_copy / "measuring.jsonl").exists()


def watch(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> list[tuple[Any, ...]]:
    """What a method is called with, from now on."""
    called: list[tuple[Any, ...]] = []
    real = getattr(owner, name)

    def watched(*given: Any, **named: Any) -> Any:
        called.append(given)
        return real(*given, **named)

    monkeypatch.setattr(owner, name, watched)
    return called


def test_a_point_that_another_process_runs_is_not_run_at_the_same_time(
    in_a_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locking, "WAIT_FOR_POINT", 0.1)
    (in_a_copy / "cell.json").unlink()
    (point,) = points_of(suite_of(), Path("out"), {})
    with locking.point(in_a_copy):
        found = the_error_of(RunError, lambda: run_point(suite_of(), point))
    assert found.startswith(f"{in_a_copy}: another process runs this point (process {os.getpid()} ")
    assert run_point(suite_of(), point) is not None
    assert not list(in_a_copy.glob(".*.lock")) or not (in_a_copy / ".point.lock").exists()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("version: 1", "version: 2", "version 1 of parity there and 2 here"),
        ("train_length:\n- 2", "train_length:\n- 3", "lengths 2-10 with supervision"),
    ],
)
def test_a_cell_on_a_task_that_changed_is_neither_used_nor_overwritten(
    old: str, new: str, message: str, in_a_copy: Path
) -> None:
    text = Path("mine.yaml").read_text()
    settings = SUITE["settings"] | {"train_length": "task"}
    if "train_length" in old:
        shutil.rmtree("out")
        suite = suite_of(settings=settings)
        (cell,) = points_of(suite, Path("out"), {})
        start(cell.experiment, cell.path)
    else:
        suite = suite_of()
    assert old in text
    Path("mine.yaml").write_text(text.replace(old, new))
    found = the_error_of(RunError, lambda: run_once(suite))
    assert found.startswith(f"{in_a_copy}: holds a run on another task (") and message in found
    assert "choose another out, or delete" in found


def test_a_cell_on_a_task_with_other_words_is_neither_used_nor_overwritten(in_a_copy: Path) -> None:
    Path("mine.yaml").write_text(load_task("cyclic:n=3").document())
    found = the_error_of(RunError, lambda: run_once(suite_of()))
    assert found.startswith(f"{in_a_copy}: holds a run on another task (cyclic:n=3 has other words")


def test_a_title_may_change_and_the_cell_is_still_used(in_a_copy: Path) -> None:
    text = Path("mine.yaml").read_text()
    Path("mine.yaml").write_text(text.replace("title: ", "title: New "))
    before = (in_a_copy / "cell.json").stat().st_mtime_ns
    run_once(suite_of(title="Another title"))
    assert (in_a_copy / "cell.json").stat().st_mtime_ns == before


def test_a_result_on_words_that_are_drawn_differently_now_is_refused(in_a_copy: Path) -> None:
    file = in_a_copy / "cell.json"
    content = json.loads(file.read_text())
    content["measured"]["task_hash"] = "0" * 64
    file.write_text(json.dumps(content))
    found = the_error_of(RunError, lambda: run_once(suite_of()))
    assert found.startswith(f"{in_a_copy}: holds a run on other words")


def test_a_row_that_is_called_differently_now_is_shown_under_its_new_name(in_a_copy: Path) -> None:
    assert run_once(suite_of(models={"signs": "diagonal-real"})).row == "signs"


def test_settings_are_compared_again_where_a_cell_is_run(in_a_copy: Path) -> None:
    suite = suite_of()
    (cell,) = points_of(suite, Path("out"), {"steps": 11})
    found = the_error_of(RunError, lambda: run_point(suite, cell))
    assert "holds a run with other settings (steps 10 there and 11 here)" in found


# --- replicas that diverged, and nothing scored ---


def test_a_cell_whose_replicas_diverged_says_so_and_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = {"lrs": [1e30], "patience": 1}
    models = {
        "all": {"model": "bilinear", "hidden": 4, **settings},
        "some": {"model": "bilinear", "hidden": 4, "lrs": [1e30, 0.01]},
    }
    suite = suite_of(models=models, tasks={"p": "parity"}, curve_lengths=[20])
    cells = points_of(suite, Path("out"), {"seeds": 1})
    every, some = run_suite(suite, cells, LOCAL)
    assert every.selected is None and every.rows == () and every.horizon == 0
    assert (every.replicas, every.success) == (1, 0.0)
    assert (some.replicas, [row.replica for row in some.rows]) == (2, [1])
    assert some.success == some.num_right / 2
    assert cell_text(every, "accuracy", 1.0) == "diverged 0/1 [1.00]"
    assert cell_text(every, "scaled", None) == "diverged 0/1"
    assert cell_text(every, "success", None) == "0.000"
    assert cell_text(some, "accuracy", None).endswith(f" {some.num_right}/2")
    lines = suite_markdown(["all", "some"], ["p"], [every, some], {}, "").splitlines()
    assert lines[2].startswith("| p | all | diverged | - | diverged | - | - | 0/1 | 0 |")
    assert "worst case" not in lines[0]
    assert "| diverged 0." in lines[3] or "| diverged 1." in lines[3]
    assert "| p | all | diverged | diverged |" in curves_markdown([every, some])
    monkeypatch.setattr(Run, "train", never)
    again = list(run_suite(suite, cells, LOCAL))
    assert [one.to_json() for one in again] == [every.to_json(), some.to_json()]
    assert json.loads(Path("out/p/all/cell.json").read_text())["selected"] is None


def test_a_cell_without_a_scored_position_has_no_accuracy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    suite = suite_of(tasks={"bit": "flip-flop"}, length=1, measure="scaled", horizon_lengths=[1, 2])
    result = run_once(suite, steps=1)
    assert result.num_right == 0 and result.rows[0].sequences == 0
    assert cell_text(result, "scaled", None) == "- 0/2"
    assert cell_text(result, "accuracy", None) == "- 0/2"
    suite_markdown(["Signs"], ["bit"], [result], {}, "")
    assert run_once(suite, steps=1).to_json().keys() == result.to_json().keys()


def test_the_horizon_of_a_cell_is_up_to_all_lengths_and_of_the_worst_words_of_each() -> None:
    suite = suite_of(length=30, curve_lengths=[10, 60], horizon_lengths=[60, 90])
    run: Any = SimpleNamespace(
        experiment=SimpleNamespace(data=SimpleNamespace(words="task")),
        summary=Summary(10, 0.1, 0, (outcome_of(0),)),
    )
    point: Any = SimpleNamespace(row="Signs", column="parity", path=Path("out"))
    measured = Measurement("0", 1, 30, 40, SEED, (10, 60), (60, 90), 10, HORIZON_SEED)
    near = [row_of(length, evaluation_seed=SEED) for length in (10, 30, 60)]
    assert _result(suite, point, run, measured, near).horizon == 60
    far = [row_of(60, 0.9), row_of(90)]
    rows = [*near, *(replace(row, evaluation_seed=HORIZON_SEED) for row in far)]
    assert _result(suite, point, run, measured, rows).horizon == 30


# --- the worst word of a cell, and other evidence ---


class Asked:
    """A search that counts how often it is asked, and says what it was given."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, found: Evidence | None = None) -> None:
        self.seconds: list[float] = []
        self.found = found or worst_case_of()
        monkeypatch.setattr(type(self.found), "search", staticmethod(self))

    def __call__(self, subject: Subject, *, budget: SearchBudget, seed: int, **_: int) -> Evidence:
        self.seconds.append(budget.seconds)
        return self.found


def search_once(suite: Suite, seconds: float) -> PointResult:
    cells = points_of(suite, Path("out"), {})
    (result,) = run_suite(suite, cells, LOCAL, searching=Searching(worst=seconds))
    assert isinstance(result, PointResult), result
    return result


def test_the_worst_word_of_a_finished_cell_is_sought_once_and_nothing_else_again(
    in_a_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = run_once(suite_of())
    assert before.evidence == () and worst_text(before) == "not measured"
    asked = Asked(monkeypatch)
    monkeypatch.setattr(Run, "score", never)
    result = search_once(suite_of(), 5.0)
    assert result.evidence == (worst_case_of(),) and result.searched == {"worst-case": 5.0}
    assert replace(result, evidence=(), searched={}) == before
    assert Run.open(in_a_copy).evidence()[0].evidence == worst_case_of()
    kept = json.loads((in_a_copy / "cell.json").read_text())
    assert PointResult.from_json(kept, "cell.json").to_json() == result.to_json()
    assert search_once(suite_of(), 5.0).to_json() == result.to_json()
    assert run_once(suite_of()).to_json() == result.to_json()
    assert asked.seconds == [5.0]


@pytest.mark.parametrize(
    ("proven", "first_error", "read", "shown"),
    [
        (4_000, None, True, ">= 4,000"),
        (250_000, None, False, ">= 250,000"),
        (None, None, False, "all lengths"),
        (250_000, 12, True, "11"),
    ],
)
def test_of_what_is_proven_as_far_as_words_are_tried_none_is_read(
    in_a_copy: Path,
    monkeypatch: pytest.MonkeyPatch,
    proven: int | None,
    first_error: int | None,
    read: bool,
    shown: str,
) -> None:
    cell = in_a_copy / "cell.json"
    cell.write_text(json.dumps(json.loads(cell.read_text()) | {"first_error": first_error}))
    proof, worst = Asked(monkeypatch, certificate_of(proven)), Asked(monkeypatch)
    for _ in range(2):
        result = search_once(suite_of(), 5.0)
        assert worst_text(result) == shown
        assert proof.seconds == ([] if first_error else [1.0])
        assert worst.seconds == ([5.0] if read else [])
    kinds = {row.kind for row in Run.open(in_a_copy).evidence()}
    assert kinds == ({"worst-case"} if read else set()) | (
        set() if first_error else {"certificate"}
    )


def test_a_search_that_was_cut_is_done_again_with_more_time_only(
    in_a_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Asked(monkeypatch, worst_case_of(complete=False))
    for seconds in (5.0, 2.0, 5.0, 9.0):
        search_once(suite_of(), seconds)
    assert asked.seconds == [5.0, 9.0]


def test_a_search_that_is_asked_to_stop_keeps_nothing_and_is_done_the_next_time(
    in_a_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Asked(monkeypatch)
    cells = points_of(suite_of(), Path("out"), {})
    assert not list(run_suite(suite_of(), cells, LOCAL, stop_after(2), Searching(worst=1.0)))
    assert "evidence" not in json.loads((in_a_copy / "cell.json").read_text()) or (
        not json.loads((in_a_copy / "cell.json").read_text())["evidence"]
    )
    assert search_once(suite_of(), 1.0).evidence and len(asked.seconds) <= 2


def test_evidence_that_was_found_before_a_stop_is_kept(
    in_a_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = Asked(monkeypatch), Asked(monkeypatch, certificate_of(900))
    kinds = ("worst-case", "certificate")
    monkeypatch.setattr(results_module, "SOUGHT", kinds)
    monkeypatch.setattr(work_module, "SOUGHT", kinds)
    points = points_of(suite_of(), Path("out"), {})
    both = Searching(worst=1.0, others=2.0)
    assert not list(run_suite(suite_of(), points, LOCAL, stop_after(3), both))
    assert json.loads((in_a_copy / "cell.json").read_text())["searched"] == {"worst-case": 1.0}
    (result,) = run_suite(suite_of(), points, LOCAL, searching=both)
    assert isinstance(result, PointResult)
    assert result.searched == {"worst-case": 1.0, "certificate": 2.0}
    assert (first.seconds, second.seconds) == ([1.0], [2.0, 2.0])
    assert len(rows_in(Run.open(in_a_copy).folder, "evidence.jsonl")) == 2


def test_a_cell_of_a_version_without_evidence_is_read(in_a_copy: Path) -> None:
    file = in_a_copy / "cell.json"
    kept = json.loads(file.read_text())
    file.write_text(
        json.dumps({k: v for k, v in kept.items() if k not in ("evidence", "searched")})
    )
    result = run_once(suite_of())
    assert result.evidence == () and result.searched == {}
    assert "evidence" not in json.loads(file.read_text())


def test_what_cannot_be_searched_is_not_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = Asked(monkeypatch)
    name = next(name for name in TASKS if not TASKS[name].has_automaton)
    models = {"all": {"model": "bilinear", "hidden": 4, "lrs": [1e30], "patience": 1}}
    for tasks in ({"x": name}, {"p": "parity"}):
        suite = suite_of(models=models | {"real": "diagonal-real"}, tasks=tasks)
        cells = points_of(suite, Path("out"), {"seeds": 1, "steps": 2})
        results = list(run_suite(suite, cells, LOCAL, searching=Searching(worst=1.0)))
        assert [each.searched for each in results] == [{"worst-case": 1.0}] * 2
        assert worst_text(results[0]) == "-"
        monkeypatch.setattr(Run, "open", Run.open)
        again = list(run_suite(suite, cells, LOCAL, searching=Searching(worst=1.0)))
        assert [each.to_json() for each in again] == [each.to_json() for each in results]
    assert len(asked.seconds) == 1


def test_a_cell_shows_the_worst_word_beside_the_random_ones(in_a_copy: Path) -> None:
    bare = replace(run_once(suite_of()), searched={"worst-case": 5.0})
    assert bare.selected is not None
    sure = replace(bare, first_error=None)
    failure = Failure((), (0, 1), 701, 1, 0)
    fails = worst_case_of(failure)
    assert worst_text(replace(sure, evidence=(worst_case_of(),))) == ">= 900"
    assert worst_text(replace(sure, evidence=(fails,))) == "700"
    wrong = replace(bare, first_error=12)
    assert worst_text(replace(wrong, evidence=(worst_case_of(),))) == "11"
    assert worst_text(replace(wrong, evidence=(fails,))) == "11"
    proven = replace(sure, evidence=(worst_case_of(), certificate_of(4000)))
    assert worst_text(proven) == ">= 4,000"
    assert worst_text(replace(sure, evidence=(certificate_of(None),))) == "all lengths"
    shown = replace(sure, evidence=(fails,))
    assert cell_text(shown, "accuracy", None).endswith("\n700")
    line = suite_markdown(["Signs"], ["mine"], [shown], {}, "").splitlines()[2]
    assert f"| {shown.horizon} | 700 | 10 |" in line
    proof = certificate_of(None)
    lines = table_markdown(
        evidence_table(["Signs"], ["mine"], [replace(sure, evidence=(proof,))])
    ).splitlines()
    assert len({line.count("|") for line in lines}) == 1 and "all lengths" in lines[2]
    impossible = replace(sure, evidence=(fails, proof))
    assert "CONTRADICTION" in table_markdown(evidence_table(["Signs"], ["mine"], [impossible]))


# --- processes ---


def test_a_suite_that_is_asked_to_stop_keeps_checkpoints_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    suite = suite_of(tasks={"parity": "parity"})
    cells = points_of(suite, Path("out"), {})
    assert list(run_suite(suite, cells, LOCAL, stop_after(5))) == []
    run = Run.open(cells[0].path)
    assert run.folder.read(files.CHECKPOINT) is not None and not run.finished
    records = run.records
    (result,) = run_suite(suite, cells, LOCAL)
    assert run.records[: len(records)] == records and result.steps == 10


def test_workers_write_checkpoints_when_asked_to_stop_and_none_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    models = {"one": "diagonal-real", "two": "diagonal-positive"}
    suite = suite_of(models=models, tasks={"parity": "parity"})
    cells = points_of(suite, Path("out"), {"steps": 10_000_000, "checkpoint_every": 0})
    workers = 0

    def both_train() -> bool:
        nonlocal workers
        workers = max(workers, len(multiprocessing.active_children()))
        return all((cell.path / "metrics.jsonl").is_file() for cell in cells)

    assert list(run_suite(suite, cells, Local(jobs=64), both_train)) == []
    assert workers == 2
    assert not multiprocessing.active_children()
    assert all((cell.path / "checkpoint.pt").is_file() for cell in cells)


def test_no_worker_outlives_a_killed_process(tmp_path: Path) -> None:
    settings = SUITE["settings"] | {"steps": 10_000_000}
    models = {"one": "diagonal-real"}  # one worker: a process takes seconds to begin
    changes = {"models": models, "tasks": {"parity": "parity"}, "settings": settings}
    suite_file(tmp_path / "suite.yaml", **{**ONE, **changes})
    command = [sys.executable, "-m", "statetrack", "reproduce", "suite.yaml", "--jobs", "2"]
    process = subprocess.Popen(command, cwd=tmp_path, start_new_session=True)
    try:
        wait_until(lambda: list(tmp_path.rglob("metrics.jsonl")) != [], seconds=240)
        assert len(processes_of(process.pid)) > 1
        process.kill()
        assert process.wait() == -signal.SIGKILL
        wait_until(lambda: not processes_of(process.pid), seconds=20)
    finally:
        for pid in processes_of(process.pid):
            os.kill(pid, signal.SIGKILL)


def processes_of(session: int) -> list[int]:
    """The processes of a session that still run."""
    table = subprocess.run(["ps", "-eo", "pid,sid,stat"], capture_output=True, text=True)
    rows = [line.split() for line in table.stdout.splitlines()[1:]]
    return [int(pid) for pid, sid, stat in rows if sid == str(session) and stat[0] != "Z"]


def wait_until(happened: Callable[[], object], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_point_that_fails_is_named_with_its_error_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    suite = suite_of(models={"one": "diagonal-real", "two": "diagonal-positive"})
    (Path.cwd() / "mine.yaml").write_text(load_task("parity").document())
    points = points_of(suite, Path("out"), {})
    train = Run.train

    def fail(run: Run, *given: Any, **named: Any) -> Iterator[Record]:
        if run.experiment.model == "diagonal-real":
            raise ZeroDivisionError("division\nby zero")
        return train(run, *given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(Run, "train", fail)
        one, two = run_suite(suite, points, LOCAL)
    assert isinstance(one, Failed) and isinstance(two, PointResult)
    assert (one.row, one.column, one.error) == (
        "one",
        "mine",
        "ZeroDivisionError: division by zero",
    )
    kept = json.loads(Path("out/mine/one/error.json").read_text())
    assert kept["error"] == one.error and "in fail\n" in kept["traceback"]
    assert one.file == "out/mine/one/error.json" and not one.full
    two, one = run_suite(suite, points, LOCAL)
    assert (one.row, two.row) == ("one", "two") and isinstance(one, PointResult)
    assert not Path("out/mine/one/error.json").exists()


def test_a_failure_without_a_run_is_kept_beside_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def fail(*_: object, **__: object) -> NoReturn:
        raise StatetrackError("mine.yaml: no")

    (tmp_path / "mine.yaml").write_text(load_task("parity").document())
    points = points_of(suite_of(), Path("out"), {})
    monkeypatch.setattr(Run, "start", fail)
    (failed,) = run_suite(suite_of(), points, LOCAL)
    assert isinstance(failed, Failed) and failed.error == "mine.yaml: no"
    assert failed.file == "out/mine/signs.error.json" and Path(failed.file).is_file()
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    run_once(suite_of())
    assert not Path("out/mine/signs.error.json").exists()


MENDING = "; delete that file, and the point is evaluated again, not trained"


def test_a_damaged_point_fails_and_is_not_overwritten(in_a_copy: Path) -> None:
    (in_a_copy / "cell.json").write_text("[")
    points = points_of(suite_of(), Path("out"), {})
    (failed,) = run_suite(suite_of(), points, LOCAL)
    assert isinstance(failed, Failed)
    assert failed.error.startswith(f"{in_a_copy}/cell.json: is damaged")
    assert failed.error.endswith(
        "; delete that file, and the point is evaluated again, not trained"
    )
    assert (in_a_copy / "cell.json").read_text() == "["
    (in_a_copy / "cell.json").unlink()
    run_once(suite_of())  # which `never` trains


@pytest.mark.parametrize(
    "change",
    [
        {"row": "lstm"},
        {"column": "parity"},
        {"replicas": 7},
        {"steps": 11},
        {"seconds": 0.25},
        {"selected": None},
        {"rows": []},
        {"horizon": -1},
    ],
    ids=str,
)
def test_the_result_of_another_point_or_training_is_refused(
    change: dict[str, Any], in_a_copy: Path
) -> None:
    file = in_a_copy / "cell.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    suite = suite_of()
    (failed,) = run_suite(suite, points_of(suite, Path("out"), {}), LOCAL)
    (entry,) = gather_suite(suite, "out").entries
    assert isinstance(failed, Failed) and entry.state == "failed" and not entry.rows
    for said in (failed.error, entry.error):
        assert re.match(f"{in_a_copy}.{{1,2}}cell.json.* (is damaged|does not belong to)", said)
        assert said.endswith(MENDING)


def test_a_full_disk_ends_a_sweep_and_the_same_command_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    models = {name: "diagonal-real" for name in ("one", "two", "three")}
    suite = suite_of(models=models, tasks={"parity": "parity"})
    points = points_of(suite, Path("out"), {"steps": 2})
    with disk.Faults(Path("out/parity/two"), disk.Fault("full"), at=0):
        one, two = run_suite(suite, points, LOCAL)
    assert isinstance(one, PointResult) and isinstance(two, Failed) and two.full
    assert "No space left on device" in two.error
    assert [type(each) for each in run_suite(suite, points, LOCAL)] == [PointResult] * 3


def test_a_point_whose_worker_is_killed_is_tried_once_more_and_others_go_on(
    tmp_path: Path,
) -> None:
    work: Any = DyingWork(tmp_path)
    points: Any = ["dies 2 times", "dies 1 time", "a", "b"]
    done = list(Local(jobs=2).map(work, points, lambda: False))
    assert sorted(map(str, done)) == ["a", "b", "dies 1 time", f"dies 2 times: {KILLED}"]
    assert not multiprocessing.active_children()


@pytest.mark.slow
def test_a_sweep_that_is_killed_ends_with_the_rows_of_one_that_is_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    sweeps.main(["--points", "12", "--kills", "2"])
    assert "12 points, killed 2 times: 60 rows, all equal, none twice" in capsys.readouterr().out


def test_a_second_process_in_the_same_folder_is_refused(in_a_copy: Path) -> None:
    (in_a_copy / "cell.json").unlink()
    with filelock.FileLock("out/.suite.lock"):
        found = the_error_of(RunError, lambda: run_once(suite_of()))
    assert found.startswith("out: another process runs a suite in this folder: wait")
    run_once(suite_of())


def test_a_folder_that_cannot_be_written_is_refused_before_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Run, "train", never)
    Path("file").write_text("mine")
    suite = suite_of(tasks={"parity": "parity"})
    cells = points_of(suite, Path("file/out"), {})
    found = the_error_of(RunError, lambda: list(run_suite(suite, cells, LOCAL)))
    assert found.startswith("file/out: cannot be written: Not a directory")


def test_the_cores_that_count_are_those_that_the_process_may_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("statetrack.sweep.executors.CONTROL_GROUPS", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 3, 4})
    assert available_cores() == 3
    (tmp_path / "cpu.max").write_text("max 100000\n")
    assert available_cores() == 3
    (tmp_path / "cpu.max").write_text("150000 100000\n")
    assert available_cores() == 2
    (tmp_path / "cpu.max").unlink()
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu/cpu.cfs_quota_us").write_text("-1\n")
    (tmp_path / "cpu/cpu.cfs_period_us").write_text("100000\n")
    assert available_cores() == 3
    (tmp_path / "cpu/cpu.cfs_quota_us").write_text("50000\n")
    assert _quota(tmp_path) == 0.5 and available_cores() == 1


@pytest.mark.parametrize(
    "damage",
    [{"rows": 3}, {"rows": [3]}, {"curves": {"a": 1}}, {"selected": "x"}, {"measured": []}],
    ids=str,
)
def test_a_result_of_other_types_is_damaged_in_one_line(damage: dict[str, object]) -> None:
    with pytest.raises(RunError, match=r"^cell\.json.*: is damaged: "):
        PointResult.from_json(damage, "cell.json")


STATED = ("loss", "optimizer", "beta1", "beta2")
"""What decides a published number and is most often left out."""


@pytest.mark.parametrize("name", SUITES)
def test_every_suite_states_loss_optimiser_and_betas_and_what_differs_from_its_paper(name):
    suite = SUITES[name]
    for row, named in suite.models.items():
        own = {"model": named} if isinstance(named, str) else named
        protocol = settings_for(suite.protocol, own["model"]) if suite.protocol else {}
        given = {**protocol, **suite.settings, **own}
        assert set(STATED) <= set(given), f"{name}, row '{row}'"
    assert bool(suite.departures) == bool(suite.reference), name


@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_protocol_makes_an_experiment_of_each_of_its_models(name):
    assert PROTOCOLS[name].models
    for model in PROTOCOLS[name].models:
        values = Experiment.from_values({"model": model}, name, protocol=name).values()
        stated = settings_for(name, model)
        usual = {"epsilon", "weight_decay", "schedule", "warmup", "clip", "lrs", "steps"}
        assert {*STATED, *usual, "batch_size"} <= set(stated), "its model's defaults would act"
        assert set(MODEL_FACTS[model].training_defaults) <= set(stated)
        assert values == {**values, **{key: values[key].__class__(stated[key]) for key in stated}}


def trained(row: str, column: str = "p", task: str = "parity", **values: Any) -> TrainedPoint:
    given = {"model": "lstm", "task": task, "steps": 20, "lrs": [0.01], "warmup": 0, "clip": 0}
    given |= values
    return TrainedPoint(row, column, Experiment.from_values(given, row))


def test_how_cells_were_trained_comes_from_the_settings_of_their_runs():
    adamw = {"optimizer": "adamw", "weight_decay": 0.1, "lrs": [0.1, 0.01], "warmup": 0.1}
    more = {"train_length": "3-40", "supervision": "last", "loss": "smoothed-cross-entropy"}
    cells = [
        trained("A", loss="cross-entropy"),
        trained("B", loss="cross-entropy"),
        trained("C", **adamw, **more, seeds=3, seed=5, clip=1, curriculum=0.5),
    ]
    adam = "adam (beta1 0.9, beta2 0.95, epsilon 1e-08)"
    assert training_lines(training_of(cells[:2])) == [
        f"trained with: cross-entropy; {adam}; learning rate 0.01; cosine schedule; 20 steps; "
        "64 words a step; words of 2-10 symbols; a label after every symbol; seed 0"
    ]
    assert training_lines(training_of(cells)) == [
        "trained with: 20 steps; 64 words a step",
        f"  A; B: cross-entropy; {adam}; learning rate 0.01; cosine schedule; words of 2-10 "
        "symbols; a label after every symbol; seed 0",
        "  C: smoothed-cross-entropy (0.1); adamw (beta1 0.9, beta2 0.95, epsilon 1e-08, weight "
        "decay 0.1); the best of learning rates 0.1, 0.01; cosine schedule after a warm-up of 10%; "
        "gradients clipped at 1; words of 3-40 symbols; the longest reached after 50% of the "
        "steps; a label after the last symbol; seeds 5-7",
    ]


def test_a_row_that_does_nothing_of_what_others_do_says_so():
    cells = [trained("plain"), trained("robust", robust="noise")]
    plain, robust = training_lines(training_of(cells))[1:]
    assert plain == "  plain: nothing more"
    assert robust.startswith("  robust: robust training by noise")


def test_what_differs_by_task_is_said_of_the_column():
    cells = [trained("A"), trained("A", "flips", task="flip-flop"), trained("B")]
    ((_, parity), (column, flips)) = training_of(cells).differing
    assert column == "flips" and parity == "words of 2-10 symbols" and flips != parity


def test_the_markdown_names_the_paper_and_what_is_otherwise():
    text = training_markdown(training_of([trained("A")]), "Someone 2020", "half the *steps*.")
    assert text.startswith("Trained with: squared-error; ")
    assert text.endswith("\nOtherwise than in Someone 2020: half the \\*steps\\*.\n")


def test_settings_that_an_older_run_does_not_name_have_the_defaults_of_their_fields(
    in_a_copy: Path,
) -> None:
    suite = suite_of()
    (cell,) = points_of(suite, Path("out"), {})
    folder = RunFolder.open(in_a_copy)
    older = {name: value for name, value in folder.read(files.CONFIG).items() if name != "patience"}
    (in_a_copy / "config.yaml").write_text(yaml.safe_dump(older))
    assert refuse_another(folder, cell)
    (changed,) = points_of(suite, Path("out"), {"patience": 3})
    found = the_error_of(RunError, lambda: refuse_another(folder, changed))
    assert "holds a run with other settings (patience 0 there and 3 here)" in found


def test_a_run_by_the_defaults_of_another_version_is_kept_by_naming_them(in_a_copy: Path) -> None:
    (cell,) = points_of(suite_of(), Path("out"), {})
    folder = RunFolder.open(in_a_copy)
    weights = folder.read(files.WEIGHTS)
    folder.write(files.CONFIG, folder.read(files.CONFIG) | {"patience": 7})
    write_weights(folder, weights)
    folder.write(files.ENVIRONMENT, {**folder.read(files.ENVIRONMENT), "statetrack": "0.2.0"})
    refused = the_error_of(RunError, lambda: refuse_another(folder, cell))
    assert "of statetrack 0.2.0 with other settings (patience 7 there and 0 here)" in refused
    assert "name those of the run in the suite to go on with it" in refused
    (entry,) = gather_suite(suite_of(), Path("out")).entries
    said = "trained by statetrack 0.2.0 otherwise than what are defaults now: patience 7, not 0"
    assert said in entry.notes
    assert refuse_another(folder, *points_of(suite_of(), Path("out"), {"patience": 7}))
