"""Tasks whose words come from a sampler: their labels, their laws, and what is done with them."""

import functools
import itertools
import json
import re
from collections import Counter

import numpy as np
import pytest
import torch

from statetrack import evaluation
from statetrack.cli.app import run
from statetrack.data import draw_splits, fixed_words, whole_words
from statetrack.errors import SettingsError, TaskError
from statetrack.evaluation import evaluate
from statetrack.models import RecurrentModel, SequenceModel
from statetrack.settings import Settings
from statetrack.sources import (
    LengthDistribution,
    Sampler,
    WordStream,
    build_automaton,
    build_source,
)
from statetrack.sources.automaton import LONGEST_WHOLE
from statetrack.spec import load_task, task_names
from tests.right_labels import check_labels

CPU = torch.device("cpu")

SAMPLER_TASKS = [name for name in task_names() if not load_task(name).has_automaton]
MIXED = ["dyck-1:words=mixed", "shuffle-2:words=mixed", "anbncn:words=mixed"]
EVERY = [*SAMPLER_TASKS, *MIXED, "boolean-3:words=mixed"]

every_sampler = pytest.mark.parametrize("name", EVERY)


def sampler_of(name: str) -> Sampler:
    source = load_task(name).source
    assert isinstance(source, Sampler)
    return source


def random_bits(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(2**32, size=shape, dtype=np.uint32)


def words_of(name: str, num_words: int, length: int, seed: int = 0) -> list[list[str]]:
    """Drawn words, as the names of their symbols."""
    sampler = sampler_of(name)
    batches = whole_words(sampler, num_words, length, seed)
    return [[sampler.symbols[s] for s in word] for batch in batches for word in batch.symbols]


loaded_once = functools.cache(load_task)


def labels_of(name: str, word: list[str]) -> list[str]:
    task = loaded_once(name)
    return task.format_labels(task.parse_word(" ".join(word))).split()


def labels_of_each(name: str, words: list[list[str]]) -> list[list[str]]:
    """The labels of words of one length, `-` where none is asked for."""
    source = loaded_once(name).source
    place = {symbol: index for index, symbol in enumerate(source.symbols)}
    labels, scored = source.read(np.array([[place[symbol] for symbol in word] for word in words]))
    named = np.where(scored, np.array(source.labels)[labels], "-")
    return named.tolist()


def every_word(name: str, longest: int) -> list[tuple[str, ...]]:
    symbols = sampler_of(name).symbols
    return [
        word for size in range(1, longest + 1) for word in itertools.product(symbols, repeat=size)
    ]


# --- what holds for every sampler ---


@every_sampler
def test_a_word_does_not_depend_on_those_drawn_beside_it(name):
    sampler = sampler_of(name)
    bits, lengths = random_bits(20, sampler.num_bits(11)), np.arange(20) % 11 + 1
    together = sampler.draw(bits, lengths, 11)
    for row in range(20):
        alone = sampler.draw(bits[row : row + 1], lengths[row : row + 1], 11)[0]
        np.testing.assert_array_equal(alone[: lengths[row]], together[row, : lengths[row]])


@every_sampler
@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 18])
def test_words_of_every_length_can_be_drawn_and_read(name, length):
    sampler = sampler_of(name)
    words = sampler.draw(random_bits(50, sampler.num_bits(length)), np.full(50, length), length)
    labels, scored = sampler.read(words)
    assert words.shape == labels.shape == scored.shape == (50, length)
    assert words.max() < sampler.num_symbols and labels.max() < sampler.num_labels
    assert words.dtype == labels.dtype == np.uint8


@every_sampler
def test_a_label_depends_on_the_symbols_before_it_alone(name):
    sampler = sampler_of(name)
    words = np.random.default_rng(0).integers(sampler.num_symbols, size=(200, 9))
    words[:100] = sampler.draw(random_bits(100, sampler.num_bits(9)), np.full(100, 9), 9)
    labels, scored = sampler.read(words)
    for size in range(1, 9):
        shorter, shorter_scored = sampler.read(words[:, :size])
        np.testing.assert_array_equal(shorter, labels[:, :size])
        np.testing.assert_array_equal(shorter_scored, scored[:, :size])
    stacked, _ = sampler.read(words.reshape(2, 100, 9))
    np.testing.assert_array_equal(stacked.reshape(200, 9), labels)


