"""The kinds of automata: each against its definition, worked independently."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy.combinatorics.named_groups import AlternatingGroup, DihedralGroup, SymmetricGroup
from sympy.combinatorics.perm_groups import PermutationGroup
from sympy.combinatorics.permutations import Permutation as SympyPermutation

from statetrack.algebra import analyse
from statetrack.cli.app import run
from statetrack.errors import TaskError, UnknownNameError
from statetrack.sources import (
    KINDS,
    Automaton,
    arguments_of,
    as_swaps,
    build_automaton,
    cycle_name,
    minimise,
    read_permutation,
)
from statetrack.sources.groups import all_permutations, is_even, multiply
from statetrack.sources.randomness import Draws


def made(kind: str, **arguments: object) -> Automaton:
    return build_automaton({"kind": kind, **arguments}, "here")


def labels(automaton: Automaton, word: str) -> str:
    symbols = [automaton.symbols.index(name) for name in word.split()]
    return " ".join(automaton.labels[label] for label in automaton.labels_of(symbols))


class TestArguments:
    @pytest.mark.parametrize(
        ("description", "message"),
        [
            ({}, "here: 'kind' is missing: name one of adder"),
            ({"kind": "modular-additon"}, "no kind 'modular-additon'. Did you mean"),
            ({"kind": "zzz"}, "there is no kind 'zzz'. Known are: adder"),
            ({"kind": "modular-addition"}, "'modular-addition' needs 'm': the modulus"),
            ({"kind": "modular-addition", "k": 5}, "'modular-addition' has no 'k'. Known are: m."),
            ({"kind": "random-fsm", "state": 5}, "has no 'state'. Did you mean 'states'?"),
            ({"kind": "parity", "m": 2}, "'parity' has no 'm'. Known are: none."),
            ({"kind": "modular-addition", "m": "5"}, "'m': Input should be a valid integer"),
            ({"kind": "modular-addition", "m": True}, "'m': Input should be a valid integer"),
            ({"kind": "modular-addition", "m": 5.0}, "'m': Input should be a valid integer"),
            ({"kind": "modular-addition", "m": 1}, "'m': Input should be greater than or equal"),
            ({"kind": "quaternion", "generators": 7}, "'generators': must be 'all' or a list"),
            ({"kind": "quaternion", "generators": []}, "'generators': must have at least 1 part"),
            ({"kind": "quaternion", "generators": [7]}, "'generators.0': Input should be a valid"),
        ],
    )
    def test_wrong_ones_are_refused_in_one_line(self, description, message):
        with pytest.raises(TaskError) as caught:
            build_automaton(description, "here")
        assert message in str(caught.value)
        assert str(caught.value).startswith("here: ")
        assert "\n" not in str(caught.value)

    def test_every_kind_explains_all_its_arguments(self):
        for kind in KINDS:
            assert KINDS[kind].__doc__
            for argument in arguments_of(kind):
                assert argument.help not in ("", "not described")
                assert not argument.help.endswith(".")

    def test_a_kind_of_ones_own_may_say_less_than_those_here(self, monkeypatch):
        def plain(*, n: int, more=None, **others):
            return Automaton([[(state + 1) % n] for state in range(n)]) if n else more

        monkeypatch.setitem(KINDS._things, "plain", plain)
        assert [argument.name for argument in arguments_of("plain")] == ["n", "more"]
        assert build_automaton({"kind": "plain", "n": 2}, "here").num_states == 2
        with pytest.raises(TaskError, match="here: the kind 'plain' gives a NoneType, and not an"):
            build_automaton({"kind": "plain", "n": 0}, "here")
        with pytest.raises(TaskError, match="here: 'plain' needs 'n': not described"):
            build_automaton({"kind": "plain"}, "here")

    def test_a_name_that_is_a_number_is_told_to_be_written_as_text(self):
        with pytest.raises(TaskError, match="symbols: 0 is no name: it must be text, '0'"):
            Automaton([[0, 0]], symbols=[0, 1])

    def test_the_default_of_an_argument_is_known(self):
        (size,) = arguments_of("cycle-navigation")
        assert (size.name, size.required, size.default) == ("size", False, 5)

    def test_a_kind_that_does_not_exist_has_none(self):
        with pytest.raises(UnknownNameError, match="modular-addition"):
            arguments_of("modular-additoin")


GROUPS = [
    ("cyclic", {"n": 12}, 12),
    ("modular-addition", {"m": 7}, 7),
    ("dihedral", {"n": 3}, DihedralGroup(3).order()),
    ("dihedral", {"n": 8}, DihedralGroup(8).order()),
    ("symmetric", {"n": 2}, SymmetricGroup(2).order()),
    ("symmetric", {"n": 5}, SymmetricGroup(5).order()),
    ("alternating", {"n": 3}, AlternatingGroup(3).order()),
    ("alternating", {"n": 5}, AlternatingGroup(5).order()),
    ("quaternion", {}, 8),
    ("heisenberg", {"m": 2}, 8),
    ("heisenberg", {"m": 5}, 125),
    (
        "direct-product",
        {"factors": [{"kind": "alternating", "n": 4}, {"kind": "cyclic", "n": 5}]},
        60,
    ),
]


class TestGroups:
    @pytest.mark.parametrize(("kind", "arguments", "order"), GROUPS)
    def test_a_table_over_all_elements_is_that_of_a_group(self, kind, arguments, order):
        automaton = made(kind, **arguments)
        table = automaton.delta
        assert table.shape == (order, order)
        assert automaton.symbols == automaton.states == automaton.labels
        assert automaton.start == 0
        np.testing.assert_array_equal(table[0], np.arange(order))  # e x = x
        np.testing.assert_array_equal(table[:, 0], np.arange(order))  # x e = x
        np.testing.assert_array_equal(np.sort(table, axis=0).T, np.sort(table, axis=1))
        assert ((table == 0).sum(1) == 1).all()  # every element has one inverse
        a, b, c = np.random.default_rng(0).integers(order, size=(3, 2000))
        np.testing.assert_array_equal(table[table[a, b], c], table[a, table[b, c]])

    @pytest.mark.parametrize("n", [3, 4, 6])
    def test_dihedral_elements_have_the_orders_of_turns_and_reflections(self, n):
        automaton = made("dihedral", n=n)
        for turn in range(n):
            assert order_of(automaton, turn) == n // math.gcd(n, turn)
        assert {order_of(automaton, n + turn) for turn in range(n)} == {2}
        assert labels(automaton, "s r s r") == f"s r^{n - 1}s r^{n - 1} e"

    def test_quaternions_multiply_as_hamilton_wrote(self):
        quaternion = made("quaternion")
        assert labels(quaternion, "i j k") == "i k -1"
        for unit in "ijk":
            assert labels(quaternion, f"{unit} {unit}") == f"{unit} -1"
        for word, product in {"i j": "k", "j k": "i", "k i": "j", "j i": "-k"}.items():
            assert labels(quaternion, word).split()[1] == product

    def test_products_in_s3_are_as_worked_by_hand(self):
        # one-line notation, 0-based: (p * q)(i) = p[q[i]]
        # (1,2) = 102, (2,3) = 021: 102 * 021 = [1, 2, 0] = (1,2,3), and the other way (1,3,2)
        s3 = made("symmetric", n=3)
        assert s3.states == ("e", "(2,3)", "(1,2)", "(1,2,3)", "(1,3,2)", "(1,3)")
        assert labels(s3, "(1,2) (2,3)") == "(1,2) (1,2,3)"
        assert labels(s3, "(2,3) (1,2)") == "(2,3) (1,3,2)"
        assert s3.labels_of([2, 1, 3, 5]).tolist() == [2, 3, 4, 2]

    def test_products_are_those_of_sympy(self):
        # sympy moves the left factor first: ours is the product in the other order
        elements = all_permutations(4)
        for left, right in itertools.product(elements[::5], elements[::3]):
            theirs = SympyPermutation(list(right)) * SympyPermutation(list(left))
            assert multiply(left, right) == tuple(theirs.array_form)

    def test_elements_are_in_the_order_of_the_word_problem_data(self):
        assert all_permutations(4) == sorted(itertools.permutations(range(4)))
        a4 = made("alternating", n=4)
        even = [each for each in all_permutations(4) if SympyPermutation(list(each)).is_even]
        assert a4.states == tuple(map(cycle_name, even))
        product = made(
            "direct-product", factors=[{"kind": "cyclic", "n": 2}, {"kind": "cyclic", "n": 3}]
        )
        assert product.states == ("(e|e)", "(e|a)", "(e|a^2)", "(a|e)", "(a|a)", "(a|a^2)")
        assert made("cyclic", n=4).states == ("e", "a", "a^2", "a^3")

    @pytest.mark.parametrize(
        ("kind", "n", "generators", "num_symbols"),
        [
            ("symmetric", 5, "all", 120),
            ("symmetric", 5, "swaps", 11),
            ("symmetric", 5, "swaps-and-3-cycles", 31),
            ("symmetric", 5, "at-most-2-moved", 11),
            ("symmetric", 5, "at-most-3-moved", 31),
            ("symmetric", 5, "at-most-4-moved", 76),
            ("symmetric", 5, "at-most-5-moved", 120),
            ("symmetric", 5, ["(1,2)", "(1 2 3 4 5)"], 2),
            ("alternating", 5, "all", 60),
            ("alternating", 5, "3-cycles", 21),
            ("alternating", 5, "at-most-4-moved", 36),
            ("alternating", 5, ["(1,2,3)", "3 4 5 1 2"], 2),
        ],
    )
    def test_alphabets_have_the_published_sizes(self, kind, n, generators, num_symbols):
        automaton = made(kind, n=n, generators=generators)
        full = made(kind, n=n)
        assert automaton.num_symbols == num_symbols
        columns = [full.symbols.index(symbol) for symbol in automaton.symbols]
        np.testing.assert_array_equal(automaton.delta, full.delta[:, columns])

    def test_alphabets_with_a_name_are_those_of_points_moved(self):
        for name, most in (("swaps", 2), ("swaps-and-3-cycles", 3), ("all", 4)):
            named = made("symmetric", n=4, generators=name)
            counted = made("symmetric", n=4, generators=f"at-most-{most}-moved")
            assert named.symbols == counted.symbols
            np.testing.assert_array_equal(named.delta, counted.delta)

    def test_heisenberg_elements_multiply_as_their_matrices(self):
        m = 3
        automaton = made("heisenberg", m=m, generators="standard")
        assert automaton.symbols == ("(1,0,0)", "(0,1,0)", "(2,0,0)", "(0,2,0)")

        def matrix(name: str) -> np.ndarray:
            a, b, c = map(int, name.strip("()").split(","))
            return np.array([[1, a, c], [0, 1, b], [0, 0, 1]])

        for state, row in enumerate(automaton.delta):
            for symbol, target in enumerate(row):
                product = matrix(automaton.states[state]) @ matrix(automaton.symbols[symbol]) % m
                np.testing.assert_array_equal(product, matrix(automaton.states[target]))

    @pytest.mark.parametrize(
        ("kind", "arguments", "name", "order", "abelian", "derived_length"),
        [
            ("dihedral", {"n": 4}, "D4", 8, False, 2),
            ("heisenberg", {"m": 2}, "D4", 8, False, 2),
            ("heisenberg", {"m": 3, "generators": "standard"}, "H3", 27, False, 2),
            ("quaternion", {}, "Q8", 8, False, 2),
            ("dihedral", {"n": 5}, "D5", 10, False, 2),
            ("cyclic", {"n": 60}, "Z60", 60, True, 1),
            ("alternating", {"n": 5}, "A5", 60, False, None),
            (
                "direct-product",
                {"factors": [{"kind": "alternating", "n": 4}, {"kind": "cyclic", "n": 5}]},
                "A4xZ5",
                60,
                False,
                2,
            ),
            (
                "direct-product",
                {"factors": [{"kind": "quaternion"}, {"kind": "parity"}], "inputs": "in-turn"},
                "order 16, solvable, not abelian",
                16,
                False,
                2,
            ),
        ],
    )
    def test_the_algebra_knows_them(self, kind, arguments, name, order, abelian, derived_length):
        algebra = analyse(made(kind, **arguments))
        assert algebra.is_group
        (group,) = algebra.monoid.subgroups
        assert (group.order, group.abelian, group.derived_length) == (
            order,
            abelian,
            derived_length,
        )
        assert group.name == name

    @pytest.mark.parametrize(
        ("kind", "arguments", "message"),
        [
            ("symmetric", {"n": 4, "generators": "swap"}, "Did you mean 'swaps'?"),
            ("symmetric", {"n": 4, "generators": "few"}, "Known are: all, swaps"),
            ("symmetric", {"n": 4, "generators": "at-most-5-moved"}, "only 4 points to move"),
            ("symmetric", {"n": 4, "generators": "at-most-1-moved"}, "only 1 of the group's 24"),
            ("alternating", {"n": 4, "generators": "at-most-2-moved"}, "only 1 of the group's 12"),
            ("alternating", {"n": 4, "generators": "swaps"}, "Known are: all, 3-cycles"),
            ("heisenberg", {"m": 3, "generators": ["(1,0,0)"]}, "only 3 of the group's 27"),
            ("heisenberg", {"m": 3, "generators": ["(3,0,0)"]}, "no element '(3,0,0)'"),
            ("heisenberg", {"m": 1}, "'m'"),
            ("symmetric", {"n": 3, "generators": ["(1,2)"]}, "only 2 of the group's 6"),
            ("symmetric", {"n": 3, "generators": ["(1,4)"]}, "not one of 1 to 3"),
            ("symmetric", {"n": 3, "generators": ["(1,2)(2,3)"]}, "names a point twice"),
            ("symmetric", {"n": 3, "generators": ["1 2"]}, "one image"),
            ("symmetric", {"n": 3, "generators": ["(1,2"]}, "is no permutation"),
            ("symmetric", {"n": 7}, "choose fewer generators"),
            ("alternating", {"n": 4, "generators": ["(1,2)"]}, "(1,2) is odd"),
            ("cyclic", {"n": 12, "generators": [2, 4]}, "not all of the 12 elements"),
            ("dihedral", {"n": 4, "generators": ["r"]}, "only 4 of the group's 8"),
            ("quaternion", {"generators": ["l"]}, "no element 'l'"),
            ("quaternion", {"generators": []}, "'generators"),
            ("direct-product", {"factors": [{"kind": "parity"}]}, "'factors'"),
            (
                "direct-product",
                {"factors": [{"kind": "parity"}, {"kind": "cyclic", "n": 0}]},
                "factors.1: 'n'",
            ),
        ],
    )
    def test_generators_that_do_not_fit_are_refused(self, kind, arguments, message):
        with pytest.raises(TaskError) as caught:
            made(kind, **arguments)
        assert message in str(caught.value)

    @given(permutation=st.permutations(range(8)).map(tuple))
    def test_a_permutation_is_read_as_it_is_written(self, permutation):
        one_line = [image + 1 for image in permutation]
        assert read_permutation(cycle_name(permutation), 8) == permutation
        assert read_permutation(one_line, 8) == permutation
        assert read_permutation(" ".join(map(str, one_line)), 8) == permutation
        assert is_even(permutation) == SympyPermutation(list(permutation)).is_even

    @given(permutation=st.permutations(range(7)).map(tuple))
    def test_a_permutation_is_the_product_of_its_swaps(self, permutation):
        swaps = [read_permutation(swap, 7) for swap in as_swaps(cycle_name(permutation))]
        product = tuple(range(7))
        for swap in swaps:
            assert sum(image != point for point, image in enumerate(swap)) == 2
            product = multiply(product, swap)
        assert product == permutation
        operators = [np.eye(7)[list(each)] for each in (permutation, *swaps)]
        assert len(swaps) == np.linalg.matrix_rank(np.eye(7) - operators[0])  # no fewer are enough

    def test_show_writes_permutations_as_swaps_and_says_nothing_of_other_names(self, capsys):
        assert run(["show", "s3"]) == 0
        told = " ".join(capsys.readouterr().out.split())
        assert "at most 2 a symbol" in told and "; (1,2,3) = (1,2) (2,3); (1,3,2) = (1,3)" in told
        assert run(["show", "modular-addition"]) == 0
        assert "reflections" not in capsys.readouterr().out

    def test_factors_may_take_turns(self):
        factors = [
            {"kind": "cyclic", "n": 2, "generators": [1]},
            {"kind": "modular-addition", "m": 3},
        ]
        automaton = made("direct-product", factors=factors, inputs="in-turn")
        assert automaton.symbols == ("1:a", "2:0", "2:1", "2:2")
        assert labels(automaton, "1:a 2:2 1:a 2:2") == "(a|0) (a|2) (e|2) (e|1)"


def order_of(automaton: Automaton, element: int) -> int:
    state, steps = automaton.delta[0, element], 1
    while state != 0:
        state, steps = automaton.delta[state, element], steps + 1
    return steps


class TestPermutations:
    def test_the_group_has_the_order_that_sympy_finds(self):
        written = {"a": "(1 2 3)(4 5 6)", "b": "(1 4)", "c": [1, 3, 2, 4, 5, 6]}
        automaton = made("permutations", points=6, generators=written)
        group = PermutationGroup(
            [SympyPermutation(list(read_permutation(each, 6))) for each in written.values()]
        )
        assert automaton.num_states == group.order()
        assert automaton.symbols == ("a", "b", "c")
        assert automaton.states[0] == "e"

    def test_an_image_is_that_of_the_product_with_the_newest_first(self):
        generators = {"turn": "(1 2 3 4)", "swap": "(1 2)"}
        automaton = made("permutations", points=4, generators=generators, image_of=1)
        assert (automaton.num_states, automaton.num_labels) == (24, 4)
        # turn * swap sends 1 to turn(2) = 3; then * turn sends 1 to turn(swap(2)) = turn(1) = 2
        assert labels(automaton, "turn swap turn") == "2 3 2"

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"points": 3, "generators": {}}, "'generators'"),
            ({"points": 3, "generators": {"a": "(1 5)"}}, "generators.a: '(1 5)' moves a point"),
            ({"points": 3, "generators": {"a": "(1 2)"}, "image_of": 4}, "image_of: 4"),
            ({"points": 8, "generators": {"a": "(1 2)", "b": "(1 2 3 4 5 6 7 8)"}}, "too many"),
        ],
    )
    def test_what_is_no_group_of_permutations_is_refused(self, arguments, message):
        with pytest.raises(TaskError) as caught:
            made("permutations", **arguments)
        assert message in str(caught.value)


class TestCounting:
    @given(word=st.lists(st.integers(0, 1), min_size=1, max_size=30))
    def test_parity_counts_ones(self, word):
        assert made("parity").labels_of(word)[-1] == sum(word) % 2

    @given(word=st.lists(st.integers(0, 6), min_size=1, max_size=30))
    def test_modular_addition_adds(self, word):
        assert made("modular-addition", m=7).labels_of(word)[-1] == sum(word) % 7

    @given(word=st.text("ab", min_size=1, max_size=30))
    def test_even_pairs_counts_neighbours_that_differ(self, word):
        differ = sum(left != right for left, right in itertools.pairwise(word))
        automaton = made("even-pairs")
        last = automaton.labels_of([automaton.symbols.index(letter) for letter in word])[-1]
        assert last == differ % 2 == (word[0] != word[-1])

    @given(word=st.lists(st.sampled_from(["stay", "+1", "-1"]), min_size=1, max_size=30))
    def test_cycle_navigation_steps(self, word):
        place = sum({"stay": 0, "+1": 1, "-1": -1}[step] for step in word) % 5
        assert labels(made("cycle-navigation"), " ".join(word)).split()[-1] == str(place)


expressions = st.lists(
    st.tuples(st.sampled_from("+-*"), st.integers(0, 4)), min_size=1, max_size=12
).map(lambda tail: [part for pair in tail for part in (pair[0], str(pair[1]))][1:])


class TestModularArithmetic:
    @settings(deadline=None)
    @given(word=expressions)
    def test_by_precedence_it_is_what_python_evaluates(self, word):
        found = labels(made("modular-arithmetic", m=5), " ".join(word)).split()
        for end in range(1, len(word) + 1, 2):
            assert int(found[end - 1]) == eval("".join(word[:end])) % 5

    @settings(deadline=None)
    @given(word=expressions)
    def test_from_left_to_right_it_is_the_value_in_brackets(self, word):
        automaton = made("modular-arithmetic", m=5, order="left-to-right")
        value = int(word[0])
        for operator, digit in zip(word[1::2], map(int, word[2::2]), strict=True):
            value = {"+": value + digit, "-": value - digit, "*": value * digit}[operator] % 5
        assert int(labels(automaton, " ".join(word)).split()[-1]) == value

    def test_the_orders_differ(self):
        word = "2 + 3 * 4"
        assert labels(made("modular-arithmetic", m=5), word).split()[-1] == "4"
        turned = made("modular-arithmetic", m=5, order="left-to-right")
        assert labels(turned, word).split()[-1] == "0"

    def test_the_machines_have_the_smallest_sizes(self):
        for order, size in (("precedence", 51), ("left-to-right", 19)):
            automaton = made("modular-arithmetic", m=5, order=order)
            assert automaton.num_states == size
            # what may be drawn adds nothing: values and functions tell the states apart
            assert minimise(automaton.with_uniform_weights()).num_states == size

    def test_only_expressions_are_drawn_and_values_are_asked_for(self):
        automaton = made("modular-arithmetic", m=5)
        drawn = automaton.weights > 0
        digits = np.array([symbol not in "+-*" for symbol in automaton.symbols])
        for state, name in enumerate(automaton.states):
            if name == "broken":
                assert not automaton.scored[state]
                continue
            assert automaton.scored[state] == drawn[state, ~digits].all()
            assert drawn[state, digits].all() != drawn[state, ~digits].all()
            assert automaton.states[automaton.delta[state][~drawn[state]][0]] == "broken"

    @pytest.mark.parametrize("operators", ["++", "/", ""])
    def test_operators_are_some_of_three(self, operators):
        with pytest.raises(TaskError, match="operators"):
            made("modular-arithmetic", m=5, operators=operators)


class TestFlipFlop:
    def test_a_read_gives_the_bit_written_last(self):
        automaton = made("flip-flop")
        rng = np.random.default_rng(0)
        for _ in range(50):
            written, word, expected = "0", [], []
            for place in range(20):
                instruction = "w" if place == 0 else "wri"[rng.integers(3)]
                bit = written if instruction == "r" else "01"[rng.integers(2)]
                written = bit if instruction == "w" else written
                word += [automaton.symbols.index(instruction), automaton.symbols.index(bit)]
                expected += [int(written) if instruction == "r" else -1, -1]
            states = automaton.states_after(word)
            found = np.where(automaton.scored[states], automaton.labels_of(word).astype(int), -1)
            assert found.tolist() == expected
            assert (walk_chances(automaton, word) > 0).all()

    def test_instructions_are_drawn_with_their_chances(self):
        automaton = made("flip-flop", ignore=0.1)
        assert automaton.weights[automaton.start].tolist() == [1, 0, 0, 0, 0]
        holding = automaton.states.index("holds-1")
        assert automaton.weights[holding] == pytest.approx([0.45, 0.45, 0.1, 0, 0])
        reading = automaton.states.index("read-1")
        assert automaton.weights[reading].tolist() == [0, 0, 0, 0, 1]

    def test_no_state_is_superfluous(self):
        assert minimise(made("flip-flop")).num_states == made("flip-flop").num_states == 9


def walk_chances(automaton: Automaton, word: list[int]) -> np.ndarray:
    before = [automaton.start, *automaton.states_after(word)[:-1]]
    return automaton.weights[before, word]


class TestGridworld:
    @pytest.mark.parametrize("size", [2, 3, 7])
    def test_walls_stop_steps(self, size):
        place, steps, places, walls = 0, [], [], []
        for step in np.random.default_rng(size).integers(2, size=300):
            place = min(place + 1, size - 1) if step else max(place - 1, 0)
            steps.append(step)
            places.append(place)
            walls.append(int(place in (0, size - 1)))
        assert made("gridworld", size=size).labels_of(steps).tolist() == places
        assert made("gridworld", size=size, labels="wall").labels_of(steps).tolist() == walls

    def test_it_is_aperiodic_as_no_ring_is(self):
        assert analyse(made("gridworld", size=6)).monoid.aperiodic
        assert not analyse(made("cycle-navigation", size=6)).monoid.aperiodic


class TestAdder:
    @pytest.mark.parametrize(("addends", "base"), [(2, 2), (3, 2), (2, 10), (4, 3)])
    def test_digits_are_those_of_the_sum(self, addends, base):
        rng = np.random.default_rng(addends)
        for _ in range(20):
            digits = rng.integers(base, size=(12, addends))  # lowest place first
            value = sum(int(each) * base**place for place, row in enumerate(digits) for each in row)
            word = " ".join("".join(map(str, row)) for row in digits)
            expected = [value // base**place % base for place in range(12)]
            found = labels(made("adder", addends=addends, base=base), word).split()
            assert found == list(map(str, expected))
            carried = labels(made("adder", addends=addends, base=base, labels="carry"), word)
            assert carried.split()[-1] == str(value // base**12)
            both = labels(made("adder", addends=addends, base=base, labels="both"), word)
            assert both.split() == [
                f"{carry},{digit}" for carry, digit in zip(carried.split(), found, strict=True)
            ]

    @pytest.mark.parametrize(("form", "size"), [("digit", 4), ("carry", 2), ("both", 4)])
    def test_no_state_is_superfluous(self, form, size):
        automaton = made("adder", labels=form)
        assert automaton.num_states == size
        assert analyse(automaton).monoid.aperiodic  # a carry is set, cleared or kept

    def test_too_many_symbols_are_refused(self):
        with pytest.raises(TaskError, match="4 addends in base 10 make 10000 symbols"):
            made("adder", addends=4, base=10)


class TestRegister:
    def test_it_keeps_what_was_written_last(self):
        automaton = made("register", values=["x", "y", "z"], keep=0.7)
        assert labels(automaton, "keep =y keep keep =z =x keep") == "x y y y z x x"
        np.testing.assert_allclose(automaton.weights, [[0.7, 0.1, 0.1, 0.1]] * 3)

    def test_two_values_make_the_flip_flop_of_three_elements(self):
        facts = analyse(made("register", values=["0", "1"])).monoid
        assert (facts.size, facts.idempotents, facts.aperiodic) == (3, 3, True)

    def test_a_value_that_stands_twice_is_refused(self):
        with pytest.raises(TaskError, match="the name 'x' appears twice"):
            made("register", values=["x", "x"])


class TestRegex:
    def test_known_languages_have_known_sizes(self):
        assert made("regex", pattern="(10)*", alphabet="01").num_states == 3  # Tomita 2
        assert made("regex", pattern="(aa)*", alphabet="a").num_states == 2
        assert made("regex", pattern="(abab)*", alphabet="ab").num_states == 5
        blocks = made("regex", pattern="aa*bb*cc*dd*ee*", alphabet="abcde")
        assert blocks.num_states == 7

    def test_symbols_are_ordered_as_in_the_alphabet(self):
        assert made("regex", pattern="b*", alphabet="ba").symbols == ("b", "a")


class TestRandomMachines:
    @settings(deadline=None, max_examples=60)
    @given(states=st.integers(2, 40), symbols=st.integers(1, 4), seed=st.integers(0, 2**63))
    def test_a_random_machine_is_whole_and_minimal(self, states, symbols, seed):
        automaton = made("random-fsm", states=states, symbols=symbols, seed=seed)
        assert (automaton.num_states, automaton.num_symbols) == (states, symbols)
        assert automaton.output.tolist() == list(range(states))
        assert minimise(automaton).num_states == states

    @settings(deadline=None, max_examples=60)
    @given(states=st.integers(3, 12), symbols=st.integers(2, 4), seed=st.integers(0, 2**63))
    def test_a_permutation_machine_permutes_and_does_not_commute(self, states, symbols, seed):
        delta = made("random-permutations", states=states, symbols=symbols, seed=seed).delta
        assert (np.sort(delta, axis=0) == np.arange(states)[:, None]).all()
        assert any(
            (delta[delta[:, x], y] != delta[delta[:, y], x]).any()
            for x, y in itertools.combinations(range(symbols), 2)
        )

    def test_the_machine_of_a_seed_never_changes(self):
        fsm = made("random-fsm", states=4, symbols=2, seed=1)
        assert fsm.delta.tolist() == FSM_OF_SEED_1
        permuting = made("random-permutations", states=4, symbols=2, seed=1)
        assert permuting.delta.T.tolist() == PERMUTATIONS_OF_SEED_1

    def test_seeds_give_different_machines(self):
        tables = [made("random-fsm", states=6, symbols=3, seed=seed).delta for seed in range(5)]
        assert len({table.tobytes() for table in tables}) == 5

    def test_choices_are_equally_likely(self):
        draws = Draws(0)
        counts = np.bincount([draws.below(7) for _ in range(70_000)])
        assert np.abs(counts - 10_000).max() < 400  # four standard deviations
        orders = [draws.permutation(3) for _ in range(60_000)]
        counts = np.array([orders.count(each) for each in all_permutations(3)])
        assert np.abs(counts - 10_000).max() < 400


FSM_OF_SEED_1 = [[3, 2], [1, 2], [1, 0], [0, 2]]
PERMUTATIONS_OF_SEED_1 = [[2, 1, 0, 3], [1, 0, 3, 2]]


class TestTransitions:
    def test_written_labels_weights_and_scoring_are_taken(self):
        automaton = made(
            "transitions",
            start="x",
            states={"x": {"a": "y", "b": "x"}, "y": {"b": "x", "a": "y"}},
            outputs={"x": "low", "y": "high"},
            weights={"x": {"a": 3, "b": 1.0}},
            scored=["y"],
        )
        assert automaton.symbols == ("a", "b")
        assert automaton.delta.tolist() == [[1, 0], [1, 0]]
        assert automaton.labels == ("low", "high")
        assert automaton.weights.tolist() == [[0.75, 0.25], [0.5, 0.5]]
        assert automaton.scored.tolist() == [False, True]

    def test_numbers_as_labels_are_ordered_by_value(self):
        states = {"x": {"a": "y"}, "y": {"a": "z"}, "z": {"a": "x"}}
        automaton = made(
            "transitions", start="x", states=states, outputs={"x": 10, "y": 2, "z": 10}
        )
        assert automaton.labels == ("2", "10")
        assert automaton.output.tolist() == [1, 0, 1]

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"states": {"x": {"a": "y"}, "y": {}}}, "state 'y' does not say where 'a' leads"),
            ({"states": {"x": {"a": "y"}, "y": {"a": "x", "aa": "x"}}}, "has the symbol 'aa'"),
            ({"states": {"x": {"a": "z"}, "y": {"a": "x"}}}, "'x', symbol 'a': there is no state"),
            ({"states": {"x": {"a": "x"}, "y": {"a": "x"}}}, "no word leads from the start"),
            ({"states": {}}, "'states'"),
            ({"states": {"x": {}}, "outputs": None}, "delta"),
            ({"start": "w"}, "start: there is no state 'w'"),
            ({"outputs": {"x": 0}}, "outputs: the label of state 'y' is missing"),
            ({"outputs": {"x": 0, "y": 1, "z": 1}}, "outputs: there is no state 'z'"),
            ({"outputs": {"x": True, "y": 1}}, "'outputs.x"),
            ({"weights": {"x": {"c": 1}}}, "weights: state 'x': there is no symbol 'c'"),
            ({"weights": {"x": {"a": 0}}}, "weights of state 'x': all are 0"),
            ({"weights": {"q": {"a": 1}}}, "weights: there is no state 'q'"),
            ({"scored": ["q"]}, "scored: there is no state 'q'"),
            ({"scored": []}, "scored: no word"),
        ],
    )
    def test_what_is_no_machine_is_refused(self, change, message):
        arguments = {
            "start": "x",
            "states": {"x": {"a": "y"}, "y": {"a": "x"}},
            "outputs": {"x": 0, "y": 1},
        }
        with pytest.raises(TaskError) as caught:
            made("transitions", **(arguments | change))
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)
