"""A run: from settings to a folder, interrupted and resumed, evaluated."""

from __future__ import annotations

import json
import os
import shutil
import signal
import textwrap
import threading
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

import statetrack
from statetrack.errors import (
    DeviceError,
    RunError,
    SettingsError,
    StatetrackError,
    UnknownNameError,
)
from statetrack.evaluation import evaluate
from statetrack.models import MODELS
from statetrack.plugins import load_plugin
from statetrack.runs import Experiment, Run, RunFolder, files
from statetrack.training import TrainSettings
from tests.faults.processes import run_in_child
from tests.new_process import forget_plugins
from tests.run_files import append_rows, json_in, rows_in, write_json
from tests.setups import Setup

SMALL: dict[str, Any] = {
    "model": "bilinear",
    "task": "modular-addition:m=3",
    "hidden": 6,
    "steps": 60,
    "batch_size": 8,
    "train_length": "2-6",
    "validate_every": 15,
    "validation_words": 40,
    "checkpoint_every": 20,
    "seeds": 2,
    "lrs": [0.003, 0.01],
    "device": "cpu",
}


def experiment_of(**values: Any) -> Experiment:
    return Experiment.from_values({**SMALL, **values}, "mine.yaml")


def start(experiment: Experiment, out: Path | None) -> Run:
    return Run.start(experiment, out=out, command="statetrack train")


def finish(run: Run) -> Run:
    """Train to the end."""
    for _ in run.train():
        pass
    assert run.finished
    return run


def trained(out: Path, **values: Any) -> Run:
    return finish(start(experiment_of(**values), out))


def train_until(run: Run, stop: Callable[[], bool]) -> None:
    """Train until asked to stop, before the end."""
    for _ in run.train(stop):
        pass
    assert not run.finished


def stop_after(steps: int) -> Callable[[], bool]:
    """False until it is asked for that many times, and True from then on."""
    asked = count(1)
    return lambda: next(asked) >= steps


def the_error_of(kind: type[StatetrackError], action: Callable[[], object]) -> str:
    with pytest.raises(kind) as caught:
        action()
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    return message


# --- settings ---


def test_settings_go_to_values_and_back() -> None:
    made = experiment_of(additive="input", curriculum=0.25)
    again = Experiment.from_values(yaml.safe_load(yaml.safe_dump(made.values())), "config.yaml")
    assert again == made
    assert again.values() == made.values()


def test_what_is_left_out_has_the_defaults_of_the_model_and_then_of_all() -> None:
    for name, model in MODELS.items():
        training = Experiment.from_values({"model": name}, "mine.yaml").training
        defaults = TrainSettings().model_dump() | dict(model.training_defaults)
        assert training.model_dump() == TrainSettings.model_validate(defaults).model_dump()


def test_what_is_given_goes_before_the_defaults_of_the_model() -> None:
    given = experiment_of(steps=7, lrs=[0.5]).training
    assert (given.steps, given.lrs) == (7, (0.5,))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"hiden": 3}, "mine.yaml: unknown setting 'hiden'. Did you mean 'hidden'?"),
        ({"rank": 3}, "mine.yaml: unknown setting 'rank'."),
        ({"hidden": "wide"}, "mine.yaml: 'hidden': "),
        ({"hidden": 0}, "mine.yaml: 'hidden': "),
        ({"lrs": [0.1, 0.1]}, "mine.yaml: 'lrs': a learning rate appears twice"),
        ({"lrs": []}, "mine.yaml: 'lrs': learning rates must be above 0"),
        ({"lrs": (0.1, 0.0)}, "mine.yaml: 'lrs': learning rates must be above 0 (given: 0.1,0.0)"),
        ({"loss": "hinge"}, "mine.yaml: 'loss': "),
        ({"device": "tpu"}, "mine.yaml: 'device': "),
    ],
)
def test_a_wrong_setting_is_one_line_with_its_place(values: dict[str, Any], message: str) -> None:
    assert the_error_of(SettingsError, lambda: experiment_of(**values)).startswith(message)


