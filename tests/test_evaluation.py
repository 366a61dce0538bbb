"""Scores on long words agree with counting by hand, in pieces and as a whole."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from itertools import chain

import numpy as np
import pytest
import torch
from torch import Tensor

from statetrack import evaluation
from statetrack.data import stream_words
from statetrack.evaluation import scored
from statetrack.models import MODELS, RecurrentModel, SequenceModel, State
from statetrack.report import closing_sentence
from statetrack.runs import EvaluationRow
from statetrack.scoring import Z_95, Score, horizon, horizon_of, wilson
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
    return list(scored(model, automaton, lengths, num_words=num_words, seed=seed, device=CPU))


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


# --- logits that are not finite ---


class Overflowing(Fallible):
    """Runs the automaton; from time `broken` on, one logit after a symbol 1 is `value`."""

    def __init__(self, automaton: Automaton, broken: int, value: float) -> None:
        super().__init__(automaton, errs_every=0)
        self.broken, self.value = broken, value

    def step(self, symbols: Tensor, state: State) -> tuple[Tensor, State]:
        logits, (states, time) = super().step(symbols, state)
        wrong = (time >= self.broken) & (symbols == 1)
        logits[wrong, -1] = self.value
        return logits, (states, time)


class Broken(RecurrentModel):
    """Logits are all `value` from time `broken` on."""

    settings_class = Settings
    family, source = "test", "test"

    def __init__(self, num_labels: int, broken: int, value: float) -> None:
        super().__init__(Settings(), num_symbols=9, num_labels=num_labels)
        self.broken, self.value = broken, value

    def initial_state(self, num_words: int) -> State:
        return torch.zeros(num_words)

    def step(self, symbols: Tensor, state: State) -> tuple[Tensor, State]:
        logits = torch.zeros(len(symbols), self.num_labels)
        logits[state + 1 >= self.broken] = self.value
        return logits, state + 1


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf], ids=str)
@pytest.mark.parametrize("chunk", [1, 50, 350, 1 << 18])
@pytest.mark.parametrize("kind", ["in pieces", "whole words", "whole words at once"])
def test_an_answer_with_a_logit_that_is_not_finite_is_wrong_and_its_first_position_is_told(
    monkeypatch: pytest.MonkeyPatch, kind: str, chunk: int, value: float
) -> None:
    """The position is the same wherever the pieces end, in words that are prefixes or not."""
    monkeypatch.setattr(evaluation, "CHUNK", chunk)
    task = "boolean-3" if kind == "whole words" else "modular-addition:m=3"
    source = load_task(task).source
    model: SequenceModel
    if kind == "whole words":
        assert not source.prefixes_are_words
        model = Broken(source.num_labels, broken=9, value=value)
    else:
        model = Overflowing(load_task(task).automaton, broken=9, value=value)
        model = Whole(model) if kind == "whole words at once" else model
    lengths = [7, 9, 10, 21] if kind != "whole words" else [7, 9, 11, 21]
    scores = list(scored(model, source, lengths, num_words=50, device=CPU))
    assert [score.nonfinite_from for score in scores] == [None, 9, 9, 9]
    if kind != "whole words":
        (words,) = stream_words(source, 50, 21, 0, 50 * 21)
        right = words.symbols != 1
        right[:, :8] = True
        assert [score.accuracy for score in scores] == [right[:, n - 1].mean() for n in lengths]
        each = [right[:, :n].mean() for n in lengths]
        assert [score.symbol_accuracy for score in scores] == pytest.approx(each)
        assert scores[0].accuracy == 1.0 > scores[1].accuracy
    else:
        assert all(score.accuracy == 0.0 for score in scores[1:])


def test_the_largest_finite_logits_are_finite() -> None:
    automaton = load_task("modular-addition:m=3").automaton
    largest = torch.finfo(torch.float32).max
    (score,) = scores_of(Overflowing(automaton, broken=1, value=-largest), automaton, [5])
    assert score.nonfinite_from is None


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


@pytest.mark.parametrize("task", ["s3", "modular-arithmetic-with-brackets", "flip-flop"])
def test_no_more_words_are_read_at_once_than_have_states_that_fit(
    task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Words that are read one group after the other have the scores of all read together."""
    source = load_task(task).source
    torch.manual_seed(0)
    kind = MODELS["gru"]
    model = kind(
        kind.settings_class(hidden=8), num_symbols=source.num_symbols, num_labels=source.num_labels
    )
    sizes: list[int] = []
    initial_state = model.initial_state

    def counted(num_words: int) -> State:
        sizes.append(num_words)
        return initial_state(num_words)

    monkeypatch.setattr(model, "initial_state", counted)
    given = {"num_words": 50, "seed": 3, "device": CPU}
    together = list(scored(model, source, [3, 40, 300], **given))
    assert max(sizes) == 50
    sizes.clear()
    monkeypatch.setattr(evaluation, "STATE_NUMBERS", 8 * 7)
    assert list(scored(model, source, [3, 40, 300], **given)) == together
    assert max(sizes) == 7


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


