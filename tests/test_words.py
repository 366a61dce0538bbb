"""How words are drawn: uniformly, inside a group of the machine, by frequencies of symbols."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import statetrack as st
from statetrack import sweep
from statetrack.algebra import chosen_walk
from statetrack.algebra.group_words import Walk, walks
from statetrack.cli.app import run
from statetrack.errors import RunError, SettingsError, TaskError
from statetrack.runs import Run, files
from statetrack.sources import Automaton, LengthDistribution
from statetrack.spec import Task, golden_hash
from statetrack.training import DataSettings

BROKER = Automaton(
    [[1, 0, 0, 0, 0], [2, 1, 1, 3, 1], [1, 2, 2, 3, 2], [3, 3, 3, 3, 0]],
    [0, 1, 2, 3],
    symbols=["connect", "ping", "publish", "break", "repair"],
)
"""From state 0, `connect` leads to 1, and then back and forth between 1 and 2; `break` merges."""


def dealer() -> Automaton:
    """Three cards behind a start: `swap` and `turn` move the top one, `look` shows it, once each.

    The label is the top card after `look`, and nothing to see after any other symbol. `start` is
    needed first, `drop` loses the order.
    """
    moves = {"swap": [1, 0, 2], "turn": [1, 2, 0], "look": [0, 1, 2], "drop": [0, 0, 0]}
    # states: 0 before the start, then hidden 1..3, then shown 4..6
    delta = [[0, 0, 0, 0, 1]]
    for _ in range(2):
        for card in range(3):
            row = [1 + target[card] for target in moves.values()]
            row[2] += 3
            delta.append([*row, 1 + card])
    return Automaton(delta, [0, 0, 0, 0, 1, 2, 3], symbols=[*moves, "start"])


@pytest.fixture(scope="module")
def cards() -> Walk:
    return chosen_walk(dealer())


def words_of(automaton: Automaton, length: int, number: int = 300) -> np.ndarray:
    return Task.from_automaton(automaton).sample(number, length=length).symbols.astype(np.int64)


def num_drawn(walk: Walk) -> int:
    """How many different words of 8 symbols are among 500 of a walk."""
    return len(np.unique(words_of(walk.automaton, 8, 500), axis=0))


def test_group_words_never_merge_the_points_of_the_group(cards: Walk) -> None:
    machine = dealer()
    assert cards.group.name == "S3"
    assert [machine.symbols[symbol] for symbol in cards.prefix] == ["start"]
    for word in words_of(cards.automaton, 25):
        assert word[0] == machine.symbols.index("start")
        ends = {int(machine.states_after(word[1:], point)[-1]) for point in (1, 2, 3)}
        assert len(ends) == 3  # from any card on top, another one is on top at the end


def test_uniform_words_of_the_same_machine_merge_them() -> None:
    machine = dealer()
    merged = sum(
        len({int(machine.states_after(word, point)[-1]) for point in (1, 2, 3)}) == 1
        for word in words_of(machine, 25)
    )
    assert merged > 290


def test_labels_of_any_word_are_those_of_the_task(cards: Walk) -> None:
    words = words_of(dealer(), 25)  # with symbols that group words never have
    assert (cards.automaton.labels_of(words) == dealer().labels_of(words)).all()
    inside = words_of(cards.automaton, 25)
    assert (cards.automaton.labels_of(inside) == dealer().labels_of(inside)).all()


def test_group_words_have_the_probabilities_of_the_formula(cards: Walk) -> None:
    machine = dealer()
    images: dict[tuple[int, ...], frozenset[int]] = {}
    words, chances = cards.automaton.list_words(LengthDistribution(4, 4))
    assert np.isclose(chances.sum(), 1.0)
    first = frozenset({1, 2, 3})
    inside = {first, frozenset({4, 5, 6})}  # what swap, turn and look make of it, and back
    for word, chance in zip(words.symbols.tolist(), chances, strict=True):
        image, expected = first, 1.0
        for symbol in word[1:]:
            after = {
                each: frozenset(int(machine.delta[state, each]) for state in image)
                for each in range(machine.num_symbols)
            }
            allowed = [each for each, reached in after.items() if reached in inside]
            assert symbol in allowed
            expected /= len(allowed)
            image = after[symbol]
        images[tuple(word)] = image
        assert np.isclose(chance, expected)
    assert len(images) == 4**3  # all but `drop`


def test_symbols_do_not_reveal_the_point(cards: Walk) -> None:
    """Given the last symbols, each card is on top equally often: more so in longer words."""
    machine = dealer()
    words = words_of(cards.automaton, 40, 6000)
    tops = machine.states_after(words)[:, -1]
    seen: dict[tuple[int, ...], Counter[int]] = defaultdict(Counter)
    for word, top in zip(words, tops.tolist(), strict=True):
        seen[tuple(word[-2:].tolist())][(top - 1) % 3] += 1
    for counted in seen.values():
        shares = np.array([counted[card] for card in range(3)]) / counted.total()
        assert np.abs(shares - 1 / 3).max() < 0.12
    assert cards.bias[20] > cards.bias[50] and cards.bias[50] < 1e-3


def test_the_bias_is_that_of_sampled_words(cards: Walk) -> None:
    machine = dealer()
    words = words_of(cards.automaton, 11, 8000)
    tops = (machine.states_after(words)[:, -1] - 1) % 3
    looked = words[:, -1] == machine.symbols.index("look")  # tells the two images apart
    far = sum(
        np.abs(np.bincount(tops[part], minlength=3) - part.sum() / 3).sum() / 2
        for part in (looked, ~looked)
    )
    assert abs(far / len(words) - cards.bias[10]) < 0.03


def test_where_one_word_makes_the_group_alone_a_walk_has_more_than_this_word() -> None:
    walk = chosen_walk(BROKER)
    assert walk.group.name == "Z2"
    assert set(np.unique(words_of(walk.automaton, 20))) == set(range(BROKER.num_symbols))
    floors = walk.automaton.floors([50])
    assert floors is not None and floors[50] < 0.5


def test_the_first_group_is_not_solvable_and_others_have_names_and_numbers() -> None:
    two = st.load_task("product(alternating:n=5,flip-flop)").automaton
    names = [walk.group.name for walk in walks(two)]
    assert names[0] == "A5"
    both = dealer()
    assert chosen_walk(both, "S3").group.name == chosen_walk(both, "1").group.name == "S3"
    with pytest.raises(TaskError, match="there is no group 'A5': the groups are 1 S3"):
        chosen_walk(both, "A5")


def test_a_large_component_is_walked_along_short_words_that_generate_its_group(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = dealer()
    whole = chosen_walk(machine)
    monkeypatch.setattr("statetrack.algebra.group_words.MOST_PAIRS", 1)
    walk = chosen_walk(machine)
    assert walk.group.name == "S3" and num_drawn(walk) < num_drawn(whole) / 2
    for word in words_of(walk.automaton, 25, 50):
        ends = {int(machine.states_after(word[1:], point)[-1]) for point in (1, 2, 3)}
        assert len(ends) == 3
    # words of the sub-walk reach every order of the cards
    reached = {
        tuple(machine.states_after(word[1:], point)[-1] % 3 for point in (1, 2, 3))
        for word in words_of(walk.automaton, 30, 500)
    }
    assert len(reached) == 6


def test_a_machine_without_a_group_is_refused_in_one_line() -> None:
    task = st.load_task("even-pairs")
    with pytest.raises(TaskError, match="task 'even-pairs', words 'group': the machine is aper"):
        task.with_words("group")
    with pytest.raises(TaskError, match="has no automaton"):
        st.load_task("boolean-3").with_words("uniform")


def test_words_of_another_kind_are_another_task_of_the_same_name() -> None:
    task = st.load_task("permutation-reset")
    group = task.with_words(" group ")
    assert (group.name, group.words, task.words) == (task.name, "group", "task")
    assert golden_hash(group) != golden_hash(task)
    assert group.with_words("task").source is task.source
    assert group.with_words("uniform").source.fingerprint() != group.source.fingerprint()
    with pytest.raises(TaskError, match=r"words 'grup': words are one of.* Did you mean 'group'"):
        task.with_words("grup")
    with pytest.raises(TaskError, match="How many words there are is another option"):
        task.with_words("20")


def test_uniform_words_leave_out_what_the_task_forbids() -> None:
    task = st.load_task("flip-flop")
    drawn = task.with_words("uniform").automaton
    assert (drawn.drawable == task.automaton.drawable).all()
    assert np.allclose(drawn.weights, drawn.drawable / drawn.drawable.sum(1, keepdims=True))


def test_frequencies_are_read_from_csv_and_yaml(tmp_path: Path) -> None:
    table, by_symbol, by_state = (tmp_path / name for name in ("f.csv", "f.yaml", "s.yaml"))
    table.write_text("symbol,weight\nconnect,3\nping,1\n")
    by_symbol.write_text("connect: 3\nping: 1\n")
    by_state.write_text('"0": {connect: 1}\n"1": {ping: 1, publish: 1}\n')
    task = Task.from_automaton(BROKER)
    drawn = [task.with_words(f"weighted:{file}").automaton for file in (table, by_symbol)]
    expected = np.tile([0.75, 0.25, 0, 0, 0], (4, 1))  # what is not listed is never drawn
    assert np.allclose(drawn[0].weights, expected)
    assert drawn[0].fingerprint() == drawn[1].fingerprint()
    stated = task.with_words(f"weighted:{by_state}").automaton
    assert np.allclose(stated.weights[:2], np.array([[1.0, 0, 0, 0, 0], [0, 0.5, 0.5, 0, 0]]))


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("f.csv", "symbol,weight\nconect,3\n", "has no symbol 'conect'. Did you mean 'connect'"),
        ("f.csv", "symbol,weight\nconnect,much\n", "line 2: not a symbol and its weight"),
        ("f.csv", "connect,3\n", "line 1: the first line must be symbol,weight"),
        ("f.csv", "symbol,weight\nping,1\nping,2\n", "line 3: symbol 'ping' has a weight already"),
        ("f.yaml", "connect: -1\n", "must be a number from 0"),
        ("f.yaml", '"9": {connect: 1}\n', "the machine has no state '9'"),
        ("f.yaml", '"0": {connect: 1}\n', "words reach the state '1', where no symbol has a weig"),
        ("f.txt", "connect: 1\n", "a file that ends in .csv or .yaml"),
    ],
)
def test_files_of_frequencies_are_refused_in_one_line(
    tmp_path: Path, name: str, text: str, problem: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(TaskError) as refused:
        Task.from_automaton(BROKER).with_words(f"weighted:{tmp_path / name}")
    assert problem in str(refused.value) and "\n" not in str(refused.value)


def test_words_are_of_the_file_that_they_were_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "f.yaml"
    file.write_text("connect: 3\nping: 1\n")
    asked = DataSettings(words=f"weighted:{file}").words
    assert asked == Task.from_automaton(BROKER).with_words(asked).words
    file.write_text("connect: 1\nping: 1\n")
    with pytest.raises(TaskError, match="is not the file that it was"):
        Task.from_automaton(BROKER).with_words(asked)


def test_settings_refuse_words_that_there_are_not() -> None:
    with pytest.raises(SettingsError, match="words: words 'groups': words are one of") as refused:
        DataSettings(words="groups")
    assert str(refused.value).count("'groups'") == 1


QUICK: dict[str, Any] = {"steps": 3, "validation_words": 16, "batch_size": 4, "threads": 1}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run on group words."""
    folder = tmp_path_factory.mktemp("words") / "run"
    begun = Run.start(
        model="lstm", task="permutation-reset", words="group", hidden=4, out=folder, **QUICK
    )
    for _ in begun.train():
        pass
    return Run.open(folder)


