"""A source that the package does not know: recorded words, through everything that reads words."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
import pytest
import torch

import statetrack
from statetrack.audit import audit, draw_held_out, draw_tests, draw_train
from statetrack.cli.app import run
from statetrack.data import (
    draw_distinct,
    draw_splits,
    fixed_words,
    measured_floors,
    read_dataset,
    stream_words,
    whole_words,
    write_dataset,
)
from statetrack.errors import SettingsError, TaskError
from statetrack.evaluation import evaluate
from statetrack.models import SequenceModel
from statetrack.settings import Settings
from statetrack.sources import KINDS, Automaton, LengthDistribution, Source, WordStream
from statetrack.sources.kinds import argument
from statetrack.sources.sampler import one_of
from statetrack.spec import Task, WordSpec, golden_hash, load_task

CPU = torch.device("cpu")

RECORDED = ["aab", "abb", "bab", "aabb", "abab", "bbbb", "baab"]


def recorded(length: int, words: list[str] = RECORDED) -> list[str]:
    """The beginnings of recorded words that are long enough."""
    return [word[:length] for word in words if len(word) >= length]


class Corpus(Source):
    """Recorded words, cut to the length asked for; the label is the symbol before."""

    noun: ClassVar[str] = "a corpus"

    def __init__(self, words: list[str]) -> None:
        self.symbols = ("a", "b")
        self.labels = ("a", "b", "none")
        self._words = words

    def read(self, words):
        given = np.asarray(words)
        before = np.roll(given, 1, axis=-1)
        before[..., 0] = 2
        return before.astype(np.uint8), np.arange(given.shape[-1]) + np.zeros(given.shape) > 0

    @property
    def longest_word(self):
        return max(map(len, self._words))

    def num_bits(self, longest):
        return 1

    def draw(self, bits, lengths, longest):
        drawn = np.zeros((len(bits), longest), np.uint8)
        for length in set(lengths.tolist()):
            here = np.flatnonzero(lengths == length)
            words = np.array([[*map("ab".index, word)] for word in recorded(length, self._words)])
            drawn[here, :length] = words[one_of(len(words), bits[here, 0])]
        return drawn


@pytest.fixture
def task(tmp_path) -> Iterator[Task]:
    """A task of a kind that is registered for this test alone."""

    def corpus(*, first: Annotated[str, argument("a symbol, of no effect")] = "a") -> Source:
        return Corpus(RECORDED)

    KINDS.register("recorded-words")(corpus)
    path = tmp_path / "mine.yaml"
    path.write_text(
        "title: T\nversion: 1\nreference: own\nautomaton: {kind: recorded-words}\n"
        "train_length: [3, 4]\ntest_lengths: [3, 4]\nexamples: {a a b: '- a a'}\n",
        encoding="utf-8",
    )
    yield load_task(str(path))
    del KINDS._things["recorded-words"]


SOURCES = {"Automaton", "Sampler", "Source"}


def test_nothing_outside_sources_asks_what_kind_of_source_it_has():
    package = Path(statetrack.__file__).parent
    for path in package.rglob("*.py"):
        if path.is_relative_to(package / "sources"):
            continue
        text = path.read_text(encoding="utf-8")
        if not any(name in text for name in SOURCES):
            continue
        for call in ast.walk(ast.parse(text)):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
                asked = {node.id for node in ast.walk(call) if isinstance(node, ast.Name)}
                is_asked = call.func.id in {"isinstance", "issubclass", "hasattr"}
                assert not (is_asked and asked & SOURCES), path


def words_in(symbols, lengths) -> list[str]:
    return [
        "".join("ab"[symbol] for symbol in word[:length])
        for word, length in zip(symbols, lengths, strict=True)
    ]


class Copy(SequenceModel):
    """Answers with the symbol that it just read, which is right where a symbol repeats."""

    settings_class = Settings
    family, source = "test", "test"

    def __init__(self, num_labels: int) -> None:
        super().__init__(Settings(), num_symbols=2, num_labels=num_labels)

    def forward(self, symbols):
        return torch.nn.functional.one_hot(symbols, self.num_labels).float()


def test_a_task_of_an_unknown_kind_of_source_has_all_but_an_automaton(task):
    assert (task.source.num_symbols, task.source.num_labels) == (2, 3)
    assert task.format_labels(task.parse_word("a b b")) == "- a b"
    assert not task.has_automaton
    with pytest.raises(TaskError, match="comes from a corpus and has no automaton"):
        _ = task.automaton
    assert golden_hash(task) == golden_hash(task) != golden_hash(load_task("parity"))
    fewer = Task(task.name, task.spec, Corpus(["aab", "aabb"]))
    assert golden_hash(fewer) != golden_hash(task)


def test_recorded_words_are_drawn_for_training_with_their_labels(task):
    words = WordSpec.of(task)
    stream = WordStream(task.source, words.lengths, words.supervision, 0, "train")
    block = stream.block(0, 4, 50)
    assert block.symbols.shape == (4, 50, 4)
    batch = block[0]
    counts = Counter(words_in(batch.symbols, batch.lengths))
    assert set(counts) == {*recorded(3), *recorded(4)}
    for symbols, labels, scored, length in zip(
        batch.symbols, batch.labels, batch.scored, batch.lengths, strict=True
    ):
        assert scored.tolist() == [False, *[True] * (length - 1), *[False] * (4 - length)]
        assert labels[1:length].tolist() == symbols[: length - 1].tolist()
    np.testing.assert_array_equal(stream.block(3, 1, 50)[0].symbols, block[3].symbols)


def test_lengths_that_are_not_recorded_are_refused(task):
    with pytest.raises(
        SettingsError, match=r"length 5: words that come from a corpus have at most"
    ):
        WordStream(task.source, LengthDistribution(3, 5), "every", 0, "train")
    with pytest.raises(SettingsError, match="at most 4 symbols, for they are drawn whole"):
        next(stream_words(task.source, 2, 5, seed=0))


def test_recorded_words_are_split_and_written_without_being_counted(task, tmp_path):
    lengths = LengthDistribution(3, 4)
    distinct = draw_distinct(task.source, lengths, 10, seed=0)
    assert sorted(words_in(*distinct)) == sorted({*recorded(3), *recorded(4)})
    with pytest.raises(SettingsError, match=r"11 different words of length 3-4 .* only 10 came up"):
        draw_distinct(task.source, lengths, 11, seed=0)
    fixed = fixed_words(task.source, lengths, "every", 4, 3, seed=0)
    assert (len(fixed.train), len(fixed.held_out)) == (4, 3)
    splits = draw_splits(task.source, lengths, 30, 10, [], 0, "every", seed=0)
    assert not splits.distinct
    write_dataset(tmp_path / "data", task, splits)
    read = read_dataset(tmp_path / "data").splits["train"]
    np.testing.assert_array_equal(read.symbols, splits.parts["train"].symbols)


def test_a_model_is_evaluated_on_recorded_words_of_each_length(task):
    model = Copy(3)
    scores = list(evaluate(model, task.source, [3, 4], num_words=40, seed=1, device=CPU))
    for score in scores:
        (batch,) = whole_words(task.source, 40, score.length, seed=1)
        words = words_in(batch.symbols, batch.lengths)
        assert set(words) <= set(recorded(score.length))
        assert score.accuracy == pytest.approx(np.mean([word[-1] == word[-2] for word in words]))
        answers = Counter(word[-2] for word in words)
        assert score.floor == pytest.approx(max(answers.values()) / 40)


def test_recorded_words_are_audited(task):
    words = WordSpec.of(task)
    parts = [draw_held_out(task, words, 30, 0), *draw_tests(task, [3, 4], 30, 0, 4)]
    found = audit(draw_train(task, words, 200, 0), parts, task.source.labels)
    assert [split.split for split in found.splits] == ["validation", "test_len3", "test_len4"]
    assert "last-2" in found.solved_by
    assert all(split.in_training == 1 for split in found.splits)


def test_the_commands_take_a_task_of_recorded_words(task, tmp_path, capsys):
    path = tmp_path / "mine.yaml"
    assert run(["show", str(path)]) == 0
    assert "no algebra and no predictions" in " ".join(capsys.readouterr().out.split())
    assert run(["audit", str(path), "--train-samples", "50", "--samples", "20"]) == 0
    line = f"train --model gru --task {path} --steps 2 --validate-every 2 --out {tmp_path / 'run'}"
    assert run([*line.split(), "--train-samples", "5", "--validation-words", "2"]) == 0
    assert run(["eval", str(tmp_path / "run"), "--samples", "10"]) == 0
    assert run(["predict", str(path)]) == 1
    assert "comes from a corpus and has no automaton" in capsys.readouterr().err


class Unexplained(Source):
    """An automaton's words and labels, without anything that only an automaton can say."""

    prefixes_are_words: ClassVar[bool] = True

    def __init__(self, inner: Automaton) -> None:
        self.symbols, self.labels = inner.symbols, inner.labels
        self._inner = inner

    def read(self, words):
        return self._inner.read(words)

    def num_bits(self, longest):
        return self._inner.num_bits(longest)

    def draw(self, bits, lengths, longest):
        return self._inner.draw(bits, lengths, longest)


