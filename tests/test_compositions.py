"""Kinds made of other automata: cascades, resets, fused symbols and blocks of tokens.

Each is held against a simulation in plain Python that knows only the parts.
"""

import itertools
from collections import Counter

import numpy as np
import pytest
import yaml
from sympy.combinatorics.permutations import Permutation

from statetrack.algebra import analyse
from statetrack.errors import TaskError
from statetrack.sources import Automaton, build_automaton, equivalent, minimise
from statetrack.spec import golden_hash, load_task
from tests.claims.cells import algebra_of


def made(kind: str, **arguments: object) -> Automaton:
    return build_automaton({"kind": kind, **arguments}, "here")


def labels(automaton: Automaton, word: list[str]) -> list[str]:
    states = automaton.states_after([automaton.symbols.index(name) for name in word])
    return [
        automaton.labels[automaton.output[state]] if automaton.scored[state] else "-"
        for state in states
    ]


def random_words(symbols: tuple[str, ...], seed: int = 0, count: int = 30) -> list[list[str]]:
    rng = np.random.default_rng(seed)
    return [[symbols[x] for x in rng.integers(len(symbols), size=40)] for _ in range(count)]


def drawn_word(automaton: Automaton, length: int, rng: np.random.Generator) -> list[str]:
    state, word = automaton.start, []
    for _ in range(length):
        symbol = rng.choice(automaton.num_symbols, p=automaton.weights[state])
        word.append(automaton.symbols[symbol])
        state = automaton.delta[state, symbol]
    return word


S3 = {"kind": "symmetric", "n": 3}
SWAPS = {"kind": "symmetric", "n": 4, "generators": "swaps"}
MACHINE = {"kind": "random-fsm", "states": 5, "symbols": 3, "seed": 4}
WEIGHTED = {"kind": "flip-flop", "ignore": 0.5}


class TestTokensPerTransition:
    @pytest.mark.parametrize("of", [S3, MACHINE])
    @pytest.mark.parametrize("tokens", [1, 2, 4])
    @pytest.mark.parametrize("filler", [None, "_"])
    @pytest.mark.parametrize("form", ["delayed", "at-once", "block-ends"])
    def test_a_block_makes_the_transition_of_its_first_symbol(self, of, tokens, filler, form):
        inner = build_automaton(of, "inner")
        automaton = made("tokens-per-transition", of=of, tokens=tokens, filler=filler, labels=form)
        for short in random_words(inner.symbols, count=10):
            word, expected, old = [], [], inner.labels[inner.output[inner.start]]
            for symbol, new in zip(short, labels(inner, short), strict=True):
                word += [symbol] + [symbol if filler is None else filler] * (tokens - 1)
                inside = {"delayed": old, "at-once": new, "block-ends": "-"}[form]
                expected += [inside] * (tokens - 1) + [new]
                old = new
            assert labels(automaton, word) == expected

    @pytest.mark.parametrize("of", [S3, SWAPS, MACHINE, WEIGHTED])
    @pytest.mark.parametrize("form", ["delayed", "at-once", "block-ends"])
    def test_one_token_is_the_automaton_itself(self, of, form):
        inner = build_automaton(of, "inner")
        automaton = made("tokens-per-transition", of=of, tokens=1, labels=form)
        for table in ("delta", "output", "weights", "scored"):
            np.testing.assert_array_equal(getattr(automaton, table), getattr(inner, table))
        assert (automaton.symbols, automaton.labels) == (inner.symbols, inner.labels)
        assert automaton.uniform_weights == inner.uniform_weights

    def test_one_token_of_a_shipped_task_has_the_data_of_the_task_without(self):
        assert golden_hash(load_task("s3-two-tokens:tokens=1")) == golden_hash(load_task("s3"))

    def test_a_new_filler_is_never_drawn_where_there_is_nothing_to_fill(self):
        automaton = made("tokens-per-transition", of=S3, tokens=1, filler="_")
        filler = automaton.symbols.index("_")
        assert (automaton.weights[:6, filler] == 0).all()
        assert labels(automaton, ["(1,2)", "_", "(1,2)"]) == ["(1,2)", "-", "-"]

    @pytest.mark.parametrize("filler", [None, "_", "e"])
    def test_only_blocks_are_drawn(self, filler):
        automaton = made("tokens-per-transition", of=S3, tokens=3, filler=filler)
        rng = np.random.default_rng(1)
        begun: Counter[str] = Counter()
        for _ in range(200):
            word = drawn_word(automaton, 30, rng)
            for first, *rest in zip(word[::3], word[1::3], word[2::3], strict=True):
                begun[first] += 1
                assert rest == [first if filler is None else filler] * 2
        assert set(begun) == {"e", "(1,2)", "(1,3)", "(2,3)", "(1,2,3)", "(1,3,2)"}
        assert min(begun.values()) > 2000 / 6 * 0.8

    def test_what_is_no_block_is_never_asked_for(self):
        automaton = made("tokens-per-transition", of=S3, tokens=2)
        word = ["(1,2)", "(1,2)", "(1,2)", "(1,3)", "e", "e"]
        assert labels(automaton, word) == ["e", "(1,2)", "(1,2)", "-", "-", "-"]

    def test_weights_and_scoring_are_those_of_the_automaton_inside(self):
        inner = build_automaton(WEIGHTED, "inner")
        automaton = made("tokens-per-transition", of=WEIGHTED, tokens=2)
        np.testing.assert_array_equal(automaton.weights[: inner.num_states], inner.weights)
        word = [each for symbol in "w1i0r" for each in symbol * 2]
        assert labels(automaton, word) == ["-"] * 9 + ["1"]

    @pytest.mark.parametrize(
        ("arguments", "num_states"),
        [
            ({"filler": "_", "labels": "block-ends"}, 4 * 6 + 1),
            ({"filler": "_", "labels": "at-once"}, 4 * 6 + 1),
            ({"filler": "_"}, 6 + 3 * 36 + 1),
            ({"labels": "block-ends"}, 6 + 3 * 36 + 1),
            ({}, 6 + 3 * 36 + 1),
        ],
    )
    def test_no_state_is_superfluous(self, arguments, num_states):
        automaton = made("tokens-per-transition", of=S3, tokens=4, **arguments)
        assert automaton.num_states == minimise(automaton).num_states == num_states

    def test_blocks_of_blocks_are_blocks(self):
        twice = {"kind": "tokens-per-transition", "of": {"kind": "parity"}, "tokens": 2}
        automaton = made("tokens-per-transition", of=twice, tokens=2, labels="block-ends")
        assert labels(automaton, list("11110000")) == list("-0-1-1-1")

    def test_a_machine_of_too_many_states_is_refused_before_it_is_built(self):
        with pytest.raises(TaskError, match="907321 states and 120 symbols"):
            made("tokens-per-transition", of={"kind": "symmetric", "n": 5}, tokens=64)


