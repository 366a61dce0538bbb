"""Where rounding is expected to lead to a wrong answer, against geometry, sums and what is read."""

from __future__ import annotations

import math

import numpy as np
import pytest

import statetrack as st
from statetrack.errors import SettingsError
from statetrack.evidence import (
    RoundingHorizon,
    Subject,
    predict_rounding_horizon,
    state_margin,
    unit_roundoff,
)
from statetrack.rounding import Rounding


def test_the_margin_of_rotations_is_the_distance_from_the_nearest_boundary():
    """Points of a circle of radius 1, in two dimensions: sin(pi / n), over 1 / sqrt(2)."""
    for order in (3, 5, 8):
        model = st.build(f"cyclic:n={order}", "bilinear-rotation").model
        margin, growth = state_margin(Subject(model, f"cyclic:n={order}"))
        assert margin == pytest.approx(math.sqrt(2) * math.sin(math.pi / order), rel=1e-5)
        assert growth == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("growth", [0.9, 0.99, 1.001, 1.2])
def test_errors_are_summed_until_they_reach_the_margin(growth: float):
    horizon = RoundingHorizon(margin=0.3, growth=growth, unit=2.0**-8)
    for reached, unit, factor in (
        (horizon.worst, horizon.unit, growth),
        (horizon.random, horizon.unit**2, growth**2),
    ):
        wanted = 0.3 if unit == horizon.unit else 0.3**2
        sums = unit * np.cumsum(factor ** np.arange(1_500))
        if math.isinf(reached):
            assert sums[-1] < wanted
        else:
            assert abs(np.argmax(sums >= wanted) + 1 - reached) <= 1


def test_the_unit_is_that_of_the_coarsest_type_that_a_step_passes_through():
    given = Rounding(state="float16", gates="bfloat16", keys="float8-e4m3", weights="float8-e5m2")
    assert unit_roundoff(given) == 2.0**-4
    assert unit_roundoff(given, additive=False) == 2.0**-8
    assert unit_roundoff(Rounding(accumulation="float64")) == 2.0**-53


def test_a_saturated_network_is_expected_to_fail_at_no_length():
    built = st.build("s3", "second-order-rnn")
    found = predict_rounding_horizon(Subject(built.model, "s3", rounding="bfloat16"))
    assert found.growth < 0.5 and math.isinf(found.worst) and "no failure" in found.summary


def test_failures_of_rotations_are_of_the_order_that_is_expected():
    built = st.build("cyclic:n=7", "bilinear-rotation")
    for name in ("e8m7", "e8m9"):
        rounding = Rounding(state=name, gates=name, accumulation="float64")
        subject = Subject(built.model, "cyclic:n=7", rounding=rounding)
        expected = predict_rounding_horizon(subject)
        length = int(8 * expected.worst)
        powers = np.arange(1, 7)[:, None].repeat(length, 1)
        errors = subject.first_errors(powers)
        assert expected.worst / 8 < errors[errors > 0].min() < 8 * expected.worst


def test_a_model_under_no_rounding_model_has_no_such_horizon():
    built = st.build("parity", "bilinear")
    with pytest.raises(SettingsError, match="needs a rounding model"):
        predict_rounding_horizon(Subject(built.model, "parity"))


@pytest.mark.parametrize(
    "name", ["deltaproduct", "diagonal-complex", "full-matrix", "gru", "ids4", "mlstm", "rwkv4"]
)
def test_margins_are_finite_for_states_of_every_structure(name: str):
    model = st.make_model(name, "parity")
    margin, growth = state_margin(Subject(model, "parity"))
    assert 0 <= margin < math.inf and 0 <= growth < 2
