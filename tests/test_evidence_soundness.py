"""A short run of the attacks on what evidence says; `python -m tests.evidence` is the long one."""

from __future__ import annotations

import numpy as np
import pytest

from statetrack.evidence import SearchBudget
from statetrack.evidence.certificate import ellipsoids
from statetrack.evidence.certificate.centres import Edges, find_centres
from tests.evidence import (
    certificates,
    counterexamples,
    extractions,
    horizons,
    machines,
    networks,
    representations,
    soundness,
)
from tests.evidence.checks import Check
from tests.evidence.machines import Table

SECONDS = 20.0
"""Beyond what any search here needs: the caps on work end it."""


def assert_holds(checks: list[Check], least: int) -> None:
    for check in checks:
        assert check.broken == [], check.claim
    assert sum(check.cases for check in checks) >= least


@pytest.mark.parametrize(
    ("count", "sizes"),
    [(2, (10.0, 0.1)), pytest.param(6, (10.0, 4.0, 2.0, 0.1), marks=pytest.mark.slow)],
)
def test_no_word_fails_within_the_certified_length_of_perturbed_tanh_networks(
    count: int, sizes: tuple[float, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ellipsoids, "SAMPLES", 500)  # proofs must be right in whatever shapes
    monkeypatch.setattr(ellipsoids, "GRADIENT_STEPS", 100)
    check = Check("tanh")
    builders = certificates.SATURATING
    certificates.attack_exact(check, 0, SECONDS, builders)
    certificates.attack_perturbed(check, count, SECONDS, builders, sizes=sizes, longest=500)
    assert_holds([check], count + 1)
    assert check.noted["fails"] > 0 and check.noted["all lengths"] > 0


def test_no_word_fails_within_the_certified_length_of_perturbed_linear_models() -> None:
    check = Check("linear")
    certificates.attack_perturbed(check, 7, SECONDS, sizes=(1e-2,), longest=500)
    assert_holds([check], 14)
    assert check.noted["fails"] > 0 and check.noted["to length"] > 0


COSTLY = ("gru", "lstm", "second-order-rnn")
"""Of the last, tests/test_ellipsoid_certificates.py has perturbed networks by default."""


@pytest.mark.parametrize(
    "family",
    [
        pytest.param(family, marks=pytest.mark.slow if family in COSTLY else ())
        for family in soundness.FAMILIES
    ],
)
def test_no_model_of_a_certified_family_fails_within_its_certified_length(family: str) -> None:
    check = Check(family)
    for number in (1, 2):
        soundness.attack(check, soundness.FAMILIES[family], number, 1.0, 0)
    assert_holds([check], 1)


def test_certified_lengths_hold_in_pieces_of_any_size() -> None:
    check = Check("scale")
    certificates.attack_scale(check, SECONDS, (0.97, 1e-6), length=300)
    assert_holds([check], 6)


def test_states_in_float32_lie_in_the_boxes_of_their_predecessors() -> None:
    check = Check("boxes")
    certificates.attack_boxes(check, 16)
    assert_holds([check], 16)


def test_the_first_failure_of_powers_of_words_is_predicted_and_replayed() -> None:
    checks = horizons.horizons(3, SECONDS, sizes=(3e-2, 2e-2))
    assert_holds(checks, 6)
    assert checks[1].cases > 0


@pytest.mark.parametrize("count", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_a_counterexample_is_a_shortest_one(count: int) -> None:
    assert_holds(counterexamples.counterexamples(count, SECONDS, 120, most=1000), 2 * count)


def test_a_network_built_as_a_machine_is_extracted_as_that_machine() -> None:
    assert_holds(extractions.extractions(2, SECONDS, most_states=6), 6)


def test_the_irreducible_parts_of_a_model_in_a_random_basis_are_found() -> None:
    assert_holds(representations.representations(SECONDS), 7)


@pytest.mark.parametrize("make", [lambda table: networks.one_hot(table).model(), networks.elman])
def test_where_there_is_one_label_every_finite_answer_is_right(make) -> None:
    draws = np.random.default_rng(0)
    table = Table(((1, 0), (0, 1)), (0, 0))
    model = networks.perturbed(make(table), 1e-3, draws, "readout.weight")
    if hasattr(model, "weight"):
        networks.perturbed(model, 1e-3, draws, "weight")
    found = certificates.certificate_of(model, table, SECONDS)
    assert found.verdict in ("all lengths", "to length") and found.margin is None


def test_operators_that_forget_all_but_a_millionth_are_certified_without_a_warning() -> None:
    case, _ = certificates.case_of(67, first_seed=3)
    found = certificates.certificate_of(case.model, case.table, SECONDS)
    assert found.verdict == "to length"


def test_exact_arithmetic_is_proven_at_least_as_far_as_floats_are() -> None:
    case, _ = certificates.case_of(81, first_seed=5)
    found = certificates.certificate_of(case.model, case.table, SECONDS)
    assert found.length is not None and found.length_real is not None
    assert found.length_real >= found.length > 512


def test_a_spent_budget_ends_the_averaging_of_many_states() -> None:
    draws = np.random.default_rng(0)
    matrices, first = draws.normal(size=(2, 16, 16)) / 4, draws.normal(size=16)
    transitions = Edges.of(machines.cyclic(600).automaton(), minimal=False)
    few = Edges(
        transitions.source, transitions.symbol % 2, transitions.target, 0, *transitions_end(600)
    )
    begun = find_centres(matrices, first, few, rounds=0)
    assert np.array_equal(find_centres(matrices, first, few, budget=SearchBudget(0)), begun)


def transitions_end(states: int) -> tuple[np.ndarray, np.ndarray]:
    return np.arange(states), np.ones(states, bool)
