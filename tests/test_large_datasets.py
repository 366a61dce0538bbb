"""Datasets drawn over the disk: the same words as in memory, a few at a time."""

import re
import signal
import subprocess
import sys
import time
from collections import namedtuple

import numpy as np
import pytest

from statetrack.cli import app, gen
from statetrack.data import (
    FORMATS,
    Request,
    distinct,
    draw_splits,
    estimate_size,
    parts,
    read_dataset,
    write_dataset,
    write_large_dataset,
)
from statetrack.data.distinct import Division, Repetitions, divide
from statetrack.data.parts import Chunks, Spool
from statetrack.data.splits import spool_splits
from statetrack.errors import DatasetError, SettingsError
from statetrack.sources import Automaton, LengthDistribution, RandomBits, UnlabelledWords
from statetrack.spec import load_task

AT_ONCE = 1_000
"""Symbols."""


def request_of(
    lengths="2-10",
    num_train=200,
    num_validation=50,
    test_lengths=(40,),
    num_test=20,
    supervision="every",
    seed=3,
):
    return Request(
        LengthDistribution.parse(lengths),
        num_train,
        num_validation,
        test_lengths,
        num_test,
        supervision,
        seed,
    )


def held(task, request):
    """The splits of a request, drawn in memory."""
    return draw_splits(task.source, *vars(request).values())


def go_in_small_pieces(monkeypatch):
    """Many small chunks and pieces instead of few large ones."""
    monkeypatch.setattr(distinct, "_HASHES_PER_CHUNK", 64)
    monkeypatch.setattr(distinct, "_INDICES_PER_CHUNK", 100)
    monkeypatch.setattr(distinct, "_FIRST_ROUND", 50)
    monkeypatch.setattr(distinct, "_DRAWN_AT_LEAST", 20)
    monkeypatch.setattr(distinct, "_BITS_AT_ONCE", 37)
    monkeypatch.setattr(parts, "SYMBOLS_AT_ONCE", AT_ONCE)


@pytest.fixture
def in_small_pieces(monkeypatch):
    """From the first word on."""
    go_in_small_pieces(monkeypatch)


def files_of(folder):
    """The files of a dataset; its README names the folder, in place of which FOLDER stands here."""
    files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.*")}
    readme = re.sub(rb"[^\s\"'`]*\b%s\b" % folder.name.encode(), b"FOLDER", files["README.md"])
    return files | {"README.md": readme}


@pytest.mark.parametrize(
    ("name", "changes", "distinct"),
    [
        ("s5", {"lengths": "2-10", "num_train": 700, "supervision": "last"}, True),
        ("s5", {"lengths": "2", "num_train": 4_000, "test_lengths": (2, 50)}, True),
        ("parity", {"num_train": 2_200, "num_validation": 300}, False),
        ("parity", {"lengths": "18", "num_train": 900, "test_lengths": (18,)}, True),
        ("parity", {"lengths": "9", "num_train": 300, "test_lengths": (9,)}, True),
        ("flip-flop", {"lengths": "4-20", "num_validation": 0, "test_lengths": (10,)}, True),
        ("dyck-1", {"lengths": "2-6", "test_lengths": (20,), "num_test": 5}, False),
        ("dyck-1", {"lengths": "2-30", "num_train": 150, "test_lengths": (8, 30)}, True),
        ("s5", {"num_test": 0}, True),
    ],
)
def test_the_words_are_those_drawn_in_memory(tmp_path, monkeypatch, name, changes, distinct):
    task, request = load_task(name), request_of(**changes)
    try:
        splits = held(task, request)
    except SettingsError as refused:
        go_in_small_pieces(monkeypatch)
        with pytest.raises(SettingsError, match="different words of length") as caught:
            write_large_dataset(tmp_path / "large", task, request)
        assert str(caught.value).split(",")[0] == str(refused).split(",")[0]
        return
    card = write_dataset(tmp_path / "held", task, splits, format="jsonl")
    go_in_small_pieces(monkeypatch)
    assert write_large_dataset(tmp_path / "large", task, request, format="jsonl") == card
    assert card["distinct"] == distinct
    assert files_of(tmp_path / "large") == files_of(tmp_path / "held")


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_holds_the_same_bytes_as_from_memory(tmp_path, monkeypatch, format):
    task, request = load_task("s5"), request_of()
    write_dataset(tmp_path / "held", task, held(task, request), format=format)
    go_in_small_pieces(monkeypatch)
    card = write_large_dataset(tmp_path / "large", task, request, format=format)
    assert files_of(tmp_path / "large") == files_of(tmp_path / "held")
    assert read_dataset(tmp_path / "large").card == card
    tasks = {path for path in (tmp_path / "large").iterdir() if path.suffix in (".yaml", ".py")}
    assert bool(tasks) == (format == "lm-eval")
    assert sorted(path.name for path in {*(tmp_path / "large").iterdir()} - tasks) == [
        "README.md",
        "card.json",
        "data",
    ]


