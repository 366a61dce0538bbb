"""Automata: built, run, reduced, compared, multiplied, and their floors."""

import itertools
import math

import numpy as np
import pytest
from automata.fa.dfa import DFA
from hypothesis import given, settings
from hypothesis import strategies as st

from statetrack.errors import TaskError
from statetrack.sources import (
    Automaton,
    equivalent,
    interleave,
    minimise,
    product,
    reachable,
    shortest_difference,
)
from statetrack.sources.tables import Runner
from tests.references.reading import run_by_steps


def random_machine(
    seed: int,
    num_states: int,
    num_symbols: int,
    num_labels: int,
    partly: bool = False,
    slipping: bool = False,
) -> Automaton:
    """A random machine, cut down to what can be reached; `partly` weighted and scored."""
    rng = np.random.default_rng(seed)
    delta = rng.integers(num_states, size=(num_states, num_symbols))
    kept = np.flatnonzero(reachable(delta, 0))
    number = np.zeros(num_states, np.int64)
    number[kept] = np.arange(len(kept))
    weights = rng.integers(0, 3, size=(len(kept), num_symbols)) + np.eye(1, num_symbols)
    scored = rng.random(len(kept)) < 0.5
    scored[number[delta[0]]] = True  # so that something is asked for
    slips = rng.integers(0, 2, size=(len(kept), num_symbols)) + np.eye(1, num_symbols)
    slips[1:] *= rng.random((len(kept) - 1, 1)) < 0.5  # some states cannot slip
    return Automaton(
        number[delta[kept]],
        rng.integers(num_labels, size=len(kept)),
        labels=[f"c{label}" for label in range(num_labels)],
        weights=weights if partly else None,
        scored=scored if partly else None,
        slips=slips if slipping else None,
        slip_rate=0.7 if slipping else 0.0,
    )


machines = st.builds(
    random_machine,
    seed=st.integers(0, 2**32 - 1),
    num_states=st.integers(1, 7),
    num_symbols=st.integers(1, 4),
    num_labels=st.integers(1, 3),
    partly=st.booleans(),
)

slipping_machines = st.builds(
    random_machine,
    seed=st.integers(0, 2**32 - 1),
    num_states=st.integers(1, 5),
    num_symbols=st.integers(1, 3),
    num_labels=st.integers(1, 3),
    partly=st.booleans(),
    slipping=st.just(True),
)


def answer(automaton: Automaton, word: tuple[int, ...]) -> int:
    """The label after a whole word, -1 where it is not asked for: symbol by symbol."""
    state = automaton.start
    for symbol in word:
        state = automaton.delta[state, symbol]
    return int(automaton.output[state]) if automaton.scored[state] else -1


def chance_of(automaton: Automaton, position: int, state: int, symbol: int) -> float:
    """How likely a symbol is drawn, by the definition of slips."""
    weight, at_slip = automaton.weights[state, symbol], automaton.slips[state, symbol]
    if not automaton.slips[state].any():
        return weight
    slip = automaton.slip_rate / (position + 1 + automaton.slip_rate)
    return (1 - slip) * weight + slip * at_slip


def all_words(num_symbols: int, length: int) -> list[tuple[int, ...]]:
    return list(itertools.product(range(num_symbols), repeat=length))


