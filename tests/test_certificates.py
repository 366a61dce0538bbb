"""Certificates of linear models: never above the first wrong answer, and not far below."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

import statetrack as st
from statetrack.evidence import Certificate, SearchBudget, Subject
from statetrack.evidence.certificate.arithmetic import arithmetic_of
from statetrack.evidence.certificate.centres import Edges, find_centres
from statetrack.evidence.certificate.linear import compare
from statetrack.evidence.certificate.splitting import (
    Splitting,
    Subspace,
    gain_of_magnitudes,
    splittings,
)
from statetrack.models import LinearModel
from statetrack.sources import Automaton, Integers
from tests.exact_models import factored, in_blocks, one_hot, put, rotating, rotating_in_factors

BUDGET = 60.0


def certified(model: Any, automaton: Automaton) -> Certificate:
    return Certificate.search(Subject(model, automaton), budget=SearchBudget(BUDGET))


@pytest.mark.parametrize("task", ["parity", "modular-addition", "random-fsm", "gridworld"])
def test_matrices_of_zeros_and_ones_are_proven_for_all_lengths(task: str) -> None:
    model, automaton = one_hot(task)
    found = certified(model, automaton)
    assert (found.verdict, found.verdict_real) == ("all lengths", "all lengths")
    assert found.length is None and found.residual == 0.0


def test_factors_that_are_computed_without_rounding_are_proven_for_all_lengths() -> None:
    found = certified(*factored())
    assert found.verdict == "all lengths"


def test_whole_numbers_that_are_no_powers_of_two_are_proven_for_all_lengths() -> None:
    """S3 on the lattice A2: states are as many points in general position, (5, 3) among them."""
    turns = np.array([[[0, -1], [1, -1]], [[0, 1], [1, 0]]])
    points = [(5, 3)]
    for point in points:
        points += [p for turn in turns if (p := tuple(turn @ point)) not in points]
    assert len(points) == 6
    states = np.array(points)
    delta = [[points.index(tuple(turn @ point)) for turn in turns] for point in points]
    automaton = Automaton(delta, np.arange(6))
    settings = st.MODELS["bilinear"].settings_class(hidden=2)
    model = st.MODELS["bilinear"](settings, num_symbols=2, num_labels=6).eval()
    put(model.weight, turns)
    put(model.first, states[0])
    put(model.readout.weight, states @ [[2, -1], [-1, 2]])
    assert certified(model, automaton).verdict == "all lengths"


def test_a_closed_orbit_with_one_wrong_answer_is_not_proven() -> None:
    model, automaton = one_hot("random-fsm")
    put(model.readout.weight, np.eye(5)[[0, 1, 2, 4, 3]])
    assert certified(model, automaton).verdict == "not proven"


def test_exact_rotations_are_proven_to_a_length_that_rounding_limits() -> None:
    found = certified(*rotating())
    assert found.verdict == "to length" and found.length is not None
    assert found.length > 20_000
    assert found.length_real is not None and found.length_real > found.length


def test_exact_blocks_are_proven_to_a_length_that_rounding_limits() -> None:
    found = certified(*in_blocks())
    assert found.verdict == "to length" and found.length is not None
    assert found.length > 20_000


def test_exact_rotations_in_factors_are_proven_to_a_length_that_rounding_limits() -> None:
    found = certified(*rotating_in_factors())
    assert found.verdict == "to length" and found.length is not None
    assert found.length > 20_000


def test_numbers_in_rank_space_are_rounded_within_their_bounds() -> None:
    settings = st.MODELS["bilinear-cp"].settings_class(hidden=6, rank=9)
    model: Any = st.MODELS["bilinear-cp"](settings, num_symbols=4, num_labels=3)
    model.eval()
    model.running_operators = model.operators  # as with too many symbols to sum up matrices
    space = arithmetic_of(model).executed.rank_space
    assert space is not None
    generator = torch.Generator().manual_seed(0)
    before = torch.randn(500, 9, generator=generator)
    with torch.no_grad():
        factors = model.operators()
        core = factors.core()
        for symbol in range(4):
            gated = factors.gains[symbol] * before
            piece = (gated @ core.mT).double().numpy()
            state = gated @ factors.left.mT
            seam = (state @ factors.right).double().numpy()
            exact = before.double().numpy()
            inside = exact @ space.leave[symbol].T
            left = abs(exact) @ space.leave_rounding[symbol].T
            assert (abs(state.double().numpy() - inside) <= left).all()
            bound = abs(exact) @ space.rounding[symbol].T
            assert (abs(piece - inside @ space.enter.T) <= bound).all()
            after = state.double().numpy()
            assert (abs(seam - after @ space.enter.T) <= abs(after) @ space.enter_rounding.T).all()


def test_what_is_rounded_is_within_the_gain_of_its_magnitudes_in_every_norm() -> None:
    draws = np.random.default_rng(0)
    for _ in range(200):
        sizes, norms = draws.integers(1, 6, 2), draws.integers(1, 3, 2)
        parts = [
            Subspace(np.eye(size), np.eye(size), int(norm))
            for size, norm in zip(sizes, norms, strict=True)
        ]
        source, target = parts
        matrices = draws.random((3, sizes[1], sizes[0])) * (draws.random(sizes[::-1]) < 0.6)
        bound = gain_of_magnitudes(matrices, source, target)
        vectors = draws.standard_normal((sizes[0], 500))
        vectors = np.concatenate([vectors, np.eye(sizes[0])], 1)
        images = target.size(np.moveaxis(matrices @ (abs(vectors) / source.size(vectors)), 0, 1))
        assert images.max() <= bound * (1 + 1e-12)
        assert bound <= 3 * images.max() + 1e-12


def test_parts_in_another_order_add_the_same_to_each_other() -> None:
    model = st.make_model("diagonal-real", "parity", hidden=5)
    automaton = st.load_task("parity").source.automaton
    assert isinstance(model, LinearModel) and automaton is not None
    transitions, arithmetic = Edges.of(automaton, minimal=True), arithmetic_of(model).executed
    matrices = arithmetic.matrices
    centres = find_centres(matrices, arithmetic.first, transitions, budget=SearchBudget(BUDGET))
    splitting = next(splittings(centres, arithmetic.blocks, matrices, None, 1e-9))
    last, *others = splitting.parts[::-1]
    gains, rolled = (
        compare(arithmetic, centres, transitions, each).gains
        for each in (splitting, Splitting([last, *others[::-1]], "with the last one first"))
    )
    assert len(splitting.parts) == 5 and (gains > 0).all()
    assert np.allclose(np.roll(gains, 1, (0, 1)), rolled, rtol=1e-6, atol=0)


def test_coordinates_that_stay_zero_cost_no_work() -> None:
    """Of S4 with 64 coordinates, 23 in use, the search ended before its first bound."""
    model, automaton = one_hot("random-fsm:states=25")
    matrices = model.weight.detach().double().numpy()
    first = model.first.detach().double().numpy()
    transitions = Edges.of(automaton, minimal=True)
    padded = np.zeros((len(matrices), 80, 80))
    padded[:, :25, :25] = matrices
    budgets = SearchBudget(BUDGET), SearchBudget(BUDGET)
    alone = find_centres(matrices, first, transitions, budget=budgets[0])
    beside = find_centres(padded, np.append(first, np.zeros(55)), transitions, budget=budgets[1])
    assert np.array_equal(beside[:, :25], alone) and not beside[:, 25:].any()
    assert budgets[1].work == budgets[0].work > 0


def test_rounding_does_not_add_up_over_centres_that_no_state_is_all_of() -> None:
    """States of 25 dimensions, each near one centre: the bound was that of all 25 at once."""
    model, automaton = one_hot("random-fsm:states=25")
    with torch.no_grad():
        model.weight += 1e-8 * torch.randn(
            model.weight.shape, generator=torch.Generator().manual_seed(0)
        )
    found = certified(model, automaton)
    assert found.length is not None and found.length > 100_000


def longest_tried(certificate: Certificate) -> int:
    """How far words are read: beyond what is certified, and within the test's time."""
    return min(400, 4 * (certificate.length or 1) + 20)


