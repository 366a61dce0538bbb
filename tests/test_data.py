"""Lengths, batches, streams of words and fixed sets of words."""

import hashlib
import pickle
from collections import Counter
from functools import cache
from itertools import islice, product
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from statetrack.data import draw_distinct, fixed_words, stream_words
from statetrack.data import stream as tensor_stream
from statetrack.errors import SettingsError
from statetrack.sources import (
    Automaton,
    Batch,
    LengthDistribution,
    RandomBits,
    TensorBatch,
    WordStream,
    parse_lengths,
)
from statetrack.sources.randomness import one_of
from statetrack.spec import TaskSpec, load_task, task_names
from statetrack.sweep import Suite

GOLDEN = Path(__file__).parent / "golden" / "data.yaml"

COUNTER = Automaton([[0, 1, 2], [1, 2, 0], [2, 0, 1]])
"""Adds its symbols modulo 3."""

GATED = Automaton(
    [[1, 0, 2], [2, 1, 0], [0, 1, 2]],
    output=[1, 0, 1],
    weights=[[0.7, 0.3, 0.0], [0.0, 1.0, 3.0], [1.0, 0.0, 0.0]],
    scored=[True, False, True],
)
"""Has weights with zeros at every place of a row, and a state that is not scored."""

SLIPPING = Automaton(
    GATED.delta,
    GATED.output,
    weights=GATED.weights,
    scored=GATED.scored,
    slips=[[0.0, 1.0, 3.0], [0.0, 0.0, 0.0], [0.0, 0.2, 0.0]],
    slip_rate=1.5,
)
"""The same with slips: on a symbol that is drawn anyway, in one state never, and at a row's end."""


every_law = pytest.mark.parametrize(
    "automaton", [COUNTER, GATED, SLIPPING], ids=["uniform", "weighted", "slipping"]
)


def lengths_of(text, curriculum=0.0):
    return LengthDistribution.parse(text, curriculum)


def stream(automaton=COUNTER, lengths="2-10", supervision="every", seed=0, purpose="train"):
    return WordStream(automaton, lengths_of(lengths), supervision, seed, purpose)


def words_of(batch):
    """The words of a batch as a list of tuples."""
    rows = batch.symbols.reshape(-1, batch.symbols.shape[-1])
    return [
        tuple(row[:length].tolist())
        for row, length in zip(rows, batch.lengths.ravel(), strict=True)
    ]


def assert_same(left, right):
    for name in ("symbols", "labels", "scored", "lengths"):
        np.testing.assert_array_equal(getattr(left, name), getattr(right, name), name)


def chi_square_is_small(counts, expected):
    """Five standard deviations above the mean of the chi-square distribution."""
    freedom = len(counts) - 1
    statistic = ((counts - expected) ** 2 / expected).sum()
    return statistic < freedom + 5 * np.sqrt(2 * freedom)


# Random bits


def test_bits_read_in_pieces_are_those_read_at_once():
    whole = RandomBits(3, "train").read(0, 1000)
    for first, count in [(0, 1), (1, 2), (999, 1), (17, 500), (18, 501), (500, 500), (0, 1000)]:
        pieces = RandomBits(3, "train")
        pieces.read(123, 45)
        np.testing.assert_array_equal(pieces.read(first, count), whole[first : first + count])


def test_random_bits_of_other_seeds_purposes_or_variants_are_others():
    sequences = [
        RandomBits(seed, purpose, variant).read(0, 50).tobytes()
        for seed, purpose, variant in product(
            range(3), ("train", "validation", "test", "distinct", "shuffle", "repeat"), range(3)
        )
    ]
    assert len(set(sequences)) == len(sequences)


def test_numbers_below_a_bound_reach_both_ends_and_no_further():
    ends = np.array([0, 2**32 - 1], np.uint32)
    for bound in (1, 2, 7, 120, 1000):
        assert one_of(bound, ends).tolist() == [0, bound - 1]


# Lengths


