"""Regular languages: what is asked for, which words are drawn, and the eighteen that come along."""

import itertools
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statetrack.algebra import Prediction, analyse
from statetrack.data import stream_words
from statetrack.errors import TaskError
from statetrack.models import MODELS
from statetrack.predicting import predict
from statetrack.sources import Automaton, LengthDistribution, equivalent, minimise, reachable
from statetrack.sources.languages import SLIP_RATE, language
from statetrack.spec import load_task


def runs(word: str) -> list[tuple[str, int]]:
    return [(letter, len(list(run))) for letter, run in itertools.groupby(word)]


def no_odd_ones_before_odd_zeros(word: str) -> bool:
    return not any(
        one == "1" and ones % 2 and zeros % 2
        for (one, ones), (_, zeros) in itertools.pairwise(runs(word))
    )


def is_balanced(word: str, deepest: int) -> bool:
    depths = list(itertools.accumulate((1 if letter == "a" else -1 for letter in word), initial=0))
    return depths[-1] == 0 and min(depths) >= 0 and max(depths) <= deepest


MEMBERSHIP = {
    "tomita-1": lambda word: "0" not in word,
    "tomita-2": lambda word: word == "10" * (len(word) // 2),
    "tomita-3": no_odd_ones_before_odd_zeros,
    "tomita-4": lambda word: "000" not in word,
    "tomita-5": lambda word: word.count("0") % 2 == word.count("1") % 2 == 0,
    "tomita-6": lambda word: (word.count("0") - word.count("1")) % 3 == 0,
    "tomita-7": lambda word: word.count("10") <= 1,
    "parity": lambda word: word.count("1") % 2 == 1,
    "aa-star": lambda word: len(word) % 2 == 0,
    "aaaa-star": lambda word: len(word) % 4 == 0,
    "abab-star": lambda word: word == "abab" * (len(word) // 4),
    "dyck-1-depth-2": lambda word: is_balanced(word, 2),
    "dyck-1-depth-3": lambda word: is_balanced(word, 3),
    "dyck-1-depth-4": lambda word: is_balanced(word, 4),
    "dyck-1-depth-12": lambda word: is_balanced(word, 12),
    "five-blocks": lambda word: [letter for letter, _ in runs(word)] == list("abcde"),
    "ab-d-bc": lambda word: re.fullmatch("[ab]*d[bc]*", word) is not None,
    "zero-then-twos": lambda word: re.fullmatch("[012]*02*", word) is not None,
}
"""The eighteen languages in other words than those of their files."""

FOLLOWED = [
    "tomita-1",
    "tomita-2",
    "tomita-3",
    "tomita-4",
    "tomita-7",
    "dyck-1-depth-2",
    "dyck-1-depth-3",
    "dyck-1-depth-4",
    "dyck-1-depth-12",
    "five-blocks",
    "ab-d-bc",
]
"""Those whose labels are the symbols that may come next."""

MIXED = [*FOLLOWED, "abab-star"]
ALWAYS_IN_DANGER = ["tomita-1", "tomita-2", "abab-star", "five-blocks", "ab-d-bc"]
"""Those in which every living state has an illegal symbol."""


def automaton_of(name: str, **arguments: str) -> Automaton:
    changed = ",".join(f"{key}={value}" for key, value in arguments.items())
    return load_task(f"{name}:{changed}" if changed else name).automaton


def all_texts(automaton: Automaton, length: int) -> list[str]:
    return ["".join(word) for word in itertools.product(automaton.symbols, repeat=length)]


def labels_after(automaton: Automaton, texts: list[str]) -> list[str]:
    """The label of each of some words of one length."""
    words = [[automaton.symbols.index(letter) for letter in text] for text in texts]
    return [automaton.labels[label] for label in automaton.labels_of(words)[:, -1]]


@pytest.mark.parametrize("name", MEMBERSHIP)
def test_members_are_those_of_the_definition(name):
    automaton = automaton_of(name, **({"labels": "membership"} if name in FOLLOWED else {}))
    for length in range(1, 13):
        if automaton.num_symbols**length > 5000:
            break
        texts = all_texts(automaton, length)
        found = labels_after(automaton, texts)
        assert found == [str(int(MEMBERSHIP[name](text))) for text in texts]
    assert length > 5


@pytest.mark.parametrize("name", FOLLOWED)
def test_next_symbols_are_those_from_which_some_member_is_reached(name):
    automaton = automaton_of(name)
    length, missing = {"five-blocks": (2, 4), "ab-d-bc": (3, 1)}.get(name, (5, 6))

    def can_become_a_member(text: str) -> bool:
        return any(
            MEMBERSHIP[name](text + more)
            for further in range(missing + 1)  # to close every bracket, or for all blocks
            for more in all_texts(automaton, further)
        )

    texts = [text for end in range(1, length + 1) for text in all_texts(automaton, end)]
    for text in texts:
        legal = filter(lambda letter: can_become_a_member(text + letter), automaton.symbols)
        assert labels_after(automaton, [text]) == ["".join(legal) or "none"], text


@pytest.mark.parametrize("name", MIXED)
def test_slips_are_the_illegal_symbols_and_change_no_label(name):
    mixed, plain = automaton_of(name), automaton_of(name, words="uniform")
    assert equivalent(mixed, plain)
    smallest = minimise(mixed.with_uniform_weights())
    assert smallest.num_states == plain.num_states == minimise(plain).num_states
    members = automaton_of(name, words="members")
    alive = reachable(members.delta, members.start, members.drawable)
    assert alive.sum() == plain.num_states - 1
    assert mixed.drawable.all()
    assert not (mixed.weights.astype(bool) & mixed.slips.astype(bool)).any()


acceptors = st.integers(1, 6).flatmap(
    lambda num_states: st.tuples(
        st.lists(
            st.lists(st.integers(0, num_states - 1), min_size=3, max_size=3),
            min_size=num_states,
            max_size=num_states,
        ),
        st.lists(st.booleans(), min_size=num_states, max_size=num_states),
    )
)


@settings(deadline=None, max_examples=200)
@given(acceptor=acceptors)
def test_nothing_after_a_slip_tells_of_it(acceptor):
    delta, accepting = (np.array(part) for part in acceptor)
    kept = np.flatnonzero(reachable(delta, 0))
    delta, accepting = np.searchsorted(kept, delta[kept]), accepting[kept]
    try:
        mixed = language(delta, accepting, "xyz", "membership", "mixed")
        members = language(delta, accepting, "xyz", "membership", "members")
    except TaskError:
        return
    plain = language(delta, accepting, "xyz", "membership", "uniform")
    assert equivalent(mixed, plain) and equivalent(members, plain)
    unlabelled = Automaton(
        mixed.delta, [0] * mixed.num_states, weights=mixed.weights, slips=mixed.slips, slip_rate=1
    )
    living = reachable(members.delta, members.start, members.drawable).sum()
    assert minimise(unlabelled).num_states <= living


@settings(deadline=None, max_examples=100)
@given(
    acceptor=acceptors,
    labels=st.sampled_from(["membership", "next-symbols", "states", "states-before"]),
    words=st.sampled_from(["uniform", "members", "mixed"]),
)
def test_no_two_states_have_the_same_answers_and_words(acceptor, labels, words):
    delta, accepting = (np.array(part) for part in acceptor)
    kept = np.flatnonzero(reachable(delta, 0))
    delta, accepting = np.searchsorted(kept, delta[kept]), accepting[kept]
    try:
        found = language(delta, accepting, tuple("xyz"), labels, words)
    except TaskError:
        return
    assert found.num_states == minimise(found).num_states


def test_states_that_members_alone_tell_apart_are_one_where_next_symbols_are_asked_for():
    for words in ("uniform", "members"):
        asked = load_task(f"regex:(abab)*;labels=next-symbols,words={words}").automaton
        assert asked.num_states == 3 and asked.labels == ("a", "b", "none")
        assert asked.labels_of([[0, 1, 0, 1, 1, 0]]).tolist() == [[1, 0, 1, 0, 2, 2]]


@pytest.mark.parametrize("words", ["uniform", "members", "mixed"])
def test_states_are_those_that_some_continuation_tells_apart(words):
    """By Python's own matching: words share a label exactly where no suffix tells them apart."""
    task = load_task(f"regex:(ab|ba)*b?;labels=states,words={words}").automaton
    texts = ["".join(w) for n in range(5) for w in itertools.product("ab", repeat=n) if n]
    symbols = [[task.symbols.index(letter) for letter in text] for text in texts]
    label = [task.labels_of([word])[0, -1] for word in symbols]
    pattern = re.compile("(ab|ba)*b?")
    suffixes = ["".join(w) for n in range(4) for w in itertools.product("ab", repeat=n)]
    seen = [tuple(bool(pattern.fullmatch(text + s)) for s in suffixes) for text in texts]
    for one, other in itertools.combinations(range(len(texts)), 2):
        assert (label[one] == label[other]) == (seen[one] == seen[other]), (
            texts[one],
            texts[other],
        )


@pytest.mark.parametrize("words", ["uniform", "members", "mixed"])
def test_states_before_are_the_states_one_symbol_later(words):
    now, before = (
        load_task(f"regex:(ab|ba)*b?;labels={labels},words={words}").automaton
        for labels in ("states", "states-before")
    )
    drawn = next(iter(stream_words(before, num_words=64, length=30, seed=1))).symbols
    labels = now.labels_of(drawn)
    named = np.array([[before.labels[each] for each in row] for row in before.labels_of(drawn)])
    expected = np.array([[now.labels[each] for each in row] for row in labels])
    assert (named[:, 1:] == expected[:, :-1]).all()
    assert (named[:, 0] == now.labels[now.output[now.start]]).all()
    law = [now.weights[now.states_after(w[None, :-1])[0, -1]] for w in drawn]
    other = [before.weights[before.states_after(w[None, :-1])[0, -1]] for w in drawn]
    assert np.allclose(law, other)


@pytest.mark.parametrize("name", ["regex:(ab)*", "regex:(aab|ab)*", "tomita-3", "dyck-1-depth-3"])
def test_the_algebra_of_a_language_is_that_of_its_smallest_automaton(name):
    """Dead states that differ only in how words that have slipped go on are one for it."""
    task = load_task(name)
    smallest = minimise(task.automaton.with_uniform_weights())
    assert smallest.num_states < task.automaton.num_states
    found, expected = analyse(task.automaton), analyse(smallest)
    assert found.machine.automaton.num_states == smallest.num_states
    assert found.to_json() == expected.to_json()
    for model in MODELS:
        one, other = predict(found, model), predict(expected, model)
        assert without_words(one) == without_words(other)


def without_words(found: Prediction) -> Prediction:
    """A prediction without witnesses, which are told in the states of one automaton."""
    longer = found.generalises and replace(found.generalises, witness=None)
    return replace(found, witness=None, generalises=longer)


def share_alive(automaton: Automaton, length: int) -> float:
    """How many words have not slipped, from the list of all of them."""
    words, chances = automaton.list_words(LengthDistribution(length, length))
    return chances[is_alive(automaton, words.symbols)].sum()


def is_alive(automaton: Automaton, words: np.ndarray) -> np.ndarray:
    dead = np.array([state.startswith("dead") for state in automaton.states])
    return ~dead[automaton.states_after(words)[:, -1]]


def expected_share(length: int, rate: float = SLIP_RATE) -> float:
    return math.exp(
        math.lgamma(length + 1) + math.lgamma(1 + rate) - math.lgamma(length + 1 + rate)
    )


@pytest.mark.parametrize("name", ALWAYS_IN_DANGER)
def test_the_share_of_words_without_a_slip_is_a_quotient_of_gammas(name):
    automaton = automaton_of(name)
    length = 4 if name == "five-blocks" else 6
    assert share_alive(automaton, length) == pytest.approx(expected_share(length))


def test_at_every_length_many_words_live_and_many_have_slipped():
    assert automaton_of("tomita-1").floors([10, 500]) == pytest.approx(
        {10: expected_share(10), 500: 1 - expected_share(500)}
    )
    assert expected_share(10) == pytest.approx(0.50, abs=0.01)
    assert expected_share(500) == pytest.approx(0.19, abs=0.01)


@pytest.mark.parametrize("name", MIXED)
def test_words_without_a_slip_are_weighed_by_how_often_they_could_have_slipped(name):
    mixed, members = automaton_of(name), automaton_of(name, words="members")
    lengths = LengthDistribution(4, 4)
    words, chances = mixed.list_words(lengths)
    alive = is_alive(mixed, words.symbols)
    legal, expected = members.list_words(lengths)
    np.testing.assert_array_equal(words.symbols[alive], legal.symbols)
    for position in range(4):
        before = members.states_after(legal.symbols)[:, position - 1] if position else np.zeros(1)
        in_danger = (members.weights[before.astype(int)] == 0).any(axis=1)
        expected = expected * np.where(in_danger, (position + 1) / (position + 1 + SLIP_RATE), 1)
    np.testing.assert_allclose(chances[alive], expected)


@pytest.mark.parametrize("name", ["tomita-4", "dyck-1-depth-3", "five-blocks"])
def test_the_beginning_of_a_random_word_is_a_random_word(name):
    automaton = automaton_of(name)
    short, expected = automaton.list_words(LengthDistribution(3, 3))
    long, chances = automaton.list_words(LengthDistribution(5, 5))
    found = {word.tobytes(): 0.0 for word in short.symbols}
    for word, chance in zip(long.symbols, chances, strict=True):
        found[word[:3].tobytes()] += chance
    np.testing.assert_allclose(list(found.values()), expected)


def test_long_words_slip_as_often_as_short_ones_at_the_same_position():
    automaton = automaton_of("tomita-2")
    pieces = stream_words(automaton, num_words=20_000, length=200, seed=0, chunk=20_000 * 30)
    words = np.concatenate([piece.symbols for piece in pieces], axis=1)
    for length in (10, 30, 31, 200):
        share = is_alive(automaton, words[:, :length]).mean()
        assert share == pytest.approx(expected_share(length), abs=0.014)  # four deviations


@pytest.mark.parametrize("name", ["tomita-1", "tomita-2", "tomita-4", "five-blocks"])
def test_the_last_two_symbols_tell_the_label_of_members_but_not_of_mixed_words(name):
    def last_labels(automaton):
        words, _ = automaton.list_words(LengthDistribution(6, 6))
        found = {}
        for word, label in zip(words.symbols, automaton.labels_of(words.symbols), strict=True):
            found.setdefault(word[-2:].tobytes(), set()).add(int(label[-1]))
        return found.values()

    assert all(len(labels) == 1 for labels in last_labels(automaton_of(name, words="members")))
    assert all(len(labels) == 2 for labels in last_labels(automaton_of(name)) if 0 in labels)


def test_a_word_that_ends_in_0_is_followed_by_no_2s_and_yet_a_member():
    task = load_task("zero-then-twos")
    assert task.format_labels(task.parse_word("0 1 0 0 2")) == "1 0 1 1 1"


def test_an_odd_run_of_ones_can_be_followed_by_a_zero_as_another_one_may_come():
    task = load_task("tomita-3")
    assert task.format_labels(task.parse_word("1 0 0 1 1 1 0 0")) == "01 0 01 01 01 01 0 01"
    members = automaton_of("tomita-3", labels="membership")
    found = [labels_after(members, [text]) for text in ("1", "10", "100")]
    assert found == [["1"], ["0"], ["1"]]


@pytest.mark.parametrize(
    ("length", "word", "value"),
    [(5, "1 + 2 * 3", 7), (7, "4 * 3 - 2 * 4", 4), (9, "2 - 3 * 4 + 1 * 3", -7)],
)
def test_expressions_of_any_length_have_their_value(length, word, value):
    task = load_task("modular-arithmetic")
    symbols = task.parse_word(word)
    assert len(symbols) == length
    assert task.format_labels(symbols).split()[-1] == str(value % 5)


def test_the_published_parity_is_the_other_label_of_parity():
    even = automaton_of("ends-with-ab", alphabet='"01"', pattern='"0*(10*10*)*"')
    parity = automaton_of("parity")
    assert (even.labels_of([0, 1, 1, 0, 1]) != parity.labels_of([0, 1, 1, 0, 1])).all()
    assert equivalent(even, Automaton(parity.delta, 1 - parity.output))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tomita-5:labels=next-symbols", "always the same: every symbol is legal everywhere"),
        ("tomita-5:words=mixed", "there is none in this language: use 'uniform'"),
        ("ends-with-ab:pattern=aab?,words=members", "'members' have only symbols after which"),
        ("ends-with-ab:pattern=aab?,words=mixed", "'mixed' have only symbols after which"),
        ("ends-with-ab:pattern=a&b", "the language has no member"),
        ("tomita-1:words=all", "'words'"),
        ("tomita-1:labels=all", "'labels'"),
        ("product(tomita-1,tomita-2)", "only one factor can have words that slip: use"),
        (
            "product(tomita-1:words=members,tomita-2,tomita-3)",
            "only one factor can have words that slip",
        ),
    ],
)
def test_what_cannot_be_asked_or_drawn_is_refused(name, message):
    with pytest.raises(TaskError) as caught:
        load_task(name)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_words_of_members_are_uniform_where_nothing_is_illegal():
    assert automaton_of("tomita-5", words="members").uniform_weights
