"""Exact weights of a plugin's models: parameters solved for, and constructions of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import statetrack as st
from statetrack.cli.app import run as command
from statetrack.constructions import NotBuilt
from statetrack.constructions.solving import solved
from statetrack.errors import BuildError
from statetrack.models import LinearModel, RecurrentModel
from tests.claims.running import follow
from tests.new_process import forget_plugins
from tests.pages import on_the_page
from tests.setups import all_constructions

PAGE = "exact-weights.md"

TURN_AND_GAIN = '''
import torch
from statetrack import MODELS, LinearModel, LinearSettings
from statetrack.algebra import Diagonal, Size
from statetrack.errors import SettingsError
from statetrack.ops import BlockOperators


class TurnAndGainSettings(LinearSettings):
    @property
    def recurrence(self):
        return Diagonal(gains="complex", size=Size("hidden", self.hidden), additive=self.additive)


@MODELS.register("turn-and-gain")
class TurnAndGain(LinearModel):
    """A rotation of every plane times a gain in (0, 1)."""

    settings_class = TurnAndGainSettings
    source = "own example"

    def __init__(self, settings, *, num_symbols, num_labels):
        if settings.hidden % 2:
            raise SettingsError("hidden is odd")
        super().__init__(settings, num_symbols=num_symbols, num_labels=num_labels)
        planes = self.embedding.num_rows, settings.hidden // 2
        self.angles = self.embedding.parameter(torch.randn(planes))
        self.gains = self.embedding.parameter(torch.randn(planes))

    def operators(self):
        angles, gains = self.embedding(self.angles), self.embedding(self.gains).sigmoid()
        cos, sin = gains * angles.cos(), gains * angles.sin()
        return BlockOperators(torch.stack([cos, -sin, sin, cos], -1).unflatten(-1, (2, 2)))
'''

SIGN_GATES = '''
import torch
from torch import nn
from statetrack import MODELS, option
from statetrack.algebra import SignedLayers, Size
from statetrack.models import BlockModel, BlockSettings, LinearMixer
from statetrack.ops import DiagonalOperators


class SignGatesSettings(BlockSettings):
    state: int = option(3, "Numbers of a layer's state.", min=1)
    window: bool = option(False, "Whether a layer keeps its last input as well.")

    @property
    def recurrence(self):
        return SignedLayers(layers=Size("layers", self.layers))


class SignGatesMixer(LinearMixer):
    """h_t = tanh(W x_t) * h_{t-1} + V x_t."""

    def __init__(self, settings):
        super().__init__()
        self.window = settings.window
        self.gains = nn.Linear(settings.width, settings.state)
        self.values = nn.Linear(settings.width, settings.state)
        self.output = nn.Linear(settings.state, settings.width)

    def initial_state(self, num_words):
        first = self.gains.bias.new_zeros(num_words, len(self.gains.bias))
        return (first, self.gains.weight.new_zeros(num_words, self.gains.in_features), first)[
            : 2 if self.window else 1
        ]

    def scan(self, inputs, state):
        gains, values = self.gains(inputs).tanh(), self.values(inputs)
        (here, *rest), states = state, []
        for gain, value in zip(gains.unbind(1), values.unbind(1)):
            here = gain * here + value
            states.append(here)
        return self.output(torch.stack(states, 1)), (here, *rest)

    def recurrent_part(self, state):
        return state[0]

    def with_recurrent_part(self, state, part):
        return (part, *state[1:])

    def transition(self, inputs, state=None):
        return DiagonalOperators(self.gains(inputs).tanh().flatten(0, 1))


@MODELS.register("sign-gates")
class SignGates(BlockModel):
    """Residual blocks of gains in (-1, 1)."""

    settings_class = SignGatesSettings
    mixer_class = SignGatesMixer
    source = "own example"
'''


@pytest.fixture(scope="module")
def plugins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder of plugins, all of them loaded, until the tests of this module end."""
    folder = tmp_path_factory.mktemp("plugins")
    for name, text in (
        ("two_reflections", on_the_page("two_reflections.py", PAGE)),
        ("clock", on_the_page("clock.py", PAGE)),
        ("turn_and_gain", TURN_AND_GAIN),
        ("sign_gates", SIGN_GATES),
    ):
        (folder / f"{name}.py").write_text(text)
        st.load_plugin(folder / f"{name}.py")
    yield folder
    forget_plugins()


