"""What holds for every task that comes along: a new file is tested by being there."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest
import yaml

from statetrack.cli.app import run
from statetrack.sources import minimise
from statetrack.spec import golden_hash, load_task, task_names
from tests.references.reading import run_by_steps

GOLDEN_FILE = Path(__file__).parent / "golden" / "tasks.yaml"

every_task = pytest.mark.parametrize("name", task_names())
with_automaton = [name for name in task_names() if load_task(name).has_automaton]
every_automaton = pytest.mark.parametrize("name", with_automaton)


@cache
def fingerprints():
    return yaml.safe_load(GOLDEN_FILE.read_text())


@every_task
def test_it_loads_and_its_examples_are_right(name):
    task = load_task(name)  # checks the examples
    assert task.name == name
    assert len(task.spec.examples) >= 2, "write two examples, worked by hand"


@every_task
def test_it_says_where_it_comes_from(name):
    spec = load_task(name).spec
    assert "arXiv " in spec.reference or spec.reference.startswith("own"), spec.reference
    assert spec.title[0].isupper() and not spec.title.endswith(".")


@every_automaton
def test_its_labels_are_those_of_reading_symbol_by_symbol(name):
    automaton = load_task(name).automaton
    words = np.random.default_rng(0).integers(automaton.num_symbols, size=(20, 23))
    expected = run_by_steps(automaton.delta, automaton.output, words, automaton.start)
    np.testing.assert_array_equal(automaton.labels_of(words), expected)


@every_automaton
def test_no_two_of_its_states_are_alike(name):
    automaton = load_task(name).automaton
    assert minimise(automaton).num_states == automaton.num_states


@every_task
def test_its_document_loads_the_same_task(name, tmp_path):
    task = load_task(name)
    path = tmp_path / "task.yaml"
    path.write_text(task.document())
    assert golden_hash(load_task(str(path))) == golden_hash(task)


@every_task
def test_its_data_changes_only_with_its_version(name):
    task = load_task(name)
    known = fingerprints().get(name, {})
    version, found = task.spec.version, golden_hash(task)
    assert version in known, f"add to {GOLDEN_FILE.name}, under '{name}':  {version}: {found}"
    assert known[version] == found, (
        f"the machine of '{name}' is not what version {version} was: raise `version` in "
        f"tasks/{name}.yaml and add to {GOLDEN_FILE.name}:  {version + 1}: {found}"
    )


def test_no_fingerprint_is_left_without_its_task():
    assert set(fingerprints()) == set(task_names())


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("turnstile", "the last symbol tells the label of 99 % of words of length 500"),
        ("register", "the last 7 symbols tell the label of 99 % of words of length 500"),
        ("regex:(ab|ba)*;words=uniform", "one answer is right on 1.00 of words of length 500"),
        ("s3", None),
        ("flip-flop", None),
    ],
)
def test_show_says_which_tasks_are_solved_without_a_state(name, told, capsys):
    assert run(["show", name]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert (" shortcut " in printed) == (told is not None)
    assert told is None or told in printed


def test_no_two_shipped_tasks_have_the_same_title():
    titles = [load_task(name).spec.title for name in task_names()]
    assert len({*titles}) == len(titles)