def adversarial(model: Any, automaton: Automaton, length: int, seed: int) -> Integers:
    """Powers of all words up to 2 symbols, random words, and words whose margin falls greedily."""
    symbols = range(automaton.num_symbols)
    periods = [word for size in (1, 2) for word in itertools.product(symbols, repeat=size)]
    powers = [np.resize(period, length) for period in periods]
    drawn = np.random.default_rng(seed).integers(0, automaton.num_symbols, (68, length))
    for word in drawn[:4]:
        lower_margins(model, automaton, word)
    return np.concatenate([np.stack(powers), drawn])


def lower_margins(model: Any, automaton: Automaton, word: Integers) -> None:
    """Replace symbols from the second on by those that lead to the smallest margin."""
    with torch.no_grad():
        matrices = model.operators().dense().double().numpy()
    readout = model.readout.weight.detach().double().numpy()
    state, at = model.first.detach().double().numpy(), automaton.start
    for step, symbol in enumerate(word):
        if step > 0:
            after = matrices @ state
            logits = after @ readout.T
            right = logits[np.arange(len(after)), automaton.output[automaton.delta[at]]].copy()
            logits[np.arange(len(after)), automaton.output[automaton.delta[at]]] = -np.inf
            word[step] = symbol = ((right - logits.max(1)) / np.linalg.norm(after, axis=1)).argmin()
        state, at = matrices[symbol] @ state, int(automaton.delta[at, symbol])
        state = state / np.linalg.norm(state)


