"""Predictions: each *can* with a size is built by hand and run, each *cannot* shown by its words.

V symbols, S states, C labels, H hidden, K rank, d the dimension of a part.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from statetrack.algebra.analysing import Algebra, analyse
from statetrack.algebra.characters import real_irreducibles
from statetrack.algebra.groups import Group
from statetrack.algebra.monoid import Budget, transition_monoid
from statetrack.algebra.prediction import Need, Prediction
from statetrack.algebra.recurrences import Size
from statetrack.algebra.representations import Part
from statetrack.algebra.state_space import Choice
from statetrack.cli import app
from statetrack.errors import TaskError, UnknownNameError
from statetrack.evaluation import evaluate
from statetrack.models import MODELS
from statetrack.models._base import SequenceModel
from statetrack.models._settings import recurrence_of
from statetrack.predicting import predict
from statetrack.settings import Settings, build
from statetrack.sources import Automaton, build_automaton
from statetrack.spec import TASKS, load_task

LENGTHS = [40, 10_000]


def told(model: str, **options: Any) -> Settings:
    """The settings of a model that is told some options."""
    return build(MODELS[model].settings_class, options, model)


# --- building models by hand ---


def by_hand(
    name: str, automaton: Automaton, weights: Mapping[str, Tensor], **options: Any
) -> SequenceModel:
    """A model with all of its weights given: none is left as it was drawn."""
    kind = MODELS[name]
    settings = build(kind.settings_class, options, name)
    model = kind(settings, num_symbols=automaton.num_symbols, num_labels=automaton.num_labels)
    model.load_state_dict({key: torch.as_tensor(each).float() for key, each in weights.items()})
    return model


def assert_tracks(model: SequenceModel, automaton: Automaton, num_words: int = 4) -> None:
    """Every label that is asked for is right, on words of up to 10,000 symbols."""
    scores = list(
        evaluate(model, automaton, LENGTHS, num_words=num_words, seed=1, device=torch.device("cpu"))
    )
    assert [score.length for score in scores] == LENGTHS
    for score in scores:
        assert (score.symbol_accuracy, score.prefix_accuracy) == (1.0, 1.0), score.length


def labelled(automaton: Automaton, algebra: Algebra, states: np.ndarray) -> np.ndarray:
    """A row for every label, `[C, H]`: the mean of the rows `[S, H]` of the states that bear it."""
    output = algebra.machine.automaton.output
    rows = np.zeros((automaton.num_labels, states.shape[1]))
    for label in np.unique(output):
        rows[label] = states[output == label].mean(axis=0)
    return rows


def actions_of(algebra: Algebra) -> np.ndarray:
    """What every symbol does to the states of the smallest machine: `[V, S]`."""
    return algebra.machine.delta.T


def rows_of(choice: Choice, widths: Sequence[int]) -> np.ndarray:
    """The readout `[C, H]` where every part is filled up with zeros to a given width."""
    begins = np.cumsum([0, *(part.dimension for part in choice.parts)])
    pieces = [
        np.pad(choice.readout.rows[:, begin:end], ((0, 0), (0, width - (end - begin))))
        for (begin, end), width in zip(itertools.pairwise(begins), widths, strict=True)
    ]
    return np.column_stack(pieces)


def block_weights(choice: Choice, block_size: int, algebra: Algebra) -> dict[str, np.ndarray]:
    """A block for each part, filled up with zeros, and the point of the start as first state."""
    parts = choice.parts
    num_symbols, num_states = actions_of(algebra).shape
    blocks = np.zeros((num_symbols, len(parts), block_size, block_size))
    points = np.zeros((num_states, len(parts), block_size))
    for place, part in enumerate(parts):
        size = part.dimension
        blocks[:, place, :size, :size] = part.matrices(actions_of(algebra))
        points[:, place, :size] = part.points
    return {
        "weight": blocks,
        "first": points[algebra.machine.automaton.start].ravel(),
        "readout.weight": rows_of(choice, [block_size] * len(parts)),
    }


GROUP_TASKS = {
    # task: block size, Householder factors, smallest sum of dimensions
    "s3": (2, 2, 2),
    "s4": (3, 2, 3),
    "a4": (3, 2, 3),
    "a5": (3, 2, 3),
    "s5": (4, 4, 4),
    "s5-swaps": (4, 1, 4),
    "s5-swaps-and-3-cycles": (4, 2, 4),
    "z60": (2, 2, 2),
    "a4xz5": (3, 2, 5),
    "quaternion": (4, 4, 4),
    "dihedral:n=6": (2, 2, 2),
    "parity": (1, 1, 1),
    "product(parity,parity)": (1, 1, 2),
    "product(s3,s3)": (2, 2, 4),
}


@pytest.mark.parametrize("task", GROUP_TASKS)
def test_the_smallest_sizes_of_groups(task: str) -> None:
    block_size, factors, hidden = GROUP_TASKS[task]
    algebra = analyse(load_task(task).automaton)
    blocks = predict(algebra, "bilinear-block")
    assert (blocks.can, blocks.size, blocks.size_of) == ("yes", block_size, "block_size")
    assert blocks.smallest
    products = predict(algebra, "deltaproduct")
    assert (products.can, products.size, products.size_of) == ("yes", factors, "householders")
    full = predict(algebra, "bilinear")
    assert (full.can, full.size, full.size_of) == ("yes", hidden, "hidden")
    assert full.smallest


@pytest.mark.parametrize("task", [*GROUP_TASKS, "symmetric:n=6", "product(a4,dihedral:n=4)"])
def test_the_block_size_is_the_smallest_bound_under_which_kernels_meet_in_the_identity(
    task: str,
) -> None:
    """By characters, which know nothing of the states' space."""
    algebra = analyse(load_task(task).automaton)
    monoid = transition_monoid(algebra.machine.actions, Budget())
    assert monoid is not None
    irreducibles = real_irreducibles(Group(monoid.elements.astype(np.int64)))
    bounds = [
        bound
        for bound in sorted({each.dimension for each in irreducibles})
        if set.intersection(*(set(each.kernel) for each in irreducibles if each.dimension <= bound))
        == {0}
    ]
    assert predict(algebra, "bilinear-block").size == bounds[0]


