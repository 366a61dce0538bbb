"""Weights set by hand: what each class of operators can track exactly, and what it cannot.

V symbols, S states, H hidden, K rank, b block size.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from statetrack.evaluation import evaluate
from statetrack.models import MODELS, LinearModel
from statetrack.settings import build
from statetrack.sources import Automaton
from statetrack.spec import load_task

LENGTHS = [3, 500, 10_000]


def by_hand(
    name: str, automaton: Automaton, weights: Mapping[str, Tensor], **options: Any
) -> LinearModel:
    """A model with all of its weights given: none is left as it was drawn."""
    kind = MODELS[name]
    settings = build(kind.settings_class, options, name)
    model = kind(settings, num_symbols=automaton.num_symbols, num_labels=automaton.num_labels)
    model.load_state_dict({key: value.float() for key, value in weights.items()})
    assert isinstance(model, LinearModel)
    return model


def assert_tracks(model: LinearModel, automaton: Automaton) -> None:
    """Every answer is right, on words of up to 10,000 symbols."""
    scores = list(
        evaluate(model, automaton, LENGTHS, num_words=8, seed=1, device=torch.device("cpu"))
    )
    assert [score.length for score in scores] == LENGTHS
    for score in scores:
        assert (score.accuracy, score.symbol_accuracy, score.prefix_accuracy) == (1.0, 1.0, 1.0)


def transition_matrices(automaton: Automaton) -> Tensor:
    """A(x) e_s = e_delta(s, x) on one-hot states: [V, S, S]."""
    matrices = torch.zeros(automaton.num_symbols, automaton.num_states, automaton.num_states)
    for state, symbol in np.ndindex(automaton.delta.shape):
        matrices[symbol, automaton.delta[state, symbol], state] = 1.0
    return matrices


def one_hot_ends(automaton: Automaton) -> dict[str, Tensor]:
    """The first state as a unit vector, and a readout that looks its label up."""
    readout = torch.zeros(automaton.num_labels, automaton.num_states)
    readout[torch.tensor(automaton.output), torch.arange(automaton.num_states)] = 1.0
    return {"first": torch.eye(automaton.num_states)[automaton.start], "readout.weight": readout}


# --- any finite automaton: one-hot states (Proposition 1 of arXiv:2505.21749) ---

TASKS = [
    "random-fsm:states=7,symbols=4,seed=11",
    "random-fsm:states=10,symbols=3,seed=2",
    "s3",
    "a5",
    "even-pairs",
    "flip-flop",
    "modular-addition:m=5",
]


@pytest.mark.parametrize("task", TASKS)
def test_the_full_model_simulates_any_automaton(task: str) -> None:
    automaton = load_task(task).automaton
    weights = {"weight": transition_matrices(automaton), **one_hot_ends(automaton)}
    model = by_hand("bilinear", automaton, weights, hidden=automaton.num_states)
    assert_tracks(model, automaton)


@pytest.mark.parametrize("task", TASKS[:3])
def test_one_block_as_large_as_the_states_simulates_any_automaton(task: str) -> None:
    automaton = load_task(task).automaton
    size = automaton.num_states
    weights = {"weight": transition_matrices(automaton).unsqueeze(1), **one_hot_ends(automaton)}
    model = by_hand("bilinear-block", automaton, weights, hidden=size, block_size=size)
    assert_tracks(model, automaton)


@pytest.mark.parametrize("task", [*TASKS[:3], "flip-flop"])
def test_the_factored_model_simulates_any_automaton_with_a_term_per_transition(task: str) -> None:
    """A(x) = sum_s e_delta(s, x) e_s^T: V S terms, of which the gains choose the symbol's."""
    automaton = load_task(task).automaton
    num_states, num_symbols = automaton.delta.shape
    identity = torch.eye(num_states)
    to = torch.tensor(automaton.delta.T.reshape(-1))  # [V * S], symbols outermost
    weights = {
        "left": identity[:, to],
        "right": identity.repeat(1, num_symbols),
        "gains": torch.eye(num_symbols).repeat_interleave(num_states, dim=1),
        **one_hot_ends(automaton),
    }
    options = {"hidden": num_states, "rank": num_states * num_symbols}
    assert_tracks(by_hand("bilinear-cp", automaton, weights, **options), automaton)


