"""Splits that do not overlap, and the folders that hold them."""

import errno
import json
import os
import re
import resource
import signal
import sys
import zipfile
from pathlib import Path
from typing import get_args

import numpy as np
import pyarrow
import pytest
import yaml

from statetrack.cli import app
from statetrack.cli.gen import GenSettings
from statetrack.data import (
    FORMATS,
    datasets,
    draw_splits,
    read_dataset,
    read_word_problem,
    write_dataset,
    write_word_problem,
)
from statetrack.data.card import _balance_table
from statetrack.data.formats.parquet import _numbers
from statetrack.data.formats.word_problem import group_name
from statetrack.errors import DatasetError, SettingsError
from statetrack.sources import Automaton, LengthDistribution
from statetrack.spec import load_task
from tests.right_labels import check_labels

S3_WORDS = "seed,input,target\n7,3 0 2,3 3 5\n7,1 1 4,1 0 4\n"
"""Computed by hand: with (p.q)(i) = p[q[i]], element 3 is 120 and 2 is 102, and 120.102 = 210."""


def splits_of(
    task,
    lengths="2-10",
    num_train=200,
    num_validation=50,
    test_lengths=(40,),
    num_test=20,
    supervision="every",
    seed=0,
):
    return draw_splits(
        task.automaton,
        LengthDistribution.parse(lengths),
        num_train,
        num_validation,
        test_lengths,
        num_test,
        supervision,
        seed,
    )


def words_of(batch):
    """The words of a split, with their labels, as a list."""
    return [
        (*symbols[:length].tolist(), None, *labels[:length].tolist(), None, *scored[:length])
        for symbols, labels, scored, length in zip(
            batch.symbols, batch.labels, batch.scored, batch.lengths, strict=True
        )
    ]


def overlaps(splits):
    """How many words stand in more than one split."""
    sets = [set(words_of(batch)) for batch in splits.parts.values()]
    return sum(map(len, sets)) - len(set().union(*sets))


@pytest.fixture
def parity():
    return load_task("parity")


@pytest.fixture
def flip_flop():
    return load_task("flip-flop")


# Splits


def test_splits_have_the_words_that_were_asked_for(parity):
    splits = splits_of(parity, test_lengths=(40, 30, 40))
    sizes = {name: len(batch) for name, batch in splits.parts.items()}
    assert sizes == {"train": 200, "validation": 50, "test_len30": 20, "test_len40": 20}
    assert set(splits.parts["train"].lengths) == set(range(2, 11))
    assert set(splits.parts["test_len30"].lengths) == {30}