class TestBuilding:
    def test_names_weights_and_scoring_have_defaults(self):
        automaton = Automaton([[1, 0, 0], [0, 1, 1]])
        assert automaton.states == automaton.labels == ("0", "1")
        assert automaton.symbols == ("0", "1", "2")
        assert automaton.uniform_weights and automaton.all_scored
        assert automaton.weights.sum(1) == pytest.approx([1, 1])
        assert (automaton.num_states, automaton.num_symbols, automaton.num_labels) == (2, 3, 2)

    def test_weights_are_normalised(self):
        automaton = Automaton([[0, 1], [0, 1]], weights=[[3, 1], [0, 2]])
        assert automaton.weights.tolist() == [[0.75, 0.25], [0, 1]]
        assert not automaton.uniform_weights
        assert automaton.with_uniform_weights().uniform_weights

    def test_its_tables_cannot_be_changed(self):
        automaton = Automaton([[1, 0], [0, 1]])
        for table in (automaton.delta, automaton.output, automaton.weights, automaton.scored):
            with pytest.raises(ValueError, match="read-only"):
                table[0] = 0
        with pytest.raises(AttributeError):
            automaton.start = 1

    def test_it_does_not_share_its_tables_with_the_caller(self):
        table = np.array([[1, 0], [0, 1]])
        automaton = Automaton(table)
        table[0, 0] = 0
        assert automaton.delta[0, 0] == 1

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"delta": [[0, 1], [0]]}, "different numbers of transitions"),
            ({"delta": [[0.5]]}, "whole numbers"),
            ({"delta": []}, "whole numbers"),
            ({"delta": [[0, 2], [0, 1]]}, "state '0': symbol '1' leads to state 2"),
            ({"delta": [[0, -1], [0, 1]]}, "leads to state -1"),
            (
                {"delta": [[0], [1]], "states": ["a", "b"]},
                "no word leads from the start 'a' to 'b'",
            ),
            ({"delta": [[1], [0]], "start": 2}, "start: 2 is no state"),
            ({"delta": [[1], [0]], "output": [0]}, "one whole number for each of the 2 states"),
            ({"delta": [[1], [0]], "output": [0, 2], "labels": ["x", "y"]}, "label 2 is out of"),
            ({"delta": [[1], [0]], "output": [0, -1]}, "label -1 is out of range"),
            ({"delta": [[1], [0]], "symbols": ["a", "b"]}, "2 names for 1 symbols"),
            ({"delta": [[1, 0], [0, 1]], "symbols": ["a", "a"]}, "'a' appears twice"),
            ({"delta": [[0]], "symbols": ["a b"]}, "'a b' is no name"),
            ({"delta": [[0]], "symbols": [""]}, "'' is no name"),
            ({"delta": [[0]], "weights": [[0]]}, "weights of state '0': all are 0"),
            ({"delta": [[0]], "weights": [[-1]]}, "weights of state '0': must be"),
            ({"delta": [[0]], "weights": [[math.inf]]}, "weights of state '0': must be"),
            ({"delta": [[0]], "weights": [[1, 1]]}, "1 rows of 1 numbers"),
            ({"delta": [[0]], "slips": [[-1]], "slip_rate": 1}, "slips of state '0': must be"),
            ({"delta": [[0]], "slips": [[1, 1]], "slip_rate": 1}, "slips: must be 1 rows of 1"),
            ({"delta": [[0]], "slips": [[0]], "slip_rate": 1}, "slips: need a symbol"),
            ({"delta": [[0]], "slips": [[1]]}, "and a slip_rate above 0"),
            ({"delta": [[0]], "slip_rate": 1}, "slip_rate: 1, but no slips are given"),
            ({"delta": [[0]], "slips": [[1]], "slip_rate": -1}, "slip_rate: -1: must be a number"),
            ({"delta": [[0]], "slips": [[1]], "slip_rate": math.nan}, "slip_rate: nan: must be"),
            ({"delta": [[0]], "scored": [False]}, "scored: no word"),
            ({"delta": [[0]], "scored": [True, True]}, "scored: 2 entries for 1 states"),
            # the start is scored, but no word comes back to it
            ({"delta": [[1], [1]], "scored": [True, False]}, "scored: no word"),
            # the scored state is entered through a forbidden symbol only
            (
                {
                    "delta": [[0, 1], [0, 1]],
                    "weights": [[1, 0], [1, 1]],
                    "scored": [False, True],
                },
                "scored: no word",
            ),
        ],
    )
    def test_tables_that_are_no_machine_are_refused(self, arguments, message):
        with pytest.raises(TaskError) as caught:
            Automaton(**arguments)
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_a_slip_may_lead_to_the_only_state_that_is_scored(self):
        tables = {"delta": [[0, 1], [0, 1]], "weights": [[1, 0], [1, 0]], "scored": [False, True]}
        assert Automaton(**tables, slips=[[0, 5], [0, 0]], slip_rate=1).slips[0, 1] == 1

    @given(machine=slipping_machines, position=st.integers(0, 10**6))
    def test_the_chances_at_a_position_are_those_of_the_definition(self, machine, position):
        chances = machine.chances_at(position)
        for state, symbol in itertools.product(range(len(chances)), range(machine.num_symbols)):
            assert chances[state, symbol] == pytest.approx(
                chance_of(machine, position, state, symbol), abs=1e-15
            )
        np.testing.assert_array_equal(chances > 0, machine.drawable)
        assert not machine.uniform_weights
        assert not machine.with_uniform_weights().can_slip

    def test_a_state_that_only_forbidden_symbols_reach_is_allowed(self):
        automaton = Automaton([[0, 1], [0, 1]], weights=[[1, 0], [1, 1]])
        assert automaton.num_states == 2


