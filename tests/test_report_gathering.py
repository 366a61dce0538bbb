"""Reports: the entries that run folders and suites give, and their places in the table."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from statetrack import predicting
from statetrack.cli import app
from statetrack.errors import RunError, SettingsError, TaskError
from statetrack.models import MODELS
from statetrack.registry import tasks_folder
from statetrack.report import (
    Entry,
    Placeable,
    gather_suite,
    in_order,
    make_report,
    places_of,
)
from statetrack.report.entries import common_length, horizon_of_entry
from statetrack.report.gathering import gather_runs
from statetrack.runs import Experiment, Run, make_replica, settings_hash, train_command, write_error
from statetrack.runs import run as run_module
from statetrack.sweep import SWEEP_FILE, Suite, kept_result, points_of
from statetrack.sweep.results import HORIZON_SEED
from statetrack.sweep.suite import PublishedTable
from statetrack.sweep.work import run_point
from tests.setups import entry_of, parity_run, row_of
from tests.test_run import SMALL, start, stop_after, train_until

TINY: dict[str, Any] = {**SMALL, "steps": 4, "validate_every": 2, "hidden": 3}

SUITE = Suite(
    title="Tiny",
    settings={key: value for key, value in TINY.items() if key not in ("model", "task")},
    models={"ours": "bilinear", "larger": {"model": "bilinear", "hidden": 4}},
    tasks={"m=2": "modular-addition:m=2", "m=10": "modular-addition:m=10"},
    length=12,
    samples=20,
    curve_lengths=(6,),
    horizon_lengths=(30,),
    horizon_samples=10,
)


@pytest.fixture(scope="module")
def parity(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was evaluated twice at one length, and once on another task."""
    path = parity_run(tmp_path_factory.mktemp("parity") / "parity")
    run = Run.open(path)
    list(run.score([8], num_words=10, seed=0, everyone=True))
    list(run.score([8, 16], num_words=30, seed=1, everyone=True))
    return path