def test_no_more_is_held_at_once_for_more_words(tmp_path, in_small_pieces, monkeypatch):
    sizes = []
    label_words, draw, lexsort = Automaton.label_words, Automaton.draw, np.lexsort

    def labelled(self, symbols, *rest):
        sizes.append(symbols.size)
        return label_words(self, symbols, *rest)

    def drawn(self, bits, *rest):
        sizes.append(bits.size)
        return draw(self, bits, *rest)

    def ordered(keys):
        sizes.append(len(keys[0]))
        return lexsort(keys)

    monkeypatch.setattr(Automaton, "label_words", labelled)
    monkeypatch.setattr(Automaton, "draw", drawn)
    monkeypatch.setattr(np, "lexsort", ordered)
    for num_words in (500, 4_000):
        sizes.clear()
        request = request_of(num_train=num_words)
        write_large_dataset(tmp_path / str(num_words), load_task("s5"), request, format="jsonl")
        assert len(sizes) > num_words // 250 and max(sizes) <= AT_ONCE


@pytest.mark.parametrize(("num_words", "num_held_out"), [(1, 0), (10, 3), (1000, 999), (70_000, 5)])
def test_the_smallest_random_numbers_are_held_out(num_words, num_held_out):
    division = Division(num_words, num_held_out, seed=4)
    held_out = np.concatenate(
        [division.next(min(333, num_words - first)) for first in range(0, num_words, 333)]
    )
    smallest = np.argsort(RandomBits(4, "shuffle", 1).read(0, num_words), kind="stable")
    np.testing.assert_array_equal(np.flatnonzero(held_out), np.sort(smallest[:num_held_out]))
    np.testing.assert_array_equal(np.flatnonzero(held_out), divide(num_words, num_held_out, 4)[1])


def test_words_of_equal_random_numbers_are_divided_by_their_place(monkeypatch):
    monkeypatch.setattr(RandomBits, "read", lambda self, first, count: np.full(count, 7, np.uint32))
    division = Division(10, 4, seed=0)
    held_out = [*division.next(3), *division.next(7)]
    assert held_out == [True] * 4 + [False] * 6


@pytest.mark.parametrize("folder", [None, "seen"])
def test_repetitions_are_those_that_a_set_finds(tmp_path, in_small_pieces, folder):
    symbols = np.random.default_rng(0).integers(0, 3, (600, 6)).astype(np.uint8)
    lengths = np.random.default_rng(1).integers(1, 7, 600)
    words = UnlabelledWords(symbols * (np.arange(6) < lengths[:, None]), lengths)
    seen = Repetitions(Chunks(folder and tmp_path / folder), 300, longest=6)
    seen.exclude(words.take(np.arange(0, 50)))
    new = 0
    for first in range(50, 600, 110):
        seen.add(words.take(np.arange(first, min(first + 110, 600))), first)
        new += seen.settle()
    keys = words.keys()
    expected = [key in set(keys[:number]) for number, key in enumerate(keys)]
    np.testing.assert_array_equal(seen.among(50, 550), expected[50:])
    assert new == 550 - sum(expected[50:])


@pytest.mark.parametrize("folder", [None, "spool"])
def test_a_spool_gives_back_its_words_in_order_and_by_length(tmp_path, folder):
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 6, 50)
    symbols = rng.integers(0, 300, (50, 5)) * (np.arange(5) < lengths[:, None])
    spool = Spool(Chunks(folder and tmp_path / folder), num_symbols=300, width=5)
    for part in (slice(0, 20), slice(20, 21), slice(21, 50)):
        spool.add(UnlabelledWords(symbols[part], lengths[part]))
    pieces = list(spool.pieces(at_once=7))
    np.testing.assert_array_equal(np.concatenate([piece.symbols for piece in pieces]), symbols)
    np.testing.assert_array_equal(np.concatenate([piece.lengths for piece in pieces]), lengths)
    for length in range(1, 6):
        found = np.concatenate([piece.symbols for piece in spool.of_length(length)])
        np.testing.assert_array_equal(found, symbols[lengths == length, :length])


# Room on the disk


def full_disk(monkeypatch, free):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr("shutil.disk_usage", lambda place: usage(free, 0, free))


