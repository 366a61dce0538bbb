"""A short run of the attacks on what evidence says; `python -m tests.evidence` is the long one."""

from __future__ import annotations

from tests.evidence import certificates, counterexamples, extractions, horizons, representations
from tests.evidence.checks import Check

SECONDS = 20.0
"""Beyond what any search here needs: the caps on work end it."""


def assert_holds(checks: list[Check], least: int) -> None:
    for check in checks:
        assert check.broken == [], check.claim
    assert sum(check.cases for check in checks) >= least


def test_no_word_fails_within_the_certified_length_of_perturbed_tanh_networks() -> None:
    check = Check("tanh")
    sizes = (10.0, 4.0, 2.0, 0.1)
    builders = certificates.SATURATING
    certificates.attack_exact(check, 0, SECONDS, builders)
    certificates.attack_perturbed(check, 6, SECONDS, builders, sizes=sizes, longest=500)
    assert_holds([check], 7)
    assert check.noted["fails"] > 0 and check.noted["all lengths"] > 0


def test_states_in_float32_lie_in_the_boxes_of_their_predecessors() -> None:
    check = Check("boxes")
    certificates.attack_boxes(check, 16)
    assert_holds([check], 16)


def test_the_first_failure_of_powers_of_words_is_predicted_and_replayed() -> None:
    checks = horizons.horizons(3, SECONDS, sizes=(3e-2, 2e-2))
    assert_holds(checks, 6)
    assert checks[1].cases > 0


def test_a_counterexample_is_a_shortest_one() -> None:
    assert_holds(counterexamples.counterexamples(4, SECONDS, 120, most=1000), 8)


def test_a_network_built_as_a_machine_is_extracted_as_that_machine() -> None:
    assert_holds(extractions.extractions(2, SECONDS, most_states=6), 6)


def test_the_irreducible_parts_of_a_model_in_a_random_basis_are_found() -> None:
    assert_holds(representations.representations(SECONDS), 7)
