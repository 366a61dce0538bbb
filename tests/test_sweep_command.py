"""`statetrack sweep`: suites made of options, what is chosen of them, and how progress is shown."""

from __future__ import annotations

import io
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.console import Console

from statetrack import sweep
from statetrack.cli import app
from statetrack.cli._sweeping import SweepProgress, chosen_names, clock, models_of_rows
from statetrack.cli.sweep import made_suite, settings_and_axes, task_names
from statetrack.errors import RunError, SettingsError, StatetrackError
from statetrack.runs import Run, locking, newest_step
from statetrack.sweep import (
    EXECUTORS,
    SUITES,
    SWEEP_FILE,
    Failed,
    Local,
    PointResult,
    Suite,
    described,
    load_suite,
    points_of,
    runs_beside,
)
from statetrack.sweep.suite import read_suite
from tests.setups import cell_of, row_of
from tests.test_run import the_error_of

QUICK = (
    *("--steps", "4", "--seeds", "1", "--lrs", "0.01", "--length", "12", "--samples", "10"),
    *("--set", "validation_words=8", "--jobs", "1"),
)


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")


# --- suites made of options ---


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("s3", ["s3"]),
        ("s3, parity", ["s3", "parity"]),
        (
            "modular-addition:m=5,product(cyclic:n=2,alternating:n=4),s5",
            ["modular-addition:m=5", "product(cyclic:n=2,alternating:n=4)", "s5"],
        ),
        ("dihedral:n=6,generators=[r,s],s5", ["dihedral:n=6,generators=[r,s]", "s5"]),
        ("(dihedral:n=6,generators=[r,s]),s5", ["dihedral:n=6,generators=[r,s]", "s5"]),
    ],
)
def test_commas_separate_tasks_and_not_what_belongs_to_one(text: str, names: list[str]) -> None:
    assert task_names(text) == names


def test_a_setting_with_several_values_is_an_axis_and_with_one_a_setting() -> None:
    given = ["hidden=32,64", "batch-size=8", "lrs=1e-3,3e-3"]
    settings, axes = settings_and_axes(given, {"steps": 5})
    assert settings == {"steps": 5, "batch_size": 8, "lrs": [1e-3, 3e-3]}
    assert axes == {"hidden": [32, 64]}
    assert settings_and_axes(["lrs=1e-3;3e-3,1e-2"], {})[1] == {"lrs": [[1e-3], [3e-3, 1e-2]]}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("hiden=32", "there is no setting 'hiden'. Did you mean 'hidden'?"),
        ("task=s3", "there is no setting 'task'"),
        ("hidden", "write it as NAME=VALUE"),
        ("hidden=", "write it as NAME=VALUE"),
        ("steps=4", "'steps' is given twice"),
        ("hidden=4,4", "a value is given twice"),
        ("clip=1,1.0", "a value is given twice"),
    ],
)
def test_a_setting_that_cannot_be_is_one_line(given: str, message: str) -> None:
    found = the_error_of(SettingsError, lambda: settings_and_axes([given], {"steps": 5}))
    assert found.startswith(f"--set {given}: ") and message in found


@pytest.mark.parametrize(
    ("models", "tasks", "message"),
    [
        ([], ["s3"], "there is no model"),
        (["lstm"], [","], "there is no task"),
        (["lstn"], ["s3"], "--model: there is no model 'lstn'. Did you mean 'lstm'?"),
        (["lstm --hiden 3"], ["s3"], "--model: lstm has no option --hiden"),
        (["lstm", "lstm"], ["s3"], "--model: 'lstm' is named twice"),
        (["gru,lstm,gru"], ["s3"], "--model: 'gru' is named twice"),
        (["lstm"], ["s3,s3"], "--task: 's3' is named twice"),
    ],
    ids=str,
)
def test_models_and_tasks_that_cannot_be_are_one_line(
    models: list[str], tasks: list[str], message: str
) -> None:
    assert message in the_error_of(StatetrackError, lambda: made_suite(models, tasks, {}, {}))