@pytest.mark.parametrize("task", ["s3", "a5", "a4xz5", "product(s3,s3)", "z60"])
def test_no_set_of_parts_with_a_smaller_sum_tells_all_elements_apart(task: str) -> None:
    algebra = analyse(load_task(task).automaton)
    monoid = transition_monoid(algebra.machine.actions, Budget())
    assert monoid is not None
    irreducibles = real_irreducibles(Group(monoid.elements.astype(np.int64)))
    faithful_sums = [
        sum(each.dimension for each in chosen)
        for count in (1, 2, 3)
        for chosen in itertools.combinations(irreducibles, count)
        if set.intersection(*(set(each.kernel) for each in chosen)) == {0}
    ]
    assert predict(algebra, "bilinear").size == min(faithful_sums)


def merged(task: str, wanted: Sequence[str]) -> Automaton:
    """A task asked only whether the state is one of some."""
    automaton = load_task(task).automaton
    return Automaton(automaton.delta, [int(state in wanted) for state in automaton.states])


MERGED = {
    "even zeros and even ones": Automaton([[1, 2], [0, 3], [3, 0], [2, 1]], [1, 0, 0, 0]),
    "a multiple of 4": build_automaton(
        {"kind": "regex", "pattern": "(aaaa)*", "alphabet": "a"}, ""
    ),
    "identity of S4": merged("s4", ["e"]),
    "identity or swap in A5": merged("a5", ["e", "(1,2)(3,4)"]),
    "points of S5": Automaton(np.transpose([[1, 0, 2, 3, 4], [1, 2, 3, 4, 0]])),
    "points of A5": Automaton(np.transpose([[1, 2, 0, 3, 4], [0, 1, 3, 4, 2]])),
}


@pytest.mark.parametrize("name", [*GROUP_TASKS, *MERGED])
def test_blocks_of_the_predicted_size_track_the_task(name: str) -> None:
    automaton = MERGED[name] if name in MERGED else load_task(name).automaton
    algebra = analyse(automaton)
    assert algebra.space is not None
    choice = algebra.space.with_smallest_largest(algebra.space.dimensions)
    prediction = predict(algebra, "bilinear-block")
    assert choice is not None and choice.cost == prediction.size
    weights = block_weights(choice, choice.cost, algebra)
    options = {"hidden": choice.cost * len(choice.parts), "block_size": choice.cost}
    assert_tracks(by_hand("bilinear-block", automaton, weights, **options), automaton)


def test_five_points_need_larger_blocks_than_the_group_that_moves_them() -> None:
    """A5 has a faithful part of dimension 3, but no vector there is fixed where a point is."""
    points, elements = analyse(MERGED["points of A5"]), analyse(load_task("a5").automaton)
    assert points.monoid is not None and elements.monoid is not None
    assert points.monoid.size == elements.monoid.size == 60
    assert predict(points, "bilinear-block").size == 4
    assert predict(elements, "bilinear-block").size == 3


def test_labels_that_are_hard_to_read_need_more_than_telling_states_apart() -> None:
    """Points in blocks of 3 are all different, but these labels are not linear in them."""
    a5 = load_task("a5").automaton
    labels = np.random.default_rng(0).integers(0, 2, a5.num_states)
    prediction = predict(analyse(Automaton(a5.delta, labels)), "bilinear-block")
    assert (prediction.can, prediction.size, prediction.smallest) == ("yes", 5, True)
    assert "no less suffices while products are bounded" in prediction.theorem


@pytest.mark.parametrize("task", GROUP_TASKS)
def test_the_full_model_of_the_predicted_width_tracks_the_group(task: str) -> None:
    automaton = load_task(task).automaton
    algebra = analyse(automaton)
    assert algebra.space is not None
    choice = algebra.space.with_smallest_sum(algebra.space.dimensions)
    assert choice is not None and choice.cost == predict(algebra, "bilinear").size
    points = np.column_stack([part.points for part in choice.parts])
    matrices = np.zeros((automaton.num_symbols, choice.cost, choice.cost))
    begin = 0
    for part in choice.parts:
        span = slice(begin, begin + part.dimension)
        matrices[:, span, span] = part.matrices(actions_of(algebra))
        begin += part.dimension
    weights = {
        "weight": matrices,
        "first": points[algebra.machine.automaton.start],
        "readout.weight": labelled(automaton, algebra, points),
    }
    assert_tracks(by_hand("bilinear", automaton, weights, hidden=choice.cost), automaton)


# --- any automaton ---

ANY = {
    "flip-flop": load_task("flip-flop").automaton,
    "even-pairs": load_task("even-pairs").automaton,
    "modular-arithmetic": load_task("modular-arithmetic").automaton,
    "brackets of depth 3": Automaton([[1, 4], [2, 0], [3, 1], [4, 2], [4, 4]], [1, 0, 0, 0, 0]),
    "ends in 001 or 011": build_automaton(
        {"kind": "regex", "pattern": "(0|1)*0(0|1)1", "alphabet": "01"}, ""
    ),
}


def observed(algebra: Algebra) -> np.ndarray:
    """An orthonormal basis of what labels and symbols make of the states, `[S, H]`."""
    machine = algebra.machine
    asked = machine.automaton.scored & machine.live
    labels = np.unique(machine.automaton.output[asked])
    columns = [(asked & (machine.automaton.output == label)).astype(float) for label in labels]
    while True:
        more = [
            np.where(machine.live, column[targets], 0.0)
            for column in columns
            for targets in machine.delta.T
        ]
        values, vectors = np.linalg.eigh(sum(np.outer(each, each) for each in columns + more))
        basis = vectors[:, values > 1e-9]
        if basis.shape[1] == len(columns):
            return basis
        columns = list(basis.T)


