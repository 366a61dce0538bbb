"""The law of precision: loops that are `Rounded` to the bit, searches for words, the record."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import statetrack as st
from statetrack.models import Rounded as RoundedModel
from statetrack.rounding import Rounding
from statetrack.spec import load_task
from tests.precision import laws, points, words
from tests.precision.figure import PICTURE, mark
from tests.precision.loops import Looped
from tests.precision.points import Point, Weights, all_points, changed, kept_rows
from tests.precision.words import Rounded

RECORD = laws.RECORD
PAGE = Path(__file__).parents[1] / "docs" / "precision.md"

ROUNDINGS = (
    {"state": "e8m5", "accumulation": "float64"},
    {"state": "e4m20", "accumulation": "e8m22"},
    {"gates": "e8m7", "accumulation": "e5m6", "state": "e3m9"},
    {"weights": "e8m4", "state": "bfloat16", "accumulation": "e8m24"},
)


@cache
def built(task: str, model: str, **options: Any) -> Any:
    return st.build(task, model, dtype="float64", **options).model


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize(
    ("task", "model", "options"),
    [
        ("cyclic:n=5", "bilinear-rotation", {}),
        ("s4", "bilinear", {}),
        ("s3", "bilinear-block", {}),
        ("s3", "deltaproduct", {}),
        ("parity", "gated-deltanet", {"beta": "double"}),
    ],
)
def test_loops_are_a_rounded_model_to_the_bit(task, model, options, rounding):
    own = built(task, model, **options)
    if "delta" not in model and rounding.get("gates") is None:
        rounding = {**rounding, "renormalise": 1}
    how = Rounding(**rounding)
    read = torch.randint(own.num_symbols, (2, 12), generator=torch.Generator().manual_seed(0))
    looped, rounded_model = Looped(own, how), RoundedModel(own, how)
    states = [each.initial_state(2) for each in (looped, rounded_model)]
    for piece in read.split(5, 1):
        logits, states[0] = looped.scan(piece, states[0])
        expected, states[1] = rounded_model.scan(piece, states[1])
        # logits of the same states may be summed in another order
        assert torch.allclose(logits, expected, rtol=1e-12, atol=1e-14)
        numbers = zip(*map(words.tensors, states), strict=True)
        assert all(torch.equal(one, other) for one, other in numbers)


def rounded(task: str, bits: int, change: str = "none") -> Rounded:
    model = changed(built(task, "bilinear-block"), change)
    rounding = Rounding(state=f"e8m{bits}", accumulation="float64")
    return Rounded(model, load_task(task).automaton, rounding)


def answers(subject: Rounded, word: Any) -> Any:
    """Whether the answers at all positions of a word are right, by `Rounded` itself."""
    logits = RoundedModel(subject.plain, subject.looped.rounding)(torch.as_tensor(word)[None])
    labels, _ = subject.automaton.read(np.asarray(word)[None])
    return (logits.argmax(-1).numpy() == labels)[0]


@pytest.mark.slow  # loops are compiled
def test_words_that_fail_fail_at_their_last_symbol_and_not_before():
    subject = rounded("s3", 3)
    greedy, symbols = words.of_greedy_words(subject, width=16, cap=500, keep=True)
    found = words.of_all_words(subject, most_states=5_000)
    for length, word in ((greedy.length, symbols), (found.horizon, found.word)):
        assert length == len(word)
        right = answers(subject, word)
        assert right[:-1].all() and not right[-1]
    assert found.horizon <= greedy.length <= 2 * found.horizon


@pytest.mark.slow  # loops are compiled
def test_random_and_periodic_words_are_read_as_by_a_rounded_model():
    subject = rounded("s4", 3)
    horizons, _ = words.of_random_words(subject, num_words=3, cap=400, seed=20)
    drawn = np.random.default_rng(20).integers(24, size=(3, words.PIECE))[:, :400]
    for word, horizon in zip(drawn, horizons, strict=True):
        wrong = np.flatnonzero(~answers(subject, word))
        assert horizon == (wrong[0] + 1 if len(wrong) else None)


@pytest.mark.slow  # loops are compiled
def test_where_all_states_are_found_no_random_word_fails():
    subject = rounded("cyclic:n=5", 4)
    found = words.of_all_words(subject, most_states=1_000)
    assert found.closed and found.states < 100
    assert words.of_random_words(subject, num_words=4, cap=20_000, seed=1)[0] == [None] * 4


def test_a_state_in_other_coordinates_is_the_same_but_for_rounding():
    plain, turned = built("s4", "bilinear-block"), changed(built("s4", "bilinear-block"), "turned")
    read = torch.randint(24, (2, 30), generator=torch.Generator().manual_seed(1))
    assert torch.allclose(plain(read), turned(read), atol=1e-12)
    assert not torch.allclose(plain.weight, turned.weight, atol=0.1)


def recorded() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(RECORD.read_text(encoding="utf-8"))["points"]
    return rows


def test_the_record_has_points_that_exist_each_once():
    rows, names = recorded(), {point.name for point in all_points()}
    assert len(rows) >= 300
    assert len({row["name"] for row in rows}) == len(rows)
    assert {row["name"] for row in rows} <= names
    for row in rows:
        assert len(row["random"]) == 8 and row.get("sine", 0.5) < 1
        assert all(each is None or 0 < each <= row["random_read"] for each in row["random"])
        if row.get("all", {}).get("closed"):
            assert laws.worst(row) is None, row["name"]


@pytest.mark.slow  # loops are compiled
@pytest.mark.parametrize(("task", "bits", "change"), [("s3", 3, "none"), ("s4", 4, "turned")])
def test_points_of_the_record_are_found_again(task: str, bits: int, change: Any):
    point = Point(Weights("built", task, "bilinear-block"), bits, "state", change)
    row, subject = kept_rows(RECORD)[point.name], rounded(task, bits, change)
    horizons, _ = words.of_random_words(subject, num_words=8, cap=2_000, seed=20)
    assert horizons == [each if each and each <= 2_000 else None for each in row["random"]]
    greedy, _ = words.of_greedy_words(subject, width=16, cap=1_000)
    assert [greedy.length, greedy.word] == row["greedy"]


def test_a_slope_is_that_of_its_law():
    exact = laws.slope([(bits, 3.0 * 4.0**bits) for bits in range(3, 9)])
    assert exact is not None and abs(exact.value - 2) < 1e-9 and exact.half < 1e-6
    assert laws.slope([(bits, 86.0) for bits in range(3, 9)]) == (0.0, 0.0, 6)


def test_numbers_of_words_alone_are_part_of_a_state_too():
    state = torch.arange(12.0).reshape(3, 2, 2), torch.tensor([5.0, 6.0, 7.0])
    flat = words._Flat((torch.zeros(61, 2, 2), torch.zeros(61)), 61)
    rows = flat.rows(state)
    assert rows.shape == (3, 5) and rows[1].tolist() == [4, 5, 6, 7, 6]
    back = flat.state(rows)
    assert all(torch.equal(one, other) for one, other in zip(back, state, strict=True))


def test_the_page_has_the_tables_and_the_picture_of_the_record():
    page = PAGE.read_text(encoding="utf-8")
    for text in laws.tables(recorded()).values():
        assert text in page, "write it again: python -m tests.precision.laws"
    assert mark(RECORD.read_bytes()) in PICTURE.read_text(encoding="utf-8")
    assert f"](figures/{PICTURE.name})" in page
    assert re.search(rf"\b{len(recorded())}\b", page)


BUILT = {
    point.weights.model: point
    for point in sorted(all_points(), key=lambda point: point.weights.task, reverse=True)
    if point.weights.how == "built" and not point.weights.model.startswith("bilinear")
}
"""A point of every model with exact weights, of the first of its tasks; others need slow loops."""


@pytest.mark.parametrize("model", sorted(BUILT))
def test_a_point_of_every_model_is_measured(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(points, "caps_of", lambda *_: points.Caps(20, 40, 20, 4, states=30))
    point = BUILT[model]
    row = points.measure(point, *point.weights.make(None))
    assert len(row["random"]) == 8
    assert all(each is None or 0 < each <= 20 for each in row["random"])
    assert row["all"]["states"] > 1 and row["all"]["horizon"] != 0
