"""Compression and distinction: whether a network keeps apart what the task keeps apart."""

import itertools

import numpy as np
import pytest
from torch import nn

from statetrack.algebra import needed_machine
from statetrack.evidence import NerodeScores, SearchBudget, Subject, find_myhill_nerode
from statetrack.sources import Automaton
from statetrack.spec import load_task
from tests.computing import Computes, right_for, with_wrong_transition

PERFECT = NerodeScores(compression_precision=1.0, distinction_precision=1.0, distinction_recall=1.0)


def automaton_of(task):
    automaton = load_task(task).source.automaton
    assert automaton is not None
    return automaton


def measured(model, task, **caps):
    return find_myhill_nerode(Subject(model, task), budget=SearchBudget(600.0), **caps)


@pytest.mark.parametrize("task", ["s3", "tomita-5", "tomita-7", "flip-flop", "random-fsm"])
def test_a_model_that_computes_the_automaton_has_all_scores(task):
    found = measured(Computes(automaton_of(task)), task)
    assert found.exact == found.sampled == PERFECT
    assert found.complete and found.tells_apart
    assert found.reached == found.states == needed_machine(automaton_of(task)).live.sum()


def test_a_model_that_always_answers_alike_compresses_and_distinguishes_nothing():
    constant = Automaton([[0] * 6], [0], labels=list("012345"))
    found = measured(Computes(constant), "s3")
    assert found.exact == NerodeScores(
        compression_precision=1.0, distinction_precision=1.0, distinction_recall=0.0
    )
    assert found.sampled == found.exact


def test_a_model_that_keeps_too_much_apart_does_not_compress():
    parity = automaton_of("parity")
    found = measured(Computes(right_for(parity, 4)), parity, max_prefixes=40)
    assert found.prefix_length == 4
    assert found.exact.compression_precision < 1 and found.exact.distinction_recall < 1
    assert 0 < found.sampled.compression_precision < 1
    assert found.exact.distinction_precision == 1.0


def by_hand(model, task, longest_prefix, longest_suffix):
    """The exact scores by the definitions, pair by pair and suffix by suffix."""
    subject, automaton = Subject(model, task), task
    symbols = range(automaton.num_symbols)

    def words(longest, shortest):
        lengths = range(shortest, longest + 1)
        return [word for n in lengths for word in itertools.product(symbols, repeat=n)]

    prefixes, suffixes = words(longest_prefix, 0), words(longest_suffix, 1)

    def after(prefix, suffix):
        return int(subject.answers(np.array([prefix + suffix]))[0, -1])

    network = {p: {s: after(p, s) for s in suffixes} for p in prefixes}
    world = {p: {s: int(automaton.labels_of(p + s)[-1]) for s in suffixes} for p in prefixes}
    states = {p: int(automaton.states_after(p)[-1]) if p else automaton.start for p in prefixes}

    def apart(table, one, two):
        return {s for s in suffixes if table[one][s] != table[two][s]}

    def boundary(told):
        return {s for s in told if not any(s[:n] in told for n in range(1, len(s)))}

    compression, precision, recall = {}, {}, {}
    for one, two in itertools.combinations(prefixes, 2):
        given = apart(network, one, two)
        pair = tuple(sorted((states[one], states[two])))
        if pair[0] == pair[1]:
            compression.setdefault(pair, []).append(not given)
            continue
        truth = apart(world, one, two)
        edge, wanted = boundary(given), boundary(truth)
        precision.setdefault(pair, []).append(len(edge & truth) / len(edge) if edge else 1.0)
        recall.setdefault(pair, []).append(len(wanted & given) / len(wanted))
    means = [
        float(np.mean([np.mean(values) for values in table.values()]))
        for table in (compression, precision, recall)
    ]
    return means


@pytest.mark.parametrize(
    ("task", "change"), [("s3", (1, 2, 3)), ("tomita-5", (1, 0, 2)), ("tomita-5", (3, 1, 3))]
)
def test_exact_scores_are_those_of_the_definitions(task, change):
    automaton = automaton_of(task)
    assert needed_machine(automaton).complete
    model = Computes(with_wrong_transition(automaton, *change))
    found = measured(model, automaton, max_prefixes=45)
    expected = by_hand(model, automaton, found.prefix_length, found.suffix_length)
    scores = found.exact
    assert scores.compression_precision == pytest.approx(expected[0])
    assert scores.distinction_precision == pytest.approx(expected[1])
    assert scores.distinction_recall == pytest.approx(expected[2])
    assert min(expected) < 1


def test_a_model_without_a_state_and_one_with_a_state_are_measured_alike():
    wrong = Computes(with_wrong_transition(automaton_of("s3"), 1, 2, 3))

    class Whole(nn.Module):
        def forward(self, symbols):
            return wrong(symbols)

    one, two = measured(wrong, "s3"), measured(Whole(), "s3")
    assert vars(one) | {"seconds": 0} == vars(two) | {"seconds": 0}


def test_suffixes_are_as_long_as_it_takes_to_tell_states_apart():
    delta = [[1, 0], [2, 1], [3, 2], [0, 3]]  # only the fourth state has another label
    ring = Automaton(delta, [0, 0, 0, 1])
    found = measured(Computes(ring), ring)
    assert found.suffix_length == 2 and found.tells_apart and found.suffixes == 2 + 4
    short = measured(Computes(ring), ring, max_suffixes=3)
    assert short.suffix_length == 1 and not short.tells_apart


def test_what_is_not_drawn_or_not_asked_for_is_not_compared():
    task = Automaton([[1, 0], [0, 1]], [0, 1], weights=[[1, 1], [1, 0]])
    wild = Automaton([[1, 0], [0, 2], [3, 4], [4, 2], [2, 3]], [0, 1, 1, 0, 1])
    assert measured(Computes(wild), task).exact == PERFECT


def test_no_time_is_said():
    found = find_myhill_nerode(
        Subject(Computes(automaton_of("s3")), "s3"), budget=SearchBudget(0.0)
    )
    assert not found.complete and found.prefixes == 0
    assert found.exact.compression_precision is None
