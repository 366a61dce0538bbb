"""Command lines: every command, with options found in the program and values that are not meant.

Nothing here says which options there are. What would take long because it was asked for is left
out: training takes one step, and sizes are either small or beyond anything that can be meant.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random

import torch
from typer.main import get_command

import statetrack
from statetrack.cli import app
from statetrack.models import MODELS
from statetrack.ops import native
from statetrack.sources import KINDS
from statetrack.spec import TASKS
from tests.fuzz import mutations
from tests.fuzz.harness import (
    Case,
    output_since_last,
    require,
    require_printable,
)

ERROR = re.compile(r"^(error:|╭─ Error)", re.MULTILINE)
"""The line of an error: of `statetrack` itself, or of a command line that cannot be parsed."""
ALLOWED_CODES = (0, app.FAILED, app.MISUSED)

HOSTILE_NUMBERS = (
    *("0", "-1", "1", "2", "-0", "+1", "1.0", "1.5", "1e3", "nan", "inf", "-inf", "1e400"),
    *("", " ", "x", "٣", "\uff11", "²", "1_0", "0x1", "1,1", "1,", ",", "1 1", "01", "5e-324"),
    *("18446744073709551616", "99999999999999999999999999", "-9223372036854775809", "9" * 5000),
)
"""Numbers that are small, impossible, or written in a way that may be misread."""

PLACES = (
    *("runs/finished", "runs/unfinished", "runs", "data", "data/parquet", "task.yaml"),
    *("suite.yaml", "empty", "folder", "plugin.py", "mine.py", "missing", "a/b/c", ".", ".."),
    *(
        "/dev/null",
        "/dev/full",
        "loop",
        "fifo.yaml",
        "folder.yaml",
        "task.yaml/x",
        "new",
        "nul\x01",
    ),
    *("new.svg", "new.png", "new.pdf", "new.md", "x" * 300, "runs/finished/config.yaml", "~", "-"),
)

LONG_ONLY: Mapping[str, Sequence[str]] = {
    "reproduce": ("suite.yaml", "suite.yaml", "missing", "empty", "folder.yaml", ""),
    "predict": ("parity", "s3", "parity", "task.yaml", "missing", "fifo.yaml", "", "cyclic:n=0"),
}
"""Commands that take long without an argument or with a large one, and what they get instead."""


@dataclass(frozen=True)
class Known:
    """What a command takes: options with a value, switches, and whether it has arguments."""

    options: Mapping[str, str] = field(default_factory=dict)
    """What the help shows for the value of each option: `FILE`, `integer`, `every|last`."""
    switches: Sequence[str] = ()
    takes_arguments: bool = False


@cache
def discover(command: str, words: tuple[str, ...] = ()) -> Known:
    """What the program itself says that a command takes."""
    made = get_command(app._application([command, *words]))
    options, switches, arguments = {}, [], False
    for parameter in (
        made.params if not hasattr(made, "commands") else made.commands[command].params
    ):
        if parameter.param_type_name == "argument":
            arguments = True
        elif getattr(parameter, "is_flag", False):
            switches += [*parameter.opts, *parameter.secondary_opts]
        else:
            options |= dict.fromkeys(parameter.opts, str(parameter.metavar))
    return Known(options, switches, arguments)


class CommandLines:
    """A command line in a folder with runs, datasets and files to name."""

    name = "command-lines"

    def prepare(self, folder: Path) -> None:
        """Make what the command lines can name, and find the commands."""
        from tests.fuzz.datasets import Datasets
        from tests.fuzz.run_folders import SUITE, make_runs

        import_all()
        self.folder = folder / "work"
        make_runs(self.folder / "runs")
        for name in ("plugin", "cell"):
            shutil.rmtree(self.folder / "runs" / name)
        Datasets().prepare(self.folder / "data")
        for name in ("npz", "csv"):
            shutil.rmtree(self.folder / "data" / name)
        (self.folder / "folder.yaml").mkdir()
        (self.folder / "folder").mkdir()
        (self.folder / "empty").touch()
        (self.folder / "suite.yaml").write_text(mutations.as_json(SUITE))
        shutil.copyfile(self.folder / "runs" / "finished" / "task.yaml", self.folder / "task.yaml")
        (self.folder / "mine.py").write_text("import statetrack\n")
        (self.folder / "plugin.py").write_text("raise ValueError('no')\n")
        self.commands = sorted(app.find_commands())
        self.known = {name: discover(name) for name in self.commands}
        self.models, self.tasks = list(MODELS), list(TASKS)

    def attempt(self, case: Case) -> None:
        """Run one command line."""
        shutil.copytree(self.folder, ".", dirs_exist_ok=True)
        Path("loop").symlink_to("loop")
        os.mkfifo("fifo.yaml")
        run_command(case, self._line(case.random))

    def _line(self, random: Random) -> list[str]:
        if random.random() < 0.04:
            return [mutations.text(random) for _ in range(random.randrange(4))]
        command = random.choice(self.commands)
        known, words = self.known[command], [command]
        if command == "train":
            model = random.choice(self.models)
            words += ["--model", model]
            known = discover(command, ("--model", model))
        if known.takes_arguments:
            fewest = int(command in LONG_ONLY)
            for _ in range(random.choice([fewest, 1, 1, 1, 1, 2])):
                words.append(self._argument(random, command))
        for _ in range(random.choice([0, 0, 1, 1, 2, 4])):
            words += self._option(random, known)
        # what is asked to look through a whole disk, or to write outside, does so
        words = [word for word in words if word.rpartition("=")[2] not in {"/", ".."}]
        if any(word.startswith("--plot") for word in words):  # large ones take longer than a case
            words = [each for each in words if each not in self.tasks] + ["s3"]
        if random.random() < 0.1:
            words.insert(random.randrange(len(words) + 1), mutations.text(random))
        return [word.replace("\0", "") for word in (*words, *self._small(command, words, random))]

    def _argument(self, random: Random, command: str) -> str:
        if command in LONG_ONLY:
            return random.choice(LONG_ONLY[command])
        draw = random.random()
        if draw < 0.35:
            return random.choice(PLACES)
        if draw < 0.6:
            return random.choice(
                ["parity", "s3", "cyclic:n=3", "models", "tasks", "runs", "suites"]
            )
        if draw < 0.7:
            return random.choice([*self.tasks, *self.models])
        return mutations.text(random)

    def _option(self, random: Random, known: Known) -> list[str]:
        draw = random.random()
        if draw < 0.06 or not known.options:
            return [random.choice(["--nonsense", "-x", "--", "-", "--no-such=3", "--=", "--ab=="])]
        if draw < 0.2 and known.switches:
            return [random.choice(known.switches)]
        name = random.choice(list(known.options))
        value = self._value(random, known.options[name])
        if draw < 0.25:
            return [name]
        return [f"{name}={value}"] if draw < 0.5 else [name, value]

    def _value(self, random: Random, shown: str) -> str:
        """A value for an option whose help shows this for it."""
        draw = random.random()
        if shown.partition(".")[0] in {"FILE", "FOLDER", "RUN"}:
            return random.choice(PLACES) if draw < 0.8 else mutations.text(random)
        if "|" in shown and draw < 0.5:
            return random.choice(shown.split("|"))
        if draw < 0.6:
            return random.choice(HOSTILE_NUMBERS if draw < 0.45 else ("1", "2", "3"))
        if draw < 0.75:
            return random.choice([*self.tasks[:5], "parity", "mine.py", "last", "every", "csv"])
        return random.choice(PLACES) if draw < 0.85 else mutations.text(random)

    def _small(self, command: str, words: Sequence[str], random: Random) -> list[str]:
        """Options that keep what is asked for small; the last one given counts."""
        given = {word.partition("=")[0] for word in words}
        small = {
            "train": {"--steps": "1", "--batch-size": "2", "--validation-words": "2"},
            "eval": {"--samples": "2", "--length": "3"},
            "gen": {"--samples": "5", "--test-samples": "2", "--test-length": "12"},
            "audit": {"--samples": "5", "--train-samples": "5", "--length": "4"},
            "reproduce": {"--jobs": "1"},
            "predict": {"--models": "lstm"},
        }.get(command, {})
        always = {"--steps", "--jobs", "--models"}
        return [
            word
            for name, value in small.items()
            if name in always or name not in given
            for word in (name, value)
            if "--resume" not in given
        ]


def import_all() -> None:
    """Import every module and load every task and model once, before processes are forked."""
    importlib.import_module("matplotlib.font_manager")  # starts a process to find fonts
    no_loops = native.why_not(torch.device("cpu")) is not None
    for module in pkgutil.walk_packages(statetrack.__path__, "statetrack."):
        if no_loops and module.name.startswith("statetrack.ops.loops."):
            continue
        if not module.name.endswith("__main__") and ".standalone." not in module.name:  # programs
            importlib.import_module(module.name)
    for registry in (TASKS, MODELS, KINDS):
        for name in registry:
            assert registry[name] is not None


def run_command(case: Case, words: Sequence[str]) -> None:
    """Run a command line in this process, and check its exit code and what it printed."""
    case.note(f"statetrack {words!r}")
    output_since_last()
    code = app.run(list(words))
    out, err = output_since_last()
    case.note(f"exit code {code}; stderr: {err[:400]!r}")
    require("internal error" not in err, f"an internal error: {_internal(err)}")
    require("Traceback" not in err, f"a traceback is printed: {err[-1500:]}")
    require(code in ALLOWED_CODES, f"an exit code of {code}: {words!r}")
    require(len(ERROR.findall(err)) <= 1, f"several errors are printed: {err[:1000]}")
    if not words:
        require(code == app.MISUSED and bool(out), "no words at all, and no help")
    elif code == 0:
        require("error:" not in err, f"an error is printed, and the exit code is 0: {err[:1000]}")
    elif "check" not in words:
        require(bool(ERROR.search(err)), f"exit code {code} without an error: {err[:500]!r}")
        case.refused.append(err)
    require_printable(out, "standard output")
    require_printable(err, "standard error")


def _internal(err: str) -> str:
    """The error behind an internal error."""
    found = re.search(r"internal error of statetrack: (.{0,300})", err, re.DOTALL)
    return found[1] if found else err[:300]
