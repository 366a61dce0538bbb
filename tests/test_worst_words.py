"""The worst word: what is tried, when a linear model is predicted to fail, and what is found."""

import itertools
import json
import math
from dataclasses import asdict

import numpy as np
import pytest
import torch
from torch import nn

from statetrack.evidence import (
    Failure,
    SearchBudget,
    Subject,
    WorstCase,
    find_worst_case,
    worst_words,
)
from statetrack.evidence.long_words import PIECE, Reading, first_error, margins_of, questions_of
from statetrack.evidence.power_words import (
    LinearForm,
    predict_failures,
    predict_failures_on_leaving,
)
from statetrack.evidence.word_tree import search_short_words
from statetrack.evidence.words import (
    Periodic,
    drawable_words,
    explicit,
    follow,
    idle_runs,
    is_primitive,
    periodic_words,
    repeating_part,
    sampled_words,
    shortest_words,
    words_in_groups,
)
from statetrack.evidence.worst_words import Caps, shorten
from statetrack.models import make_model
from statetrack.sources import Automaton
from statetrack.spec import load_task
from tests.computing import Computes, CountsToo, right_for, with_wrong_transition

AMPLE = 600.0
FEW = Caps(
    stages=((30, 600), (6, 2000), (2, 20_000)),
    predicted=100,
    replayed=4,
    beams=((32, 20), (8, 60)),
    mixed=8,
    mixed_length=500,
)
GROWTH = 1.0005


def automaton_of(task):
    automaton = load_task(task).source.automaton
    assert automaton is not None
    return automaton


def worst(model, task, **asked):
    return find_worst_case(Subject(model, task), budget=SearchBudget(AMPLE), caps=FEW, **asked)


def growing(symbol="2", begin=0.5, growth=GROWTH):
    """Modular addition, and a coordinate that grows with one symbol and is taken for label 3."""
    automaton = automaton_of("modular-addition:m=5")
    model = make_model("bilinear", "modular-addition:m=5", hidden=6)
    with torch.no_grad():
        model.weight.zero_()
        for number in range(5):
            for state in range(5):
                model.weight[number, automaton.delta[state, number], state] = 1.0
            model.weight[number, 5, 5] = growth if number == int(symbol) else 0.9
        model.first.zero_()
        model.first[0], model.first[5] = 1.0, begin
        model.readout.weight.zero_()
        model.readout.weight[:, :5] = torch.eye(5)
        model.readout.weight[3, 5] = 1.0
    return model


def fails_at(begin=0.5, growth=GROWTH):
    """The position at which `growing` first takes another label for 3 in 2 2 2 ..."""
    for position in itertools.count(1):
        if begin * growth**position > 1 and 2 * position % 5 != 3:
            return position
    raise AssertionError


class Leaks(nn.Module):
    """The bit that was written last as a number that shrinks with every symbol.

    Below a threshold it is taken for a 1.
    """

    def __init__(self, rate=0.99, threshold=1e-3):
        super().__init__()
        self.rate = nn.Parameter(torch.tensor(rate))
        self.threshold = threshold

    def initial_state(self, num_words):
        return torch.ones(num_words, dtype=self.rate.dtype), torch.zeros(
            num_words, dtype=self.rate.dtype
        )

    def step(self, symbols, state):
        kept, writing = state
        written = torch.where(symbols == 4, 1.0, -1.0).to(kept.dtype)
        kept = torch.where((writing == 1) & (symbols >= 3), written, kept * self.rate)
        logits = torch.stack([-kept - self.threshold, kept + self.threshold], -1)
        return logits, (kept, (symbols == 0).to(kept.dtype))

    def forward(self, symbols):
        state, logits = self.initial_state(len(symbols)), []
        for symbol in symbols.unbind(1):
            output, state = self.step(symbol, state)
            logits.append(output)
        return torch.stack(logits, 1)


