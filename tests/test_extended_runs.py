"""Finished runs whose training is extended: `train --resume RUN --steps N`."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from statetrack.cli.app import run as command
from statetrack.errors import RunError, SettingsError, StatetrackWarning
from statetrack.report.training import _facts
from statetrack.runs import EvidenceRow, Run, RunFolder, files
from statetrack.training import TrainSettings, schedule_factor
from tests.run_files import append_rows, rows_in
from tests.setups import exhaustive_of
from tests.test_run import (
    assert_same_run,
    experiment_of,
    finish,
    start,
    stop_after,
    the_error_of,
    train_until,
    trained,
)

CONSTANT: dict[str, Any] = {"schedule": "constant", "validate_every": 10}


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of 20 steps under a cosine schedule."""
    return trained(tmp_path_factory.mktemp("short") / "run", steps=20).path


@pytest.fixture
def run_of_20(short: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(short, tmp_path / "copy"))


@pytest.mark.parametrize("finish_by", ["none", "exact"])
def test_a_constant_schedule_makes_an_extended_run_the_run_of_all_steps(tmp_path, finish_by):
    values = CONSTANT | {"finish": finish_by}
    trained(tmp_path / "run", steps=20, **values)
    extended = finish(Run.resume(tmp_path / "run", steps=60))
    assert_same_run(trained(tmp_path / "at-once", steps=60, **values), extended)


def test_any_extended_run_is_repeated_from_its_config(run_of_20, tmp_path):
    extended = finish(Run.resume(run_of_20, steps=40))
    extended = finish(Run.resume(extended.path, steps=60))
    config = extended.folder.read(files.CONFIG)
    assert (config["steps"], config["extended_at"]) == (60, [20, 40])
    again = start(experiment_of(**config), tmp_path / "again")
    assert_same_run(finish(again), extended)
    assert extended.summary.steps == 60
    steps = [record.step for record in extended.records if record.replica == 0]
    assert steps == sorted(set(steps)) and steps[-1] == 60


def test_the_schedule_of_each_part_is_that_of_a_training_to_its_end():
    whole, part = TrainSettings(steps=60), TrainSettings(steps=20)
    both = TrainSettings(steps=60, extended_at=(20,))
    for step in range(60):
        expected = schedule_factor(step, part if step < 20 else whole)
        assert schedule_factor(step, both) == expected


@pytest.mark.parametrize("at", [(0,), (60,), (40, 20), (20, 20)])
def test_steps_of_extensions_rise_below_the_last_one(at):
    with pytest.raises(SettingsError, match="extended_at"):
        TrainSettings(steps=60, extended_at=at)


def test_an_interrupted_extension_is_resumed(run_of_20, tmp_path):
    other = Path(shutil.copytree(run_of_20, tmp_path / "other"))
    train_until(Run.resume(run_of_20, steps=60), stop_after(17))
    between = Run.open(run_of_20, unfinished=True)
    assert str(between.unfinished) == "unfinished: step 37 of 60"
    resumed = finish(Run.resume(run_of_20, steps=60))  # naming the steps again does no harm
    assert_same_run(finish(Run.resume(other, steps=60)), resumed)


