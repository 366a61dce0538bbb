"""Earlier names of tasks: they work wherever a name does, and a note says what they are."""

import re
import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from statetrack.cli.app import run
from statetrack.errors import TaskWarning, UnknownNameError
from statetrack.registry import Alias, Registry
from statetrack.runs import Experiment
from statetrack.spec import TASKS, current_name, golden_hash, load_task
from statetrack.sweep.results import AnotherRunError, refuse_another

GOLDEN = yaml.safe_load((Path(__file__).parent / "golden/tasks.yaml").read_text())


@pytest.mark.parametrize(("alias", "main"), [(a, b.name) for a, b in TASKS.aliases.items()])
def test_an_earlier_name_is_the_same_task_and_is_not_listed(alias, main):
    assert alias in TASKS and alias not in [*TASKS] and main in [*TASKS]
    with pytest.warns(TaskWarning, match=f"task '{alias}' is {main}"):
        task = load_task(alias)
    assert task.name == main
    assert golden_hash(task) == GOLDEN[main][1]


def test_an_earlier_name_takes_arguments_and_is_a_factor():
    with pytest.warns(TaskWarning, match="dihedral group of 8 elements is dihedral:n=4"):
        task = load_task("d4:labels=membership")
    assert task.name == "dyck-1-depth-4:labels=membership"
    with pytest.warns(TaskWarning):
        assert load_task("product(d2,parity)").name == "product(dyck-1-depth-2,parity)"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert load_task("dihedral:n=4").automaton.num_states == 8
        assert load_task("dyck-1-depth-4").name == "dyck-1-depth-4"


def test_the_present_name_of_a_task_is_known_without_loading_it():
    assert current_name("d4") == "dyck-1-depth-4"
    assert current_name("d12:words=members") == "dyck-1-depth-12:words=members"
    assert current_name("product( d2:words=members , s3)") == (
        "product(dyck-1-depth-2:words=members,s3)"
    )
    for name in ("s4", "dihedral:n=4", "mine/d4.yaml", "d5", "product(s3,parity)"):
        assert current_name(name) == name


def test_a_point_of_a_sweep_that_was_run_by_an_earlier_name_is_still_that_point(tmp_path):
    wanted = Experiment.from_values({"model": "lstm", "task": "dyck-1-depth-4"}, "here")
    file = tmp_path / "task.yaml"
    document = (
        load_task("dyck-1-depth-4").document().replace('name: "dyck-1-depth-4"', 'name: "d4"')
    )
    assert '"d4"' in document
    file.write_text(document)

    def folder(name):
        config = wanted.values() | {"task": name}
        return SimpleNamespace(path=tmp_path, task_file=file, read=lambda file: dict(config))

    point = SimpleNamespace(experiment=wanted, values=wanted.values(), settings=wanted.values())
    assert refuse_another(folder("d4"), point).name == "d4"
    with pytest.raises(AnotherRunError, match="task dyck-1-depth-2 there"):
        refuse_another(folder("d2"), point)


def test_show_prints_the_note_and_the_present_name(capsys):
    assert run(["show", "d4"]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("dyck-1-depth-4  task")
    assert printed.err.count("dihedral:n=4") == 1


def test_a_registry_finds_aliases_and_refuses_to_register_them():
    found = Registry(
        "thing", lambda: {"one": lambda: 1}, listing="list", aliases={"uno": Alias("one", "note")}
    )
    assert found["uno"] == 1 and "uno" in found and list(found) == ["one"] and len(found) == 1
    assert found.listed_name("uno") == "one" == found.listed_name("one")
    with pytest.raises(ValueError, match="registered twice"):
        found.register("uno")(2)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("d5", "The dihedral group D5 is `dihedral:n=5`."),
        ("S6", "The symmetric group S6 is `symmetric:n=6`."),
        ("a_7", "The alternating group A7 is `alternating:n=7`."),
        ("C4", "The cyclic group C4 is `cyclic:n=4`."),
        ("S3", "Did you mean 's3'?"),
        (
            "s33",
            "S33 is too large: the largest is `symmetric:n=7,generators=swaps`.",
        ),
        ("s7", "The symmetric group S7 is `symmetric:n=7,generators=swaps`."),
        ("d999", "The dihedral group D999 is too large: the largest is `dihedral:n=512`."),
        ("a2", "The alternating group A2 is too small: the smallest is `alternating:n=3`."),
    ],
)
def test_a_name_that_reads_like_a_group_is_told_the_task_of_that_group(name, meant, capsys):
    with pytest.raises(UnknownNameError) as refused:
        load_task(name)
    assert meant in str(refused.value)
    assert load_task(re.split("[`']", meant)[1]).has_automaton
    assert run(["show", name]) == 1
    assert meant in capsys.readouterr().err