class Fades(nn.Module):
    """The parity as a number whose sign is the answer: it fades with every 0, and a 1 renews it.

    At less than 1 % of its size an odd parity is taken for an even one.
    """

    def __init__(self, rate):
        super().__init__()
        self.rate = nn.Parameter(torch.tensor(rate))

    def initial_state(self, num_words):
        return torch.ones(num_words, dtype=self.rate.dtype)

    def step(self, symbols, state):
        state = torch.where(symbols == 1, -torch.sign(state), state * self.rate)
        return torch.stack([state + 0.01, -state - 0.01], -1), state


def test_a_periodic_word_has_the_same_symbols_in_every_form():
    word = Periodic((2, 0, 1), (3, 2, 0, 1))
    whole = word.symbols(0, 40)
    assert whole[:9].tolist() == [2, 0, 1, 3, 2, 0, 1, 3, 2]
    for other in (word.with_first_rotation(), word.with_shortest_prefix()):
        assert other.symbols(0, 40).tolist() == whole.tolist()
        assert other.symbols(5, 17).tolist() == whole[5:17].tolist()
    assert word.with_shortest_prefix() == Periodic((), (2, 0, 1, 3))
    assert word.with_first_rotation().period == (0, 1, 3, 2)


def test_all_primitive_words_of_short_lengths_are_repeated():
    words = periodic_words(automaton_of("parity"), 200, np.random.default_rng(0))
    assert len(set(words)) == len(words) <= 200
    bare = {word.period for word in words if not word.prefix}
    for length in range(1, 6):
        for word in itertools.product(range(2), repeat=length):
            assert (word in bare) == is_primitive(word), word


def test_only_words_that_the_task_draws_are_tried():
    automaton = automaton_of("flip-flop")
    draw = np.random.default_rng(0)
    tried = [
        *periodic_words(automaton, 100, draw),
        *idle_runs(automaton, 100, draw),
        *words_in_groups(automaton, 10, 50, draw),
        *sampled_words(automaton, 10, 50, 0),
    ]
    assert len(tried) > 80
    repeating = [word for word in tried if len(word.prefix) < 20]
    assert drawable_words(automaton, repeating) == repeating
    for word in tried:
        state = automaton.start
        for symbol in word.symbols(0, 50).tolist():
            assert automaton.drawable[state, symbol], word
            state = automaton.delta[state, symbol]


def test_runs_leave_the_state_after_their_prefix_as_it_is():
    automaton = automaton_of("flip-flop")
    runs = idle_runs(automaton, 1000, np.random.default_rng(0))
    periods = {word.with_first_rotation().period for word in runs}
    assert {(2, 3), (2, 4)} <= periods  # an ignored bit
    for run in runs:
        states = automaton.states_after(run.symbols(0, 60)).tolist()
        period = len(run.period)
        assert states[20 : 60 - period] == states[20 + period : 60]


def test_words_in_a_group_never_merge_two_of_its_states():
    automaton = automaton_of("permutation-reset")
    words = words_in_groups(automaton, 20, 100, np.random.default_rng(0))
    resets = {
        symbol
        for symbol in range(automaton.num_symbols)
        if len(set(automaton.delta[:, symbol].tolist())) == 1
    }
    assert resets and len(words) == 20
    for word in words:
        assert not resets & set(word.symbols(0, 100).tolist())


def test_questions_are_the_shortest_words_that_are_asked_for_a_label():
    automaton = automaton_of("flip-flop")
    questions = questions_of(automaton)
    for state, prefix in shortest_words(automaton).items():
        assert follow(automaton, prefix)[0] == state
        question = questions[state]
        path = automaton.states_after(np.array(question), state).tolist()
        assert automaton.scored[path[-1]]
        assert not automaton.scored[np.array(path[:-1], int)].any()
        assert len(question) <= 3