@pytest.mark.parametrize("point", ["summary", "weights", "history", "config"])
def test_an_extension_that_is_killed_as_it_begins_is_completed(run_of_20, point, monkeypatch):
    """After extension.json is written, whatever comes next fails once."""
    names = {"summary": "summary.json", "weights": "weights.safetensors"}
    names |= {"history": "extensions.jsonl", "config": "config.yaml"}

    def failing(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(of: Any, *given: Any, **more: Any) -> Any:
            if of.name == names[point]:
                raise KeyboardInterrupt
            return method(of, *given, **more)

        return call

    monkeypatch.setattr(Path, "unlink", failing(Path.unlink))
    for kind, name in ((files.RowFile, "append"), (files.RunFile, "write")):
        monkeypatch.setattr(kind, name, failing(getattr(kind, name)))
    with pytest.raises(KeyboardInterrupt):
        Run.resume(run_of_20, steps=40)
    monkeypatch.undo()
    assert RunFolder(run_of_20).extending
    resumed = finish(Run.resume(run_of_20))
    assert resumed.folder.read(files.CONFIG)["extended_at"] == [20]
    assert len(rows_in(resumed.folder, "extensions.jsonl")) == 1
    assert resumed.finished and not resumed.folder.extending


def test_the_history_says_where_each_extension_was_begun(run_of_20):
    extended = finish(Run.resume(run_of_20, steps=40, command="statetrack train --resume"))
    (row,) = rows_in(extended.folder, "extensions.jsonl")
    assert (row["from_step"], row["to_step"]) == (20, 40)
    assert row["command"] == "statetrack train --resume"
    assert {"statetrack", "torch", "device", "started"} <= set(row)
    assert "extended at 20; the schedule of each part" in _facts(extended.experiment)["steps"]


def test_scores_and_evidence_of_the_shorter_training_are_not_counted_any_more(run_of_20):
    run = Run.open(run_of_20)
    run.evaluate([8], num_words=10)
    run.add_evidence(exhaustive_of(), run.selected)
    unhashed = json.loads(json.dumps(rows_in(run.folder, "eval.jsonl")[0]))
    del unhashed["weights"]  # as an earlier version wrote it
    append_rows(run.folder, "eval.jsonl", [unhashed])
    old = rows_in(run.folder, "evidence.jsonl")[0] | {"weights": None}
    run.folder.append(files.EVIDENCE, [EvidenceRow.from_json(old, "here")])
    assert len(run.rows) == 2 and run.evidence()
    extending = Run.resume(run_of_20, steps=40)
    for state in (extending, finish(extending)):
        with pytest.warns(StatetrackWarning, match="2 of its rows are about other weights"):
            assert state.rows == []
        with pytest.warns(StatetrackWarning, match=r"evidence.jsonl: 2 of its rows are about oth"):
            assert state.evidence() == []
    extending.evaluate([8], num_words=10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert len(extending.rows) == 1
        assert len(rows_in(RunFolder(run_of_20), "eval.jsonl")) == 3  # nothing is thrown away


def test_the_best_weights_of_both_parts_are_selected(run_of_20):
    before = Run.open(run_of_20).summary
    after = finish(Run.resume(run_of_20, steps=40)).summary
    for old, new in zip(before.replicas, after.replicas, strict=True):
        assert new.validation_accuracy >= old.validation_accuracy or new.finish is not None
        assert new.best_step >= old.best_step


def refused(path: Path, steps: int) -> str:
    message = the_error_of(RunError, lambda: Run.resume(path, steps=steps))
    assert "\n" not in message and RunFolder(path).path == path
    return message


@pytest.mark.parametrize("steps", [1, 19, 20])
def test_a_number_of_steps_that_is_not_more_is_refused(run_of_20, steps):
    assert f"has 20 steps, and {steps} are not more" in refused(run_of_20, steps)
    assert Run.open(run_of_20).finished


def test_what_cannot_be_extended_is_refused_and_stays_as_it_is(run_of_20, tmp_path):
    last = run_of_20 / "last.pt"
    content = last.read_bytes()
    last.write_bytes(content[:-200])
    assert "last.pt: is damaged" in refused(run_of_20, 40)
    last.unlink()
    assert "has no last.pt" in refused(run_of_20, 40)
    last.write_bytes(content)
    RunFolder(run_of_20).write(files.CELL, {})
    assert "is a point of a suite" in refused(run_of_20, 40)
    assert Run.open(run_of_20).finished and Run.open(run_of_20).model() is not None
    stopped = trained(tmp_path / "stopped", steps=40, validate_every=5, stop_loss=1e9)
    assert "every replica stopped before its last step" in refused(stopped.path, 80)
    begun = start(experiment_of(), tmp_path / "begun")
    train_until(begun, stop_after(20))
    assert "has not finished its 60 steps" in refused(begun.path, 80)


def test_the_command_extends_a_run_and_refuses_other_settings(run_of_20, capsys, monkeypatch):
    monkeypatch.chdir(run_of_20.parent)
    assert command(["train", "--resume", "copy", "--steps", "40"]) == 0
    printed = capsys.readouterr()
    assert "40 steps (extended at 20) in" in printed.out and Run.open("copy").summary.steps == 40
    assert command(["train", "--resume", "copy", "--steps", "40"]) == 1
    assert "nothing to extend" in capsys.readouterr().err
    assert command(["train", "--resume", "copy", "--lrs", "0.1"]) == 1
    assert "only --steps can be raised: leave out --lrs" in capsys.readouterr().err
    assert command(["eval", "copy", "--length", "8", "--samples", "5", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["extended_at"] == [20]
