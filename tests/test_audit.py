"""Shortcuts do what plain counting does, and audits find the tasks and datasets that they solve."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from statetrack.audit import (
    LONGEST_LOOKUP,
    VIEWS,
    Audit,
    AuditedWords,
    Shortcuts,
    audit,
    best_by_length,
    draw_held_out,
    draw_tests,
    draw_train,
)
from statetrack.cli.app import run
from statetrack.data import stream_words
from statetrack.errors import DatasetError
from statetrack.evaluation import evaluate
from statetrack.runs import Run
from statetrack.scoring import wilson
from statetrack.sources import Automaton, Batch, LengthDistribution
from statetrack.spec import Task, WordSpec, load_task

LOOKUPS = ("constant", *(f"last-{count}" for count in range(1, LONGEST_LOOKUP + 1)))


def audit_of(
    name: str,
    test_lengths: list[int],
    *,
    train_length: str | None = None,
    num_train: int = 5000,
    num_test: int = 500,
) -> Audit:
    task = load_task(name)
    lengths = (
        LengthDistribution.parse(train_length)
        if train_length
        else LengthDistribution(*task.spec.train_length)
    )
    parts = [
        draw_held_out(task, WordSpec(lengths, "every"), num_test, 0),
        *draw_tests(task, test_lengths, num_test, 0, lengths.longest),
    ]
    return audit(
        draw_train(task, WordSpec(lengths, "every"), num_train, 0), parts, task.source.labels
    )


def batch_of(words: list[list[int]], task: Task) -> Batch:
    lengths = np.array([len(word) for word in words])
    symbols = np.zeros((len(words), lengths.max()), np.uint8)
    for row, word in zip(symbols, words, strict=True):
        row[: len(word)] = word
    return task.source.label_words(symbols, lengths)


# --- shortcuts, against counting in plain Python ---


def seen(name: str, word: list[int], end: int) -> object:
    """What a shortcut sees of a word up to and with the symbol at `end`."""
    prefix = word[: end + 1]
    if name == "constant":
        return None
    if name.startswith("last-"):
        count = int(name.removeprefix("last-"))
        return (*["start"] * (count - len(prefix)), *prefix[-count:])
    return {
        "position": len(prefix),
        "length": len(word),
        "counts": frozenset(Counter(prefix).items()),
        "symbols": frozenset(prefix),
    }[name]


Tables = dict[str, dict[object, Counter[int]]]


def tables_of(batch: Batch) -> Tables:
    """How often each label followed what each shortcut sees."""
    tables: Tables = {name: {} for name in VIEWS}
    for row, word in enumerate(words_of(batch)):
        for end in range(len(word)):
            if batch.scored[row, end]:
                for name, table in tables.items():
                    counts = table.setdefault(seen(name, word, end), Counter())
                    counts[int(batch.labels[row, end])] += 1
    return tables


def answer(name: str, tables: Tables, word: list[int], end: int) -> int:
    """The most frequent label among the training prefixes that look like this one."""
    labels = tables[name].get(seen(name, word, end))
    if labels:
        return min(labels, key=lambda label: (-labels[label], label))
    shorter = name.startswith("last-") and name != "last-1"
    coarser = f"last-{int(name.removeprefix('last-')) - 1}" if shorter else "constant"
    return answer(coarser, tables, word, end)


def words_of(batch: Batch) -> list[list[int]]:
    return [row[:length].tolist() for row, length in zip(batch.symbols, batch.lengths, strict=True)]


@pytest.mark.parametrize("name", ["modular-addition:m=3", "flip-flop:ignore=0.4", "random-fsm"])
def test_shortcuts_answer_as_counting_in_plain_python_does(name):
    task = load_task(name)
    train = draw_train(task, WordSpec(LengthDistribution(1, 5), "every"), 40, 0)
    test = draw_held_out(task, WordSpec(LengthDistribution(1, 9), "every"), 25, 1).batch
    tables = tables_of(train)
    ends = np.broadcast_to(np.arange(test.longest), test.symbols.shape)
    for shortcut, labels in Shortcuts(train).answers(test, ends):
        for row, word in enumerate(words_of(test)):
            expected = [answer(shortcut, tables, word, end) for end in range(len(word))]
            assert labels[row, : len(word)].tolist() == expected, shortcut


def test_accuracies_are_those_of_the_answers_one_by_one():
    task = load_task("flip-flop")
    shortcuts = Shortcuts(draw_train(task, WordSpec(LengthDistribution(2, 12), "every"), 300, 0))
    (test,) = stream_words(task.automaton, 40, 30, 3, 40 * 30)
    lengths = [4, 11, 30]
    measured = shortcuts.measure(test, lengths)
    last, totals = shortcuts.last_hits(test, lengths)
    ends = np.broadcast_to(np.arange(30), test.symbols.shape)
    for name, labels in shortcuts.answers(test, ends):
        for place, length in enumerate(lengths):
            right = [
                (labels[row, :length] == test.labels[row, :length])[test.scored[row, :length]]
                for row in range(len(test))
            ]
            right = [word for word in right if len(word)]
            counted = measured[length][name]
            assert counted.sequences == len(right)
            assert counted.accuracy == pytest.approx(np.mean([word[-1] for word in right]))
            assert counted.symbol_accuracy == pytest.approx(np.concatenate(right).mean())
            assert counted.prefix_accuracy == pytest.approx(np.mean([all(w) for w in right]))
            hits = sum(word[-1] for word in right)
            assert (counted.low, counted.high) == wilson(int(hits), len(right))
            assert last[name][place] == hits and totals[place] == len(right)


def test_words_are_measured_alike_in_however_many_pieces(monkeypatch):
    task = load_task("modular-addition:m=3")
    train = draw_train(task, WordSpec(LengthDistribution(2, 6), "every"), 200, 0)
    test = draw_held_out(task, WordSpec(LengthDistribution(2, 6), "every"), 50, 0).batch
    whole = Shortcuts(train).measure(test, [6])
    monkeypatch.setattr("statetrack.audit.shortcuts._SYMBOLS_AT_ONCE", 20)
    assert Shortcuts(train).measure(test, [6]) == whole


@pytest.mark.parametrize("view", VIEWS)
def test_no_shortcut_sees_symbols_that_come_later(view):
    task = load_task("modular-addition:m=3")
    shortcuts = Shortcuts(draw_train(task, WordSpec(LengthDistribution(2, 8), "every"), 500, 0))
    test = draw_held_out(task, WordSpec(LengthDistribution(8, 8), "every"), 50, 0).batch
    changed = Batch((test.symbols + (np.arange(8) > 4)) % 3, test.labels, test.scored, test.lengths)
    ends = np.broadcast_to(np.arange(5), (50, 5))
    before, after = (dict(shortcuts.answers(words, ends))[view] for words in (test, changed))
    assert (before == after).all()


# --- what is solved, and what is not ---


def test_what_depends_on_two_symbols_is_solved_by_looking_at_two():
    found = audit_of("ends-with-ab", [50, 200])
    assert found.solved_by == LOOKUPS[2:]
    for split in found.splits:
        assert split.shortcuts["last-2"].prefix_accuracy == 1.0
        assert split.shortcuts["last-1"].accuracy < 0.9


def test_parity_is_solved_by_counting_at_training_lengths_and_by_nothing_beyond():
    found = audit_of("parity", [100, 500], num_test=2000)
    assert found.solved_by == found.helped_by == ()
    assert found.held_out_solved_by == ("counts",)
    for split in found.test_splits:
        for counted in split.shortcuts.values():
            assert counted.accuracy == pytest.approx(0.5, abs=0.05)


def test_the_position_tells_an_even_number_of_symbols_within_training_lengths_only():
    found = audit_of("aa-star", [20, 101, 500], train_length="2-50")
    held_out, inside, *beyond = found.splits
    assert held_out.shortcuts["position"].prefix_accuracy == 1.0
    assert inside.shortcuts["position"].prefix_accuracy == 1.0
    assert "position" in found.held_out_solved_by and "position" not in found.solved_by
    for split in beyond:
        assert split.shortcuts["position"].symbol_accuracy < 0.8


@pytest.mark.parametrize(
    ("name", "needed"), [("tomita-1", 0), ("tomita-2", 1), ("five-blocks", 1), ("tomita-4", 2)]
)
def test_members_alone_are_told_by_two_symbols_and_words_with_slips_are_not(name, needed):
    """The data published with Sarrof et al. 2024 are members, and those are all right words."""
    members = audit_of(
        f"{name}:words=members,labels=next-symbols", [50, 200], train_length="2-50", num_train=1500
    )
    for split in members.splits:
        whole = [split.shortcuts[lookup].prefix_accuracy == 1.0 for lookup in LOOKUPS]
        assert whole.index(True) == needed
    mixed = audit_of(
        f"{name}:words=mixed,labels=next-symbols", [50, 200], train_length="2-50", num_train=1500
    )
    assert not set(mixed.solved_by) & set(LOOKUPS)
    assert all(split.shortcuts[LOOKUPS[-1]].prefix_accuracy < 0.9 for split in mixed.test_splits)


def test_a_constant_is_right_on_nearly_all_symbols_where_members_settle():
    found = audit_of("tomita-7:words=members,labels=next-symbols", [100], train_length="2-50")
    assert found.test_splits[0].shortcuts["constant"].symbol_accuracy > 0.8


def test_words_of_a_sampler_are_audited_too():
    found = audit_of("dyck-1", [20, 40])
    assert [split.split for split in found.splits] == ["validation", "test_len20", "test_len40"]
    assert "counts" in found.held_out_solved_by


# --- words that training has too, and the labels ---


def test_a_word_that_training_has_too_is_found_with_its_share():
    task = load_task("parity")
    train = batch_of([[0, 1], [1, 1], [0, 1, 1]], task)
    test = batch_of([[0, 1], [0, 1, 0], [1, 0], [0, 1, 1], [1, 1, 1]], task)
    (split,) = audit(train, [AuditedWords(test, {3: "validation"})], task.source.labels).splits
    assert split.in_training == pytest.approx(2 / 5)
    assert [facts.in_training for facts in split.lengths] == pytest.approx([1 / 2, 1 / 3])


def test_a_word_is_not_its_prefix_nor_the_same_with_zeros_behind():
    task = load_task("parity")
    train = batch_of([[1, 0], [1, 0, 0, 0]], task)
    test = batch_of([[1], [1, 0, 0]], task)
    (split,) = audit(train, [AuditedWords(test, {3: "validation"})], task.source.labels).splits
    assert split.in_training == 0.0


def test_the_labels_of_each_length_are_counted():
    task = load_task("parity")
    words = batch_of([[1], [0], [1], [1, 1], [0, 0]], task)
    (split,) = audit(words, [AuditedWords(words, {2: "validation"})], task.source.labels).splits
    one, two = split.lengths
    assert (one.words, one.labels, one.most_frequent) == (3, 2, "1")
    assert one.floor == pytest.approx(2 / 3)
    assert (two.words, two.labels, two.most_frequent, two.floor) == (2, 1, "0", 1.0)
    assert split.floor == pytest.approx(3 / 5)


def test_where_nothing_is_scored_nothing_is_claimed():
    task = load_task("flip-flop")
    never_read = batch_of([task.parse_word("w 1 i 0")], task)
    train = draw_train(task, WordSpec(LengthDistribution(8, 8), "every"), 50, 0)
    found = audit(train, [AuditedWords(never_read, {4: "test_len4"})], task.source.labels)
    assert found.test_splits == found.solved_by == found.helped_by == ()
    assert math.isnan(found.splits[0].floor)
    with pytest.raises(DatasetError, match="no label is asked for"):
        audit(never_read, [], task.source.labels)


# --- beside a trained model ---


def test_shortcuts_are_measured_on_the_words_that_an_evaluation_reads():
    """The constant answer of a model and that of the shortcut are right on the same words."""
    torch = pytest.importorskip("torch")
    from tests.test_evaluation import Constant

    task = load_task("modular-arithmetic")
    automaton = task.automaton
    assert isinstance(automaton, Automaton)
    train = draw_train(task, WordSpec(LengthDistribution(2, 9), "every"), 400, 0)
    most_frequent = int(np.bincount(train.labels[train.scored]).argmax())
    scores = evaluate(
        Constant(automaton, most_frequent),
        automaton,
        [6, 60, 200],
        num_words=90,
        seed=7,
        device=torch.device("cpu"),
    )
    shortcuts = Shortcuts(train)
    parts = list(draw_tests(task, [6, 60, 200], 90, 7, 9))
    measured = {
        length: counted["constant"]
        for part in parts
        for length, counted in shortcuts.measure(part.batch, list(part.splits)).items()
    }
    for score in scores:
        assert score.accuracy == measured[score.length].accuracy
        assert score.symbol_accuracy == pytest.approx(measured[score.length].symbol_accuracy)


def test_a_shortcut_counts_where_so_many_words_tell_it_from_a_constant():
    task = load_task("ends-with-ab")
    shortcuts = Shortcuts(draw_train(task, WordSpec(LengthDistribution(2, 9), "every"), 400, 0))
    few = best_by_length(shortcuts, draw_tests(task, [50], 2, 0, 9))
    assert few[50][0] == "constant"  # it is right on both words, and so nothing is known


def test_the_strongest_shortcut_is_the_simplest_of_those_most_often_right():
    task = load_task("ends-with-ab")
    shortcuts = Shortcuts(draw_train(task, WordSpec(LengthDistribution(2, 9), "every"), 400, 0))
    best = best_by_length(shortcuts, draw_tests(task, [5, 50], 100, 0, 9))
    assert best == {5: ("last-2", 1.0), 50: ("last-2", 1.0)}


def test_lengths_beyond_the_budget_are_left_out(monkeypatch):
    monkeypatch.setattr("statetrack.audit.audits.MOST_SYMBOLS", 1000)
    task = load_task("parity")
    parts = list(draw_tests(task, [50, 100, 101], 10, 0, 9))
    assert [list(part.splits) for part in parts] == [[50, 100]]
    (whole,) = stream_words(task.automaton, 10, 101, 0, 1010)
    assert (parts[0].batch.symbols == whole.symbols[:, :100]).all()


# --- the command, and the warnings ---


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


def succeed(line: str) -> None:
    assert run(line.split()) == 0, line


def complaint(capsys: pytest.CaptureFixture[str], line: str) -> str:
    capsys.readouterr()
    assert run(line.split()) == 1
    printed = capsys.readouterr()
    assert not printed.out and len(printed.err.splitlines()) == 1
    return printed.err


def test_a_dataset_is_audited_by_its_own_splits(folder, capsys):
    lengths = "--length 4-12 --test-length 40"
    succeed(f"gen ends-with-ab {lengths} --samples 300 --validation-samples 50 --out words")
    capsys.readouterr()
    succeed("audit words --json")
    found = json.loads(capsys.readouterr().out)
    assert (found["name"], found["type"], found["training_words"]) == ("words", "dataset", 300)
    assert [split["split"] for split in found["splits"]] == ["validation", "test_len40"]
    assert [split["in_training"] for split in found["splits"]] == [0.0, 0.0]
    assert found["solved_by"] == list(LOOKUPS[2:])
    assert len(found["rows"]) == 2 * len(VIEWS)


def test_a_task_is_audited_on_words_drawn_for_it(folder, capsys):
    options = "--samples 200 --train-samples 500 --length 30-60:10"
    succeed(f"audit even-pairs {options} --json")
    found = json.loads(capsys.readouterr().out)
    tests = [f"test_len{length}" for length in (30, 40, 50, 60)]
    assert [split["split"] for split in found["splits"]] == ["validation", *tests]
    succeed(f"audit even-pairs {options}")
    assert "the strongest shortcut of each split" in capsys.readouterr().out
    succeed(f"audit ends-with-ab {options} --length 30")
    assert "SOLVED: 'last-2'" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("audit paritty", "Nor is there a folder of that name"),
        ("audit empty", "empty: is no dataset, for it has no card.json: give a folder"),
        ("audit parity --length 1000000", "--length 1000000: 2000 words"),
        ("audit parity --train-length 10-2", "out of order"),
        ("audit words --seed 1", "--seed: words is a dataset"),
        ("audit alone", "at least one more"),
    ],
)
def test_what_cannot_be_audited_is_said_in_one_line(line, said, folder, capsys):
    Path("empty").mkdir()
    small = "--length 4 --samples 5 --test-samples 0"
    succeed(f"gen parity {small} --validation-samples 2 --out words")
    succeed(f"gen parity {small} --validation-samples 0 --out alone")
    assert said in complaint(capsys, line)


def train_quickly(task: str, steps: int) -> None:
    options = f"--steps {steps} --validation-words 64 --batch-size 64 --validate-every {steps}"
    succeed(f"train --model diagonal-real --task {task} {options} --out run")


def test_a_shortcut_that_solves_what_the_model_solves_is_named_on_standard_error(folder, capsys):
    train_quickly("tomita-1:words=members,labels=next-symbols", 30)
    said = capsys.readouterr().err
    assert "the best constant answer is right on 1.00 of their labels" in said
    succeed("eval run --length 40 --length 50 --samples 100 --json")
    printed = capsys.readouterr()
    rows = json.loads(printed.out)["rows"]
    assert {(row["shortcut"], row["shortcut_accuracy"]) for row in rows} == {("constant", 1.0)}
    (warned,) = [line for line in printed.err.splitlines() if line.startswith("warning")]
    assert "at 2 lengths from 40 to 50" in warned and "no evidence of state tracking" in warned


def test_a_model_that_does_no_better_than_a_shortcut_is_told_so(folder, capsys):
    train_quickly("modular-addition", 1)
    capsys.readouterr()
    succeed("eval run --length 100 --samples 100")
    (warned,) = [w for w in capsys.readouterr().err.splitlines() if w.startswith("warning")]
    assert "not above the best constant answer (0.20)" in warned and "no evidence" not in warned


def test_a_model_that_tracks_is_not_warned_of(folder, capsys):
    options = "--steps 300 --validate-every 100 --freeze recurrence --init signs"
    succeed(f"train --model diagonal-real --task parity {options} --out run")
    capsys.readouterr()
    succeed("eval run --length 200 --samples 200 --json")
    printed = capsys.readouterr()
    (row,) = json.loads(printed.out)["rows"]
    assert row["accuracy"] == 1.0 and row["shortcut_accuracy"] < 0.7
    assert "warning" not in printed.err


def test_words_too_long_to_count_have_no_shortcut(folder, capsys, monkeypatch):
    train_quickly("parity", 1)
    monkeypatch.setattr("statetrack.audit.audits.MOST_SYMBOLS", 300)
    opened = Run.open(Path("run"))
    near, far = opened.evaluate([30, 31], num_words=10)
    assert near.shortcut in VIEWS and 0 <= near.shortcut_accuracy <= 1
    assert far.shortcut is far.shortcut_accuracy is None