def test_a_margin_is_positive_exactly_where_the_largest_logit_is_the_labels():
    logits = torch.randint(-2, 3, (40, 30, 3)).float()
    labels = np.random.default_rng(0).integers(3, size=(40, 30))
    margins = margins_of(logits, labels)
    assert ((margins > 0) == (logits.argmax(-1).numpy() == labels)).all()
    logits[0, 0, 1] = math.nan
    assert np.isnan(margins_of(logits, labels)[0, 0])
    assert np.abs(margins).max() <= 1


def test_a_margin_of_two_labels_says_how_certain_the_answer_is():
    logits = torch.tensor([[[0.0, 1.0], [0.0, 3.0], [0.0, -0.5]]])
    labels = np.ones((1, 3), np.int64)
    assert margins_of(logits, labels).tolist() == [[1.0, 3.0, -0.5]]
    scaled = [margins_of(size * logits, labels, of_any_scale=True) for size in (1.0, 8.0)]
    assert (scaled[0] == scaled[1]).all() and (np.abs(scaled[0]) <= 1).all()


@pytest.mark.parametrize("rate, fails", [(0.9, 45), (0.98, 229)])
def test_of_two_labels_the_words_that_become_less_certain_are_grown(rate, fails):
    """A bit that fades: one word in 2^`fails` repeats nothing but what keeps it fading."""
    subject = Subject(Fades(rate), "parity")
    found = search_short_words(subject, longest=400, beam=16, budget=SearchBudget(AMPLE))
    assert found.failing is not None and len(found.failing) == fails
    assert subject.first_errors(np.array([found.failing]))[0] == fails


@pytest.mark.parametrize(
    "settings",
    [
        {"hidden": 8},
        {"hidden": 8, "additive": "constant"},
        {"hidden": 8, "additive": "input", "readout_bias": True},
    ],
)
def test_the_linear_form_gives_the_logits_of_the_model(settings):
    model = make_model("bilinear", "s3", **settings).double().eval()
    form = LinearForm.of(Subject(model, "s3"))
    assert form is not None
    word = (1, 4, 0, 5, 2, 2)
    logits = form.readout @ form.after(word)
    expected = model(torch.tensor([word]))[0, -1].detach().numpy()
    cosine = logits @ expected / np.linalg.norm(logits) / np.linalg.norm(expected)
    assert cosine == pytest.approx(1.0)
    assert LinearForm.of(Subject(make_model("lstm", "s3"), "s3")) is None


@pytest.mark.parametrize("settings", [{}, {"additive": "input", "readout_bias": True}])
def test_predicted_failures_are_those_of_reading_the_words(settings):
    task, longest = "modular-addition:m=5", 1000
    automaton = automaton_of(task)
    model = make_model("bilinear", task, hidden=7, **settings)
    draw = torch.Generator().manual_seed(1)
    with torch.no_grad():
        model.weight.normal_(0, 2e-3, generator=draw)
        for number in range(5):
            for state in range(5):
                model.weight[number, automaton.delta[state, number], state] += 1.0
            model.weight[number, 5, 5] += 0.6
        model.first.copy_(torch.tensor([1.0, 0, 0, 0, 0, 0.3, 0.2]))
        model.readout.weight.normal_(0, 0.01, generator=draw)
        model.readout.weight[:, :5] += torch.eye(5)
        if settings:
            model.readout.bias.normal_(0, 1e-3, generator=draw)
            model.additive.normal_(0, 1e-5, generator=draw)
    exact = Subject(model, task).in_precision(torch.float64)
    form = LinearForm.of(exact)
    failures = 0
    for word in periodic_words(automaton, 40, np.random.default_rng(0)):
        (predicted,) = predict_failures(form, automaton, [word], longest)
        assert predicted.known
        observed = int(exact.first_errors(word.symbols(0, longest)[None])[0])
        failures += observed > 60
        assert (predicted.position or 0) == observed, word
    assert failures >= 5