LATE = Automaton([[0, 1], [1, 2], [2, 0]], output=[0, 1, 1], scored=[False, True, True])


@pytest.mark.parametrize("chunk", [1, 50, 10**6])
def test_pieces_of_words_join_to_whole_words_for_every_source(task, chunk):
    brackets = load_task("dyck-1").source
    for source, length in ((Unexplained(LATE), 23), (task.source, 4), (brackets, 9)):
        (whole,) = whole_words(source, 7, length, seed=3)
        pieces = list(stream_words(source, 7, length, seed=3, chunk=chunk))
        assert max(piece.longest for piece in pieces) == max(1, min(length, chunk // 7))
        for name in ("symbols", "labels", "scored"):
            joined = np.concatenate([getattr(piece, name) for piece in pieces], axis=1)
            np.testing.assert_array_equal(joined, getattr(whole, name))
        np.testing.assert_array_equal(sum(piece.lengths for piece in pieces), whole.lengths)


def test_a_floor_that_is_not_known_is_measured_on_the_words(monkeypatch):
    source, lengths = Unexplained(LATE), [1, 2, 5, 40, 41]
    (words,) = stream_words(source, 3000, 41, seed=0)
    measured = measured_floors(source, lengths, 3000, seed=0)
    for length, floor in measured.items():
        counts = np.bincount(words.cut(0, length).last_labels())
        assert floor == counts.max() / counts.sum()
        assert floor == pytest.approx(LATE.floors([length])[length], abs=0.05)
    monkeypatch.setattr("statetrack.data.streams.CHUNK", 3000 * 7)
    assert measured_floors(source, lengths, 3000, seed=0) == measured
    scores = evaluate(Copy(2), source, lengths, num_words=3000, seed=0, device=CPU)
    assert {score.length: score.floor for score in scores} == measured


def test_a_floor_where_nothing_is_scored_is_not_a_number():
    silent = Unexplained(Automaton([[1], [1]], output=[0, 1], scored=[False, True]))
    assert measured_floors(silent, [1, 2], 5, seed=0) == {1: 1.0, 2: 1.0}
    later = Unexplained(Automaton([[1], [2], [2]], scored=[False, False, True]))
    floors = measured_floors(later, [1, 2], 5, seed=0)
    assert np.isnan(floors[1]) and floors[2] == 1.0