@every_sampler
def test_batches_of_a_stream_do_not_depend_on_their_block(name):
    lengths = LengthDistribution(2, 12, curriculum=1.0)
    stream = WordStream(sampler_of(name), lengths, "every", 5, "train")
    progress = np.array([0.2, 0.9, 1.0])
    block = stream.block(4, 3, 6, progress)
    for index in range(3):
        alone = stream.block(4 + index, 1, 6, progress[index])[0]
        size = alone.symbols.shape[1]
        np.testing.assert_array_equal(alone.symbols, block[index].symbols[:, :size])
        np.testing.assert_array_equal(alone.labels, block[index].labels[:, :size])
        np.testing.assert_array_equal(alone.lengths, block[index].lengths)


@every_sampler
def test_test_words_are_the_same_in_pieces_of_any_size(name):
    sampler = sampler_of(name)
    (together,) = whole_words(sampler, 7, 30, seed=3)
    pieces = list(whole_words(sampler, 7, 30, seed=3, chunk=65))
    assert [len(piece) for piece in pieces] == [2, 2, 2, 1]
    joined = np.concatenate([piece.symbols for piece in pieces])
    np.testing.assert_array_equal(joined, together.symbols)
    (other,) = whole_words(sampler, 7, 30, seed=4)
    assert (other.symbols != together.symbols).any()


# --- brackets ---


def legal_brackets(word: list[str], num_pairs: int) -> list[str]:
    """The labels by counting, one symbol at a time."""
    pairs = ["()", "[]", "{}", "<>", "+-", "ab"][:num_pairs]
    depth, labels = Counter(), []
    for symbol in word:
        pair = next(pair for pair in pairs if symbol in pair)
        depth[pair] += 1 if symbol == pair[0] else -1
        if labels[-1:] == ["none"] or depth[pair] < 0:
            labels.append("none")
        else:
            labels.append("".join(p if depth[p] else p[0] for p in pairs))
    return labels


@pytest.mark.parametrize(("task", "num_pairs"), [("dyck-1", 1), ("shuffle-2", 2), ("shuffle-6", 6)])
@pytest.mark.parametrize("words", ["members", "mixed"])
def test_legal_brackets_are_those_counted_by_hand(task, num_pairs, words):
    for word in words_of(f"{task}:words={words}", 100, 40):
        assert labels_of(task, word) == legal_brackets(word, num_pairs)


def test_any_word_of_brackets_is_read_as_counted_by_hand():
    for word in every_word("shuffle-2", 5):
        assert labels_of("shuffle-2", list(word)) == legal_brackets(list(word), 2), word


@pytest.mark.parametrize("length", [100, 400])
def test_walks_come_back_to_zero_at_all_lengths_and_are_deep_as_well(length):
    words = np.array(words_of("dyck-1", 2000, length))
    depth = np.where(words == "(", 1, -1).cumsum(axis=1)
    assert 0.35 < (depth[:, -1] == 0).mean() < 0.45
    deepest = depth.max(axis=1)
    assert (deepest > 10).mean() > 0.05 and deepest.max() > length**0.5
    assert depth.min() == 0


# --- blocks ---


@pytest.mark.parametrize(("task", "letters"), [("anbn", "ab"), ("anbncn", "abc")])
def test_legal_letters_are_those_with_which_a_member_goes_on(task, letters):
    members = ["".join(letter * n for letter in letters) for n in range(1, 12)]
    for word in every_word(task, 8 if letters == "ab" else 7):
        expected = []
        for size in range(1, len(word) + 1):
            begun = [m for m in members if m.startswith("".join(word[:size]))]
            following = sorted({m[size] for m in begun if len(m) > size})
            whole = any(len(m) == size for m in begun)
            expected.append("".join(following) if following else "end" if whole else "none")
        assert labels_of(task, list(word)) == expected, word


