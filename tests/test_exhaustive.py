"""The exhaustive check: all words to a length, the shortest wrong one, and closed orbits."""

import itertools

import numpy as np
import pytest
import torch
from torch import nn

from statetrack.errors import SettingsError
from statetrack.evidence import SearchBudget, Subject, find_exhaustive
from statetrack.models import make_model
from statetrack.sources import Automaton, reachable
from statetrack.spec import load_task
from tests.computing import Computes, CountsToo, Shrinks, right_for, with_wrong_transition

AMPLE = 600.0
STEPS_OF_MAMBA = 200


def automaton_of(task):
    automaton = load_task(task).source.automaton
    assert automaton is not None
    return automaton


def exhaustive(model, task, **caps):
    return find_exhaustive(Subject(model, task), budget=SearchBudget(AMPLE), **caps)


def first_wrong(subject, longest):
    """The first wrong word by trying all of them, without states and without merging."""
    automaton = subject.automaton
    for length in range(1, longest + 1):
        words = np.array(list(itertools.product(range(automaton.num_symbols), repeat=length)))
        states = automaton.states_after(words).astype(int)
        before = np.column_stack([np.full(len(words), automaton.start), states[:, :-1]])
        words = words[automaton.drawable[before, words].all(1)]
        errors = subject.first_errors(words)
        if (errors > 0).any():
            return tuple(words[int((errors > 0).argmax())].tolist())
    return None


@pytest.mark.parametrize("task", ["s3", "modular-addition", "tomita-5", "flip-flop"])
def test_a_model_that_computes_the_automaton_is_closed(task):
    automaton = automaton_of(task)
    found = exhaustive(Computes(automaton), task)
    assert found.closed and found.complete and found.failure is None
    assert found.verdict == found.reason == "closed"
    drawn = reachable(automaton.delta, automaton.start, automaton.drawable)
    assert found.states == drawn.sum()
    assert found.forbids == (not automaton.drawable.all())


def test_one_wrong_transition_is_found_by_the_shortest_word_and_the_first_of_these():
    automaton = automaton_of("s3")
    for state, symbol in itertools.product(range(6), range(automaton.num_symbols)):
        to = (int(automaton.delta[state, symbol]) + 1) % 6
        subject = Subject(Computes(with_wrong_transition(automaton, state, symbol, to)), automaton)
        found = find_exhaustive(subject, budget=SearchBudget(AMPLE))
        assert found.reason == "failure" and not found.closed
        failure = found.failure
        assert failure.word == first_wrong(subject, 6)
        assert failure.position == len(failure.word) == found.length + 1
        assert subject.answers(np.array([failure.word]))[0, -1] == failure.answer
        assert automaton.labels_of(failure.word)[-1] == failure.label != failure.answer


def test_a_model_that_is_right_for_forty_symbols_fails_at_the_next():
    automaton = automaton_of("modular-addition")
    found = exhaustive(Computes(right_for(automaton, 40)), automaton)
    assert found.length == 40 and found.failure.position == 41
    assert found.words is None  # 5^40 of them
    assert found.failure.word == (0,) * 40 + (1,)
    assert found.verdict == "fails at length 41"


def test_forbidden_symbols_are_not_read():
    delta = [[1, 0], [0, 0]]
    task = Automaton(delta, [0, 1], weights=[[1, 1], [1, 0]])
    wrong = Automaton([[1, 0], [0, 1]], [0, 1])  # other than the task where it draws nothing
    found = exhaustive(Computes(wrong), task)
    assert found.closed and found.forbids
    assert exhaustive(Computes(wrong), task.with_uniform_weights()).failure.word == (0, 1)


def test_labels_that_are_not_asked_for_are_not_compared():
    delta = [[0, 1], [1, 2], [2, 0]]
    task = Automaton(delta, [0, 1, 1], scored=[True, True, False], labels=["0", "1"])
    assert exhaustive(Computes(Automaton(delta, [0, 1, 0])), task).closed
    assert exhaustive(Computes(Automaton(delta, [1, 1, 0])), task).failure.word == (0,)