@pytest.mark.parametrize("name", ANY)
def test_the_full_model_of_the_linear_dimension_simulates_the_machine(name: str) -> None:
    automaton = ANY[name]
    algebra = analyse(automaton)
    prediction = predict(algebra, "bilinear")
    basis = observed(algebra)
    machine = algebra.machine
    assert (prediction.can, prediction.size) == ("yes", basis.shape[1])
    assert prediction.size == algebra.linear_dimension
    states = np.eye(len(basis)) * machine.live
    moved = np.stack([states[targets] * machine.live[:, None] for targets in machine.delta.T])
    asked = machine.automaton.scored & machine.live
    indicators = np.zeros((automaton.num_labels, len(basis)))
    for state in np.flatnonzero(asked):
        indicators[machine.automaton.output[state], state] = 1
    weights = {
        "weight": basis.T @ moved.transpose(0, 2, 1) @ basis,
        "first": basis[machine.automaton.start],
        "readout.weight": indicators @ basis,
    }
    assert_tracks(by_hand("bilinear", automaton, weights, hidden=basis.shape[1]), automaton)


@pytest.mark.parametrize("name", ["flip-flop", "even-pairs", "brackets of depth 3"])
def test_the_factored_model_needs_a_term_for_each_pair_of_states_in_a_row(name: str) -> None:
    automaton = ANY[name]
    algebra = analyse(automaton)
    machine, prediction = algebra.machine, predict(algebra, "bilinear-cp")
    live = [int(state) for state in np.flatnonzero(machine.live)]
    pairs = sorted(
        {
            (state, int(target))
            for state in live
            for target in machine.delta[state]
            if machine.live[target]
        }
    )
    assert (prediction.can, prediction.size, prediction.smallest) == ("yes", len(pairs), False)
    unit = np.eye(len(machine.delta))
    gains = np.array(
        [
            [float(machine.delta[state, symbol] == target) for state, target in pairs]
            for symbol in range(automaton.num_symbols)
        ]
    )
    weights = {
        "left": np.stack([unit[target] for _, target in pairs], axis=1),
        "right": np.stack([unit[state] for state, _ in pairs], axis=1),
        "gains": gains,
        "first": unit[machine.automaton.start],
        "readout.weight": labelled(automaton, algebra, unit),
    }
    options = {"hidden": len(machine.delta), "rank": len(pairs)}
    assert_tracks(by_hand("bilinear-cp", automaton, weights, **options), automaton)


