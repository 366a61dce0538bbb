"""Answers that a model from elsewhere gives to a dataset are scored as `eval` scores a model."""

import json
from pathlib import Path

import numpy as np
import pytest
from torch import nn

import statetrack as st
from statetrack.cli.app import run
from statetrack.data import draw_splits, stream_words, write_dataset
from statetrack.errors import DatasetError
from statetrack.sources import LengthDistribution


class Toggle(nn.Module):
    """Right on parity up to its tenth symbol; then it answers 0."""

    def forward(self, symbols):
        right = symbols.cumsum(1) % 2
        right[:, 10:] = 0
        return nn.functional.one_hot(right, 2).float()


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    """A dataset of parity, with words of several lengths and test words of 20."""
    folder = tmp_path_factory.mktemp("words") / "parity"
    task = st.load_task("parity")
    lengths = LengthDistribution.parse("2-10")
    splits = draw_splits(
        task.source,
        lengths,
        num_train=60,
        num_validation=40,
        test_lengths=(20,),
        num_test=200,
        supervision="every",
        seed=0,
    )
    write_dataset(folder, task, splits)
    return folder


@pytest.fixture(scope="module")
def dataset(words):
    return st.read_dataset(words)


def answers_of(model, batch):
    return model(batch.to_torch().symbols).argmax(-1).numpy()


def test_scores_are_those_of_evaluate_on_the_same_words():
    task = st.load_task("parity")
    (expected,) = st.evaluate(Toggle(), task, [20], num_words=200, seed=3)
    batch = next(iter(st_words(task, 200, 20, 3)))
    card = {"labels": ["0", "1"]}
    (found,) = st.score({"test": answers_of(Toggle(), batch)}, st.Dataset(card, {"test": batch}))
    for name in ("length", "sequences", "accuracy", "low", "high", "symbol_accuracy"):
        assert getattr(found, name) == getattr(expected, name), name
    assert found.prefix_accuracy == expected.prefix_accuracy
    assert found.first_error == expected.first_error == 11
    assert found.floor == np.bincount(batch.labels[:, -1]).max() / 200
    assert found.shortcut is None


def st_words(task, num_words, length, seed):
    """The words that `evaluate` reads."""
    return stream_words(task.source.part("test"), num_words, length, seed, num_words * length)


def test_the_card_of_a_dataset_says_how_answers_are_scored(words):
    assert "`statetrack score ANSWERS --data " in (words / "README.md").read_text(encoding="utf-8")


def test_a_score_names_the_best_shortcut_and_counts_its_floor_on_the_words(dataset):
    last = {name: batch.symbols.astype(int) for name, batch in dataset.splits.items()}
    scores = {each.split: each for each in st.score(last, dataset)}
    assert list(scores) == list(dataset.splits)
    validation = scores["validation"]
    assert (validation.shortest, validation.length) == (2, 10)
    assert validation.sequences == 40
    assert scores["test_len20"].shortcut is not None
    assert scores["test_len20"].floor < 0.7


def test_one_answer_for_a_word_answers_its_last_label(dataset):
    test = dataset.splits["test_len20"]
    (every,) = st.score({"test_len20": test.labels}, dataset)
    (last,) = st.score({"test_len20": test.labels[:, -1]}, dataset)
    (wrong,) = st.score({"test_len20": 1 - test.labels[:, -1].astype(int)}, dataset)
    assert every.all_right and not every.last_only
    assert last.accuracy == 1 and last.last_only and last.first_error is None
    assert wrong.accuracy == wrong.symbol_accuracy == 0


def test_no_answer_is_a_wrong_one_and_padding_is_not_read(dataset):
    validation = dataset.splits["validation"]
    answers = np.where(validation.scored, validation.labels.astype(int), -100)
    (score,) = st.score({"validation": answers}, dataset)
    assert score.all_right
    answers[3, 0] = -1
    (score,) = st.score({"validation": answers}, dataset)
    assert score.first_error == 1 and score.accuracy == 1


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        (np.zeros((40, 9), int), r"shape \[40, 9\]"),
        (np.zeros((39, 10), int), r"shape \[39, 10\]"),
        (np.zeros((40, 10, 2)), "logits.argmax"),
        (np.full((40, 10), 2), "word 1, position 1: 2 is no label"),
    ],
)
def test_answers_that_do_not_fit_are_refused_with_their_place(answers, said, dataset):
    with pytest.raises(DatasetError, match=said):
        st.score({"validation": answers}, dataset)