@pytest.mark.parametrize(
    ("text", "shortest", "longest"), [("2-10", 2, 10), ("500", 500, 500), (" 1-1 ", 1, 1)]
)
def test_a_length_distribution_is_read_from_text(text, shortest, longest):
    lengths = lengths_of(text)
    assert (lengths.shortest, lengths.longest) == (shortest, longest)
    assert LengthDistribution.parse(str(lengths)) == lengths


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("10-2", "lengths are out of order: write 2-10"),
        ("0", "0 is not from 1 to 1000000"),
        ("0-5", "0 is not from 1 to 1000000"),
        ("2-1000001", "1000001 is not from 1 to 1000000"),
        ("-3", "length '-3': not a length"),
        ("ten", "length 'ten': not a length"),
        ("2.5", "not a length"),
        ("", "not a length"),
    ],
)
def test_a_length_that_cannot_be_is_refused_in_one_line(text, message):
    with pytest.raises(SettingsError) as caught:
        lengths_of(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("curriculum", [-0.1, 1.5, float("nan")])
def test_a_curriculum_that_is_no_fraction_is_refused(curriculum):
    with pytest.raises(SettingsError, match="must be a fraction of training from 0 to 1"):
        lengths_of("2-10", curriculum)


def test_all_lengths_of_a_range_are_drawn_equally_often():
    drawn = lengths_of("2-10").draw(RandomBits(0, "train").read(0, 90_000))
    counts = np.bincount(drawn, minlength=11)
    assert counts[:2].sum() == 0 and counts.sum() == 90_000
    assert chi_square_is_small(counts[2:], 10_000)


def test_a_curriculum_grows_from_the_shortest_to_all_lengths():
    lengths = lengths_of("2-10", 0.5)
    progress = np.array([0.0, 0.0624, 0.0626, 0.25, 0.4999, 0.5, 1.0])
    assert lengths.longest_at(progress).tolist() == [2, 2, 3, 6, 9, 10, 10]
    bits = RandomBits(0, "train").read(0, 9000).reshape(3, 3000)
    drawn = lengths.draw(bits, np.array([[0.0], [0.25], [1.0]]))
    assert [sorted(set(row)) for row in drawn.tolist()] == [
        [2],
        list(range(2, 7)),
        list(range(2, 11)),
    ]


def test_lengths_to_evaluate_at_are_sorted_and_stand_once():
    assert parse_lengths(["500", "10-40:10", "20", "7"]) == [7, 10, 20, 30, 40, 500]
    assert parse_lengths(["10-19:4"]) == [10, 14, 18]
    assert parse_lengths(["1000000"]) == [1_000_000]
    assert parse_lengths([]) == []
    assert parse_lengths(["10, 100,20-40:20", "5"]) == [5, 10, 20, 40, 100]


def test_lengths_by_a_factor_are_rounded_and_end_at_the_last():
    assert parse_lengths(["10-100000:x10"]) == [10, 100, 1000, 10_000, 100_000]
    assert parse_lengths(["10-99999:x10"]) == [10, 100, 1000, 10_000]
    assert parse_lengths(["3-50:x2"]) == [3, 6, 12, 24, 48]
    assert parse_lengths(["10-60:x1.5"]) == [10, 15, 23, 34, 51]
    assert parse_lengths(["1-4:x1.01"]) == [1, 2, 3, 4]
    assert parse_lengths(["7-7:x10,2-4:x2"]) == [2, 4, 7]
    assert len(parse_lengths(["1-1000000:x1.01"])) < 1400


def test_task_and_suite_files_take_ranges_of_lengths():
    spec = TaskSpec(
        title="", version=1, reference="", automaton={"kind": "x"}, test_lengths=[5, "10-1000:x10"]
    )
    assert spec.test_lengths == (5, 10, 100, 1000)
    suite = Suite(
        title="a",
        models={"m": "lstm"},
        tasks={"t": "parity"},
        curve_lengths="20-40:10",
        horizon_lengths=[7],
    )
    assert (suite.curve_lengths, suite.horizon_lengths) == ((20, 30, 40), (7,))
    with pytest.raises(SettingsError, match=r"^curve_lengths: length '9-2:x2': lengths are out of"):
        Suite(title="a", models={"m": "lstm"}, tasks={"t": "parity"}, curve_lengths=["9-2:x2"])


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["10-2:1"], "lengths are out of order: write 2-10:1"),
        (["10-20:0"], "the step is 0"),
        (["0"], "0 is not from 1 to 1000000"),
        (["1-1000001:100000"], "1000001 is not from 1"),
        (["2-10"], "not a length: write 500 for one, 10,50,200 for several, 10-1000:10"),
        (["10,"], "length '': not a length"),
        (["10-90:x1"], "the factor must be at least 1.01: write 10-90:x2, or a step as 10-90:8"),
        (["10-90:x0"], "the factor must be at least 1.01"),
        (["10-90:2.5"], "not a length"),
        (["90-10:x2"], "lengths are out of order: write 10-90:x2"),
        (["10-2000000:x10"], "2000000 is not from 1 to 1000000"),
        (["1e3"], "not a length"),
        (["1-100000:1"], "names 100000 lengths, the most is 10000"),
        (["1-10000:1", "10001-20000:1"], "20000 lengths are named, the most is 10000"),
    ],
)
def test_lengths_to_evaluate_at_that_cannot_be_are_refused(texts, message):
    with pytest.raises(SettingsError) as caught:
        parse_lengths(texts)
    assert message in str(caught.value)