@pytest.mark.parametrize("num_train", [1, 10, 22, 28, 29, 60, 500])
@pytest.mark.parametrize("seed", range(4))
def test_no_word_is_in_two_splits_even_where_words_are_few(parity, num_train, seed):
    splits = splits_of(parity, "1-4", num_train, 1 + num_train // 4, (5, 6), 16, seed=seed)
    assert overlaps(splits) == 0
    assert splits.distinct == (num_train + 1 + num_train // 4 <= 30)
    assert len(splits.parts["train"]) == num_train
    for name, batch in splits.parts.items():
        if splits.distinct or name.startswith("test"):
            assert len(set(words_of(batch))) == len(batch)


def test_test_words_within_the_training_lengths_are_none_of_the_training_words(parity):
    splits = splits_of(
        parity, "8", num_train=100, num_validation=56, test_lengths=(8,), num_test=100
    )
    assert overlaps(splits) == 0
    with pytest.raises(SettingsError, match=r"only 256 \(156 of them are in use elsewhere\)"):
        splits_of(parity, "8", num_train=100, num_validation=56, test_lengths=(8,), num_test=101)


def test_words_drawn_with_repetition_keep_their_law():
    task = load_task("flip-flop")
    splits = splits_of(task, "1-3", num_train=30_000, num_validation=0, num_test=0)
    assert not splits.distinct and set(splits.parts) == {"train"}
    counts = np.bincount(splits.parts["train"].lengths)[1:]
    np.testing.assert_allclose(counts / 30_000, 1 / 3, atol=0.015)
    first = np.bincount(splits.parts["train"].symbols[:, 0], minlength=task.automaton.num_symbols)
    expected = task.automaton.weights[task.automaton.start]
    np.testing.assert_allclose(first / 30_000, expected, atol=0.015)


def test_a_single_word_cannot_be_in_training_and_in_validation():
    with pytest.raises(SettingsError, match="only 1 words of length 5, too few"):
        draw_splits(Automaton([[0]]), LengthDistribution(5, 5), 3, 1, (), 0, "every", seed=0)


def test_a_dataset_without_training_words_is_refused(parity):
    with pytest.raises(SettingsError, match="there must be some"):
        splits_of(parity, num_train=0)


# Folders


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", ["parity", "s5", "random-fsm"])
def test_what_is_written_is_read_back(tmp_path, format, name):
    task = load_task(name)
    splits = splits_of(task)
    card = write_dataset(tmp_path / "set", task, splits, format=format)
    dataset = read_dataset(tmp_path / "set")
    assert dataset.card == card
    assert list(dataset.splits) == list(splits.parts)
    for name, batch in splits.parts.items():
        again = dataset.splits[name]
        in_order = np.argsort(batch.lengths, kind="stable") if format == "csv" else slice(None)
        assert words_of(again) == words_of(batch[in_order])
        assert not again.symbols[~again.scored].any() and not again.labels[~again.scored].any()


@pytest.mark.parametrize("format", ["parquet", "jsonl", "npz"])
@pytest.mark.parametrize("supervision", ["every", "last"])
def test_masks_are_read_back(tmp_path, format, supervision, flip_flop):
    splits = splits_of(flip_flop, "4-20", supervision=supervision)
    write_dataset(tmp_path / "set", flip_flop, splits, format=format)
    train = read_dataset(tmp_path / "set").splits["train"]
    assert words_of(train) == words_of(splits.parts["train"])
    assert 0 < train.scored.sum() < train.lengths.sum()


def test_parquet_of_several_row_groups_is_read_back(tmp_path, monkeypatch, parity):
    monkeypatch.setattr("statetrack.data.formats.parquet._SYMBOLS_PER_ROW_GROUP", 70)
    splits = splits_of(parity)
    write_dataset(tmp_path / "set", parity, splits)
    again = read_dataset(tmp_path / "set").splits["train"]
    assert words_of(again) == words_of(splits.parts["train"])


@pytest.mark.parametrize("kind", ["uint8", "int32", "bool"])
def test_a_part_of_a_column_holds_its_own_numbers(kind):
    values = [3, 1, 0, 4, 0, 0, 1, 5, 9, 0, 2] if kind != "bool" else [True, False, True] * 4
    whole = pyarrow.array(values, kind)
    for first in range(len(values) + 1):
        part = whole.slice(first, 5)
        assert _numbers(part).tolist() == part.to_pylist() == values[first : first + 5]


def test_every_format_has_the_same_fingerprint_and_other_seeds_another(tmp_path, parity):
    cards = [
        write_dataset(tmp_path / format, parity, splits_of(parity), format=format)
        for format in FORMATS
    ]
    other = write_dataset(tmp_path / "other", parity, splits_of(parity, seed=1))
    assert len({card["sha256"] for card in cards}) == 1
    assert other["sha256"] != cards[0]["sha256"]


@pytest.mark.parametrize("format", ["parquet", "jsonl", "csv", "lm-eval"])
def test_the_datasets_library_loads_the_folder_as_it_is(tmp_path, monkeypatch, format, parity):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")
    import datasets

    splits = splits_of(parity)
    write_dataset(tmp_path / "set", parity, splits, format=format)
    loaded = datasets.load_dataset(str(tmp_path / "set"), cache_dir=str(tmp_path / "cache"))
    assert set(loaded) == {"train", "validation", "test_len40"}
    for name, batch in splits.parts.items():
        rows = loaded[name]
        if format == "csv":
            found = sorted((row["input"], row["target"]) for row in rows)
            expected = sorted(
                (" ".join(map(str, word[:length])), " ".join(map(str, labels[:length])))
                for word, labels, length in zip(
                    batch.symbols, batch.labels, batch.lengths, strict=True
                )
            )
            assert found == expected
            continue
        assert rows["length"][:] == batch.lengths.tolist()
        assert rows[3]["input"] == batch.symbols[3, : batch.lengths[3]].tolist()
        assert rows[3]["target"] == batch.labels[3, : batch.lengths[3]].tolist()
        assert rows[3]["scored"] == batch.scored[3, : batch.lengths[3]].tolist()


def test_the_card_says_what_the_data_are(tmp_path, parity):
    splits = splits_of(parity, seed=4)
    command = "statetrack gen parity --seed 4"
    card = write_dataset(tmp_path / "set", parity, splits, command=command)
    assert json.loads((tmp_path / "set" / "card.json").read_text(encoding="utf-8")) == card
    assert card["task"] == "parity" and card["seed"] == 4 and card["train_length"] == "2-10"
    train, facts = splits.parts["train"], card["splits"]["train"]
    assert facts["words"] == 200 and facts["symbols"] == train.lengths.sum()
    share = train.labels[train.scored].mean()
    assert facts["label_balance"] == pytest.approx({"0": 1 - share, "1": share}, abs=1e-6)
    assert facts["constant_answer"]["share"] == pytest.approx(max(share, 1 - share), abs=1e-6)

    readme = (tmp_path / "set" / "README.md").read_text(encoding="utf-8")
    front = yaml.safe_load(readme.split("---\n")[1])
    assert front["configs"][0]["data_files"][0] == {
        "split": "train",
        "path": "data/train-*.parquet",
    }
    for fact in (parity.spec.title, parity.spec.reference, card["sha256"], command):
        assert fact in readme


def test_a_share_of_1_is_written_of_all_labels_alone():
    shares = {"rare": 0.00004, "usual": 0.99996}
    splits = {
        "train": {"label_balance": shares},
        "test": {"label_balance": {"rare": 0, "usual": 1}},
    }
    table = _balance_table({"labels": [*shares], "splits": splits})
    assert "| rare | 0.0000 | 0.0000 |" in table and "| usual | 0.9999 | 1.0000 |" in table


def test_the_task_in_the_card_loads_again(tmp_path):
    task = load_task("modular-addition:m=7")
    write_dataset(tmp_path / "set", task, splits_of(task))
    dataset = read_dataset(tmp_path / "set")
    path = tmp_path / "task.yaml"
    path.write_text(dataset.card["document"], encoding="utf-8")
    again = load_task(str(path))
    assert again.name == dataset.card["task"] == "modular-addition:m=7"
    for name, batch in dataset.splits.items():
        check_labels(batch, again.automaton, name)


def test_a_label_that_the_automaton_does_not_give_is_found(parity):
    batch = splits_of(parity).parts["train"]
    check_labels(batch, parity.automaton, "train")
    batch.labels[17, 1] ^= 1
    with pytest.raises(DatasetError, match="train: word 18: the label at position 2 is"):
        check_labels(batch, parity.automaton, "train")
    batch.symbols[0, 0] = 9
    with pytest.raises(DatasetError, match="symbol 9 occurs, but the task has 2"):
        check_labels(batch, parity.automaton, "train")


# What can go wrong


def names_in(folder):
    """All that lies in a folder, hidden files too."""
    return sorted(path.name for path in folder.iterdir())


def test_a_folder_that_holds_something_is_never_written_over(tmp_path, parity):
    folder = tmp_path / "set"
    folder.mkdir()
    (folder / "mine.txt").write_text("precious", encoding="utf-8")
    with pytest.raises(DatasetError, match="is not empty, and nothing is written over"):
        write_dataset(folder, parity, splits_of(parity))
    assert names_in(folder) == ["mine.txt"] and names_in(tmp_path) == ["set"]


def test_a_dataset_that_came_meanwhile_is_not_replaced(tmp_path, monkeypatch, parity):
    folder, other, made = tmp_path / "set", tmp_path / "other", datasets.readme_of
    write_dataset(other, parity, splits_of(parity, seed=1))

    def meanwhile(card, shown):
        other.rename(folder)
        return made(card, shown)

    monkeypatch.setattr(datasets, "readme_of", meanwhile)
    with pytest.raises(DatasetError, match="is not empty, and nothing is written over"):
        write_dataset(folder, parity, splits_of(parity))
    assert read_dataset(folder).card["seed"] == 1 and names_in(tmp_path) == ["set"]


def test_an_empty_folder_and_missing_parents_are_fine(tmp_path, parity):
    (tmp_path / "set").mkdir()
    for folder in (tmp_path / "set", tmp_path / "some" / "where" / "else"):
        write_dataset(folder, parity, splits_of(parity))
        assert names_in(folder) == ["README.md", "card.json", "data"]
    assert names_in(tmp_path) == ["set", "some"]


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path, parity):
    (tmp_path / "set").write_text("", encoding="utf-8")
    with pytest.raises(DatasetError, match="is a file"):
        write_dataset(tmp_path / "set", parity, splits_of(parity))
    with pytest.raises(DatasetError, match=r"set is a file: choose another folder"):
        write_dataset(tmp_path / "set" / "below", parity, splits_of(parity))


def test_a_read_only_disk_is_one_clear_line(tmp_path, monkeypatch, parity):
    def refuse(self, *args, **kwargs):
        raise OSError(errno.EROFS, "Read-only file system", str(self))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(DatasetError) as caught:
        write_dataset(tmp_path / "set", parity, splits_of(parity))
    assert str(caught.value) == f"{tmp_path / 'set'}: cannot be written: Read-only file system"


@pytest.fixture
def tiny_disk():
    """No file may grow beyond 4000 bytes, as on a disk that is nearly full."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    earlier = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4000, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    signal.signal(signal.SIGXFSZ, earlier)


@pytest.mark.parametrize("format", FORMATS)
def test_a_full_disk_leaves_nothing_behind(tmp_path, tiny_disk, format, parity):
    splits = splits_of(parity, "300", num_train=300)
    with pytest.raises(DatasetError, match="cannot be written: File too large"):
        write_dataset(tmp_path / "set", parity, splits, format=format)
    assert names_in(tmp_path) == []


def test_an_interrupt_leaves_nothing_behind(tmp_path, monkeypatch, parity):
    def interrupt(card, folder):
        raise KeyboardInterrupt

    monkeypatch.setattr("statetrack.data.datasets.readme_of", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_dataset(tmp_path / "set", parity, splits_of(parity))
    assert names_in(tmp_path) == []


def test_parquet_without_pyarrow_says_what_to_do(tmp_path, monkeypatch, parity):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(DatasetError, match=r"pip install pyarrow, or choose format="):
        write_dataset(tmp_path / "set", parity, splits_of(parity))
    assert names_in(tmp_path) == []


@pytest.mark.parametrize(
    ("format", "file"),
    [
        ("parquet", "train-00000-of-00001.parquet"),
        ("jsonl", "train.jsonl"),
        ("npz", "train.npz"),
        ("csv", "train/parity=5.csv"),
    ],
)
@pytest.mark.parametrize("damage", ["missing", "emptied", "garbled"])
def test_damaged_splits_are_one_clear_line(tmp_path, parity, format, file, damage):
    write_dataset(tmp_path / "set", parity, splits_of(parity, "5", 16, 4), format=format)
    path = tmp_path / "set" / "data" / file
    assert path.is_file()
    path.unlink()
    if damage != "missing":
        path.write_bytes(b"" if damage == "emptied" else b"PK\x03\x04 garbled {[,\n")
    with pytest.raises(DatasetError) as caught:
        read_dataset(tmp_path / "set")
    assert "\n" not in str(caught.value) and str(tmp_path / "set") in str(caught.value)


@pytest.mark.parametrize(
    "line",
    ["[1, 2]", '{"input": [1]}', '{"input": [-1], "target": [0], "scored": [true], "length": 1}'],
)
def test_a_line_of_json_that_is_no_word_is_named(tmp_path, parity, line):
    write_dataset(tmp_path / "set", parity, splits_of(parity), format="jsonl")
    path = tmp_path / "set" / "data" / "validation.jsonl"
    path.write_text(path.read_text(encoding="utf-8") + line, encoding="utf-8")
    with pytest.raises(DatasetError, match=r"validation\.jsonl, line 51: not a word"):
        read_dataset(tmp_path / "set")


def test_changed_data_are_noticed(tmp_path, parity):
    write_dataset(tmp_path / "set", parity, splits_of(parity), format="jsonl")
    path = tmp_path / "set" / "data" / "train.jsonl"
    first, *rest = path.read_text(encoding="utf-8").splitlines(keepends=True)
    line = json.loads(first)
    line["target"][0] ^= 1
    path.write_text(json.dumps(line) + "\n" + "".join(rest), encoding="utf-8")
    with pytest.raises(DatasetError, match="they were changed after they were written"):
        read_dataset(tmp_path / "set")


@pytest.mark.parametrize(
    "card", [None, "{", "[]", '{"card_version": 1}', '{"card_version": 1, "format": "npz"}']
)
def test_a_folder_without_a_card_is_no_dataset(tmp_path, card):
    if card is not None:
        (tmp_path / "card.json").write_text(card, encoding="utf-8")
    with pytest.raises(
        DatasetError, match=r"has no card\.json: give a folder|card\.json: is not the card"
    ):
        read_dataset(tmp_path)


def test_a_dataset_of_a_later_version_is_refused(tmp_path, parity):
    card = write_dataset(tmp_path / "set", parity, splits_of(parity))
    newer = json.dumps(card | {"card_version": 99, "made_by": "statetrack 9"})
    (tmp_path / "set" / "card.json").write_text(newer, encoding="utf-8")
    with pytest.raises(DatasetError, match=r"another version of statetrack \(statetrack 9\)"):
        read_dataset(tmp_path / "set")


# Word-problem CSV


def test_word_problems_in_the_published_format_are_read_and_checked(tmp_path):
    path = tmp_path / "S3=3.csv"
    path.write_text(S3_WORDS, encoding="utf-8")
    batch = read_word_problem(path, load_task("s3").automaton)
    assert batch.symbols.tolist() == [[3, 0, 2], [1, 1, 4]]
    assert batch.labels.tolist() == [[3, 3, 5], [1, 0, 4]]
    assert batch.scored.all() and batch.lengths.tolist() == [3, 3]
    write_word_problem(tmp_path / "again.csv", batch.symbols, batch.labels, seed=7)
    assert (tmp_path / "again.csv").read_bytes() == S3_WORDS.encode()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (S3_WORDS.replace("3 3 5", "3 3 1"), "line 2: target 1 at position 3, but the task says 5"),
        (
            S3_WORDS.replace("1 1 4,", "1 1 6,"),
            "line 3: symbol 6 at position 3, but the task has 6",
        ),
        (
            S3_WORDS.replace("seed,input,", "length,input,"),
            "the first line is not seed,input,target",
        ),
        (S3_WORDS.replace("7,1 1 4,", "7,1 1,"), "line 3: 2 numbers where others have 3"),
        (S3_WORDS.replace("1 0 4", "1 0"), "line 3: 2 numbers where others have 3"),
        (S3_WORDS.replace("1 0 4", "1 x 4"), "line 3: target is not small whole numbers"),
        (S3_WORDS.replace("1 0 4", "1 0 9999999"), "line 3: target is not small whole numbers"),
        (S3_WORDS.replace("1 1 4,", ""), "line 3: 2 columns, not 3"),
        ("seed,input,target\n", "holds no words"),
        ("", "the first line is not seed,input,target"),
    ],
)
def test_word_problems_that_are_wrong_name_the_line(tmp_path, text, message):
    path = tmp_path / "S3=3.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DatasetError) as caught:
        read_word_problem(path, load_task("s3").automaton)
    assert message in str(caught.value) and str(path) in str(caught.value)


def test_a_missing_word_problem_is_one_clear_line(tmp_path):
    with pytest.raises(DatasetError, match="cannot be read: No such file"):
        read_word_problem(tmp_path / "A5=3.csv", load_task("a5").automaton)


def test_a_csv_dataset_has_one_published_file_for_each_length(tmp_path):
    task = load_task("a4xz5")
    write_dataset(tmp_path / "set", task, splits_of(task, "2-4", seed=9), format="csv")
    train = tmp_path / "set" / "data" / "train"
    assert names_in(train) == ["A4_x_Z5=2.csv", "A4_x_Z5=3.csv", "A4_x_Z5=4.csv"]
    batch = read_word_problem(train / "A4_x_Z5=3.csv", task.automaton)
    assert batch.symbols.shape[1] == 3
    assert (train / "A4_x_Z5=3.csv").read_text(encoding="utf-8").splitlines()[1].startswith("9,")


def test_word_problems_cannot_leave_labels_out(tmp_path, parity):
    splits = splits_of(parity, supervision="last")
    with pytest.raises(DatasetError, match="word-problem CSV has a label after every symbol"):
        write_dataset(tmp_path / "set", parity, splits, format="csv")
    assert names_in(tmp_path) == []


@pytest.mark.parametrize(
    ("task", "name"),
    [
        ("a5", "A5"),
        ("a4xz5", "A4_x_Z5"),
        ("s5-swaps", "s5-swaps"),
        ("modular-addition:m=25", "modular-addition_m_25"),
        ("../mine.yaml", ".._mine.yaml"),
    ],
)
def test_files_are_named_as_the_published_ones(task, name):
    assert group_name(task) == name


def test_the_command_offers_every_format() -> None:
    assert get_args(GenSettings.model_fields["format"].annotation) == tuple(FORMATS)


# Datasets from elsewhere: nothing in them is believed


def rewrite_card(folder, **changes):
    """Replace keys of a dataset's card, or of its split train (those that `train_` begins)."""
    path = folder / "card.json"
    card = json.loads(path.read_text(encoding="utf-8"))
    for key, value in changes.items():
        facts = card["splits"]["train"] if key.startswith("train_") else card
        facts[key.removeprefix("train_")] = value
    path.write_text(json.dumps(card), encoding="utf-8")


def refusal(folder):
    """The one line with which a folder is refused."""
    with pytest.raises(DatasetError) as caught:
        read_dataset(folder)
    message = str(caught.value)
    assert "\n" not in message and message.isprintable() and str(folder) in message
    return message


@pytest.fixture
def written(tmp_path, parity):
    """`written("npz")`: a small dataset in that format."""

    def write(format):
        write_dataset(tmp_path / "set", parity, splits_of(parity), format=format)
        return tmp_path / "set"

    return write


def test_a_folder_may_be_given_as_text(written):
    folder = written("jsonl")
    assert read_dataset(str(folder)).card == read_dataset(folder).card


PROGRAMS = {"parquet": 3, "jsonl": 2, "npz": 2, "csv": 2, "lm-eval": 2}


@pytest.mark.parametrize(
    ("format", "given"),
    [*((format, "data/words") for format in PROGRAMS), ("npz", "{here}/data/words")],
)
def test_the_programs_of_a_card_run_as_they_are_printed(
    tmp_path, monkeypatch, capsys, parity, format, given
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    folder = Path(given.format(here=tmp_path))
    write_dataset(folder, parity, splits_of(parity), format=format)
    readme = (folder / "README.md").read_text(encoding="utf-8")
    assert "FOLDER" not in readme and str(tmp_path) not in readme
    programs = re.findall(r"^```python\n(.*?)^```$", readme, re.S | re.M)
    assert len(programs) == PROGRAMS[format]
    for program in programs:
        exec(compile(program, "README.md", "exec"), {})
        assert capsys.readouterr().out.strip(), program


def test_a_card_of_a_folder_elsewhere_names_the_folder_alone(tmp_path, monkeypatch, parity):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    write_dataset(tmp_path / "words", parity, splits_of(parity), format="npz")
    readme = (tmp_path / "words" / "README.md").read_text(encoding="utf-8")
    assert 'st.read_dataset("words")' in readme and str(tmp_path) not in readme
    monkeypatch.chdir(tmp_path)
    (program, _) = re.findall(r"^```python\n(.*?)^```$", readme, re.S | re.M)
    exec(program, {})


def npz_of(path, **arrays):
    """Write an archive, compressed."""
    np.savez_compressed(path, **arrays)


def test_an_archive_that_declares_more_than_the_card_is_never_expanded(written):
    folder = written("npz")
    wide = np.zeros((200, 100_000), np.uint8)
    npz_of(
        folder / "data" / "train.npz",
        symbols=wide,
        labels=wide,
        scored=wide.view(np.bool_),
        lengths=np.full(200, 10),
    )
    del wide
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert "symbols has the shape (200, 100000), but card.json declares 200 words" in refusal(
        folder
    )
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 10_000  # kB


def test_a_card_that_declares_more_than_is_read_is_refused_before_any_file_is_opened(written):
    folder = written("npz")
    (folder / "data" / "train.npz").unlink()
    million = 1_000_000
    rewrite_card(
        folder, train_words=million, train_longest=million, train_symbols=million * million
    )
    assert "its words take 3,000.0 GB of memory, more than the 4.3 GB" in refusal(folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"splits": {}}, "'splits': Dictionary should have at least 1 item"),
        ({"train_words": 0}, "'splits.train.words': Input should be greater"),
        ({"train_words": "200"}, "'splits.train.words': Input should be a valid integer"),
        ({"train_words": 10**30}, "'splits.train.words': Input should be less"),
        ({"train_symbols": 7}, "words, lengths and symbols do not fit each other"),
        ({"train_labels_asked": 10**9}, "there are more labels than symbols"),
        ({"format": "../parquet"}, "'format': Input should be 'parquet', 'jsonl', 'npz', 'csv' or"),
        ({"sha256": "0"}, "'sha256': String should match pattern"),
        ({"symbols": []}, "'symbols': Tuple should have at least 1 item"),
        ({"seed": 1.5}, "'seed': Input should be a valid integer"),
        ({"more": 1}, "'more': Extra inputs are not permitted"),
        ({"m\x1b[31m": 1}, r"'m\x1b[31m': Extra inputs are not permitted"),
        ({"sha256": "0" * 64}, "the data are not those of card.json"),
        ({"train_words": 201, "train_labels_asked": 9}, "train.jsonl: holds 200 words"),
        ({"train_labels_asked": 9}, "train.jsonl: 'labels_asked' is"),
        ({"symbols": ["0"]}, "symbol 1, where card.json allows only 0"),
        ({"labels": ["0"]}, "label 1, where card.json allows only 0"),
    ],
)
def test_a_card_that_cannot_be_is_refused_with_its_key(written, changes, message):
    folder = written("jsonl")
    rewrite_card(folder, **changes)
    assert message in refusal(folder)


