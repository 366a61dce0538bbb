"""How errors of the state grow and what the decoder bears, on models whose errors are known."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from statetrack.algebra import needed_machine
from statetrack.errors import SettingsError
from statetrack.evidence import ErrorControl, SearchBudget, Subject, find_error_control
from statetrack.evidence.words import RandomWords
from statetrack.models import make_model
from statetrack.spec import load_task

TASK = "modular-addition:m=5"
SMALL = {"length": 256, "noise_length": 2, "noise_sizes": (0.1,)}


def rotating(extra=0.0):
    """One plane that turns by 2 pi x / 5 after x; symbol 1 turns it by `extra` more."""
    model = make_model("bilinear-rotation", TASK, hidden=2).double()
    angles = 2 * math.pi / 5 * torch.arange(5.0, dtype=torch.float64).unsqueeze(1)
    with torch.no_grad():
        model.readout.weight.copy_(torch.cat([angles.cos(), angles.sin()], 1))
        model.first.copy_(torch.tensor([1.0, 0.0]))
        angles[1] += extra
        model.angles.copy_(angles)
    return model


def found(model, task=TASK, seconds=60, **given) -> ErrorControl:
    return find_error_control(Subject(model, task), budget=SearchBudget(seconds), **given)


@pytest.fixture(scope="module")
def drifting() -> ErrorControl:
    """A model whose plane turns 1/250 of a radian too far with every 1: one symbol in five."""
    return found(rotating(4e-3), length=2048, noise_length=2, noise_sizes=(0.1,))


def test_an_exact_model_has_neither_spread_nor_error():
    result = found(rotating(), **SMALL)
    assert [each.position for each in result.spreads][-3:] == [128, 192, 256]
    assert max(each.ratio for each in result.spreads) < 1e-10
    assert max(each.displacement for each in result.spreads) < 1e-10
    assert result.observed is result.first_error is result.predicted is None
    # five points on a circle: distance of a point from the boundary, over its length
    assert result.margin == pytest.approx(math.sin(math.pi / 5))
    assert dict(result.horizons)["float32"] == int(result.margin * 2**23)


def test_what_the_decoder_bears_is_between_half_of_the_separation_and_all_of_it():
    """Noise along every direction is wrong for 1 % of the words where its length is about half."""
    result = found(rotating(), **SMALL)
    assert 0.15 < result.threshold < 0.6


def test_drift_predicts_where_random_words_fail(drifting):
    # every symbol adds 4e-3 / 5 in the mean; M is the distance of neighbours among five points
    separation = 2 * math.sin(math.pi / 5)
    assert drifting.drift == pytest.approx(4e-3 / 5 / separation, rel=0.05)
    assert drifting.exponent == pytest.approx(1, abs=0.2)
    fails = math.pi / 5 / (4e-3 / 5)  # where the mean word has turned by half of 2 pi / 5
    assert drifting.first_error <= drifting.observed <= fails
    assert drifting.observed == pytest.approx(fails, rel=0.2)
    assert 0.3 < drifting.predicted / drifting.observed < 1.5
    assert drifting.drift_to < drifting.first_error
    assert drifting.spreads[-1].wrong >= 0.5 or drifting.length == 2048


def test_displacement_sees_a_common_drift_that_the_spread_within_states_does_not(drifting):
    late = next(each for each in drifting.spreads if each.position == 512)
    assert late.displacement > 5 * late.output_ratio
    assert late.ratio == pytest.approx(late.output_ratio, rel=0.2)


def test_noise_fails_about_where_margin_over_noise_says():
    sizes = (0.05, 0.1, 0.2)
    result = found(rotating(), length=16, noise_length=400, noise_sizes=sizes)
    margin = math.sin(math.pi / 5)
    for row, size in zip(result.noise, sizes, strict=True):
        assert row.predicted == pytest.approx((margin / (3 * size / 2**0.5)) ** 2)
        assert row.first_error is not None
        assert 0.2 < row.first_error / row.predicted < 4


@pytest.mark.parametrize("name", ["lstm", "bilinear", "mamba", "diagonal-complex"])
def test_the_numbers_of_a_state_can_be_replaced(name):
    subject = Subject(make_model(name, "parity"), "parity")
    state = subject.first(3)
    rows = torch.randn(subject.vectors(state).shape)
    assert torch.equal(subject.vectors(subject.with_vectors(state, rows)), rows)
    subject.step(np.zeros(3, int), subject.with_vectors(state, rows))


def test_bfloat16_fails_first_and_float64_last():
    result = found(rotating(), length=4096, noise_length=1, noise_sizes=(0.1,))
    rows = {row.precision: row for row in result.precisions}
    assert rows["float64"].first_wrong is None and rows["float64"].first_difference is None
    assert rows["float32"].first_wrong is None
    assert rows["bfloat16"].first_wrong == rows["bfloat16"].first_difference < 2048
    assert result.fails_first == "bfloat16"
    assert not any(row.reason for row in result.precisions)


def test_where_no_precision_is_earlier_it_is_not_rounding_that_fails(drifting):
    assert drifting.fails_first in ("float64", "bfloat16")
    rows = {row.precision: row for row in drifting.precisions}
    assert rows["float64"].first_wrong == pytest.approx(rows["float32"].first_wrong, abs=5)
    # the powers of 1 turn 4e-3 at every symbol, five times as fast as the mean word
    assert rows["float64"].first_wrong == pytest.approx(math.pi / 5 / 4e-3, abs=3)


def test_a_network_that_saturates_is_measured_without_margin():
    result = found(make_model("lstm", TASK, hidden=4), length=32, noise_length=4)
    assert result.margin is None and result.horizons == ()
    assert all(row.predicted is None for row in result.noise)
    assert len(result.spreads) >= 1 and result.first_error is not None


def test_a_model_without_a_state_is_refused():
    with pytest.raises(SettingsError, match="error control needs a model that reads words symbol"):
        found(make_model("transformer", TASK))


def test_a_spent_budget_ends_the_search_and_says_so():
    result = found(rotating(), seconds=0)
    assert not result.complete
    assert result.length < 16_384


def test_random_words_follow_the_machine_and_draw_what_can_be_drawn():
    for task in (TASK, "flip-flop"):
        machine = needed_machine(load_task(task).source.automaton)
        words = RandomWords(machine, 20, seed=1)
        first, second = words.read(7), words.read(5)
        symbols = np.concatenate([first[0], second[0]], axis=1)
        states = np.concatenate([first[1], second[1]], axis=1)
        assert (machine.automaton.states_after(symbols) == states).all()
        assert machine.live[states].all()
        assert len(np.unique(symbols)) == machine.delta.shape[1]
