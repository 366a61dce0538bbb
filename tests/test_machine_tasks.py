"""Tasks from machine files: by path, in task files, in products, and once the file is gone."""

import shutil

import pytest

from statetrack.cli.app import run
from statetrack.errors import TaskError, TaskWarning
from statetrack.runs import Run
from statetrack.spec import golden_hash, load_task
from tests.refusing import message_of

DOOR = """digraph door {
shut -> open [label="pull / creak"];
shut -> shut [label="push / thud"];
open -> shut [label="push / slam"];
open -> open [label="pull / thud"];
}
"""
GAPS = DOOR.replace('open -> open [label="pull / thud"];\n', "")
HEAD = 'title: A door\nversion: 1\nreference: "own"\n'


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with two machines in a folder of their own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "machines").mkdir()
    (tmp_path / "machines" / "a.door:1.dot").write_text(DOOR, encoding="utf-8")
    (tmp_path / "machines" / "gaps.dot").write_text(GAPS, encoding="utf-8")
    return tmp_path


def task_file(folder, text, name="door.yaml"):
    """A task file with a heading."""
    (folder / name).write_text(HEAD + text, encoding="utf-8")
    return name


def test_a_path_with_dots_and_colons_is_a_task(folder):
    task = load_task("machines/a.door:1.dot")
    assert task.name == "machines/a.door:1.dot"
    assert task.format_labels(task.parse_word("pull pull push push")) == "creak thud slam thud"
    assert task.spec.description == "A Mealy machine of 2 states, read from a.door:1.dot."
    started = load_task("machines/../machines/a.door:1.dot:start=open")
    assert started.format_labels(started.parse_word("push")) == "slam"


def test_missing_transitions_are_warned_of_unless_something_is_said(folder, recwarn):
    with pytest.warns(TaskWarning, match="1 transition is missing .the first: 'open' has none for"):
        sunk = load_task("machines/gaps.dot")
    assert sunk.format_labels(sunk.parse_word("pull pull push")) == "creak missing missing"
    stays = load_task("machines/gaps.dot:missing=stay")
    assert stays.name == "machines/gaps.dot:missing=stay"
    assert stays.format_labels(stays.parse_word("pull pull push")) == "creak missing slam"
    assert "it leads back to the same state" in stays.spec.description
    assert golden_hash(load_task("machines/gaps.dot:missing=sink")) == golden_hash(sunk)


def test_the_advice_about_missing_transitions_can_be_copied_into_a_shell(folder):
    (folder / "sp ace").mkdir()
    shutil.copy(folder / "machines" / "gaps.dot", folder / "sp ace" / "gaps.dot")
    with pytest.warns(TaskWarning) as told:
        load_task("machines/gaps.dot"), load_task("sp ace/gaps.dot")
    plain, quoted = (str(each.message).partition("; ")[2] for each in told)
    assert plain.startswith("machines/gaps.dot:missing=stay stays instead")
    assert quoted.startswith("'sp ace/gaps.dot:missing=stay' stays instead")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("machines/gaps.dot:missing=refuse", "machines/gaps.dot, line 4: state 'open' has no"),
        ("machines/gaps.dot:missing=up", "missing: 'up' is none of sink, stay, refuse"),
        ("machines/gaps.dot:mising=stay", "no argument 'mising'. Did you mean 'missing'?"),
        ("machines/gaps.dot:start=opn", "no transition leaves a state 'opn'. Did you mean 'open'?"),
        ("machines/gap.dot", "No such file or directory. Did you mean 'machines/gaps.dot'?"),
        ("nowhere/gap.dot", "nowhere/gap.dot: cannot be read: No such file or directory"),
        ("machines/.dot", "machines/.dot: cannot be read: No such file or directory"),
    ],
)
def test_what_cannot_be_loaded_is_refused_with_its_reason(folder, name, message):
    assert message in message_of(load_task, name)


def test_a_folder_or_bytes_in_place_of_a_machine_are_refused(folder):
    (folder / "folder.dot").mkdir()
    (folder / "bytes.dot").write_bytes(b"digraph {\n\xff\n}")
    with pytest.raises(TaskError, match=r"folder.dot: cannot be read: Is a directory"):
        load_task("folder.dot")
    with pytest.raises(TaskError, match=r"bytes.dot, line 2: cannot be read: it is not UTF-8"):
        load_task("bytes.dot")


def test_a_file_that_is_too_large_is_not_read(folder):
    with (folder / "large.dot").open("wb") as file:
        file.truncate(2**24 + 1)
    with pytest.raises(TaskError, match=r"large.dot: is larger than 16 MiB"):
        load_task("large.dot")


def test_a_task_file_takes_its_automaton_from_a_file_beside_it(folder):
    (folder / "tasks").mkdir()
    name = task_file(
        folder,
        "from: ../machines/a.door:1.dot\ntest_lengths: [30]\n"
        'examples: {"pull push": "creak slam"}\n',
        "tasks/door.yaml",
    )
    task = load_task(name)
    assert golden_hash(task) == golden_hash(load_task("machines/a.door:1.dot"))
    assert (task.spec.title, task.spec.test_lengths) == ("A door", (30,))
    assert task.spec.train_length == (2, 10)


