"""Recorded traces: their files, how words are drawn from them, and what labels them."""

import itertools
import json
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from statetrack.cli.app import run
from statetrack.data import draw_splits, whole_words
from statetrack.errors import SettingsError, TaskError, TaskWarning
from statetrack.evaluation import scored
from statetrack.sources import (
    Automaton,
    Corpus,
    LengthDistribution,
    WordStream,
    WrongTrace,
    build_source,
    weights_of,
)
from statetrack.sources.corpus import DEALT, Trace
from statetrack.spec import golden_hash, load_task
from tests.refusing import message_of
from tests.right_labels import check_labels

TURNSTILE = """digraph turnstile {
locked -> open [label="coin / click"]; locked -> locked [label="push / beep"];
open -> open [label="coin / click"]; open -> locked [label="push / turn"];
}
"""
WORDS = ["".join(word) for size in (5, 6) for word in itertools.product("cp", repeat=size)][::2]


def outputs_of(word: str) -> list[str]:
    """What the turnstile says."""
    said, is_open = [], False
    for letter in word:
        said.append("click" if letter == "c" else "turn" if is_open else "beep")
        is_open = letter == "c"
    return said


def names_in(word: str) -> list[str]:
    """The symbols of a word of first letters."""
    return [{"c": "coin", "p": "push"}[letter] for letter in word]


def as_csv(words: list[str] = WORDS, outputs: bool = True) -> str:
    """A trace in every row."""
    rows = [",".join(["symbols", "outputs"][: 1 + outputs])]
    for word in words:
        cells = [" ".join(names_in(word)), " ".join(outputs_of(word))]
        rows.append(",".join(cells[: 1 + outputs]))
    return "\n".join(rows) + "\n"


def as_steps(words: list[str] = WORDS) -> str:
    """A step in every row, with a time; the rows of two traces stand between each other."""
    rows = ["time,trace,symbol,output"]
    for first, second in itertools.zip_longest(words[::2], words[1::2]):
        for place in range(6):
            for name in filter(None, (first, second)):
                if place < len(name):
                    step = names_in(name)[place], outputs_of(name)[place]
                    rows.append(f"{len(rows)},{name},{','.join(step)}")
    return "\n".join(rows) + "\n"


def as_lines(words: list[str] = WORDS, outputs: bool = True) -> str:
    """A line of JSON for every trace."""
    lines = []
    for word in words:
        said = {"outputs": outputs_of(word)} if outputs else {}
        lines.append(json.dumps({"symbols": names_in(word), **said}))
    return "\n".join(lines) + "\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with a machine and traces of it in every form."""
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "turnstile.dot": TURNSTILE,
        "rows.csv": as_csv(),
        "steps.csv": as_steps(),
        "lines.jsonl": as_lines(),
        "unsaid.csv": as_csv(outputs=False),
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def text_of(source, symbols) -> str:
    """A word by the first letters of its symbols."""
    return "".join(source.symbols[symbol][0] for symbol in symbols)


def refused(name: str) -> str:
    """The message with which a task is refused."""
    return message_of(load_task, name)


def test_the_same_traces_are_the_same_task_in_every_form(folder):
    tasks = [load_task(name) for name in ("rows.csv", "steps.csv", "lines.jsonl")]
    assert len({golden_hash(task) for task in tasks}) == 1
    (folder / "turned.csv").write_text(as_csv(WORDS[::-1]), encoding="utf-8")
    assert golden_hash(load_task("turned.csv")) == golden_hash(tasks[0])
    (folder / "fewer.csv").write_text(as_csv(WORDS[1:]), encoding="utf-8")
    assert golden_hash(load_task("fewer.csv")) != golden_hash(tasks[0])
    assert tasks[0].source.symbols == ("coin", "push")
    assert tasks[0].source.labels == ("beep", "click", "turn")
    assert tasks[0].spec.description == (
        "48 recorded traces, read from rows.csv, with their outputs as labels."
    )