def test_a_growing_coordinate_is_found_and_predicted_by_its_eigenvalue():
    found = worst(growing(), "modular-addition:m=5", longest=20_000)
    position = fails_at()
    assert found.failure == Failure((), (2,), position, 2 * position % 5, 3)
    assert found.horizon == position - 1
    assert found.predicted == found.position_float64 == position
    assert found.complete and found.family is not None
    assert position == pytest.approx(math.log(2) / math.log(GROWTH), rel=0.01)


def test_random_words_do_not_find_it():
    subject = Subject(growing(), "modular-addition:m=5")
    words = sampled_words(subject.automaton, 50, 3000, 0)
    symbols = np.stack([word.symbols(0, 3000) for word in words])
    assert not subject.first_errors(symbols).any()


def test_a_slow_failure_is_predicted_within_five_percent_without_reading_every_word():
    model = growing(begin=0.03)
    found = worst(model, "modular-addition:m=5")
    assert found.failure is not None and found.failure.period == (2,)
    assert found.family == "powers of words, predicted to fail first"
    assert found.failure.position == pytest.approx(fails_at(0.03), rel=0.05)
    assert found.predicted == pytest.approx(found.failure.position, rel=0.05)


def test_a_rotation_that_is_a_little_off_is_predicted_to_the_position():
    task, off = "modular-addition:m=5", 1e-3
    model = make_model("bilinear-rotation", task, hidden=2)
    turns = 2 * torch.pi * torch.arange(5) / 5
    with torch.no_grad():
        model.angles[:] = (turns + off)[:, None]
        model.first.copy_(torch.tensor([1.0, 0.0]))
        model.readout.weight.copy_(torch.stack([turns.cos(), turns.sin()], 1))
    found = worst(model, task)
    assert found.failure is not None
    assert found.failure.position == pytest.approx(math.pi / 5 / off, abs=2)
    if found.predicted is not None:
        assert found.predicted == pytest.approx(found.failure.position, abs=2)
    word = Periodic((), (1, 3))
    form = LinearForm.of(Subject(model, task))
    (predicted,) = predict_failures(form, automaton_of(task), [word], 2000)
    assert predicted.position == pytest.approx(math.pi / 5 / off, abs=2)


@pytest.mark.parametrize("growth", [1.0005, 1.0007, 1.0011, 1.0013, 1.0017, 1.0019, 1.0023])
def test_a_failure_at_one_label_of_a_cycle_is_predicted_to_the_position(growth):
    task = "modular-addition:m=5"
    model = make_model("bilinear", task, hidden=6)
    labels = torch.arange(5)
    with torch.no_grad():
        model.weight.zero_()
        for number in range(5):
            model.weight[number, (labels + number) % 5, labels] = 1.0
            model.weight[number, 5, 5] = growth if number == 1 else 1.0
        model.first.copy_(torch.tensor([1.0, 0, 0, 0, 0, 0.5]))
        model.readout.weight.zero_()
        model.readout.weight[labels, labels] = torch.tensor([4.0, 4.0, 4.0, 1.0, 4.0])
        model.readout.weight[0, 5] = 1.0  # a rival of label 3 long before one of the others
    (predicted,) = predict_failures(
        LinearForm.of(Subject(model, task)), automaton_of(task), [Periodic((), (1,))], 100_000
    )
    first = math.ceil(math.log(2) / math.log(growth))
    assert predicted.position == first + (3 - first) % 5


def test_an_exact_model_has_no_worst_word():
    model = growing(begin=0.0)
    found = worst(model, "modular-addition:m=5", longest=20_000)
    assert found.failure is None and found.predicted is None and found.position_float64 is None
    assert found.horizon == found.tested == found.longest == 20_000
    assert all(family.first_error is None for family in found.families)