@pytest.fixture(scope="module")
def suite_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The suite with one point measured, one in training, one damaged, and one waiting."""
    out = tmp_path_factory.mktemp("suite") / "out"
    measured, damaged, unfinished, _ = points_of(SUITE, out, {})
    run_point(SUITE, measured)
    train_until(start(unfinished.experiment, unfinished.path), stop_after(2))
    start(damaged.experiment, damaged.path)
    (damaged.path / "task.yaml").write_text("title: [")
    return out


def parsed_back(command: str) -> dict[str, Any]:
    """The settings that a `statetrack train` line has, as the command line reads it."""
    words = shlex.split(command)
    assert words[:2] == ["statetrack", "train"]
    caught: list[Experiment] = []

    class Caught(Exception):
        pass

    def keep(experiment: Experiment, **_: Any) -> None:
        caught.append(experiment)
        raise Caught

    before = Run.start
    Run.start = keep  # type: ignore[method-assign, assignment]
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(app, "_explain", lambda error: 7)
            assert app.run(words[1:]) == 7
    finally:
        Run.start = before  # type: ignore[method-assign]
    return caught[0].values()


def test_the_command_of_an_entry_gives_exactly_its_settings(parity):
    (entry,) = gather_runs([parity]).entries
    assert parsed_back(entry.command) == dict(entry.settings)


@pytest.mark.parametrize("model", ["bilinear-block", "lstm", "gated-deltanet", "transformer"])
def test_the_command_repeats_settings_of_every_type(model):
    values = {"model": model, "task": "modular-addition:m=7", "lrs": [0.5, 1e-4], "seed": 2**40}
    experiment = Experiment.from_values({**values, "finish": "none", "steps": 1}, "test")
    assert parsed_back(train_command(experiment.values())) == experiment.values()
    odd = {
        name: not value
        for name, value in MODELS[model].settings_class().model_dump().items()
        if isinstance(value, bool)
    }
    try:
        experiment = Experiment.from_values({**values, **odd}, "test")
    except SettingsError:
        return  # a model whose flags exclude each other
    assert parsed_back(train_command(experiment.values())) == experiment.values()


def test_an_entry_has_everything_about_a_run(parity):
    report = gather_runs([parity])
    (entry,) = report.entries
    assert (entry.row, entry.column, entry.state) == ("bilinear", "parity", "finished")
    assert (report.row_names, report.column_names) == (("bilinear",), ("parity",))
    assert entry.settings["hidden"] == 2
    assert (entry.replicas, entry.diverged, entry.selected) == (2, 0, 0)
    assert (entry.steps, entry.words) == (1, 2)
    assert (entry.parameters, entry.dimensions) == (2 * 2 * 2 + 2 + 4, 2)
    assert entry.trained_to == 10
    assert entry.task_version == 1 and len(entry.task_hash) == 64
    assert entry.prediction is not None and entry.prediction.answer == "yes"
    assert entry.version and entry.started and entry.machine and entry.device == "cpu"


def test_of_several_evaluations_of_one_length_the_last_counts(parity):
    (entry,) = gather_runs([parity]).entries
    assert [(row.length, row.replica, row.sequences) for row in entry.rows] == [
        *((8, 0, 30), (8, 1, 30), (16, 0, 30), (16, 1, 30))
    ]


def test_scores_on_the_words_of_another_task_are_left_out(parity, tmp_path):
    copied = Path(shutil.copytree(parity, tmp_path / "run"))
    lines = (copied / "eval.jsonl").read_text(encoding="utf-8").splitlines()
    other = json.loads(lines[-1]) | {"task": "modular-addition:m=2", "length": 99}
    (copied / "eval.jsonl").write_text("\n".join([*lines, json.dumps(other), ""]), encoding="utf-8")
    (entry,) = gather_runs([copied]).entries
    assert entry.lengths == (8, 16)


def test_unfinished_and_damaged_runs_are_entries_too(tmp_path, parity):
    whole = shutil.copytree(parity, tmp_path / "whole")
    train_until(start(Experiment.from_values(TINY, "test"), tmp_path / "begun"), stop_after(3))
    cut = Path(shutil.copytree(parity, tmp_path / "cut"))
    (cut / "summary.json").write_text("{", encoding="utf-8")
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "config.yaml").write_text("", encoding="utf-8")
    report = gather_runs([tmp_path])
    found = {entry.run: entry for entry in report.entries}
    assert found[Path(whole)].state == "finished"
    begun = found[tmp_path / "begun"]
    recorded = 2
    assert (begun.state, begun.steps, begun.words) == ("unfinished", recorded, 8 * recorded)
    assert begun.rows == ()
    assert found[cut].state == "failed" and "summary.json" in found[cut].error
    assert (found[cut].model, found[cut].task) == ("bilinear", "parity")
    assert (found[empty].state, found[empty].row, found[empty].column) == ("failed", "", "")
    assert "" not in report.row_names


def test_a_folder_without_runs_is_refused(tmp_path):
    with pytest.raises(RunError, match="holds no run"):
        gather_runs([tmp_path])


def test_a_run_that_needs_its_plugin_says_so_and_nothing_of_it_is_executed(parity, tmp_path):
    copied = Path(shutil.copytree(parity, tmp_path / "run"))
    config = (copied / "config.yaml").read_text(encoding="utf-8")
    (copied / "config.yaml").write_text(config.replace("bilinear", "my-own"), encoding="utf-8")
    (copied / "plugin.py").write_text("raise SystemExit('executed')\n", encoding="utf-8")
    (entry,) = gather_runs([copied]).entries
    assert entry.state == "failed" and "needs its plugin" in entry.error
    assert entry.model == "my-own"


def placed(*configs: Mapping[str, Any], **more: Any) -> list[tuple[str, str]]:
    runs = [
        Placeable(one["model"], one["task"], one, **{k: v[n] for k, v in more.items()})
        for n, one in enumerate(configs)
    ]
    return [(place.row, place.column) for place in places_of(runs)]


def test_a_row_is_the_model_with_the_settings_in_which_its_runs_differ():
    small = {"model": "bilinear", "task": "s3", "hidden": 6, "lrs": [0.1], "device": "cpu"}
    large = {**small, "hidden": 12, "device": "cuda"}
    assert placed(small, large, {"model": "gru", "task": "s3", "hidden": 5}) == [
        *(("bilinear, hidden=6", "s3"), ("bilinear, hidden=12", "s3"), ("gru", "s3")),
    ]


def test_equal_settings_on_two_tasks_share_a_row():
    one = {"model": "gru", "task": "s3", "hidden": 6}
    assert placed(one, {**one, "task": "parity"}) == [("gru", "s3"), ("gru", "parity")]


def test_runs_of_other_seeds_have_rows_of_their_own():
    one = {"model": "gru", "task": "s3", "seed": 0}
    assert placed(one, {**one, "seed": 5}) == [("gru, seed=0", "s3"), ("gru, seed=5", "s3")]


def test_a_second_run_with_the_same_settings_is_numbered():
    one = {"model": "gru", "task": "s3"}
    assert placed(one, one, one) == [("gru", "s3"), ("gru (2)", "s3"), ("gru (3)", "s3")]


def test_tasks_of_one_name_with_other_words_have_columns_of_their_own():
    one = {"model": "gru", "task": "mine"}
    assert placed(one, one, version=[1, 2], words=["a" * 64, "b" * 64]) == [
        ("gru", "mine (version 1, aaaaaaaa)"),
        ("gru", "mine (version 2, bbbbbbbb)"),
    ]


def test_a_setting_that_an_earlier_version_did_not_have_makes_no_row_of_its_own():
    one = {"model": "gru", "task": "s3", "hidden": 6, "finish": "none"}
    older = {"model": "gru", "task": "parity", "hidden": 6}
    assert placed(one, older) == [("gru", "s3"), ("gru", "parity")]


def test_rows_and_columns_are_in_natural_order():
    runs = [
        Placeable("gru", f"add:m={m}", {"hidden": hidden})
        for m in (10, 9, 2)
        for hidden in (100, 20)
    ]
    rows, columns = in_order(runs, places_of(runs))
    assert rows == ["gru, hidden=20", "gru, hidden=100"]
    assert columns == ["add:m=2", "add:m=9", "add:m=10"]


def test_the_hash_of_settings_counts_what_has_an_effect_and_nothing_else():
    one = {"model": "gru", "lrs": [0.1, 0.2], "device": "cpu", "threads": 3}
    assert settings_hash(one) == settings_hash({"threads": 1, "lrs": [0.1, 0.2], "model": "gru"})
    assert settings_hash(one) != settings_hash({**one, "lrs": [0.1]})
    assert len(settings_hash(one)) == 12


def test_a_suite_has_an_entry_for_every_point_in_whatever_state(suite_folder):
    report = gather_suite(SUITE, suite_folder, name="tiny")
    found = {(entry.row, entry.column): entry for entry in report.entries}
    assert report.row_names == ("ours", "larger") and report.column_names == ("m=2", "m=10")
    assert (report.length, report.suite, report.measure) == (12, "tiny", "accuracy")
    states = {place: entry.state for place, entry in found.items()}
    assert states == {
        ("ours", "m=2"): "finished",
        ("larger", "m=2"): "failed",
        ("ours", "m=10"): "unfinished",
        ("larger", "m=10"): "waiting",
    }
    measured, waiting = found["ours", "m=2"], found["larger", "m=10"]
    assert measured.lengths == (6, 12, 30)
    assert len(measured.at(12)) == measured.replicas == 4
    assert len(measured.at(30)) == 1
    assert not measured.notes
    assert "task.yaml" in found["larger", "m=2"].error
    assert parsed_back(waiting.command) == dict(waiting.settings)
    assert waiting.settings["hidden"] == 4 and waiting.replicas == 4


def test_what_eval_adds_to_a_suite_stands_at_lengths_of_its_own(suite_folder, tmp_path):
    copied = Path(shutil.copytree(suite_folder, tmp_path / "out"))
    point = points_of(SUITE, copied, {})[0]
    list(Run.open(point.path).score([12, 99], num_words=5, seed=7, everyone=True))
    entry = gather_suite(SUITE, copied).entries[0]
    assert entry.lengths == (6, 12, 30, 99) and entry.newest_lengths == (99,)
    assert {row.sequences for row in entry.at(12)} == {20}, "as the suite measured it"
    assert {row.sequences for row in entry.at(99)} == {5}
    assert gather_suite(SUITE, copied).shown_lengths == (12, 99)
    assert gather_suite(SUITE, suite_folder).shown_lengths == (12,)


def test_eval_with_the_seed_of_a_suite_leaves_its_horizon_as_it_was_measured(
    suite_folder, tmp_path
):
    copied = Path(shutil.copytree(suite_folder, tmp_path / "out"))
    before = gather_suite(SUITE, copied).entries[0]
    point = points_of(SUITE, copied, {})[0]
    list(Run.open(point.path).score([30], num_words=3, seed=HORIZON_SEED))
    entry = gather_suite(SUITE, copied).entries[0]
    assert entry.at(30) == before.at(30) and entry.at(30)[0].sequences == 10
    assert horizon_of_entry(entry) == horizon_of_entry(before)


def test_a_point_that_was_run_otherwise_than_the_suite_says_has_a_note(suite_folder):
    changed = SUITE.model_copy(update={"settings": {**SUITE.settings, "steps": 900}, "samples": 21})
    notes = gather_suite(changed, suite_folder).entries[0].notes
    assert notes == (
        "measured otherwise than the suite says: samples 20, not 21",
        "trained otherwise than the suite says: steps 4, not 900",
    )


@pytest.fixture
def on_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """A suite of one point that is measured, on a task's file in the current folder."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(tasks_folder() / "parity.yaml", "mine.yaml")
    changed = {"models": {"ours": "bilinear"}, "tasks": {"mine": "mine.yaml"}}
    suite = SUITE.model_copy(update=changed)
    (point,) = points_of(suite, Path("out"), {})
    run_point(suite, point)
    return suite