def test_words_are_beginnings_of_traces_and_labels_what_was_recorded(folder):
    source = load_task("rows.csv").source
    lengths = LengthDistribution(2, 6)
    batch = WordStream(source, lengths, "every", 0, "train").block(0, 1, 200)[0]
    for row, length in enumerate(batch.lengths):
        word = text_of(source, batch.symbols[row, :length])
        assert any(recorded.startswith(word) for recorded in WORDS)
        labels = [source.labels[label] for label in batch.labels[row, :length]]
        assert labels == outputs_of(word)
        assert batch.scored[row].sum() == length
    last = WordStream(source, lengths, "last", 0, "train").block(0, 1, 50)[0]
    assert (last.scored.sum(axis=1) == 1).all()
    assert last.scored[np.arange(50), last.lengths - 1].all()


def test_no_trace_is_for_two_purposes(folder):
    source = load_task("rows.csv").source
    whole = {}
    for purpose in ("train", "validation", "test"):
        part = source.part(purpose)
        words, chances = part.list_words(LengthDistribution(6, 6))
        whole[purpose] = {text_of(source, word) for word in words.symbols}
        assert chances.sum() == pytest.approx(1)
        assert part.part("test") is part
    assert sum(map(len, whole.values())) == len(set.union(*whole.values())) == 32
    assert len(whole["train"]) == sum(DEALT[place % 10] == "train" for place in range(32))
    drawn = {text_of(source, word) for word in next(whole_words(source, 300, 6, 0)).symbols}
    assert drawn == whole["test"]
    fresh = WordStream(source, LengthDistribution(6, 6), "every", 0, "train").block(0, 1, 400)[0]
    assert {text_of(source, word) for word in fresh.symbols} == whole["train"]


def test_datasets_have_no_test_word_of_a_training_trace(folder):
    source = load_task("rows.csv").source
    splits = draw_splits(source, LengthDistribution(5, 6), 10, 4, [6], 3, "every", 0)
    trained = {text_of(source, word) for word in source.part("train").list_words(
        LengthDistribution(6, 6))[0].symbols}  # fmt: skip
    tested = {text_of(source, word) for word in splits.parts["test_len6"].symbols}
    assert len(tested) == 3 and not tested & trained
    for batch in splits.parts.values():
        check_labels(batch, source, "here")


def test_words_are_counted_listed_and_weighted_by_how_often_they_were_recorded():
    source = build_source(
        {
            "kind": "traces",
            "traces": ["a a b", "a b", "b a", "b"],
            "outputs": ["x x y", "x y", "y x", "y"],
            "counts": [3, 1, 4, 2],
        },
        "here",
    )
    assert source.count_words(LengthDistribution(1, 1)) == 2
    assert source.count_words(LengthDistribution(1, 3)) == 2 + 3 + 1
    words, chances = source.list_words(LengthDistribution(1, 2))
    listed = {
        "".join(source.symbols[s] for s in word[:length]): Fraction(chance).limit_denominator(99)
        for word, length, chance in zip(words.symbols, words.lengths, chances, strict=True)
    }
    assert listed == {
        "a": Fraction(4, 20),
        "b": Fraction(6, 20),
        "aa": Fraction(3, 16),
        "ab": Fraction(1, 16),
        "ba": Fraction(4, 16),
    }
    assert source.floors([1, 2]) == {1: 6 / 10, 2: 7 / 8}
    bits = np.random.default_rng(0).integers(2**32, size=(8000, 1), dtype=np.uint32)
    drawn = Counter(text_of(source, word) for word in source.draw(bits, np.full(8000, 2), 2))
    for word, share in {"aa": 3 / 8, "ab": 1 / 8, "ba": 4 / 8}.items():
        assert drawn[word] / 8000 == pytest.approx(share, abs=0.02)


def test_floors_are_those_of_all_words(folder):
    source = load_task("rows.csv").source.part("test")
    for length, floor in source.floors([3, 5]).items():
        (batch,) = whole_words(source, 4000, length, 0)
        commonest = Counter(batch.labels[:, -1].tolist()).most_common(1)[0][1]
        assert floor == pytest.approx(commonest / 4000, abs=0.03)


def test_a_word_that_was_not_recorded_has_no_label_without_a_machine(folder):
    task = load_task("rows.csv")
    assert task.format_labels(task.parse_word("coin push push")) == "click turn beep"
    with pytest.raises(TaskError, match="the word 'coin coin coin coin coin coin coin' begins no"):
        task.format_labels(task.parse_word("coin " * 7))