@pytest.mark.parametrize(("task", "num_letters"), [("anbn", 2), ("anbncn", 3), ("anbncndn", 4)])
def test_half_of_the_words_have_blocks_as_short_as_can_be(task, num_letters):
    length = 12 * num_letters
    words = words_of(task, 4000, length)
    blocks = Counter(word.count("a") for word in words)
    assert min(blocks) == 12 and max(blocks) == length
    others = length - 12 + 1
    assert blocks[12] / 4000 == pytest.approx(0.5 + 0.5 / others, abs=0.03)
    assert len(blocks) == others
    assert blocks[13] / 4000 == pytest.approx(0.5 / others, abs=0.02)
    ends = [labels_of(task, word)[-1] == "end" for word in words[:200]]
    assert ends == [word.count("a") == 12 for word in words[:200]]


# --- expressions of truth values ---

ARITY = {"0": 0, "1": 0, "~": 1, "+": 2, ">": 3, "*": 4, "^": 5}


def end_of_expression(word: list[str], begin: int = 0) -> int | None:
    """Where the expression that begins at a place ends, read as a tree; None if it does not."""
    if begin >= len(word):
        return None
    place: int | None = begin + 1
    for _ in range(ARITY[word[begin]]):
        place = end_of_expression(word, place) if place is not None else None
    return place


def complete(word: list[str]) -> list[str]:
    end = end_of_expression(word) or len(word) + 1
    states = {-1: "any", 0: "end", 1: "none"}
    return [states[(size > end) - (size < end)] for size in range(1, len(word) + 1)]


def test_any_word_of_truth_values_and_operators_is_read_as_a_tree():
    for word in every_word("boolean-3", 5):
        assert labels_of("boolean-3", list(word)) == complete(list(word)), word


@pytest.mark.parametrize("task", ["boolean-5", "boolean-3:words=mixed"])
def test_drawn_words_of_truth_values_and_operators_are_read_as_trees(task):
    for length in (1, 2, 17, 60):
        for word in words_of(task, 60, length):
            assert labels_of(task, word) == complete(word)


def test_half_of_the_expressions_are_complete_and_the_others_begin_longer_ones():
    for length in (1, 6, 25):
        words = words_of("boolean-3", 2000, length)
        ends = [end_of_expression(word) for word in words]
        assert set(ends) == {length, None}
        assert 0.45 < ends.count(length) / 2000 < 0.55


def test_expressions_of_the_same_operators_are_equally_likely():
    """The shapes of expressions of five symbols: which arities stand in which order."""
    words = words_of("boolean-3", 40_000, 5)
    shapes = Counter(
        tuple(ARITY[symbol] for symbol in word) for word in words if end_of_expression(word) == 5
    )
    by_operators: dict[tuple[int, ...], list[int]] = {}
    for shape, count in shapes.items():
        by_operators.setdefault(tuple(sorted(shape)), []).append(count)
    possible = [
        shape
        for shape in itertools.product(range(4), repeat=5)
        if end_of_expression(["0~+>"[arity] for arity in shape]) == 5
    ]
    assert set(shapes) == set(possible)
    for counts in by_operators.values():
        assert max(counts) - min(counts) < 6 * np.mean(counts) ** 0.5, counts


# --- words that are no beginnings of members ---


@pytest.mark.parametrize("task", ["dyck-1", "shuffle-2", "shuffle-6", "anbn", "anbncn"])
def test_half_of_the_mixed_words_have_one_illegal_symbol_and_go_on_as_if_nothing_had_been(task):
    members, mixed = (words_of(f"{task}:words={words}", 600, 24) for words in ("members", "mixed"))
    broken = 0
    for member, word in zip(members, mixed, strict=True):
        different = [place for place in range(24) if member[place] != word[place]]
        assert "none" not in labels_of(task, member)
        labels = labels_of(task, word)
        if different:
            (place,) = different
            assert labels[place:] == ["none"] * (24 - place)
            assert "none" not in labels[:place]
            broken += 1
        else:
            assert "none" not in labels
    assert 0.42 < broken / 600 < 0.58


