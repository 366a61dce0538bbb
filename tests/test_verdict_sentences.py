"""Sentences about accuracies, each at the edges at which one would be wrong: nothing is trained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from statetrack.cli import app
from statetrack.cli._terminal import say_warnings
from statetrack.cli._warnings import validation_remark, warn_of_shortcuts
from statetrack.report import closing_sentence
from statetrack.runs import Comparison, EvaluationRow, Measured
from statetrack.runs.comparison import _not_reached, _right_and_not_beyond, _right_beyond
from statetrack.scoring import wilson
from tests import setups


def row_of(right: int, words: int, *, length: int = 500, **more: Any) -> EvaluationRow:
    """So many of the words right, at the last position and at every other."""
    shares = ("accuracy", "symbol_accuracy", "prefix_accuracy")
    given: dict[str, Any] = {"floor": 1 / 6, "chance": 1 / 6, "first_error": None}
    given |= {} if words else dict.fromkeys(shares, float("nan"))
    return setups.row_of(length, right / max(words, 1), sequences=words, **(given | more))


def warned(capsys: pytest.CaptureFixture[str], *rows: EvaluationRow) -> str:
    warn_of_shortcuts(rows)
    say_warnings()
    return capsys.readouterr().err


def with_shortcut(right: int, words: int, found: float, name: str = "last-2") -> EvaluationRow:
    return row_of(right, words, shortcut=name, shortcut_accuracy=found)


def test_a_shortcut_below_the_model_is_never_said_to_be_as_good(capsys):
    said = warned(capsys, with_shortcut(100, 100, 0.98))
    assert (
        "the model is right on 1.00 (95 % interval 0.963-1.000), and a shortcut that sees the last "
        "2 symbols on 0.98: 100 words do not tell them apart (more: --samples)"
    ) in said
    assert "no more than" not in said and "no evidence" not in said
    assert "1 word does not tell them apart" in warned(capsys, with_shortcut(1, 1, 0.5))


def test_a_constant_is_told_of_by_the_floor_alone(capsys):
    assert warned(capsys, with_shortcut(62, 100, 0.59, "constant")) == ""  # the floor is 0.16
    near = with_shortcut(20, 100, 0.23, "constant")
    assert "not above the best constant answer (0.16)" in warned(capsys, near)


@pytest.mark.parametrize(
    ("right", "found", "said"),
    [
        (2000, 1.0, "right on 1.00, the model on 1.00: this is no evidence of state tracking"),
        (2000, 0.995, ""),  # the interval of 2000 of 2000 ends at 0.998
        (1990, 0.995, "right on 0.99, the model on 0.99: this is no evidence of state tracking"),
        (1600, 0.8, "the model is right on 0.80, no more than a shortcut"),
        (1600, 0.82, "is right on 0.80, and a shortcut that sees the last 2 symbols on more"),
        (1600, 0.81, "2,000 words do not tell them apart"),
        (1600, 0.79, "2,000 words do not tell them apart"),
        (1600, 0.7, ""),
    ],
)
def test_a_shortcut_is_named_by_how_it_stands_to_the_model(right, found, said, capsys):
    told = warned(capsys, with_shortcut(right, 2000, found))
    assert said in told and bool(said) == bool(told)


def remark(accuracy: float | None, name: str, found: float) -> str:
    return validation_remark(
        accuracy, (name, found), lengths="2-10", task="parity", run="runs/a", test_length=500
    )


def test_a_table_of_counts_on_training_lengths_is_a_note_with_what_to_run_next():
    said = remark(1.0, "counts", 1.0)
    assert said.startswith("note: accuracy on validation words, which have the training lengths")
    assert "a table of how often each symbol came" in said and "no answer for longer words" in said
    assert said.endswith("`statetrack eval runs/a --length 500` tells the two apart")
    assert "right on 1.00 of their labels, the model on 0.99" in remark(0.999, "counts", 1.0)


def test_other_shortcuts_on_training_lengths_are_a_warning():
    said = remark(1.0, "last-6", 1.0)
    assert said.startswith("warning: ") and "no evidence of state tracking" in said
    assert "`statetrack audit parity`" in said


def test_a_model_that_a_shortcut_beats_in_validation_has_not_learned():
    assert "is right on 0.70 of the labels" in remark(0.7, "counts", 0.9)
    assert "on more (0.90): it has not learned the task" in remark(0.7, "counts", 0.9)
    assert "on no fewer (0.70)" in remark(0.7, "constant", 0.7)
    assert "on no fewer (0.70)" in remark(0.701, "constant", 0.704)


@pytest.mark.parametrize(
    ("task", "model", "said"),
    [
        ("parity", "diagonal-positive", "`statetrack predict parity --models diagonal-positive`"),
        ("anbn", "lstm", "not learned the task; train it for more --steps"),  # it has no automaton
    ],
)
def test_a_model_that_has_not_learned_may_be_one_that_cannot(
    task, model, said, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    assert app.run(["train", "--task", task, "--model", model, "--steps", "1"]) == 0
    told = " ".join(capsys.readouterr().err.split())
    assert said in told and "it has not learned the task" in told


def test_a_model_above_every_shortcut_is_told_nothing():
    assert remark(1.0, "counts", 0.99) == "" and remark(None, "counts", 1.0) == ""
    given = {"lengths": "2-10", "task": "parity", "run": "a", "test_length": 500}
    assert validation_remark(1.0, None, **given) == ""


def measured_of(right: int, words: int = 2000, *, horizon: int = 0, **more: Any) -> Measured:
    low, high = wilson(right, words)
    tracks = right == words and not more
    given: dict[str, Any] = {
        "replica": 0,
        "verdict": "tracks" if tracks else "partly" if low > 1 / 6 or horizon > 10 else "no",
        "horizon": horizon,
        "length": 500,
        "sequences": words,
        "accuracy": right / words,
        "low": low,
        "high": high,
        "floor": 1 / 6,
        "nonfinite_from": None,
    }
    return Measured(**(given | more))


def test_an_accuracy_of_0_99_is_never_called_not_right_at_any_length():
    assert _right_and_not_beyond(measured_of(1990)) == (
        "at no length tested is every answer right (at length 500 the last answer is right on 0.99 "
        "of 2,000 words, the floor is 0.16)"
    )
    assert "right on 0.99 of 2,000 words" in _right_and_not_beyond(measured_of(1999, horizon=100))
    assert _right_and_not_beyond(measured_of(1999, horizon=100)).startswith(
        "measured right up to 100 and not beyond (at length 500"
    )


def test_a_sentence_says_when_the_accuracy_is_not_above_the_floor():
    assert "which is not above the floor, 0.16" in _right_and_not_beyond(measured_of(333))
    assert "right on 0.00 of 1 word, which" in _right_and_not_beyond(measured_of(0, 1))


def test_logits_that_are_not_finite_are_named_where_the_accuracy_is_1():
    said = _right_and_not_beyond(measured_of(2000, nonfinite_from=311))
    assert "right on 1.00" in said and "NaN or infinite from position 311" in said


def test_a_model_that_errs_on_training_lengths_only_is_not_right_up_to_all():
    assert _right_beyond(measured_of(2000, horizon=500)) == "measured right up to 500"
    assert "every length beyond those of training" in _right_beyond(measured_of(2000))


def test_weights_that_were_not_found_are_told_with_what_was_measured():
    bare = Comparison(Path("runs/a"), "agree", num_replicas=1, num_evaluated=1)
    reason, advice = _not_reached(bare, measured_of(1990), "squared-error")
    assert reason.startswith("predicted yes, at no length tested is every answer right (at length")
    assert "did not find" not in reason and "more --steps" in advice
    reason, _ = _not_reached(bare, measured_of(300), "squared-error")
    assert reason.endswith("; the weights exist, and training did not find them")


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([row_of(1, 1)], "every answer correct up to length 500 of those tested"),
        ([row_of(1999, 2000)], "at length 500, 0.99 of the words are right at every position"),
        (
            [row_of(2000, 2000, prefix_accuracy=0.0)],
            "at length 500, no word is right at every position",
        ),
        ([row_of(0, 0)], "no label is asked for at any length tested"),
        (
            [row_of(9, 10, length=5), row_of(10, 10)],
            "at length 5, 0.90 of the words are right at every position",
        ),
    ],
)
def test_the_closing_sentence_of_an_evaluation_is_exact(rows, said):
    assert closing_sentence(rows) == said
