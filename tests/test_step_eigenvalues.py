"""The eigenvalues that steps have are those of the matrices that are applied, and no others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import statetrack as st
from statetrack.cli import app
from statetrack.errors import SettingsError
from statetrack.evidence import RealisedEigenvalues
from statetrack.models import StepEigenvalues, step_eigenvalues, with_random_inputs
from tests.new_process import forget_plugins

DELTA = '''
import torch
from torch import nn

from statetrack import MODELS, ModelSettings, RecurrentModel, option
from statetrack.algebra.recurrences import UndecidedLinear


class DeltaSettings(ModelSettings):
    hidden: int = option(8, "Width.", min=1)

    @property
    def recurrence(self):
        return UndecidedLinear(eigenvalues="CLAIMED")


@MODELS.register("delta-rule")
class DeltaRule(RecurrentModel):
    """h_t = (I - beta k k^T) h_{t-1} + x_t."""

    settings_class = DeltaSettings
    family = "linear"
    source = "own"

    def __init__(self, settings, *, num_symbols, num_labels):
        super().__init__(settings, num_symbols=num_symbols, num_labels=num_labels)
        hidden = settings.hidden
        self.inputs = nn.Embedding(num_symbols, hidden)
        self.keys, self.betas = nn.Linear(hidden, hidden), nn.Linear(hidden, 1)
        self.readout = nn.Linear(hidden, num_labels)

    def initial_state(self, num_words):
        return self.readout.weight.new_zeros(num_words, self.readout.in_features)

    def step(self, symbols, state):
        x = self.inputs(symbols)
        key = nn.functional.normalize(self.keys(x), dim=-1)
        beta = LARGEST * torch.sigmoid(self.betas(x))
        state = state - beta * key * (key * state).sum(-1, keepdim=True) + x
        return self.readout(state), state
'''


@pytest.mark.parametrize(
    ("largest", "claimed", "code", "said"),
    [
        (1, "[-1, 1]", 0, "claimed [-1, 1]: none below 0 was found"),
        (2, "[-1, 1]", 0, "claimed [-1, 1] train,"),
        (2, "[0, 1]", 1, "claimed [0, 1]: some eigenvalues are none of these"),
        (1, "any", 0, "claimed any train,"),
    ],
)
def test_check_shows_a_flag_that_is_ignored(
    largest: int,
    claimed: str,
    code: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "220")
    text = DELTA.replace("LARGEST", str(largest)).replace("CLAIMED", claimed)
    Path("mine.py").write_text(text, encoding="utf-8")
    assert app.run(["check", "mine.py"]) == code
    assert said in " ".join(capsys.readouterr().out.split())
    forget_plugins()


@pytest.mark.parametrize("beta", ["unit", "double"])
def test_those_of_a_delta_rule_are_one_and_one_minus_beta(beta: str) -> None:
    model = st.make_model("deltanet", "s3", layers=1, width=8, heads=2, key_dim=4, beta=beta)
    measured = step_eigenvalues(model, 6)
    assert measured.highest == pytest.approx(1.0, abs=1e-6)
    assert measured.imaginary < 1e-6 and measured.steps == 6
    factor = 2.0 if beta == "double" else 1.0
    assert measured.lowest >= 1 - factor - 1e-6
    assert measured.beyond("[0, 1]") == (measured.lowest < -1e-2)


def test_those_of_matrices_are_those_that_numpy_finds() -> None:
    model = st.make_model("bilinear", "s3", hidden=5)
    values = np.linalg.eigvals(model.operators().dense().detach().double().numpy())
    measured = step_eigenvalues(model, 6)
    assert measured.largest == pytest.approx(np.abs(values).max())
    assert measured.lowest == pytest.approx(values.real.min())
    assert measured.smallest == pytest.approx(np.abs(values).min())


@pytest.mark.parametrize(("name", "most"), [("lru", 1.0), ("lstm", None), ("rwkv4", 1.0)])
def test_states_of_complex_numbers_and_of_any_axes_are_measured(
    name: str, most: float | None
) -> None:
    measured = step_eigenvalues(st.make_model(name, "parity"), 2, most=1)
    assert measured.steps == 1 and measured.smallest <= measured.largest
    assert most is None or measured.largest <= most + 1e-6


class Decaying(nn.Module):
    """A gain of 0.9, and a window of the last two symbols, which no state depends on."""

    def initial_state(self, num_words: int) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.zeros(num_words, 1).double(), torch.zeros(2, num_words).double()

    def step(
        self, symbols: torch.Tensor, state: tuple[torch.Tensor, torch.Tensor]
    ) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
        memory, window = state
        memory = 0.9 * memory + window[:1].T
        return memory, (memory, torch.stack([symbols.double(), window[0]]))


class Reflecting(nn.Module):
    """h_t = (I - beta_x k_x k_x^T) h_{t-1}."""

    def __init__(self) -> None:
        super().__init__()
        self.keys, self.betas = nn.Embedding(4, 6), torch.tensor([0.3, 1.0, 1.7, 2.0])

    def initial_state(self, num_words: int) -> torch.Tensor:
        return torch.ones(num_words, 6).double()

    def step(self, symbols: torch.Tensor, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        key = nn.functional.normalize(self.keys(symbols), dim=-1)
        weight = self.betas.to(state)[symbols, None] * (key * state).sum(-1, keepdim=True)
        state = state - weight * key
        return state, state


def test_those_of_a_reflection_are_one_and_one_minus_beta() -> None:
    measured = step_eigenvalues(Reflecting(), 4)
    assert (measured.lowest, measured.highest) == pytest.approx((-1.0, 1.0), abs=1e-6)
    assert measured.imaginary < 1e-6
    assert step_eigenvalues(Reflecting(), 2).lowest == pytest.approx(0.0, abs=1e-6)


def test_a_window_of_inputs_has_no_eigenvalues() -> None:
    measured = step_eigenvalues(Decaying(), 3)
    assert (measured.lowest, measured.highest) == pytest.approx((0.9, 0.9))
    assert with_random_inputs(Decaying()) is None


def test_what_hands_on_no_state_is_refused() -> None:
    with pytest.raises(SettingsError, match="no `step`"):
        step_eigenvalues(st.make_model("transformer", "parity"), 2)


@pytest.mark.parametrize(
    ("lowest", "imaginary", "claimed", "beyond", "lacks"),
    [
        (-0.5, 0.0, "(-1, 1)", False, False),
        (0.0, 0.0, "(0, 1)", False, False),
        (0.0, 0.0, "[-1, 1]", False, True),
        (-0.5, 0.0, "(0, 1)", True, False),
        (-0.5, 0.5, "[-1, 1]", True, False),
        (-0.5, 0.5, "modulus <= 1", False, False),
        (-0.5, 0.5, "modulus 1", True, False),
        (-0.5, 0.5, "any", False, False),
    ],
)
def test_a_range_is_held_against_what_is_claimed(
    lowest: float, imaginary: float, claimed: str, beyond: bool, lacks: bool
) -> None:
    found = StepEigenvalues(lowest, 0.9, 0.1, 0.9, imaginary, 4)
    assert found.beyond(claimed) is beyond and found.lacks_negative(claimed) is lacks


def test_probe_measures_steps_and_keeps_what_it_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "run")
    line = f"train --model deltanet --beta double --task parity --layers 1 --width 8 --out {out}"
    assert app.run([*line.split(), "--steps", "1", "--validation-words", "8"]) == 0
    capsys.readouterr()
    assert app.run(["probe", out, "--only", "step-eigenvalues"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "step-eigenvalues" in printed and "of random inputs" in printed
    assert "claimed [-1, 1]" in printed
    (row,) = st.Run.open(out).evidence(RealisedEigenvalues)
    assert row.evidence.claimed == "[-1, 1]" and row.evidence.on_symbols.steps == 2


class Turning(nn.Module):
    """h_t = exp(i theta_x) h, logits = Re(C h), with complex weights."""

    def __init__(self) -> None:
        super().__init__()
        self.gains = nn.Parameter(torch.polar(torch.ones(2, 1), torch.tensor([[0.5], [1.5]])))
        self.reading = nn.Parameter(torch.ones(2, 1, dtype=torch.complex64))

    def initial_state(self, num_words: int) -> torch.Tensor:
        return self.gains.new_ones(num_words, 1)

    def step(self, symbols: torch.Tensor, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        state = self.gains[symbols] * state
        return (state @ self.reading.mT).real, state


def test_complex_weights_keep_their_imaginary_parts() -> None:
    found = step_eigenvalues(Turning(), 2)
    assert found.imaginary == pytest.approx(np.sin(1.5), abs=1e-6)
    assert found.smallest == pytest.approx(1.0, abs=1e-6)
