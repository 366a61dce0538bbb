"""Logs besides metrics.jsonl: TensorBoard's event files and wandb's offline runs, read back."""

from __future__ import annotations

import importlib.util
import json
import os
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from statetrack.cli.app import run as command
from statetrack.errors import SettingsError, StatetrackWarning
from statetrack.runs import LOGS, Run, find_run_folders, logging
from statetrack.runs.loggers.tensorboard import TensorBoard
from statetrack.sweep import Suite, points_of
from statetrack.sweep.work import run_point
from tests.run_files import append_rows

SMALL: dict[str, Any] = {
    "model": "bilinear",
    "hidden": 2,
    "task": "parity",
    "steps": 40,
    "lrs": [0.01, 0.1],
    "batch_size": 4,
    "validation_words": 8,
    "validate_every": 20,
    "finish": "none",
}


def events_of(run: Run) -> dict[str, dict[str, list[tuple[int, float]]]]:
    """The scalars in the event files of every replica, by tag."""
    from tensorboardX.event_file_writer import EventFileWriter  # noqa: F401
    from tensorboardX.proto import event_pb2

    found: dict[str, dict[str, list[tuple[int, float]]]] = {}
    for file in sorted((run.path / "tensorboard").rglob("events.*")):
        tags = found.setdefault(file.parent.name, {})
        content, place = file.read_bytes(), 0
        while place < len(content):  # length, its checksum, the event, its checksum
            size = int.from_bytes(content[place : place + 8], "little")
            event = event_pb2.Event()
            event.ParseFromString(content[place + 12 : place + 12 + size])
            for value in event.summary.value:
                if value.HasField("simple_value"):
                    tags.setdefault(value.tag, []).append((event.step, value.simple_value))
            place += 16 + size
    return found


def expected_of(run: Run, replica: int, name: str) -> list[tuple[int, Any]]:
    """What metrics.jsonl has of a replica under a name."""
    records = [one for one in run.records if one.replica == replica]
    values = [(one.step, getattr(one, name)) for one in records]
    return [(step, pytest.approx(value, rel=1e-5)) for step, value in values if value is not None]


@pytest.fixture
def interrupted(tmp_path):
    """A run of two replicas that was logged, interrupted after a record that was lost, resumed."""
    pytest.importorskip("tensorboardX")
    run = Run.start(out=tmp_path / "run", **SMALL)
    steps = 0

    def stop() -> bool:
        nonlocal steps
        steps += 1
        return steps == 15

    list(run.train(stop, log=["tensorboard"]))
    assert not run.finished and {one.step for one in run.records} == {10}
    # a killed process leaves records and events behind that its checkpoint does not have
    append_rows(
        run.folder, "metrics.jsonl", [{"step": 20, "replica": 0, "loss": 9.0, "accuracy": 0.0}]
    )
    with logging(run, ["tensorboard"]) as logs:
        logs.begin()
    assert (20, 9.0) in events_of(run)["replica-0_seed-0_lr-0.01"]["loss"]
    run = Run.resume(run.path)
    list(run.train(log=["tensorboard"]))
    return run


def test_a_resumed_run_has_every_record_in_tensorboard_once(interrupted):
    found = events_of(interrupted)
    assert {*found} == {"replica-0_seed-0_lr-0.01", "replica-1_seed-0_lr-0.1"}
    for replica, tags in enumerate(found[name] for name in sorted(found)):
        for name in ("loss", "accuracy", "validation_loss", "validation_accuracy"):
            assert tags[name] == expected_of(interrupted, replica, name)
        assert [step for step, _ in tags["lr"]] == [10, 20, 30, 40]
        rates = [rate for _, rate in tags["lr"]]
        assert rates == sorted(rates, reverse=True), "the cosine schedule falls"
        ((step, best),) = tags["outcome/validation_accuracy"]
        outcome = interrupted.summary.replicas[replica]
        assert step == outcome.best_step and best == pytest.approx(outcome.validation_accuracy)


def test_logs_change_nothing_of_a_run_and_are_no_runs_themselves(interrupted, tmp_path):
    alone = Run.start(out=tmp_path / "alone", **SMALL)
    list(alone.train())
    assert alone.records == interrupted.records
    assert (alone.path / "config.yaml").read_bytes() == (
        interrupted.path / "config.yaml"
    ).read_bytes()
    (interrupted.path / "wandb" / "files").mkdir(parents=True)
    (interrupted.path / "wandb" / "files" / "config.yaml").touch()
    assert find_run_folders([interrupted.path]) == [interrupted.path]