def test_the_place_of_an_illegal_symbol_is_any_at_which_there_is_one():
    members, mixed = (
        words_of(f"dyck-1:words={words}", 20_000, 4) for words in ("members", "mixed")
    )
    places = Counter(
        next(place for place in range(4) if member[place] != word[place])
        for member, word in zip(members, mixed, strict=True)
        if "".join(member) == "()()" and member != word
    )
    assert set(places) == {0, 2}  # where nothing is open, no bracket can close
    assert 0.45 < places[0] / places.total() < 0.55


def test_in_half_of_the_mixed_expressions_more_follows_after_the_end():
    words = words_of("boolean-3:words=mixed", 3000, 20)
    ends = Counter(end_of_expression(word) for word in words)
    early = sum(count for end, count in ends.items() if end is not None and end < 20)
    assert 0.46 < early / 3000 < 0.54
    assert all(ends[end] > 40 for end in range(1, 20))
    assert {word[-1] for word in words if end_of_expression(word) == 3} == set("01~+>")


# --- arithmetic ---

EXPRESSION = re.compile(r"-?\d|\(-?\d\)")


def is_expression(text: str) -> bool:
    """By the grammar, from the inside out: an operation becomes a digit in brackets, then a 0."""
    while True:
        if EXPRESSION.fullmatch(text):
            return True
        reduced = re.sub(r"\((?:-?\d|E|\(-?\d\))[-+*](?:-?\d|E|\(-?\d\))\)", "E", text)
        if reduced == "E":
            return True
        if reduced == text:
            return False
        text = reduced


@pytest.mark.parametrize("task", ["multiplication=true", "multiplication=false", "m=7"])
def test_values_are_those_that_python_computes(task):
    name = f"modular-arithmetic-with-brackets:{task}"
    modulus = 7 if task == "m=7" else 5
    operators = set()
    for length in [*range(1, 25), 40, 99, 200]:
        words = words_of(name, 30, length)
        for word, (*before, last) in zip(words, labels_of_each(name, words), strict=True):
            text = "".join(word)
            assert is_expression(text), text
            assert set(before) <= {"-"}
            assert last == str(eval(text) % modulus), text
            operators |= set(text) & set("+-*")
    assert operators == set("+-" if task == "multiplication=false" else "+-*")


def test_only_expressions_have_a_value():
    name = "modular-arithmetic-with-brackets:m=2"
    found = 0
    words = every_word(name, 5)
    by_length = [[word for word in words if len(word) == size] for size in range(1, 6)]
    labels = [labels[-1] for each in by_length for labels in labels_of_each(name, each)]
    for word, label in zip(words, labels, strict=True):
        text = "".join(word)
        assert (label != "-") == is_expression(text), text
        if label != "-":
            assert label == str(eval(text) % 2)
            found += 1
    assert found == 2 + 2 + 2 + 2 + 2 * 3 * 2  # of one to five symbols


def test_an_operation_splits_its_length_evenly():
    lefts = Counter()
    for word in words_of("modular-arithmetic-with-brackets", 5000, 12):
        depth = np.cumsum([(symbol == "(") - (symbol == ")") for symbol in word])
        sizes = [place - 1 for place in range(2, 11) if depth[place] == 1 and word[place] in "+-*"]
        left = next(size for size in sizes if is_expression("".join(word[1 : 1 + size])))
        lefts[left] += 1
    assert set(lefts) == set(range(1, 9))
    assert max(lefts.values()) - min(lefts.values()) < 5 * (5000 / 8) ** 0.5


# --- flip-flop ---


def bits_read(word: list[str]) -> list[str]:
    """The labels of a word of instructions and bits by replaying it."""
    held, labels = None, []
    for place, symbol in enumerate(word):
        if place % 2 and word[place - 1] == "w":
            held = symbol
        labels.append(held if place % 2 == 0 and symbol == "r" else "-")
    return labels


