"""Snapping: exact operators in place of learned ones that are close to them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import statetrack as st
from statetrack.cli.app import run as command
from statetrack.errors import SettingsError
from statetrack.evidence import Certificate, SearchBudget, Subject, snap, snap_subject
from statetrack.runs import Run, files
from tests.exact_models import factored, in_blocks, one_hot, put, rotating
from tests.setups import parity_run
from tests.test_docs import documented


def disturbed(model: Any, size: float) -> Any:
    """The model with noise on all its weights."""
    draw = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += size * torch.randn(parameter.shape, generator=draw)
    return model


BUILT = {
    "dense group": lambda: one_hot("modular-addition"),
    "dense machine": lambda: one_hot("random-fsm"),
    "factors": factored,
}


@pytest.mark.parametrize("name", BUILT)
def test_operators_with_a_coordinate_per_state_are_proven_for_all_lengths(name: str) -> None:
    model, automaton = BUILT[name]()
    disturbed(model, 3e-3)
    before = Certificate.search(Subject(model, automaton), budget=SearchBudget(60))
    assert before.verdict != "all lengths"
    found = snap(model, automaton)
    assert 1e-4 < found.defect < 0.05
    assert found.certificate.verdict == "all lengths"


@pytest.mark.parametrize("build", [rotating, in_blocks])
def test_rotations_and_blocks_are_proven_as_far_as_rounding_allows(build: Any) -> None:
    model, automaton = build()
    disturbed(model, 1e-4)
    before = Certificate.search(Subject(model, automaton), budget=SearchBudget(60))
    found = snap(model, automaton)
    assert found.certificate.verdict == "to length"
    assert found.certificate.length is not None
    assert found.certificate.length > max(50_000, 10 * (before.length or 0))
    word = np.random.default_rng(0).integers(0, automaton.num_symbols, (20, 300))
    assert not Subject(found.model, automaton).first_errors(word).any()


def test_gains_near_signs_become_signs_and_are_proven_for_all_lengths() -> None:
    settings = st.MODELS["diagonal-real"].settings_class(hidden=3)
    model: Any = st.MODELS["diagonal-real"](settings, num_symbols=2, num_labels=2).eval()
    put(model.gains, [[0.9, 0.999, 0.2], [0.1, -1.001, 0.3]])
    put(model.first, [0.01, 0.7, 0.01])
    put(model.readout.weight, [[0.0, 1.0, 0.0], [0.0, -1.0, 0.0]])
    found = snap(model, "parity")
    assert (found.certificate.verdict, found.dimension) == ("all lengths", 1)


def test_complex_gains_near_roots_of_unity_become_those() -> None:
    model, automaton = rotating()
    settings = st.MODELS["diagonal-complex"].settings_class(hidden=4)
    other: Any = st.MODELS["diagonal-complex"](settings, num_symbols=5, num_labels=5).eval()
    turns = torch.polar(torch.tensor(1.001), model.angles.detach() + 1e-3)
    put(other.gains, torch.view_as_real(turns))
    put(other.first, model.first.detach())
    put(other.readout.weight, model.readout.weight.detach())
    found = snap(other, automaton)
    assert found.certificate.length is not None and found.certificate.length > 50_000


def test_learned_embeddings_of_symbols_are_kept() -> None:
    settings = st.MODELS["bilinear"].settings_class(hidden=2, embed_dim=3)
    model: Any = st.MODELS["bilinear"](settings, num_symbols=2, num_labels=2).eval()
    embedding = model.embedding.vectors.detach().double().numpy()
    swaps = np.stack([np.eye(2), np.eye(2)[::-1]])
    put(model.weight, np.moveaxis(np.tensordot(np.linalg.pinv(embedding), swaps, 1), 0, -1))
    put(model.first, [1.0, 0.0])
    put(model.readout.weight, np.eye(2))
    disturbed(model, 1e-3)
    kept = model.embedding.vectors.detach().clone()
    found = snap(model, "parity")
    assert found.certificate.length is not None or found.certificate.verdict == "all lengths"
    assert isinstance(found.model.embedding.vectors, torch.Tensor)
    assert torch.equal(found.model.embedding.vectors, kept)


def test_what_is_far_from_any_representation_is_refused_with_the_defect() -> None:
    model, automaton = one_hot("random-fsm")
    with pytest.raises(
        SettingsError, match=r"by 0\.\d+ of the states' size, and 0\.05 is the most"
    ):
        snap(disturbed(model, 0.2), automaton)


def test_models_that_represent_nothing_are_refused() -> None:
    with pytest.raises(SettingsError, match="not a linear model"):
        snap(st.make_model("lstm", "parity"), "parity")
    with pytest.raises(SettingsError, match="additive terms or a readout bias"):
        snap(st.make_model("bilinear", "parity", additive="input"), "parity")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(parity_run(tmp_path_factory.mktemp("runs")))


def test_snap_writes_a_new_run_with_its_certificate(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.read_bytes() for path in trained.rglob("*") if path.is_file()}
    out = tmp_path / "new"
    assert command(["snap", str(trained), "--defect", "0.5", "--out", str(out), "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert set(content) == documented("snap --json")
    assert before == {path: path.read_bytes() for path in trained.rglob("*") if path.is_file()}
    made = Run.open(out)
    assert made.summary.selected == 0 and made.selected.validation_accuracy == 1.0
    assert made.folder.read(files.ENVIRONMENT)["snapped_from"] == str(trained)
    (row,) = made.folder.evidence()
    assert row.evidence.kind == "certificate"
    assert command(["snap", str(trained), "--out", str(out)]) == 1
    assert "is not empty" in capsys.readouterr().err


def test_snap_says_what_to_do_before_it_searches(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trained, file = parity_run(tmp_path / "trained"), tmp_path / "file"
    file.touch()
    assert command(["snap", str(trained), "--out", str(file / "new")]) == 1
    assert f"{file} is no folder: choose another --out" in capsys.readouterr().err
    model, automaton = one_hot("random-fsm")
    with pytest.raises(SettingsError, match=r"the budget ended .* give more seconds"):
        snap_subject(Subject(model, automaton), 0.05, SearchBudget(0.0))


# --- integers ---

WHOLE: list[tuple[str, str, dict[str, Any], int]] = [
    # the task, the model, its settings, the dimension of what is found
    ("s3", "bilinear", {"embed_dim": 7}, 2),
    ("dihedral", "bilinear-block", {}, 2),
    ("s3", "bilinear-cp", {"rank": 4}, 2),
    ("cyclic:n=5", "bilinear", {"hidden": 6}, 4),
    ("random-fsm", "bilinear-cp", {}, 5),
    ("product(parity,cyclic:n=3)", "bilinear-block", {}, 2),
]


@pytest.mark.parametrize(("task", "model", "options", "dimension"), WHOLE)
def test_near_a_representation_whole_numbers_are_found_and_proven_for_all_lengths(
    task: str, model: str, options: dict[str, Any], dimension: int
) -> None:
    learned = st.build(task, model, **options).model
    disturbed(learned, 1e-3)
    shapes = {name: value.shape for name, value in learned.state_dict().items()}
    found = snap(learned, task, integers=True)
    assert 1e-4 < found.defect < 0.05 and found.dimension == dimension
    assert found.certificate.verdict == "all lengths"
    for name, value in found.model.state_dict().items():
        assert value.shape == shapes[name] and torch.equal(value, value.round()), name


def test_whole_numbers_that_have_no_room_are_refused_with_the_size_that_has() -> None:
    for task, model, said in (
        ("cyclic:n=5", "bilinear", "hidden=2: 4 is enough"),
        ("dihedral:n=5", "bilinear-block", "block_size=2: 4 is enough"),
        ("modular-addition", "bilinear-cp", "hidden=2: 4 is enough"),
    ):
        learned = disturbed(st.build(task, model).model, 1e-3)
        with pytest.raises(SettingsError, match=f"dimension 2 has no form in integers.*{said}"):
            snap(learned, task, integers=True)
    with pytest.raises(SettingsError, match="integers=True: of matrices, blocks and factors"):
        snap(st.build("parity", "diagonal-real").model, "parity", integers=True)


def test_a_model_that_was_trained_is_written_in_whole_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, whole = str(tmp_path / "learned"), str(tmp_path / "whole")
    line = ["train", "--task", "s3", "--model", "bilinear-block", "--hidden", "8", "--seeds", "1"]
    assert command([*line, "--block-size", "2", "--steps", "250", "--out", out]) == 0
    assert command(["snap", out, "--integers", "--defect", "0.2", "--out", whole]) == 0
    assert "all lengths" in capsys.readouterr().out
    weights = Run.open(Path(whole)).model().state_dict()
    assert all(torch.equal(value, value.round()) for value in weights.values())
