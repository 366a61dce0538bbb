"""Code that comes with a run or a dataset: what executes it, and what never does."""

from __future__ import annotations

import importlib.util
import json
import os
import pickle
import py_compile
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from statetrack import yaml_text
from statetrack.cli import app
from statetrack.data.formats import filling, npz
from statetrack.data.formats.filling import Declared
from statetrack.errors import (
    DatasetError,
    RunError,
    SettingsError,
    StatetrackError,
    StatetrackWarning,
)
from statetrack.models import MODELS
from statetrack.plugins import load_plugin
from statetrack.runs import Run, RunFolder, compare, disk, files, find_run_folders
from statetrack.settings import read_yaml
from statetrack.sources import LONGEST_ALLOWED
from statetrack.sources.automaton import MOST_TRANSITIONS
from statetrack.spec import load_task
from statetrack.sweep import Failed, load_suite, points_of
from statetrack.sweep.work import Work
from tests.faults.processes import run_in_child
from tests.new_process import forget_plugins
from tests.run_files import append_rows

PLUGIN = '''
"""A model, a kind and a loss; each import of this file leaves a mark."""
import pathlib
from typing import Annotated

import torch

from helper import WIDTH
from statetrack import KINDS, LOSSES, MODELS, Automaton, SequenceModel, Settings
from statetrack.sources.kinds import argument

with pathlib.Path(MARK).open("a") as file:
    file.write("executed ")
print("a line of the plugin")


@MODELS.register("marked")
class Marked(SequenceModel):
    """One table of logits."""

    settings_class = Settings
    source = "arXiv:1406.1078"

    def __init__(self, settings, *, num_symbols, num_labels):
        super().__init__(settings, num_symbols=num_symbols, num_labels=num_labels)
        self.readout = torch.nn.Embedding(num_symbols, num_labels * WIDTH)

    def forward(self, symbols):
        return self.readout(symbols)


@KINDS.register("marked-kind")
def marked_kind(*, size: Annotated[int, argument("States.", min=2)] = 3):
    """Counting."""
    return Automaton([[state, (state + 1) % size] for state in range(size)])


@LOSSES.register("marked-loss")
def marked_loss(settings):
    """The squared error."""
    return LOSSES["squared-error"](settings)
'''

TASK = """
title: A kind of one's own
version: 1
reference: Delétang et al. (2023), arXiv:2207.02098
automaton: {kind: marked-kind}
train_length: [2, 6]
test_lengths: [10]
"""

TRAIN = "train --plugin mine.py --model marked --task task.yaml --loss marked-loss".split()
TRAIN += "--steps 4 --validation-words 8 --batch-size 8 --lrs 1e-2".split()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with runs that need a plugin, finished and not, and one that needs none.

    The plugin is no longer loaded, and its originals are gone.
    """
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        mark = folder / "mark"
        Path("mine.py").write_text(f"MARK = {str(mark)!r}\n{PLUGIN}")
        Path("helper.py").write_text("WIDTH = 1\n")
        Path("task.yaml").write_text(TASK)
        assert app.run([*TRAIN, "--out", "runs/theirs"]) == 0
        for name in ("mine.py", "helper.py", "task.yaml", "mark"):
            Path(name).unlink()
        shutil.copytree("runs/theirs", "runs/started")
        for name in ("summary.json", "weights.safetensors"):
            Path("runs/started", name).unlink()
        plain = "train --model diagonal-real --task parity --hidden 4 --steps 2 --out runs/plain"
        assert app.run([*plain.split(), "--validation-words", "8", "--batch-size", "8"]) == 0
    forget_plugins()
    return folder


@pytest.fixture
def mark(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Path]:
    """What the plugin writes when it is executed, in copies of the runs on another machine."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    shutil.copytree(made / "runs", tmp_path / "runs")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    yield made / "mark"
    (made / "mark").unlink(missing_ok=True)
    forget_plugins()