# Labels and masks


def run_one_by_one(automaton, word):
    """The states after each symbol of one word, straight from the table."""
    state, states = automaton.start, []
    for symbol in word:
        state = int(automaton.delta[state, symbol])
        states.append(state)
    return states


@pytest.mark.parametrize("automaton", [COUNTER, GATED], ids=["all scored", "partly scored"])
@pytest.mark.parametrize("supervision", ["every", "last"])
def test_labels_and_masks_are_those_of_running_the_automaton(automaton, supervision):
    batch = stream(automaton, "1-12", supervision).block(0, 20, 16)
    assert batch.symbols.shape == (20, 16, 12)
    for index in np.ndindex(20, 16):
        length = batch.lengths[index]
        states = run_one_by_one(automaton, batch.symbols[index][:length])
        asked = [bool(automaton.scored[state]) for state in states]
        if supervision == "last":
            last = max((time for time, is_asked in enumerate(asked) if is_asked), default=None)
            asked = [time == last for time in range(length)]
        assert batch.labels[index][:length].tolist() == automaton.output[states].tolist()
        assert batch.scored[index].tolist() == asked + [False] * (12 - length)
        assert not batch.symbols[index][length:].any() and not batch.labels[index][length:].any()


def test_a_word_without_a_scored_symbol_asks_for_nothing():
    batch = GATED.label_words(np.array([[0]], np.uint8), np.array([1]), "last")
    assert batch.labels.tolist() == [[0]] and batch.scored.tolist() == [[False]]


def test_large_alphabets_get_a_wider_type():
    wide = Automaton((np.arange(300)[:, None] + np.arange(300)) % 300)
    batch = stream(wide, "5").block(0, 4, 64)
    assert batch.symbols.dtype == batch.labels.dtype == np.uint16
    assert batch.symbols.max() > 255
    np.testing.assert_array_equal(batch.labels, batch.symbols.cumsum(-1) % 300)


# Streams


@settings(max_examples=40, deadline=None)
@given(
    first=st.integers(0, 200),
    num_batches=st.integers(1, 9),
    batch_size=st.integers(1, 7),
    lengths=st.sampled_from(["1", "2-10", "4-7"]),
    weighted=st.booleans(),
)
def test_a_batch_does_not_depend_on_the_block_it_comes_in(
    first, num_batches, batch_size, lengths, weighted
):
    words = stream(GATED if weighted else COUNTER, lengths)
    block = words.block(first, num_batches, batch_size)
    for number in range(num_batches):
        alone = stream(GATED if weighted else COUNTER, lengths)
        assert_same(block[number], alone.block(first + number, 1, batch_size)[0])


