"""Everything that can be added is added here from outside: nothing of the package is edited.

A model and a kind stand in the tests of plugins and of sources; here a loss, an optimiser, a
linear operator and a command.
"""

from __future__ import annotations

import importlib.metadata
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
import torch

import statetrack as st
from statetrack.cli import app
from statetrack.errors import SettingsError
from statetrack.plugins import load_plugin
from statetrack.runs import Run
from statetrack.training import LOSSES, loss_kind
from tests.faults.processes import run_in_child
from tests.new_process import forget_plugins

PLUGIN = '''
"""A loss, an optimiser, and a model with an operator of its own."""

from dataclasses import dataclass

import torch
from torch import Tensor

from statetrack import LOSSES, MODELS, OPTIMISERS, LinearModel, LinearSettings
from statetrack.ops.operators import Operators
from statetrack.training.optimisers import OptimiserKind


@LOSSES.register("absolute-error")
def absolute_error(settings):
    """|z - one-hot| summed over labels."""

    def loss(logits, labels):
        targets = torch.nn.functional.one_hot(labels, logits.shape[-1])
        return (logits - targets).abs().sum(-1)

    return loss


@OPTIMISERS.register("sign-descent")
class SignDescent(OptimiserKind):
    """Steps of one size along the signs of the gradient."""

    @staticmethod
    def make(groups, settings):
        return Signs(groups)


class Signs(torch.optim.Optimizer):
    def __init__(self, groups):
        super().__init__(groups, {"lr": 1e-3})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    parameter.sub_(group["lr"] * parameter.grad.sign())


@dataclass(frozen=True)
class ShiftOperators(Operators):
    """A(x) h = h rolled by x coordinates, then scaled by a gain [V]."""

    gains: Tensor
    shifts: Tensor
    width: int

    def apply(self, symbols, states):
        places = torch.arange(self.width) - self.shifts[symbols].unsqueeze(-1)
        return self.gains[symbols].unsqueeze(-1) * states.gather(-1, places % self.width)

    def select(self, symbols):
        return ShiftOperators(self.gains[symbols], self.shifts[symbols], self.width)

    def dense(self):
        eye = torch.eye(self.width)
        rolled = [torch.roll(eye, int(shift), 0) for shift in self.shifts]
        return self.gains[:, None, None] * torch.stack(rolled)


@MODELS.register("shift")
class Shift(LinearModel):
    """Every symbol rolls the state by its own number of places."""

    settings_class = LinearSettings
    source = "own"

    def __init__(self, settings, *, num_symbols, num_labels):
        super().__init__(settings, num_symbols=num_symbols, num_labels=num_labels)
        self.gains = torch.nn.Parameter(torch.ones(num_symbols))
        self.register_buffer("shifts", torch.arange(num_symbols))
        self.width = settings.hidden

    def operators(self):
        return ShiftOperators(self.gains, self.shifts, self.width)
'''


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(PLUGIN)
    return path