@pytest.mark.parametrize("name", ["../train", "/etc/passwd", "", "a\0b", "a/b", "a\nb", "x" * 99])
def test_a_split_whose_name_is_no_name_of_a_file_is_refused(written, name):
    folder = written("npz")
    card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
    rewrite_card(folder, splits={name: card["splits"]["train"]})
    assert "card.json: is not the card of a dataset: 'splits." in refusal(folder)


@pytest.mark.parametrize(
    "text", [b"\xff\xfe{}", b"[" * 100_000, b'{"card_version": ' + b"9" * 5000]
)
def test_bytes_that_are_no_card_are_refused(written, text):
    folder = written("npz")
    (folder / "card.json").write_bytes(text)
    assert "card.json: is not the card of a dataset" in refusal(folder)


def good_arrays(folder):
    """The arrays of the split train."""
    with np.load(folder / "data" / "train.npz") as archive:
        return dict(archive)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda a: a | {"symbols": a["symbols"].astype(np.float32)},
            "symbols has the type float32",
        ),
        (lambda a: a | {"symbols": a["symbols"].astype(">u2")}, "symbols has the type >u2"),
        (lambda a: a | {"symbols": np.array([{}] * 3, object)}, "symbols has the type object"),
        (
            lambda a: a | {"symbols": np.array(a["symbols"], order="F")},
            "symbols is not in the order",
        ),
        (lambda a: a | {"labels": a["labels"][:-1]}, "labels has the shape (199, 10), but"),
        (lambda a: a | {"lengths": a["lengths"][:, None]}, "lengths has the shape (200, 1), but"),
        (lambda a: a | {"symbols": a["symbols"] + 2}, "train.npz, word 1:"),
        (lambda a: a | {"labels": a["labels"] | 2}, "train.npz, word 1:"),
        (lambda a: a | {"lengths": a["lengths"] - 9}, "train.npz, word 1: length -"),
        (lambda a: a | {"lengths": a["lengths"] + 9}, "train.npz, word 1: length 1"),
        (lambda a: a | {"scored": np.ones_like(a["scored"])}, "something stands behind its end"),
        (lambda a: a | {"scored": a["scored"] * np.uint8(1)}, "scored has the type uint8"),
        (lambda a: a | {"../more": a["labels"]}, "and no others"),
        (lambda a: {name: a[name] for name in ("symbols", "labels")}, "does not hold the arrays"),
    ],
)
def test_an_archive_with_other_arrays_is_refused_with_the_name(written, change, message):
    folder = written("npz")
    path = folder / "data" / "train.npz"
    npz_of(path, **change(good_arrays(folder)))
    assert message in refusal(folder) and f"{path}" in refusal(folder)