def test_an_experiment_needs_a_model_that_there_is() -> None:
    message = the_error_of(SettingsError, lambda: Experiment.from_values({}, "mine.yaml"))
    assert message == "mine.yaml: 'model' is missing"
    message = the_error_of(UnknownNameError, lambda: experiment_of(model="bilinera"))
    assert "Did you mean 'bilinear'?" in message


def test_replicas_are_every_seed_at_every_learning_rate() -> None:
    replicas = experiment_of(seed=4).replicas
    assert [(r.index, r.seed, r.lr) for r in replicas] == [
        (0, 4, 0.003),
        (1, 5, 0.003),
        (2, 4, 0.01),
        (3, 5, 0.01),
    ]


def test_supervision_and_lengths_are_the_tasks_own_unless_they_are_given() -> None:
    task = Setup.of(experiment_of(task="flip-flop", train_length="task"))
    own = task.task_words
    assert (own.spec.supervision, str(own.lengths)) == (task.task.spec.supervision, "2-64")
    given = Setup.of(experiment_of(supervision="last", train_length="7"))
    words = given.task_words
    assert (words.spec.supervision, str(words.lengths)) == ("last", "7")
    batches, validation = given.words()
    assert (batches.block(0, 3).scored.sum(-1) == 1).all()
    assert (validation.scored.sum(-1) == 1).all()


# --- starting ---


def test_a_started_run_holds_all_that_is_known_beforehand(tmp_path: Path) -> None:
    made = experiment_of(task="random-fsm:states=4,symbols=2,seed=5")
    folder = start(made, tmp_path / "run").folder
    assert {path.name for path in folder.path.iterdir()} == {
        "config.yaml",
        "environment.json",
        "task.yaml",
    }
    about = json_in(folder, "environment.json")
    assert about["statetrack"] == statetrack.__version__
    assert about["torch"] == str(torch.__version__)
    assert about["device"] == "cpu"
    assert about["command"].startswith("statetrack")
    assert set(about) >= {"python", "numpy", "platform", "threads", "started"}
    again = Run.open(folder.path)
    assert (again.experiment, again.folder) == (made, folder)
    assert again.task.automaton.num_states == 4


def test_a_run_from_python_names_no_command_and_takes_settings_by_name(tmp_path: Path) -> None:
    run = Run.start(**SMALL, out=tmp_path / "run")
    assert run.experiment == experiment_of()
    assert run.folder.read(files.ENVIRONMENT)["command"] is None
    message = the_error_of(SettingsError, lambda: Run.start(**SMALL, hiden=3))
    assert message == "Run.start: unknown setting 'hiden'. Did you mean 'hidden'?"
    message = the_error_of(SettingsError, lambda: Run.start(experiment_of(), steps=3))
    assert "not both" in message