def test_under_a_curriculum_only_the_padding_depends_on_the_block():
    lengths = lengths_of("2-20", 0.8)
    words = WordStream(COUNTER, lengths, "every", 0, "train")
    progress = np.arange(50) / 50
    block = words.block(0, 50, 8, progress)
    assert block.symbols.shape == (50, 8, 20)
    assert block.lengths[0].max() == 2 and block.lengths[-1].max() > 10
    for number in (0, 10, 33):
        alone = words.block(number, 1, 8, progress[number])[0]
        width = alone.symbols.shape[-1]
        assert width == lengths.longest_at(progress[number])
        np.testing.assert_array_equal(block[number].symbols[:, :width], alone.symbols)
        np.testing.assert_array_equal(block[number].scored[:, :width], alone.scored)
        assert not block[number].scored[:, width:].any()


def test_streams_of_other_seeds_and_purposes_share_no_batch():
    blocks = [
        stream(lengths="30", seed=seed, purpose=purpose).block(0, 20, 8)
        for seed in range(4)
        for purpose in ("train", "validation", "test")
    ]
    words = [word for block in blocks for word in words_of(block)]
    assert len(set(words)) == len(words)


def test_symbols_without_weights_are_independent_and_uniform():
    symbols = stream(lengths="2").block(0, 100, 900).symbols.reshape(-1, 2).astype(int)
    pairs = np.bincount(symbols[:, 0] * 3 + symbols[:, 1], minlength=9)
    assert chi_square_is_small(pairs, 10_000)


def test_symbols_are_drawn_by_the_weights_of_the_state_they_are_read_in():
    words = stream(GATED, "6").block(0, 100, 500).symbols.reshape(-1, 6)
    states = GATED.states_after(words)
    before = np.concatenate([np.full((len(words), 1), GATED.start), states[:, :-1]], axis=1)
    counts = np.zeros((3, 3))
    np.add.at(counts, (before, words), 1)
    assert (counts[GATED.weights == 0] == 0).all()
    for state in (0, 1):
        possible = GATED.weights[state] > 0
        expected = counts[state].sum() * GATED.weights[state][possible]
        assert chi_square_is_small(counts[state][possible], expected)


def test_slips_are_drawn_by_the_position_and_the_state_they_are_made_in():
    words = stream(SLIPPING, "6").block(0, 100, 500).symbols.reshape(-1, 6)
    expected = every_word(SLIPPING, 6, 6)
    counts = dict.fromkeys(expected, 0)
    for word in map(tuple, words.tolist()):
        counts[word] += 1
    likely = [word for word, chance in expected.items() if chance * len(words) > 5]
    rest = 1 - sum(expected[word] for word in likely)
    found = [counts[word] for word in likely]
    shares = np.array([*(expected[word] for word in likely), rest])
    assert len(likely) > 50
    assert chi_square_is_small(np.array([*found, len(words) - sum(found)]), shares * len(words))


def test_the_first_and_the_last_point_of_the_line_draw_a_symbol_that_is_allowed():
    ends = np.array([[0], [2**32 - 1]], np.uint32)
    for automaton, state, first, last in [
        (GATED, 0, 0, 1),
        (GATED, 1, 1, 2),
        (GATED, 2, 0, 0),
        (SLIPPING, 0, 0, 2),
        (SLIPPING, 1, 1, 2),
        (SLIPPING, 2, 0, 1),
    ]:
        drawn = automaton._drawn(ends, np.array([state, state]))
        assert drawn.ravel().tolist() == [first, last]


# Streams of tensors


def assert_tensors_are(tensors, batch):
    assert [part.dtype for part in tensors] == [torch.int64, torch.int64, torch.bool]
    for part, expected in zip(tensors, (batch.symbols, batch.labels, batch.scored), strict=True):
        np.testing.assert_array_equal(part.numpy(), expected)