class TestFused:
    @pytest.mark.parametrize("of", [SWAPS, MACHINE, {"kind": "cycle-navigation"}])
    @pytest.mark.parametrize("count", [1, 2, 3])
    def test_a_symbol_does_what_its_word_does(self, of, count):
        inner = build_automaton(of, "inner")
        automaton = made("fused", of=of, count=count)
        actions = {}
        for word in itertools.product(range(inner.num_symbols), repeat=count):
            ends = tuple(inner.states_after(word, state)[-1] for state in range(inner.num_states))
            actions.setdefault(ends, []).append(word)
        assert automaton.num_symbols == len(actions)
        found = {tuple(column) for column in automaton.delta.T.tolist()}
        order = [inner.states.index(state) for state in automaton.states]
        expected = {tuple(order.index(ends[state]) for state in order) for ends in actions}
        assert found == expected
        share = {
            tuple(order.index(ends[state]) for state in order): len(words)
            for ends, words in actions.items()
        }
        for column, weights in zip(automaton.delta.T.tolist(), automaton.weights.T, strict=True):
            chance = share[tuple(column)] / inner.num_symbols**count
            assert weights == pytest.approx(chance)

    def test_forbidden_words_stay_forbidden(self):
        sums = {"kind": "modular-arithmetic", "m": 2, "operators": "+"}
        automaton = made("fused", of=sums, count=3)
        rng = np.random.default_rng(0)
        for _ in range(20):
            word = drawn_word(automaton, 7, rng)
            terms = "".join(word).replace(".", "").split("+")
            assert set(terms) - {""} <= {"0", "1"} and "" not in terms[:-1]
            value = str(sum(map(int, filter(None, terms))) % 2)
            assert labels(automaton, word)[-1] == ("-" if word[-1].endswith("+") else value)

    def test_products_in_a_group_are_named_as_elements(self):
        fused = made("fused", of=SWAPS, count=3)
        assert set(fused.symbols) == set(made("symmetric", n=4).symbols)  # every one is reached
        assert equivalent(fused, reordered(made("symmetric", n=4), fused.symbols))
        assert made("fused", of={"kind": "cycle-navigation"}, count=2).symbols[:2] == (
            "stay.stay",
            "stay.+1",
        )

    def test_one_symbol_at_a_time_is_the_automaton_itself(self):
        fused = made("fused", of=SWAPS, count=1)
        assert equivalent(fused, build_automaton(SWAPS, "inner"))
        assert fused.symbols == build_automaton(SWAPS, "inner").symbols

    def test_too_many_symbols_are_refused(self):
        of = {"kind": "random-fsm", "states": 40, "symbols": 9, "seed": 0}
        with pytest.raises(TaskError, match="count: more than 4096"):
            made("fused", of=of, count=5)