def test_a_run_keeps_its_task_when_the_tasks_own_file_is_gone(tmp_path: Path) -> None:
    task = tmp_path / "mine.yaml"
    task.write_text(
        textwrap.dedent(
            """
            title: Turnstile
            version: 1
            reference: "own example"
            automaton:
              kind: transitions
              start: locked
              states:
                locked:   {coin: unlocked, push: locked}
                unlocked: {coin: unlocked, push: locked}
            """
        )
    )
    run = start(experiment_of(task=str(task)), tmp_path / "run")
    task.unlink()
    again = Run.open(run.path)
    assert (again.task.automaton.delta == run.task.automaton.delta).all()
    assert again.task.automaton.symbols == ("coin", "push")
    finish(again)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ({"task": "modular-adition"}, StatetrackError),
        ({"train_length": "10-2"}, SettingsError),
        ({"model": "bilinear-block", "hidden": 7, "block_size": 2}, SettingsError),
        ({"train_samples": 10_000}, SettingsError),
        ({"device": "cuda:99"}, DeviceError),
    ],
    ids=str,
)
def test_what_would_fail_later_fails_before_there_is_a_folder(
    tmp_path: Path, values: dict[str, Any], kind: type[StatetrackError]
) -> None:
    the_error_of(kind, lambda: start(experiment_of(**values), tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def test_a_run_never_starts_where_another_one_is(tmp_path: Path) -> None:
    folder = start(experiment_of(), tmp_path / "run").folder
    before = (folder.path / "config.yaml").read_bytes()
    other = experiment_of(hidden=9)
    assert "not empty" in the_error_of(RunError, lambda: start(other, folder.path))
    assert (folder.path / "config.yaml").read_bytes() == before


def test_runs_without_a_name_of_their_own_never_share_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made = experiment_of(task="product(parity,cyclic:n=3)")
    paths = {start(made, None).path for _ in range(3)}
    assert len(paths) == 3
    assert all(path.parent == Path("runs") and path.name.startswith("bilinear_") for path in paths)


# --- training ---


def test_a_run_takes_the_next_name_where_another_process_takes_its_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make, tried = RunFolder.start, []

    def after_another(path: Path, **files: Any) -> RunFolder:
        tried.append(path)
        if len(tried) == 1:
            make(path, **files)
        return make(path, **files)

    monkeypatch.setattr(RunFolder, "start", after_another)
    run = Run.start(experiment_of())
    assert tried == [tried[0], Path(f"{tried[0]}-2")] and run.path == tried[1]
    message = the_error_of(RunError, lambda: start(experiment_of(), tried[0]))
    assert "already exists" in message and len(tried) == 2  # refused before anything is made


def test_a_finished_run_holds_its_metrics_weights_and_summary(tmp_path: Path) -> None:
    folder = trained(tmp_path / "run").folder
    assert folder.finished and folder.read(files.CHECKPOINT) is None
    rows = rows_in(folder, "metrics.jsonl")
    assert {row["replica"] for row in rows} == {0, 1, 2, 3}
    assert sorted({row["step"] for row in rows if "validation_loss" in row}) == [15, 30, 45, 60]
    assert all(set(row) >= {"step", "replica", "loss", "accuracy"} for row in rows)
    summary = json_in(folder, "summary.json")
    assert summary["steps"] == 60 and summary["seconds"] > 0
    assert {len(value) for value in folder.read(files.WEIGHTS).values()} == {4}
    for outcome in summary["replicas"]:
        validated = [
            (row["validation_accuracy"], -row["validation_loss"], row["step"])
            for row in rows
            if row["replica"] == outcome["replica"] and "validation_loss" in row
        ]
        assert max(validated) == (
            outcome["validation_accuracy"],
            -outcome["validation_loss"],
            outcome["best_step"],
        )
    best = max(summary["replicas"], key=lambda o: (o["validation_accuracy"], -o["validation_loss"]))
    assert summary["selected"] == best["replica"]


def test_a_replica_that_diverged_is_never_selected(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", lrs=[1e30, 0.01], seeds=1)
    assert [outcome.stopped for outcome in run.summary.replicas] == ["diverged", ""]
    assert run.selected.replica == 1
    assert all(value.isfinite().all() for value in run.folder.read(files.WEIGHTS).values())
    (row,) = run.evaluate([9], num_words=20, everyone=True)
    assert row.replica == 1 and row.selected
    message = the_error_of(RunError, lambda: run.model(0))
    assert "replica 0 (lr 1e+30) diverged" in message and run.model(1)


@pytest.fixture(scope="module")
def diverged(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of which no replica has a finite validation loss."""
    return trained(tmp_path_factory.mktemp("diverged") / "run", lrs=[1e30], patience=1)


def test_of_a_run_that_diverged_nothing_is_selected_or_scored(diverged: Run) -> None:
    assert diverged.summary.selected is None and diverged.summary.chosen is None
    assert [outcome.stopped for outcome in diverged.summary.replicas] == ["diverged"] * 2
    for action in (
        lambda: diverged.selected,
        diverged.model,
        lambda: diverged.evaluate([9], num_words=20),
    ):
        message = the_error_of(RunError, action)
        assert "the run diverged" in message and "lower lrs" in message and "clip=1.0" in message
    everyone = diverged.evaluate([9], num_words=20, everyone=True)
    assert len(everyone) == 0 and not diverged.rows
    assert "diverged" in the_error_of(RunError, lambda: everyone.selected)


def test_an_earlier_summary_that_selects_a_diverged_replica_selects_none(
    diverged: Run, tmp_path: Path
) -> None:
    folder = shutil.copytree(diverged.path, tmp_path / "old")
    content = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    (folder / "summary.json").write_text(json.dumps(content | {"selected": 1}), encoding="utf-8")
    assert Run.open(folder).summary.selected is None


def test_a_summary_that_selects_none_of_trained_replicas_is_damaged(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", steps=5, seeds=1)
    content = json_in(run.folder, "summary.json")
    write_json(run.folder, "summary.json", content | {"selected": None})
    assert "replica 0 did not diverge" in the_error_of(RunError, lambda: run.summary)
    write_json(run.folder, "summary.json", content | {"replicas": []})
    assert "there is none" in the_error_of(RunError, lambda: run.summary)


def test_a_finished_run_is_not_trained_again(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", steps=5)
    assert "has finished" in the_error_of(RunError, run.train)
    assert "has finished" in the_error_of(RunError, lambda: Run.resume(run.path))


def assert_same_run(one: Run, other: Run) -> None:
    """Bit-identical weights, and the same rows of metrics."""
    weights = other.folder.read(files.WEIGHTS)
    assert all(
        torch.equal(value, weights[name]) for name, value in one.folder.read(files.WEIGHTS).items()
    )
    assert one.records == other.records
    assert one.summary.replicas == other.summary.replicas
    assert one.summary.selected == other.summary.selected


@pytest.mark.parametrize("stops", [[1], [25], [20, 13, 26]], ids=str)
def test_a_run_that_was_stopped_and_resumed_is_the_run_that_was_not(
    tmp_path: Path, stops: list[int]
) -> None:
    straight = trained(tmp_path / "straight")
    start(experiment_of(), tmp_path / "stopped")
    for number in stops:
        train_until(Run.resume(tmp_path / "stopped"), stop_after(number))
    assert_same_run(straight, finish(Run.resume(tmp_path / "stopped")))


@pytest.fixture
def times(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The steps at which checkpoints are written."""
    steps: list[int] = []
    write = files.StateFile.write

    def watched(file: files.StateFile, path: Path, state: Any, identity: Any) -> None:
        steps.append(state["trainer"]["step"])
        write(file, path, state, identity)

    monkeypatch.setattr(files.StateFile, "write", watched)
    return steps


def test_one_checkpoint_is_written_of_a_step(tmp_path: Path, times: list[int]) -> None:
    trained(tmp_path / "run", loss="squared-error", finish="exact")
    assert times == [20, 40, 60]


def test_a_checkpoint_is_also_written_when_the_last_one_is_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: list[int]
) -> None:
    run = start(experiment_of(checkpoint_every=0), tmp_path / "run")
    clock = count(100.0, 4.0)
    monkeypatch.setattr("statetrack.runs.run.time.perf_counter", lambda: next(clock))
    for _ in run.train(checkpoint_seconds=10.0):
        pass
    assert len(times) > 1 and times == sorted(times) and run.finished
    assert "checkpoint_seconds" not in run.folder.read(files.CONFIG)


def test_leaving_the_loop_leaves_a_checkpoint_to_go_on_from(tmp_path: Path) -> None:
    straight = trained(tmp_path / "straight")
    run = start(experiment_of(checkpoint_every=0), tmp_path / "left")
    for record in run.train():
        if record.step >= 30:
            break
    reached = run.folder.read(files.CHECKPOINT)
    assert reached is not None and reached["trainer"]["step"] == 30
    assert_same_run(straight, finish(Run.resume(run.path)))


def test_leaving_the_loop_at_the_last_step_finishes_the_run(tmp_path: Path) -> None:
    run = start(experiment_of(steps=30), tmp_path / "run")
    for record in run.train():
        if record.step == 30:
            break
    assert run.finished and run.folder.read(files.CHECKPOINT) is None


def test_what_was_recorded_after_the_last_checkpoint_is_recorded_once(tmp_path: Path) -> None:
    """A crash at step 33 goes on from the checkpoint of step 20."""
    after = stop_after(33)

    def crash() -> bool:
        if after():
            raise ZeroDivisionError
        return False

    straight = trained(tmp_path / "straight")
    run = start(experiment_of(), tmp_path / "crashed")
    with pytest.raises(ZeroDivisionError):
        list(run.train(crash))
    assert run.records[-1].step == 30
    assert_same_run(straight, finish(Run.resume(run.path)))


def test_a_stop_at_the_very_end_finishes_the_run(tmp_path: Path) -> None:
    run = start(experiment_of(steps=12, finish="none"), tmp_path / "run")
    list(run.train(stop_after(12)))
    assert run.finished


def test_a_killed_process_loses_nothing_but_steps(tmp_path: Path) -> None:
    start(experiment_of(steps=100_000, checkpoint_every=20), tmp_path / "run")
    checkpoint = tmp_path / "run" / "checkpoint.pt"

    def kill_once_a_checkpoint_is_there() -> None:
        while not checkpoint.exists():
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGKILL)

    def train() -> None:
        threading.Thread(target=kill_once_a_checkpoint_is_there, daemon=True).start()
        for _ in Run.resume(tmp_path / "run").train():
            pass

    assert run_in_child(train).was_killed
    folder = RunFolder.open(tmp_path / "run")
    reached = folder.read(files.CHECKPOINT)
    assert reached is not None and not folder.finished
    step = reached["trainer"]["step"]
    assert step >= 20 and step % 20 == 0
    run = Run.resume(tmp_path / "run")
    train_until(run, stop_after(20))
    steps = [record.step for record in run.records if record.replica == 0]
    assert steps == sorted(set(steps)) and steps[-1] == step + 20


# --- evaluating ---


def test_evaluation_gives_a_row_for_each_length_and_keeps_them(tmp_path: Path) -> None:
    run = trained(tmp_path / "run")
    selected = run.selected.replica
    rows = run.evaluate([30, 5], num_words=50, seed=3)
    assert [(row.replica, row.length) for row in rows] == [(selected, 5), (selected, 30)]
    assert rows.selected == rows[1] and rows.at(5) == (rows[0],) and rows.of(selected) == rows.rows
    everyone = run.evaluate([5, 30], num_words=50, seed=3, everyone=True)
    assert [row.replica for row in everyone] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert [row for row in everyone if row.selected] == list(rows)
    assert rows.selected == everyone.selected
    assert run.rows == [*rows, *everyone]
    hashed = files.WEIGHTS.hash_in(run.folder.path)
    assert rows_in(run.folder, "eval.jsonl") == [
        row.to_json() | {"evaluation_seed": 3, "weights": hashed} for row in (*rows, *everyone)
    ]
    assert set(rows[0].to_json()) == {
        *("replica", "seed", "lr", "selected", "length", "sequences", "accuracy", "low", "high"),
        *("symbol_accuracy", "prefix_accuracy", "floor", "chance", "scaled", "scaled_to_floor"),
        *("task", "words", "shortcut", "shortcut_accuracy", "nonfinite_from", "first_error"),
        "merging_horizon",
    }
    assert rows[0].interval == (rows[0].low, rows[0].high)


def test_rows_of_earlier_versions_are_read_without_what_they_do_not_have(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", steps=5)
    (row,) = run.evaluate([5], num_words=20)
    old = row.to_json()
    for key in ("task", "shortcut", "shortcut_accuracy"):
        del old[key]
    append_rows(run.folder, "eval.jsonl", [old])
    _, again = run.rows
    assert (again.task, again.shortcut, again.evaluation_seed) == (None, None, None)
    assert again.accuracy == row.accuracy


def test_a_model_of_a_run_has_the_weights_of_its_replica(tmp_path: Path) -> None:
    run = trained(tmp_path / "run")
    weights = run.folder.read(files.WEIGHTS)
    for replica in (None, 0, 3):
        model = run.model(replica)
        row = run.selected.replica if replica is None else replica
        assert not model.training
        for name, value in model.state_dict().items():
            assert torch.equal(value, weights[name][row])
    (score,) = evaluate(run.model(), run.task, [30], num_words=50)
    (row,) = run.evaluate([30], num_words=50)
    assert score.accuracy == row.accuracy
    assert "no replica 4" in the_error_of(RunError, lambda: run.model(4))


def test_a_run_that_has_not_finished_cannot_be_evaluated(tmp_path: Path) -> None:
    run = start(experiment_of(checkpoint_every=0), tmp_path / "run")
    assert "--resume" in the_error_of(RunError, lambda: run.evaluate([5], num_words=5))
    assert "--resume" in the_error_of(RunError, run.model)


# --- a user's own model ---

PLUGIN = '''
"""A model of one's own: it counts symbols.

    h_t = h_{t-1} + W x_t
"""

import torch
from torch import nn

from statetrack.models import MODELS
from statetrack.models._base import RecurrentModel
from statetrack.settings import Settings, option


class CounterSettings(Settings):
    hidden: int = option(8, "Width of the state.", min=1)


@MODELS.register("my-counter")
class Counter(RecurrentModel):
    settings_class = CounterSettings
    family, source = "own", "own"

    def __init__(self, settings, *, num_symbols, num_labels):
        super().__init__(settings, num_symbols=num_symbols, num_labels=num_labels)
        self.embedding = nn.Embedding(num_symbols, settings.hidden)
        self.readout = nn.Linear(settings.hidden, num_labels)

    def initial_state(self, num_words):
        return self.embedding.weight.new_zeros(num_words, self.embedding.embedding_dim)

    def step(self, symbols, state):
        state = state + self.embedding(symbols)
        return self.readout(state), state
'''


def test_a_users_own_model_trains_and_evaluates_also_when_its_file_is_gone(
    tmp_path: Path,
) -> None:
    plugin = tmp_path / "counter.py"
    plugin.write_text(PLUGIN)
    load_plugin(plugin)
    made = experiment_of(model="my-counter", task="parity")
    train_until(start(made, tmp_path / "run"), stop_after(5))
    plugin.unlink()
    forget_plugins()
    finish(Run.resume(tmp_path / "run", trust_plugin=True))
    forget_plugins()
    run = Run.open(tmp_path / "run", trust_plugin=True)
    assert run.evaluate([12], num_words=30).selected.sequences == 30
    assert Run.open(tmp_path / "run").experiment == run.experiment


def test_runs_of_different_plugins_can_be_opened_side_by_side(tmp_path: Path) -> None:
    for name in ("my-counter", "your-counter"):
        plugin = tmp_path / f"{name}.py"
        plugin.write_text(PLUGIN.replace("my-counter", name))
        load_plugin(plugin)
        start(experiment_of(model=name), tmp_path / name)
    forget_plugins()
    for name in ("my-counter", "your-counter"):
        assert Run.open(tmp_path / name, trust_plugin=True).experiment.model == name