def test_a_machine_labels_any_word(folder):
    task = load_task("unsaid.csv:machine=turnstile.dot")
    assert task.name == 'unsaid.csv:machine="turnstile.dot"'
    assert task.format_labels(task.parse_word("coin " * 7)) == " ".join(["click"] * 7)
    recorded = load_task("rows.csv")
    lengths = LengthDistribution(2, 6)
    ours, theirs = (
        WordStream(each.source, lengths, "every", 0, "train").block(0, 1, 50)[0]
        for each in (task, recorded)
    )
    np.testing.assert_array_equal(ours.symbols, theirs.symbols)
    for ours_row, theirs_row in zip(ours.labels, theirs.labels, strict=True):
        for label, other in zip(ours_row, theirs_row, strict=True):
            assert task.source.labels[label] == recorded.source.labels[other] or label == 0
    assert not task.has_automaton
    assert task.source.floors([5]) == recorded.source.floors([5])


def test_outputs_that_are_not_the_machines_are_refused_with_line_and_position(folder):
    wrong = as_csv().replace("beep click beep", "beep click turn", 1)
    lines = as_csv().splitlines()
    lines[3] = lines[3].replace("turn", "beep", 1)
    assert wrong
    (folder / "wrong.csv").write_text("\n".join(lines), encoding="utf-8")
    position = outputs_of(WORDS[2]).index("turn") + 1
    assert refused("wrong.csv:machine=turnstile.dot") == (
        f"wrong.csv, line 4: at position {position}, after 'push', it says 'beep', but the machine "
        "says 'turn'"
    )


def test_traces_that_begin_alike_must_say_the_same(folder):
    (folder / "two.csv").write_text(
        "symbols,outputs\na b,x y\nb,z\na a,x x\na b b,x z z\n", encoding="utf-8"
    )
    assert refused("two.csv") == (
        "two.csv, line 5: after its first 2 symbols it says 'z' and not 'y', unlike the trace in "
        "line 2, which begins alike"
    )
    with pytest.raises(WrongTrace, match=r"trace 2: .*unlike trace 1, which begins alike"):
        Corpus.of([Trace(("a",), ("x",)), Trace(("a",), ("y",)), Trace(("b",), ("x",)),
                   Trace(("b", "a"), ("x", "x"))], None)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("t.csv", "", "t.csv, line 1: the columns must be `symbols`"),
        ("t.csv", "word\na b\n", "t.csv, line 1: the columns must be `symbols`"),
        ("t.csv", "symbols,outputs\n", "t.csv: there are no traces in it"),
        ("t.csv", "symbols,outputs\na b,x\n", "t.csv, line 2: 1 outputs for 2 symbols"),
        ("t.csv", "symbols,outputs\na,x\n,\n", "t.csv, line 3: it has no symbols"),
        ("t.csv", "symbols,outputs\na,x,y\n", "t.csv, line 2: 3 cells, but there are 2 columns"),
        ("t.csv", "symbols\na b\nb\na\n", "t.csv, line 2: it says no outputs"),
        ("t.csv", "symbols,outputs\na,x\nb,y\na,x\n", "t.csv: 2 different traces: at least 3"),
        ("t.csv", "symbols,outputs,count\na,x,-1\n", "line 2: 'count' must be a whole number"),
        ("t.csv", 'symbols\n"a', "t.csv, line 2: not CSV: unexpected end of data"),
        ("t.csv", "symbols\na\x00b", "t.csv, line 2: "),
        ("t.csv", "symbols,count,count\na,1,1", "line 1: two columns are called 'count': "),
        ("t.csv", "trace,symbol,count\n1,a,2\n2,a,1\n1,a,1", "line 4: 'count' is 1 here"),
        ("t.csv", "trace,symbol,count\n1,a,0", "line 2: 'count' must be a whole number from 1"),
        ("t.jsonl", "\n", "t.jsonl: there are no traces in it"),
        ("t.jsonl", '\n{"symbols": "a", "symbols": "b"}', "line 2: the key 'symbols' appears"),
        ("t.jsonl", "[1, 2]", 't.jsonl, line 1: write {"symbols": [...], "outputs": [...]}'),
        ("t.jsonl", "{", "t.jsonl, line 1: this is no JSON object"),
        ("t.jsonl", "[" * 100_000, "t.jsonl, line 1: this is no JSON object"),
        ("t.jsonl", '{"symbols": [1.5]}', "line 1: symbols: 1.5 is neither text nor a whole"),
        ("t.jsonl", '{"symbols": {}}', "line 1: 'symbols' must be a list of names"),
        ("t.jsonl", '{"symbols": "a"}\n{"symbols": "a", "outputs": "b"}', "line 1: outputs are mi"),
        ("t.jsonl", '{"symbols": "a", "count": 1e99}', "line 1: 'count' must be a whole number"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_read_is_refused_in_one_line(folder, name, text, message):
    (folder / name).write_text(text, encoding="utf-8")
    assert message in refused(name)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("row.csv", "row.csv: cannot be read: No such file or directory. Did you mean 'rows.csv'?"),
        ("rows.csv:machine=turnstil.dot", "Did you mean 'turnstile.dot'?"),
        ("rows.csv:machine=turnstile", "machine: 'turnstile' is no machine file"),
        ("rows.csv:machin=turnstile.dot", "no argument 'machin'. Did you mean 'machine'?"),
        ("rows.csv:start=open", "a file of traces has no argument 'start'."),
        ("unsaid.csv", "unsaid.csv, line 2: it says no outputs"),
    ],
)
def test_a_wrong_name_is_refused(folder, name, message):
    assert message in refused(name)