def test_a_bit_that_fades_is_found_by_a_run_that_changes_nothing():
    task, model = "flip-flop", Leaks()
    automaton = automaton_of(task)
    subject = Subject(model, task)
    words = sampled_words(automaton, 40, 512, 0)
    assert not subject.first_errors(np.stack([word.symbols(0, 512) for word in words])).any()
    found = worst(model, task, longest=5000)
    assert found.failure is not None and found.family.startswith("runs that change nothing")
    # the bit is written at the second symbol, and shrinks with every later one up to the question
    shortest = 2 + math.ceil(math.log(1e-3) / math.log(0.99))
    assert shortest <= found.failure.position <= shortest + 2
    assert found.failure.label == 0 and found.failure.answer == 1
    word = found.failure.word
    assert len(word) == found.failure.position
    assert subject.first_errors(np.array([word]))[0] == found.failure.position
    assert found.position_float64 == pytest.approx(found.failure.position, abs=2)


def test_the_failing_word_is_wrong_where_it_is_said_to_be():
    task = "s3"
    automaton = automaton_of(task)
    model = Computes(with_wrong_transition(automaton, 3, 1, 0))
    subject = Subject(model, task)
    found = worst(model, task)
    failure = found.failure
    assert failure is not None
    word = np.array([failure.word])
    assert subject.first_errors(word)[0] == failure.position == word.shape[1]
    assert subject.answers(word)[0, -1] == failure.answer
    assert automaton.labels_of(word)[0, -1] == failure.label
    assert failure.position == 2  # to state 3 in one symbol, then symbol 1


def test_short_words_are_searched_to_the_shortest_failure():
    automaton = automaton_of("parity")
    for steps in (1, 4, 9):
        subject = Subject(Computes(right_for(automaton, steps)), "parity")
        found = search_short_words(subject, longest=20, beam=64, budget=SearchBudget(AMPLE))
        assert found.failing is not None and len(found.failing) == steps + 1
        assert subject.first_errors(np.array([found.failing]))[0] == steps + 1


def test_words_that_come_back_to_a_state_are_settled_and_read_no_further():
    subject = Subject(Computes(automaton_of("s3")), "s3")
    words = [Periodic((), (1,)), Periodic((2,), (3, 1)), Periodic((), (1, 2, 4))]
    reading = Reading(subject, words)
    assert reading.read(10**9, SearchBudget(AMPLE))
    assert reading.found is None and reading.settled.all() and reading.read_to == 10**9


def test_a_word_is_not_settled_where_positions_are_counted():
    subject = Subject(CountsToo(automaton_of("parity")), "parity")
    reading = Reading(subject, [Periodic((), (1,))])
    assert reading.read(5 * PIECE, SearchBudget(AMPLE))
    assert not reading.settled.any() and reading.read_to == 5 * PIECE


def test_words_are_read_as_far_as_the_earliest_error():
    subject = Subject(growing(), "modular-addition:m=5")
    words = [Periodic((), (symbol,)) for symbol in range(5)]
    reading = Reading(subject, words)
    assert reading.read(50_000, SearchBudget(AMPLE))
    assert reading.found is not None
    assert (reading.found.word, reading.found.position) == (2, fails_at())
    alone = first_error(subject, words[2], 50_000, SearchBudget(AMPLE))
    assert alone is not None and alone.position == fails_at()
    assert first_error(subject, words[1], 3000, SearchBudget(AMPLE)) is None


def test_a_spent_budget_is_said_and_what_was_found_is_kept():
    found = find_worst_case(Subject(growing(), "modular-addition:m=5"), budget=SearchBudget(0.0))
    assert not found.complete and found.horizon == found.tested


def test_a_failure_that_is_found_as_the_time_ends_is_read_again_all_the_same(monkeypatch):
    """The time ends with the first wrong answer, before the word is read alone."""
    ended = []
    fails = worst_words._WorstWordSearch._fails

    def ends(search, family, word, found):
        ended.append(found)
        fails(search, family, word, found)

    monkeypatch.setattr(worst_words._WorstWordSearch, "_fails", ends)
    budget = SearchBudget(AMPLE, None, lambda: bool(ended))
    found = find_worst_case(
        Subject(growing(), "modular-addition:m=5"), budget=budget, caps=FEW, longest=3000
    )
    assert ended and found.failure is not None
    assert found.failure.position == found.position_float64 == fails_at()
    assert not found.complete


