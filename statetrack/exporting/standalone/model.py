"""The exported model as it is: the authors' layers, in a frame of embedding, norms and readout.

    python check_kernel.py model.py:forward --whole

`forward` maps tokens [words, time] to logits [words, time, labels]. config.json says which layers,
and each has its weights in a file of its own, as its state dict.
"""

import importlib
import json
from functools import cache
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch.nn import functional

FOLDER = Path(__file__).resolve().parent
CONFIG = json.loads((FOLDER / "config.json").read_text())
GATES: dict[str, Any] = {
    "swiglu": functional.silu,
    "geglu": functional.gelu,
    "reglu": functional.relu,
}


def named(place: str) -> Any:
    """A class or function, of package.module.NAME."""
    module, _, name = place.rpartition(".")
    return getattr(importlib.import_module(module), name)


def make(layer: dict[str, Any]) -> Any:
    """One of the authors' layers, with its weights."""
    made = dict(layer["arguments"])
    if layer["configuration"]:
        made = {"config": named(layer["configuration"])(**made), **layer["more"]}
    module = named(layer["class"])(**made)
    for place, value in layer["attributes"].items():
        within, _, name = place.rpartition(".")
        setattr(module.get_submodule(within), name, value)
    weights = load_file(FOLDER / layer["file"])
    module.load_state_dict(weights, strict=True)
    return module.to(next(iter(weights.values())).dtype).eval()


@cache
def loaded(device: str) -> tuple[dict[str, Any], list[Any]]:
    """The frame's weights and the layers, on a device."""
    frame = {n: t.to(device) for n, t in load_file(FOLDER / "frame.safetensors").items()}
    return frame, [make(layer).to(device) for layer in CONFIG["layers"]]


def norm(x: Any, name: str, weights: dict[str, Any]) -> Any:
    """The norm of a name: over the mean square (rms), also less the mean (layer), or none."""
    if CONFIG["norm"] == "none":
        return x
    gain, shape = weights[f"{name}.weight"], x.shape[-1:]
    if CONFIG["norm"] == "rms":
        return functional.rms_norm(x, shape, gain, 1e-6)
    return functional.layer_norm(x, shape, gain, weights[f"{name}.bias"])


def mlp(x: Any, name: str, weights: dict[str, Any]) -> Any:
    """A norm, then W_2 (f(W_g x) * W_1 x), or W_2 gelu(W_1 x + b_1) + b_2."""
    x, linear = norm(x, f"{name}.0", weights), functional.linear
    if CONFIG["mlp_kind"] in GATES:
        gate, up, down = (weights[f"{name}.1.{part}.weight"] for part in ("gate", "up", "down"))
        return linear(GATES[CONFIG["mlp_kind"]](linear(x, gate)) * linear(x, up), down)
    (w1, b1), (w2, b2) = ([weights[f"{name}.{n}.{p}"] for p in ("weight", "bias")] for n in (1, 3))
    return linear(functional.gelu(linear(x, w1, b1)), w2, b2)


@torch.no_grad()
def forward(tokens: Any) -> Any:
    """Logits of all positions."""
    frame, layers = loaded(str(tokens.device))
    x = frame["embedding"][tokens]
    for number, (layer, said) in enumerate(zip(layers, CONFIG["layers"], strict=True)):
        name, given = f"blocks.{number}", {}
        for key, values in said["call"].items():
            given[key] = torch.tensor(values, dtype=x.dtype, device=x.device)
        y = layer(norm(x, f"{name}.mixer_norm", frame), **given)
        y = y[0] if isinstance(y, tuple) else y
        x = x + y if CONFIG["residual"] else y
        if any(key.startswith(f"{name}.mlp.") for key in frame):
            y = mlp(x, f"{name}.mlp", frame)
            x = x + y if CONFIG["residual"] else y
    x = norm(x, "norm", frame)
    return functional.linear(x, frame["readout.weight"], frame["readout.bias"])
