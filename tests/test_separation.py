"""Readouts: the linear program against other ways to decide the same, margins, horizons."""

from __future__ import annotations

import math

import numpy as np
import pytest

from statetrack.algebra import analyse, noise_horizon, rounding_horizon
from statetrack.algebra.separation import Labels, _basis, _solution, find_readout, margin_of
from statetrack.predicting import predict
from statetrack.sources import Automaton
from statetrack.spec import load_task


def labels_of(output: list[int] | np.ndarray, asked: list[bool] | None = None) -> Labels:
    found = np.asarray(output)
    mask = np.ones(len(found), bool) if asked is None else np.asarray(asked)
    return Labels(found, mask, int(found.max()) + 1)


# --- margins ---


def test_points_on_a_line_are_as_far_from_the_boundary_as_they_are_long() -> None:
    points = np.array([[3.0], [-3.0]])
    assert margin_of(points, np.array([[1.0], [-1.0]]), labels_of([0, 1])) == 1.0
    assert margin_of(points, np.array([[-1.0], [1.0]]), labels_of([0, 1])) == -1.0


@pytest.mark.parametrize("corners", [3, 4, 6, 60])
def test_corners_of_a_polygon_are_half_an_edge_from_the_boundary(corners: int) -> None:
    angles = 2 * np.pi * np.arange(corners) / corners
    points = 5 * np.column_stack([np.cos(angles), np.sin(angles)])
    found = find_readout(points, labels_of(np.arange(corners))).readout
    assert found is not None
    assert found.margin == pytest.approx(math.sin(math.pi / corners))


def test_the_margin_does_not_depend_on_scale_or_turns() -> None:
    draw = np.random.default_rng(0)
    points, rows = draw.normal(size=(9, 4)), draw.normal(size=(3, 4))
    labels = labels_of((points @ rows.T).argmax(axis=1))
    turn = np.linalg.qr(draw.normal(size=(4, 4)))[0]
    margin = margin_of(points, rows, labels)
    assert 0 < margin < 1
    assert margin_of(7 * points @ turn, 3 * rows @ turn, labels) == pytest.approx(margin)


def test_labels_that_are_not_asked_for_do_not_count() -> None:
    points = np.array([[1.0], [-1.0], [0.5]])
    rows = np.array([[1.0], [-1.0]])
    assert margin_of(points, rows, labels_of([0, 1, 1])) < 0
    assert margin_of(points, rows, labels_of([0, 1, 1], [True, True, False])) == 1.0


def test_points_that_are_0_but_for_rounding_beside_others_have_no_readout() -> None:
    points = np.array([[-1.0], [1.7e-32]])
    assert find_readout(points, labels_of([0, 1], [False, True])).exists is False
    assert find_readout(points[:1], labels_of([0])).exists


def test_noise_on_turned_points_reaches_the_boundary_at_the_horizon() -> None:
    """A walk of a thousand replicas: at a third of the horizon few err, beyond it more do."""
    draw = np.random.default_rng(0)
    margin, sigma = math.sin(math.pi / 5), 0.01
    horizon = noise_horizon(margin, sigma)
    assert horizon == pytest.approx((margin / 0.03) ** 2)
    turn = np.exp(2j * np.pi / 5)
    state = np.ones(1000, complex)
    wrong = {}
    steps = round(9 * horizon)  # where the margin is one standard deviation
    for step in range(1, steps + 1):
        noise = draw.normal(size=(2, 1000))
        state = state * turn + sigma * (noise[0] + 1j * noise[1])
        if step in (round(horizon), steps):
            angle = np.angle(state / turn**step)
            wrong[step] = float((np.abs(angle) > math.pi / 5).mean())
    assert wrong[round(horizon)] < 0.02
    assert 0.15 < wrong[steps] < 0.5


def test_horizons_without_disturbances_are_infinite() -> None:
    assert noise_horizon(0.5, 0) == rounding_horizon(0.5, 0) == math.inf
    assert rounding_horizon(0.5, 2**-10) == 512
    assert noise_horizon(-0.1, 0.1) == 0


# --- the linear program ---