def test_a_task_that_changed_since_has_a_note(on_a_file):
    assert gather_suite(on_a_file, "out").entries[0].notes == ()
    file = Path("mine.yaml")
    file.write_text(file.read_text(encoding="utf-8").replace("version: 1", "version: 2"))
    notes = gather_suite(on_a_file, "out").entries[0].notes
    assert notes == (
        "trained on another task than the suite's now (version 1 of mine.yaml there and 2 here)",
    )


def test_a_suite_is_reported_with_the_tasks_of_its_runs_where_their_files_are_gone(on_a_file):
    (before,) = gather_suite(on_a_file, "out").entries
    Path("mine.yaml").unlink()
    assert gather_suite(on_a_file, "out").entries == (before,)
    (point,) = points_of(on_a_file, Path("out"), {}, to_train=False)
    assert kept_result(on_a_file, point) is not None
    for missing in (
        lambda: points_of(on_a_file, Path("out"), {}),
        lambda: point.trainable.words_of(),
    ):
        with pytest.raises(TaskError, match=r"mine\.yaml: cannot be read"):
            missing()
    with pytest.raises(TaskError, match=r"mine\.yaml: cannot be read"):
        gather_suite(on_a_file, "elsewhere")


def with_lengths(*lengths: int) -> Entry:
    return entry_of(rows=[row_of(length) for length in lengths])


