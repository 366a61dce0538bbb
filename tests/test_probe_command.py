"""`probe`: what is measured of a run, as a report and as JSON, and of any model."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from torch import nn

import statetrack as st
from statetrack.cli.app import run as command
from statetrack.evidence import Representation, kinds_of
from statetrack.runs import Run, files
from tests.run_files import write_weights
from tests.test_representation import counter, model_of_parts

PARTS = {kind.kind for kind in kinds_of("probe")}


@pytest.fixture(scope="module")
def counting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on addition modulo 5: replica 0 has harmonics 1 and 2, replica 1 is off by an angle."""
    exact, wrong = counter(5, [1, 2]), counter(5, [1, 2], extra=1e-3)
    return run_of(tmp_path_factory.mktemp("runs") / "counting", exact, wrong)


def run_of(path: Path, *models: st.LinearModel) -> Path:
    """A run folder with these full bilinear models of addition modulo 5 as its replicas."""
    quick = {"validation_words": 4, "batch_size": 2, "validate_every": 1, "device": "cpu"}
    hidden = models[0].first.numel()
    run = Run.start(out=path, model="bilinear", hidden=hidden, steps=1, seeds=len(models), **quick)
    for _ in run.train():
        pass
    weights = run.folder.read(files.WEIGHTS)
    for name, value in weights.items():
        for replica, model in enumerate(models):
            value[replica] = model.state_dict()[name]
    write_weights(run.folder, weights)
    return path


@pytest.fixture
def runs(counting: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return shutil.copytree(counting, tmp_path / "counting")


def test_probe_prints_the_representation_of_each_replica_and_keeps_the_rows(runs, capsys):
    assert command(["probe", str(runs), "--all", "--only", "representation"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    exact, wrong = printed.out.split("bilinear on modular-addition, ")[1:]
    for report in (exact, wrong):
        assert "Z5 (5 elements) acts on 4 dimensions; the parts add up to 4" in report
        assert "harmonic 1, faithful" in report and "not learned: trivial" in report
    assert "1.0000  " in exact and "1.0008" in wrong
    rows = Run.open(runs).evidence(Representation)
    assert [row.replica for row in rows] == [0, 1]
    assert [row.evidence.dimension for row in rows] == [4, 4]


def test_probe_prints_how_errors_grow_and_fits_into_80_columns(runs, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert command(["probe", str(runs), "--seconds", "0.3"]) == 0
    printed = capsys.readouterr()
    assert "R: how far hidden states" in printed.out and "displacement: how far" in printed.out
    assert "R/M of states" in printed.out and "float32" in printed.out
    assert "myhill-nerode" in printed.out and "compression" in printed.out
    assert "noise 0.1" in printed.out and "margin" in printed.out
    lines = printed.out.splitlines()
    assert max(map(len, lines[:-1])) <= 80  # the last one is the path


def test_probe_prints_json(runs, capsys):
    assert command(["probe", str(runs), "--replica", "1", "--seconds", "0.3", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    (row,) = printed["replicas"]
    assert row["replica"] == 1
    assert set(row["evidence"]) | set(row["skipped"]) == PARTS
    found = row["evidence"]["representation"]
    assert [plane["integer"] for plane in found["planes"]] in ([1, 2], [2, 1])


def test_an_unknown_part_is_refused_with_the_nearest(runs, capsys):
    assert command(["probe", str(runs), "--only", "representatoin"]) == 1
    assert "Did you mean 'representation'?" in capsys.readouterr().err


def test_a_model_that_is_not_linear_says_why_its_representation_is_not_measured():
    model = st.make_model("lstm", "parity", hidden=4)
    probe = st.probe(model, "parity", only=["representation"])
    assert probe.representation is None
    assert "no linear recurrence" in dict(probe.skipped)["representation"]


def test_a_module_of_ones_own_is_probed():
    said: list[str] = []
    probe = st.probe(model_of_parts("s3", (2,)), "s3", seconds=1, report=said.append)
    assert probe.representation is not None
    assert probe.representation.groups[0].name == "S3"
    assert probe.error_control is not None and probe.error_control.states == 6
    assert probe.myhill_nerode is not None
    assert PARTS <= set(said)


class Remembering(nn.Module):
    """Parity, out of a state that holds every symbol that was read."""

    def initial_state(self, num_words: int) -> torch.Tensor:
        return torch.zeros(num_words, 0)

    def step(self, symbols: torch.Tensor, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        state = torch.cat([state, symbols[:, None].float()], 1)
        odd = state.sum(1) % 2
        return torch.stack([1 - odd, odd], 1), state


def test_what_needs_a_state_of_constant_size_is_not_measured_of_one_that_grows() -> None:
    grows = "its state grows: it has 0 numbers before a symbol and 1 after it"
    only = ["error-control", "step-eigenvalues", "trajectory"]
    found = st.probe(Remembering(), "parity", seconds=1, only=only)
    assert sorted(found.skipped) == [(kind, grows) for kind in only] and not found.evidence
    assert (st.certify(Remembering(), "parity", seconds=0.1).proven or 0) > 0
