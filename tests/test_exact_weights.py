"""Exact weights: built by every class of recurrence, refused where they cannot be, run as runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import statetrack as st
from statetrack.cli.app import run as command
from statetrack.errors import BuildError, RunError, SettingsError
from statetrack.models import SequenceModel
from statetrack.references import references
from statetrack.runs import files, write_built
from statetrack.sources import Automaton
from tests.claims.running import follow
from tests.setups import all_constructions

CHEAP: dict[str, tuple[str, str, dict[str, Any]]] = {
    # the quickest task of each construction, by the class and its name
    "Dense matrices": ("s3", "bilinear", {}),
    "Blocks blocks": ("s3", "bilinear-block", {}),
    "Factored terms": ("s3", "bilinear-cp", {}),
    "Affine affine maps": ("s3", "token-gated-rnn", {}),
    "TransitionMatrices maps of states": ("s3", "sd-ssm", {}),
    "OneHotTimesDiagonal maps of states": ("s3", "pd-ssm", {}),
    "Diagonal characters": ("modular-addition", "bilinear-rotation", {}),
    "Diagonal occurrences": ("tomita-1", "diagonal-positive", {}),
    "Diagonal resets": ("register", "diagonal-complex", {"additive": "input"}),
    "SignedLayers signs": ("parity", "mamba", {"eigenvalues": "signed"}),
    "UnitLayers characters": ("modular-addition", "aussm", {}),
    "ComplexLayers characters": ("modular-addition", "mamba3", {"slowest": 0.0}),
    "PositiveLayers register": ("register", "min-gru", {}),
    "SignedLayers register": ("register", "mamba", {"eigenvalues": "signed"}),
    "ComplexLayers register": ("register", "mamba3", {"slowest": 0.0}),
    "FixedPositiveLayers register": ("register", "rwkv4", {}),
    "FixedPhaseLayers register": ("register", "hgrn", {"phase": "learned"}),
    "Clamped register": ("register", "minmax", {}),
    "Alternating recurrent layers alone": ("register", "hybrid", {}),
    "DiagonalMinusRankOne register": ("register", "rwkv7", {}),
    "Householder register": ("register", "deltanet", {}),
    "HouseholderProduct register": ("register", "deltaproduct", {}),
    "Householder reflections": ("parity", "deltanet", {"beta": "double"}),
    "HouseholderProduct reflections": ("parity", "deltaproduct", {"beta": "double"}),
    "Saturating a unit for each state": ("parity", "second-order-rnn", {}),
    "Saturating a unit for each state and action": ("parity", "lstm", {}),
}


def known() -> list[str]:
    own = [
        pair for pair in all_constructions() if pair[1].make.__module__.startswith("statetrack.")
    ]
    return [f"{kind.__name__} {each.name}" for kind, each in own]


def test_every_construction_is_tried_and_names_its_equation_and_source() -> None:
    assert known() == list(dict.fromkeys(known())) and set(known()) == set(CHEAP)
    for _, each in all_constructions():
        assert "h_t" in each.equation.replace("H_t", "h_t") and each.margin
        assert each.source == "own" or each.source in references(), each.source


@pytest.mark.parametrize("name", CHEAP)
def test_what_is_built_follows_its_task_in_both_types_with_the_margin_it_promises(
    name: str,
) -> None:
    task, model, options = CHEAP[name]
    automaton = st.load_task(task).automaton
    for dtype in ("float64", "float32"):
        built = st.build(task, model, dtype=dtype, **options)  # type: ignore[arg-type]
        assert f"{built.construction.name}" == name.partition(" ")[2]
        assert {value.dtype for value in built.model.parameters()} == {getattr(torch, dtype)}
        assert isinstance(built.model, SequenceModel) and built.margin is not None
        found = follow(built.model, automaton, 300, num_words=3)
        assert found.exact
        least = 1 - (1e-6 if dtype == "float64" else 1e-2)
        assert found.margin >= least * built.margin, "hard words lead to no other states"


WIDER: dict[str, tuple[str, dict[str, Any]]] = {
    "bilinear": ("s3", {"hidden": 5}),
    "bilinear-block": ("s3", {"hidden": 9, "block_size": 3}),
    "bilinear-cp": ("s3", {"hidden": 4, "rank": 9, "embed_dim": 7, "readout_bias": True}),
    "full-matrix": ("s3", {"size": 4}),
    "bilinear-rotation": ("modular-addition", {"hidden": 6, "embed_dim": 5}),
    "diagonal-real": ("parity", {"hidden": 4, "additive": "input"}),
    "diagonal-positive": ("tomita-1", {"hidden": 8}),
    "token-gated-rnn": ("s3", {"hidden": 4, "width": 20}),
    "sd-ssm": ("parity", {"state": 6, "dictionary": 4, "width": 20}),
    "pd-ssm": ("parity", {"state": 6, "dictionary": 4, "width": 20}),
    "ids4": ("parity", {"state": 4, "width": 16}),
    "slice": ("s3", {"block_size": 3, "width": 24}),
    "lstm": ("parity", {"hidden": 12}),
    "second-order-rnn": ("dyck-1-depth-4", {"hidden": 7}),
    "state-gated-rnn": ("dyck-1-depth-4", {"hidden": 9, "width": 20}),
    "m2rnn": ("parity", {"value_size": 9, "width": 20}),
    "mamba": ("register", {"width": 24, "layers": 2}),
    "gla": ("register", {"width": 24}),
    "min-gru": ("register", {"width": 24, "layers": 2}),
    "mlstm": ("register", {"width": 24}),
    "rwkv7": ("register", {"width": 24}),
    "deltanet": ("parity", {"beta": "double", "width": 24, "heads": 3}),
}


@pytest.mark.parametrize("model", WIDER)
def test_larger_settings_that_are_given_are_filled_with_what_does_nothing(model: str) -> None:
    task, options = WIDER[model]
    built = st.build(task, model, **options)
    for name, value in options.items():
        assert getattr(built.settings, name) == value
    assert isinstance(built.model, SequenceModel)
    assert follow(built.model, st.load_task(task).automaton, 300, num_words=3).exact


@pytest.mark.parametrize(
    ("task", "model", "options"),
    [
        ("modular-addition", "ids4", {"activation": "none", "norm": "none"}),
        ("parity", "ids4", {"width": 21, "residual": False, "layers": 2}),
        ("s3", "slice", {"first": "learned"}),
        ("register", "hybrid", {"heads": 3}),
    ],
)
def test_options_that_change_a_layer_are_built_with(
    task: str, model: str, options: dict[str, Any]
) -> None:
    built = st.build(task, model, **options)
    assert {name: getattr(built.settings, name) for name in options} == options
    assert isinstance(built.model, SequenceModel)
    assert follow(built.model, st.load_task(task).automaton, 300, num_words=3).exact


ONE_STATE = [[0, 0, 0]], [0]
A_REGISTER_OF_THREE = [[0, 1, 2], [1, 1, 2], [2, 1, 2]], [0, 1, 2]
THREE_IN_TURN = [[1], [2], [0]], [0, 0, 1]
EIGHT_IN_TURN = [[(state + move) % 8 for move in (1, 6)] for state in range(8)]
SMALL: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "aussm on one state": (ONE_STATE, "aussm", {}),
    "mamba on one state": (ONE_STATE, "mamba", {"eigenvalues": "signed"}),
    "deltaproduct on one state": (ONE_STATE, "deltaproduct", {"beta": "unit"}),
    "a pair of numbers for a gain": (
        A_REGISTER_OF_THREE,
        "diagonal-complex",
        {"additive": "input"},
    ),
    "two terms for one turn": (THREE_IN_TURN, "bilinear-cp", {}),
    "labels that no character separates": (
        (EIGHT_IN_TURN, [0, 1, 1, 0, 1, 1, 1, 0]),
        "aussm",
        {},
    ),
}


@pytest.mark.parametrize("name", SMALL)
def test_small_machines_are_built_at_the_predicted_sizes(name: str) -> None:
    (delta, output), model, options = SMALL[name]
    automaton = Automaton(delta, output)
    task = st.Task.from_automaton(automaton)
    built = st.build(task, model, dtype="float64", **options)
    wanted = st.predict(task, built.settings)
    assert wanted.answer == "yes"
    assert isinstance(built.model, SequenceModel)
    assert follow(built.model, automaton, 1000, num_words=3).exact


def test_a_label_that_no_state_has_does_not_hinder_a_readout() -> None:
    s4 = st.load_task("s4").automaton
    output = np.random.default_rng(3).integers(0, 4, s4.num_states)
    task = st.Task.from_automaton(Automaton(s4.delta, output, labels=[*"abcde"]))
    built = st.build(task, "bilinear", dtype="float64")
    assert isinstance(built.model, SequenceModel)
    assert follow(built.model, task.automaton, 300, num_words=3).exact


@pytest.mark.parametrize("model", ["bilinear", "bilinear-block", "full-matrix", "bilinear-cp"])
def test_a_label_that_is_asked_for_in_one_state_alone_is_read_there(model: str) -> None:
    automaton = Automaton(
        [[1, 1], [1, 1]], [0, 1], weights=[[0, 1], [0.5, 0.5]], scored=[False, True]
    )
    built = st.build(st.Task.from_automaton(automaton), model, dtype="float64")
    assert isinstance(built.model, SequenceModel)
    assert follow(built.model, automaton, 300, num_words=3).exact


def test_counts_up_to_a_threshold_are_predicted_and_not_built() -> None:
    twice = st.Task.from_automaton(Automaton([[0, 1], [1, 2], [2, 2]]))
    assert st.predict(twice, "diagonal-real").can == "yes"
    with pytest.raises(BuildError, match="how often a symbol was read, and only whether is built"):
        st.build(twice, "diagonal-real")


def test_affine_maps_of_a_symbol_that_is_not_drawn_at_the_start() -> None:
    turns = Automaton(
        [[1, 0, 2], [0, 1, 3], [3, 2, 1], [2, 3, 0]],
        weights=[[0, 0, 1], [1, 1, 1], [1, 0, 1], [1, 1, 1]],
    )
    for model in ("token-gated-rnn", "state-gated-rnn"):
        built = st.build(st.Task.from_automaton(turns), model, dtype="float64")
        assert isinstance(built.model, SequenceModel)
        assert follow(built.model, turns, 300, num_words=3).exact


@pytest.mark.parametrize(
    ("task", "model", "options", "said"),
    [
        ("s3", "diagonal-positive", {}, "cannot: .*never settle.* w = "),
        ("parity", "gated-deltanet", {}, "cannot: .* With beta='double' it can"),
        ("s3", "bilinear", {"hidden": 1}, "hidden=1 is too small: 2 is enough, and no less"),
        ("s3", "second-order-rnn", {"hidden": 5}, "hidden=5 is too small: 6 is enough"),
        ("s3", "state-gated-rnn", {"hidden": 6}, "hidden=6 is too small: 7 is enough"),
        ("s3", "lstm", {"hidden": 9}, "hidden=9 is too small: 37 is enough, and no smaller"),
        ("flip-flop", "diagonal-real", {"additive": "input"}, "not known to be possible"),
        ("dyck-1-depth-4", "mamba", {}, "no exact weights are known: only registers are built"),
        ("register", "gla", {"heads": 2}, "heads=2: the construction needs 1"),
        ("s3", "bilinear", {"embed_dim": 2}, "embed_dim=2: with less than 6"),
        ("parity", "sd-ssm", {"width": 3}, "width=3: the construction needs at least 5"),
    ],
)
def test_what_cannot_be_built_is_refused_in_one_line(
    task: str, model: str, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(BuildError, match=said) as refused:
        st.build(task, model, **options)
    assert "\n" not in str(refused.value) and str(refused.value).startswith(f"{model} on '{task}'")


def test_a_type_or_a_noise_that_is_none_is_refused() -> None:
    with pytest.raises(SettingsError, match="dtype='float16': one of float32, float64"):
        st.build("s3", "bilinear", dtype="float16")  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match="0 or more"):
        st.build("s3", "bilinear", noise=-1.0)
    with pytest.raises(SettingsError, match="hiden"):
        st.build("s3", "bilinear", hiden=3)


def test_noise_is_drawn_by_its_seed_and_leaves_nothing_promised() -> None:
    exact, *noisy = (
        st.build("s3", "bilinear", noise=noise, seed=seed, dtype="float64")
        for noise, seed in ((0.0, 0), (0.1, 3), (0.1, 3), (0.1, 4))
    )
    first, same, other = (each.model.state_dict()["weight"] for each in noisy)
    assert torch.equal(first, same) and not torch.equal(first, other)
    off = first - exact.model.state_dict()["weight"]
    assert 0.05 < off.std() < 0.15 and noisy[0].margin is None


# --- as runs ---


@pytest.fixture(scope="module")
def exact_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of bilinear-block on S3 that was built, in float64."""
    out = tmp_path_factory.mktemp("exact") / "s3"
    line = ["build", "s3", "--model", "bilinear-block", "--precision", "float64"]
    assert command([*line, "--out", str(out)]) == 0
    return out