def test_a_loss_an_optimiser_and_an_operator_come_from_one_file_and_stay_with_the_run(
    plugin: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", "--plugin", str(plugin), "--model", "shift", "--hidden", "6"]
    words += ["--task", "cyclic:n=3", "--loss", "absolute-error", "--optimizer", "sign-descent"]
    words += ["--steps", "40", "--seeds", "2", "--lrs", "0.01", "--out", str(tmp_path / "run")]
    assert app.run(words) == 0
    run = Run.open(tmp_path / "run")  # whose names are registered
    assert run.experiment.training.loss == "absolute-error"
    assert run.folder.plugins == [tmp_path / "run" / "plugin.py"]
    first, *_, last = [record.loss for record in run.records if record.replica == 0]
    assert last < first
    dense = run.model().operators().dense()
    symbols, state = torch.tensor([0, 2, 1]), torch.randn(3, 6)
    expected = torch.einsum("bij,bj->bi", dense[symbols], state)
    torch.testing.assert_close(run.model().operators().apply(symbols, state), expected)


def test_label_smoothing_is_that_of_losses_which_say_that_they_use_it(
    plugin: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = "label_smoothing=0.2: the loss is absolute-error, which has none: add loss='smoothed"
    given: dict[str, Any] = {"loss": "absolute-error", "label_smoothing": 0.2, "steps": 1}
    words = ["train", "--plugin", str(plugin), "--task", "parity", "--loss", "absolute-error"]
    assert app.run([*words, "--label-smoothing", "0.2"]) == 1
    assert "--label-smoothing 0.2: the loss is absolute-error, wh" in capsys.readouterr().err
    with pytest.raises(SettingsError, match=said):
        st.fit(torch.nn.Embedding(2, 2), "parity", **given)
    loss_kind(uses=["label_smoothing"])(LOSSES["absolute-error"])
    assert st.fit(torch.nn.Embedding(2, 2), "parity", **given).steps == 1


def test_losses_and_optimisers_of_a_plugin_are_listed_and_wrong_names_refused(
    plugin: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    load_plugin(str(plugin))  # a path or its text
    assert app.run(["train", "--loss", "absolut-error"]) == 2
    assert "Did you mean 'absolute-error'?" in capsys.readouterr().err
    assert app.run(["train", "--optimizer", "sign-descent", "--beta1", "0.5"]) == 1
    assert "sign-descent has no such setting" in capsys.readouterr().err


WRONG = """
import torch

from statetrack import MODELS, LinearModel, LinearSettings
from statetrack.ops.operators import DenseOperators


@MODELS.register("oblong")
class Oblong(LinearModel):
    'Operators that are not square.'

    settings_class = LinearSettings
    source = "own"

    def __init__(self, settings, *, num_symbols, num_labels):
        super().__init__(settings, num_symbols=num_symbols, num_labels=num_labels)
        self.weight = torch.nn.Parameter(torch.ones(num_symbols, settings.hidden, 3))

    def operators(self):
        return DenseOperators(self.weight)
"""


def test_a_model_of_a_plugin_with_a_wrong_shape_is_named_with_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("oblong.py").write_text(WRONG)
    words = "train --plugin oblong.py --model oblong --task parity --hidden 4 --steps 1"
    assert app.run(words.split()) == 1
    said = capsys.readouterr().err
    assert "error: oblong.py, class Oblong: " in said and "`statetrack check oblong.py`" in said
    assert "internal error" not in said


CLASHING = """
import torch

from statetrack import MODELS, ModelSettings, RecurrentModel, option
from statetrack.algebra import Saturating, Size


class ClashingSettings(ModelSettings):
    hidden: int = option(4, "Width.", min=1)
    inner: int = option(2, "Inner steps.", min=1)

    @property
    def recurrence(self):
        return Saturating(units=Size("hidden", self.hidden))


@MODELS.register("clashing")
class Clashing(RecurrentModel):
    'A network.'

    settings_class = ClashingSettings

    def __init__(self, settings, *, num_symbols, num_labels):
        super().__init__(settings, num_symbols=num_symbols, num_labels=num_labels)
        self.cell = torch.nn.Embedding(num_symbols, settings.hidden)
        self.readout = torch.nn.Linear(settings.hidden, num_labels)

    def initial_state(self, num_words):
        return self.readout.weight.new_zeros(num_words, self.readout.in_features)

    def step(self, symbols, state):
        state = torch.tanh(self.cell(symbols) - state)
        return self.readout(state), state
"""


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("inner", "steps", "ClashingSettings has a setting 'steps', and one of that name belongs"),
        ('Size("hidden", self.hidden)', "self.hidden", "Saturating(units=4): the setting that"),
        ("tanh(", "tanhh(", "mine.py, line 32: AttributeError: module 'torch' has no"),
        ("state = torch", "state = state / 0 + torch", "are not finite"),
    ],
)
def test_what_check_passes_works_in_commands_and_what_it_refuses_they_refuse(
    before: str,
    after: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    assert before in CLASHING
    for text, code in ((CLASHING, 0), (CLASHING.replace(before, after), 1)):
        Path("mine.py").write_text(text)
        assert app.run(["check", "mine.py"]) == code
        told = " ".join(capsys.readouterr().out.split())
        if code == 0:
            assert "train, eval, predict and report work yes" in told
        else:
            assert said in told
            words = "train --plugin mine.py --model clashing --task parity --steps 1 --out none"
            assert app.run(words.split()) == 1
            assert said in (line := capsys.readouterr().err) and "internal" not in line
            assert not Path("none").exists()
        forget_plugins()


LOSS = """
from helper import SCALE
from statetrack import LOSSES


@LOSSES.register("scaled-error")
def scaled_error(settings):
    return lambda logits, labels: SCALE * LOSSES["squared-error"](settings)(logits, labels)
"""


def test_a_run_keeps_all_files_that_it_needs_of_plugins(plugin: Path, tmp_path: Path) -> None:
    losses = tmp_path / "losses"
    losses.mkdir()
    (losses / "helper.py").write_text("SCALE = 2.0")
    (losses / "scaled.py").write_text(LOSS)
    words = ["train", "--plugin", str(plugin), "--plugin", str(losses / "scaled.py")]
    words += ["--model", "shift", "--hidden", "4", "--task", "parity", "--loss", "scaled-error"]
    run = tmp_path / "run"
    assert app.run([*words, "--steps", "4", "--out", str(run)]) == 0
    copies = {"plugin.py": plugin, "plugin_2.py": losses / "scaled.py"}
    copies["helper.py"] = losses / "helper.py"
    for name, original in copies.items():
        assert (run / name).read_text() == original.read_text()
        original.unlink()
    assert {path.name for path in run.glob("*.py")} == set(copies)

    def opened() -> None:
        forget_plugins()
        print(Run.open(run, trust_plugin=True).evaluate([12]).at(12))

    assert "accuracy" in (ended := run_in_child(opened)).output and not ended.code, ended.output


COMMAND = '''
"""Say hello."""

PLACE = 2.5


def build(argv):
    def hello(name: str = "you") -> None:
        """Say hello to somebody."""
        print(f"hello, {name}")

    return hello
'''


def test_a_command_comes_from_an_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "hello_command.py").write_text(textwrap.dedent(COMMAND))
    monkeypatch.syspath_prepend(tmp_path)
    entry = importlib.metadata.EntryPoint("hello", "hello_command", "statetrack.commands")
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [entry])
    names = list(app.find_commands())
    assert names[names.index("hello") - 1] == "train"
    assert app.run(["--help"]) == 0
    assert "Say hello." in capsys.readouterr().out
    assert app.run(["hello", "--name", "world"]) == 0
    assert capsys.readouterr().out == "hello, world\n"
    sys.modules.pop("hello_command")


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("train", "hello_command"),
        ("hello", "no_such_module"),
        ("hello", "no.such.module"),
        ("hello", "empty"),
    ],
)
def test_a_command_that_an_entry_point_cannot_give_is_one_line(
    name: str, module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    (tmp_path / "hello_command.py").write_text(textwrap.dedent(COMMAND))
    (tmp_path / "empty.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    entry = importlib.metadata.EntryPoint(name, module, "statetrack.commands")
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [entry])
    assert app.run(["--help"]) == 1
    error = " ".join(capsys.readouterr().err.split())
    assert error.startswith(f"error: the entry point '{name} = {module}' of an installed package")
    assert app.run(["cite"]) == 0  # the command of statetrack itself is found without entry points
