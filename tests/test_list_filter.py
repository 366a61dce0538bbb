"""`list --filter`: which rows of a list are wanted, by words and conditions; and `list runs`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from statetrack.catalogue.lists import conditions_of
from statetrack.cli.app import run
from statetrack.errors import SettingsError
from tests.test_comparison import make_run, row
from tests.test_run import the_error_of

ROWS: list[dict[str, Any]] = [
    {"name": "s3", "states": 6, "title": "Products of 3 points", "linear": True, "group": ["S3"]},
    {"name": "s35", "states": None, "title": "Linear counts", "linear": None, "group": ["S35"]},
    {"name": "own", "states": 12, "title": "points", "linear": False, "group": []},
    {"name": "fsm", "states": 9, "title": "one none", "linear": False, "group": None},
]


def names(*written: str) -> list[str]:
    found = conditions_of(written, list(ROWS[0]))
    return [row["name"] for row in ROWS if all(each.holds(row) for each in found)]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (["POINTS"], ["s3", "own"]),
        (["s3"], ["s3", "s35"]),
        (["name=s3"], ["s3"]),
        (["group=s3"], ["s3"]),
        (["group!=S3"], ["s35", "own", "fsm"]),
        (["group=none"], ["own"]),
        (["group!=none"], ["s3", "s35", "fsm"]),
        (["group=null"], ["fsm"]),
        (["states=none"], ["s35"]),
        (["states!=none"], ["s3", "own", "fsm"]),
        (["title=none"], ["fsm"]),
        (["linear"], ["s3"]),
        (["linear=no"], ["own", "fsm"]),
        (["linear=none"], ["s35"]),
        (["states<=6"], ["s3"]),
        (["states>6.5"], ["own", "fsm"]),
        (["states!=6"], ["s35", "own", "fsm"]),
        (["points states<100", "linear=no"], ["own"]),
        (['"title=3 points"'], ["s3"]),
        (["a:m=5"], []),
        (["modular-addition:m=5"], []),
    ],
)
def test_every_word_stands_in_a_row_and_every_condition_holds(written, expected):
    assert names(*written) == expected


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("state<=6", "there is no 'state' here. Did you mean 'states'? There are name, states,"),
        ("states<=six", "--filter states<=six: 'six' is no number"),
        ("states<=nan", "'nan' is no number"),
        ("title<=6", "--filter title<=6: 'title' is no number: ask with = or !="),
        ("states==6", "--filter states==6: no value begins with =: signs are ="),
        ("states=>6", "no value begins with >"),
        ("states<>6", "no value begins with >"),
        ("states=six", "--filter states=six: 'states' is a number"),
        ("states!=~6", "'states' is a number"),
        ("linear=maybe", "--filter linear=maybe: 'linear' is yes or no"),
        ("states=", "--filter states=: a value is to stand behind the sign"),
        ('"title=3', 'a quotation mark has no end'),
    ],
)  # fmt: skip
def test_a_filter_that_means_nothing_is_refused_in_one_line(written, said):
    message = the_error_of(SettingsError, lambda: names(written))
    assert said in message and "\n" not in message


def listed(capsys: pytest.CaptureFixture[str], *argv: str) -> list[dict[str, Any]]:
    assert run(["list", *argv, "--json"]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return found


def test_models_and_tasks_are_found_by_their_properties_and_algebra(capsys):
    linear = [each["name"] for each in listed(capsys, "models", "--filter", "linear")]
    assert "mamba2" in linear and not {"lstm", "transformer"} & {*linear}
    found = listed(capsys, "tasks", "--filter", "group=A5 kind=alternating states<100")
    assert [each["name"] for each in found] == ["a5"]
    assert found[0]["group"] == ["A5"] and "solvable" not in found[0]


def test_without_a_match_the_list_says_so_and_json_is_empty(capsys):
    assert listed(capsys, "protocols", "--filter", "zzz") == []
    assert run(["list", "protocols", "--filter", "zzz"]) == 0
    assert capsys.readouterr().out == "none of the protocols matches --filter zzz\n"
    assert run(["list", "suites", "--filter", "model<3"]) == 1
    assert "Did you mean 'models'?" in capsys.readouterr().err
    assert run(["list", "--filter", "x"]) == 1
    assert "say which list" in capsys.readouterr().err


def test_runs_are_listed_with_their_accuracy_at_the_longest_length_wherever_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    make_run("one", "lstm", "s3", [row(500, 80), row(500, 90), row(100, 100)], replicas=2)
    other = [
        row(500, 20, replica=1),
        row(900, 100, task="parity"),
        row(800, 1) | {"words": "group"},
    ]
    folder = make_run("two", "gru", "s3", [row(500, 70), *other], replicas=2).path
    Path("sweeps").mkdir()
    folder.rename("sweeps/point")
    found = {each["run"]: each for each in listed(capsys, "runs")}
    assert {*found} == {"runs/one", "sweeps/point"}
    assert (found["runs/one"]["accuracy"], found["runs/one"]["length"]) == (0.9, 500)
    assert (found["sweeps/point"]["accuracy"], found["sweeps/point"]["length"]) == (0.7, 500)
    assert found["runs/one"]["started"].startswith("20")
    assert [each["run"] for each in listed(capsys, "runs", "--runs", "runs")] == ["runs/one"]
    (one,) = listed(capsys, "runs", "--filter", "accuracy<0.8 model=gru")
    assert one["run"] == "sweeps/point"
    monkeypatch.setenv("COLUMNS", "60")
    assert run(["list", "runs"]) == 0
    shown = capsys.readouterr().out
    assert "0.9000     500" in shown and "sweeps/point  gru    s3" in shown


def test_of_a_run_with_a_long_name_the_accuracy_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    make_run("bilinear-cp_modular-addition_20261125-213652", "bilinear-cp", "s3", [row(500, 90)])
    assert run(["list", "runs"]) == 0
    shown = capsys.readouterr().out
    assert "213652  bilinear-cp    0.9000     500" in shown


def test_a_run_is_listed_with_its_accuracy_however_its_task_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    make_run("one", "gru", "dihedral:n=4", [row(500, 60, task="dihedral")])
    (one,) = listed(capsys, "runs")
    assert (one["task"], one["accuracy"], one["length"]) == ("dihedral:n=4", 0.6, 500)