def test_a_model_without_a_state_is_tried_too():
    class Whole(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def forward(self, symbols):
            return self.inner(symbols)

    automaton = automaton_of("parity")
    found = worst(Whole(Computes(right_for(automaton, 6))), "parity", longest=200)
    assert found.failure is not None and found.failure.position == 7
    assert worst(Whole(Computes(automaton)), "parity", longest=64).horizon == 64


def test_a_failing_word_is_shortened_and_still_fails():
    automaton = automaton_of("parity")

    wrong = Automaton([[0, 1], [1, 2], [2, 3], [3, 3]], [0, 1, 0, 0], labels=automaton.labels)
    subject = Subject(Computes(wrong), "parity")
    word = tuple(np.random.default_rng(0).integers(2, size=300).tolist())
    position = int(subject.first_errors(np.array([word]))[0])
    shorter = shorten(subject, word[:position], SearchBudget(AMPLE))
    assert shorter == (1, 1, 1)


def test_the_same_seed_finds_the_same():
    model = growing(begin=0.7, growth=1.002)
    first, second = (
        asdict(worst(model, "modular-addition:m=5", longest=800, seed=3)) for _ in range(2)
    )
    assert first | {"seconds": 0} == second | {"seconds": 0}


def test_what_is_found_is_made_of_plain_values():
    found = worst(growing(), "modular-addition:m=5", longest=3000)
    assert isinstance(found, WorstCase)
    json.dumps(asdict(found), allow_nan=False)


def test_a_failure_with_a_suffix_says_its_word():
    failure = Failure((0, 4), (2, 3), 9, 1, 0, (3, 1))
    assert failure.word == (0, 4, 2, 3, 2, 3, 2, 3, 1)
    assert explicit((5, 6, 7)).symbols(0, 3).tolist() == [5, 6, 7]


@pytest.mark.parametrize(
    ("word", "parts"),
    [
        ((1, 2, 2, 2, 2, 1), ((1,), (2,), (1,))),
        ((0, 1, 0, 1, 0, 1, 0, 1), ((), (0, 1), ())),
        ((3, 0, 1, 2, 0, 1, 2, 0, 1, 4, 4), ((3,), (0, 1, 2), (4, 4))),
        ((0, 1, 2, 3, 4, 5), ((0, 1, 2, 3, 4), (5,), ())),
        ((2,), ((), (2,), ())),
    ],
)
def test_the_repeating_part_of_a_word_is_its_longest_one(word, parts):
    assert repeating_part(word) == parts
    failure = Failure(*parts[:2], position=len(word), label=0, answer=1, suffix=parts[2])
    assert failure.word == word


def test_a_word_that_fails_on_leaving_its_period_is_predicted_and_replayed():
    """Only after a symbol 4 is the growing coordinate read, and then it is gone."""
    task = "modular-addition:m=5"
    automaton = automaton_of(task)
    model = make_model("bilinear", task, hidden=7)
    with torch.no_grad():
        model.weight.zero_()
        model.weight[:, :6, :6] = growing().weight
        model.weight[4, 5, 5], model.weight[4, 6, 5] = 0.0, 2.0
        model.first.copy_(torch.tensor([1.0, 0, 0, 0, 0, 0.3, 0]))
        model.readout.weight.zero_()
        model.readout.weight[:, :5] = torch.eye(5)
        model.readout.weight[3, 6] = 1.0
    found = worst(model, task, longest=20_000)
    assert found.failure is not None
    assert found.failure.suffix == (4,) and found.failure.period == (2,)
    assert found.failure.position == pytest.approx(math.log(1 / 0.6) / math.log(GROWTH), rel=0.01)
    assert found.predicted is not None
    assert found.predicted == pytest.approx(found.failure.position, rel=0.05)
    subject = Subject(model, task)
    assert subject.first_errors(np.array([found.failure.word]))[0] == found.failure.position
    assert found.failure.label == automaton.labels_of(np.array(found.failure.word))[-1]


def test_predicted_words_with_another_symbol_fail_where_they_are_read():
    task, longest = "random-fsm", 1500
    automaton = automaton_of(task)
    model = make_model("bilinear", task, hidden=6)
    draw = torch.Generator().manual_seed(3)
    with torch.no_grad():
        model.weight.normal_(0, 1e-3, generator=draw)
        for number in range(5):
            for state in range(5):
                model.weight[number, automaton.delta[state, number], state] += 1.0
        model.weight[2, 5, 5] = 1.003
        model.first.copy_(torch.tensor([1.0, 0, 0, 0, 0, 0.02]))
        model.readout.weight.normal_(0, 0.3, generator=draw)
        model.readout.weight[:, :5] = torch.eye(5)
    exact = Subject(model, task).in_precision(torch.float64)
    form = LinearForm.of(exact)
    left = 0
    for word in periodic_words(automaton, 30, np.random.default_rng(1)):
        (predicted,) = predict_failures_on_leaving(form, automaton, [word], longest)
        if predicted.position is None:
            continue
        left += 1
        before = word.symbols(0, predicted.position)
        symbols = np.array([[*before[:-1], *predicted.suffix]])
        label = automaton.labels_of(symbols)[0, -1]
        assert exact.answers(symbols)[0, -1] != label, word
        for length in range(max(1, len(word.prefix)), predicted.position, 97):
            left_earlier = np.array([[*before[: length - 1], symbol] for symbol in range(5)])
            left_earlier = left_earlier[left_earlier[:, -1] != before[length - 1]]
            right = automaton.labels_of(left_earlier)[:, -1]
            assert (exact.answers(left_earlier)[:, -1] == right).all(), (word, length)
    assert left >= 3


def test_the_least_certain_words_are_grown_until_one_fails():
    subject = Subject(growing(begin=0.9), "modular-addition:m=5")
    found = search_short_words(subject, longest=600, beam=64, budget=SearchBudget(AMPLE))
    assert found.failing is not None and len(found.failing) == fails_at(0.9)
    assert subject.first_errors(np.array([found.failing]))[0] == len(found.failing)


def test_no_matrices_are_asked_of_a_model_whose_readout_is_not_linear(monkeypatch):
    """Those of a wide layer take longer than the search."""

    def never(*_, **__):
        raise AssertionError("its matrices were asked for")

    monkeypatch.setattr("statetrack.evidence.power_words.affine_maps", never)
    assert LinearForm.of(Subject(make_model("s4d", "parity"), "parity")) is None


def test_what_is_proven_is_not_sought_again_and_a_failure_far_beyond_is_predicted():
    model = growing(growth=1.0000001)
    found = find_worst_case(
        Subject(model, "modular-addition:m=5"),
        budget=SearchBudget(20.0),
        caps=FEW,
        longest=3000,
        beyond=5000,
    )
    assert found.failure is None and found.longest == 5500 and found.beyond == 5000
    assert not {worst_words.UNCERTAIN, worst_words.RANDOM} & {each.name for each in found.families}
    assert found.expected is not None and found.expected.period == (2,)
    fails = math.log(2) / math.log(float(np.float32(1.0000001)))
    assert found.expected.position == pytest.approx(fails, rel=0.01)
    assert "predicted to fail at" in found.summary


def test_where_no_word_was_read_that_is_said():
    found = find_worst_case(
        Subject(growing(), "modular-addition:m=5"), budget=SearchBudget(9.0, None, lambda: True)
    )
    assert found.summary.startswith("no word was read") and "0 symbols" not in found.summary