def reordered(automaton: Automaton, symbols: tuple[str, ...]) -> Automaton:
    """The automaton with its symbols in another order."""
    columns = [automaton.symbols.index(symbol) for symbol in symbols]
    return Automaton(
        automaton.delta[:, columns],
        automaton.output,
        start=automaton.start,
        symbols=symbols,
        labels=automaton.labels,
    )


class TestResets:
    def test_a_reset_sets_the_state_and_the_rest_goes_on_as_before(self):
        inner = build_automaton(MACHINE, "inner")
        automaton = made("with-resets", of=MACHINE, to=["3", "1"])
        assert automaton.symbols == ("0", "1", "2", "=3", "=1")
        for word in random_words(automaton.symbols):
            state, expected = inner.start, []
            for symbol in word:
                if symbol.startswith("="):
                    state = int(symbol[1:])
                else:
                    state = inner.delta[state, int(symbol)]
                expected.append(str(state))
            assert labels(automaton, word) == expected

    def test_resets_come_with_their_chance(self):
        automaton = made("with-resets", of={"kind": "parity"}, chance=0.3)
        np.testing.assert_allclose(automaton.weights, [[0.35, 0.35, 0.15, 0.15]] * 2)

    def test_a_group_with_resets_has_its_elements_and_the_constants(self):
        for name, order in (("symmetric", 24), ("alternating", 12)):
            facts = analyse(made("with-resets", of={"kind": name, "n": 4})).monoid
            assert facts.size == 2 * order
            assert [group.order for group in facts.subgroups] == [order, 1]

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (
                {"of": {"kind": "parity"}, "to": ["2"]},
                "to: there is no state '2'. Known are: 0, 1.",
            ),
            ({"of": {"kind": "parity"}, "to": ["1", "1"]}, "the name '=1' appears twice"),
            ({"of": {"kind": "parity"}, "to": []}, "'to"),
            ({"of": {"kind": "pairity"}}, "of: there is no kind 'pairity'"),
            ({"of": {"kind": "parity"}, "chance": 1.0}, "'chance'"),
        ],
    )
    def test_what_cannot_be_reset_is_refused(self, arguments, message):
        with pytest.raises(TaskError) as caught:
            made("with-resets", **arguments)
        assert message in str(caught.value)


COUNTER = {"kind": "modular-addition", "m": 2}
GATE = {"kind": "register", "values": ["shut", "open"]}
STEP = {"of": COUNTER, "feed": {"tick": {"open": 1, "any": 0}, "any": 0}}
GATED = {
    "symbols": ["open", "shut", "tick"],
    "components": [
        {"of": GATE, "feed": {"open": "=open", "shut": "=shut", "tick": "keep"}},
        STEP,
    ],
}