class TestRunning:
    @settings(deadline=None, max_examples=150)
    @given(
        seed=st.integers(0, 2**32 - 1),
        num_states=st.integers(1, 300),
        num_symbols=st.sampled_from([1, 2, 3, 5, 11, 40, 120, 256, 257]),
        num_labels=st.sampled_from([1, 2, 5, 256, 257]),
        shape=st.sampled_from([(0,), (1,), (7,), (3, 0), (3, 8), (1, 9), (2, 3, 10), (0, 4)]),
        dtype=st.sampled_from([np.uint16, np.int32, np.int64]),
        one_start=st.booleans(),
    )
    def test_the_fast_way_equals_the_definition(
        self, seed, num_states, num_symbols, num_labels, shape, dtype, one_start
    ):
        rng = np.random.default_rng(seed)
        machine = random_machine(seed, num_states, num_symbols, num_labels)
        words = rng.integers(num_symbols, size=shape).astype(dtype)
        starts = rng.integers(machine.num_states, size=() if one_start else shape[:-1])
        labels = run_by_steps(machine.delta, machine.output, words, starts)
        states = run_by_steps(machine.delta, np.arange(machine.num_states), words, starts)
        np.testing.assert_array_equal(machine.labels_of(words, starts), labels)
        np.testing.assert_array_equal(machine.states_after(words, starts), states)

    def test_bytes_and_strided_words_are_read_alike(self):
        machine = random_machine(5, 6, 5, 3)
        words = np.random.default_rng(0).integers(5, size=(40, 30), dtype=np.uint8)
        expected = run_by_steps(machine.delta, machine.output, words[::2, 1::3], 0)
        np.testing.assert_array_equal(machine.labels_of(words[::2, 1::3]), expected)

    def test_words_beyond_one_block_are_read_to_the_end(self):
        machine = random_machine(3, 6, 3, 3)
        words = np.random.default_rng(0).integers(3, size=(3, 10_001), dtype=np.uint8)
        expected = run_by_steps(machine.delta, machine.output, words, 0)
        np.testing.assert_array_equal(machine.labels_of(words), expected)
        many = words[:, :9000].reshape(9000, 3)
        expected = run_by_steps(machine.delta, machine.output, many, 0)
        np.testing.assert_array_equal(machine.labels_of(many), expected)

    def test_a_word_read_in_two_parts_ends_in_the_same_state(self):
        machine = random_machine(11, 7, 5, 3)
        words = np.random.default_rng(1).integers(5, size=(20, 33))
        whole = machine.states_after(words)
        first = machine.states_after(words[:, :14])
        second = machine.states_after(words[:, 14:], first[:, -1])
        np.testing.assert_array_equal(whole, np.concatenate([first, second], axis=1))

    def test_results_have_the_smallest_type(self):
        assert random_machine(0, 9, 2, 256).labels_of([0, 1]).dtype == np.uint8
        assert random_machine(0, 9, 2, 257).labels_of([0, 1]).dtype == np.uint16
        many = Runner(np.array([[1], [0]]), np.array([0, 69_999]), 70_000)
        emitted = many(np.zeros(3, np.uint8), 0)
        assert emitted.dtype == np.uint32
        assert emitted.tolist() == [69_999, 0, 69_999]

    def test_a_symbol_that_does_not_exist_is_a_mistake_of_the_caller(self):
        with pytest.raises(AssertionError):
            random_machine(0, 3, 2, 2).labels_of([0, 2])

    def test_a_large_machine_reads_one_symbol_at_a_time(self):
        machine = Automaton((np.arange(3600)[:, None] + np.arange(120)) % 3600)
        words = np.random.default_rng(2).integers(120, size=(5, 50))
        np.testing.assert_array_equal(machine.labels_of(words), words.cumsum(1) % 3600)


