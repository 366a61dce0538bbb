"""A short run of the script that checks every claim; `make claims` is the long one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from statetrack.constructions import Case, NotBuilt, build_case, covering_words, separate
from statetrack.models import MODELS
from statetrack.predicting import predict
from tests.claims import attacking, building, cells
from tests.claims.building import Budget, build_and_run
from tests.claims.cells import Cell, Variant, algebra_of, automaton_of
from tests.claims.running import follow
from tests.claims.words import hard_words

RECORDED = Path(__file__).parent / "claims" / "recorded.json"

CHEAP = {
    # a task that is quickly built and run for each model, where the default one is not
    "deltanet --beta double": "parity",
    "gated-deltanet --beta double": "parity",
    "mamba --eigenvalues signed": "parity",
    "aussm": "modular-addition",
    "bilinear-rotation": "z60",
    "diagonal-complex": "z60",
    "diagonal-real": "product(parity,parity,parity)",
}


def cell_of(model: str, task: str, **options: object) -> Cell:
    prediction = predict(algebra_of(task), model, **options)
    return Cell(Variant(model, tuple(options.items())), task, prediction)


@pytest.mark.parametrize("model", MODELS)
def test_a_model_built_by_hand_at_the_predicted_size_follows_its_task(model: str) -> None:
    exact = 0
    for variant in cells.variants([model]):
        tasks = [CHEAP[variant.name]] if variant.name in CHEAP else ["s3", "register", "parity"]
        for task in tasks:
            cell = cell_of(model, task, **dict(variant.options))
            if cell.sized and cell.prediction.can == "yes":
                built = build_and_run(cell, Budget(symbols=200, words=6))
                assert built.outcome in ("exact", "not built"), (variant.name, task, built)
                exact += built.outcome == "exact"
                break
    sized = [cell_of(model, task).sized for task in ("s3", "parity", "register")]
    assert exact or not any(sized), model


def test_one_hot_rows_follow_tasks_whose_symbols_permute_the_states_and_others_are_not_known():
    cell = cell_of("pd-ssm", "s3", one_hot="rows")
    assert cell.prediction.can == "yes" and cell.prediction.needs
    assert build_and_run(cell, Budget(symbols=200, words=6)).outcome == "exact"
    assert cell_of("pd-ssm", "register", one_hot="rows").prediction.can == "unknown"
    assert cell_of("pd-ssm", "register").prediction.can == "yes"


def test_a_model_with_one_wrong_weight_is_found_out() -> None:
    cell = cell_of("bilinear", "s3")
    case = Case("bilinear", {}, automaton_of("s3"), algebra_of("s3"), cell.prediction)
    model, _ = build_case(case)
    assert follow(model, case.automaton, 300).exact
    with torch.no_grad():
        model.weight[1, 0, 0] += 1.0
    followed = follow(model, case.automaton, 300)
    assert not followed.exact and followed.first_wrong is not None


def test_a_construction_larger_than_predicted_is_not_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cell = cell_of("bilinear", "s3")

    def larger(case: Case) -> object:
        return build_case(replace(case, options={"hidden": 5}))

    monkeypatch.setattr(building, "build_case", larger)
    assert build_and_run(cell, Budget(symbols=10)).outcome == "not built"


@pytest.mark.parametrize("task", cells.RECORDED_TASKS)
def test_every_cell_of_a_small_task_names_its_theorem_and_keeps_its_word(task: str) -> None:
    found = list(cells.cells(tasks=[task]))
    assert {cell.variant.model for cell in found} == set(cells.MODELS)
    assert [(cell.variant.name, cell.complaints) for cell in found if cell.complaints] == []


def test_the_record_agrees_with_what_is_predicted_now() -> None:
    recorded = json.loads(RECORDED.read_text())
    for task in cells.RECORDED_TASKS:
        found = {cell.variant.name: cell.prediction.can for cell in cells.cells(tasks=[task])}
        known = {name: can for name, can in found.items() if name in recorded["cells"][task]}
        assert known == recorded["cells"][task], (
            f"{task}: where rules have changed, build what they say with `make claims`, and record "
            "it: python -m tests.claims --only cells --json tests/claims/recorded.json"
        )


def test_hard_words_are_words_that_can_be_drawn() -> None:
    for task in ("dyck-1-depth-4", "adder", "flip-flop-sparse", "s3-two-tokens"):
        automaton = automaton_of(task)
        for words in (hard_words(automaton, 9, 120, seed=3), covering_words(automaton)):
            states = automaton.states_after(words).astype(np.int64)
            first = np.full((len(words), 1), automaton.start)
            before = np.concatenate([first, states[:, :-1]], axis=1)
            assert automaton.drawable[before, words].all(), task
    runs = hard_words(automaton_of("register"), 3, 2000, seed=0)[2]
    changes = np.flatnonzero(np.diff(runs))
    assert np.diff(changes).max() > 100, "there are long runs of one symbol"


def test_a_cover_reads_every_symbol_in_every_state() -> None:
    automaton = automaton_of("s4")
    words = covering_words(automaton)
    states = automaton.states_after(words).astype(np.int64)
    before = np.concatenate([np.full((len(words), 1), automaton.start), states[:, :-1]], axis=1)
    pairs = set(zip(before.ravel().tolist(), words.ravel().tolist(), strict=True))
    assert len(pairs) == automaton.num_states * automaton.num_symbols


def test_a_readout_is_found_where_only_a_linear_program_finds_one_and_refused_where_none_is() -> (
    None
):
    draw = np.random.default_rng(0)
    points = draw.normal(size=(14, 9))
    labels = draw.integers(0, 2, 14)
    weight, bias = separate(points, labels, 2, with_bias=False)
    assert ((points @ weight.T + bias).argmax(1) == labels).all()
    corners = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    with pytest.raises(NotBuilt, match="no linear readout"):
        separate(corners, np.array([0, 1, 1, 0]), 2, with_bias=True)


def test_an_attack_succeeds_on_what_is_no_claim_and_fails_on_one_that_holds() -> None:
    """The attack that would find a wrong *cannot* learns a register, and no parity."""
    settings = attacking.build(cells.MODELS["rnn"].settings_class, {"hidden": 16}, "rnn")
    claim = attacking.Target(cell_of("rnn", "turnstile"), settings, "cannot")
    easy = attacking.attack(claim, steps=60, seeds=1)
    assert easy.trained_right == 1.0 and easy.right_up_to >= attacking.BEYOND[0]
    (target,) = attacking.chosen_targets([cell_of("diagonal-positive", "aa-star")])
    hard = attacking.attack(target, steps=60, seeds=1)
    assert not hard.succeeded and hard.right_up_to < attacking.BEYOND[-1]


def test_logits_of_models_that_forget_settle_along_the_powers_of_a_word() -> None:
    cycle = attacking.word_that_cycles(algebra_of("s3"))
    assert cycle is not None
    cell = cell_of("mamba", "s3")
    for factor in (1.0, 3.0):
        model = attacking.with_large_weights(
            cells.MODELS["mamba"].settings_class(width=16, layers=2), cell, factor, seed=0
        )
        assert attacking.settles(model, cycle) < 1e-3