def test_answers_to_no_split_are_refused(dataset):
    with pytest.raises(DatasetError, match="Did you mean 'test_len20'"):
        st.score({"test_len2": [0]}, dataset)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


def save(folder, dataset):
    """Answers of both formats: of the toggle, and of the last symbol."""
    folder.mkdir()
    test, validation = dataset.splits["test_len20"], dataset.splits["validation"]
    np.save(folder / "test_len20.npy", answers_of(Toggle(), test))
    lines = (
        json.dumps({"input": row.tolist(), "answers": row[:length].tolist()})
        for row, length in zip(answers_of(Toggle(), validation), validation.lengths, strict=True)
    )
    (folder / "validation.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_score_prints_a_table_no_wider_than_the_terminal(folder, words, dataset, capsys):
    save(folder / "mine", dataset)
    assert run(["score", "mine", "--data", str(words)]) == 0
    shown = capsys.readouterr()
    sentences = " ".join(shown.out.split())  # they wrap at the width
    assert "training lengths: every answer correct up to length 10" in sentences
    assert "test lengths: at length 20, " in sentences
    assert "the first error is at position 11" in sentences
    assert "warning: on test_len20 the model is right on" in shown.err
    table = [line for line in shown.out.splitlines() if line.startswith(("┃", "│"))]
    assert table and max(map(len, table)) <= 80


def test_score_of_last_answers_says_nothing_of_other_positions(folder, words, dataset, capsys):
    last = dataset.splits["test_len20"].labels[:, -1].tolist()
    lines = "".join(json.dumps({"answers": label}) + "\n" for label in last)
    Path("test_len20.jsonl").write_text(lines, encoding="utf-8-sig")  # with a byte order mark
    assert run(["score", "test_len20.jsonl", "--data", str(words)]) == 0
    shown = capsys.readouterr().out
    assert "│ 1.00 │" in " ".join(shown.split()) and "symbols" not in shown
    assert "every answer" not in shown
    assert "nothing is said of the others" in " ".join(shown.split())


def test_words_without_a_scored_position_have_no_score(dataset):
    test = dataset.splits["test_len20"]
    nothing = st.Batch(test.symbols, test.labels, np.zeros_like(test.scored), test.lengths)
    splits = {"train": dataset.splits["train"], "test": nothing}
    (score,) = st.score({"test": test.labels}, st.Dataset(dataset.card, splits))
    assert (score.sequences, score.shortcut, score.first_error) == (0, None, None)
    assert score.to_json()["accuracy"] is None and score.to_json()["floor"] is None


def test_score_prints_json_with_its_documented_keys(folder, words, dataset, capsys):
    save(folder / "mine", dataset)
    assert run(["score", "mine/test_len20.npy", "--data", str(words), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    (row,) = printed["rows"]
    assert (row["split"], row["length"], row["first_error"]) == ("test_len20", 20, 11)
    page = (Path(__file__).parents[1] / "docs" / "file-formats.md").read_text(encoding="utf-8")
    for heading, keys in (("score --json", printed), ("A row of score --json", row)):
        section = page.split(f"# {heading}\n")[1].split("\n#")[0]
        assert all(f"`{key}`" in section for key in keys), heading


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("validation.npy", b"\x93NUMPY no array", "is no array of numpy"),
        ("validation.jsonl", b'{"answers": [0, "1"]}\n', "line 1: not"),
        ("validation.jsonl", b'{"answers": 0}\n{"answers": [0]}\n', "line 2: 'answers' is a list"),
        ("validation.jsonl", b'{"answers": 0}\n', "has 1 lines, and the split 40 words"),
        ("validation.jsonl", b'{"answers": 0}\n' * 41, "has more lines"),
        ("validation.jsonl", b"[" * 10_000, "longer than the longest word"),
        ("valid.jsonl", b"", "Did you mean 'validation'"),
        ("validation.csv", b"0", "are read from .npy and .jsonl"),
    ],
)
def test_a_file_that_is_no_answers_is_refused_in_one_line(
    name, content, said, folder, words, capsys
):
    (folder / name).write_bytes(content)
    assert run(["score", name, "--data", str(words)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line


def test_an_array_that_promises_more_than_it_holds_takes_no_memory(folder, words, capsys):
    with Path("validation.npy").open("wb") as file:
        header = {"descr": "<i8", "fortran_order": False, "shape": (40, 2**50)}
        np.lib.format.write_array_header_1_0(file, header)
    assert run(["score", "validation.npy", "--data", str(words)]) == 1
    assert "is no array of numpy" in capsys.readouterr().err
