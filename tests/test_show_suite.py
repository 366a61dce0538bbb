"""`statetrack show SUITE`: what a suite consists of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from statetrack.cli.app import run
from statetrack.registry import tasks_folder
from statetrack.settings import read_yaml
from statetrack.sweep import SUITES

SUITE: dict[str, Any] = {
    "title": "Signs and an LSTM",
    "reference": "Ebrahimi & Memisevic 2025, arXiv:2505.21749",
    "departures": "fewer steps",
    "settings": {"seeds": 3, "lrs": [0.01, 0.1]},
    "models": {"signs": "diagonal-real", "LSTM": {"model": "lstm", "hidden": 8, "lrs": [0.01]}},
    "tasks": {"parity": "parity", "mod 3": {"task": "modular-addition:m=3", "steps": 7}},
    "axes": {"batch_size": [8, 16]},
    "length": 30,
    "samples": 40,
    "curve_lengths": list(range(10, 30)),
    "horizon_lengths": [60, 90],
    "horizon_samples": 10,
    "budgets": {
        "paper": {
            "says": "as there",
            "protocol": "bilinear-paper",
            "models": {"signs": {"hidden": 9}, "LSTM": {"hidden": 9}},
        }
    },
    "tables": [
        {
            "source": "Table 1",
            "trust": "second-hand",
            "unlike": "another task",
            "values": {"signs, batch_size=8": {"parity": 1.0, "mod 3": 0.0}},
        }
    ],
}


@pytest.fixture
def shown(tmp_path, monkeypatch, capsys):
    """The lines that a suite's file is described with."""
    monkeypatch.setenv("COLUMNS", "150")
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_text(yaml.safe_dump(SUITE, sort_keys=False))
    assert run(["show", "mine.yaml"]) == 0
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


def test_a_suite_is_described_with_its_points_replicas_and_measurements(shown):
    assert shown[:2] == ["mine suite", "Signs and an LSTM"]
    for line in (
        "paper Ebrahimi & Memisevic 2025, arXiv:2505.21749",
        "Revisiting Bi-Linear State Transitions in Recurrent Neural Networks (2025)",
        "otherwise than there fewer steps",
        "axis batch_size 8, 16",
        "points 8: 4 rows x 2 columns",
        "replicas 36 in all, by seeds and learning rates",
        "table accuracy of the selected replica, on 40 words of length 30",
        "every replica also at 20 lengths from 10 to 29",
        "the selected one also at 60, 90, on 10 words",
        "LSTM lstm hidden 8, lrs 0.01",
        "mod 3 modular-addition:m=3 steps 7",
    ):
        assert line in shown


def test_a_budget_is_described_by_what_it_changes_and_means(shown):
    assert "paper protocol bilinear-paper; signs, LSTM: hidden 9 as there" in shown


def test_a_table_of_published_numbers_has_its_source_and_trust(shown):
    assert any(
        line.startswith("Table 1") and "second-hand 2 scaled, selected 30" in line for line in shown
    )
    assert any("not comparable: another task" in line for line in shown)


def test_the_json_of_a_suite_has_the_keys_of_its_file(capsys):
    assert run(["show", "hierarchy", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    file = read_yaml(tasks_folder() / "suites" / "hierarchy.yaml")
    assert printed == {"name": "hierarchy", "type": "suite", **file}


@pytest.mark.parametrize("name", [*SUITES])
def test_every_suite_can_be_shown(name, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert run(["show", name]) == 0
    assert " ".join(SUITES[name].title.split()[:3]) in capsys.readouterr().out