SOLVED: list[tuple[str, str, dict[str, Any]]] = [
    ("s3", "two-reflections", {}),
    ("s4", "two-reflections", {}),
    ("s3", "two-reflections", {"hidden": 5, "readout_bias": True, "first": "fixed"}),
    ("s3", "two-reflections", {"additive": "input"}),
    ("parity", "two-reflections", {"additive": "constant", "embed_dim": 3}),
    ("modular-addition", "turn-and-gain", {}),
    ("register", "turn-and-gain", {"additive": "input"}),
    ("parity", "sign-gates", {}),
    ("register", "sign-gates", {"layers": 2}),
]


@pytest.mark.parametrize(("task", "model", "options"), SOLVED)
def test_parameters_of_a_plugin_are_solved_for_and_follow_the_task(
    task: str, model: str, options: dict[str, Any], plugins: Path
) -> None:
    built = st.build(task, model, dtype="float64", **options)
    assert isinstance(built.model, RecurrentModel)
    assert follow(built.model, st.load_task(task).automaton, 1000, num_words=3).exact
    for name, value in options.items():
        assert getattr(built.settings, name) == value


def test_solved_operators_move_points_as_symbols_move_states(plugins: Path) -> None:
    automaton = st.load_task("s3").automaton
    built = st.build("s3", "two-reflections", dtype="float64")
    model = built.model
    assert isinstance(model, LinearModel)
    points: dict[int, torch.Tensor] = {automaton.start: model.first.detach()}
    states = [automaton.start]
    for state in states:
        for symbol, matrix in enumerate(model.operators().dense().detach()):
            target = int(automaton.delta[state, symbol])
            moved = matrix @ points[state]
            if target not in points:
                points[target] = moved
                states.append(target)
            assert (moved - points[target]).abs().max() < 1e-8
    assert len(points) == automaton.num_states


@pytest.mark.parametrize(
    ("task", "model", "options", "said"),
    [
        (
            "turnstile",
            "two-reflections",
            {},
            r"from 12 starts, and the wanted operators are missed",
        ),
        ("s3", "two-reflections", {"hidden": 2}, r"the wanted operators are missed by [1-9]"),
        ("s3", "two-reflections", {"integers": True}, "what is solved for are real numbers"),
        ("parity", "sign-gates", {"window": True}, "keep more than the recurrent state"),
        ("s3", "clock", {}, "not known to be possible"),
    ],
)
def test_what_is_not_solved_for_is_refused_in_one_line_with_the_residual(
    task: str, model: str, options: dict[str, Any], said: str, plugins: Path
) -> None:
    with pytest.raises(BuildError, match=said) as refused:
        st.build(task, model, **options)
    assert "\n" not in str(refused.value)


def test_a_plugin_registers_a_construction_of_its_own(
    plugins: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert any(each.name == "hours" for _, each in all_constructions())
    built = st.build("modular-addition:m=7", "clock")
    assert built.construction.equation.startswith("h_t = h_{t-1} + a(x_t)")
    assert isinstance(built.model, RecurrentModel)
    automaton = st.load_task("modular-addition:m=7").automaton
    assert follow(built.model.double(), automaton, 300, num_words=3).exact
    plugin = ["--plugin", str(plugins / "clock.py")]
    line = ["build", "cyclic:n=6", "--model", "clock", "--out", str(tmp_path / "run")]
    assert command([*line, *plugin]) == 0
    assert command(["eval", str(tmp_path / "run"), "--length", "40", *plugin]) == 0
    assert "every answer correct" in "".join(capsys.readouterr())


def test_only_rows_of_symbols_that_are_missed_are_drawn_anew() -> None:
    """x^2 = 1 has two solutions; x^3 - 3 x + 4 has no slope at 1, where its square is least around.

    From 2 the first row comes to 1, and the second stays; the next start is for the second alone.
    """

    def residuals(numbers: dict[str, torch.Tensor]) -> torch.Tensor:
        first, second = numbers["x"]
        return torch.stack([first**2 - 1, second**3 - 3 * second + 4])

    starts = [{"x": torch.tensor([[2.0], [1.0]])}, {"x": torch.tensor([[-5.0], [-5.0]])}]
    found = solved(residuals, iter(starts), "squares")
    assert found["x"].flatten().tolist() == pytest.approx([1, -2.1958233454])
    with pytest.raises(NotBuilt, match=r"from 1 starts, and squares are missed by 2\.0e\+00"):
        solved(residuals, starts[:1], "squares")
