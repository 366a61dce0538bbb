"""Tasks that are written out in their names: `regex:(ab|ba)*`, `permutations:(1 2 3),(1 2)`."""

from pathlib import Path

import pytest
import yaml

import statetrack as st
from statetrack.cli.app import run
from statetrack.cli.sweep import made_suite
from statetrack.errors import TaskError
from statetrack.runs import Run
from statetrack.spec import folder_name, golden_hash, is_path, load_task, names_in
from statetrack.sweep import load_suite, points_of

REGEX, PERMUTATIONS = "regex:(ab|ba)*", "permutations:(1 2 3),(1 2)"


def test_a_regular_expression_in_a_name_is_the_task_of_that_language():
    task = st.load_task(REGEX)
    assert task.name == REGEX and task.source.symbols == ("a", "b")
    assert task.format_labels(task.parse_word("a b b a b")) == "0 1 0 1 0"
    assert task.format_labels(task.parse_word("a a b")) == "0 0 0"
    floors = task.automaton.floors([500])
    assert floors is not None and floors[500] < 0.6  # uniform words are dead: 1.00


def test_permutations_in_a_name_are_the_word_problem_of_their_group():
    task = st.load_task(PERMUTATIONS)
    assert task.name == "permutations:(1,2,3),(1,2)"
    assert task.source.symbols == ("(1,2,3)", "(1,2)")
    whole = load_task('symmetric:n=3,generators=["(1,2,3)","(1,2)"]')
    word = [0, 1, 1, 0, 0, 1]
    assert task.format_labels(word) == whole.format_labels(word)


