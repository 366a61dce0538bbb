"""Suites that are shipped: what their budgets change, and that they can be trained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from statetrack import yaml_text
from statetrack.errors import SettingsError
from statetrack.runs import Experiment, make_replica, run
from statetrack.spec import Task
from statetrack.sweep import (
    BUDGETS,
    SUITES,
    SWEEP_FILE,
    Suite,
    departures_from_paper,
    load_suite,
    points_of,
)
from statetrack.sweep.verdicts import papers_experiment
from statetrack.training import PROTOCOLS, TrainSettings

WITH_PAPER = sorted(name for name, suite in SUITES.items() if "paper" in suite.budgets)

NOT_TUNED = {"seed", "seeds", "freeze", "validate_every", "validation_words", "checkpoint_every"}
"""Training settings that a suite may set in the paper's own budget: they tune nothing.

A column may set more: what the paper does otherwise on that task.
"""

OF_THE_BILINEAR_PAPERS = (
    *("additive-terms", "bilinear-data-efficiency", "bilinear-modular-addition"),
    *("bilinear-modular-arithmetic", "bilinear-rank", "bilinear-state-machine", "induction-bias"),
    "rotation-angles",
)


def suite_of(**changes: Any) -> Suite:
    given: dict[str, Any] = {
        "title": "Two models",
        "settings": {"steps": 500, "seeds": 2, "clip": 1.0},
        "models": {
            "LSTM": {"model": "lstm", "hidden": 8, "lrs": [0.1], "finish": "none"},
            "rotations": "bilinear-rotation",
        },
        "tasks": {"mod 5": {"task": "modular-addition", "train_length": "2-6"}},
        "departures": "fewer steps",
        "budgets": {
            "hours": {"says": "less", "settings": {"clip": None}, "models": {"LSTM": {"steps": 9}}},
            "paper": {"says": "nothing", "protocol": "bilinear-paper", "samples": 7},
        },
    }
    return Suite(**{**given, **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"models": {}}, "'models' is empty: name one"),
        ({"tasks": {}}, "'tasks' is empty: name one"),
        ({"settings": {"task": "s3"}}, "'settings' gives 'task', which a column has"),
        ({"axes": {"task": ["s3", "s4"]}}, "'axes' gives 'task', which a column has"),
        ({"models": {"a": {"model": "lstm", "task": "s3"}}}, "'models', 'a' gives 'task'"),
        ({"cells": {"mod 5": {"LSTM": {"task": "s3"}}}}, "'mod 5', 'LSTM' gives 'task'"),
        ({"models": {"": "lstm"}}, r"models: a key is empty: text must stand there \(given: ''\)"),
        ({"settings": {"model": "gru"}}, "'settings' gives 'model', which a row has"),
    ],
)
def test_rows_have_the_models_and_columns_the_tasks(changes: Any, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        suite_of(budgets={}, **changes)


def test_the_suite_itself_is_what_takes_minutes() -> None:
    suite = suite_of()
    within = suite.within("minutes")
    assert (within.settings, within.models) == (suite.settings, suite.models)
    assert (within.departures, within.budgets, within.whole) == ("fewer steps", {}, suite)


def test_a_budget_changes_what_it_says_and_null_takes_a_setting_away() -> None:
    within = suite_of().within("hours")
    assert within.settings == {"steps": 500, "seeds": 2} and within.departures == "less"
    assert within.rows["LSTM"].settings["steps"] == 9
    assert within.rows["LSTM"].settings["lrs"] == [0.1]


def test_a_budget_with_a_protocol_leaves_out_how_suite_and_rows_train() -> None:
    within = suite_of().within("paper")
    assert (within.settings, within.protocol, within.samples) == ({}, "bilinear-paper", 7)
    assert within.rows["LSTM"].settings == {"model": "lstm", "hidden": 8}
    (lstm, _) = points_of(within, Path("out"), {})
    assert lstm.experiment.training.steps == PROTOCOLS["bilinear-paper"].settings["steps"]
    assert lstm.experiment.data.train_length == "2-6"  # the column's own


def test_a_sweeps_file_of_a_budget_that_leaves_out_rows_is_read_again(tmp_path: Path) -> None:
    within = SUITES["mamba3-formal-languages"].within("minutes")
    assert within.rows.keys() == SUITES["mamba3-formal-languages"].rows.keys()
    (tmp_path / SWEEP_FILE).write_text(within.document(), encoding="utf-8")
    again = load_suite(str(tmp_path))
    assert (again.rows, again.columns) == (within.rows, within.columns)
    assert {column for table in again.tables for of in table.values.values() for column in of} == {
        "parity"
    }
    as_before = yaml_text.dump(within.model_dump(mode="json", exclude_defaults=True))  # in 0.3.0
    (tmp_path / SWEEP_FILE).write_text(as_before, encoding="utf-8")
    assert load_suite(str(tmp_path)) == again


def test_a_budget_that_a_suite_does_not_have_is_one_line() -> None:
    with pytest.raises(SettingsError, match=r"no budget 'days': it has minutes, hours, paper$"):
        suite_of().within("days")
    with pytest.raises(SettingsError, match=r"no budget 'minutes': it has none$"):
        suite_of(budgets={}).within("minutes")


def test_what_is_trained_otherwise_than_in_the_paper_is_read_from_the_settings() -> None:
    suite = suite_of()
    said = departures_from_paper(suite, points_of(suite, Path("out"), {}))
    assert "steps 500 for 100,000" in said and "lrs 0.1 for 0.001/0.0001/1e-05" in said
    assert "loss squared-error for cross-entropy" in said
    paper = suite.within("paper")
    assert departures_from_paper(paper, points_of(paper, Path("out"), {})) == ""
    alone = suite_of(budgets={})
    assert departures_from_paper(alone, points_of(alone, Path("out"), {})) == ""


def test_a_row_that_the_papers_budget_leaves_out_is_compared_with_its_protocol_if_any() -> None:
    paper = {"says": "nothing", "protocol": "bilinear-paper", "without": ["LSTM"]}
    suite = suite_of(budgets={"paper": paper})
    (lstm, rotations) = points_of(suite, Path("out"), {})
    assert papers_experiment(suite, lstm) is None
    assert papers_experiment(suite, rotations) is not None


@pytest.mark.parametrize("name", WITH_PAPER)
def test_the_papers_own_budget_has_nothing_that_we_tuned(name: str) -> None:
    suite = load_suite(name).within("paper")
    assert suite.departures and suite.protocol
    for row in suite.rows.values():
        for column in suite.columns.values():
            values = {**suite.settings, **row.settings, **column}
            mine = Experiment.from_values(values, name, protocol=suite.protocol)
            bare = {
                key: value
                for key, value in values.items()
                if key not in TrainSettings.model_fields
                or key in NOT_TUNED
                or key in row.axes
                or key in column
            }
            theirs = Experiment.from_values(bare, name, protocol=suite.protocol)
            assert mine.values() == theirs.values()


def make_without_weights(experiment: Experiment, task: Task) -> object:
    """The same checks as when a replica is made, and no memory for its weights."""
    with torch.device("meta"):
        return make_replica(experiment, task)


@pytest.mark.parametrize("name", OF_THE_BILINEAR_PAPERS)
def test_the_papers_own_budget_passes_the_checks_before_training(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "make_replica", make_without_weights)
    suite = load_suite(name).within("paper")
    found = points_of(suite, Path("out"), {})
    assert len(found) == len(suite.rows) * len(suite.columns)
    assert all(papers_experiment(suite, point) == point.experiment for point in found)


@pytest.mark.slow
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("name", WITH_PAPER)
def test_every_point_of_every_budget_passes_the_checks(name: str, budget: str) -> None:
    suite = load_suite(name)
    if budget == BUDGETS[0] or budget in suite.budgets:
        within = suite.within(budget)
        found = points_of(within, Path("out"), {})
        assert len(found) == len(within.rows) * len(within.columns)