PERTURBED = {
    "one-hot random-fsm": (lambda: one_hot("random-fsm"), "weight"),
    "one-hot parity": (lambda: one_hot("parity"), "weight"),
    "rotations": (rotating, "angles"),
    "blocks": (in_blocks, "weight"),
    "factors": (factored, "left"),
    "rotations in factors": (rotating_in_factors, "left"),
}


FEW, MANY = range(4), range(4, 60)
"""Perturbations of each model: 24 in all, and 336 more among the slow tests."""


@pytest.mark.parametrize("seeds", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", PERTURBED)
def test_no_perturbed_model_fails_before_its_certified_length(name: str, seeds: range) -> None:
    build, weight = PERTURBED[name]
    ratios, finite = [], 0
    for seed in seeds:
        model, automaton = build()
        draw = np.random.default_rng(seed)
        changed = dict(model.named_parameters())[weight]
        symbol = draw.integers(len(changed))
        noise = torch.from_numpy(draw.normal(size=changed[symbol].shape)).float()
        with torch.no_grad():
            changed[symbol] += 10 ** draw.uniform(-3, -0.3) * noise / noise.norm()
        subject = Subject(model, automaton)
        found = certified(model, automaton)
        assert found.verdict != "all lengths"
        finite += found.verdict == "to length"
        words = adversarial(model, automaton, longest_tried(found), seed)
        errors = subject.first_errors(words)
        failing = errors[errors > 0]
        if len(failing):
            assert (found.length or 0) < failing.min()
            ratios.append(failing.min() / max(1, found.length or 0))
    assert finite >= len(seeds) // 4
    assert not ratios or np.median(ratios) < 30


def test_factors_are_proven_further_where_their_terms_are_summed() -> None:
    model, automaton = rotating_in_factors()
    summed = certified(model, automaton)
    # terms that cancel: one more, and less of it
    wide = st.MODELS["bilinear-cp"].settings_class(hidden=4, rank=8)
    other: Any = st.MODELS["bilinear-cp"](wide, num_symbols=5, num_labels=5).eval()
    extra = np.full((4, 1), 16.0)
    put(other.left, np.concatenate([model.left.detach(), extra, -extra], 1))
    put(other.right, np.concatenate([model.right.detach(), extra, extra], 1))
    put(other.gains, np.concatenate([model.gains.detach(), np.ones((5, 2))], 1))
    put(other.first, model.first.detach())
    put(other.readout.weight, model.readout.weight.detach())
    cancelling = certified(other, automaton)
    assert summed.length is not None and cancelling.length is not None
    assert cancelling.length > summed.length / 4
    other.running_operators = other.operators
    in_rank_space = certified(other, automaton)
    assert (in_rank_space.length or 0) < cancelling.length / 10


@cache
def unchanged(build: Callable[[], tuple[Any, Any]]) -> Certificate:
    return certified(*build())


@pytest.mark.parametrize("factors", [(1.0001, 1.0), (1.5, 1.0), (0.7, 1.3), (0.5, 0.5)])
@pytest.mark.parametrize("build", [in_blocks, rotating_in_factors])
def test_a_factor_of_a_symbol_changes_no_answer_and_no_proof(build, factors) -> None:
    model, automaton = build()
    plain = unchanged(build)
    weight = model.gains if hasattr(model, "gains") else model.weight
    with torch.no_grad():
        for symbol, factor in enumerate(factors):
            weight[symbol] *= factor
    found = certified(model, automaton)
    assert found.length is not None and plain.length is not None
    assert found.length > plain.length / 2


def test_factors_that_leave_the_range_of_floats_between_two_divisions_prove_nothing() -> None:
    model, automaton = in_blocks()
    with torch.no_grad():
        model.weight[1] *= 2.0**-20
    assert Subject(model, automaton).first_errors(np.ones((1, 64), int))[0]
    found = certified(model, automaton)
    assert found.verdict == "not proven" and "range" in found.reason
    assert found.verdict_real == "to length"
