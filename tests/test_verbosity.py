"""`--quiet` and `--verbose`: the same on every command, and never on standard output."""

import io
import json
import logging
import os
import re
import sys
import time
import types
import warnings

import pytest

from statetrack.cli import _terminal as terminal
from statetrack.cli import app
from statetrack.errors import SettingsError, StatetrackWarning


@pytest.fixture
def command(monkeypatch):
    """Installs a function as the command `dial`."""

    def install(action):
        def dial() -> None:
            """Turn the dial."""
            action()

        module = types.ModuleType("statetrack.cli.dial")
        module.build = lambda argv: dial
        monkeypatch.setitem(sys.modules, "statetrack.cli.dial", module)
        known = {"dial": app.Command("dial", "statetrack.cli.dial", "Turn the dial.", 1)}
        monkeypatch.setattr(app, "find_command", known.get)

    return install


@pytest.mark.parametrize("words", ["dial -q", "-q dial", "dial --quiet"])
def test_quiet_leaves_out_notes_and_bars(command, capsys, words):
    bars = []
    command(lambda: (terminal.note("a note"), bars.append(terminal.progress_bar([1]).disable)))
    assert app.run(words.split()) == 0
    assert capsys.readouterr().err == "" and bars == [True]
    assert app.run(["dial"]) == 0
    assert "a note" in capsys.readouterr().err
    assert not terminal.is_quiet(), "a command line leaves no level behind"


def test_quiet_searches_without_a_line(monkeypatch, capsys):
    monkeypatch.setattr(terminal, "BETWEEN_LINES", 0.0)
    for level, lines in ((logging.INFO, 1), (logging.WARNING, 0)):
        with terminal.saying(level), terminal.searching("replica 0", 9.0) as budget:
            budget.say("reading words")
        assert capsys.readouterr().err.count("\n") == lines


def test_a_sweep_says_nothing_of_its_progress_where_it_is_quiet(monkeypatch, capsys):
    from statetrack.cli import _sweeping

    monkeypatch.setattr(_sweeping, "LOOK", 0.001)
    for level, told in ((logging.INFO, True), (logging.WARNING, False)):
        with terminal.saying(level), _sweeping.following([], lambda: True):
            time.sleep(0.05)
        assert ("stopping" in capsys.readouterr().err) is told


def test_verbose_tells_versions_files_and_times(command, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.txt").write_text("x")

    def act():
        open("in.txt").close()
        open("in.txt").close()
        with open("out.txt", "w") as file:
            file.write("y")
        with open("beside.tmp", "w") as file:
            file.write("y")
        os.replace("beside.tmp", "kept.txt")
        os.mkdir(".new")
        (tmp_path / ".new" / "table.csv").write_text("z")
        os.replace(".new", "new")

    command(act)
    assert app.run(["dial", "-v"]) == 0
    told = capsys.readouterr().err
    lines = [line.partition("] ")[2] for line in told.splitlines()]
    assert lines[0].startswith("statetrack ") and ", Python 3." in lines[0]
    assert lines[1:5] == [
        "read in.txt",
        "wrote kept.txt",
        "wrote new/table.csv",
        "wrote out.txt",
    ]
    assert lines[-1].startswith("CPU time ") and lines[-1].endswith(" MiB")
    assert all(line.startswith("[") and " s] " in line for line in told.splitlines())
    command(lambda: open("in.txt").close())
    assert app.run(["dial"]) == 0
    assert capsys.readouterr().err == ""


def test_verbose_shows_the_traceback_of_an_internal_error_and_of_no_other(command, capsys):
    command(lambda: 1 // 0)
    assert app.run(["dial", "-v"]) == 1
    told = capsys.readouterr().err
    assert "Traceback (most recent call last)" in told and "ZeroDivisionError" in told
    assert app.run(["dial", "--verbose", "--nothing"]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_quiet_and_verbose_together_are_refused(command, capsys):
    command(lambda: None)
    assert app.run(["dial", "-q", "--verbose"]) == 1
    assert "error: --quiet and --verbose: choose one\n" in capsys.readouterr().err


@pytest.mark.parametrize("words", ["list suites --json", "show parity --json", "cite mamba2"])
def test_standard_output_is_the_same_at_every_level(capsys, words):
    outputs = set()
    for level in ([], ["-q"], ["-v"]):
        assert app.run([*words.split(), *level]) == 0
        outputs.add(capsys.readouterr().out)
    assert len(outputs) == 1
    if "--json" in words:
        json.loads(outputs.pop())


@pytest.mark.parametrize("name", app.find_commands())
def test_every_command_takes_both(capsys, name):
    assert app.run([name, "--help"]) == 0
    page = capsys.readouterr().out
    assert "-q, --quiet" in page and "-v, --verbose" in page


def test_a_warning_of_several_runs_is_one_line_that_counts_them(command, capsys):
    def act():
        for number in range(20):
            terminal.warn(f"0.{number} is low", f"runs/{number}", "accuracy is low")
            warnings.warn(StatetrackWarning("its plugin changed", f"runs/{number}"), stacklevel=1)
        for _ in range(4):
            terminal.warn("no locks here")
        for _ in range(2):  # of a file that was read twice
            terminal.warn("0.9 is low", "runs/a", "other")
            warnings.warn(StatetrackWarning("its plugin changed", "runs/3"), stacklevel=1)

    command(act)
    assert app.run(["dial"]) == 0
    assert capsys.readouterr().err.splitlines() == [
        "warning: accuracy is low (x20: runs/0, runs/1, runs/2, ...)",
        "warning: its plugin changed (x20: runs/0, runs/1, runs/2, ...)",
        "warning: no locks here (x4)",
        "warning: runs/a: 0.9 is low",
    ]


def test_warnings_stand_before_the_error_that_ends_a_command(command, capsys):
    def act():
        terminal.warn("half of it")
        raise SettingsError("the other half")

    command(act)
    assert app.run(["dial"]) == 1
    assert capsys.readouterr().err.splitlines() == ["warning: half of it", "error: the other half"]


def test_a_terminal_has_one_line_of_progress_that_is_never_wider_and_goes_away(monkeypatch):
    class Screen(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("TERM", "xterm")
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    with terminal.status("training a-model-of-a-long-name on a-task-of-one-too") as shown:
        shown.say("10 of 600 steps, 0:41 left, accuracy 0.32, loss 8.0e-01")
        time.sleep(0.6)
    drawn = re.sub(r"\x1b\[[0-9?;]*[A-Za-z]", "\n", screen.getvalue()).replace("\r", "\n")
    lines = [line for line in drawn.split("\n") if line.strip()]
    assert len(lines) <= 4, "twice a second, and no more"
    assert all(line.startswith("training a-model") and len(line) < 60 for line in lines)
    assert any(line.endswith("…") for line in lines)
    assert screen.getvalue().rstrip("\n").endswith("\x1b[2K")


def test_a_warning_on_a_terminal_is_broken_between_words(monkeypatch):
    class Screen(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setenv("COLUMNS", "40")
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    terminal.warn("words of the training lengths do not identify the machine")
    terminal.say_warnings()
    lines = screen.getvalue().splitlines()
    assert len(lines) == 2 and lines[1].startswith("  ") and max(map(len, lines)) <= 40
    assert " ".join(" ".join(lines).split()).endswith("do not identify the machine")
