"""Completion by a shell: commands, options and names, in the protocol of each shell."""

import inspect
import os
import shutil
import subprocess
import sys

import pytest

from statetrack.cli import _completion as completing
from statetrack.cli import app
from statetrack.models import MODELS
from statetrack.sources import KINDS
from statetrack.spec import TASKS
from statetrack.sweep import SUITES
from statetrack.training import PROTOCOLS
from tests.test_cli_frame import ROOT


@pytest.fixture
def complete(capsys, monkeypatch):
    """What bash is offered for a line that is typed up to its end."""

    def offered(line):
        words = ["statetrack", *line.split(" ")]
        monkeypatch.setenv("_STATETRACK_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", "\n".join(words))
        monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
        assert app.run([]) == 0
        said = capsys.readouterr()
        assert said.err == ""
        return said.out.split()

    return offered


@pytest.fixture
def some_runs(tmp_path, monkeypatch):
    """A folder with two runs in `runs` and one among others."""
    for name in ("runs/one", "runs/two", "sweeps/mine/lstm", "here", "runs/no-run"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("runs/one", "runs/two", "sweeps/mine/lstm", "here"):
        (tmp_path / name / "config.yaml").write_text("model: lstm\n")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("tr", ["train"]),
        ("gen --te", ["--test-length", "--test-samples", "--text"]),
        ("train --model bilinear-", ["bilinear-block", "bilinear-cp", "bilinear-rotation"]),
        ("train --model slstm --forg", ["--forget"]),
        ("train --model nothing --lr", ["--lrs"]),
        ("train --model LSTM --task s4-", ["s4-cascade", "s4-fused-swaps"]),
        ("train --loss s", ["smoothed-cross-entropy", "squared-error"]),
        ("train --protocol delta", ["deltaproduct-paper"]),
        ("train --out ", []),
        ("sweep --model gru,mamba", ["gru,mamba", "gru,mamba2", "gru,mamba3"]),
        ("sweep --task s3,tomita-7", ["s3,tomita-7"]),
        ("extract --algorithm ", ["lstar", "kv"]),
        ("reproduce hier", ["hierarchy"]),
        ("report hier", ["hierarchy"]),
        ("show tomita-1", ["tomita-1"]),
        ("show bilinear-p", ["bilinear-paper"]),
        ("list p", ["protocols"]),
        ("eval --dev", ["--device"]),
        ("eval --device c", ["cpu", "cuda"]),
        ("nothing --x", []),
    ],
)
def test_commands_options_and_names_are_completed(complete, line, offered):
    assert sorted(complete(line)) == sorted(offered)


def test_an_empty_line_offers_every_command(complete):
    assert set(complete("")) == set(app.find_commands())


@pytest.mark.usefixtures("some_runs")
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("eval ", ["runs/one", "runs/two", "here", "runs/", "sweeps/"]),
        ("eval runs/", ["runs/one", "runs/two", "runs/no-run/"]),
        ("eval runs/o", ["runs/one"]),
        ("certify sweeps/mine/", ["sweeps/mine/lstm"]),
        ("train --resume h", ["here"]),
        ("cite runs/", ["runs/one", "runs/two", "runs/no-run/"]),
        ("show runs/t", ["runs/two"]),
        ("compare runs/one runs/t", ["runs/two"]),
        ("eval missing/", []),
    ],
)
def test_run_folders_are_completed(complete, line, offered):
    assert sorted(complete(line)) == sorted(offered)


def test_what_is_offered_is_what_the_registries_have():
    assert completing.models() == list(MODELS) and completing.tasks() == list(TASKS)
    assert completing.suites() == list(SUITES) and completing.protocols() == list(PROTOCOLS)
    assert completing.kinds() == list(KINDS)


@pytest.mark.parametrize("name", app.find_commands())
def test_every_parameter_that_is_named_after_names_completes_them(name):
    for each in app._application([name]).registered_commands:
        for parameter in inspect.signature(each.callback).parameters.values():
            if parameter.name in ("task", "tasks", "models", "protocol", "suite", "run", "resume"):
                known = completing.with_completion([parameter])[0]
                assert known.annotation.__metadata__[0].autocompletion is not None


@pytest.mark.parametrize(
    ("shell", "line", "told"),
    [
        ("zsh", "statetrack train --task parit", "_arguments '*: :((\"parity\"))'"),
        ("zsh", "statetrack train --out x", "_files"),
        ("fish", "statetrack train --task parit", "parity"),
        ("fish", "statetrack train --task flip-flop-d", "flip-flop-dense"),
    ],
)
def test_zsh_and_fish_are_answered_in_their_own_way(capsys, monkeypatch, shell, line, told):
    monkeypatch.delenv("COMP_WORDS", raising=False)
    monkeypatch.setenv("_STATETRACK_COMPLETE", f"complete_{shell}")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", line)
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    assert app.run([]) == 0
    assert capsys.readouterr().out.strip() == told


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_line_that_installs_it_prints_a_script(capsys, monkeypatch, shell):
    monkeypatch.setenv("_STATETRACK_COMPLETE", f"source_{shell}")
    assert app.run([]) == 0
    assert f"_STATETRACK_COMPLETE=complete_{shell}" in capsys.readouterr().out


def test_names_are_found_without_torch_and_without_numpy():
    code = (
        "import sys; from statetrack.cli import _completion as c; "
        "names = [f('') for f in (c.models, c.tasks, c.suites, c.protocols, c.kinds, c.runs, "
        "c.lists)]; from statetrack.cli.app import run; assert run([]) == 0; "
        "print('imported:', *{'torch', 'numpy'} & set(sys.modules))"
    )
    asked = {"_STATETRACK_COMPLETE": "complete_bash", "COMP_WORDS": "statetrack\ntrain\n--task\ns3"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | asked | {"COMP_CWORD": "3"},
    )
    assert done.stdout.split() == ["s3", "s3-cascade", "s3-two-tokens", "imported:"]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_itself_completes_with_the_script(tmp_path):
    program = tmp_path / "statetrack"
    call = "from statetrack.cli.app import main; main()"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{call}" "$@"\n')
    program.chmod(0o755)
    script = (
        'source /dev/stdin <<< "$(_STATETRACK_COMPLETE=source_bash statetrack)"\n'
        "COMP_WORDS=(statetrack predict quat); COMP_CWORD=2\n"
        '_statetrack_completion statetrack\necho "${COMPREPLY[@]}"\n'
    )
    done = subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"},
    )
    assert done.stdout.split() == ["quaternion"]