def test_a_run_is_trained_and_tested_on_the_words_that_it_asks_for(trained: Run) -> None:
    assert trained.folder.read(files.CONFIG)["words"] == "group"
    stream, held_out = trained.words.of_seed(0)
    names = trained.task.source.symbols
    for words in (stream.block(0, 1, 200)[0], held_out):
        drawn = {names[symbol] for symbol in words.symbols[words.symbols > 0]}
        assert drawn and not any(name.startswith("=") for name in drawn)  # `=e` resets
    rows = [
        *trained.evaluate([30], num_words=20),
        *trained.evaluate([30], num_words=20, words="uniform"),
    ]
    assert [row.words for row in rows] == ["group", "uniform"]
    assert [row.words for row in trained.rows] == ["group", "uniform"]
    assert [row.words for row in trained.rows if trained.has_own_words(row)] == ["group"]


def test_eval_prints_each_kind_of_words_apart(
    trained: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    asked = ["eval", str(trained.path), "--length", "10,20", "--samples", "20"]
    assert run([*asked, "--words", "uniform", "--words", "group", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [(row["words"], row["length"]) for row in rows] == [
        *(("uniform", length) for length in (10, 20)),
        *(("group", length) for length in (10, 20)),
    ]
    assert run([*asked, "--words", "uniform", "--words", "group"]) == 0
    table = capsys.readouterr().out
    assert "words" in table.splitlines()[2] and "group words, seed 0" in table
    assert run([*asked, "--words", "task"]) == 0
    assert "words │" not in capsys.readouterr().out


def test_rows_of_earlier_versions_are_of_the_words_of_the_task(trained: Run) -> None:
    row = trained.evaluate([10], num_words=10)[0].to_json()
    del row["words"]
    from statetrack.runs import EvaluationRow, read_row

    assert read_row(EvaluationRow, row, "a row").words == "task"


def test_reports_show_the_words_that_a_run_was_trained_on(trained: Run) -> None:
    trained.evaluate([40], num_words=10, words="uniform")
    trained.evaluate([20], num_words=10)
    (entry,) = st.make_report(trained.path).entries
    assert {row.words for row in entry.rows} == {"group"}
    assert 40 not in {row.length for row in entry.rows}


def test_a_run_keeps_the_frequencies_that_its_words_are_drawn_by(tmp_path: Path) -> None:
    file = tmp_path / "f.csv"
    file.write_text('symbol,weight\n"(1,2)",1\n"(1,2,3,4,5)",3\n')
    begun = Run.start(
        model="lstm",
        task="permutation-reset",
        words=f"weighted:{file}",
        hidden=4,
        out=tmp_path / "run",
        **QUICK,
    )
    file.unlink()
    kept = Run.open(tmp_path / "run")
    for _ in kept.train():
        pass
    (row,) = kept.evaluate([10], num_words=20)
    assert row.words == begun.experiment.data.words and kept.has_own_words(row)
    assert set(np.unique(kept.words.of_seed(0)[1].symbols)) == {0, 1}
    (kept.path / "words.csv").write_text('symbol,weight\n"(1,2)",1\n')
    with pytest.raises(TaskError, match="is not the file that it was"):
        Run.open(kept.path).evaluate([10], num_words=20)


def test_a_run_whose_words_were_changed_is_not_taken_for_itself(tmp_path: Path) -> None:
    begun = Run.start(
        model="lstm", task="permutation-reset", hidden=4, out=tmp_path / "run", **QUICK
    )
    for _ in begun.train():
        pass
    config = begun.path / "config.yaml"
    config.write_text(config.read_text().replace("words: task", "words: group"))
    with pytest.raises(RunError, match="'words' was 'task' when it was written, and is 'group'"):
        Run.open(begun.path).model()


def test_data_cards_say_how_words_are_drawn(tmp_path: Path) -> None:
    few = ["--samples", "20", "--test-samples", "5", "--length", "3-6", "--test-length", "9"]
    asked = ["gen", "permutation-reset", "--words", "group", *few]
    assert run([*asked, "--out", str(tmp_path / "set")]) == 0
    card = json.loads((tmp_path / "set/card.json").read_text())
    assert card["words"] == "group" and "--words group" in card["command"]
    assert "inside the largest group of the machine" in (tmp_path / "set/README.md").read_text()
    train = st.data.read_dataset(tmp_path / "set").splits["train"]
    names = st.load_task("permutation-reset").source.symbols
    inside = [
        names[x] for row, n in zip(train.symbols, train.lengths, strict=True) for x in row[:n]
    ]
    assert set(inside) == {"(1,2)", "(1,2,3,4,5)"}


def test_audits_draw_words_of_any_kind(capsys: pytest.CaptureFixture[str]) -> None:
    few = ["--samples", "50", "--train-samples", "50", "--length", "20", "--json"]
    assert run(["audit", "permutation-reset", "--words", "group", *few]) == 0
    assert json.loads(capsys.readouterr().out)["words"] == "group"
    assert run(["audit", "even-pairs", "--words", "group"]) == 1
    assert "the machine is aperiodic" in capsys.readouterr().err


def test_words_are_an_axis_of_sweeps(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(sweep, "estimate", partial(sweep.estimate, budget=0.0))
    asked = ["sweep", "--model", "lstm", "--task", "permutation-reset", "--steps", "1"]
    asked += ["--set", "hidden=4", "--set", "batch_size=8", "--set", "seeds=1"]
    axis = ["--set", "words=uniform,group", "--out", str(tmp_path / "sweep"), "--dry-run"]
    assert run([*asked, *axis]) == 0
    printed = capsys.readouterr().out
    assert "words=uniform" in printed and "words=group" in printed