def test_an_archive_longer_than_its_headers_say_is_refused(written):
    folder = written("npz")
    path = folder / "data" / "train.npz"
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data + b"\0")
    assert "symbols is longer than its header says" in refusal(folder)


@pytest.mark.parametrize("shape", ["(200L, 10L)", "(" * 3_000, "(200, 10**9)", "__import__('os')"])
def test_a_header_that_numpy_would_repair_or_parse_is_refused(written, shape):
    folder = written("npz")
    path = folder / "data" / "train.npz"
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    size = len(header).to_bytes(2, "little")
    members["symbols.npy"] = b"\x93NUMPY\x01\x00" + size + header + bytes(2_000)
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    assert f"{path}: symbols is no array: " in refusal(folder)


def lines_of(folder):
    """The lines of the split train."""
    text = (folder / "data" / "train.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"input": [1.5]}, "line 4: not a word: 'input.0'"),
        ({"input": [-1]}, "line 4: not a word: 'input.0'"),
        ({"input": [2**40]}, "line 4: not a word: 'input.0'"),
        ({"input": [[0]]}, "line 4: not a word: 'input.0'"),
        ({"input": [None]}, "line 4: not a word: 'input.0'"),
        ({"target": "0"}, "line 4: not a word: 'target'"),
        ({"scored": [1]}, "line 4: not a word: 'scored.0'"),
        ({"length": 0}, "line 4: not every symbol has its label"),
        ({"input": [], "target": [], "scored": [], "length": 0}, "line 4: length 0"),
        (
            {"input": [0] * 11, "target": [0] * 11, "scored": [True] * 11, "length": 11},
            "line 4: length 11, where card.json allows at most 10",
        ),
        ({"input": [0] * 100_000}, "line 4: longer than the longest word"),
    ],
)
def test_a_line_that_is_not_as_the_card_declares_is_named(written, changes, message):
    folder = written("jsonl")
    lines = lines_of(folder)
    lines[3] |= changes
    path = folder / "data" / "train.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    assert f"{path}, {message}" in refusal(folder)


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        (
            "input",
            lambda rows: [[float(x) for x in row] for row in rows],
            "'input' has another type",
        ),
        ("input", lambda rows: [[[x] for x in row] for row in rows], "'input' has another type"),
        ("input", lambda rows: [[None, *row[1:]] for row in rows], "a value is missing (null)"),
        ("input", lambda rows: [None, *rows[1:]], "does not hold the"),
        ("input", lambda rows: [[0] * 100_000, *rows[1:]], "does not hold the"),
        ("input", lambda rows: [[7, *row[1:]] for row in rows], "word 1: symbol 7"),
        ("target", lambda rows: [[-1, *row[1:]] for row in rows], "word 1: label -1"),
        ("scored", lambda rows: [[1] * len(row) for row in rows], "'scored' has another type"),
        ("length", lambda rows: [float(row) for row in rows], "'length' is not of whole numbers"),
        ("length", lambda rows: [row % 9 + 2 for row in rows], "not every symbol has its label"),
        ("more", lambda rows: [0] * 200, "its columns are not input, target, scored, length"),
    ],
)
def test_a_table_that_is_not_as_the_card_declares_is_refused(written, column, values, message):
    import pyarrow
    from pyarrow import parquet

    folder = written("parquet")
    path = folder / "data" / "train-00000-of-00001.parquet"
    columns = parquet.read_table(path).to_pydict()
    columns[column] = values(columns.get(column))
    parquet.write_table(pyarrow.table(columns), path)
    assert message in refusal(folder)


