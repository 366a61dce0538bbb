"""`eval` of several runs, of unfinished ones, and its tables on narrow terminals."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import pytest
import torch

from statetrack.cli.app import run
from statetrack.errors import RunError
from statetrack.report import console, evaluation_table, evaluations_table
from statetrack.runs import EvaluationRow, Run, RunFolder, files
from tests.test_run import experiment_of, start, stop_after, the_error_of, train_until, trained

FEW = {"steps": 30, "seeds": 1, "lrs": [0.01], "checkpoint_every": 10}
QUICK = ["--length", "8,12", "--samples", "20"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run, one that was interrupted at step 20 of 30, and a damaged one."""
    place = tmp_path_factory.mktemp("evaluated") / "runs"
    trained(place / "done", **FEW)
    train_until(start(experiment_of(**FEW), place / "deep/partly"), stop_after(20))
    shutil.copytree(place / "done", place / "broken")
    (place / "broken/weights.safetensors").write_bytes(b"none")
    return place


def row_of(length: int, replica: int = 0, **changed: float) -> EvaluationRow:
    scores = {"accuracy": 0.731, "low": 0.701, "high": 0.759, "symbol_accuracy": 0.9}
    scores |= {"prefix_accuracy": 0.5, "floor": 0.25, "chance": 0.2, "scaled": 0.66} | changed
    return EvaluationRow(
        length=length,
        sequences=2000,
        scaled_to_floor=0.6,
        replica=replica,
        seed=100 + replica,
        lr=0.0003,
        selected=replica == 0,
        **scores,
    )


def test_several_runs_are_one_table_and_a_damaged_one_stops_no_other(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    assert run(["eval", str(runs), *QUICK, "--json"]) == 1
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    by_name = {Path(each["run"]).name: each for each in found["runs"]}
    assert set(by_name) == {"done", "partly"}
    assert [row["length"] for row in by_name["done"]["rows"]] == [8, 12]
    assert by_name["done"]["unfinished"] is None
    assert by_name["partly"]["unfinished"] == {"step": 20, "steps": 30}
    (failed,) = found["failed"]
    assert Path(failed["run"]).name == "broken" and "is damaged" in failed["error"]
    assert "warning: not evaluated: " in printed.err
    last = printed.err.splitlines()[-1]
    assert last.startswith("error: 1 of 3 runs could not be evaluated: ") and "broken" in last
    assert run(["eval", str(runs / "deep"), str(runs / "done"), *QUICK]) == 0
    table = capsys.readouterr().out
    assert "deep/partly (unfinished: step 20 of 30)" in table and "│ done " in table
    assert table.count("seed 0, lr 0.01: ") == 2


def test_rows_of_several_runs_as_csv_name_their_run(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = [str(runs / name) for name in ("done", "deep/partly")]
    assert run(["eval", *asked, *QUICK, "--csv"]) == 0
    printed = capsys.readouterr()
    rows = list(csv.DictReader(io.StringIO(printed.out)))
    assert [(Path(row["run"]).name, row["length"], row["unfinished_step"]) for row in rows] == [
        ("done", "8", ""),
        ("done", "12", ""),
        ("partly", "8", "20"),
        ("partly", "12", "20"),
    ]


@pytest.mark.parametrize(
    "asked", ["--errors 1 --out a.md", "--stress --out a.csv", "--seconds 3", "--csv --out a.csv"]
)
def test_what_would_be_left_out_is_refused(
    asked: str, runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["eval", str(runs / "done"), *QUICK, *asked.split()]) == 1
    assert "leave" in (error := capsys.readouterr().err) or "give" in error
    assert run(["eval", str(runs / "done"), *QUICK, "--csv", "--out", "-"]) == 0


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("nowhere", "nowhere: there is no such folder: give run folders, or what holds them"),
        ("500", "500: there is no such folder; a length is given by --length 500"),
    ],
)
def test_a_place_without_runs_is_refused_in_one_line_before_any_run_is_evaluated(
    wrong: str, told: str, runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["eval", str(runs / "done"), wrong, *QUICK]) == 1
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err == f"error: {told}\n"


def test_an_unfinished_run_is_evaluated_at_its_best_weights_and_nothing_is_kept(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = runs / "deep/partly"
    before = {file.name: file.read_bytes() for file in path.iterdir()}
    assert run(["eval", str(path), *QUICK, "--stress", "--seconds", "0.2"]) == 0
    printed = capsys.readouterr().out
    assert "unfinished: step 20 of 30, 20 words" in printed and "worst-case horizon" in printed
    assert {file.name: file.read_bytes() for file in path.iterdir()} == before
    opened = Run.open(path, unfinished=True)
    assert opened.unfinished is not None and str(opened.unfinished) == "unfinished: step 20 of 30"
    assert opened.summary.steps == 20 and opened.selected.best_step == 15
    state = RunFolder(path).read(files.CHECKPOINT)
    assert state is not None
    best = state["trainer"]["best"]
    assert all(torch.equal(v, best[name][0]) for name, v in opened.model().named_parameters())
    message = the_error_of(RunError, lambda: Run.open(path).selected)
    assert "summary.json: is missing" in message


def test_a_finished_run_without_weights_is_not_to_be_resumed(runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs / "done", tmp_path / "done")
    (tmp_path / "done/weights.safetensors").unlink()
    with pytest.raises(RunError, match=r"is missing: `statetrack train --config .*config.yaml`"):
        Run.open(tmp_path / "done").model()


def test_a_run_without_best_weights_says_so(tmp_path: Path) -> None:
    path = tmp_path / "new"
    started = start(experiment_of(**FEW), path)
    assert "has no checkpoint yet" in the_error_of(
        RunError, lambda: Run.open(path, unfinished=True)
    )
    train_until(started, stop_after(5))
    message = the_error_of(RunError, lambda: Run.open(path, unfinished=True))
    assert "at step 5 of 30 no replica has a finite validation loss yet" in message
    state = RunFolder(path).read(files.CHECKPOINT)
    assert state is not None
    state["trainer"]["step"] = 31
    RunFolder(path).write(files.CHECKPOINT, state)
    message = the_error_of(RunError, lambda: Run.open(path, unfinished=True))
    assert "checkpoint.pt: is damaged (step 31 is none of 30)" in message


@pytest.mark.parametrize("width", [60, 80, 160])
def test_a_narrow_table_leaves_columns_out_and_no_digit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    rows = [row_of(length, replica) for length in (10, 100_000) for replica in (0, 1)]
    name = "modular-addition/a-model-with-a-very-long-name"
    out = console()
    out.print(evaluation_table("a title", rows))
    out.print(evaluations_table("a title", [(name, rows), ("b", rows[:1])]))
    printed = capsys.readouterr().out
    assert "…" not in printed and max(map(len, printed.splitlines())) <= width
    for shown in ("0.73 ", " 100,000 ", " 0.0003 "):
        assert printed.count(shown) == {"0.73 ": 9, " 100,000 ": 4, " 0.0003 ": 9}[shown]
    assert ("0.701-0.759" in printed) == (width > 60)
    said = [line for line in printed.splitlines() if line.startswith("no room for")]
    assert len(said) == {60: 2, 80: 2, 160: 0}[width]
    assert (printed.count(" scaled ") == 2) == (width == 160)
