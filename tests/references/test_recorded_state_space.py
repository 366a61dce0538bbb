"""The state space models against numbers of their authors' code, recorded once.

Each file was written by a driver in `tests/references/record`; a table maps the names that our
mixers give to weights onto the authors' names. B batch, T time, D width.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pytest
import torch
from torch import Tensor

from statetrack.models import MODELS
from statetrack.models._blocks import Mixer
from statetrack.settings import build
from tests.references.record.authors_code import quantiles
from tests.references.recorded import recorded, stated_difference

Source = str | Callable[[Mapping[str, Tensor]], Tensor]
"""Where the values of a weight come from: the authors' name, or a function of their weights."""


@dataclass(frozen=True)
class Case:
    """A file of numbers, and how the authors' layer is built and named here."""

    model: str
    against: str
    """A part of the model's sentence `Checked:`."""
    settings: Mapping[str, object]
    sources: Mapping[str, Source]
    wide: Mapping[str, object] = field(default_factory=dict)
    """The settings with which the authors' first weights were drawn."""


MAMBA: dict[str, Source] = {
    "inward.weight": "in_proj.weight",
    "convolution.filters.weight": "conv1d.weight",
    "convolution.filters.bias": "conv1d.bias",
    "selection.weight": "x_proj.weight",
    "time_steps.weight": "dt_proj.weight",
    "time_steps.bias": "dt_proj.bias",
    "log_rates": "A_log",
    "skip": "D",
    "outward.weight": "out_proj.weight",
}
MAMBA3: dict[str, Source] = {
    "inward.weight": "in_proj.weight",
    "time_step_bias": "dt_bias",
    "writing_norm.weight": "B_norm.weight",
    "reading_norm.weight": "C_norm.weight",
    "writing_bias": lambda w: w["B_bias"].squeeze(1),
    "reading_bias": lambda w: w["C_bias"].squeeze(1),
    "skip": "D",
    "outward.weight": "out_proj.weight",
}
WIDE_HEADS = {"width": 64, "heads": 4}
CASES = {
    "mamba": Case("mamba", "state-spaces/mamba", {"width": 6, "state": 3}, MAMBA, {"width": 64}),
    "mamba-signed": Case(
        "mamba",
        "unlocking_state_tracking",
        {"width": 6, "state": 3, "conv": 1, "eigenvalues": "signed"},
        MAMBA,
        {"width": 64, "conv": 1},
    ),
    "mamba2": Case(
        "mamba2",
        "state-spaces/mamba",
        {"width": 6, "state": 5, "heads": 3},
        {
            "inward.weight": "in_proj.weight",
            "convolution.filters.weight": "conv1d.weight",
            "convolution.filters.bias": "conv1d.bias",
            "log_rates": "A_log",
            "time_step_bias": "dt_bias",
            "skip": "D",
            "norm.weight": "norm.weight",
            "outward.weight": "out_proj.weight",
        },
        WIDE_HEADS,
    ),
    "mamba3": Case(
        "mamba3",
        "state-spaces/mamba",
        {"width": 6, "state": 8, "heads": 3, "slowest": 1e-4},
        MAMBA3,
        WIDE_HEADS,
    ),
    "mamba3-heavy-tail": Case(
        "mamba3",
        "state-spaces/mamba",
        {"width": 6, "state": 8, "heads": 3, "slowest": 1e-4, "rates": "heavy-tail"},
        MAMBA3,
    ),
    "s4d": Case(
        "s4d",
        "state-spaces/s4",
        {"width": 6, "state": 4},
        {
            "log_steps": "kernel.log_dt",
            "log_damping": "kernel.log_A_real",
            "frequencies": "kernel.A_imag",
            "readings": "kernel.C",
            "skip": "D",
            "outward.weight": lambda w: w["output_linear.0.weight"].squeeze(-1),
            "outward.bias": "output_linear.0.bias",
        },
        {"width": 64},
    ),
    "lru": Case(
        "lru",
        "minimal-LRU",
        {"width": 6, "state": 5},
        {
            "log_damping": "seq.nu_log",
            "log_phases": "seq.theta_log",
            "log_scales": "seq.gamma_log",
            "writings": lambda w: torch.stack([w["seq.B_re"], w["seq.B_im"]]),
            "readings": lambda w: torch.stack([w["seq.C_re"], w["seq.C_im"]]),
            "skip": "seq.D",
            "outward.weight": lambda w: torch.cat([w["out1.kernel"].mT, w["out2.kernel"].mT]),
            "outward.bias": lambda w: torch.cat([w["out1.bias"], w["out2.bias"]]),
        },
        {"width": 64},
    ),
    "aussm": Case(
        "aussm",
        "AUSSM",
        {"width": 6, "state": 3},
        {
            "inward.weight": "in_proj.weight",
            "convolution.filters.weight": "conv1d.weight",
            "convolution.filters.bias": "conv1d.bias",
            "angles.weight": lambda w: by_channel(w["xA_proj.weight"], 3).flatten(0, 1),
            "angles.bias": lambda w: by_channel(w["xA_proj.bias"], 3).flatten(),
            "selection.weight": "x_proj.weight",
            "time_steps.weight": "dt_proj.weight",
            "time_steps.bias": "dt_proj.bias",
            "writings": lambda w: w["B"].mT,
            "readings": lambda w: w["C"].mT,
            "skip": "D",
            "outward.weight": "out_proj.weight",
        },
        {"width": 32},
    ),
    "ids4": Case(
        "ids4",
        "sfirah",
        {"width": 6, "state": 4},
        {
            "matrices": "A",
            "reading.weight": "proj.weight",
            "reading.bias": "proj.bias",
            "outward.weight": "C.weight",
            "outward.bias": "C.bias",
            "skip.weight": "D.weight",
            "skip.bias": "D.bias",
        },
        {"width": 32, "state": 16},
    ),
    "sd-ssm": Case(
        "sd-ssm",
        "selective-dense-state-space-model",
        {"width": 6, "state": 5, "dictionary": 3},
        {
            "selection.weight": "block.A_selector.weight",
            "selection.bias": "block.A_selector.bias",
            "writings.weight": "block.B.weight",
            "dictionary": lambda w: w["block.A_dict"].movedim(-1, 0),
            "state_norm.weight": "norm.weight",
            "state_norm.bias": "norm.bias",
            "outward.weight": "readout.weight",
            "outward.bias": "readout.bias",
        },
        {"width": 32, "state": 32, "dictionary": 3},
    ),
    "rg-lru": Case(
        "rg-lru",
        "recurrentgemma",
        {"width": 6, "expand": 2, "heads": 3},
        {
            "inward.weight": "linear_x.weight",
            "inward.bias": "linear_x.bias",
            "gate.weight": "linear_y.weight",
            "gate.bias": "linear_y.bias",
            "convolution.filters.weight": lambda w: w["conv_1d.w"].mT.unsqueeze(1),
            "convolution.filters.bias": "conv_1d.b",
            "forgetting.blocks": "rg_lru.a_gate.w",
            "forgetting.bias": lambda w: w["rg_lru.a_gate.b"].flatten(),
            "writing.blocks": "rg_lru.input_gate.w",
            "writing.bias": lambda w: w["rg_lru.input_gate.b"].flatten(),
            "rates": "rg_lru.a_param",
            "outward.weight": "linear_out.weight",
            "outward.bias": "linear_out.bias",
        },
        {"width": 64},
    ),
}