def test_a_dataset_that_the_disk_cannot_hold_is_refused_before_a_word_is_drawn(
    tmp_path, monkeypatch, capsys
):
    full_disk(monkeypatch, 10**9)
    monkeypatch.setattr(Automaton, "draw", None)
    out = tmp_path / "not" / "there"
    words = f"gen s5 --length 2-10 --samples 100000000 --out {out}"
    assert app.run(words.split()) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"error: {out}: 100,002,000 words take about ")
    assert "but it has only 1.0 GB left" in error and error.count("\n") == 1
    with pytest.raises(DatasetError, match="ask for fewer words"):
        write_large_dataset(out, load_task("s5"), request_of(num_train=10**30))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", ["parity", "s5"])
def test_the_estimated_size_is_about_right(tmp_path, format, name):
    task = load_task(name)
    request = request_of("5-25", 8_000, 500, (60,), 100)
    write_dataset(tmp_path / "set", task, held(task, request), format=format)
    written = sum(path.stat().st_size for path in (tmp_path / "set" / "data").rglob("*.*"))
    assert 0.7 < estimate_size(task.source, request, format).written / written < 2


def test_the_size_of_a_large_dataset_is_said_first(tmp_path, monkeypatch, capsys):
    sizes = "--samples 300 --validation-samples 20 --test-samples 10 --length 2-10 --test-length 30"
    assert app.run(["gen", "s5", *sizes.split(), "--out", str(tmp_path / "held")]) == 0
    assert "on the disk" not in capsys.readouterr().err
    monkeypatch.setattr(gen, "MOST_WORDS_HELD", 100)
    monkeypatch.setattr(gen, "SAID_FIRST", 1_000)
    assert app.run(["gen", "s5", *sizes.split(), "--out", str(tmp_path / "large")]) == 0
    said = capsys.readouterr().err
    assert said.startswith("330 words, 2,220 symbols: about ") and "until they are written" in said
    assert files_of(tmp_path / "large") == files_of(tmp_path / "held")


# What can go wrong


def test_words_that_are_too_many_to_list_are_refused_in_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(distinct, "MOST_LISTED", 1_000)
    monkeypatch.setattr("statetrack.data.distinct._ALWAYS_LISTED", 1)
    for changes in ({"lengths": "9", "num_train": 300}, {"num_train": 3_000}):
        with pytest.raises(SettingsError, match="they must be listed, which takes"):
            write_large_dataset(tmp_path / "set", load_task("parity"), request_of(**changes))
    assert list(tmp_path.iterdir()) == []


def test_words_too_unlikely_to_come_up_are_given_up(tmp_path, in_small_pieces, monkeypatch):
    monkeypatch.setattr("statetrack.data.distinct._ALWAYS_LISTED", 1)
    weights = [[1.0, 1e-9]]
    automaton = Automaton([[0, 0]], weights=weights)
    task = load_task("parity")
    request = request_of("12", num_train=900, num_validation=0, num_test=0)
    with pytest.raises(SettingsError, match="the rest being too unlikely"):
        spool_splits(automaton, request, tmp_path / "words", lambda stage, done, total: None)
    assert task.source.count_words(request.lengths) == automaton.count_words(request.lengths)


def test_csv_is_refused_before_drawing_where_labels_are_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr("statetrack.data.datasets.spool_splits", None)
    with pytest.raises(DatasetError, match="word-problem CSV has a label after every symbol"):
        write_large_dataset(
            tmp_path / "set", load_task("s5"), request_of(supervision="last"), format="csv"
        )


@pytest.mark.parametrize("stage", ["drawing", "dividing", "counting train", "writing train"])
def test_an_interrupt_at_any_stage_leaves_nothing_behind(tmp_path, in_small_pieces, stage):
    stages = set()

    def interrupt(stage_now, done, total):
        assert done <= total or stage_now == "drawing"
        stages.add(stage_now)
        if stage_now == stage:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_large_dataset(
            tmp_path / "set", load_task("s5"), request_of(), format="jsonl", progress=interrupt
        )
    assert stage in stages and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("how", "samples", "seen"),
    [
        (signal.SIGTERM, "3000000", ".*unfinished/words/seen/*"),
        (signal.SIGHUP, "3000000", ".*unfinished/words/seen/*"),
        (signal.SIGTERM, "1000000", ".*unfinished/data/*"),
    ],
)
def test_a_terminated_program_leaves_nothing_behind(how, samples, seen, tmp_path):
    sizes = ["--samples", samples, "--length", "2-10", "--format", "jsonl"]
    process = subprocess.Popen(
        [sys.executable, "-m", "statetrack", "gen", "s5", *sizes, "--out", str(tmp_path / "set")],
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(how, signal.SIG_DFL),  # ignored in tests under nohup
    )
    end = time.monotonic() + 60
    while not list(tmp_path.glob(seen)) and time.monotonic() < end:
        time.sleep(0.05)
    process.send_signal(how)
    _, error = process.communicate(timeout=60)
    assert process.returncode == app.INTERRUPTED and error.endswith(b"interrupted\n")
    assert list(tmp_path.iterdir()) == []