def test_a_symbol_that_the_machine_does_not_have_is_refused_with_its_line(folder):
    (folder / "kick.jsonl").write_text(
        as_lines(outputs=False) + '{"symbols": ["cion"]}\n', encoding="utf-8"
    )
    assert refused("kick.jsonl:machine=turnstile.dot") == (
        "kick.jsonl, line 49: the machine has no symbol 'cion'. Did you mean 'coin'?"
    )


def test_names_with_spaces_and_numbers_are_names(folder):
    lines = ['{"symbols": ["a b", 1], "outputs": [0, "x y"]}', '{"symbols": [1], "outputs": [0]}',
             '{"symbols": ["a b"], "outputs": [0], "count": 3}']  # fmt: skip
    (folder / "names.jsonl").write_text("\n".join(lines), encoding="utf-8")
    task = load_task("names.jsonl")
    assert task.source.symbols == ("1", "a_b")
    assert task.format_labels(task.parse_word("a_b 1")) == "0 x_y"


def test_a_task_file_takes_traces_and_their_machine_from_files_beside_it(folder):
    (folder / "tasks").mkdir()
    (folder / "tasks" / "log.yaml").write_text(
        'title: What a turnstile said\nversion: 1\nreference: "own"\n'
        "automaton: {from: ../unsaid.csv, machine: ../turnstile.dot}\n"
        'examples: {"coin push push": "click turn beep"}\n',
        encoding="utf-8",
    )
    task = load_task("tasks/log.yaml")
    assert golden_hash(task) == golden_hash(load_task("unsaid.csv:machine=turnstile.dot"))
    assert (task.spec.train_length, task.spec.test_lengths) == ((2, 3), (6,))


def test_the_document_of_traces_needs_no_file(folder):
    for name in ("rows.csv", "rows.csv:machine=turnstile.dot"):
        task = load_task(name)
        (folder / "written.yaml").write_text(task.document(), encoding="utf-8")
        again = load_task("written.yaml")
        assert golden_hash(again) == golden_hash(task)
        assert again.document() == task.document()


def test_equal_traces_are_written_once_with_how_many_there_were(folder):
    (folder / "twice.csv").write_text(as_csv() + as_csv().partition("\n")[2], encoding="utf-8")
    task = load_task("twice.csv")
    assert set(task.spec.automaton["counts"]) == {2}
    assert len(task.spec.automaton["traces"]) == len(WORDS)
    header, *steps = as_steps().splitlines()
    rows = [f"{header},count", *(f"{step},2" for step in steps)]
    (folder / "steps2.csv").write_text("\n".join(rows), encoding="utf-8")
    assert golden_hash(load_task("steps2.csv")) == golden_hash(task)