@pytest.mark.parametrize("shape", [(4,), (3, 4)])
def test_a_batch_becomes_tensors_of_its_own(shape):
    batch = stream(GATED).block(0, 3, 4)
    batch = batch[0] if len(shape) == 1 else batch
    tensors = batch.to_torch()
    assert_tensors_are(tensors, batch)
    tensors.scored.zero_()
    assert batch.scored.any()


@pytest.mark.parametrize("name", ["s3", "flip-flop", "dyck-1"])
def test_a_stream_of_tensors_has_the_batches_that_training_draws(name):
    task = load_task(name)
    lengths = LengthDistribution(*task.spec.train_length)
    words = WordStream(task.source, lengths, task.spec.supervision, 7, "train")
    tensors = tensor_stream(task, batch_size=5, seed=7)
    for number, found in enumerate(islice(tensors, 4)):
        assert_tensors_are(found, words.block(number, 1, 5)[0])
    symbols, labels, scored = tensors[2]
    assert symbols.shape == labels.shape == scored.shape == (5, lengths.longest)


@pytest.mark.filterwarnings("ignore:This DataLoader will create", "ignore:This process")
@pytest.mark.parametrize("num_workers", [0, 1, 3])
def test_workers_of_a_loader_read_every_batch_once_and_in_order(num_workers):
    words = tensor_stream(load_task("s5"), batch_size=3, length=20)
    loader = torch.utils.data.DataLoader(words, batch_size=None, num_workers=num_workers)
    for number, found in enumerate(islice(loader, 10)):
        assert isinstance(found, TensorBatch)
        assert torch.equal(found.symbols, words[number].symbols)
        assert torch.equal(found.scored, words[number].scored)


def test_a_stream_of_tensors_can_be_sent_to_another_process():
    words = tensor_stream(load_task("flip-flop"), batch_size=4)
    again = pickle.loads(pickle.dumps(words))
    assert torch.equal(again[5].symbols, words[5].symbols)


def test_a_stream_takes_lengths_and_supervision_and_refuses_wrong_ones():
    task = load_task("s3")
    symbols, _, scored = tensor_stream(task, batch_size=6, length="3-12", supervision="last")[0]
    assert symbols.shape == (6, 12) and (scored.sum(1) == 1).all()
    for wrong in ({"batch_size": 0}, {"length": "12-3"}):
        with pytest.raises(SettingsError, match=r"give a whole number|out of order"):
            tensor_stream(task, **wrong)


# Long words