def test_a_point_of_a_sweep_logs_its_tests_too(tmp_path):
    pytest.importorskip("tensorboardX")
    suite = Suite(
        title="One point",
        settings={name: SMALL[name] for name in SMALL if name not in ("model", "task", "hidden")},
        models={"bilinear": {"model": "bilinear", "hidden": 2}},
        tasks={"parity": "parity"},
        length=20,
        curve_lengths=(10,),
        samples=10,
    )
    (point,) = points_of(suite, tmp_path / "runs", {})
    result = run_point(suite, point, log=("tensorboard",))
    assert result is not None
    found = events_of(Run.open(point.path))
    for row in result.curves:
        (tags,) = (
            tags for name, tags in found.items() if name.startswith(f"replica-{row.replica}_")
        )
        assert (row.length, pytest.approx(row.accuracy)) in tags["test/parity/accuracy"]
        assert len(tags["test/parity/accuracy"]) == 2 and len(tags["loss"]) == 4


def test_a_log_that_fails_is_left_behind_and_training_goes_on(tmp_path, monkeypatch):
    pytest.importorskip("tensorboardX")

    def full(self: TensorBoard, scalars: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(TensorBoard, "write", full)
    run = Run.start(out=tmp_path / "run", **SMALL)
    with pytest.warns(StatetrackWarning, match="the log 'tensorboard' is given up"):
        list(run.train(log=["tensorboard"]))
    assert run.finished and len(run.records) == 8


@pytest.mark.parametrize(("name", "package"), [("tensorboard", "tensorboardX"), ("wandb", "wandb")])
def test_a_log_without_its_package_says_what_installs_it_before_training(
    name, package, tmp_path, monkeypatch, capsys
):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda given, *rest: None if given == package else find(given)
    )
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingsError, match=rf"pip install '.\[{name}\]'"):
        LOGS[name].require()
    assert command(["train", "--model", "bilinear", "--steps", "5", "--log", name]) == 1
    printed = capsys.readouterr().err
    assert f".[{name}]" in printed and len(printed.splitlines()) == 1
    assert not Path("runs").exists()


def test_an_unknown_log_is_refused_with_the_nearest(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert command(["train", "--log", "tensorbord"]) == 2
    assert "tensorboard" in capsys.readouterr().err and not Path("runs").exists()


def records_of(content: bytes) -> Iterator[bytes]:
    """The records of a .wandb file: LevelDB's log format, behind a header of 7 bytes."""
    place, record = 7, b""
    while place + 7 <= len(content):
        if (left := 32768 - place % 32768) < 7:  # the rest of a block
            place += left
            continue
        size, kind = int.from_bytes(content[place + 4 : place + 6], "little"), content[place + 6]
        record += content[place + 7 : place + 7 + size]
        place += 7 + size
        if kind in (1, 4):  # whole, or its last part
            yield record
            record = b""


def kept_by_wandb(file: Path) -> tuple[list[tuple[int, float]], dict[str, Any]]:
    """The losses of the second replica by step in a .wandb file, and the summary."""
    from wandb.proto import wandb_internal_pb2

    losses: list[tuple[int, float]] = []
    outcome: dict[str, Any] = {}
    for content in records_of(file.read_bytes()):
        record = wandb_internal_pb2.Record()
        record.ParseFromString(content)
        values = {
            "/".join(item.nested_key) or item.key: json.loads(item.value_json)
            for item in record.history.item
        }
        if values:
            losses.append((values["_step"], values["loss/replica-1_seed-0_lr-0.1"]))
        for item in record.summary.update:
            outcome["/".join(item.nested_key) or item.key] = json.loads(item.value_json)
    return losses, outcome


def test_wandb_keeps_an_offline_run_of_every_record_and_the_outcome(tmp_path, monkeypatch):
    pytest.importorskip("wandb")
    for name in [name for name in os.environ if name.startswith("WANDB")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("WANDB_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("WANDB_CACHE_DIR", str(tmp_path / "cache"))
    run = Run.start(out=tmp_path / "run", **SMALL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of wandb's own
        list(run.train(log=["wandb"]))
    (file,) = (run.path / "wandb").glob("offline-run-*/*.wandb")
    end = time.monotonic() + 20
    losses, outcome = kept_by_wandb(file)
    while not (losses and outcome) and time.monotonic() < end:  # a process of wandb's own writes
        time.sleep(0.1)
        losses, outcome = kept_by_wandb(file)
    assert losses == expected_of(run, 1, "loss")
    best = "outcome/validation_accuracy/replica-1_seed-0_lr-0.1"
    assert outcome[best] == pytest.approx(run.summary.replicas[1].validation_accuracy)