def test_a_counter_in_the_state_never_closes():
    automaton = automaton_of("parity")
    found = exhaustive(CountsToo(automaton), automaton, max_length=12)
    assert not found.closed and found.reason == "length"
    assert found.length == 12 and found.words == 2**13 - 2
    assert found.verdict == "right to length 12"
    assert exhaustive(CountsToo(automaton), automaton, tolerance=1e-3).closed is True


def test_states_that_shrink_close_within_a_tolerance_only_where_they_are_compared_by_size():
    automaton = automaton_of("parity")
    model = Shrinks(automaton, 0.999)
    assert not exhaustive(model, automaton, max_length=20).closed
    found = exhaustive(model, automaton, tolerance=0.01)
    assert found.closed and found.verdict == "closed within tolerance" and found.tolerance == 0.01


def test_a_scale_invariant_model_is_compared_by_direction_with_a_tolerance():
    automaton = automaton_of("parity")
    model = make_model("bilinear", "parity", hidden=2)
    assert model.scale_invariant
    swap = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    with torch.no_grad():
        model.first.copy_(torch.tensor([1.0, 0.0]))
        model.readout.weight.copy_(torch.eye(2))
        model.weight.copy_(torch.stack([torch.eye(2), swap]) * 0.9)
    found = exhaustive(model, automaton, tolerance=1e-4)
    assert found.closed and found.states == 2
    assert not exhaustive(model, automaton, max_length=20).closed


def test_caps_on_states_and_time_end_the_search_and_are_said():
    automaton = automaton_of("s3")
    found = exhaustive(CountsToo(automaton), automaton, max_states=100)
    assert found.reason == "states" and found.complete and not found.closed
    assert found.states == 97 and found.length == 17  # 1 + 6 n nodes to depth n; one depth more
    late = find_exhaustive(Subject(Computes(automaton), automaton), budget=SearchBudget(0.0))
    assert late.reason == "time" and not late.complete and late.length == 0 and late.words == 0


class RoundsInBatches(Computes):
    """Wrong after the empty word and one symbol where it reads one word at a time."""

    def step(self, symbols, state):
        logits, state = super().step(symbols, state)
        return (logits if len(symbols) > 1 else -logits), state


def test_a_closed_orbit_is_confirmed_for_words_that_are_read_alone():
    found = exhaustive(RoundsInBatches(automaton_of("parity")), "parity")
    assert not found.closed and found.failure.word == (0,)


def test_a_model_without_a_state_and_states_that_cannot_be_compared_are_refused():
    class Whole(nn.Module):
        def forward(self, symbols):
            return torch.zeros(*symbols.shape, 2)

    class Odd(Computes):
        def initial_state(self, num_words):
            return super().initial_state(num_words), object()

        def step(self, symbols, state):
            return super().step(symbols, state[0])[0], state

    with pytest.raises(SettingsError, match="symbol by symbol"):
        exhaustive(Whole(), "parity")
    with pytest.raises(SettingsError, match="state has a object"):
        exhaustive(Odd(automaton_of("parity")), "parity")


def test_the_failure_of_mamba_on_parity_is_the_shortest():
    task = load_task("parity")
    model = make_model("mamba", task, width=16, layers=1)
    optimiser = torch.optim.Adam(model.parameters(), 1e-2)
    numbers = np.random.default_rng(0)
    for _ in range(STEPS_OF_MAMBA):
        words = numbers.integers(2, size=(64, 5))
        labels = torch.from_numpy(automaton_of("parity").labels_of(words).astype("i8"))
        loss = nn.functional.cross_entropy(
            model(torch.from_numpy(words)).flatten(0, 1), labels.flatten()
        )
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    subject = Subject(model, task)
    failure = find_exhaustive(subject, budget=SearchBudget(AMPLE), max_length=14).failure
    assert failure is not None and failure.position > 5
    assert failure.word == first_wrong(subject, failure.position)