def test_the_table_shows_the_longest_length_that_all_evaluated_runs_share():
    assert common_length([]) == common_length([with_lengths()]) == 0
    assert common_length([with_lengths(10, 50, 500), with_lengths(10, 50), with_lengths()]) == 50
    assert common_length([with_lengths(10), with_lengths(20), with_lengths(20, 30)]) == 20


def without_its_sizes(run):
    """The run as an earlier version has left it, which did not record the sizes of its model."""
    file = run / "environment.json"
    about = json.loads(file.read_text(encoding="utf-8"))
    kept = {key: about[key] for key in about if key not in ("parameters", "dimensions")}
    file.write_text(json.dumps(kept), encoding="utf-8")
    return about["parameters"], about["dimensions"]


def test_what_runs_have_in_common_is_computed_once(parity, tmp_path, monkeypatch):
    for number in range(4):
        recorded = without_its_sizes(shutil.copytree(parity, tmp_path / f"run-{number}"))
    analysed, built, whole = [], [], predicting.algebra_of
    monkeypatch.setattr(
        predicting, "algebra_of", lambda automaton: analysed.append(1) or whole(automaton)
    )
    monkeypatch.setattr(
        "statetrack.runs.make_replica", lambda *a, **k: built.append(1) or made(*a, **k)
    )
    made = make_replica
    report = gather_runs([tmp_path])
    assert report.row_names == ("bilinear", "bilinear (2)", "bilinear (3)", "bilinear (4)")
    assert (len(analysed), len(built)) == (1, 1)
    assert {(entry.parameters, entry.dimensions) for entry in report.entries} == {recorded}