def test_models_have_the_options_behind_their_names() -> None:
    suite = made_suite(
        ["deltanet --beta double,lstm"], ["s3,s5"], {"seeds": 2}, {"batch_size": [4, 8]}
    )
    assert suite.title == "2 models on 2 tasks"
    assert suite.models == {
        "deltanet --beta double": {"model": "deltanet", "beta": "double"},
        "lstm": "lstm",
    }
    points = points_of(suite, Path("out"), {})
    assert len(points) == 8 and len({point.path for point in points}) == 8
    assert points[1].values == {
        "seeds": 2,
        "model": "deltanet",
        "beta": "double",
        "batch_size": 8,
        "task": "s3",
    }


# --- the suite as it was run ---


@pytest.mark.parametrize("name", SUITES)
def test_a_suite_is_read_back_from_its_document(name: str) -> None:
    for suite in (SUITES[name], SUITES[name].with_settings({"seeds": 1}, {"hidden": [4, 8]})):
        Path("sweep.yaml").write_text(suite.document())
        assert read_suite(Path("sweep.yaml")).model_dump() == suite.model_dump()


# --- a folder in which two sweeps were run ---


def swept(suite: Suite, *, without: str = "") -> Path:
    """A folder as if the points of a suite had been begun in it, but those of one row."""
    for point in points_of(suite, Path("out"), {}, to_train=False):
        if point.row != without:
            point.path.mkdir(parents=True, exist_ok=True)
            (point.path / "config.yaml").touch()
    (Path("out") / SWEEP_FILE).write_text(suite.document())
    return Path("out")


def test_reproduce_finds_the_runs_of_a_sweep_in_its_folder(
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = swept(made_suite(["gru"], ["s3"], {"steps": 5}, {}))
    assert app.run(["reproduce", str(folder), "--finished"]) == 0
    assert f"runs: {folder}\n" in capsys.readouterr().out


def test_a_folder_that_gets_another_model_describes_the_runs_of_both() -> None:
    first = made_suite(["lstm --hidden 8"], ["s3", "parity"], {"steps": 5, "seeds": 2}, {})
    folder = swept(first)
    second = made_suite(["gru"], ["s3"], {"steps": 9, "seeds": 2, "clip": 1.0}, {})
    both = described(second, folder)
    assert both.title == "2 models on 2 tasks" and both.settings == {"seeds": 2}
    assert [*both.models] == ["lstm --hidden 8", "gru"] and [*both.tasks] == ["s3", "parity"]
    values = {
        (point.row, point.column): (point.experiment.values(), point.path)
        for point in points_of(both, folder, {}, to_train=False)
    }
    for suite in (first, second):
        for point in points_of(suite, folder, {}, to_train=False):
            assert values[point.row, point.column] == (point.experiment.values(), point.path)
    assert runs_beside(second, folder) == [("lstm --hidden 8", "s3"), ("lstm --hidden 8", "parity")]
    (folder / SWEEP_FILE).write_text(both.document())
    assert read_suite(folder / SWEEP_FILE) == both
    assert described(both, folder) == both and not runs_beside(both, folder)
    assert described(first, Path("elsewhere")) == first


def test_a_suite_with_all_runs_of_a_folder_replaces_its_description() -> None:
    first = made_suite(["lstm", "gru"], ["s3"], {"steps": 5}, {})
    folder = swept(first, without="gru")
    second = made_suite(["lstm", "rnn"], ["s3"], {"steps": 5}, {}).tested(lengths=[40])
    assert described(second, folder) == second


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"length": 100}, "length 500 there and 100 here"),
        ({"axes": {"hidden": [4, 8]}}, "axes {} there and {'hidden': [4, 8]} here"),
        ({"protocol": "grazzi"}, "protocol  there and grazzi here"),
        ({"models": {"lstm": "lstm", "gru": "gru"}, "tasks": {"s5": "s5"}}, "row 'lstm': steps 5"),
        ({"tasks": {"s3": "s4"}}, "column 's3': task s3 there and s4 here"),
        (
            {"published": {"gru": {"s3": 1.0}}, "published_trust": "primary"},
            "published {'lstm': {'s3': 0.5}} there",
        ),
    ],
    ids=str,
)
def test_what_one_table_cannot_say_of_both_sweeps_is_refused(
    changes: dict[str, Any], message: str
) -> None:
    here: dict[str, Any] = {"title": "Here", "settings": {"steps": 9}}
    here |= {"models": {"gru": "gru"}, "tasks": {"s3": "s3"}}
    there = {**here, "title": "There", "settings": {"steps": 5}, "models": {"lstm": "lstm"}}
    there |= {"published": {"lstm": {"s3": 0.5}}, "published_trust": "primary"}
    folder = swept(Suite(**there))
    assert described(Suite(**here), folder).title == "There"
    found = the_error_of(RunError, lambda: described(Suite(**{**here, **changes}), folder))
    assert found.startswith("out: holds the sweep of lstm on s3, with which these points cannot")
    assert message in found and found.endswith("choose another out, or delete that folder")