SAME = [
    ("permutations:(1,2,3),(1,2)", PERMUTATIONS),
    ("permutations: ( 1 2 3 ) , (1,2)", PERMUTATIONS),
    ("permutations:2 3 1,2 1 3", PERMUTATIONS),
    ("permutations:[2,3,1],[2 1 3]", PERMUTATIONS),
    ("permutations:(1 2 3),(1 2);points=3", PERMUTATIONS),
    ("permutations:(),(1 2)(3 4)", "permutations:e,(1,2)(3,4)"),
    ("regex: (ab|ba)* ", REGEX),
    ("regex:(ab|ba)*;words=mixed,labels=membership", REGEX),
    ('regex:.*1;alphabet="01"', "regex:.*1;alphabet=01"),
    ("regex:(open close)*; alphabet = [open, close]", "regex:(open close)*;alphabet=[open,close]"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_a_task_has_one_name_however_it_is_written(one, other):
    assert load_task(one).name == load_task(other).name
    assert golden_hash(load_task(one)) == golden_hash(load_task(other))


NAMES = [
    REGEX,
    "regex:(ab|ba)*;words=uniform",
    "regex:(ab|ba)*;labels=next-symbols,words=members",
    "regex:.*1;alphabet=01",
    "regex:(open close)*;alphabet=[open,close]",
    r"regex:a\;b[,]",
    "regex:a,b",
    r"regex:\(a*'",
    "regex:a.yaml;alphabet=aylm",
    "permutations:(1,2,3),(1,2)",
    "permutations:r=(1,2,3,4),s=(2,4);image_of=1",
    "permutations:e,(1,2);points=4",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_read_again_as_the_same_task_alone_in_products_and_in_documents(name, tmp_path):
    task = load_task(name)
    assert task.name == name and not is_path(name)
    both = load_task(f'product("{name}",parity)')
    assert load_task(both.name).name == both.name
    assert golden_hash(load_task(both.name)) == golden_hash(both)
    file = tmp_path / "task.yaml"
    file.write_text(task.document(), encoding="utf-8")
    again = load_task(str(file))
    assert again.name == name and golden_hash(again) == golden_hash(task)


def test_the_identity_names_and_arguments_of_permutations():
    task = load_task("permutations:stay=e,turn=(1 2 3 4),flip=(2 4);image_of=1")
    assert task.source.symbols == ("stay", "turn", "flip")
    assert task.format_labels([1, 2, 0]) == "2 2 2"
    assert load_task("permutations:(1 2);points=4").spec.automaton["points"] == 4


WRONG = [
    ("regex", "write it out in the name, as in regex:(ab|ba)*"),
    ("permutations", "as in permutations:(1 2 3),(1 2)"),
    ("regex:", "nothing follows 'regex:'"),
    ("regex:;alphabet=ab", "nothing follows 'regex:'"),
    ("regex:a;b", r"'b' is not key=value; a ';' that is a symbol is written \;"),
    ("regex:a^b", "'^' at position 2"),
    ("regex:a;label=next", "there is no argument 'label'. Did you mean 'labels'?"),
    ("regex:a;pattern=b", "there is no argument 'pattern'"),
    ("regex:.*", "say which there are (`alphabet`)"),
    ("regex:a|\x1b", "has \\x1b at position"),
    ("regex:" + "a" * 2000, "1,000 are the most; write the task into a file"),
    ("regex:(a{1000}){1000}", "more than 50,000 states"),
    ("permutations:(0 1 2)", "not one of 1 to 2: points are counted from 1"),
    ("permutations:(1 2 3)(1 2)", "commas stand between permutations"),
    ("permutations:(1 2),(2 1)", "'(1,2)' stands for two permutations"),
    ("permutations:(1 2),", "a permutation is missing"),
    ("permutations:(1 2", "')' is missing"),
    ("permutations:(1 65)", "points: 65 is not a number from 2 to 64"),
    ("permutations:(1 999999999)", "points: 999999999 is not a number from 2 to 64"),
    ("permutations:a b", "'a b' is no permutation"),
    ("permutations:(1 2);labels=x", "there is no argument 'labels'"),
    ("permutations:(1 2 3 4 5 6 7 8),(1 2)", "more than 5040 elements"),
]


@pytest.mark.parametrize(("name", "message"), WRONG)
def test_what_cannot_be_read_is_one_line_that_says_what_to_write(name, message):
    with pytest.raises(TaskError) as refused:
        load_task(name)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 300


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (f"{REGEX},parity,{PERMUTATIONS},s3", [REGEX, "parity", PERMUTATIONS, "s3"]),
        (
            "permutations:r=(1 2),s=(2 3);image_of=1,points=4,parity",
            ["permutations:r=(1 2),s=(2 3);image_of=1,points=4", "parity"],
        ),
        ("permutations:2 1 3,2 3 1,e,s3", ["permutations:2 1 3,2 3 1,e", "s3"]),
        ("(permutations:(1 2),(2 3)),s3", ["permutations:(1 2),(2 3)", "s3"]),
        (r"regex:a{2,3},regex:a\,b,s3", ["regex:a{2,3}", r"regex:a\,b", "s3"]),
        (r"regex:\(a,s3", [r"regex:\(a", "s3"]),
        ('"regex:a,b","regex:a""b"', ["regex:a,b", 'regex:a"b']),
        ("regex:a;labels=next-symbols,words=members,s3",
         ["regex:a;labels=next-symbols,words=members", "s3"]),
        (f"product({REGEX},s3),parity", [f"product({REGEX},s3)", "parity"]),
    ],
)  # fmt: skip
def test_commas_between_names_are_told_from_commas_inside_them(text, names):
    assert names_in(text, "here") == names


def test_folders_are_told_apart_by_a_hash_where_signs_tell_tasks_apart():
    names = ["regex:(ab)*", "regex:(ab)+", "regex:(aB)*", "permutations:(1 2)", "permutations:1 2"]
    folders = [folder_name(name) for name in names]
    assert len({*map(str.lower, folders)}) == len(names)
    assert all(set(folder) <= set("abcdefghijklmnopqrstuvwxyzB0123456789-=.") for folder in folders)
    assert folder_name("lstm-regex:(ab)*") != folder_name("lstm-regex:(ab)+")
    assert folder_name("modular-addition:m=25") == "modular-addition-m=25"


def test_a_sweep_takes_several_such_tasks_and_its_file_repeats_it(tmp_path):
    suite = made_suite(["lstm"], [f"{REGEX},regex:(ab|ba)+,{PERMUTATIONS}"], {"steps": 1}, {})
    assert [*suite.tasks] == [REGEX, "regex:(ab|ba)+", PERMUTATIONS]
    points = points_of(suite, tmp_path, {})
    assert len({point.path for point in points}) == 3
    file = tmp_path / "mine.yaml"
    tasks = {"pairs": REGEX, "S3": {"task": PERMUTATIONS}}
    given = {"title": "t", "models": {"l": "lstm"}, "tasks": tasks, "length": 9, "samples": 2}
    file.write_text(yaml.safe_dump(given, sort_keys=False))
    read = [point.values["task"] for point in points_of(load_suite(str(file)), tmp_path, {})]
    assert read == [REGEX, PERMUTATIONS]


def test_a_run_is_named_after_such_a_task_and_repeats_from_its_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    started = Run.start(model="lstm", task=PERMUTATIONS, hidden=4)
    assert started.path.parent == Path("runs") and "permutations-1-2-3-1-2" in started.path.name
    again = Run.open(started.path)
    assert again.task.name == "permutations:(1,2,3),(1,2)"
    config = yaml.safe_load((started.path / "config.yaml").read_text())
    assert golden_hash(load_task(config["task"])) == golden_hash(again.task)


def test_commands_take_such_names(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(["show", REGEX]) == 0
    assert capsys.readouterr().out.startswith("regex:(ab|ba)*  task, version 1\nWhether the word")
    words = ["--samples", "5", "--test-length", "20"]
    assert run(["gen", REGEX, PERMUTATIONS, *words, "--format", "jsonl"]) == 0
    assert len([*Path("data").iterdir()]) == 2
    assert run(["gen", PERMUTATIONS, "--format", "dot", "--out", "machine.dot"]) == 0
    assert load_task("machine.dot").automaton.num_states == 6
    assert run(["predict", REGEX, PERMUTATIONS, "--models", "lstm"]) == 0
    printed = capsys.readouterr().out
    assert REGEX in printed and "permutations:(1,2,3),(1,2)" in printed