def test_the_wilson_interval_contains_the_share_and_lies_between_0_and_1() -> None:
    small = ((hits, total) for total in range(1, 301) for hits in range(total + 1))
    large = (
        (hits, total)
        for total in (2000, 12_345, 10**6, 10**8, 2**40 + 1)
        for hits in (0, 1, 2, total // 3, total // 2, total - 2, total - 1, total)
    )
    for hits, total in chain(small, large):
        low, high = wilson(hits, total)
        assert 0.0 <= low <= hits / total <= high <= 1.0, (hits, total)
        assert (low == 0.0) == (hits == 0), (hits, total)
        assert (high == 1.0) == (hits == total), (hits, total)


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


class ErrsOnceOn(Fallible):
    """Runs the automaton, and errs on some of the words at one position only."""

    def __init__(self, automaton: Automaton, position: int, every: int) -> None:
        super().__init__(automaton, 0)
        self.position = position
        self.every = every

    def step(self, symbols: Tensor, state: State) -> tuple[Tensor, State]:
        logits, (states, time) = super().step(symbols, state)
        errs = (time == self.position) & (torch.arange(len(symbols)) % self.every == 0)
        return torch.where(errs[:, None], -logits, logits), (states, time)


def test_a_model_that_errs_before_the_end_of_a_word_has_no_horizon_beyond() -> None:
    automaton = load_task("modular-addition:m=3").automaton
    scores = scores_of(ErrsOnceOn(automaton, position=12, every=2), automaton, [5, 20, 40])
    assert [score.accuracy for score in scores] == [1.0, 1.0, 1.0]
    assert [score.prefix_accuracy for score in scores] == [1.0, 0.5, 0.5]
    assert [score.first_error for score in scores] == [None, 12, 12]
    assert [score.all_right for score in scores] == [True, False, False]
    assert horizon(scores) == 5


@pytest.mark.parametrize("chunk", [1, 50, 350, 1 << 18])
def test_the_first_error_is_the_earliest_wrong_position_wherever_pieces_end(
    monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    monkeypatch.setattr(evaluation, "CHUNK", chunk)
    automaton = load_task("s3").automaton
    for position in (1, 7, 30):
        scores = scores_of(ErrsOnceOn(automaton, position, every=5), automaton, [6, 7, 30])
        expected = [position if position <= length else None for length in (6, 7, 30)]
        assert [score.first_error for score in scores] == expected


def test_positions_that_are_not_scored_hold_no_first_error() -> None:
    automaton = load_task("flip-flop").automaton
    scores = scores_of(Fallible(automaton, errs_every=1), automaton, [1, 40])
    assert scores[0].first_error is None
    words = next(iter(stream_words(automaton, 50, 40, 0)))
    assert scores[1].first_error == words.scored.any(0).argmax() + 1


def rows_of(scores: Sequence[Score]) -> list[EvaluationRow]:
    about = {"replica": 0, "seed": 0, "lr": 0.1, "selected": True}
    return [EvaluationRow(**asdict(score), **about) for score in scores]


def test_the_closing_sentence_counts_every_position() -> None:
    automaton = load_task("modular-addition:m=3").automaton
    perfect = scores_of(Fallible(automaton, errs_every=0), automaton, [5, 40])
    assert closing_sentence(rows_of(perfect)) == (
        "every answer correct up to length 40 of those tested"
    )
    partly = rows_of(scores_of(ErrsOnceOn(automaton, 12, every=5), automaton, [5, 20, 40]))
    assert closing_sentence(partly) == (
        "every answer correct up to length 5 of those tested; at length 40, 0.80 of the words are "
        "right at every position, and the first error is at position 12"
    )
    assert closing_sentence(partly[1:]).startswith("at length 40, 0.80 of the words are right")
    never = rows_of(scores_of(ErrsOnceOn(automaton, 1, every=1), automaton, [5]))
    assert closing_sentence(never) == (
        "at length 5, no word is right at every position, and the first error is at position 1"
    )


def test_the_closing_sentence_of_rows_without_labels_says_so() -> None:
    automaton = load_task("flip-flop").automaton
    rows = rows_of(scores_of(Fallible(automaton, errs_every=0), automaton, [1]))
    assert closing_sentence(rows) == "no label is asked for at any length tested"