class TestCascade:
    def test_a_gated_counter_counts_while_the_gate_is_open(self):
        automaton = made("cascade", **GATED)
        for word in random_words(automaton.symbols):
            gate, count, expected = "shut", 0, []
            for symbol in word:
                count += symbol == "tick" and gate == "open"
                gate = gate if symbol == "tick" else symbol
                expected.append(f"({gate}|{count % 2})")
            assert labels(automaton, word) == expected
            last = made("cascade", **GATED, labels="last")
            assert labels(last, word) == [each[-2] for each in expected]

    def test_states_are_those_before_the_input(self):
        automaton = made("cascade", **GATED)
        assert labels(automaton, ["open", "tick"]) == ["(open|0)", "(open|1)"]
        # a component that reads its neighbour's old state is a step behind: a shift register
        bits = {"kind": "register", "values": ["0", "1"]}
        copy = {"0": "=0", "1": "=1"}
        shift = made(
            "cascade",
            symbols=["0", "1"],
            components=[
                {"of": bits, "feed": copy},
                {"of": bits, "feed": {"any": copy}},
                {"of": bits, "feed": {"any": {"any 0": "=0", "any 1": "=1"}}},
            ],
        )
        for word in random_words(shift.symbols):
            padded = ["0", "0", *word]
            windows = zip(padded[2:], padded[1:], padded, strict=False)
            assert labels(shift, word) == [f"({'|'.join(each)})" for each in windows]

    def test_a_component_without_a_feed_reads_the_input(self):
        automaton = made(
            "cascade",
            components=[{"of": {"kind": "parity"}}, {"of": {"kind": "modular-addition", "m": 3}}],
        )
        assert automaton.symbols == ("0", "1")
        assert labels(automaton, list("1101")) == ["(1|1)", "(0|2)", "(0|2)", "(1|0)"]

    def test_symbols_are_drawn_alike_unless_a_component_never_draws_what_it_would_read(self):
        assert made("cascade", **GATED).uniform_weights
        flip_flop = {"of": {"kind": "flip-flop"}, "feed": {"a": "w", "b": 0, "c": 1}}
        automaton = made(
            "cascade",
            symbols=["a", "b", "c"],
            components=[flip_flop, {"of": COUNTER, "feed": {"any": 1}}],
            labels="last",
        )
        assert automaton.weights[automaton.start].tolist() == [1, 0, 0]
        after = automaton.delta[automaton.start, 0]
        assert automaton.weights[after].tolist() == [0, 0.5, 0.5]

    def test_a_label_is_asked_for_where_all_shown_components_ask(self):
        flip_flop = {"of": {"kind": "flip-flop"}}
        follower = {"of": COUNTER, "feed": {"any": 1}}
        both = made("cascade", components=[flip_flop, follower])
        assert labels(both, list("w1r1")) == ["-", "-", "(1|1)", "-"]
        last = made("cascade", components=[flip_flop, follower], labels="last")
        assert labels(last, list("w1r1")) == ["1", "0", "1", "0"]

    @pytest.mark.parametrize(
        ("feed", "message"),
        [
            ({"tick": {"open": 1}, "any": 0}, "feed.tick: nothing is said for the state 'shut'"),
            ({"tick": {"open": 1, "any": 0}}, "nothing is said for the input symbol 'open'"),
            ({"tick": {"opn": 1, "any": 0}, "any": 0}, "no state 'opn'. Did you mean 'open'?"),
            ({"tick": {"open": 2, "any": 0}, "any": 0}, "feed.tick.open: the component has no"),
            ({"tack": 1, "any": 0}, "feed: there is no input symbol 'tack'. Did you mean 'tick'?"),
            ({"any": 0, "tick": 1}, "feed: the entry 'tick' is never used"),
            ({"tick": {"any": 0, "open": 1}, "any": 0}, "the entry 'open' is never used"),
            ({"tick": {"open shut": 1, "any": 0}, "any": 0}, "'open shut' names 2 states"),
            ({"tick": True, "any": 0}, "feed.tick"),
            ({"tick": [1], "any": 0}, "feed.tick"),
            ({}, "nothing is said for the input symbol 'open'"),
            (None, "there is no symbol 'open' to read: give it a 'feed'"),
        ],
    )
    def test_a_feed_with_a_mistake_is_refused_with_its_place(self, feed, message):
        components = [GATED["components"][0], {"of": COUNTER, "feed": feed}]
        with pytest.raises(TaskError) as caught:
            made("cascade", symbols=GATED["symbols"], components=components)
        assert str(caught.value).startswith("here: components.1")
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"components": [STEP]}, "'components'"),
            ({"components": [STEP, STEP]}, "components.0.feed.tick: no component stands before"),
            ({"components": [{"feed": {}}, STEP]}, "components.0: 'of' is missing"),
            ({"components": [{"of": GATE, "fed": {}}, STEP]}, "unknown key 'fed'"),
            ({"components": [{"of": {"kind": "gate"}}, STEP]}, "components.0.of: there is no kind"),
            ({"symbols": ["any", "tick"]}, "is named 'any'"),
            ({"symbols": []}, "'symbols'"),
            ({"labels": "first"}, "'labels'"),
        ],
    )
    def test_what_is_no_cascade_is_refused(self, change, message):
        with pytest.raises(TaskError) as caught:
            made("cascade", **(GATED | change))
        assert message in str(caught.value)

    def test_too_many_states_and_cases_are_refused(self):
        large = {"of": {"kind": "modular-addition", "m": 100}}
        with pytest.raises(TaskError, match="more than 8192 states"):
            made(
                "cascade",
                symbols=["0", "1"],
                components=[large, large | {"feed": {"any": {"0": 1, "any": 0}}}],
            )
        with pytest.raises(TaskError, match=r"components\.2: 1000000 cases"):
            made("cascade", components=[large] * 3)

    def test_its_yaml_reads_as_the_documentation_says(self):
        written = yaml.safe_load(
            """
            symbols: [open, shut, tick]
            components:
              - of: {kind: register, values: [shut, open]}
                feed: {open: =open, shut: =shut, tick: keep}
              - of: {kind: modular-addition, m: 2}
                feed:
                  tick: {open: "1", any: "0"}
                  any: 0
            """
        )
        assert equivalent(made("cascade", **written), made("cascade", **GATED))


