"""Scores on long words agree with counting by hand, in pieces and as a whole."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict

import numpy as np
import pytest
import torch
from torch import Tensor

from statetrack import evaluation
from statetrack.data import stream_words
from statetrack.evaluation import evaluate
from statetrack.models import MODELS
from statetrack.models._base import RecurrentModel, SequenceModel, State
from statetrack.scoring import Z_95, Score, horizon_of, wilson
from statetrack.settings import Settings
from statetrack.sources import Automaton
from statetrack.spec import load_task

CPU = torch.device("cpu")


def scores_of(
    model: SequenceModel,
    automaton: Automaton,
    lengths: Sequence[int],
    num_words: int = 50,
    seed: int = 0,
) -> list[Score]:
    return list(evaluate(model, automaton, lengths, num_words=num_words, seed=seed, device=CPU))


class Fallible(RecurrentModel):
    """Runs the automaton, and errs on every word's symbols at times divisible by `errs_every`.

    Its state is the automaton's, and the time: [B] each. With `errs_every` 0 it never errs.
    """

    settings_class = Settings
    family, source = "test", "test"

    def __init__(self, automaton: Automaton, errs_every: int) -> None:
        super().__init__(
            Settings(), num_symbols=automaton.num_symbols, num_labels=automaton.num_labels
        )
        self.delta = torch.tensor(automaton.delta)
        self.output = torch.tensor(automaton.output)
        self.start = automaton.start
        self.errs_every = errs_every

    def initial_state(self, num_words: int) -> State:
        return torch.full((num_words,), self.start), torch.zeros(num_words, dtype=torch.int64)

    def step(self, symbols: Tensor, state: State) -> tuple[Tensor, State]:
        states, time = state
        states, time = self.delta[states, symbols], time + 1
        answers = self.output[states]
        if self.errs_every:
            wrong = (time + symbols) % self.errs_every == 0
            answers = torch.where(wrong, (answers + 1) % self.num_labels, answers)
        return torch.nn.functional.one_hot(answers, self.num_labels).float(), (states, time)


class Whole(SequenceModel):
    """The same answers from a model that has no state and reads whole words."""

    settings_class = Settings
    family, source = "test", "test"

    def __init__(self, inner: Fallible) -> None:
        super().__init__(Settings(), num_symbols=inner.num_symbols, num_labels=inner.num_labels)
        self.inner = inner

    def forward(self, symbols: Tensor) -> Tensor:
        return self.inner(symbols)


class Constant(SequenceModel):
    """Always the same answer."""

    settings_class = Settings
    family, source = "test", "test"

    def __init__(self, automaton: Automaton, answer: int) -> None:
        super().__init__(
            Settings(), num_symbols=automaton.num_symbols, num_labels=automaton.num_labels
        )
        self.logits = torch.eye(automaton.num_labels)[answer]

    def forward(self, symbols: Tensor) -> Tensor:
        return self.logits.expand(*symbols.shape, -1)


# --- counting ---


def counted_by_hand(
    model: SequenceModel, automaton: Automaton, length: int, longest: int, num_words: int
) -> tuple[int, float, float, float]:
    """Words that count, and the three accuracies, one word and one symbol at a time."""
    (words,) = stream_words(automaton, num_words, longest, 0, num_words * longest)
    answers = model(torch.tensor(words.symbols.astype(np.int64))).argmax(-1).tolist()
    last_right, all_right, each_right = [], [], []
    for word, answer in zip(words.symbols.tolist(), answers, strict=True):
        state, right = automaton.start, []
        for symbol, guess in zip(word[:length], answer, strict=False):
            state = int(automaton.delta[state, symbol])
            if automaton.scored[state]:
                right.append(guess == automaton.output[state])
        if right:
            last_right.append(right[-1])
            all_right.append(all(right))
            each_right += right
    return (
        len(last_right),
        sum(last_right) / len(last_right),
        sum(each_right) / len(each_right),
        sum(all_right) / len(all_right),
    )


@pytest.mark.parametrize("chunk", [1, 50, 350, 1 << 18])
@pytest.mark.parametrize("task", ["modular-addition:m=3", "flip-flop", "even-pairs"])
def test_accuracies_are_those_counted_by_hand(
    monkeypatch: pytest.MonkeyPatch, task: str, chunk: int
) -> None:
    """50 words in pieces of 1, 1, 7 and all symbols: lengths inside pieces and at their ends."""
    monkeypatch.setattr(evaluation, "CHUNK", chunk)
    automaton = load_task(task).automaton
    model = Fallible(automaton, errs_every=9)
    lengths = [3, 7, 8, 14, 20, 33]
    scores = scores_of(model, automaton, lengths)
    assert [score.length for score in scores] == lengths
    for score in scores:
        num_words, last, each, whole = counted_by_hand(model, automaton, score.length, 33, 50)
        assert score.sequences == num_words
        assert score.accuracy == pytest.approx(last)
        assert score.symbol_accuracy == pytest.approx(each)
        assert score.prefix_accuracy == pytest.approx(whole)
        assert (score.low, score.high) == wilson(round(last * num_words), num_words)
    assert 0 < scores[-1].prefix_accuracy < scores[-1].symbol_accuracy < 1


def test_words_without_a_scored_position_do_not_count() -> None:
    automaton = load_task("flip-flop:ignore=0.1").automaton
    model = Fallible(automaton, errs_every=0)
    first, second, later = scores_of(model, automaton, [2, 3, 50])
    assert first.sequences == 0
    assert all(map(math.isnan, (first.accuracy, first.symbol_accuracy, first.prefix_accuracy)))
    assert 0 < second.sequences < later.sequences <= 50
    assert second.accuracy == later.accuracy == 1.0


@pytest.mark.parametrize("chunk", [40, 1 << 18])
@pytest.mark.parametrize("task", ["modular-addition:m=3", "flip-flop"])
def test_a_model_without_a_state_is_scored_as_one_with_a_state(
    monkeypatch: pytest.MonkeyPatch, task: str, chunk: int
) -> None:
    monkeypatch.setattr(evaluation, "CHUNK", chunk)
    automaton = load_task(task).automaton
    inner = Fallible(automaton, errs_every=9)
    in_pieces = scores_of(inner, automaton, [5, 12, 30])
    as_a_whole = scores_of(Whole(inner), automaton, [5, 12, 30])
    assert [asdict(score) for score in as_a_whole] == [asdict(score) for score in in_pieces]


# --- the ends of the scale ---


@pytest.mark.parametrize("task", ["s3", "flip-flop", "random-fsm:states=6,symbols=3,seed=4"])
def test_a_perfect_model_scores_one_on_every_scale(task: str) -> None:
    automaton = load_task(task).automaton
    for score in scores_of(Fallible(automaton, errs_every=0), automaton, [10, 200]):
        assert (score.accuracy, score.symbol_accuracy, score.prefix_accuracy) == (1.0, 1.0, 1.0)
        assert score.scaled == score.scaled_to_floor == 1.0
        assert score.low < 1.0 == score.high


@pytest.mark.parametrize(
    "task", ["random-fsm:states=6,symbols=3,seed=4", "even-pairs", "flip-flop"]
)
def test_the_best_constant_answer_scores_the_floor(task: str) -> None:
    automaton = load_task(task).automaton
    lengths = [20, 41]
    by_answer = [
        scores_of(Constant(automaton, answer), automaton, lengths, num_words=4000)
        for answer in range(automaton.num_labels)
    ]
    for scores in zip(*by_answer, strict=True):
        best = max(scores, key=lambda score: score.accuracy)
        assert best.low - 0.01 <= best.floor <= best.high + 0.01
        assert abs(best.scaled_to_floor) < 0.2
        assert sum(score.accuracy for score in scores) == pytest.approx(1.0)


def test_chance_is_one_label_in_c_and_scaling_puts_it_at_zero() -> None:
    automaton = load_task("modular-addition:m=5").automaton
    (score,) = scores_of(Fallible(automaton, errs_every=3), automaton, [30])
    assert score.chance == 0.2
    assert score.scaled == pytest.approx((score.accuracy - 0.2) / 0.8)
    assert score.scaled_to_floor == pytest.approx(
        (score.accuracy - score.floor) / (1 - score.floor)
    )


# --- words ---


def test_equal_seeds_give_equal_scores_and_other_seeds_do_not() -> None:
    automaton = load_task("random-fsm:states=6,symbols=3,seed=4").automaton
    model = Fallible(automaton, errs_every=5)
    one, again, other = (scores_of(model, automaton, [40], seed=seed) for seed in (0, 0, 1))
    assert one == again
    assert one != other


def test_a_length_scores_the_same_whether_or_not_longer_pieces_follow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    automaton = load_task("modular-addition:m=3").automaton
    model = Fallible(automaton, errs_every=7)
    whole = scores_of(model, automaton, [8, 31])
    monkeypatch.setattr(evaluation, "CHUNK", 60)
    assert scores_of(model, automaton, [8, 31]) == whole


def test_long_words_are_never_held_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """20,000 symbols are read in pieces of bounded size, and the state goes on between them."""
    monkeypatch.setattr(evaluation, "CHUNK", 4000)
    automaton = load_task("modular-addition:m=5").automaton
    model = MODELS["bilinear"](
        MODELS["bilinear"].settings_class(hidden=5), num_symbols=5, num_labels=5
    )
    shifts = torch.stack([torch.eye(5).roll(shift, 0) for shift in range(5)])
    weights = {"weight": shifts, "first": torch.eye(5)[0], "readout.weight": torch.eye(5)}
    model.load_state_dict(weights)
    sizes = []
    scan = model.scan

    def watched(symbols: Tensor, state: State) -> tuple[Tensor, State]:
        sizes.append(symbols.numel())
        return scan(symbols, state)

    monkeypatch.setattr(model, "scan", watched)
    (score,) = scores_of(model, automaton, [20_000], num_words=4)
    assert score.prefix_accuracy == 1.0
    assert max(sizes) <= 4000 and sum(sizes) == 4 * 20_000


def test_models_are_scored_in_evaluation_without_gradients() -> None:
    automaton = load_task("parity").automaton
    seen = []

    class Watched(Fallible):
        def step(self, symbols: Tensor, state: State) -> tuple[Tensor, State]:
            seen.append((self.training, torch.is_grad_enabled()))
            return super().step(symbols, state)

    scores_of(Watched(automaton, errs_every=0).train(), automaton, [4])
    assert set(seen) == {(False, False)}


# --- intervals and horizons ---


@pytest.mark.parametrize(
    ("hits", "total", "low", "high"),
    [
        (0, 10, 0.0, 0.2775),
        (10, 10, 0.7225, 1.0),
        (5, 10, 0.2366, 0.7634),
        (81, 263, 0.2553, 0.3662),
        (2000, 2000, 0.99808, 1.0),
    ],
)
def test_the_wilson_interval_has_its_published_values(
    hits: int, total: int, low: float, high: float
) -> None:
    """81 of 263 stands in Newcombe (1998), Statistics in Medicine 17, 857-872."""
    assert wilson(hits, total) == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))


def test_the_wilson_interval_solves_its_equation() -> None:
    """Its ends p are where |share - p| is Z standard errors at p."""
    for hits, total in [(1, 7), (30, 41), (499, 1000)]:
        for end in wilson(hits, total):
            error = (end * (1 - end) / total) ** 0.5
            assert abs(hits / total - end) == pytest.approx(Z_95 * error)


@pytest.mark.parametrize(
    ("accuracies", "at_least", "horizon"),
    [
        ([], 1.0, 0),
        ([(10, 0.999)], 1.0, 0),
        ([(10, 1.0), (20, 1.0)], 1.0, 20),
        ([(10, 1.0), (20, 0.9), (30, 1.0)], 1.0, 10),
        ([(10, 1.0), (20, 0.9), (30, 0.8)], 0.9, 20),
        ([(10, 1.0), (20, float("nan"))], 1.0, 10),
        ([(10, float("nan")), (20, 1.0)], 1.0, 20),
    ],
)
def test_the_horizon_is_the_last_length_before_the_first_failure(
    accuracies: list[tuple[int, float]], at_least: float, horizon: int
) -> None:
    assert horizon_of(accuracies, at_least) == horizon