def perceptron(points: np.ndarray, labels: Labels, rounds: int) -> bool:
    """Whether Rosenblatt's rule finds a readout: an independent way to show that there is one."""
    rows = np.zeros((labels.number, points.shape[1]))
    for _ in range(rounds):
        logits = points @ rows.T
        logits[np.arange(len(points)), labels.output] -= 1e-3
        guesses = logits.argmax(axis=1)
        wrong = np.flatnonzero(guesses != labels.output)
        if not len(wrong):
            return True
        place = wrong[0]
        rows[labels.output[place]] += points[place]
        rows[guesses[place]] -= points[place]
    return False


def test_the_program_decides_as_a_perceptron_and_as_a_program_over_coefficients_do() -> None:
    from scipy.optimize import linprog

    draw = np.random.default_rng(1)
    answers = set()
    for _ in range(60):
        states, size, names = draw.integers(3, 9), draw.integers(1, 5), draw.integers(2, 4)
        points = draw.integers(-2, 3, (states, size)).astype(float)
        labels = labels_of(np.append(draw.integers(0, names, states - 1), names - 1))
        if len(labels.names) < 2 or not np.abs(points).any():
            continue
        found = find_readout(points, labels)
        gaps = [
            np.kron(np.eye(labels.number)[label] - np.eye(labels.number)[other], point)
            for point, label in zip(points, labels.output, strict=True)
            for other in labels.names
            if other != label
        ]
        independent = linprog(
            np.zeros(len(gaps[0])), -np.array(gaps), -np.ones(len(gaps)), bounds=(None, None)
        )
        assert found.exists == (independent.status == 0)
        if found.exists:
            solution = _solution(_basis(points[labels.asked]), labels)
            assert solution is not None and solution[0] > 1e-3
            assert found.readout is not None and found.readout.margin > 0
        if perceptron(points, labels, 200):
            assert found.exists
        answers.add(found.exists)
    assert answers == {True, False}


def test_an_optimum_that_is_neither_clear_nor_zero_is_left_undecided() -> None:
    """The middle one of three points on a line, off it by less and less."""
    answers = []
    for off in (1e-2, 1e-7, 1e-12):
        points = np.array([[-1.0, 1.0, 0.0], [0.0, 1.0, off], [1.0, 1.0, 0.0]])
        answers.append(find_readout(points, labels_of([0, 1, 0])).exists)
    assert answers[0] is True
    assert answers[1] in (True, None)
    assert answers[2] is not True


# --- group tasks whose states share labels ---


def dicyclic(labels: list[int]) -> Automaton:
    """a^6 = 1, b^2 = a^3, b a = a^-1 b: states a^i b^j, read by a and by b."""
    delta = []
    for j in (0, 1):
        for i in range(6):
            by_a = 6 * j + (i + (1 if j == 0 else -1)) % 6
            by_b = 6 + i if j == 0 else (i + 3) % 6
            delta.append([by_a, by_b])
    return Automaton(delta, labels)


def test_blocks_of_two_read_labels_of_the_dicyclic_group_that_mean_points_do_not() -> None:
    task = dicyclic([1, 0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0])
    algebra = analyse(task)
    found = predict(algebra, "bilinear-block")
    assert (found.size, found.smallest) == (2, True)
    assert found.margin is not None and found.margin > 0.05
    assert algebra.space is not None
    small = [part.points for part in algebra.space.parts if part.dimension <= 2]
    whole = find_readout(np.column_stack(small), algebra.space.labels).readout
    assert whole is not None and whole.margin > 0.15


def test_the_width_of_abelian_tasks_with_merged_labels_is_exact() -> None:
    """Once in four: a sign and a plane, or a plane and a constant; a plane alone has a tie."""
    expected = {"aaaa-star": 3, "tomita-5": 3, "tomita-6": 2}
    for task, hidden in expected.items():
        found = predict(load_task(task), "bilinear")
        assert (found.size, found.smallest) == (hidden, True), task


def test_a_bias_of_the_readout_leaves_open_whether_less_suffices_but_for_blocks() -> None:
    """A plane and a bias read one state of four; the constant tells no elements of S3 apart."""
    for model in ("bilinear", "bilinear-block", "bilinear-rotation"):
        assert predict(load_task("aaaa-star"), model).smallest
        biased = predict(load_task("aaaa-star"), model, readout_bias=True)
        assert biased.smallest == (model == "bilinear-block")
    assert not predict(load_task("aaaa-star"), "full-matrix").smallest
    for model in ("bilinear", "full-matrix"):
        options = {"readout_bias": True} if model == "bilinear" else {}
        assert predict(load_task("s3"), model, **options).smallest