def test_a_table_of_the_right_footer_and_more_rows_is_refused(written):
    import pyarrow
    from pyarrow import parquet

    folder = written("parquet")
    path = folder / "data" / "train-00000-of-00001.parquet"
    table = parquet.read_table(path)
    parquet.write_table(pyarrow.concat_tables([table] * 50), path)
    assert "holds 10000 rows, card.json 200 words" in refusal(folder)


def test_csv_files_for_lengths_that_the_card_does_not_have_are_refused(written):
    folder = written("csv")
    train = folder / "data" / "train"
    (train / "parity=5.csv").rename(train / "parity=500.csv")
    assert "card.json has no words of length 500" in refusal(folder)


@pytest.mark.parametrize(
    ("format", "file"),
    [
        ("parquet", "data/train-00000-of-00001.parquet"),
        ("jsonl", "data/train.jsonl"),
        ("npz", "data/train.npz"),
        ("csv", "data/train/parity=5.csv"),
        ("npz", "card.json"),
    ],
)
@pytest.mark.parametrize("instead", [os.mkfifo, os.mkdir])
def test_a_pipe_or_a_folder_in_the_place_of_a_file_is_refused_at_once(
    written, format, file, instead
):
    folder = written(format)
    (folder / file).unlink()
    instead(folder / file)
    assert f"{folder / file}: cannot be read: it is not a file" in refusal(folder)


def test_words_longer_than_a_field_of_the_csv_library_are_read_back(tmp_path, parity):
    splits = splits_of(parity, "70000", num_train=2, num_validation=1, num_test=0)
    write_dataset(tmp_path / "set", parity, splits, format="csv")
    assert words_of(read_dataset(tmp_path / "set").splits["train"]) == words_of(
        splits.parts["train"]
    )


def test_an_audit_of_a_damaged_dataset_is_one_line(written, capsys):
    folder = written("npz")
    (folder / "data" / "train.npz").write_bytes(b"\xff" * 100)
    assert app.run(["audit", str(folder)]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"error: {folder / 'data' / 'train.npz'}: not a split of a dataset")
    assert error.count("\n") == 1


def test_labels_of_no_words_are_right(parity):
    batch = splits_of(parity).parts["train"]
    check_labels(batch[:0], parity.automaton, "nothing")
    check_labels(batch[:0].cut(0, 0), parity.automaton, "nothing")