def test_the_sizes_that_a_run_recorded_are_read_and_its_model_is_not_built(parity, monkeypatch):
    def refused(*_, **__):
        raise AssertionError("a model is built")

    monkeypatch.setattr(run_module, "make_replica", refused)
    (entry,) = gather_runs([parity]).entries
    assert entry.parameters is not None and entry.dimensions is not None


def test_gathering_leaves_the_random_numbers_of_torch_alone(parity):
    before = torch.random.get_rng_state()
    gather_runs([parity])
    assert torch.equal(torch.random.get_rng_state(), before)


def test_a_point_that_failed_says_why_before_it_has_a_run_and_after(suite_folder, tmp_path):
    copied = Path(shutil.copytree(suite_folder, tmp_path / "out"))
    measured, _, unfinished, waiting = points_of(SUITE, copied, {})
    for point in (measured, unfinished, waiting):
        write_error(point.path, {"row": point.row, "column": point.column, "error": "no disk"})
    found = {(entry.row, entry.column): entry for entry in gather_suite(SUITE, copied).entries}
    assert {entry.error for place, entry in found.items() if place != ("larger", "m=2")} == {
        "no disk"
    }
    assert found["ours", "m=10"].state == found["larger", "m=10"].state == "failed"
    kept = found["ours", "m=2"]
    assert kept.state == "finished" and kept.at(12), "what was measured stays"


def test_published_numbers_stand_beside_what_was_measured_with_their_verdict(suite_folder):
    values = {"ours": {"m=2": 0.99, "m=10": 0.5}, "larger": {"m=2": 0.1}}
    table = PublishedTable(
        source="Table 1", trust="primary", measure="accuracy", of="best", values=values, within=1
    )
    suite = SUITE.model_copy(update={"tables": (table,)})
    found = {
        (entry.row, entry.column): entry for entry in gather_suite(suite, suite_folder).entries
    }
    (one,) = found["ours", "m=2"].compared
    best = max(row.accuracy for row in found["ours", "m=2"].at(12))
    assert (one.published, one.measured) == (0.99, best)
    (failed,) = found["larger", "m=2"].compared
    assert failed.measured is None and "task.yaml" in failed.why
    assert found["ours", "m=10"].compared[0].why.startswith("not measured")
    assert found["larger", "m=10"].compared == ()
    measured_with_fewer = suite.model_copy(update={"samples": 21})
    entry = gather_suite(measured_with_fewer, suite_folder).entries[0]
    assert entry.compared[0].measured == best and "samples 20, not 21" in entry.notes[0]
    shorter = suite.model_copy(update={"length": 6, "curve_lengths": (12,)})
    assert gather_suite(shorter, suite_folder).entries[0].compared[0].measured is None


def test_the_folder_of_a_sweep_is_reported_as_the_suite_that_was_run_in_it(suite_folder, tmp_path):
    copied = Path(shutil.copytree(suite_folder, tmp_path / "mine"))
    (copied / SWEEP_FILE).write_text(SUITE.document(), encoding="utf-8")
    report = make_report(copied)
    assert (report.title, report.suite, len(report.entries)) == ("Tiny", "mine", 4)
    assert report == replace(gather_suite(SUITE, copied, name="mine"), command=report.command)
    assert make_report(copied, copied).suite is None, "of several folders, all runs are shown"