def factors_of(matrices: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Terms for matrices `[V, d, d]`: columns `[d, K]`, rows `[d, K]` and gains `[V, K]`.

    Commuting turns of a plane take three; others the identity and what each symbol turns beside
    it, or all of d x d, whichever is less.
    """
    num_symbols, size, _ = matrices.shape
    if size == 2 and (np.linalg.det(matrices) > 0).all():
        left = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
        right = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, -1.0]])
        cosine, sine = matrices[:, 0, 0], matrices[:, 1, 0]
        return left, right, np.stack([cosine - sine, cosine + sine, sine], axis=1)
    unit = np.eye(size)
    left, right = [*unit], [*unit]
    gains = [np.ones(num_symbols) for _ in range(size)]
    for symbol, matrix in enumerate(matrices):
        columns, sizes, rows = np.linalg.svd(matrix - unit)
        for place in np.flatnonzero(sizes > 1e-9):
            left.append(columns[:, place] * sizes[place])
            right.append(rows[place])
            gains.append(np.eye(num_symbols)[symbol])
    if len(left) > size**2:
        places = list(itertools.product(range(size), repeat=2))
        return (
            np.stack([unit[row] for row, _ in places], axis=1),
            np.stack([unit[column] for _, column in places], axis=1),
            matrices.reshape(num_symbols, -1),
        )
    return np.stack(left, axis=1), np.stack(right, axis=1), np.stack(gains, axis=1)


@pytest.mark.parametrize("task", ["s3", "s4", "a5", "s5", "s5-swaps", "z60", "a4xz5", "parity"])
def test_the_factored_model_of_the_predicted_rank_tracks_the_group(task: str) -> None:
    automaton = load_task(task).automaton
    algebra = analyse(automaton)
    assert algebra.space is not None
    choice = algebra.space.with_smallest_sum(algebra.space.ranks)
    assert choice is not None
    prediction = predict(algebra, "bilinear-cp")
    pieces = [factors_of(part.matrices(actions_of(algebra))) for part in choice.parts]
    rank = sum(left.shape[1] for left, _, _ in pieces)
    assert (prediction.can, prediction.size) == ("yes", rank)
    points = np.column_stack([part.points for part in choice.parts])
    sides = np.zeros((2, points.shape[1], rank))
    row = column = 0
    for left, right, _ in pieces:
        size, terms = left.shape
        sides[:, row : row + size, column : column + terms] = left, right
        row, column = row + size, column + terms
    weights = {
        "left": sides[0],
        "right": sides[1],
        "gains": np.column_stack([gains for _, _, gains in pieces]),
        "first": points[algebra.machine.automaton.start],
        "readout.weight": labelled(automaton, algebra, points),
    }
    options = {"hidden": points.shape[1], "rank": rank}
    assert_tracks(by_hand("bilinear-cp", automaton, weights, **options), automaton)


# --- gains that commute ---


def planes_of(parts: Sequence[Part], algebra: Algebra) -> tuple[np.ndarray, np.ndarray]:
    """Complex gains `[V, N]` and points `[S, N, 2]`: a plane for each part, a line fills half."""
    actions = actions_of(algebra)
    gains = np.ones((len(actions), len(parts)), complex)
    points = np.zeros((actions.shape[1], len(parts), 2))
    for place, part in enumerate(parts):
        matrices = part.matrices(actions)
        points[:, place, : part.dimension] = part.points
        gains[:, place] = matrices[:, 0, 0]
        if part.dimension == 2:
            gains[:, place] += 1j * matrices[:, 1, 0]
    return gains, points


ABELIAN = ["parity", "modular-addition", "z60", "product(cyclic:n=2,cyclic:n=6)"]


@pytest.mark.parametrize("name", [*ABELIAN, "even zeros and even ones", "a multiple of 4"])
@pytest.mark.parametrize("model", ["bilinear-rotation", "diagonal-complex"])
def test_turned_planes_of_the_predicted_width_track_abelian_groups(model: str, name: str) -> None:
    automaton = MERGED[name] if name in MERGED else load_task(name).automaton
    algebra = analyse(automaton)
    prediction = predict(algebra, model)
    assert (prediction.can, prediction.size_of) == ("yes", "hidden")
    assert algebra.space is not None
    costs = [2] * len(algebra.space.parts)
    choice = algebra.space.with_smallest_sum(costs)
    assert choice is not None and prediction.size == 2 * len(choice.parts)
    gains, points = planes_of(choice.parts, algebra)
    flat = points.reshape(len(points), -1)
    start = algebra.machine.automaton.start
    weights = {
        "first": flat[start],
        "readout.weight": rows_of(choice, [2] * len(choice.parts)),
    }
    if model == "bilinear-rotation":
        weights["angles"] = np.angle(gains)
    else:
        weights["gains"] = np.stack([gains.real, gains.imag], axis=-1)
    assert_tracks(by_hand(model, automaton, weights, hidden=flat.shape[1]), automaton)


@pytest.mark.parametrize("name", ["parity", "product(parity,parity,parity)"])
def test_signs_of_the_predicted_width_track_products_of_parities(name: str) -> None:
    automaton = load_task(name).automaton
    algebra = analyse(automaton)
    prediction = predict(algebra, "diagonal-real")
    assert algebra.space is not None
    choice = algebra.space.with_smallest_sum([1] * len(algebra.space.parts))
    assert choice is not None
    assert (prediction.can, prediction.size, prediction.smallest) == ("yes", choice.cost, True)
    points = np.column_stack([part.points for part in choice.parts])
    signs = [part.matrices(actions_of(algebra))[:, 0, 0] for part in choice.parts]
    weights = {
        "gains": np.stack(signs, axis=1),
        "first": points[algebra.machine.automaton.start],
        "readout.weight": labelled(automaton, algebra, points),
    }
    assert_tracks(by_hand("diagonal-real", automaton, weights, hidden=choice.cost), automaton)


AT_MOST_TWO = Automaton([[0, 1], [1, 2], [2, 3], [3, 3]], [0, 0, 0, 1])
"""Whether there were three ones: counted up to a threshold, and the order does not matter."""


def test_positive_gains_count_up_to_a_threshold() -> None:
    """With r^n for the n-th one, 1 > (r^n)(r^-2.5) from the third on, and 1 < it before."""
    for model in ("diagonal-positive", "diagonal-real", "diagonal-complex"):
        assert predict(analyse(AT_MOST_TWO), model).can == "yes"
    gains = torch.tensor([[0.5, 0.5], [0.5, 0.05]], dtype=torch.float64)
    weights = {
        "gain_logits": gains.logit(),
        "first": torch.tensor([1.0, 10.0**2.5]),
        "readout.weight": torch.tensor([[0.0, 1.0], [1.0, 0.0]]),
    }
    model = by_hand("diagonal-positive", AT_MOST_TWO, weights, hidden=2)
    assert_tracks(model, AT_MOST_TWO)


def test_gains_and_an_added_state_follow_resets() -> None:
    """A register: written 0, written 1, kept."""
    register = Automaton([[0, 1, 0], [0, 1, 1]])
    algebra = analyse(register)
    assert predict(algebra, "diagonal-real").can == "no"
    prediction = predict(algebra, told("diagonal-real", additive="input"))
    assert (prediction.can, prediction.size, prediction.robust) == ("yes", 2, "no")
    weights = {
        "gains": torch.tensor([[0.0, 0.0], [0.0, 0.0], [1.0, 1.0]]),
        "first": torch.tensor([1.0, 0.0]),
        "additive": torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]),
        "readout.weight": torch.eye(2),
    }
    model = by_hand("diagonal-real", register, weights, hidden=2, additive="input")
    assert_tracks(model, register)


# --- reflections ---


def reflections_of(matrix: np.ndarray, num_factors: int) -> np.ndarray:
    """Unit vectors k of reflections I - 2 k k^T whose product, first one first, is the matrix.

    Zero vectors stand for reflections that are not needed: `[num_factors, d]`.
    """
    left, vectors = matrix.copy(), []
    while np.abs(left - np.eye(len(left))).max() > 1e-9:
        deviation = np.linalg.svd(left - np.eye(len(left)))[2][0]  # moved most
        vector = left @ deviation - deviation
        vector /= np.linalg.norm(vector)
        left = left - 2 * np.outer(vector, vector @ left)
        vectors.append(vector)
    assert len(vectors) <= num_factors
    return np.array([*vectors[::-1], *[np.zeros(len(matrix))] * (num_factors - len(vectors))])


@pytest.mark.parametrize("task", ["s3", "s4", "a5", "s5", "s5-swaps", "quaternion", "a4xz5"])
def test_the_predicted_number_of_reflections_in_each_head_tracks_the_group(task: str) -> None:
    automaton = load_task(task).automaton
    algebra = analyse(automaton)
    assert algebra.space is not None
    choice = algebra.space.with_smallest_largest(algebra.space.codimensions)
    prediction = predict(algebra, "deltaproduct")
    assert choice is not None and prediction.size == choice.cost
    draw = np.random.default_rng(0)
    words = draw.integers(0, automaton.num_symbols, (3, 10_000))
    scores = np.zeros((*words.shape, automaton.num_labels))
    for part in choice.parts:
        vectors = np.stack(
            [reflections_of(matrix, choice.cost) for matrix in part.matrices(actions_of(algebra))]
        )  # [V, n, d]
        state = np.repeat(part.points[[algebra.machine.automaton.start]], len(words), axis=0)
        readout = labelled(automaton, algebra, part.points).T
        for time, symbols in enumerate(words.T):
            for factor in range(choice.cost):
                direction = vectors[symbols, factor]
                state = state - 2 * direction * (direction * state).sum(1, keepdims=True)
            scores[:, time] += state @ readout
    assert (scores.argmax(axis=-1) == automaton.labels_of(words)).all()


def test_half_turns_of_the_icosahedron_may_do_with_one_reflection_but_five_fold_turns_may_not() -> (
    None
):
    elements = load_task("a5")
    half_turns = ["(1,2)(3,4)", "(1,2)(3,5)", "(1,3)(2,5)"]
    only_half_turns = build_automaton(
        {"kind": "alternating", "n": 5, "generators": half_turns}, "test"
    )
    negative = told("deltanet", beta="double")
    for layers, answer in ((1, "no"), (2, "unknown"), (3, "unknown")):
        found = predict(analyse(elements.automaton), negative.model_copy(update={"layers": layers}))
        assert (found.can, found.answer) == ("yes", answer)
    assert predict(analyse(elements.automaton), "deltaproduct").smallest
    found = predict(analyse(only_half_turns), negative)
    assert (found.can, found.answer) == ("yes", "unknown")
    assert predict(analyse(only_half_turns), "deltaproduct").size == 2
    assert not predict(analyse(only_half_turns), "deltaproduct").smallest


# --- recurrences that saturate ---


def saturated(automaton: Automaton, algebra: Algebra) -> dict[str, np.ndarray]:
    """A unit for each state and action, on (+1) after the action was read in the state; else -1.

    The last unit is 0 before the first symbol and on after it.
    """
    delta, actions = algebra.machine.delta, algebra.machine.actions
    live = np.flatnonzero(algebra.machine.live).tolist()
    pairs = list(itertools.product(live, range(len(actions))))
    size = len(pairs) + 1
    recurrent, bias = np.zeros((size, size)), np.zeros(size)
    read = np.zeros((size, automaton.num_symbols))
    for unit, (state, action) in enumerate(pairs):
        leads_here = [actions[before][source] == state for source, before in pairs]
        count = sum(leads_here)
        begun = count - 2 if state == algebra.machine.automaton.start else count
        recurrent[unit, :-1] = leads_here
        recurrent[unit, -1] = begun
        bias[unit] = count - 1 - begun
        differs = (delta.T != actions[action]).any(axis=1)
        read[unit] = -4.0 * len(pairs) * differs
    bias[-1] = 2.0
    readout = np.zeros((automaton.num_labels, size))
    for unit, (state, action) in enumerate(pairs):
        readout[algebra.machine.automaton.output[actions[action][state]], unit] = 1
    offset = -readout @ np.append(-np.ones(len(pairs)), 0)  # all units off
    return {
        "recurrent": recurrent,
        "read": read,
        "bias": bias,
        "readout": readout,
        "offset": offset,
    }


GAIN = 12.0
"""How steep units are: tanh(12) is 1 in float32."""

SATURATING = {
    # rows of the gates in torch's order: which one is the candidate, how the others are held
    "rnn": ([None], 1.0),
    "gru": ([30.0, -30.0, None], 1.0),  # reset open, update shut, candidate
    "lstm": ([30.0, -30.0, None, 30.0], float(np.tanh(1.0))),  # input, forget, candidate, output
}


@pytest.mark.parametrize("name", ["flip-flop", "even-pairs", "brackets of depth 3", "s3", "a4"])
@pytest.mark.parametrize("model", SATURATING)
def test_saturating_units_of_the_predicted_number_simulate_the_machine(
    model: str, name: str
) -> None:
    automaton = ANY[name] if name in ANY else load_task(name).automaton
    algebra = analyse(automaton)
    prediction = predict(algebra, model)
    parts = saturated(automaton, algebra)
    size = len(parts["bias"])
    assert (prediction.can, prediction.size_of, prediction.robust) == ("yes", "hidden", "yes")
    assert prediction.size == size
    gates, height = SATURATING[model]
    zero = np.zeros_like(parts["read"])
    weights = {
        "embedding.weight": np.eye(automaton.num_symbols),
        "network.weight_ih_l0": np.vstack(
            [GAIN * parts["read"] if held is None else zero for held in gates]
        ),
        "network.weight_hh_l0": np.vstack(
            [
                GAIN * parts["recurrent"] / height if held is None else 0 * parts["recurrent"]
                for held in gates
            ]
        ),
        "network.bias_ih_l0": np.concatenate(
            [GAIN * parts["bias"] if held is None else np.full(size, held) for held in gates]
        ),
        "network.bias_hh_l0": np.zeros(size * len(gates)),
        "readout.weight": parts["readout"] / height,
        "readout.bias": parts["offset"],
    }
    options = {"hidden": size, "embed_dim": automaton.num_symbols}
    assert_tracks(by_hand(model, automaton, weights, **options), automaton, num_words=2)


# --- what cannot be ---


COMMUTING = ["diagonal-positive", "diagonal-real", "diagonal-complex", "bilinear-rotation"]


def words_in_another_order(automaton: Automaton) -> tuple[np.ndarray, np.ndarray] | None:
    """Two drawn words with the same symbols and, both asked for, different labels."""
    for length in range(2, 7):
        found: dict[tuple[int, ...], tuple[np.ndarray, int]] = {}
        for word in itertools.product(range(automaton.num_symbols), repeat=length):
            states = [automaton.start, *automaton.states_after(np.array(word)).tolist()]
            drawn = all(automaton.weights[s, x] > 0 for s, x in zip(states, word, strict=False))
            if not drawn or not automaton.scored[states[-1]]:
                continue
            key, label = tuple(sorted(word)), int(automaton.output[states[-1]])
            other, other_label = found.setdefault(key, (np.array(word), label))
            if label != other_label:
                return other, np.array(word)
    return None


SMALL = ["s3", "quaternion", "flip-flop", "even-pairs", "ends-with-ab", "turnstile", "random-fsm"]


@pytest.mark.parametrize("task", SMALL)
def test_where_gains_that_commute_cannot_two_words_differ_only_in_their_order(task: str) -> None:
    automaton = load_task(task).automaton
    algebra = analyse(automaton)
    assert {predict(algebra, model).can for model in COMMUTING} == {"no"}
    witness = words_in_another_order(automaton)
    assert witness is not None
    assert sorted(witness[0]) == sorted(witness[1])


@pytest.mark.parametrize("name", ["parity", "z60", "modular-addition", "cycle-navigation"])
def test_where_the_order_never_counts_no_such_words_are_found(name: str) -> None:
    automaton = load_task(name).automaton
    assert predict(analyse(automaton), "diagonal-complex").can == "yes"
    few = Automaton(automaton.delta[:, :3], automaton.output) if name == "z60" else automaton
    assert words_in_another_order(few) is None


def labels_that_cycle(automaton: Automaton, most: int) -> list[int] | None:
    """Labels along x, x^2, x^3 ... for a symbol x whose labels keep changing."""
    for symbol in range(automaton.num_symbols):
        labels = automaton.labels_of(np.full(2 * most, symbol)).tolist()
        if len(set(labels[most:])) > 1:
            return labels
    return None


def word_that_cycles(algebra: Algebra, most: int) -> list[int] | None:
    """The symbols of a word whose powers go through states that labels tell apart."""
    apart, actions = algebra.machine.apart, algebra.machine.actions
    assert apart is not None
    identity = np.arange(actions.shape[1])
    known, fresh = {identity.tobytes()}, [([], identity)]
    while fresh and len(known) < most:
        longer = []
        for word, reached in fresh:
            for symbol, action in enumerate(actions):
                after = action[reached]
                if after.tobytes() in known:
                    continue
                known.add(after.tobytes())
                longer.append(([*word, symbol], after))
                settled = after
                for _ in range(len(after).bit_length()):
                    settled = settled[settled]
                if apart[settled, after[settled]].any():
                    return longer[-1][0]
        fresh = longer
    return None


def test_models_whose_states_settle_are_refused_exactly_where_a_word_cycles() -> None:
    names = "s3 a5 permutation-reset flip-flop tomita-3 register modular-addition"
    for name in names.split():
        algebra = analyse(load_task(name).automaton)
        cycles = word_that_cycles(algebra, 2_000) is not None
        for model in (told("minmax"), told("deltanet"), told("gated-deltanet")):
            assert (predict(algebra, model).can == "no") == cycles, (name, type(model).__name__)


def test_what_a_minmax_stack_answers_after_powers_of_a_word_settles() -> None:
    automaton = load_task("s3").automaton
    settings = told("minmax", layers=2, width=16, state=8)
    model = MODELS["minmax"](settings, num_symbols=automaton.num_symbols, num_labels=6).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(3.0)  # bounds that cross, and bounds that are far apart
    for length in (1, 2, 3, 5):
        word = torch.randint(automaton.num_symbols, (8, length))
        with torch.no_grad():
            logits = model(word.repeat(1, 12))[:, length - 1 :: length]
        assert torch.equal(logits[:, 8:], logits[:, 7:-1])


def test_a_product_of_symmetric_contractions_has_no_eigenvalue_of_modulus_1_but_1() -> None:
    random = np.random.default_rng(0)
    negative = False
    for _ in range(300):
        product = np.eye(3)
        for _ in range(random.integers(1, 5)):
            key = np.append(random.standard_normal(2), 0.0)  # all factors fix the last direction
            key /= np.linalg.norm(key)
            product = product @ (np.eye(3) - random.choice([0.5, 1.0]) * np.outer(key, key))
        values = np.linalg.eigvals(product)
        negative = negative or bool((values.real < -1e-3).any())
        assert np.allclose(values[np.abs(values) > 1 - 1e-9], 1.0)
        assert (np.abs(values) > 1 - 1e-9).sum() >= 1
    assert negative, "such a product may have negative eigenvalues"


@pytest.mark.parametrize("task", ["parity", "z60", "s3", "a5", "random-permutations"])
def test_where_positive_gains_cannot_the_labels_of_a_repeated_symbol_cycle(task: str) -> None:
    automaton = load_task(task).automaton
    algebra = analyse(automaton)
    for model in ("diagonal-positive", "mamba", "gla", "rwkv6", "rwkv7", "mlstm", "deltanet"):
        assert predict(algebra, model).can == "no", model
    assert labels_that_cycle(automaton, 200) is not None


@pytest.mark.parametrize(
    ("task", "positive", "signs", "turns"),
    [
        ("parity", "no", "yes", "yes"),
        ("z60", "no", "no", "yes"),
        ("dihedral:n=4", "no", "no", "no"),
        ("product(parity,parity)", "no", "yes", "yes"),
        ("flip-flop", "no", "no", "no"),
    ],
)
def test_one_layer_of_gains_does_what_its_gains_can(
    task: str, positive: str, signs: str, turns: str
) -> None:
    algebra = analyse(load_task(task).automaton)
    found = [predict(algebra, model).can for model in COMMUTING]
    assert found == [positive, signs, turns, turns]


def test_rotations_forget_nothing() -> None:
    """A count up to three never decreases; powers of a rotation come near the identity."""
    assert predict(analyse(AT_MOST_TWO), "bilinear-rotation").can == "no"
    assert predict(analyse(AT_MOST_TWO), "diagonal-complex").can == "yes"


def test_stacks_follow_the_series_of_the_group() -> None:
    expected = {
        # complex gains, signs (-1 to 1), positive gains; layers of each
        "parity": (("yes", 1), ("yes", 1), ("no", None)),
        "dihedral:n=4": (("yes", 2), ("yes", 2), ("no", None)),
        "cyclic:n=4": (("yes", 1), ("yes", 2), ("no", None)),
        "s3": (("yes", 2), ("no", None), ("no", None)),
        "s4": (("yes", 3), ("no", None), ("no", None)),
        "a5": (("no", None), ("no", None), ("no", None)),
        "flip-flop": (("yes", None), ("yes", None), ("yes", None)),
        "turnstile": (("yes", 1), ("yes", 1), ("yes", 1)),
    }
    for task, answers in expected.items():
        algebra = analyse(load_task(task).automaton)
        found = [
            predict(algebra, "mamba3"),
            predict(algebra, told("mamba", eigenvalues="signed")),
            predict(algebra, "mamba"),
        ]
        assert tuple((each.can, each.size) for each in found) == answers, task


def test_what_is_hard_for_nc1_is_beyond_constant_depth() -> None:
    for task, expected in (("a5", "no"), ("s5-swaps", "no"), ("s4", "unknown")):
        algebra = analyse(load_task(task).automaton)
        for model in ("transformer", "hgrn", told("s4d", layers=2), told("lru", layers=2)):
            assert predict(algebra, model).can == expected


def test_a_group_that_labels_never_show_stops_no_model() -> None:
    hidden_phase = Automaton([[1, 1], [0, 0]], [0, 1], scored=[True, False])
    for model in ("diagonal-positive", "mamba"):
        assert predict(analyse(hidden_phase), model).can != "no"


def test_sizes_are_the_smallest_where_some_states_are_not_asked_for_too() -> None:
    turned = Automaton([[1, 2], [2, 0], [0, 1]], scored=[True, True, False])
    shown = Automaton([[1, 2], [2, 0], [0, 1]])
    for model in ("bilinear", "bilinear-block", "bilinear-rotation", "deltaproduct"):
        hidden, seen = predict(analyse(turned), model), predict(analyse(shown), model)
        assert (hidden.can, hidden.size) == (seen.can, seen.size) == ("yes", 2), model
        assert seen.smallest, model
        assert hidden.smallest == (model != "deltaproduct"), model


# --- what a prediction is ---


def test_additive_terms_keep_what_can_be_and_make_sizes_open() -> None:
    algebra = analyse(load_task("s4").automaton)
    without = predict(algebra, "bilinear-block")
    with_terms = predict(algebra, told("bilinear-block", additive="input"))
    assert (without.size, without.smallest) == (3, True)
    assert (with_terms.size, with_terms.smallest) == (3, False)
    assert predict(algebra, told("diagonal-complex", additive="input")).can == "no"
    commuting = analyse(load_task("parity").automaton)
    assert predict(commuting, told("diagonal-real", additive="constant")).can == "yes"


def test_an_answer_weighs_the_size_that_a_model_is_given() -> None:
    def with_blocks_of(size: int, *, smallest: bool) -> Prediction:
        need = Size("block_size", size).at_least(3, smallest)
        return Prediction("yes", "theorem", "source", (need,))

    sizes = (2, 3, 4)
    exact = [with_blocks_of(size, smallest=True).answer for size in sizes]
    enough = [with_blocks_of(size, smallest=False).answer for size in sizes]
    assert exact == ["no", "yes", "yes"]
    assert enough == ["unknown", "yes", "yes"]
    assert Prediction("yes", "theorem", "source").answer == "yes"
    enough = Size("block_size", 9).at_least(3)
    assert Prediction("no", "theorem", "source", (enough,)).answer == "no"
    layers = Size("layers", 2).at_least(None)
    assert Prediction("yes", "theorem", "source", (layers,)).answer == "unknown"


def test_a_model_can_with_its_settings_only_if_each_of_them_is_large_enough() -> None:
    factors, heads = Size("householders", 2).at_least(2, smallest=True), Size("heads", 4)
    found = Prediction("yes", "theorem", "source", (factors, heads.at_least(5)))
    assert (found.answer, found.unmet) == ("unknown", (Need("heads", 5, 4),))
    assert (found.size_of, found.size, found.smallest) == ("householders", 2, True)
    assert replace(found, needs=(factors, heads.at_least(5, smallest=True))).answer == "no"
    assert replace(found, needs=(factors, heads.at_least(4))).answer == "yes"
    assert replace(found, needs=(factors, heads.at_least(None))).answer == "unknown"
    written = found.to_json()
    assert (written["can"], written["suffices"]) == ("yes", "unknown")
    assert written["needs"] == [
        {"setting": "householders", "value": 2, "given": 2, "smallest": True, "least": 2},
        {"setting": "heads", "value": 5, "given": 4, "smallest": False, "least": None},
    ]


def test_less_than_what_is_known_to_be_too_few_does_not_suffice() -> None:
    def with_layers(number: int) -> Prediction:
        need = Size("layers", number).at_least(4, least=2)
        return Prediction("yes", "theorem", "source", (need,))

    assert [with_layers(number).answer for number in (1, 2, 3, 4)] == [
        "no",
        "unknown",
        "unknown",
        "yes",
    ]
    assert Size("layers", 1).at_least(2, least=2).smallest
    assert Size("layers", 1).at_least(None, least=2).met == "no"


def test_every_registered_model_names_its_recurrence_which_answers_for_every_task() -> None:
    for task in (name for name in TASKS if load_task(name).has_automaton):
        algebra = analyse(load_task(task).automaton)
        for model in MODELS:
            recurrence = recurrence_of(told(model))
            assert recurrence is not None, model
            prediction = recurrence.predict(algebra)
            assert prediction == predict(algebra, model) == predict(algebra, recurrence)
            assert prediction.theorem and prediction.source, (task, model)
            if prediction.size is not None:
                assert (prediction.can, prediction.size >= 1) == ("yes", True), (task, model)
                assert prediction.size_of in MODELS[model].settings_class.model_fields


def test_the_size_that_a_model_is_given_is_the_value_of_the_setting_that_counts() -> None:
    algebras = [analyse(load_task(task).automaton) for task in ("s3", "parity", "flip-flop")]
    for model in MODELS:
        settings = told(model)
        for algebra in algebras:
            for need in predict(algebra, settings).needs:
                assert need.given == settings.model_dump()[need.setting], (model, need)


def test_a_task_and_its_algebra_a_model_and_its_settings_are_predicted_alike() -> None:
    task = load_task("s3")
    settings = told("bilinear-cp", rank=3)
    model = MODELS["bilinear-cp"](settings, num_symbols=6, num_labels=6)
    found = predict(task, model)
    assert found == predict(task, settings) == predict(analyse(task.automaton), settings)
    assert (found.size, found.answer) == (4, "unknown")
    assert found == predict(task, "bilinear-cp", rank=3)
    assert predict(task, "bilinear-cp").answer == "yes"


def test_nothing_is_predicted_of_a_module_that_names_no_class_of_recurrence() -> None:
    found = predict(load_task("s3"), torch.nn.GRU(3, 4))
    assert (found.can, found.answer, found.needs) == ("unknown", "unknown", ())
    assert "names no class" in found.theorem


def test_a_task_without_an_automaton_is_not_predicted() -> None:
    with pytest.raises(TaskError, match="no automaton"):
        predict(load_task("dyck-1"), "rnn")


def test_a_name_that_no_model_has_is_refused_with_the_nearest() -> None:
    algebra = analyse(load_task("parity").automaton)
    with pytest.raises(UnknownNameError, match="linear-attention"):
        predict(algebra, "linear-atention")


def test_a_machine_of_one_state_is_within_every_models_reach() -> None:
    algebra = analyse(Automaton([[0, 0]]))
    for model in MODELS:
        prediction = predict(algebra, model)
        assert prediction.can != "no", model
        assert prediction.size is None or prediction.size >= 1, model
    for model in ("bilinear", "bilinear-cp", "bilinear-block", *COMMUTING, "rnn", "mamba"):
        assert predict(algebra, model).can == "yes", model


def test_a_machine_that_is_too_large_is_still_predicted_for() -> None:
    algebra = analyse(load_task("random-fsm:states=25,symbols=10").automaton)
    assert algebra.monoid is None
    assert predict(algebra, "bilinear").size == 25
    assert predict(algebra, "rnn").can == "yes"
    assert predict(algebra, "diagonal-complex").can == "no"
    assert predict(algebra, "mamba3").can == "unknown"


# --- the command ---


def run_predict(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = app.run(["predict", *words])
    return code, *capsys.readouterr()


def test_predict_prints_sizes_reasons_and_tables(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    code, one, _ = run_predict(capsys, "s4", "--models", "bilinear-block,rnn")
    assert code == 0
    assert "block_size = 3" in one and "hidden <= 577" in one and "ACC0" in one and "S4" in one
    code, several, _ = run_predict(capsys, "s4", "flip-flop", "parity")
    assert code == 0
    headings = [line for line in several.splitlines() if not line.startswith(" ")]
    assert headings[:3] == ["s4", "flip-flop", "parity"]
    assert "diagonal-real (hidden = 1)" in several
    code, _, complaint = run_predict(capsys, "s4", "--models", "linear-atention")
    assert code == 1 and "linear-attention" in complaint


def test_predict_gives_the_same_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    code, written, _ = run_predict(capsys, "s5", "random-fsm", "--json")
    assert code == 0
    found = json.loads(written)
    for task, about in found.items():
        algebra = analyse(load_task(task).automaton)
        assert about["algebra"] == algebra.to_json()
        assert about["predictions"] == {
            model: predict(algebra, model).to_json() for model in MODELS
        }
    assert found["s5"]["algebra"]["irreducible_dimensions"]["real"] == [1, 1, 4, 4, 5, 5, 6]


# --- models from elsewhere ---

PLUGIN = """
from statetrack import MODELS, LinearModel, LinearSettings, option
from statetrack.algebra.recurrences import Blocks, Size


class OwnBlocksSettings(LinearSettings):
    width: int = option(2, "Size of each block.", min=1)

    @property
    def recurrence(self):
        return Blocks(size=Size("width", self.width), additive=self.additive)


@MODELS.register("own-blocks")
class OwnBlocks(LinearModel):
    settings_class = OwnBlocksSettings
"""


def test_a_users_model_that_names_its_recurrence_is_predicted_as_one_of_this_package(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(MODELS, "_things", dict(MODELS._things))
    path = tmp_path / "own_blocks.py"
    path.write_text(PLUGIN)
    words = ("s4", "--models", "own-blocks,bilinear-block", "--json", "--plugin", str(path))
    code, written, _ = run_predict(capsys, *words)
    assert code == 0
    predictions = json.loads(written)["s4"]["predictions"]
    needs = [predictions["bilinear-block"]["needs"][0] | {"setting": "width"}]
    expected = predictions["bilinear-block"] | {"size_of": "width", "needs": needs}
    assert predictions["own-blocks"] == expected
    algebra = analyse(load_task("s4").automaton)
    answers = [predict(algebra, told("own-blocks", width=width)).answer for width in (2, 3)]
    assert answers == ["no", "yes"]
