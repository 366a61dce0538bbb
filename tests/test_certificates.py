"""Certificates of linear models: never above the first wrong answer, and not far below."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch

import statetrack as st
from statetrack.evidence.budget import Budget
from statetrack.evidence.certificate import find_certificate
from statetrack.evidence.rows import Certificate
from statetrack.evidence.subject import Subject
from statetrack.sources import Automaton
from statetrack.sources.arrays import Floats, Integers
from statetrack.spec import load_task

BUDGET = 60.0


def certified(model: Any, automaton: Automaton) -> Certificate:
    return find_certificate(Subject(model, automaton), budget=Budget(BUDGET))


def put(parameter: Any, values: Any) -> None:
    with torch.no_grad():
        parameter.copy_(torch.as_tensor(np.asarray(values), dtype=parameter.dtype))


def of_points(
    name: str, automaton: Automaton, matrices: Floats, points: Floats, **settings: Any
) -> Any:
    """A dense or block model with these matrices, that reads labels by the nearest point [S, H]."""
    model = st.MODELS[name](
        st.MODELS[name].settings_class(hidden=points.shape[1], **settings),
        num_symbols=automaton.num_symbols,
        num_labels=automaton.num_labels,
    ).eval()
    put(model.first, points[automaton.start])
    put(model.readout.weight, points / np.square(points).sum(1, keepdims=True))
    if name == "bilinear":
        put(model.weight, matrices)
    return model


def actions(automaton: Automaton) -> Floats:
    """The maps of states as matrices of 0 and 1, [V, S, S]."""
    return np.eye(automaton.num_states)[automaton.delta.T].transpose(0, 2, 1)


def one_hot(task: str) -> tuple[Any, Automaton]:
    automaton = load_task(task).source.automaton
    assert automaton is not None
    return of_points(
        "bilinear", automaton, actions(automaton), np.eye(automaton.num_states)
    ), automaton


def rotating(modulus: int = 5) -> tuple[Any, Automaton]:
    """All harmonics of modular addition, by rotations."""
    automaton = load_task(f"modular-addition:m={modulus}").source.automaton
    assert automaton is not None
    harmonics = np.arange(1, (modulus + 1) // 2)
    turns = 2 * np.pi / modulus * np.outer(np.arange(modulus), harmonics)
    points = np.stack([np.cos(turns), np.sin(turns)], -1).reshape(modulus, -1)
    model = of_points("bilinear-rotation", automaton, np.zeros(0), points)
    put(model.angles, turns)
    return model, automaton


def in_blocks() -> tuple[Any, Automaton]:
    """S3 as the symmetries of a triangle, and their signs, in blocks of 2."""
    automaton = load_task("s3").source.automaton
    assert automaton is not None
    maps = actions(automaton)
    # the columns span the functions of states that the representation of dimension 2 makes
    group = np.array([matrix @ np.eye(6)[automaton.start] for matrix in maps]).argmax(1)
    corner = np.exp(2j * np.pi * np.arange(3) / 3)
    triangle = np.stack([corner.real, corner.imag], 1)
    planes = {}
    for images in itertools.permutations(range(3)):
        plane = np.linalg.lstsq(triangle, triangle[list(images)], rcond=None)[0].T
        planes[images] = plane
    # which permutation each state is: the one whose products agree with the automaton's table
    for names in itertools.permutations(planes):
        if names[automaton.start] != (0, 1, 2):
            continue
        symbol = [names[state] for state in group]
        table = [[names.index(tuple(x[image] for image in s)) for x in symbol] for s in names]
        if np.array_equal(table, automaton.delta):
            break
    matrices = np.zeros((len(symbol), 2, 2, 2))
    for place, images in enumerate(symbol):
        matrices[place, 0] = planes[images]
        matrices[place, 1] = np.diag([np.linalg.det(planes[images]), 0.0])
    first = np.array([1.0, 0.3, 0.5, 0.0])
    # a point for each state: the image of the first
    points = np.zeros((6, 4))
    points[group] = np.concatenate([matrices[:, 0] @ first[:2], matrices[:, 1] @ first[2:]], 1)
    model = of_points("bilinear-block", automaton, np.zeros(0), points, block_size=2)
    put(model.weight, matrices)
    put(model.readout.weight, np.linalg.pinv(points).T)
    return model, automaton


def factored() -> tuple[Any, Automaton]:
    """The one-hot model of parity, in factors: two terms, of which 1 turns the second around."""
    automaton = load_task("parity").source.automaton
    assert automaton is not None
    settings = st.MODELS["bilinear-cp"].settings_class(hidden=2, rank=2)
    model: Any = st.MODELS["bilinear-cp"](settings, num_symbols=2, num_labels=2).eval()
    put(model.left, [[1.0, 1.0], [1.0, -1.0]])
    put(model.right, [[0.5, 0.5], [0.5, -0.5]])
    put(model.gains, [[1.0, 1.0], [1.0, -1.0]])
    put(model.first, [1.0, 0.0])
    put(model.readout.weight, np.eye(2))
    return model, automaton


@pytest.mark.parametrize("task", ["parity", "modular-addition", "random-fsm", "gridworld"])
def test_matrices_of_zeros_and_ones_are_proven_for_all_lengths(task: str) -> None:
    model, automaton = one_hot(task)
    found = certified(model, automaton)
    assert (found.verdict, found.verdict_real) == ("all lengths", "all lengths")
    assert found.length is None and found.residual == 0.0


def test_factors_that_are_computed_without_rounding_are_proven_for_all_lengths() -> None:
    found = certified(*factored())
    assert found.verdict == "all lengths"


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
}


@pytest.mark.parametrize("name", PERTURBED)
def test_no_perturbed_model_fails_before_its_certified_length(name: str) -> None:
    build, weight = PERTURBED[name]
    ratios, finite = [], 0
    for seed in range(40):
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
    assert finite >= 10
    assert len(ratios) >= 2 and np.median(ratios) < 30