@every_law
@pytest.mark.parametrize("chunk", [1, 21, 100, 10**6])
def test_pieces_of_long_words_join_to_the_same_words(automaton, chunk):
    pieces = list(stream_words(automaton, 7, 53, seed=5, chunk=chunk))
    whole = next(stream_words(automaton, 7, 53, seed=5))
    joined = Batch(
        *(
            np.concatenate([getattr(piece, name) for piece in pieces], axis=1)
            for name in ("symbols", "labels", "scored")
        ),
        sum(piece.lengths for piece in pieces),
    )
    assert_same(joined, whole)
    assert max(piece.symbols.shape[1] for piece in pieces) == max(1, min(53, chunk // 7))
    assert_same(whole, automaton.label_words(whole.symbols, whole.lengths))


def test_long_words_of_other_lengths_or_seeds_are_independent():
    def first_word(length, seed):
        return tuple(next(stream_words(COUNTER, 1, length, seed)).symbols[0, :40].tolist())

    assert len({first_word(length, seed) for length in (40, 41, 500) for seed in (0, 1)}) == 6


def test_long_words_take_constant_memory():
    largest = 0
    for piece in stream_words(COUNTER, 10, 50_000, seed=0, chunk=1000):
        largest = max(largest, piece.symbols.size)
    assert largest == 1000


# Distinct words


def every_word(automaton, shortest, longest):
    """All words that may be drawn, with their chances, by trying every sequence of symbols."""
    found = {}
    for length in range(shortest, longest + 1):
        for word in product(range(automaton.num_symbols), repeat=length):
            before = [automaton.start, *run_one_by_one(automaton, word)][:-1]
            chance = 1 / (longest - shortest + 1)
            for position, (state, symbol) in enumerate(zip(before, word, strict=True)):
                rate = automaton.slip_rate if automaton.slips[state].any() else 0
                at_slip = rate / (position + 1 + rate)
                chance *= (1 - at_slip) * automaton.weights[state, symbol] + (
                    at_slip * automaton.slips[state, symbol]
                )
            if chance > 0:
                found[word] = chance
    return found


@every_law
def test_the_list_of_words_is_complete_and_knows_their_chances(automaton):
    words, chances = automaton.list_words(lengths_of("2-6"))
    expected = every_word(automaton, 2, 6)
    listed = [
        tuple(row[:length].tolist())
        for row, length in zip(words.symbols, words.lengths, strict=True)
    ]
    assert listed == list(expected)
    np.testing.assert_allclose(chances, list(expected.values()))
    assert chances.sum() == pytest.approx(1)
    assert automaton.count_words(lengths_of("2-6")) == len(expected)


def test_counting_words_stops_where_it_no_longer_matters():
    assert COUNTER.count_words(lengths_of("20")) == 3**20
    assert COUNTER.count_words(lengths_of("2-1000000")) == 2**53
    one_word = Automaton([[0]])
    assert one_word.count_words(lengths_of("1-100")) == 100


def test_distinct_words_follow_the_same_law_listed_or_drawn(monkeypatch):
    """The chance of each word to be among the first three, by either way of drawing."""
    few, seeds = lengths_of("1-2"), 1500
    keys = [bytes(word) for word in every_word(GATED, 1, 2)]

    def frequencies():
        drawn = Counter(
            key for seed in range(seeds) for key in draw_distinct(GATED, few, 3, seed).keys()
        )
        return np.array([drawn[key] / seeds for key in keys])

    listed = frequencies()
    monkeypatch.setattr(Automaton, "list_words", lambda automaton, lengths: None)
    drawn = frequencies()
    assert listed.sum() == pytest.approx(3)
    np.testing.assert_allclose(listed, drawn, atol=5 * np.sqrt(0.5 / seeds))
    assert np.ptp(listed) > 0.3


@pytest.mark.parametrize("text", ["2-10", "3-40"])
def test_distinct_words_are_distinct_and_avoid_the_excluded(text):
    lengths = lengths_of(text)
    first = draw_distinct(COUNTER, lengths, 3000, 0)
    second = draw_distinct(COUNTER, lengths, 3000, 0, excluded=first)
    assert len({*first.keys(), *second.keys()}) == 6000


def test_words_too_unlikely_to_be_found_are_refused_instead_of_sought_for_ever():
    stuck = Automaton([[0, 0]], weights=[[1.0, 1e-12]])
    with pytest.raises(SettingsError, match=r"only \d+ came up in \d+ draws"):
        draw_distinct(stuck, lengths_of("30"), 100, 0)


# Fixed sets of words


@pytest.mark.parametrize(("num_words", "num_held_out"), [(12, 0), (1, 11), (7, 5), (5, 3)])
@pytest.mark.parametrize("seed", range(5))
def test_training_and_held_out_words_never_meet(num_words, num_held_out, seed):
    fixed = fixed_words(COUNTER, lengths_of("1-2"), "every", num_words, num_held_out, seed)
    train, held_out = words_of(fixed.train), words_of(fixed.held_out)
    assert (len(train), len(held_out)) == (num_words, num_held_out)
    assert len({*train, *held_out}) == num_words + num_held_out
    assert {*train, *held_out} <= set(every_word(COUNTER, 1, 2))


def test_held_out_words_are_as_long_as_training_words():
    fixed = fixed_words(COUNTER, lengths_of("2-6"), "every", 300, 300, seed=1)
    assert abs(fixed.train.lengths.mean() - fixed.held_out.lengths.mean()) < 0.15


def test_more_words_than_there_are_is_refused_with_their_number():
    with pytest.raises(SettingsError, match="there are only 12 words of length 1-2"):
        fixed_words(COUNTER, lengths_of("1-2"), "every", 12, 1, seed=0)


def test_a_fixed_set_takes_no_curriculum():
    with pytest.raises(SettingsError, match="a fixed training set has all its lengths"):
        fixed_words(COUNTER, lengths_of("1-2", 0.5), "every", 5, 1, seed=0)


def test_forbidden_words_never_come_into_a_fixed_set():
    possible = every_word(GATED, 1, 6)
    fixed = fixed_words(GATED, lengths_of("1-6"), "every", len(possible), 0, seed=0)
    assert set(words_of(fixed.train)) == set(possible)


@pytest.mark.parametrize("batch_size", [1, 4, 12, 50])
def test_every_epoch_has_every_word_once_in_a_new_order(batch_size):
    fixed = fixed_words(COUNTER, lengths_of("1-2"), "every", 12, 0, seed=0)
    words = words_of(fixed.block(0, 600 // batch_size, batch_size))
    epochs = [tuple(words[start : start + 12]) for start in range(0, 600, 12)]
    assert len(epochs) == len(set(epochs)) == 50
    assert all(set(epoch) == set(words_of(fixed.train)) for epoch in epochs)


@settings(max_examples=40, deadline=None)
@given(first=st.integers(0, 50), num_batches=st.integers(1, 12), batch_size=st.integers(1, 30))
def test_a_batch_of_a_fixed_set_does_not_depend_on_its_block(first, num_batches, batch_size):
    fixed = fixed_words(COUNTER, lengths_of("1-2"), "last", 7, 5, seed=3)
    block = fixed.block(first, num_batches, batch_size)
    for number in range(num_batches):
        again = fixed_words(COUNTER, lengths_of("1-2"), "last", 7, 5, seed=3)
        assert_same(block[number], again.block(first + number, 1, batch_size)[0])


def test_fixed_sets_of_other_seeds_differ():
    sets = [
        frozenset(words_of(fixed_words(COUNTER, lengths_of("5"), "every", 100, 0, seed).train))
        for seed in range(5)
    ]
    assert len(set(sets)) == 5


# The same bytes on every machine


def data_hash(task):
    """SHA-256 over the first words of every kind of stream that a task's data come from."""
    source, lengths = task.source, LengthDistribution(*task.spec.train_length)
    supervision = task.spec.supervision
    batches = [
        WordStream(source, lengths, supervision, 0, purpose).block(0, 3, 5)
        for purpose in ("train", "validation", "test")
    ]
    batches.append(next(stream_words(source, 3, 40, seed=0)))
    batches.append(fixed_words(source, lengths, supervision, 8, 4, seed=0).block(0, 2, 5))
    digest = hashlib.sha256()
    for batch in batches:
        for array in (batch.symbols, batch.labels, batch.scored, batch.lengths):
            digest.update(array.astype("<i8").tobytes())
    return digest.hexdigest()


@cache
def fingerprints():
    return yaml.safe_load(GOLDEN.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", task_names())
def test_data_of_a_task_version_never_change(name):
    golden = fingerprints()
    task = load_task(name)
    version, found = task.spec.version, data_hash(task)
    recorded = golden.get(name, {})
    assert version in recorded, f"new data: add to {GOLDEN.name}:\n{name}:\n  {version}: {found}"
    assert recorded[version] == found, (
        f"the data of {name}, version {version}, have changed: raise `version` in its file, say "
        f"so in the changelog, and add to {GOLDEN.name} below `{name}:`\n  {version + 1}: {found}"
    )


def test_every_recorded_hash_belongs_to_a_task():
    assert set(fingerprints()) <= set(task_names())