class TestMinimising:
    def test_sizes_are_those_of_automata_lib_on_random_acceptors(self):
        for seed in range(200):
            machine = random_machine(seed, 2 + seed % 11, 1 + seed % 3, 2)
            peer = DFA(
                states=set(range(machine.num_states)),
                input_symbols=set(range(machine.num_symbols)),
                transitions={
                    state: dict(enumerate(row)) for state, row in enumerate(machine.delta.tolist())
                },
                initial_state=machine.start,
                final_states=set(np.flatnonzero(machine.output).tolist()),
            )
            assert minimise(machine).num_states == len(peer.minify().states), seed

    @settings(deadline=None)
    @given(machine=machines | slipping_machines)
    def test_the_small_machine_answers_alike_and_draws_alike(self, machine):
        small = minimise(machine)
        assert small.num_states <= machine.num_states
        for length in range(1, 5):
            for word in all_words(machine.num_symbols, length):
                assert answer(small, word) == answer(machine, word)
                large_state = machine.states_after(word)[-1]
                small_state = small.states_after(word)[-1]
                np.testing.assert_array_equal(
                    small.chances_at(length)[small_state], machine.chances_at(length)[large_state]
                )

    @settings(deadline=None)
    @given(machine=machines | slipping_machines)
    def test_minimising_again_changes_nothing(self, machine):
        once = minimise(machine)
        twice = minimise(once)
        np.testing.assert_array_equal(once.delta, twice.delta)
        np.testing.assert_array_equal(once.output, twice.output)
        assert once.states == twice.states

    def test_labels_that_are_not_asked_for_do_not_keep_states_apart(self):
        machine = Automaton([[1], [2], [0]], [0, 1, 0], scored=[True, False, False])
        assert minimise(machine).num_states == 3
        machine = Automaton(
            [[1, 2], [0, 0], [0, 0]], [0, 1, 0], scored=[True, False, False], labels=["x", "y"]
        )
        small = minimise(machine)
        assert small.num_states == 2
        assert small.output.tolist() == [0, 0]

    def test_scoring_keeps_states_apart(self):
        machine = Automaton([[1], [0]], [0, 0], scored=[True, False])
        assert minimise(machine).num_states == 2

    def test_weights_keep_states_apart_until_they_are_made_uniform(self):
        machine = Automaton([[1, 1], [0, 0]], [0, 0], weights=[[1, 0], [1, 1]])
        assert minimise(machine).num_states == 2
        assert minimise(machine.with_uniform_weights()).num_states == 1

    def test_copies_that_all_merge_bear_the_name_that_they_share(self):
        names = ["s", "d@a", "d@b", "d@c", "d@e"]
        one = Automaton([[1, 2], [3, 4], [3, 4], [3, 3], [4, 4]], [0, 1, 1, 1, 1], states=names)
        assert minimise(one).states == ("s", "d")
        two = Automaton([[1, 2], [3, 4], [3, 4], [3, 3], [4, 4]], [0, 1, 1, 2, 2], states=names)
        assert minimise(two).states == ("s", "d@a", "d@c")


