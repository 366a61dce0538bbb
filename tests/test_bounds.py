"""Sizes that were once unbounded: each is refused with a figure and the limit, before it is met."""

import time

import numpy as np
import pytest

from statetrack import evaluate, load_task, make_model
from statetrack.catalogue.tasks import describe_task
from statetrack.errors import TaskError
from statetrack.sources import Automaton, build_automaton, floors
from statetrack.sources.automaton import reachable
from statetrack.sources.kinds import regex
from statetrack.sources.kinds.transitions import transitions

PATTERNS = {
    "a set of states for every word of 20 letters": ("(a|b)*a(a|b){20}", "more than 8192 states"),
    "repetitions of repetitions": ("(a{1000}){1000}", "more than 10000 states"),
    "a billion letters": ("a{999999999}", "more than 10000 states"),
    "a number that Python does not read": ("a{" + "9" * 5000 + "}", "cannot be read"),
    "a long word": ("ab" * 5000, "more than 10000 states"),
    "a longer one": ("ab" * 5001, "10002 letters, the most is 10000"),
    "stars of stars": ("(" * 1000 + "a" + ")*" * 1000, "copy more than 20000 states"),
    "a shuffle": ("^".join(["(ab)*"] * 12), "more than 10000 states"),
    "an intersection": (
        "&".join(f"(a{{{prime}}}|b)*" for prime in (2, 3, 5, 7, 11, 13)),
        "more than 10000 states",
    ),
    "letters that may be left out": ("a?" * 2000, "more than 1000000 steps"),
    "a range over all of Unicode": ("[a-\U0010ffff]" * 100, "more than 1000 letters"),
    "digits of another script": ("a{٣}", "no digit 0 to 9"),
}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_whose_automaton_is_too_large_is_refused_while_it_is_built(pattern):
    text, message = PATTERNS[pattern]
    started = time.process_time()
    with pytest.raises(TaskError, match=message) as refused:
        build_automaton({"kind": "regex", "pattern": text, "alphabet": "ab"}, "here")
    assert time.process_time() - started < 10
    assert len(str(refused.value)) < 300


def test_sets_of_states_are_counted_as_they_are_found(monkeypatch):
    formed = []
    explore = regex.explore

    def watched(start, symbols, step, most):
        return explore(start, symbols, lambda *at: (formed.append(at), step(*at))[1], most)

    monkeypatch.setattr(regex, "explore", watched)
    monkeypatch.setattr(regex, "MOST_SETS", 100)
    with pytest.raises(TaskError, match="more than 100 states"):
        build_automaton({"kind": "regex", "pattern": "(a|b)*a(a|b){20}", "alphabet": "ab"}, "x")
    assert len(formed) <= 2 * 101


def test_the_largest_pattern_is_still_the_smallest_automaton():
    given = {"kind": "regex", "pattern": "(a|b)*a(a|b){8}", "alphabet": "ab"}
    assert build_automaton(given, "here").num_states == 2**9
    deep = {"kind": "regex", "pattern": "(" * 4000 + "a" + ")" * 4000, "alphabet": "ab"}
    assert build_automaton(deep, "here").num_states == 3


def chain(count):
    """States in a line: as many rounds of a search as there are states."""
    return {f"s{n}": {"a": f"s{(n + 1) % count}", "b": "s0"} for n in range(count)}


def test_written_out_states_take_time_in_proportion_to_their_number():
    seconds = []
    for count in (4_000, 32_000):
        states = chain(count)
        outputs = {state: state for state in states}
        started = time.process_time()
        automaton = transitions(states=states, start="s0", outputs=outputs, labels=list(outputs))
        seconds.append(time.process_time() - started)
        assert automaton.num_states == count
    assert seconds[1] < 24 * max(seconds[0], 0.02)  # eight times the states, not 64 times the time


def test_a_name_among_many_that_appears_twice_is_found_at_once():
    count = 30_000
    started = time.process_time()
    with pytest.raises(TaskError, match="the name 'x' appears twice"):
        Automaton(
            np.zeros((count, 1), int) + np.arange(1, count + 1)[:, None] % count,
            states=[*map(str, range(count - 2)), "x", "x"],
        )
    assert time.process_time() - started < 5


def test_what_is_reached_is_what_single_steps_reach():
    draw = np.random.default_rng(0)
    for _ in range(20):
        delta = draw.integers(0, 30, (30, 2))
        allowed = draw.random((30, 2)) < 0.7
        for may in (None, allowed):
            seen = {0}
            while (
                further := {
                    int(delta[state, x])
                    for state in seen
                    for x in range(2)
                    if may is None or may[state, x]
                }
                - seen
            ):
                seen |= further
            assert set(np.flatnonzero(reachable(delta, 0, may))) == seen


def test_a_floor_beyond_its_budget_is_not_computed(monkeypatch):
    ring = Automaton((np.arange(700)[:, None] + [1, 2]) % 700, np.arange(700) // 500)
    exact = ring.floors([20, 300])
    assert exact is not None and exact[300] < 1
    monkeypatch.setattr(floors, "MOST_WORK", 100 * 1400)
    assert ring.floors([20]) == {20: exact[20]}
    assert ring.floors([20, 300]) is None
    monkeypatch.setattr(floors, "MOST_NODES", 600)
    assert ring.floors([20]) is None


def test_evaluation_measures_the_floor_where_it_is_not_computed(monkeypatch):
    task = load_task("parity")
    monkeypatch.setattr(floors, "MOST_NODES", 1)
    assert task.source.floors([5]) is None
    model = make_model("lstm", task, hidden=2)
    [score] = evaluate(model, task, [5], num_words=50)
    assert 0.5 <= score.floor <= 1
    assert describe_task(task)["floor"] == {str(n): None for n in task.spec.test_lengths}