def told(capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """What was printed on standard output and on standard error, each as one line."""
    printed = capsys.readouterr()
    return " ".join(printed.out.split()), " ".join(printed.err.split())


def kept_bytes(folder: Path) -> dict[str, bytes]:
    """The content of every file in a folder."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


SUITE = """
title: A suite over the folder of somebody's run
settings: {steps: 4, validation_words: 8, batch_size: 8, lrs: [0.01]}
models: {theirs: marked}
tasks: {runs: parity}
"""


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("eval runs/theirs", 1),
        ("eval runs/theirs --all --json", 1),
        ("eval runs/theirs --task parity", 1),
        ("train --resume runs/started", 1),
        ("train --config runs/theirs/config.yaml", 1),
        ("train --task runs/theirs/task.yaml --steps 1", 1),
        ("compare", 0),
        ("compare runs/theirs --json", 1),
        ("cite runs/theirs", 0),
        ("list runs", 0),
        ("list runs --json", 0),
        ("list models", 0),
        ("list kinds", 0),
        ("show runs/theirs", 0),
        ("show runs/theirs/task.yaml", 1),
        ("audit runs/theirs/task.yaml", 1),
        ("predict runs/theirs/task.yaml", 1),
        ("gen runs/theirs/task.yaml --out words", 1),
        ("reproduce suite.yaml --out . --jobs 1", 1),
    ],
)
def test_no_command_executes_the_plugin_of_a_run_unasked(
    line: str, code: int, mark: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = kept_bytes(Path("runs"))
    Path("suite.yaml").write_text(SUITE)
    assert app.run(line.split()) == code
    assert not mark.exists(), "the plugin was executed"
    _, error = told(capsys)
    assert "internal error" not in error and "Traceback" not in error
    assert kept_bytes(Path("runs")) == before
    if line.startswith(("eval", "train --resume")):
        where = line.split()[2 if line.startswith("train") else 1]
        assert error == (
            f"error: {where}: needs its plugin {where}/plugin.py and 1 more .py file, which is "
            "code that is run: read it, then give --trust-plugin, or --plugin FILE.py"
        )


def test_the_library_opens_a_run_with_a_plugin_only_when_it_is_trusted(mark: Path) -> None:
    for open_run in (Run.open, Run.resume):
        with pytest.raises(RunError, match=r"then give trust_plugin=True, or st\.load_plugin"):
            open_run("runs/started")
    assert not mark.exists()
    assert Run.resume("runs/started", trust_plugin=True).experiment.model == "marked"
    assert mark.read_text() == "executed "


def test_a_run_of_ones_own_file_is_opened_unasked_until_its_code_changes(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(made / "runs", tmp_path / "runs")
    monkeypatch.chdir(tmp_path)
    for line in ("eval runs/theirs --samples 20", "compare", "report runs", "list runs"):
        assert app.run(line.split()) == 0
        assert "needs its plugin" not in "".join(told(capsys))
        forget_plugins()
    (made / "mark").unlink()
    Path("runs/theirs/helper.py").write_text("WIDTH = 1 + 0\n")
    Path("runs/started/another.py").write_text("")
    for run in ("theirs", "started"):
        with pytest.raises(RunError, match="read it, then give"):
            Run.open(f"runs/{run}")
    assert not (made / "mark").exists()


@pytest.mark.parametrize(
    "line",
    [
        "eval runs/theirs --samples 20 --json --trust-plugin",
        "train --resume runs/started --trust-plugin",
    ],
)
def test_a_trusted_plugin_is_executed_and_does_not_print_into_results(
    line: str, mark: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.run(line.split()) == 0
    assert mark.read_text() == "executed "
    printed = capsys.readouterr()
    assert "a line of the plugin" not in printed.out
    assert printed.err.startswith("a line of the plugin\n")
    if "--json" in line:
        assert json.loads(printed.out)["model"] == "marked"
    assert not list(Path("runs").rglob("__pycache__"))


def test_a_plugin_given_by_hand_opens_the_run_and_its_copy_is_not_executed(
    mark: Path, made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy("runs/theirs/helper.py", "helper.py")
    Path("own.py").write_bytes(Path("runs/theirs/plugin.py").read_bytes())
    Path("runs/theirs/plugin.py").rename("runs/theirs/plugin_2.py")
    Path("runs/theirs/plugin.py").write_text("1 / 0")
    words = "eval runs/theirs --samples 20 --plugin own.py".split()
    assert app.run(words) == 0
    assert "trained with" not in capsys.readouterr().err
    assert mark.read_text() == "executed "


def test_another_version_of_the_plugin_than_the_runs_is_said_in_one_line(
    mark: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy("runs/theirs/plugin.py", "own.py")
    Path("helper.py").write_text("WIDTH = 1  # as before\n")
    assert app.run("eval runs/theirs --samples 20 --plugin own.py".split()) == 0
    (line,) = [one for one in capsys.readouterr().err.splitlines() if "trained with" in one]
    assert line.startswith("warning: runs/theirs: it was trained with another version of ")
    assert "helper.py than is used now (SHA-256 " in line and "runs/theirs/helper.py" in line


def test_names_from_an_installed_package_in_place_of_the_plugin_are_said(mark: Path) -> None:
    run = Path("runs/theirs")
    config = run / "config.yaml"
    config.write_text(config.read_text().replace("marked-loss", "squared-error"))
    task = (run / "task.yaml").read_text().replace("marked-kind", "parity")
    (run / "task.yaml").write_text(task)
    MODELS.register("marked")(MODELS["diagonal-real"])
    MODELS._homes["marked"] = "installed_package"
    with pytest.warns(StatetrackWarning, match="theirs: the names it needs now come from inst"):
        Run.open(run)
    assert not mark.exists()


def test_compare_and_list_go_on_with_the_other_runs_and_say_which_need_their_plugin(
    mark: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {one.run.name: one for one in compare(find_run_folders([Path("runs")]))}
    assert found["plain"].outcome == "not evaluated"
    assert found["theirs"].outcome == "needs its plugin" == found["started"].outcome
    assert found["theirs"].model == "marked" and found["theirs"].task == "task.yaml"
    assert app.run(["compare"]) == 0
    out, _ = told(capsys)
    assert "runs/theirs: needs its plugin: runs/theirs/plugin.py and 1 more .py file, for " in out
    assert out.endswith("3 runs: 1 not evaluated, 2 needs its plugin")
    assert app.run(["list", "runs", "--json"]) == 0
    rows = {row["run"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["runs/theirs"]["needs_plugin"] is True
    assert rows["runs/theirs"]["model"] == "marked" and rows["runs/theirs"]["step"] == 4
    assert rows["runs/plain"]["needs_plugin"] is False
    assert app.run(["list", "runs"]) == 0
    out, _ = told(capsys)
    assert "finished, needs its plugin" in out and "unfinished, needs its plugin" in out


def test_cite_says_what_is_known_without_the_plugin(
    mark: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.run(["cite", "runs/theirs"]) == 0
    out, error = told(capsys)
    assert "@software{statetrack" in out and "deletang2023chomsky" in out
    assert "cho2014gru" not in out
    assert "needs its plugin runs/theirs/plugin.py" in error and "papers of marked" in error
    Path("helper.py").write_text("WIDTH = 1")
    shutil.copy("runs/theirs/plugin.py", "own.py")
    assert app.run(["cite", "runs/theirs", "--plugin", "own.py"]) == 0
    out, error = told(capsys)
    assert "cho2014gru" in out and "needs" not in error


@pytest.mark.parametrize("trusted", ["--trust-plugin", "--plugin"])
def test_only_the_text_that_can_be_read_is_executed(trusted: str, mark: Path) -> None:
    run, hidden = Path("runs/theirs"), Path("hidden.py")
    hidden.write_text("import os; os.mkdir('hidden-was-executed')\nWIDTH = 1\n")
    unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH  # used whatever the text is
    (run / "__pycache__").mkdir()
    for name in ("helper", "plugin"):
        cached = Path(importlib.util.cache_from_source(str(run / f"{name}.py")))
        py_compile.compile(str(hidden), str(cached), invalidation_mode=unchecked)
    given = [trusted] if trusted == "--trust-plugin" else [trusted, str(run / "plugin.py")]
    assert app.run(["eval", str(run), "--samples", "20", *given]) == 0
    assert mark.exists() and not Path("hidden-was-executed").exists()
    forget_plugins()
    (run / "helper.py").unlink()
    py_compile.compile(str(hidden), str(run / "helper.pyc"))
    assert app.run(["eval", str(run), "--samples", "20", *given]) == 1
    assert not Path("hidden-was-executed").exists()


class Touch:
    """A pickle of it makes a folder when it is read."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, ("pickle-was-executed",)


def test_pickles_and_tags_of_yaml_are_refused_and_never_executed(
    mark: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(RunError, match=r"checkpoint.pt: is damaged"):
        torch.save({"trainer": Touch(), "seconds": 0.0}, "runs/started/checkpoint.pt")
        RunFolder(Path("runs/started")).read(files.CHECKPOINT)
    with pytest.raises(RunError, match=r"checkpoint.pt: is damaged"):
        Path("runs/started/checkpoint.pt").write_bytes(pickle.dumps(Touch(), protocol=2))
        RunFolder(Path("runs/started")).read(files.CHECKPOINT)
    Path("runs/plain/weights.safetensors").write_bytes(pickle.dumps(Touch(), protocol=2))
    with pytest.raises(RunError, match=r"weights.safetensors: is damaged"):
        RunFolder(Path("runs/plain")).read(files.WEIGHTS)
    arrays = dict.fromkeys(("symbols", "labels", "scored", "lengths"), np.array([Touch()], object))
    np.savez("words.npz", **arrays)
    with pytest.raises(DatasetError, match=r"words.npz: "):
        npz.read(Path(), "words", Declared(1, 1, 1, 1, 1, 1, 2, 2))
    for text in (
        "!!python/object/apply:os.mkdir [yaml-was-executed]",
        "!!python/name:os.system ''",
    ):
        Path("tag.yaml").write_text(f"title: {text}\n")
        with pytest.raises(StatetrackError, match=r"tag.yaml"):
            read_yaml(Path("tag.yaml"))
        with pytest.raises(StatetrackError, match=r"tag.yaml"):
            load_task("tag.yaml")
    assert not Path("pickle-was-executed").exists() and not Path("yaml-was-executed").exists()


KINDS_OF_MINE = """
import parts
from statetrack import KINDS

@KINDS.register("clock-of-mine")
def clock(*, size: parts.Size = 3):
    "A counter modulo some size."
    from parts import later

    return later.clock(size)
"""

PARTS = """
from typing import Annotated

from .bounds import LEAST
from statetrack.sources.kinds import argument

Size = Annotated[int, argument("States.", min=LEAST)]
"""

LATER = """
from statetrack import Automaton

def clock(size):
    return Automaton([[state, (state + 1) % size] for state in range(size)])
"""

COMPOSED = {
    "direct": "{kind: clock-of-mine, size: 3}",
    "fused": "{kind: fused, of: {kind: clock-of-mine}, count: 2}",
    "cascade": "{kind: cascade, components: [{of: {kind: parity}}, {of: {kind: fused, "
    "of: {kind: clock-of-mine}, count: 1}, feed: {any: '0'}}]}",
    "product": "{kind: direct-product, factors: [{kind: parity}, {kind: with-resets, "
    "of: {kind: clock-of-mine, size: 2}}]}",
}
"""Automata made of a plugin's kind, by the names of their files."""


def opened(names: Iterable[str]) -> None:
    """What a new process does with runs: it knows nothing of the plugin that trained them."""
    forget_plugins()
    for name in names:
        print(Run.open(name, trust_plugin=True).evaluate([6], num_words=20).selected.length)


def test_a_run_with_a_kind_of_ones_own_is_complete_in_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, away = tmp_path / "home", tmp_path / "away"
    (home / "parts").mkdir(parents=True)
    away.mkdir()
    monkeypatch.chdir(home)
    Path("kinds.py").write_text(KINDS_OF_MINE)
    files = {"__init__": PARTS, "bounds": "LEAST = 2\n", "later": LATER}
    for name, text in files.items():
        Path("parts", f"{name}.py").write_text(text)
    for name, automaton in COMPOSED.items():
        Path(f"{name}.yaml").write_text(TASK.replace("{kind: marked-kind}", automaton))
    tasks = {name: f"{name}.yaml" for name in COMPOSED}
    tasks |= {"named": "direct.yaml:size=4", "beside": "product(direct.yaml:size=2,parity)"}
    train = "train --plugin kinds.py --model diagonal-real --hidden 2 --steps 1 --batch-size 4"
    for name, task in tasks.items():
        words = [*train.split(), "--validation-words", "4", "--task", task]
        assert app.run([*words, "--out", str(away / name)]) == 0, name
        copies = {path.relative_to(away / name).as_posix() for path in away.glob(f"{name}/**/*.py")}
        assert copies == {"plugin.py", *(f"parts/{file}.py" for file in files)}
    monkeypatch.chdir(away)
    shutil.rmtree(home)
    assert run_in_child(lambda: opened(tasks)).output.split() == ["6"] * len(tasks)


ENDING = """
import sys
from typing import Annotated

import torch
from pydantic import field_validator
from statetrack import KINDS, LOSSES, MODELS, Automaton, SequenceModel, Settings, option


class EndingSettings(Settings):
    at: str = option("nowhere", "Where the program is ended.")

    @field_validator("at")
    @classmethod
    def _check(cls, at):
        if at == "check":
            sys.exit()
        return at


@MODELS.register("ending")
class Ending(SequenceModel):
    settings_class = EndingSettings

    def __init__(self, settings, *, num_symbols, num_labels):
        super().__init__(settings, num_symbols=num_symbols, num_labels=num_labels)
        self.readout = torch.nn.Embedding(num_symbols, num_labels)

    def forward(self, symbols):
        if self.settings.at == "forward":
            sys.exit(0)
        return self.readout(symbols)


@LOSSES.register("ending-loss")
def ending_loss(settings):
    raise SystemExit


@KINDS.register("ending-kind")
def ending_kind():
    import argparse

    argparse.ArgumentParser().parse_args(["--help"])
"""

ENDS = {
    "forward": "--at forward",
    "check": "--at check",
    "loss": "--loss ending-loss",
    "kind": "--task ending.yaml",
}


@pytest.fixture
def ending(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ending.py").write_text(ENDING)
    Path("ending.yaml").write_text(TASK.replace("marked-kind", "ending-kind"))


@pytest.mark.parametrize("options", ENDS.values(), ids=list(ENDS))
def test_the_end_of_the_program_in_a_users_file_is_an_error_with_its_line(
    options: str, ending: None, capsys: pytest.CaptureFixture[str]
) -> None:
    train = "train --plugin ending.py --model ending --steps 1 --batch-size 4 --validation-words 4"
    assert app.run([*train.split(), *options.split(), "--out", "run"]) == 1
    error = capsys.readouterr().err.splitlines()[-1]
    line = ENDING.splitlines().index(
        {
            "--at forward": "            sys.exit(0)",
            "--at check": "            sys.exit()",
            "--loss ending-loss": "    raise SystemExit",
            "--task ending.yaml": '    argparse.ArgumentParser().parse_args(["--help"])',
        }[options]
    )
    assert error.startswith(f"error: ending.py, line {line + 1}: it ends the program")


def test_a_mistake_in_a_users_file_keeps_its_line_in_a_cell_of_a_suite(ending: None) -> None:
    Path("suite.yaml").write_text(SUITE.replace("theirs: marked", "mine: ending"))
    load_plugin(Path("ending.py"))
    suite = load_suite("suite.yaml")
    (cell,) = points_of(suite, Path("out"), {})
    ending_cell = replace(cell, values=cell.values | {"loss": "ending-loss"})
    done = Work(suite)(ending_cell, lambda: False)
    assert isinstance(done, Failed)
    assert done.error.startswith("ending.py, line 37: it ends the program")


def test_the_end_of_the_program_at_exit_leaves_the_status_of_an_error(tmp_path: Path) -> None:
    text = "import atexit, sys\natexit.register(lambda: sys.exit(0))\n"
    (tmp_path / "late.py").write_text(text)
    words = ["list", "modles", "--plugin", str(tmp_path / "late.py")]
    done = subprocess.run([sys.executable, "-m", "statetrack", *words], capture_output=True)
    assert done.returncode == 1


def test_an_interrupted_import_of_a_plugin_is_not_taken_for_a_whole_one(tmp_path: Path) -> None:
    plugin = tmp_path / "long.py"
    plugin.write_text("raise KeyboardInterrupt")
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            load_plugin(plugin)
    assert app.run(["list", "--plugin", str(plugin)]) == 130
    plugin.write_text("")
    load_plugin(plugin)


def test_a_plugin_that_has_changed_since_it_was_imported_is_refused(tmp_path: Path) -> None:
    plugin = tmp_path / "mine.py"
    plugin.write_text("SIZE = 1\n")
    load_plugin(plugin)
    load_plugin(plugin)
    plugin.write_text("SIZE = 2\n")
    with pytest.raises(SettingsError, match=r"mine.py'\): has changed since this process imported"):
        load_plugin(plugin)


@pytest.mark.parametrize("name", ["eval.jsonl", "metrics.jsonl", "evidence.jsonl"])
def test_rows_are_not_appended_to_what_a_link_in_a_run_names(name: str, mark: Path) -> None:
    mine = Path("mine.txt")
    mine.write_text("a first line\nno end of the last line")
    folder = RunFolder(Path("runs/plain"))
    (folder.path / name).unlink(missing_ok=True)
    (folder.path / name).symlink_to(mine.resolve())
    with pytest.raises(RunError, match=rf"{name}: cannot be written"):
        append_rows(folder, name, [{"length": 1}])
    assert mine.read_text() == "a first line\nno end of the last line"


def test_the_security_page_names_the_bounds_that_hold() -> None:
    page = (Path(__file__).parents[1] / "docs" / "security.md").read_text(encoding="utf-8")
    assert yaml_text.MOST_BYTES == 32 * 2**20 and "32 MiB, a depth of 100 and 100,000" in page
    assert (yaml_text.DEEPEST, yaml_text.MOST_REPEATED) == (100, 100_000)
    assert files.LARGEST_JSON == 32 * 2**20 and disk.LONGEST_ROW == 64 * 2**10
    assert files.LONGEST_EVIDENCE == 2**20 and "`evidence.jsonl` 1 MiB" in page
    assert filling.MOST_BYTES == 4 * 2**30 and "4 GiB" in page
    assert f"{MOST_TRANSITIONS:,} transitions" in page and f"end at {LONGEST_ALLOWED:,}" in page