def test_what_the_machine_file_lacks_is_said(folder):
    (folder / "gaps.dot").write_text(
        TURNSTILE.replace('open -> open [label="coin / click"];', ""), encoding="utf-8"
    )
    with pytest.warns(TaskWarning, match="1 transition is missing"):
        load_task("unsaid.csv:machine=gaps.dot")
    load_task("unsaid.csv:machine=gaps.dot,missing=stay")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"outputs": ["x"]}, "outputs: 1 for 3 traces"),
        ({"outputs": ["x", "y", "x y"], "counts": [1, 0, 1]}, "counts: 0 is less than 1"),
        ({"outputs": ["x", "y", "x"]}, "trace 3: 1 outputs for 2 symbols"),
        ({"outputs": ["x", "y", "x y"], "counts": [2**31, 1, 1]}, "recordings are too many"),
        ({}, "trace 1: it says no outputs"),
        ({"machine": {"kind": "parity"}}, "trace 1: the machine has no symbol 'a'"),
        ({"machine": {"kind": "dyck"}}, "machine"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message):
    with pytest.raises(TaskError, match=message):
        build_source({"kind": "traces", "traces": ["a", "b", "a b"], **arguments}, "here")


def test_too_long_a_length_is_refused_with_the_longest(folder):
    task = load_task("rows.csv")
    with pytest.raises(SettingsError, match="all reach 6 symbols at most"):
        task.sample(3, length=7)
    assert task.sample(3, length=6).symbols.shape == (3, 6)


def test_frequencies_are_by_state_and_overall_where_no_trace_goes_on():
    machine = Automaton([[1, 0], [2, 0], [2, 2]], symbols=["a", "b"])
    traces = [Trace(("a", "b", "a", "a"), None), Trace(("b",), None, times=2)]
    np.testing.assert_allclose(
        weights_of(traces, machine), [[2 / 4, 2 / 4], [1 / 2, 1 / 2], [3 / 6, 3 / 6]]
    )
    with pytest.raises(WrongTrace, match="trace 1: the machine has no symbol 'c'"):
        weights_of([Trace(("c",), None)], machine)


def test_traces_weigh_the_words_of_a_machine(folder):
    task = load_task("turnstile.dot").with_words("weighted:lines.jsonl")
    automaton = task.automaton
    coin, open_state = automaton.symbols.index("coin"), automaton.states.index("open")
    followed = Counter(
        after for word in WORDS for before, after in itertools.pairwise(word) if before == "c"
    )
    assert automaton.weights[open_state, coin] == pytest.approx(followed["c"] / followed.total())
    assert load_task("turnstile.dot").with_words("weighted:steps.csv").automaton.weights[
        open_state, coin
    ] == pytest.approx(followed["c"] / followed.total())


def test_a_run_on_traces_is_trained_evaluated_and_audited_without_the_file(folder, capsys):
    options = "--hidden 4 --steps 2 --batch-size 8 --out runs/log".split()
    assert run(["train", "--task", "rows.csv", "--model", "lstm", *options]) == 0
    (folder / "rows.csv").unlink()
    assert run(["eval", "runs/log", "--length", "6", "--samples", "10"]) == 0
    sizes = "--samples 10 --validation-samples 4 --test-samples 3 --test-length 6".split()
    assert run(["gen", "lines.jsonl", "--length", "4-5", *sizes, "--out", "words"]) == 0
    assert run(["audit", "words"]) == 0
    assert run(["predict", "lines.jsonl"]) == 1
    assert "comes from recorded traces and has no automaton" in capsys.readouterr().err


def test_evaluation_reads_the_traces_for_tests_alone(folder):
    import torch

    source = load_task("rows.csv").source

    class Recording(torch.nn.Module):
        """Answers nothing, and keeps what it was asked."""

        def __init__(self):
            super().__init__()
            self.seen = set()

        def forward(self, symbols):
            self.seen |= {text_of(source, word) for word in symbols.tolist()}
            return torch.zeros(*symbols.shape, source.num_labels)

    model = Recording()
    (score,) = scored(model, source, [6], num_words=50)
    words, _ = source.part("test").list_words(LengthDistribution(6, 6))
    assert model.seen == {text_of(source, word) for word in words.symbols}
    assert score.floor == source.part("test").floors([6])[6]