class TestShippedCascades:
    def test_s3_is_z3_cascaded_by_z2(self):
        cascade = load_task("s3-cascade").automaton
        group = load_task("dihedral:n=3").automaton

        def element(state: str) -> int:
            flips, turns = state.strip("()").split("|")
            name = {"0": "", "1": "r", "2": "r^2"}[turns] + ("s" if flips == "1" else "")
            return group.states.index(name or "e")

        images = [element(state) for state in cascade.states]
        assert sorted(images) == list(range(6))
        for number, symbol in enumerate(["r", "s"]):
            column = group.delta[:, group.symbols.index(symbol)]
            for state, image in enumerate(images):
                assert images[cascade.delta[state, number]] == column[image]

    def test_s4_is_klein_s_group_cascaded_by_z2_and_z3(self):
        cascade = load_task("s4-cascade").automaton

        def cycles(*written: list[int]) -> Permutation:
            return Permutation([[point - 1 for point in cycle] for cycle in written], size=4)

        u, w = cycles([1, 4], [2, 3]), cycles([2, 4], [1, 3])
        r, s = cycles([1, 2, 3]), cycles([1, 2])

        def element(state: str) -> Permutation:
            b, a, c, d = map(int, state.strip("()").split("|"))
            return s**b * r**a * w**d * u**c  # sympy moves the left factor first

        images = [element(state) for state in cascade.states]
        assert len(set(map(str, images))) == 24
        for number, factor in enumerate([r, s, cycles([1, 2], [3, 4])]):
            for state, image in enumerate(images):
                assert images[cascade.delta[state, number]] == factor * image

    @pytest.mark.parametrize(
        ("name", "size", "groups", "aperiodic", "solvable"),
        [
            ("s3-cascade", 6, ["S3"], False, True),
            ("s4-cascade", 24, ["S4"], False, True),
            # a tick adds by the gate: 4 additions for each of two constants, and the 2 of ticks
            ("gated-parity", 10, ["Z2", "Z2"], False, True),
            ("flip-flop-cascade", None, [], True, True),
        ],
    )
    def test_their_monoids_have_the_groups_of_their_parts(
        self, name, size, groups, aperiodic, solvable
    ):
        facts = algebra_of(name).monoid
        assert size in (None, facts.size)
        assert [group.name for group in facts.subgroups if group.order > 1] == groups
        assert (facts.aperiodic, facts.solvable) == (aperiodic, solvable)


@pytest.mark.parametrize(
    ("name", "groups", "solvable"),
    [
        ("s3-two-tokens", "S3", True),
        ("s4-fused-swaps", "S4", True),
        ("s5-swaps-four-tokens", "S5", False),
        ("permutation-reset", "S5", False),
    ],
)
def test_time_to_compute_does_not_change_the_largest_group(name, groups, solvable):
    facts = algebra_of(name).monoid
    assert facts.subgroups[0].name == groups
    assert facts.solvable == solvable


@pytest.mark.parametrize("kind", ["fused", "with-resets", "tokens-per-transition", "cascade"])
def test_words_that_slip_cannot_stand_inside(kind):
    slipping = {"kind": "regex", "pattern": "(ab)*", "alphabet": "ab", "words": "mixed"}
    arguments = {
        "fused": {"of": slipping, "count": 2},
        "with-resets": {"of": slipping},
        "tokens-per-transition": {"of": slipping, "tokens": 2},
        "cascade": {"components": [{"of": slipping}, {"of": slipping}]},
    }[kind]
    with pytest.raises(TaskError, match="of: words of an automaton inside another one cannot slip"):
        made(kind, **arguments)