def by_channel(rows: Tensor, num_states: int) -> Tensor:
    """The authors' angles, in rows (N D), as [D, N, ..]."""
    return rows.unflatten(0, (num_states, -1)).transpose(0, 1)


def make(model: str, settings: Mapping[str, object]) -> Mixer:
    kind = MODELS[model]
    built = kind(build(kind.settings_class, dict(settings), model), num_symbols=2, num_labels=2)
    return built.blocks[0].mixer


def with_their_weights(case: Case, weights: Mapping[str, Tensor]) -> Mixer:
    """Our mixer with all of the authors' weights, none left over."""
    mixer, used = make(case.model, case.settings).double(), set()

    class Noted(dict):
        def __getitem__(self, name: str) -> Tensor:
            used.add(name)
            return super().__getitem__(name)

    noted = Noted(weights)
    with torch.no_grad():
        for name, parameter in mixer.named_parameters():
            source = case.sources[name]
            value = noted[source] if isinstance(source, str) else source(noted)
            assert parameter.shape == value.shape, name
            parameter.copy_(value)
    assert used == set(weights), "weights that the authors have and we do not"
    return mixer


@pytest.mark.parametrize("name", CASES)
def test_outputs_and_their_gradients_are_those_of_the_authors_code(name: str) -> None:
    case, found = CASES[name], recorded(name)
    mixer = with_their_weights(case, found.weights)
    inputs = found.inputs.requires_grad_()
    outputs, _ = mixer.scan(inputs, mixer.initial_state(len(inputs)))
    assert found.outputs.abs().max() > 0.5, "outputs in which a difference would be seen"
    allowed = stated_difference(case.model, case.against)
    torch.testing.assert_close(outputs, found.outputs, rtol=0, atol=allowed)
    if "gradients.inputs" in found.tensors:
        (gradient,) = torch.autograd.grad(0.5 * outputs.square().sum(), inputs)
        expected = found.tensors["gradients.inputs"]
        torch.testing.assert_close(gradient, expected, rtol=10 * allowed, atol=10 * allowed)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.wide])
def test_weights_start_from_the_distributions_of_the_authors_code(name: str) -> None:
    """By quantiles of every weight over several fresh layers."""
    case, found = CASES[name], recorded(name)
    torch.manual_seed(0)
    drawn = [dict(make(case.model, case.wide).named_parameters()) for _ in range(10)]
    theirs = {
        key.removeprefix("first."): value
        for key, value in found.tensors.items()
        if key.startswith("first.")
    }
    for key, source in case.sources.items():
        values = torch.stack([each[key].detach() for each in drawn])
        for expected in (theirs[each] for each in names_in(source, theirs)):
            assert_alike(key, quantiles(values), expected, values.numel())


def names_in(source: Source, theirs: Mapping[str, Tensor]) -> list[str]:
    """The authors' names that a source reads."""
    if isinstance(source, str):
        return [source]
    read: list[str] = []

    class Noted(dict):
        def __missing__(self, name: str) -> Tensor:
            read.append(name)
            return torch.zeros(3, 3, 3)

    try:
        source(Noted())
    except (IndexError, RuntimeError, ValueError):
        pass  # the shapes are not those of the weights; the names have been read
    assert read and set(read) <= set(theirs)
    return read


def assert_alike(name: str, ours: Tensor, theirs: Tensor, count: int) -> None:
    """Quantiles of two draws of one distribution, as far as so many numbers can tell."""
    width = float(theirs[-1] - theirs[0])
    torch.testing.assert_close(
        ours, theirs, rtol=1e-6, atol=4 * width / count**0.5, msg=lambda text: f"{name}: {text}"
    )