@pytest.mark.parametrize("num_bits", [2, 3])
def test_the_factored_model_needs_only_rank_s_where_symbols_share_an_eigenbasis(
    num_bits: int,
) -> None:
    """Bits flipped one by one are diagonal in the Hadamard basis: gains are characters."""
    automaton = load_task(f"product({','.join(['parity'] * num_bits)})").automaton
    size = automaton.num_states
    hadamard = torch.ones(1, 1)
    for _ in range(num_bits):
        hadamard = torch.kron(hadamard, torch.tensor([[1.0, 1.0], [1.0, -1.0]]))
    transitions = transition_matrices(automaton)
    diagonal = hadamard @ transitions @ hadamard / size  # [V, S, S]
    assert torch.equal(diagonal, torch.diag_embed(diagonal.diagonal(dim1=1, dim2=2)))
    weights = {
        "left": hadamard / size,
        "right": hadamard,
        "gains": diagonal.diagonal(dim1=1, dim2=2),
        **one_hot_ends(automaton),
    }
    model = by_hand("bilinear-cp", automaton, weights, hidden=size, rank=size)
    torch.testing.assert_close(model.operators().dense(), transitions)
    assert_tracks(model, automaton)


# --- groups: a small faithful representation takes the place of one-hot states ---


def simplex_representation(num_points: int) -> dict[tuple[int, ...], Tensor]:
    """The permutations of a simplex's corners as orthogonal maps of its space, R^(n-1)."""
    centred = torch.eye(num_points, dtype=torch.float64) - 1 / num_points
    axes = torch.linalg.svd(centred)[0][:, : num_points - 1]  # [n, n-1], orthonormal columns
    return {
        images: axes.mT @ torch.eye(num_points, dtype=torch.float64)[:, list(images)] @ axes
        for images in itertools.permutations(range(num_points))
    }


@pytest.mark.parametrize(("task", "num_points"), [("s3", 3), ("s4", 4), ("s5-swaps", 5)])
def test_one_block_of_size_n_minus_1_tracks_the_permutations_of_n_points(
    task: str, num_points: int
) -> None:
    """y_t = y_(t-1) x_t is read as h_t = rho(x_t)^T h_(t-1) = rho(y_t)^T h_0."""
    automaton = load_task(task).automaton
    matrices = simplex_representation(num_points)
    elements = list(matrices)  # the states: permutations in the order of their images
    assert automaton.num_states == len(elements) == math.factorial(num_points)
    read = [elements[automaton.delta[automaton.start, x]] for x in range(automaton.num_symbols)]
    for state, symbol in np.ndindex(automaton.delta.shape):
        product = tuple(elements[state][point] for point in read[symbol])
        assert elements[automaton.delta[state, symbol]] == product
    size = num_points - 1
    first = torch.arange(1.0, num_points, dtype=torch.float64) ** 0.5  # fixed by no permutation
    orbit = torch.stack([matrices[element].mT @ first for element in elements])
    assert torch.pdist(orbit).min() > 0.1
    weights = {
        "weight": torch.stack([matrices[element].mT for element in read]).unsqueeze(1),
        "first": first,
        "readout.weight": orbit,
    }
    model = by_hand("bilinear-block", automaton, weights, hidden=size, block_size=size)
    assert_tracks(model, automaton)


def angles_of(automaton: Automaton) -> Tensor:
    """The turn of each symbol of an addition modulo S: [V]."""
    turns = torch.tensor(automaton.delta[automaton.start]).double()
    return 2 * math.pi * turns / automaton.num_states


def circle_ends(automaton: Automaton) -> dict[str, Tensor]:
    """States as S points on the unit circle, each read out by its own direction."""
    angles = 2 * math.pi * torch.arange(automaton.num_states).double() / automaton.num_states
    points = torch.stack([angles.cos(), angles.sin()], 1)
    return {"first": points[automaton.start], "readout.weight": points}


@pytest.mark.parametrize("modulus", [2, 5, 25])
def test_one_rotated_plane_adds_modulo_any_number(modulus: int) -> None:
    automaton = load_task(f"modular-addition:m={modulus}").automaton
    weights = {"angles": angles_of(automaton).unsqueeze(1), **circle_ends(automaton)}
    assert_tracks(by_hand("bilinear-rotation", automaton, weights, hidden=2), automaton)


