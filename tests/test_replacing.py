"""`--force`: runs, datasets and machine files that are replaced on purpose, and what never is."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from statetrack.cli.app import run as command
from statetrack.data import read_dataset
from statetrack.errors import RunError, StatetrackError
from statetrack.runs import Run, RunFolder
from tests.test_run import (
    SMALL,
    experiment_of,
    finish,
    stop_after,
    the_error_of,
    train_until,
    trained,
)


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("old") / "run", steps=5).path


@pytest.fixture
def there(old: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(old, tmp_path / "run"))


def beside(path: Path) -> set[str]:
    return {each.name for each in path.parent.iterdir()} - {path.name}


def replace(path: Path, **values: object) -> Run:
    return Run.start(experiment_of(**({"steps": 6} | values)), out=path, force=True)


def test_a_run_is_replaced_and_the_old_one_goes_when_the_new_one_has_finished(there):
    new = replace(there)
    assert not new.finished and beside(there) == {".run.replaced"}
    assert Run.open(there.parent / ".run.replaced").summary.steps == 5
    train_until(new, stop_after(3))  # stopped: the old one is still there
    assert beside(there) == {".run.replaced"}
    assert finish(Run.resume(there)).summary.steps == 6 and not beside(there)


def test_a_start_that_fails_changes_nothing(there, monkeypatch):
    before = sorted((path.name, path.read_bytes()) for path in there.iterdir())
    with pytest.raises(StatetrackError):
        replace(there, task="no-such-task")

    def full(path: Path, content: object) -> None:
        raise RunError(f"{path.name}: cannot be written: disk full")

    with monkeypatch.context() as patched:
        patched.setattr("statetrack.runs.folder.write_file", full)
        assert "disk full" in the_error_of(RunError, lambda: replace(there))
    whole = Path.rename

    def rename(path: Path, target: Path) -> Path:
        if Path(target) == there and path.name != ".run.replaced":
            raise OSError("no")
        return whole(path, target)

    monkeypatch.setattr(Path, "rename", rename)
    assert "cannot be made" in the_error_of(RunError, lambda: replace(there))
    assert sorted((path.name, path.read_bytes()) for path in there.iterdir()) == before
    assert not beside(there)


def test_of_two_replacements_that_were_interrupted_the_finished_run_stays(there):
    train_until(replace(there), stop_after(2))
    replace(there, seed=7)
    assert Run.open(there.parent / ".run.replaced").finished
    assert Run.open(there).experiment.training.seed == 7 and beside(there) == {".run.replaced"}


@pytest.mark.parametrize("name", ["notes.txt", "figures", "helper.py"])
def test_a_run_with_a_foreign_file_is_never_replaced(there, name):
    file = there / name
    file.mkdir() if name == "figures" else file.write_text("mine")
    message = the_error_of(RunError, lambda: replace(there))
    assert f"holds '{name}', which is no file of a run" in message and "\n" not in message
    assert file.exists() and Run.open(there).finished and not beside(there)


def test_what_is_no_run_is_never_replaced(tmp_path, there):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("all of it")
    assert "is no run folder" in the_error_of(RunError, lambda: replace(tmp_path / "mine"))
    (tmp_path / "link").symlink_to(there)
    assert "is no run folder" in the_error_of(RunError, lambda: replace(tmp_path / "link"))
    with RunFolder(there).training():
        assert "another process is training" in the_error_of(RunError, lambda: replace(there))
    assert (tmp_path / "mine" / "thesis.tex").exists() and Run.open(there).finished


def test_the_command_replaces_a_run_where_it_is_told_to(there, capsys, monkeypatch):
    monkeypatch.chdir(there.parent)
    quick = "--model bilinear --task parity --hidden 2 --steps 2 --batch-size 2 --finish none"
    asked = ["train", *quick.split(), "--validation-words", "4", "--out", "run"]
    assert command(asked) == 1
    assert "replace it by --force" in capsys.readouterr().err
    assert command([*asked, "--force"]) == 0 and Run.open("run").summary.steps == 2
    capsys.readouterr()
    assert command([*asked[:-2], "--force"]) == 1
    assert "--out names" in capsys.readouterr().err
    assert SMALL["steps"] != 2


def test_gen_replaces_datasets_and_nothing_else(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small = "--length 3-4 --samples 6 --validation-samples 2 --test-samples 2 --test-length 9"
    asked = ["gen", "parity", *small.split(), "--format", "jsonl", "--out", "words"]
    assert command(asked) == 0
    assert command(asked) == 1 and "replace a dataset by --force" in capsys.readouterr().err
    for form in ("csv", "parquet", "npz", "lm-eval", "jsonl"):
        changed = [*asked[:-4], "--format", form, "--out", "words", "--seed", "3", "--force"]
        assert command(changed) == 0, capsys.readouterr().err
        assert read_dataset(Path("words")).card["format"] == form
    assert {path.name for path in tmp_path.iterdir()} == {"words"}
    capsys.readouterr()
    for foreign in (Path("words/notes.txt"), Path("words/data/mine.jsonl")):
        foreign.write_text("mine")
        assert command([*asked, "--force"]) == 1
        assert "which is no file of this dataset" in capsys.readouterr().err
        foreign.unlink()
    Path("words/card.json").unlink()
    assert command([*asked, "--force"]) == 1
    assert "is no dataset" in capsys.readouterr().err and Path("words/README.md").exists()


def test_gen_replaces_machine_files_and_nothing_else(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = ["gen", "parity", "--format", "dot", "--out", "machine.dot"]
    assert command(asked) == 0
    assert command(asked) == 1 and "replace a machine by --force" in capsys.readouterr().err
    assert command([*asked, "--force"]) == 0
    Path("machine.dot").write_text("my notes")
    assert command([*asked, "--force"]) == 1
    assert "is no machine file" in capsys.readouterr().err
    assert Path("machine.dot").read_text() == "my notes"