@pytest.mark.parametrize("length", [1, 2, 3, 4, 64, 65])
def test_an_ignore_run_fills_the_word_between_one_write_and_one_read(length):
    words = words_of("flip-flop-ignore-runs", 200, length)
    for word in words:
        instructions = "".join(word[::2])
        read = "r" if length > 2 else ""
        assert re.fullmatch(f"wi*{read}", instructions), word
        assert instructions.count("i") == max(0, (length - 3) // 2)
        assert labels_of("flip-flop-ignore-runs", word) == bits_read(word)
    written = [word[1] for word in words if length > 1]
    assert length == 1 or 60 < written.count("1") < 140
    if length == 65:
        assert 0.45 < np.mean([word[3::2].count("1") / 31 for word in words]) < 0.55


@pytest.mark.parametrize(
    ("task", "ignore"), [("flip-flop-sparse", 0.98), ("flip-flop", 0.8), ("flip-flop-dense", 0.1)]
)
def test_test_sets_of_the_flip_flop_have_their_shares_runs_and_labels(task, ignore):
    loaded = load_task(task)
    stream = WordStream(loaded.automaton, LengthDistribution(400, 400), "every", 0, "test")
    batch = stream.block(0, 1, 400)[0]
    words = [loaded.format_word(word).split() for word in batch.symbols]
    later = Counter(symbol for word in words for symbol in word[2::2])
    rest = (1 - ignore) / 2
    for symbol, chance in (("i", ignore), ("w", rest), ("r", rest)):
        assert later[symbol] / later.total() == pytest.approx(chance, abs=0.005)
    runs = [
        len(run[0])
        for word in words
        for run in re.finditer(r"(?<=[wr])i+(?=[wr])", "".join(word[::2]))
    ]
    if task != "flip-flop-sparse":  # there, many runs are cut by the end of the word
        assert np.mean(runs) == pytest.approx(1 / (1 - ignore), rel=0.05)
    for word in words[:50]:
        assert loaded.format_labels(loaded.parse_word(" ".join(word))).split() == bits_read(word)
    asked = batch.labels[batch.scored]
    assert asked.mean() == pytest.approx(0.5, abs=0.05)


# --- tasks ---


def test_what_needs_the_automaton_is_refused_in_one_line(capsys):
    with pytest.raises(TaskError, match="task 'dyck-1' comes from a sampler and has no automaton"):
        _ = load_task("dyck-1").automaton
    description = {"kind": "equal-blocks"}
    with pytest.raises(TaskError, match=r"^here: 'equal-blocks' comes from a sampler"):
        build_automaton(description, "here")
    assert isinstance(build_source(description, "here"), Sampler)
    for line in (["predict", "dyck-1"], ["show", "product(parity,dyck-1)"]):
        assert run(line) == 1
        (error,) = capsys.readouterr().err.splitlines()
        assert "comes from a sampler and has no automaton" in error


def test_predict_of_all_tasks_says_which_are_left_out(capsys):
    assert run(["predict", "--models", "lstm", "--json"]) == 0
    printed = capsys.readouterr()
    assert set(json.loads(printed.out)) == set(task_names()) - set(SAMPLER_TASKS)
    (line,) = printed.err.splitlines()
    assert all(name in line for name in SAMPLER_TASKS)


def test_show_has_what_there_is_and_says_what_is_not_offered(capsys):
    assert run(["show", "shuffle-2:words=mixed"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "no algebra and no predictions" in printed and "random walk" in printed
    assert run(["show", "shuffle-2:words=mixed", "--json"]) == 0
    about = json.loads(capsys.readouterr().out)
    assert about["states"] is about["algebra"] is about["predictions"] is about["floor"] is None
    assert about["symbols"] == ["(", ")", "[", "]"]
    ((word, labels),) = about["examples"].items()
    assert len(word.split()) == len(labels.split()) == 8
    assert run(["show", "parity", "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)) == set(about)


def test_lists_of_tasks_have_no_number_of_states_for_a_sampler(capsys):
    assert run(["list", "tasks", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert {name for name, row in rows.items() if row["states"] is None} == set(SAMPLER_TASKS)
    assert (rows["shuffle-4"]["symbols"], rows["shuffle-4"]["labels"]) == (8, 17)


def test_a_wrong_example_of_a_sampler_is_refused(tmp_path):
    path = tmp_path / "mine.yaml"
    text = load_task("anbn").document()
    assert '"ab end none none"' in text or "ab end none none" in text
    path.write_text(text.replace("ab end none none", "ab end end none"), encoding="utf-8")
    with pytest.raises(TaskError, match="the labels are 'ab end none none', not"):
        load_task(str(path))


# --- fixed sets and datasets ---


@pytest.mark.parametrize("name", ["boolean-3", "shuffle-2", "anbn"])
def test_a_fixed_set_of_a_sampler_has_different_words(name):
    sampler = sampler_of(name)
    fixed = fixed_words(sampler, LengthDistribution(2, 30), "every", 60, 20, seed=1)
    words = [
        word[:length].tobytes()
        for batch in (fixed.train, fixed.held_out)
        for word, length in zip(batch.symbols, batch.lengths, strict=True)
    ]
    assert len(words) == len(set(words)) == 80


def test_too_many_words_of_a_sampler_are_refused_in_one_line():
    lengths = LengthDistribution(6, 6)  # aaabbb, aaaabb, aaaaab and aaaaaa
    with pytest.raises(SettingsError, match=r"5 different words of length 6 are .* only 4 came up"):
        fixed_words(sampler_of("anbn"), lengths, "every", 5, 0, seed=0)
    assert len(fixed_words(sampler_of("anbn"), lengths, "every", 3, 1, seed=0).train) == 3


@pytest.mark.parametrize(("name", "distinct"), [("shuffle-2", True), ("anbn", False)])
def test_splits_of_a_sampler_share_no_word(name, distinct):
    sampler = sampler_of(name)
    splits = draw_splits(sampler, LengthDistribution(2, 12), 200, 40, [20, 30], 8, "every", seed=2)
    assert splits.distinct is distinct
    words = {
        part: {w[:n].tobytes() for w, n in zip(batch.symbols, batch.lengths, strict=True)}
        for part, batch in splits.parts.items()
    }
    assert all(a.isdisjoint(b) for a, b in itertools.combinations(words.values(), 2))
    assert [len(batch) for batch in splits.parts.values()] == [200, 40, 8, 8]
    for part, batch in splits.parts.items():
        check_labels(batch, sampler, part)


def test_words_of_a_dataset_with_repetition_come_as_often_as_they_are_drawn():
    splits = draw_splits(
        sampler_of("anbn"), LengthDistribution(4, 4), 4000, 0, [8], 1, "every", seed=0
    )
    counts = Counter(word.tobytes() for word in splits.parts["train"].symbols)
    shares = sorted(count / 4000 for count in counts.values())
    assert shares == pytest.approx([1 / 6, 1 / 6, 2 / 3], abs=0.03)  # aaaa, aaab, aabb


# --- evaluation ---


class Depth(RecurrentModel):
    """Knows Dyck-1: its state is the depth, [B], and it errs wherever the depth is `errs_at`."""

    settings_class = Settings
    family, source = "test", "test"

    def __init__(self, errs_at: int) -> None:
        super().__init__(Settings(), num_symbols=2, num_labels=3)
        self.errs_at = errs_at

    def initial_state(self, num_words):
        return (torch.zeros(num_words, dtype=torch.int64),)

    def step(self, symbols, state):
        depth = state[0] + 1 - 2 * symbols
        answers = torch.where(depth == self.errs_at, 2, (depth > 0).long())
        return torch.nn.functional.one_hot(answers, 3).float(), (depth,)


class Whole(SequenceModel):
    """The same from a model that has no state and reads whole words."""

    settings_class = Settings
    family, source = "test", "test"

    def __init__(self, inner):
        super().__init__(Settings(), num_symbols=2, num_labels=3)
        self.inner = inner

    def forward(self, symbols):
        return self.inner(symbols)


@pytest.mark.parametrize("chunk", [1, 40, 1 << 16])
@pytest.mark.parametrize("whole_chunk", [1, 120, 1 << 21])
def test_scores_on_words_of_a_sampler_are_those_counted_by_hand(monkeypatch, chunk, whole_chunk):
    monkeypatch.setattr(evaluation, "CHUNK", chunk)
    monkeypatch.setattr(evaluation, "WHOLE_CHUNK", whole_chunk)
    about = {"num_words": 30, "seed": 2, "device": CPU}
    scores = list(evaluate(Depth(3), sampler_of("dyck-1"), [8, 20], **about))
    assert scores == list(evaluate(Whole(Depth(3)), sampler_of("dyck-1"), [8, 20], **about))
    for score in scores:
        words = np.array(words_of("dyck-1", 30, score.length, seed=2))
        depth = np.where(words == "(", 1, -1).cumsum(axis=1)
        right = depth != 3
        assert score.sequences == 30
        assert score.accuracy == pytest.approx(right[:, -1].mean())
        assert score.symbol_accuracy == pytest.approx(right.mean())
        assert score.prefix_accuracy == pytest.approx(right.all(axis=1).mean())
        open_share = (depth[:, -1] > 0).mean()
        assert score.floor == pytest.approx(max(open_share, 1 - open_share))
        assert score.chance == pytest.approx(1 / 3)
    perfect = list(evaluate(Depth(-1), sampler_of("dyck-1"), [33], **about))
    assert perfect[0].prefix_accuracy == 1.0


def test_words_that_are_too_long_to_be_drawn_whole_are_refused_before_any_are_drawn():
    lengths = [5, LONGEST_WHOLE + 1]
    with pytest.raises(SettingsError, match=f"length {LONGEST_WHOLE + 1}: .* drawn whole"):
        evaluate(Depth(0), sampler_of("dyck-1"), lengths, num_words=2, seed=0, device=CPU)


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    """A run on the flip-flop, as small as can be."""
    folder = tmp_path_factory.mktemp("runs") / "ff"
    line = f"train --model gru --task flip-flop --steps 4 --validate-every 4 --out {folder}"
    assert run([*line.split(), "--batch-size", "4", "--validation-words", "8"]) == 0
    return folder


def test_a_run_is_tested_on_the_words_of_another_task(run_folder, capsys):
    capsys.readouterr()
    about = ["--samples", "20", "--json"]
    assert run(["eval", str(run_folder), "--task", "flip-flop:ignore=0.98", *about]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["task"] == "flip-flop"
    assert [row["task"] for row in printed["rows"]] == ["flip-flop:ignore=0.98"]
    assert [row["length"] for row in printed["rows"]] == [512]
    assert run(["eval", str(run_folder), "--task", "flip-flop-ignore-runs", *about]) == 0
    assert len(json.loads(capsys.readouterr().out)["rows"]) == 3
    assert run(["eval", str(run_folder), "--length", "30", "--samples", "20"]) == 0
    assert "gru on flip-flop, 20 words" in capsys.readouterr().out
    rows = [json.loads(line) for line in (run_folder / "eval.jsonl").read_text().splitlines()]
    tasks = ["flip-flop:ignore=0.98", *["flip-flop-ignore-runs"] * 3, "flip-flop"]
    assert [row["task"] for row in rows] == tasks


@pytest.mark.parametrize(
    ("task", "difference"),
    [
        ("parity", "other symbols than 'flip-flop', which the run was trained on: 2 and not 5"),
        ("mine.yaml", "other symbols .*: number 2 is 'x' and not 'i'"),
        ("theirs.yaml", "other labels .*: number 0 is '1' and not '0'"),
    ],
)
def test_a_task_with_other_symbols_or_labels_is_refused(
    run_folder, capsys, tmp_path, monkeypatch, task, difference
):
    capsys.readouterr()
    monkeypatch.chdir(tmp_path)
    machines = {
        "mine.yaml": {"symbols": "wrx01", "outputs": "{a: '0', b: '1'}"},
        "theirs.yaml": {"symbols": "wri01", "outputs": "{a: '1', b: '0'}"},
    }
    for name, parts in machines.items():
        row = ", ".join(
            f"'{symbol}': {'b' if symbol == 'w' else 'a'}" for symbol in parts["symbols"]
        )
        (tmp_path / name).write_text(
            f"title: T\nversion: 1\nreference: own\nautomaton:\n  kind: transitions\n  start: a\n"
            f"  states:\n    a: {{{row}}}\n    b: {{{row}}}\n  outputs: {parts['outputs']}\n",
            encoding="utf-8",
        )
    assert run(["eval", str(run_folder), "--task", task]) == 1
    (error,) = capsys.readouterr().err.splitlines()
    assert re.search(difference, error), error