@pytest.mark.parametrize("modulus", [2, 5, 25])
def test_one_complex_gain_adds_modulo_any_number(modulus: int) -> None:
    automaton = load_task(f"modular-addition:m={modulus}").automaton
    angles = angles_of(automaton)
    gains = torch.stack([angles.cos(), angles.sin()], -1).unsqueeze(1)
    weights = {"gains": gains, **circle_ends(automaton)}
    assert_tracks(by_hand("diagonal-complex", automaton, weights, hidden=2), automaton)


@pytest.mark.parametrize("modulus", [2, 5, 25])
def test_one_block_of_size_2_adds_modulo_any_number(modulus: int) -> None:
    automaton = load_task(f"modular-addition:m={modulus}").automaton
    cos, sin = angles_of(automaton).cos(), angles_of(automaton).sin()
    turns = torch.stack([cos, -sin, sin, cos], -1).view(-1, 1, 2, 2)
    weights = {"weight": turns, **circle_ends(automaton)}
    assert_tracks(by_hand("bilinear-block", automaton, weights, hidden=2, block_size=2), automaton)


def test_one_sign_tracks_parity() -> None:
    automaton = load_task("parity").automaton
    weights = {
        "gains": 1.0 - 2.0 * torch.tensor(automaton.delta[automaton.start]).double()[:, None],
        "first": torch.ones(1),
        "readout.weight": torch.tensor([[1.0], [-1.0]]),
    }
    assert_tracks(by_hand("diagonal-real", automaton, weights, hidden=1), automaton)


# --- what no weights can do ---

COMMUTING = ["diagonal-positive", "diagonal-real", "diagonal-complex", "bilinear-rotation"]


def extreme(name: str, num_symbols: int, num_labels: int, **options: Any) -> LinearModel:
    """A model with large random weights, in float64."""
    kind = MODELS[name]
    settings = build(kind.settings_class, options, name)
    model = kind(settings, num_symbols=num_symbols, num_labels=num_labels).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(10 * torch.randn_like(parameter))
    assert isinstance(model, LinearModel)
    return model


@pytest.mark.parametrize("name", COMMUTING)
def test_a_model_whose_operators_commute_cannot_tell_the_order_of_two_permutations(
    name: str,
) -> None:
    """Two words of S3 with the same symbols end in different states, and get one answer."""
    automaton = load_task("s3").automaton
    swaps = [automaton.symbols.index(swap) for swap in ("(1,2)", "(2,3)")]
    words = np.array([swaps, swaps[::-1]])
    one, other = automaton.labels_of(words)[:, -1]
    assert one != other
    model = extreme(name, automaton.num_symbols, automaton.num_labels)
    matrices = model.operators().dense()
    products = matrices.unsqueeze(0) @ matrices.unsqueeze(1)  # [V, V, H, H]
    torch.testing.assert_close(products, products.transpose(0, 1))
    logits = model(torch.from_numpy(words))[:, -1]
    torch.testing.assert_close(logits[0], logits[1])
    assert logits[0].argmax() == logits[1].argmax()


def test_positive_gains_never_turn_a_sign() -> None:
    model = extreme("diagonal-positive", 5, 2, hidden=8)
    gains = model.operators().dense().diagonal(dim1=1, dim2=2)
    assert (gains >= 0).all() and (gains <= 1).all()
    symbols = torch.randint(5, (3, 40))
    states = model.operators().recur(symbols, model.initial_state(3))
    assert (states * model.initial_state(3) >= 0).all()


@pytest.mark.parametrize("hidden", [1, 3, 6])
def test_positive_gains_change_their_answer_to_ones_fewer_times_than_they_have_coordinates(
    hidden: int,
) -> None:
    """sum_i c_i a_i^n with a_i > 0 has at most H - 1 zeros in n, where parity needs them all."""
    ones = torch.ones(1, 200, dtype=torch.int64)
    for _ in range(50):
        model = extreme("diagonal-positive", 2, 2, hidden=hidden)
        with torch.no_grad():
            gains = torch.linspace(0.7, 0.99, hidden, dtype=torch.float64)
            model.load_state_dict(
                {**model.state_dict(), "gain_logits": gains.logit().expand(2, -1)}
            )
        answers = model(ones).argmax(-1)[0]
        assert int((answers[1:] != answers[:-1]).sum()) <= hidden - 1


def test_rotations_are_orthogonal_whatever_their_angles() -> None:
    matrices = extreme("bilinear-rotation", 5, 2, hidden=8).operators().dense()
    identity = torch.eye(8, dtype=torch.float64).expand(5, -1, -1)
    torch.testing.assert_close(matrices.mT @ matrices, identity)
