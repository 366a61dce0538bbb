"""Accuracies as text: never more than they are, and 1.00 for 1 alone."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statetrack.report import interval, share
from statetrack.report.suites import cell_text
from statetrack.runs import EvaluationRow
from statetrack.scoring import (
    NOISE,
    Accuracies,
    rescale,
    rounded_down,
    rounded_up,
    score_of,
    wilson,
)
from tests.setups import cell_of

DIGITS = (2, 3, 4)


@given(st.floats(-1e6, 1e6), st.sampled_from(DIGITS))
def test_text_is_rounded_down_or_up_to_the_next_decimal(value: float, digits: int) -> None:
    noise = max(NOISE, 1e-12 * abs(value))
    down, up = float(rounded_down(value, digits)), float(rounded_up(value, digits))
    assert down <= value + noise and value - noise <= up
    assert value - down < 10.0**-digits + noise and up - value < 10.0**-digits + noise


@given(st.floats(0, 1), st.sampled_from(DIGITS))
def test_only_1_is_printed_as_1_and_only_0_as_an_upper_0(value: float, digits: int) -> None:
    assert (float(rounded_down(value, digits)) == 1.0) == (value == 1.0)
    assert (float(rounded_up(value, digits)) == 0.0) == (value == 0.0)


@pytest.mark.parametrize("digits", DIGITS)
def test_a_share_of_up_to_2000_words_is_printed_exactly_rounded_down(digits: int) -> None:
    """The text is the floor of k / n; above n = 60 only k at and just below a decimal are tried."""
    unit = 10**digits
    for total in range(1, 2001):
        hits = np.arange(total + 1)
        if total > 60:
            above = hits * unit % total
            hits = hits[(above == 0) | (above == total - 1) | (hits == total - 1)]
        for one in hits.tolist():
            assert share(one / total, digits) == f"{one * unit // total / unit:.{digits}f}"


@given(st.integers(1, 10**8).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_a_share_of_up_to_a_hundred_million_words_is_printed_exactly(pair: tuple[int, int]) -> None:
    hits, total = pair
    for digits in DIGITS:
        unit = 10**digits
        assert Fraction(share(hits / total, digits)) == Fraction(hits * unit // total, unit)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.29, "0.29"),
        (0.28999999999999998, "0.29"),
        (0.996, "0.99"),
        (1 - 1e-8, "0.99"),
        (math.nextafter(1.0, 0.0), "0.99"),
        (1.0, "1.00"),
        (0.0, "0.00"),
        (-0.0, "0.00"),
        (-1e-17, "0.00"),
        (-0.001, "-0.01"),
        (-0.2, "-0.20"),
        (rescale(0.9, 0.5), "0.80"),
        (rescale(0.1, 0.2), "-0.13"),
        (None, "-"),
        (math.nan, "-"),
        (math.inf, "-"),
    ],
)
def test_accuracies_and_scaled_accuracies_are_rounded_down(value: float | None, text: str) -> None:
    assert share(value) == text


def test_an_interval_is_rounded_outwards() -> None:
    assert interval(0.9980129, 1.0) == "0.998-1.000"
    assert interval(0.12345, 0.23412) == "0.123-0.235"
    assert interval(0.0, 1e-5) == "0.000-0.001"
    assert interval(math.nan, math.nan) == "-"


def test_a_cell_without_a_right_replica_is_never_1() -> None:
    low, high = wilson(1994, 2000)
    counted = Accuracies(2000, 0.997, low, high, 0.997, 0.997)
    score = score_of(500, counted, 0.25, 0.25)
    assert score.scaled == pytest.approx(0.996)
    row = EvaluationRow(**vars(score), replica=0, seed=0, lr=0.1, selected=True)
    result = cell_of("a", "b", (row,) * 3)
    assert cell_text(result, "scaled", None) == "0.99 0/3"
    assert cell_text(result, "success", None) == "0.000"
