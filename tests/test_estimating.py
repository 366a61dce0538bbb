"""What a sweep would take: `--dry-run`, measured on few steps and scaled for the rest."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from rich.console import Console

from statetrack import fit, load_task, make_model
from statetrack.cli.app import run as command
from statetrack.errors import SettingsError
from statetrack.report import estimates_lines, estimates_table
from statetrack.report.tables import duration
from statetrack.runs import Run
from statetrack.sweep import (
    Estimate,
    Estimates,
    Searching,
    Suite,
    estimate,
    estimating,
    points_of,
)
from statetrack.sweep.estimating import _Cost
from statetrack.sweep.executors import Failed
from statetrack.sweep.work import Work, run_point
from statetrack.training import memory

SUITE = Suite(
    title="Points to be estimated",
    settings={
        "steps": 4,
        "seeds": 2,
        "lrs": [0.01, 0.1],
        "batch_size": 8,
        "validation_words": 8,
        "finish": "none",
    },
    models={
        "small": {"model": "bilinear", "hidden": 2},
        "large": {"model": "bilinear", "hidden": 8},
        "signs": "diagonal-real",
    },
    tasks={"parity": "parity", "five": "modular-addition:m=5"},
    length=20,
    samples=10,
    horizon_lengths=(40,),
    horizon_samples=5,
)


@pytest.fixture(scope="module")
def estimated(tmp_path_factory):
    """The folder, the points and their estimates, one of which is finished and one begun."""
    folder = tmp_path_factory.mktemp("estimating")
    points = points_of(SUITE, folder / "runs", {})
    run_point(SUITE, points[0])
    before = sorted(path for path in folder.rglob("*"))
    found = estimate(SUITE, points, jobs=2, searching=Searching(), budget=1.0)
    assert sorted(path for path in folder.rglob("*")) == before, "nothing is written"
    return points, found


def test_every_point_has_its_parameters_replicas_steps_and_words(estimated):
    points, found = estimated
    for point, one in zip(points, found.points, strict=True):
        assert (one.row, one.column, one.run) == (point.row, point.column, str(point.path))
        assert (one.replicas, one.steps, one.words_per_step) == (4, 4, 32)
    run = Run.open(points[0].path)
    assert found.points[0].weights == sum(weight.numel() for weight in run.model().parameters())


def test_finished_points_cost_nothing_and_the_others_something(estimated):
    _, found = estimated
    assert [one.finished for one in found.points] == [True, *[False] * 5]
    assert found.points[0].seconds == 0
    assert all(one.training_seconds > 0 for one in found.points[1:])
    assert all(one.evaluation_seconds > 0 for one in found.points[1:])


def test_without_time_the_points_are_scaled_from_the_nearest_one_and_marked(tmp_path):
    points = points_of(SUITE, tmp_path / "runs", {})
    found = estimate(SUITE, points, jobs=1, budget=0.0)
    assert sum(one.measured for one in found.points) == 2, "one of each model"
    table = Console(width=200)
    with table.capture() as drawn:
        table.print(estimates_table(found))
    assert drawn.get().count("~") == 2 * 4
    small, large = found.points[0], found.points[1]
    assert large.training_seconds == pytest.approx(
        small.training_seconds * large.weights / small.weights
    )


def test_an_interrupted_point_has_only_its_last_steps_left(tmp_path):
    suite = SUITE.model_copy(update={"models": {"small": SUITE.models["small"]}})
    (point, other) = points_of(suite, tmp_path / "runs", {"steps": 20})
    run = Run.start(point.experiment, out=point.path)
    for record in run.train(lambda: True):
        assert record.step == 1
    # a record every 10 steps: stop at the first
    run = Run.open(point.path)
    for record in run.train():
        if record.step >= 10:
            break
    found = estimate(suite, [point, other], jobs=1, budget=1.0)
    begun, fresh = found.points
    assert 0 < begun.training_seconds < fresh.training_seconds
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        list(Run.open(point.path).train())
    (trained,) = estimate(suite, [point], jobs=1, budget=1.0).points
    assert trained.training_seconds == 0 and trained.evaluation_seconds > 0


def test_searches_for_evidence_count_with_the_time_that_they_are_given(tmp_path):
    points = points_of(SUITE, tmp_path / "runs", {})[:1]
    (one,) = estimate(SUITE, points, 1, Searching(worst=5.0, others=2.0), budget=0.0).points
    assert one.evidence_seconds == 5.0 + 4 * 2.0


def test_evaluations_beyond_what_was_timed_grow_as_the_way_in_which_words_are_read():
    whole = _Cost(0.0, 0.0, 0.0, 0.0, 0.0, {100: 1.0, 200: 4.0}, 1.0, 1, streams=False)
    assert whole.evaluation(200) == 4.0
    assert whole.evaluation(400) == pytest.approx(16.0)
    assert whole.evaluation(800) == pytest.approx(64.0)
    mixed = replace(whole, evaluations={100: 100 + 10.0, 200: 200 + 40.0})
    assert mixed.evaluation(1000) == pytest.approx(1000 + 1000.0)
    noisy = replace(whole, evaluations={100: 1.0, 200: 40.0})  # no more than the square
    assert noisy.evaluation(400) == pytest.approx(160.0)
    pieces = replace(whole, evaluations={100: 1.5, 200: 2.5}, streams=True)
    assert pieces.evaluation(2000) == pytest.approx(20.5)
    noisy = replace(pieces, evaluations={100: 2.5, 200: 2.0})
    assert noisy.evaluation(2000) == pytest.approx(20.0)


def test_a_transformer_is_timed_on_few_words_whose_time_grows_with_the_square(
    tmp_path, monkeypatch
):
    """And a recurrent network on all of them."""
    read: dict[int, int] = {}
    real = estimating.scored

    def counting(model, task, lengths, *, num_words, **given):
        read[lengths[0]] = num_words
        return real(model, task, lengths, num_words=num_words, **given)

    monkeypatch.setattr("statetrack.sweep.estimating.scored", counting)
    monkeypatch.setattr("statetrack.sweep.estimating.MOST_WHOLE", 128)
    for model, words in ("transformer", {16: 8, 20: 6}), ("lstm", {16: 10, 20: 10}):
        read.clear()
        suite = mutated(model=model)
        points = points_of(suite, tmp_path / model, {})
        (one,) = estimate(suite, points, 1, budget=0.0).points
        assert read == words
        assert one.measured and one.evaluation_seconds > 0


def mutated(**settings: object) -> Suite:
    """The suite with one point, whose settings are changed."""
    own = {"model": "lstm", **settings}
    return SUITE.model_copy(update={"models": {"one": own}, "tasks": {"parity": "parity"}})


@pytest.mark.parametrize(
    "settings",
    [
        {"model": "bilinear", "hidden": 100_000},
        {"batch_size": 10**6, "train_length": "2-500"},
        {"validation_words": 10**7, "train_length": "2-100"},
    ],
    ids=["weights", "batch", "validation"],
)
def test_what_does_not_fit_into_memory_is_refused_before_it_is_built(
    settings, tmp_path, monkeypatch
):
    monkeypatch.setattr("statetrack.models._construction.free_memory", lambda device: 16 * 10**9)
    monkeypatch.setattr("statetrack.training.memory.free_memory", lambda device: 16 * 10**9)
    monkeypatch.setattr("statetrack.sweep.estimating._timed", never)
    suite = mutated(**settings)
    points = points_of(suite, tmp_path / "runs", {})
    with pytest.raises(
        SettingsError, match=r"one on parity: out of memory: .* GB.* are free"
    ) as why:
        estimate(suite, points, 1)
    assert "\n" not in str(why.value)


def never(*given: object) -> None:
    raise AssertionError("it is timed")


def test_of_a_large_step_a_part_is_timed_and_scaled(tmp_path, monkeypatch):
    """Neither the words of the whole batch nor its replicas are ever made."""
    monkeypatch.setattr("statetrack.training.memory.free_memory", lambda device: 64 * 10**9)
    suite = mutated(batch_size=10**5, validation_words=10**5)
    timed = []
    real = estimating._timed

    def timing(suite, work, seconds):
        timed.append(work)
        return real(suite, work, seconds)

    monkeypatch.setattr("statetrack.sweep.estimating._timed", timing)
    monkeypatch.setattr("statetrack.sweep.estimating.MOST_COMPUTED", 1e7)
    (point,) = points_of(suite, tmp_path / "runs", {})
    said: list[str] = []
    (one,) = estimate(suite, [point], 1, budget=0.1, tell=said.append).points
    (part,) = timed
    training = part.experiment.training
    assert training.batch_size * training.validation_words < 10**6
    assert not one.measured and one.words_per_step == 4 * 10**5
    assert one.training_seconds > 0
    assert said == ["sizes of point 1 of 1: one on parity", "timing 1 of 1: one on parity"]


def test_what_is_timed_keeps_little_whatever_the_model_keeps(tmp_path, monkeypatch):
    monkeypatch.setattr("statetrack.training.memory.free_memory", lambda device: 64 * 10**9)
    timed = []
    real = estimating._timed

    def timing(suite, work, seconds):
        timed.append(work)
        return real(suite, work, seconds)

    monkeypatch.setattr("statetrack.sweep.estimating._timed", timing)
    monkeypatch.setattr("statetrack.sweep.estimating.MOST_KEPT", 2**22)
    suite = mutated(batch_size=500, validation_words=500)
    (point,) = points_of(suite, tmp_path / "runs", {})
    estimate(suite, [point], 1, budget=5.0)
    (part,) = timed
    assert part.kept <= 2**22


def test_a_dry_run_does_not_draw_words_of_a_million_symbols(tmp_path, monkeypatch):
    """Those that predictors without a state read took seconds, whatever the budget."""
    drawn = []
    real = estimating.strongest_by_length

    def drawing(words, task, lengths, samples, seed):
        drawn.append(max(lengths) * samples)
        assert words.data.train_samples <= estimating.FEW_SAMPLES
        return real(words, task, lengths, samples, seed)

    monkeypatch.setattr("statetrack.sweep.estimating.strongest_by_length", drawing)
    suite = mutated(train_samples=10**6, threads=1000)
    suite = suite.model_copy(update={"length": 10**6, "samples": 2, "curve_lengths": (3,)})
    points = points_of(suite, tmp_path / "runs", {})
    (one,) = estimate(suite, points, 1, budget=0.1).points
    assert 0 < max(drawn) <= estimating.MOST_DRAWN
    assert one.evaluation_seconds > 0


def test_words_that_are_drawn_in_further_ways_are_tested_as_long(tmp_path, monkeypatch):
    def timing(suite, work, seconds):
        cost = {"step": 1.0, "validation": 0.0, "words": 0.0, "shortcuts": 0.5, "finish": 0.0}
        tested = {16: 1.0, 32: 2.0}
        return _Cost(**cost, evaluations=tested, computed=work.computed, weights=work.about.weights)

    monkeypatch.setattr("statetrack.sweep.estimating._timed", timing)

    def seconds(task, *test_words):
        changed = {"tasks": {"one": task}, "test_words": test_words, "horizon_lengths": ()}
        suite = mutated().model_copy(update=changed)
        points = points_of(suite, tmp_path / "runs", {})
        (one,) = estimate(suite, points, 1, budget=0.1).points
        return one.evaluation_seconds

    once = seconds("parity")
    assert seconds("parity", "task") == once  # as in training
    assert seconds("parity", "task", "uniform", "group") == 3 * once
    assert seconds("tomita-1", "group") == seconds("tomita-1")  # it has no group


def test_a_clock_that_says_zero_is_no_error():
    cost = _Cost(1.0, 0.0, 0.0, 0.0, 0.0, {16: 0.5, 32: 0.0}, 1.0, 1)
    assert cost.evaluation(64) == 0.0


def test_a_model_with_very_many_weights_is_not_built(tmp_path, monkeypatch):
    monkeypatch.setattr("statetrack.sweep.estimating._timed", never)
    suite = mutated(hidden=2500, train_samples=0)
    points = points_of(suite, tmp_path / "runs", {})
    (one,) = estimate(suite, points, 1, budget=0.1).points
    assert one.weights > 2**24 and not one.measured
    assert one.training_seconds > 0 and one.evaluation_seconds > 0


def one_of(seconds: float, **changes: object) -> Estimate:
    given = Estimate("row", "column", "runs/x", False, 10, 1, 5, 8, training_seconds=seconds)
    return replace(given, **changes)


def test_the_time_of_several_at_once_is_that_of_the_process_that_ends_last():
    found = Estimates((one_of(3.0), one_of(1.0), one_of(1.0), one_of(4.0)), 2, 0.0)
    assert found.processor_seconds == 9.0 and found.seconds == 6.0
    assert Estimates(found.points, 1, 0.0).seconds == 9.0
    assert Estimates(found.points, 8, 0.0).seconds == 4.0


def test_the_estimates_are_strict_json_with_the_totals(estimated):
    content = json.loads(json.dumps(estimated[1].to_json(), allow_nan=False))
    assert content["num_finished"] == 1 and content["jobs"] == 2 and len(content["points"]) == 6
    assert {"weights", "replicas", "steps", "words_per_step", "seconds", "measured"} <= {
        *content["points"][1]
    }


def test_the_lines_say_the_total_and_what_is_not_counted():
    lines = list(estimates_lines(Estimates((one_of(90.0), one_of(0.0, finished=True)), 2, 1.0)))
    assert lines[0].startswith("2 points, 1 finished; 1 min 30 s of computing, about 1 min 30 s")
    assert "stop early" in lines[-1]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.26, "0.3 s"),
        (9.96, "10 s"),
        (59.7, "1 min 00 s"),
        (250, "4 min 10 s"),
        (3599.6, "1 h 00 min"),
        (11_100, "3 h 05 min"),
        (187_200, "2 d 4 h"),
    ],
)
def test_durations_are_written_in_two_units(seconds, text):
    assert duration(seconds) == text


def test_nothing_of_a_path_is_needed_for_an_estimate(tmp_path):
    points = points_of(SUITE, Path("/nowhere/at/all"), {})[:1]
    (one,) = estimate(SUITE, points, 1, budget=0.0).points
    assert not one.finished and not Path("/nowhere").exists()


SWEEP = ["sweep", "--model", "diagonal-real", "--task", "parity", "--steps", "4", "--length", "9"]


def test_a_narrow_terminal_has_fewer_columns_and_whole_numbers(estimated):
    _, found = estimated
    for width in (60, 80, 160):
        to = Console(width=width)
        with to.capture() as drawn:
            to.print(estimates_table(found))
        shown = drawn.get()
        assert "…" not in shown and "training" in shown and "testing" in shown
        assert ("2,816" in shown) == (width > 60)


def test_a_dry_run_prints_the_points_and_their_time_and_makes_nothing(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("statetrack.sweep.estimating.BUDGET", 1.0)
    assert command([*SWEEP, "--samples", "5", "--dry-run", "--jobs", "3"]) == 0
    printed = capsys.readouterr().out
    assert "training" in printed and "1 points, 0 finished" in printed
    assert "with 3 at a time" in printed
    assert command([*SWEEP, "--samples", "5", "--dry-run", "--json"]) == 0
    (point,) = json.loads(capsys.readouterr().out)["points"]
    assert point["steps"] == 4 and point["weights"] > 0
    assert not list(tmp_path.iterdir())


def test_training_that_does_not_fit_is_refused_before_a_replica_or_a_folder_is_made(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("statetrack.training.memory.free_memory", lambda device: 16 * 10**9)
    monkeypatch.setattr("statetrack.runs.run.Population", never)
    large = {"steps": 1, "batch_size": 10**6}
    with pytest.raises(SettingsError, match="a step of 10,000 replicas on 1,000,000 words of up"):
        Run.start(model="lstm", task="parity", seeds=10_000, **large)
    with pytest.raises(SettingsError, match="a step of 1 replica on 1,000,000 words of up to 200"):
        Run.start(model="transformer", task="parity", train_length="200", **large)
    assert not any(tmp_path.iterdir())
    with pytest.raises(SettingsError, match="out of memory: a step of 1 replica"):
        fit(make_model("lstm", "parity"), "parity", train_length="200", batch_size=10**6)
    point = points_of(mutated(**large, seeds=100), tmp_path / "runs", {})[0]
    failed = Work(SUITE)(point, lambda: False)
    assert isinstance(failed, Failed) and failed.error.startswith("out of memory: a step of")
    assert not point.path.exists()


@pytest.mark.parametrize("model", ["bilinear-cp", "lstm", "transformer", "mamba"])
def test_what_a_step_keeps_is_counted_at_most(model):
    """The numbers saved for gradients of a batch, without what takes memory besides."""
    network, task = make_model(model, "s3"), load_task("s3")
    own = {weight.untyped_storage()._cdata for weight in network.parameters()}
    kept: dict[int, tuple[torch.Tensor, int]] = {}

    def keep(value: torch.Tensor) -> torch.Tensor:
        storage = value.untyped_storage()
        if storage._cdata not in own:
            kept[storage._cdata] = value, storage.nbytes()
        return value

    symbols = task.sample(30, length=20).to_torch().symbols
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda value: value):
        network(symbols)
    counted = memory.kept_by_symbol(lambda: make_model(model, "s3"))
    assert 0 < memory.SURELY * counted * symbols.numel() < sum(size for _, size in kept.values())