def test_an_option_that_build_lacks_is_named_where_it_stands_for_the_task(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert command(["build", "--task", "parity", "--model", "aussm"]) == 2
    assert capsys.readouterr().err.startswith("error: aussm has no option --task.")


def test_a_built_run_is_read_by_every_command(
    exact_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = str(exact_run)
    for words, said in (
        (["eval", run, "--length", "300", "--samples", "20"], "every answer correct"),
        (["certify", run, "--seconds", "0.1"], "proven"),
        (["extract", run, "--seconds", "5"], "equivalent"),
        (["probe", run, "--seconds", "0.1"], "myhill-nerode"),
        (["export", run, "--out", str(tmp_path / "exported"), "--length", "40"], "golden words"),
        (["snap", run, "--out", str(tmp_path / "snapped"), "--seconds", "0.5"], "proven"),
        (["compare", run], "agrees"),
        (["show", run], "h_t = diag"),
        (["cite", run], "@"),
        (["list", "runs", "--runs", str(exact_run.parent)], "bilinear-block"),
        (["report", str(exact_run.parent)], "bilinear-block"),
        (["plot", run, "--out", str(tmp_path / "curve.png")], "curve.png"),
    ):
        assert command(words) == 0, words
        told = capsys.readouterr()
        assert said in told.out + told.err, (words, told.out, told.err)
        assert "0 steps" not in told.out and "step 0" not in told.out, words


def test_a_built_run_keeps_how_it_was_built_and_says_how_to_repeat_it(
    exact_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = st.Run.open(exact_run)
    built = run.experiment.built
    assert built is not None and built.construction == "blocks" and built.sizes == {"block_size": 2}
    assert run.model().state_dict()["weight"].dtype == torch.float64
    assert run.selected.validation_accuracy == 1.0 and not run.summary.diverged
    command(["show", str(exact_run), "--json"])
    repeat = json.loads(capsys.readouterr().out)["repeat"].split()
    assert repeat[:3] == ["statetrack", "build", "s3"]
    assert command([*repeat[1:], "--out", str(tmp_path / "again")]) == 0
    again = st.Run.open(tmp_path / "again")
    assert again.experiment.values() == run.experiment.values()
    assert again.model().state_dict()["weight"].equal(run.model().state_dict()["weight"])


def test_a_built_run_is_not_replaced_unless_that_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["build", "parity", "--model", "diagonal-real", "--out", str(tmp_path / "one")]
    assert command([*line, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["built"]["construction"] == "characters"
    assert command(line) == 1 and "--force" in capsys.readouterr().err
    assert command([*line, "--force", "--noise", "0.5"]) == 0
    assert "none, with noise" in capsys.readouterr().out
    assert command(["build", "s3", "--model", "diagonal-real"]) == 1
    assert "cannot" in capsys.readouterr().err
    assert command(["build", "s3", "--model", "bilinear", "--hidden", "1"]) == 1
    assert "--hidden 1 is too small" in capsys.readouterr().err
    assert command(["build", "s3", "--model", "bilinear", "--rank", "1"]) == 2
    assert "--rank" in capsys.readouterr().err


# --- training from the weights of a run ---

QUICK = ["--steps", "20", "--batch-size", "8", "--validate-every", "10", "--finish", "none"]


def test_training_starts_from_the_weights_of_a_run_and_is_resumed_without_it(
    exact_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "warm"
    line = ["train", "--from", str(exact_run), "--lrs", "1e-9", "--seeds", "2", *QUICK]
    assert command([*line, "--out", str(out)]) == 0
    run = st.Run.open(out)
    start = run.experiment.started_from
    source = st.Run.open(exact_run)
    assert start is not None and start.built and start.run == exact_run.as_posix()
    assert start.weights == files.WEIGHTS.hash_in(exact_run)
    assert run.experiment.model_settings == source.experiment.model_settings
    assert run.experiment.built is None and len(run.summary.replicas) == 2
    for replica in (0, 1):
        trained = run.model(replica).state_dict()
        for name, value in source.model().state_dict().items():
            torch.testing.assert_close(trained[name].double(), value, rtol=0, atol=1e-6)
    assert run.selected.validation_accuracy == 1.0
    capsys.readouterr()
    command(["show", str(out)])
    assert "started from" in capsys.readouterr().out


def test_a_warm_start_is_the_same_with_and_without_an_interruption(tmp_path: Path) -> None:
    settings = {"steps": 20, "batch_size": 8, "validate_every": 10, "finish": "none"}
    noisy = st.build("parity", "diagonal-real", noise=0.1)
    source = write_built(noisy, st.load_task("parity"), "diagonal-real", tmp_path / "noisy")
    runs = [
        st.Run.start(start_from=source.path, out=tmp_path / name, **settings)
        for name in ("whole", "stopped")
    ]
    list(runs[0].train())
    assert files.INITIAL.read(runs[1].path)["gains"].shape[0] == 1
    for _ in runs[1].train(stop=lambda: True):
        pass
    (source.path / "config.yaml").unlink()  # the run that it began with is gone
    list(st.Run.resume(runs[1].path).train())
    first, second = (run.model().state_dict() for run in runs)
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_weights_of_another_shape_and_settings_of_a_built_run_are_refused(
    exact_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for more, said in (
        (["--hidden", "4"], "its weights are not those of such a model"),
        (["--model", "gru"], "is a run of bilinear-block"),
        (["--task", "parity"], "its weights are not those of such a model"),
    ):
        line = ["train", "--from", str(exact_run), *more, *QUICK, "--out", str(tmp_path / "no")]
        assert command(line) == 1, more
        told = capsys.readouterr().err
        assert said in told, told
        assert not (tmp_path / "no").exists()
    config = str(exact_run / "config.yaml")
    assert command(["train", "--config", config, *QUICK]) == 1
    assert "--from" in capsys.readouterr().err
    with pytest.raises(RunError, match="no such run folder"):
        st.Run.start(start_from=tmp_path / "nowhere")
