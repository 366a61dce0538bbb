"""Task files and task names: what is read, and how each mistake is told."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statetrack.errors import SettingsError, StatetrackError, TaskError, UnknownNameError
from statetrack.registry import Registry
from statetrack.sources import Automaton, LengthDistribution, WordStream
from statetrack.spec import (
    Task,
    arguments_that_can_be_set,
    golden_hash,
    list_tasks,
    load_task,
    loading,
    task_names,
)
from tests.refusing import message_of

DOOR = """\
title: A door
version: 1
reference: "own"
automaton:
  kind: transitions
  start: shut
  states:
    shut: {pull: wide, wait: shut}
    wide: {pull: wide, wait: shut}
  outputs: {shut: 0, wide: 1}
examples: {"pull wait wait": "1 0 0"}
train_length: [2, 10]
test_lengths: [500]
supervision: every
"""


@pytest.fixture
def door(tmp_path: Path) -> Path:
    path = tmp_path / "door.yaml"
    path.write_text(DOOR)
    return path


class TestNames:
    def test_a_name_loads_its_file(self):
        task = load_task("modular-addition")
        assert task.name == "modular-addition"
        assert task.automaton.num_states == 5
        assert task.spec.train_length == (2, 10)
        assert task.spec.test_lengths == (500,)

    def test_arguments_replace_those_of_the_file(self):
        task = load_task("modular-addition:m=25")
        assert task.automaton.num_states == 25
        assert task.spec.automaton == {"kind": "modular-addition", "m": 25}
        assert task.spec.examples == {}

    @pytest.mark.parametrize(
        ("written", "name"),
        [
            ("modular-addition:m=5", "modular-addition"),
            (" modular-addition : m = 7 ", "modular-addition:m=7"),
            ("random-fsm:seed=3,symbols=2", "random-fsm:symbols=2,seed=3"),
            ("symmetric:generators=swaps", "symmetric:generators=swaps"),
            ("cyclic:generators=[1, 9]", "cyclic:generators=[1,9]"),
            (
                "symmetric:n=3,generators=['(1,2)', \"(2,3)\"]",
                'symmetric:n=3,generators=["(1,2)","(2,3)"]',
            ),
            ("modular-arithmetic:operators=+-", 'modular-arithmetic:operators="+-"'),
            ("modular-arithmetic:operators=-", 'modular-arithmetic:operators="-"'),
            ("modular-arithmetic:operators=*", 'modular-arithmetic:operators="*"'),
            ("modular-arithmetic:operators=*-", 'modular-arithmetic:operators="*-"'),
            ("flip-flop:ignore=0.1", "flip-flop:ignore=0.1"),
            ("product( parity , s3 )", "product(parity,s3)"),
            (
                "product(parity,random-fsm:states=3,symbols=2,s3)",
                "product(parity,random-fsm:states=3,symbols=2,s3)",
            ),
            (
                "product(product(parity,parity),modular-addition:m=3)",
                "product(product(parity,parity),modular-addition:m=3)",
            ),
        ],
    )
    def test_a_name_is_written_in_one_way_and_loads_the_same_again(self, written, name):
        task = load_task(written)
        assert task.name == name
        assert load_task(name).name == name
        assert golden_hash(load_task(name)) == golden_hash(task)

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("modular-addition:m=", "'m=' is not key=value"),
            ("modular-addition:", "'' is not key=value"),
            ("modular-addition:m", "'m' is not key=value"),
            ("modular-addition:=5", "'=5' is not key=value"),
            ("modular-addition:5", "'5' is not key=value: write modular-addition:m=..."),
            ("modular-addition:k=5", "'modular-addition' has no argument 'k'. Known are: m."),
            ("random-fsm:state=5", "no argument 'state'. Did you mean 'states'?"),
            ("parity:m=2", "'parity' has no argument 'm'. It takes none."),
            ("modular-addition:m=2,m=3", "'m' is given twice"),
            ("modular-addition:m=five", "'m': Input should be a valid integer (given: 'five')"),
            ("modular-addition:m=0", "'m': Input should be greater than or equal to 2 (given: 0)"),
            ("modular-arithmetic:operators=%", "the value '%' cannot be read"),
            ("modular-addition:m=-", "'m': Input should be a valid integer (given: '-')"),
            ("random-fsm:states=(5", "')' is missing"),
            ("random-fsm:states=5)", "')' closes no bracket"),
            ("cyclic:generators=[1", "']' is missing"),
            ('symmetric:generators="swaps', "'\"' is missing"),
            ("product(parity,parity", "not closed at the end"),
            ("product(parity,parity))", "')' closes no bracket"),
            ("product((parity,parity)", "')' is missing"),
            ("product(parity)", "two tasks or more"),
            ("product(parity,)", "two tasks or more"),
            ("product()", "two tasks or more"),
            ("product(s5,s5)", "more than"),
            (":m=5", "write NAME"),
            ("", "write NAME"),
            ("nowhere/mine.yaml", "nowhere/mine.yaml: cannot be read: No such file"),
        ],
    )
    def test_a_name_that_cannot_be_is_refused_in_one_line(self, name, message):
        assert message in message_of(load_task, name)

    @pytest.mark.parametrize(
        "name",
        ["modular-additon", "product(parity,modular-additon)", "modular-additon:5"],
    )
    def test_an_unknown_name_is_met_with_the_nearest(self, name):
        with pytest.raises(UnknownNameError, match=r"Did you mean 'modular-addition'\?"):
            load_task(name)
        with pytest.raises(UnknownNameError, match=r"Did you mean 'permutations'\?"):
            load_task("permutation:(1 2)")

    @given(text=st.text("ab:=,()[]{}\"' product.yaml-m5", max_size=25))
    def test_whatever_is_written_ends_in_a_task_or_in_one_line(self, text):
        try:
            assert isinstance(load_task(text), Task)
        except StatetrackError as error:
            assert str(error) and "\n" not in str(error)


class TestProducts:
    def test_a_product_reads_pairs_and_gives_pairs(self):
        task = load_task("product(parity,modular-addition:m=3)")
        assert (task.automaton.num_symbols, task.automaton.num_labels) == (6, 6)
        word = task.parse_word("(1|2) (0|2) (1|0)")
        assert task.format_labels(word) == "(1|2) (1|1) (0|1)"

    def test_lengths_and_supervision_serve_all_factors(self, tmp_path):
        other = tmp_path / "other.yaml"
        other.write_text(
            DOOR.replace("[2, 10]", "[4, 8]").replace("[500]", "[40, 500]").replace("every", "last")
        )
        both = load_task(f"product(parity,{other})").spec
        assert both.train_length == (4, 10)
        assert both.test_lengths == (40, 500)
        assert both.supervision == "last"

    def test_a_new_version_of_a_factor_is_a_new_version_of_the_product(self, tmp_path):
        other = tmp_path / "other.yaml"
        other.write_text(DOOR.replace("version: 1", "version: 3"))
        assert load_task(f"product(parity,{other},{other})").spec.version == 5


class TestWords:
    def test_words_are_parsed_and_written_back(self):
        task = load_task("turnstile")
        assert task.parse_word(" push  coin ") == [1, 0]
        assert task.format_word([1, 0]) == "push coin"

    def test_labels_that_are_not_asked_for_are_dashes(self):
        task = load_task("flip-flop")
        assert task.format_labels(task.parse_word("w 1 r")) == "- - 1"

    def test_an_unknown_symbol_is_met_with_the_nearest(self):
        with pytest.raises(TaskError, match=r"no symbol 'cion'\. Did you mean 'coin'\?"):
            load_task("turnstile").parse_word("cion")


class TestFiles:
    def test_a_path_works_wherever_a_name_does(self, door):
        assert load_task(str(door)).automaton.states == ("shut", "wide")
        assert load_task(str(door)).name == door.as_posix()
        assert load_task(f"{door}:start=wide").automaton.start == 1
        assert load_task(f"{door}:start=wide").name == f"{door.as_posix()}:start=wide"
        assert load_task(f"product(parity,{door})").automaton.num_states == 4

    def test_what_is_left_out_has_defaults(self, tmp_path):
        path = tmp_path / "short.yaml"
        path.write_text('title: t\nversion: 2\nreference: "r"\nautomaton: {kind: parity}\n')
        read = load_task(str(path)).spec
        assert (read.train_length, read.test_lengths) == ((2, 10), (500,))
        assert (read.supervision, read.examples, read.description) == ("every", {}, "")

    @pytest.mark.parametrize(
        "name",
        [
            "modular-addition:m=25",
            "turnstile",
            "flip-flop",
            "product(parity,s3)",
            'symmetric:n=3,generators=["(1,2)","(2,3)"]',
            "modular-arithmetic:operators=+-",
        ],
    )
    def test_a_document_is_the_whole_task(self, name, tmp_path):
        task = load_task(name)
        path = tmp_path / "task.yaml"
        path.write_text(task.document())
        again = load_task(str(path))
        assert again.name == task.name
        assert golden_hash(again) == golden_hash(task)
        assert again.spec.examples == task.spec.examples
        assert again.document() == task.document()

    def test_a_document_outlives_the_file_it_came_from(self, door, tmp_path):
        task = load_task(f"{door}:start=wide")
        door.unlink()
        path = tmp_path / "kept.yaml"
        path.write_text(task.document())
        assert golden_hash(load_task(str(path))) == golden_hash(task)

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            ("title: A door\n", "", "'title' is missing"),
            ("title:", "titel:", "unknown key 'titel'. Did you mean 'title'?"),
            ("title: A door", "title: 5", "'title': Input should be a valid string (given: 5)"),
            ("version: 1", "version: 0", "'version': Input should be greater"),
            ("[2, 10]", "[10, 2]", "'train_length' must be the shortest and the longest length"),
            ("[2, 10]", "[0, 10]", "(given: [0, 10])"),
            ("[2, 10]", "[2]", "'train_length"),
            ("[2, 10]", "2-10", "'train_length': must be a list in square brackets: write [2, 10]"),
            ("[500]", "[]", "'test_lengths' must be lengths from 1 to 1000000 (given: [])"),
            ("[500]", "[500, 0]", "'test_lengths' must be lengths from 1"),
            ("[2, 10]", "[2, 10, 20]", "'train_length': must have at most 2 parts (given: [2,"),
            ("{shut: 0, wide: 1}", "{shut: 0, wide: }", "'outputs.wide': must be a whole number"),
            ("start: shut", "scored: shut\n  start: shut", "square brackets: write [shut] (given:"),
            ("[500]", "[1e3]", "line 13: `1e3` is text to YAML: write 1.0e+03"),
            ("every", "sometimes", "'supervision': Input should be 'every' or 'last'"),
            ("kind: transitions", "kind: transition", "Did you mean 'transitions'?"),
            ("kind: transitions", "kindred: transitions", "automaton: 'kind' is missing"),
            ("start: shut", "begin: shut", "automaton: 'transitions' has no 'begin'"),
            ("start: shut", "start: shutt", "automaton: start: there is no state 'shutt'"),
            ("  start: shut\n", "", "automaton: 'transitions' needs 'start'"),
            ("wait: shut}\n    wide", "}\n    wide", "'wide' has the symbol 'wait', which"),
            ("wide: {pull: wide, wait: shut}", "wide: {pull: wide}", "where 'wait' leads"),
            ("pull: wide, wait: shut}\n    w", "pull: shut, wait: shut}\n    w", "to 'wide'"),
            ("{shut: 0, wide: 1}", "{shut: 0}", "outputs: the label of state 'wide' is missing"),
            ("{shut: 0, wide: 1}", "{shut: 0, no: 1}", "line 10: the key `no` is not text"),
            ("{shut: 0, wide: 1}", "{shut: 0, shut: 1}", "the key 'shut' appears twice"),
            ("start: shut", "start: 1e-3", "line 6: `1e-3` is text to YAML"),
            ('"1 0 0"', '"1 0 1"', "the labels are '1 0 0', not '1 0 1'"),
            ('"1 0 0"', '"1 0"', "the labels are '1 0 0', not '1 0'"),
            ('"1 0 0"', '"1 - 0"', "the labels are '1 0 0', not '1 - 0'"),
            ('"1 0 0"', '"1 0 2"', "there is no label '2'. Known are: 0, 1."),
            ('"pull wait wait"', '"pull wiat wait"', "no symbol 'wiat'. Did you mean 'wait'?"),
            ('"pull wait wait": "1 0 0"', '"": ""', "the word has no symbols"),
            ('{"pull wait wait": "1 0 0"}', '{"pull": 1}', "'examples.pull': Input should be a"),
            (DOOR, "- a\n- b\n", "holds no `key: value` lines"),
            (DOOR, "title: [", ", line "),
        ],
    )
    def test_each_mistake_is_one_line_with_file_and_key(self, door, old, new, message):
        assert DOOR.count(old) >= 1
        door.write_text(DOOR.replace(old, new, 1))
        with pytest.raises(TaskError) as caught:
            load_task(str(door))
        text = str(caught.value)
        assert text.startswith(str(door))
        assert message in text
        assert "\n" not in text


def same_tables(one: Automaton, other: Automaton) -> None:
    for table in ("delta", "output", "weights", "scored", "slips"):
        np.testing.assert_array_equal(getattr(one, table), getattr(other, table), table)
    assert (one.symbols, one.states, one.labels) == (other.symbols, other.states, other.labels)
    assert (one.start, one.slip_rate) == (other.start, other.slip_rate)


class TestTasksMadeInPython:
    @pytest.mark.parametrize(
        "automaton",
        [
            Automaton([[0, 1], [1, 0]]),
            Automaton(
                [[1, 0, 2], [2, 1, 0], [0, 1, 2]],
                output=[2, 0, 2],
                start=1,
                symbols=["no", "10", "0"],
                states=["yes", "b", "1e3"],
                labels=["2", "1", "0", "on"],
                weights=[[0.7, 0.2, 0.1], [0.0, 1.0, 3.0], [1.0, 1.0, 1.0]],
                scored=[True, False, True],
                slips=[[0.0, 1.0, 3.0], [0.0, 0.0, 0.0], [0.0, 0.2, 0.0]],
                slip_rate=1.5,
            ),
            *(load_task(name).automaton for name in ("flip-flop", "s3", "tomita-1:words=mixed")),
        ],
    )
    def test_the_document_of_an_automaton_is_the_whole_task(self, automaton, tmp_path):
        task = Task.from_automaton(
            automaton,
            name="mine",
            title="Mine",
            train_length=(3, 7),
            test_lengths=[9, 90],
            supervision="last",
        )
        path = tmp_path / "task.yaml"
        path.write_text(task.document(), encoding="utf-8")
        again = load_task(str(path))
        same_tables(again.automaton, automaton)
        assert again.spec == task.spec
        assert (again.name, again.spec.title) == ("mine", "Mine")
        assert (again.spec.train_length, again.spec.test_lengths) == ((3, 7), (9, 90))
        assert golden_hash(again) == golden_hash(task)
        assert again.document() == task.document()
        assert again.format_labels([0, 1, 1]) == task.format_labels([0, 1, 1])

    def test_lengths_that_cannot_be_used_are_refused_in_one_line(self):
        with pytest.raises(TaskError, match="task 'automaton': 'train_length' must be the short"):
            Task.from_automaton(Automaton([[0]]), train_length=(10, 2))

    def test_labels_can_be_ordered_and_all_must_be_among_them(self, door):
        outputs = "outputs: {shut: 0, wide: 1}"
        door.write_text(DOOR.replace(outputs, f"{outputs}\n  labels: [2, 1, 0]"))
        assert load_task(str(door)).automaton.labels == ("2", "1", "0")
        door.write_text(DOOR.replace(outputs, f"{outputs}\n  labels: [2, 1]"))
        with pytest.raises(TaskError, match="the label '0' of state 'shut' is not among them"):
            load_task(str(door))

    def test_a_slip_of_an_unknown_symbol_is_met_with_the_known_ones(self, door):
        slips = "slips: {shut: {push: 1}}\n  slip_rate: 2.0"
        door.write_text(DOOR.replace("start: shut", f"start: shut\n  {slips}"))
        with pytest.raises(TaskError, match=r"slips: state 'shut': there is no symbol 'push'\."):
            load_task(str(door))


class TestSamples:
    @pytest.mark.parametrize("name", ["s3", "flip-flop", "dyck-1"])
    def test_they_are_the_words_that_training_draws_first(self, name):
        task = load_task(name)
        batch = task.sample(8, seed=3)
        lengths = LengthDistribution(*task.spec.train_length)
        stream = WordStream(task.source, lengths, task.spec.supervision, 3, "train")
        expected = stream.block(0, 1, 8)[0]
        for part in ("symbols", "labels", "scored", "lengths"):
            np.testing.assert_array_equal(getattr(batch, part), getattr(expected, part))
        assert batch.symbols.shape == (8, task.spec.train_length[1])
        assert not np.array_equal(batch.symbols, task.sample(8, seed=4).symbols)

    def test_length_and_supervision_can_be_asked_for(self):
        task = load_task("s3")
        assert task.sample(5, length=12).symbols.shape == (5, 12)
        assert set(task.sample(200, length="3-4").lengths.tolist()) == {3, 4}
        assert task.sample(5, supervision="last").scored.sum() == 5
        assert task.sample(5, length=4, supervision="every").scored.all()

    @pytest.mark.parametrize(
        ("name", "asked", "message"),
        [
            ("s3", {"length": "ten"}, "length 'ten': not a length"),
            ("s3", {"length": 0}, "0 is not from 1 to 1000000"),
            ("s3", {"num_words": 0}, "num_words 0: give a whole number from 1"),
            ("dyck-1", {"length": 200_000}, "have at most 100000 symbols, for they are drawn"),
        ],
    )
    def test_what_cannot_be_drawn_is_refused(self, name, asked, message):
        with pytest.raises(SettingsError, match=message):
            load_task(name).sample(**{"num_words": 2} | asked)


class TestRegistry:
    @pytest.fixture
    def shelf(self, tmp_path, monkeypatch):
        """A tasks folder of its own, with a good file and two that cannot be read."""
        (tmp_path / "suites").mkdir()
        (tmp_path / "suites" / "some.yaml").write_text("a: 1")
        (tmp_path / "door.yaml").write_text(DOOR)
        (tmp_path / "broken.yaml").write_text(DOOR.replace("title", "titel"))
        (tmp_path / "My Door.yaml").write_text(DOOR)
        monkeypatch.setattr(loading, "tasks_folder", lambda: tmp_path)
        shelf = Registry("task", loading.TASKS._find, listing="statetrack list tasks")
        monkeypatch.setattr(loading, "TASKS", shelf)
        return tmp_path

    def test_a_broken_file_does_not_vanish_from_a_listing(self, shelf):
        listed = dict(list_tasks())
        assert sorted(listed) == ["My Door", "broken", "door"] == sorted(task_names())
        assert isinstance(listed["door"], Task)
        assert "Did you mean 'title'?" in str(listed["broken"])
        assert "lower case with hyphens" in str(listed["My Door"])

    def test_a_new_file_is_a_new_name(self, shelf):
        assert load_task("door").name == "door"
        with pytest.raises(TaskError, match=re.escape("broken.yaml: unknown key 'titel'")):
            load_task("broken")


class TestArguments:
    def test_what_can_be_set_is_shown_with_what_is_set(self):
        assert arguments_that_can_be_set(load_task("random-fsm:seed=3")) == {
            "states": 5,
            "symbols": 5,
            "seed": 3,
        }
        assert arguments_that_can_be_set(load_task("s3")) == {"n": 3, "generators": "all"}
        assert arguments_that_can_be_set(load_task("parity")) == {}


class TestGoldenHash:
    @pytest.mark.parametrize(
        "change",
        [
            ("wide: {pull: wide, wait: shut}", "wide: {pull: wide, wait: wide}"),
            ("start: shut", "start: wide"),
            ("{shut: 0, wide: 1}", "{shut: 1, wide: 0}"),
            ("{shut: 0, wide: 1}", "{shut: 0, wide: 2}"),
            ("pull", "push"),
            ("start: shut", "start: shut\n  scored: [wide]"),
            ("start: shut", "start: shut\n  weights: {shut: {pull: 1, wait: 2}}"),
        ],
    )
    def test_it_changes_with_whatever_changes_the_data(self, door, change):
        before = golden_hash(load_task(str(door)))
        changed = re.sub("examples: .*\n", "", DOOR).replace(*change)
        door.write_text(changed)
        assert golden_hash(load_task(str(door))) != before

    def test_it_does_not_change_with_the_title(self, door):
        before = golden_hash(load_task(str(door)))
        door.write_text(DOOR.replace("A door", "Another door"))
        assert golden_hash(load_task(str(door))) == before


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("modular-addition:m=" + "9" * 3000, "a number of 3000 digits"),
        ("modular-addition:m=" + "9" * 5000, "has 5019 letters, the most is 4096"),
        ("modular-addition:m=٢٥", "`٢٥` is text to YAML"),
        ("modular-addition:m=1_000", "`1_000` is 1000 to YAML"),
        ("modular-addition:m=!!set {a}", "the tag `!!set` is not read"),
        ("modular-addition:m=2025-02-30", "is a date to YAML"),
        ("modular-addition:m=" + "[" * 50 + "]" * 50, "more than 20 deep"),
        ("product(" * 50 + "parity" + ",parity)" * 50, "more than 20 deep"),
        ("modular-addition:m=.nan", "valid integer"),
        ("register:keep=.nan", "finite number"),
        ("register:keep=.inf", "finite number"),
    ],
)
def test_a_hostile_argument_of_a_task_name_is_one_line(name, message):
    with pytest.raises(TaskError, match=re.escape(message)) as refused:
        load_task(name)
    assert "\n" not in str(refused.value)