class TestComparing:
    @settings(deadline=None, max_examples=200)
    @given(
        seeds=st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)),
        sizes=st.tuples(st.integers(1, 4), st.integers(1, 4)),
        partly=st.booleans(),
    )
    def test_the_difference_is_a_shortest_one(self, seeds, sizes, partly):
        first = random_machine(seeds[0], sizes[0], 2, 2, partly)
        second = random_machine(seeds[1], sizes[1], 2, 2, partly)
        found = shortest_difference(first, second)
        longest = len(found) - 1 if found is not None else 8  # two of <= 4 states differ by 7
        for length in range(1, longest + 1):
            for word in all_words(2, length):
                assert answer(first, word) == answer(second, word)
        if found is not None:
            assert answer(first, found) != answer(second, found)
        assert equivalent(first, second) == (found is None)

    def test_counting_to_ten_differs_from_counting_to_eleven_after_ten(self):
        ten = Automaton((np.arange(10)[:, None] + 1) % 10, [1] + [0] * 9)
        eleven = Automaton((np.arange(11)[:, None] + 1) % 11, [1] + [0] * 10)
        assert shortest_difference(ten, eleven) == (0,) * 10

    def test_weights_do_not_count(self):
        plain = Automaton([[0, 1], [1, 0]])
        assert equivalent(plain, Automaton(plain.delta, weights=[[1, 0], [1, 1]]))

    def test_machines_with_other_alphabets_cannot_be_compared(self):
        with pytest.raises(AssertionError):
            shortest_difference(Automaton([[0]]), Automaton([[0, 0]]))


class TestProducts:
    @settings(deadline=None)
    @given(first=machines, second=machines)
    def test_a_product_gives_both_labels(self, first, second):
        both = product(first, second)
        rng = np.random.default_rng(0)
        ones = rng.integers(first.num_symbols, size=(8, 6))
        twos = rng.integers(second.num_symbols, size=(8, 6))
        np.testing.assert_array_equal(
            both.labels_of(ones * second.num_symbols + twos),
            first.labels_of(ones).astype(int) * second.num_labels + second.labels_of(twos),
        )

    @settings(deadline=None)
    @given(first=machines, second=machines)
    def test_machines_in_turn_stand_still_for_one_another(self, first, second):
        turns = interleave(first, second)
        rng = np.random.default_rng(0)
        word = rng.integers(turns.num_symbols, size=12)
        mine = word[word < first.num_symbols]
        yours = word[word >= first.num_symbols] - first.num_symbols
        label = turns.labels_of(word)[-1]
        one = first.labels_of(mine)[-1] if len(mine) else first.output[first.start]
        two = second.labels_of(yours)[-1] if len(yours) else second.output[second.start]
        assert divmod(int(label), second.num_labels) == (one, two)

    def test_weights_multiply_and_both_parts_must_be_scored(self):
        first = Automaton([[0, 1], [0, 1]], weights=[[1, 3], [1, 3]], scored=[True, False])
        both = product(first, Automaton([[1, 0], [0, 1]]))
        assert both.weights[0].tolist() == [0.125, 0.125, 0.375, 0.375]
        assert both.scored.tolist() == [True, True, False, False]
        assert both.symbols == ("(0|0)", "(0|1)", "(1|0)", "(1|1)")

    @settings(deadline=None, max_examples=30)
    @given(first=slipping_machines, second=machines, position=st.integers(0, 9))
    def test_slips_of_one_part_leave_the_other_as_it_is(self, first, second, position):
        both = product(first, second)
        chances = both.chances_at(position)
        for name, row in zip(both.states, chances, strict=True):
            state, other = map(int, name.strip("()").split("|"))
            expected = np.outer(first.chances_at(position)[state], second.weights[other])
            np.testing.assert_allclose(row, expected.ravel(), atol=1e-15)

    def test_words_of_which_two_parts_slip_are_refused(self):
        slipping = Automaton([[0, 0]], weights=[[1, 0]], slips=[[0, 1]], slip_rate=1)
        with pytest.raises(TaskError, match="only one factor can have words that slip"):
            product(slipping, slipping)
        with pytest.raises(TaskError, match="factors that take turns cannot have words that slip"):
            interleave(slipping, Automaton([[0]]))

    def test_every_machine_is_addressed_equally_often(self):
        turns = interleave(Automaton([[0]]), Automaton([[1, 0, 0], [1, 1, 0]]))
        assert turns.symbols == ("1:0", "2:0", "2:1", "2:2")
        assert turns.weights[0].tolist() == pytest.approx([1 / 2, 1 / 6, 1 / 6, 1 / 6])

    def test_only_what_can_be_reached_is_kept(self):
        clock = Automaton([[1], [0]])
        assert product(clock, clock).states == ("(0|0)", "(1|1)")

    def test_a_product_that_is_too_large_is_refused(self):
        large = Automaton((np.arange(120)[:, None] + np.arange(120)) % 120)
        with pytest.raises(TaskError, match="14400 states and 14400 symbols"):
            product(large, large)
        with pytest.raises(TaskError, match="too many"):
            product(*[large] * 20)
        with pytest.raises(TaskError, match="too many"):
            interleave(*[large] * 20)