def test_settings_for_all_points_replace_those_of_rows_columns_and_axes() -> None:
    content: dict[str, Any] = {
        "title": "T",
        "settings": {"steps": 1, "seeds": 9},
        "models": {"A": {"model": "lstm", "steps": 2}, "B": "lstm"},
        "tasks": {"p": {"task": "parity", "steps": 3}},
        "axes": {"batch_size": [8, 16], "hidden": [4, 8]},
    }
    Path("suite.yaml").write_text(yaml.safe_dump(content))
    suite = load_suite("suite.yaml").with_settings({"steps": 7, "hidden": 5}, {"seeds": [1, 2]})
    points = points_of(suite, Path("out"), {})
    assert {point.values["steps"] for point in points} == {7}
    assert {point.values["hidden"] for point in points} == {5}
    assert [dict(point.axes) for point in points if point.row.startswith("A")] == [
        {"batch_size": size, "seeds": seeds} for size in (8, 16) for seeds in (1, 2)
    ]
    assert suite.whole == load_suite("suite.yaml")


# --- the command ---


def succeed(*argv: str) -> None:
    assert app.run(argv) == 0


def complaint(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert app.run(argv) == 1
    return capsys.readouterr().err.splitlines()[-1]


def test_a_sweep_needs_no_file_and_its_folder_knows_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["sweep", "--model", "diagonal-real", "--task", "parity,cyclic:n=3", *QUICK]
    succeed(*command)
    printed = capsys.readouterr()
    assert "diagonal-real" in printed.out and "cyclic:n=3" in printed.out
    assert "1 model on 2 tasks" in printed.out and "not measured (--stress-seconds)" in printed.out
    logged = printed.err.splitlines()
    assert len([line for line in logged if " done: " in line]) == 2
    assert logged[-1].endswith("(2 of 2 done)") and ": diagonal-real on cyclic:n=3: " in logged[-1]
    (kept,) = Path("sweeps").iterdir()
    assert len(points_of(load_suite(str(kept)), kept, {})) == 2
    monkeypatch.setattr(Run, "train", None)
    succeed("sweep", str(kept), "--jobs", "1")
    again = capsys.readouterr()
    assert "runs: sweeps/" in again.out and " done: " in again.err
    line = complaint(capsys, "sweep", str(kept), "--steps", "5", "--jobs", "1")
    assert "holds a run with other settings (steps 4 there and 5 here)" in line
    succeed("sweep", str(kept), "--jobs", "1", "--columns", "parity", "--rows", "diagonal-real")
    shown = capsys.readouterr().out
    assert "parity" in shown and "cyclic:n=3" not in shown
    line = complaint(capsys, "sweep", str(kept), "--columns", "pariti")
    assert "--columns: there is no 'pariti'. Did you mean 'parity'?" in line
    line = complaint(capsys, "sweep", str(kept), "--model", "lstm")
    assert "which names models and tasks: give it, or --model and --task" in line


def test_a_second_model_in_the_folder_of_a_sweep_is_added_to_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = ["sweep", "--model", "diagonal-real", "--task", "parity", "--out", "mine", *QUICK]
    succeed(*first)
    before = Path("mine", SWEEP_FILE).read_text()
    capsys.readouterr()
    other = ["sweep", "--model", "diagonal-complex", "--task", "parity", "--out", "mine", *QUICK]
    for shown in ((), ("--dry-run",)):
        line = complaint(capsys, *other, "--length", "20", *shown)
        assert "holds the sweep of diagonal-real on parity" in line
        assert "(length 12 there and 20 here): choose another --out" in line
    assert Path("mine", SWEEP_FILE).read_text() == before
    succeed(*other)
    printed = capsys.readouterr().out
    assert "runs: mine, with 1 more: `statetrack report mine` shows all" in printed
    monkeypatch.setattr(Run, "train", None)
    succeed("report", "mine")
    table = capsys.readouterr().out
    assert "diagonal-real" in table and "diagonal-complex" in table
    succeed("sweep", "mine", "--jobs", "1")
    again = capsys.readouterr().out
    assert "2 models on 1 task" in again and " more: " not in again


def test_a_sweep_at_several_lengths_is_one_table_and_eval_adds_to_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = ["sweep", "--model", "diagonal-real", "--task", "parity", *QUICK, "--out", "mine"]
    succeed(*command, "--length", "20,30")
    printed = capsys.readouterr().out
    assert "lengths 12, 20 and 30, 10 words" in printed and "runs: mine" in printed
    succeed("report", "mine", "--length", "12,30", "--format", "latex")
    latex = capsys.readouterr().out
    assert r"\multicolumn{2}{c}{parity}" in latex and " & 12 & 30 " in latex
    succeed("eval", "mine", "--length", "40", "--samples", "10")
    capsys.readouterr()
    succeed("report", "mine", "--format", "markdown")
    assert "lengths 12, 20, 30 and 40" in capsys.readouterr().out
    suite = load_suite("mine").tested(lengths=(9,))
    assert (suite.length, suite.table_lengths) == (9, ())
    many = load_suite("mine").tested(lengths=range(1, 9))
    assert (many.length, len(many.curve_lengths), many.table_lengths) == (8, 7, ())


def test_a_sweep_with_a_point_that_fails_has_the_exit_code_of_an_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    train = Run.train

    def fail(run: Run, stop: Callable[[], bool], **named: Any) -> Any:
        if run.task.name == "parity":
            raise ValueError("no")
        return train(run, stop, **named)

    monkeypatch.setattr(Run, "train", fail)
    line = complaint(capsys, "sweep", "--model", "diagonal-real", "--task", "parity,s3", *QUICK)
    assert "1 of 2 points failed; the same command tries them again" in line
    assert app.run(["sweep", "--model", "diagonal-real", "--task", "parity,s3", *QUICK]) == 1
    printed = capsys.readouterr()
    assert "failed: diagonal-real on parity: ValueError: no; its traceback is in " in printed.err
    assert "error.json" in printed.err and "diagonal-real" in printed.out


def test_workers_begin_before_the_points_are_checked_and_for_no_dry_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    called: list[str] = []

    def refuse(*given: object) -> None:
        called.append("check")
        raise StatetrackError("enough")

    monkeypatch.setattr(Local, "prepare", lambda executor: called.append("begin"))
    monkeypatch.setattr(sweep, "require_trainable", refuse)
    command = ["sweep", "--model", "diagonal-real", "--task", "parity", *QUICK]
    assert app.run(command) == app.run([*command, "--dry-run"]) == 1
    assert called == ["begin", "check", "check"]


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--model", "lstm"], "there is no task; `statetrack list tasks` shows all"),
        (["--executor", "locl"], "there is no executor 'locl'. Did you mean 'local'?"),
        (["--model", "lstm", "--task", "s3", "--set", "rank=2"], "unknown setting 'rank'"),
        (["--model", "lstm", "--task", "s3", "--set", "hidden=x"], "'hidden'"),
    ],
    ids=str,
)
def test_a_sweep_that_cannot_be_is_one_line(
    argv: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in complaint(capsys, "sweep", *argv)
    assert not Path("sweeps").exists()


def test_a_name_that_begins_another_takes_its_own_rows_alone():
    models = {"signs": "diagonal-real", "signs, fixed": "diagonal-real", "other": "lstm"}
    suite = Suite(title="Signs", models=models, tasks={"parity": "parity"}, axes={"hidden": [2, 4]})
    names = models_of_rows(suite)
    assert len(names) == 6
    assert chosen_names(["signs"], names, "--rows") == ["signs, hidden=2", "signs, hidden=4"]
    fixed = ["signs, fixed, hidden=2", "signs, fixed, hidden=4"]
    assert chosen_names(["signs, fixed"], names, "--rows") == fixed


@pytest.mark.parametrize(
    ("option", "name", "given"),
    [
        ("--rows", "negative Mamba, 2 layers", "negative Mamba, 2 layers"),
        ("--rows", "negative Mamba, 2 layers", "Mamba, 1 layer, negative Mamba, 2 layers"),
        ("--columns", "with brackets", "with brackets"),
    ],
)
def test_what_a_budget_leaves_out_is_said_to_be_left_out(
    option: str, name: str, given: str, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = "group-horizons-larger" if option == "--rows" else "mamba3-formal-languages"
    line = complaint(capsys, "reproduce", suite, option, given)
    assert f"{option}: the budget minutes leaves '{name}' out: choose another --budget" in line


def test_names_are_chosen_by_themselves_and_by_their_model() -> None:
    names = {"A, hidden=2": "A", "A, hidden=4": "A", "B, C": "B, C"}
    assert chosen_names(None, names, "--rows") == list(names)
    assert chosen_names(["A"], names, "--rows") == ["A, hidden=2", "A, hidden=4"]
    assert chosen_names(["B, C", "A, hidden=4"], names, "--rows") == ["A, hidden=4", "B, C"]
    with pytest.raises(SettingsError, match="--rows: there is no 'D'"):
        chosen_names(["A,D"], names, "--rows")


def test_names_with_commas_are_read_where_they_can_be_read_in_one_way_only() -> None:
    names = {name: name for name in ("A, 1 layer", "A, 2 layers", "LSTM", "B", "C", "B, C")}
    assert chosen_names(["LSTM,A, 1 layer"], names, "--rows") == ["A, 1 layer", "LSTM"]
    assert chosen_names(["A,1 layer,A, 2 layers"], names, "--rows") == ["A, 1 layer", "A, 2 layers"]
    assert chosen_names(["B, C"], names, "--rows") == ["B, C"]
    with pytest.raises(SettingsError, match="can be read as different names: repeat --rows"):
        chosen_names(["B, C, LSTM"], names, "--rows")
    with pytest.raises(SettingsError, match="with a comma is one option: --rows 'A, 1 layer'"):
        chosen_names(["A, 3 layers"], names, "--rows")


def test_executors_have_no_option_that_their_commands_have() -> None:
    own = {"rows", "columns", "out", "length", "samples", "seeds", "steps", "loss", "lrs", "seed"}
    own |= {"budget", "suite", "file", "model", "task", "markdown", "evidence", "executor"}
    for name in EXECUTORS:
        assert not own & {*EXECUTORS[name].model_fields}, name


# --- progress ---


def followed(tmp_path: Path) -> tuple[SweepProgress, list[str]]:
    suite = made_suite(["diagonal-real,lstm"], ["parity,s3"], {"steps": 100}, {})
    lines: list[str] = []
    return SweepProgress(points_of(suite, tmp_path / "out", {}), lines.append), lines


def test_progress_says_what_runs_how_far_and_how_long_it_may_take(tmp_path: Path) -> None:
    progress, lines = followed(tmp_path)
    assert progress.seconds_left() is None and "left" not in progress.line()
    first, second, *_ = progress.points
    for point in (first, second):
        point.path.mkdir(parents=True)
    (second.path / "metrics.jsonl").write_text('{"step": 10}\n{"step": 50}\n{"st')
    with locking.point(first.path), locking.point(second.path):
        progress.look()
    assert lines == ["begins: diagonal-real on parity", "begins: lstm on parity"]
    assert [each.doing for each in progress.running] == ["begun", "step 50 of 100"]
    progress.waiting[first.row, first.column].begun = time.monotonic() - 10.0
    progress.first_begun = time.monotonic() - 10.0
    failed = Failed(first.row, first.column, str(first.path), "no space")
    progress.end(failed)
    assert lines[-1] == "failed: diagonal-real on parity: no space, 10.0 s"
    left = progress.seconds_left()
    assert left is not None and 20 < left < 30
    for width in (60, 80):
        console = Console(width=width, file=io.StringIO(), color_system=None)
        console.print(progress)
        assert isinstance(console.file, io.StringIO)
        shown = console.file.getvalue().splitlines()
        assert all(len(line) <= width for line in shown)
        assert shown[0].split() == ["lstm", "on", "parity", "step", "50", "of", "100"]
        assert "1 of 4 done, 1 failed" in shown[-1]
        assert len(shown[-1].rstrip()) <= width - len("^C"), "Ctrl-C would begin another line"


def test_the_time_left_is_no_less_than_that_of_the_longest_point(tmp_path: Path) -> None:
    progress, _ = followed(tmp_path)
    first, second, *others = (progress.waiting[one.row, one.column] for one in progress.points)
    for each in (first, second):
        each.begun = time.monotonic() - 10.0
    progress.first_begun = first.begun
    second.weight = 6 * first.weight
    progress.end(Failed(first.point.row, first.point.column, "", "no space"))
    for each in others:
        progress.waiting.pop((each.point.row, each.point.column))
    left = progress.seconds_left()  # two ran at once, but the one that is left is one process's
    assert left is not None and 59 < left < 61


def test_a_point_that_an_earlier_sweep_began_does_not_run(tmp_path: Path) -> None:
    progress, lines = followed(tmp_path)
    path = progress.points[0].path
    path.mkdir(parents=True)
    with locking.point(path):
        pass
    progress.since = time.time() + 60
    progress.look()
    assert not lines and not progress.running
    assert newest_step(path) == 0


def test_the_seconds_of_a_point_are_those_since_its_lock_was_acquired(tmp_path: Path) -> None:
    progress, lines = followed(tmp_path)
    point = progress.points[0]
    point.path.mkdir(parents=True)
    progress.since = time.time() - 60
    with locking.point(point.path):
        began = time.time() - 30
        os.utime(point.path / locking.POINT, (began, began))
        progress.look()
    progress.end(cell_of(point.row, point.column, (row_of(12),)))
    assert re.search(r", 3\d\.\d s \(1 of 4 done\)$", lines[-1])


def test_seconds_are_written_as_a_clock() -> None:
    assert [clock(each) for each in (5, 65, 3600 + 65)] == ["0:05", "1:05", "1:01:05"]


def test_a_result_is_logged_with_its_accuracy(tmp_path: Path) -> None:
    progress, lines = followed(tmp_path)
    point = progress.points[0]
    result: PointResult = cell_of(point.row, point.column, (row_of(12),))
    progress.end(result)
    assert lines[-1].startswith("done: diagonal-real on parity: accuracy ")
    assert lines[-1].endswith(" (1 of 4 done)")