def test_weights_are_by_symbol_by_state_of_the_file_or_by_state(folder):
    for weights in ("{pull: 3, push: 1}", "{shut: {pull: 3, push: 1}, open: {pull: 3, push: 1}}"):
        name = task_file(
            folder, f"automaton: {{from: 'machines/a.door:1.dot', weights: {weights}}}\n"
        )
        assert load_task(name).automaton.weights.tolist() == [[0.75, 0.25]] * 4
    name = task_file(
        folder, "automaton: {from: 'machines/a.door:1.dot', weights: {open@thud: {pull: 1}}}\n"
    )
    automaton = load_task(name).automaton
    assert automaton.weights[automaton.states.index("open@thud")].tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("automaton: {from: machines/gaps.dot, weights: {opn: {pull: 1}}}", "no state 'opn'"),
        ("automaton: {from: machines/gaps.dot, mising: stay}", "Did you mean 'missing'?"),
        ("automaton: {from: machines/gaps.dot, kind: regex}", "is of kind 'transitions'"),
        ("automaton: {from: machines/gaps.txt}", "'machines/gaps.txt' is no file of a machine"),
        ("automaton: {from: 3}", "from: '3' is no file of a machine"),
        ("from: machines/gap.dot", "Did you mean 'machines/gaps.dot'?"),
        ("from: machines/gaps.dot\nautomaton: {kind: parity}", "'from' and 'automaton' both say"),
    ],
)
@pytest.mark.filterwarnings("ignore::statetrack.errors.TaskWarning")
def test_a_wrong_task_file_is_refused(folder, text, message):
    with pytest.raises(TaskError) as wrong:
        load_task(task_file(folder, text + "\n"))
    assert message in str(wrong.value)


def test_a_task_file_that_does_not_exist_is_compared_with_those_that_do(folder):
    task_file(folder, "from: machines/gaps.dot\n")
    with pytest.raises(TaskError, match=r"dor.yaml: .*Did you mean 'door.yaml'"):
        load_task("dor.yaml")


def test_machine_files_are_factors_of_products_and_parts_of_other_kinds(folder):
    side_by_side = load_task("product(machines/a.door:1.dot:start=open,parity)")
    assert side_by_side.automaton.num_symbols == 4
    name = task_file(
        folder,
        "automaton:\n  kind: direct-product\n  factors:\n"
        "    - {from: machines/gaps.dot, missing: stay}\n    - {kind: parity}\n",
    )
    assert load_task(name).automaton.num_symbols == 4


def test_a_symbol_may_be_called_from(folder):
    text = "automaton: {kind: transitions, start: a, states: {a: {from: a, to: a}}}\n"
    assert load_task(task_file(folder, text)).source.symbols == ("from", "to")


def test_the_document_of_a_task_needs_no_file(folder):
    task = load_task("machines/a.door:1.dot")
    (folder / "machines" / "a.door:1.dot").unlink()
    (folder / "written.yaml").write_text(task.document(), encoding="utf-8")
    again = load_task("written.yaml")
    assert again.document() == task.document()
    assert again.name == task.name
    assert golden_hash(again) == golden_hash(task)


def test_a_long_machine_is_trained_on_longer_words(folder):
    arrows = [f'{n} -> {n + 1} [label="go/x"]; {n} -> 0 [label="back/y"];' for n in range(20)]
    last = '20 -> 20 [label="go/end"]; 20 -> 0 [label="back/y"];'
    (folder / "long.dot").write_text(f"digraph {{ {' '.join(arrows)} {last} }}", encoding="utf-8")
    assert load_task("long.dot").spec.train_length == (2, 42)


def test_every_command_takes_a_machine_file_and_says_once_what_is_missing(folder, capsys):
    assert run(["show", "machines/gaps.dot"]) == 0
    printed = capsys.readouterr()
    assert "acceptor" not in printed.out and "1 transition is missing" in printed.out
    assert printed.err.count("1 transition is missing") == 1
    task = "machines/gaps.dot:missing=stay"
    words = ["--length", "8", "--samples", "20", "--out", "words"]
    assert run(["gen", task, *words]) == 0
    card = (folder / "words" / "README.md").read_text(encoding="utf-8")
    assert "it leads back to the same state" in card
    assert run(["predict", task]) == 0
    assert run(["audit", task, "--length", "4"]) == 0


def test_a_run_is_evaluated_once_its_file_is_gone(folder, capsys):
    task = "machines/a.door:1.dot"
    options = "--hidden 4 --steps 2 --batch-size 8 --train-length 2-4 --out runs/door".split()
    assert run(["train", "--task", task, "--model", "lstm", *options]) == 0
    (folder / "machines" / "a.door:1.dot").unlink()
    opened = Run.open("runs/door")
    assert opened.task.name == task
    assert run(["eval", "runs/door", "--length", "5", "--samples", "10"]) == 0
    assert run(["report", "runs/door", "--out", "report.html"]) == 0
    capsys.readouterr()