class TestFloors:
    @settings(deadline=None, max_examples=60)
    @given(machine=machines | slipping_machines)
    def test_floors_equal_counting_all_words(self, machine):
        floors = machine.floors([1, 2, 3, 5])
        for length, floor in floors.items():
            shares: dict[int, float] = {}
            for word in all_words(machine.num_symbols, length):
                chance, last, state = 1.0, -1, machine.start
                for position, symbol in enumerate(word):
                    chance *= chance_of(machine, position, state, symbol)
                    state = machine.delta[state, symbol]
                    last = machine.output[state] if machine.scored[state] else last
                shares[int(last)] = shares.get(int(last), 0.0) + chance
            none = shares.pop(-1, 0.0)
            if none == pytest.approx(1):
                assert math.isnan(floor)
            else:
                assert floor == pytest.approx(max(shares.values()) / sum(shares.values()))

    def test_a_product_with_zero_makes_zero_likely(self):
        # multiplication modulo 3: after n symbols it is 0 unless all n were 1 or 2
        times = Automaton((np.arange(3)[:, None] * np.arange(3)) % 3, start=1)
        assert times.floors([1])[1] == pytest.approx(1 / 3)
        assert times.floors([2])[2] == pytest.approx(5 / 9)
        assert times.floors([1000])[1000] == pytest.approx(1)

    @pytest.mark.parametrize("period", [30, 400])
    def test_a_machine_with_a_period_is_followed_exactly(self, period):
        # tosses a coin at every step, but hides it once in a period
        phase, coin = np.divmod(np.arange(2 * period), 2)
        delta = 2 * ((phase + 1) % period)[:, None] + [0, 1]
        machine = Automaton(delta, np.where(phase == 7, 0, coin))
        far = 5000 * period
        assert machine.floors([7, 8, far + 6, far + 7, far + 8]) == pytest.approx(
            {7: 1.0, 8: 0.5, far + 6: 0.5, far + 7: 1.0, far + 8: 0.5}
        )

    @pytest.mark.parametrize("modulus", [200, 401, 601])
    def test_a_walk_on_a_ring_is_binomial_at_first(self, modulus):
        walk = Automaton((np.arange(modulus)[:, None] + [0, 1]) % modulus)
        floors = walk.floors([20, 150])
        assert floors[20] == pytest.approx(math.comb(20, 10) / 2**20)
        assert floors[150] == pytest.approx(math.comb(150, 75) / 2**150)

    def test_a_walk_on_a_ring_ends_up_anywhere(self):
        walk = Automaton((np.arange(401)[:, None] + [0, 1]) % 401)
        assert walk.floors([10**6])[10**6] == pytest.approx(1 / 401)

    def test_floors_agree_with_sampling(self):
        machine = random_machine(7, 6, 3, 3)
        words = np.random.default_rng(0).integers(3, size=(200_000, 12), dtype=np.uint8)
        share = np.bincount(machine.labels_of(words)[:, -1]).max() / len(words)
        assert machine.floors([12])[12] == pytest.approx(share, abs=0.005)
