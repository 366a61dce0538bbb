"""A whole DeltaNet with a short convolution, read in pieces: what hands on the right inputs or not.

It reads an exported folder, by the names of flash-linear-attention's layer, and shares no code with
the package: x = E[token]; q, k, v = silu(conv(W x)), of unit length; beta = 2 sigmoid(w x);
y = x + W_o norm(o); logits = C norm(y) + c.
"""

from __future__ import annotations

import os
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from tests.kernel_faults.kernels import recurrent

FOLDER = "EXPORTED_FOLDER"
"""The variable of the environment that names the folder."""


@cache
def weights(folder: str) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    return load_file(Path(folder, "layer-0.safetensors")), load_file(
        Path(folder, "frame.safetensors")
    )


def rms(x: Tensor, gain: Tensor) -> Tensor:
    return gain * x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt()


def unit(x: Tensor) -> Tensor:
    return x / (x.square().sum(-1, keepdim=True) + 1e-6).sqrt()


def forward(tokens: Tensor, state: Any = None, *, late: int = 0) -> tuple[Tensor, Any]:
    """Logits and the state; `late` is by how many positions the handed inputs are off."""
    layer, frame = weights(os.environ[FOLDER])
    x = frame["embedding"][tokens]
    inputs = rms(x, frame["blocks.0.mixer_norm.weight"])
    before, memory = state or ({}, None)
    parts, kept = {}, {}
    for name in "qkv":
        projected = inputs @ layer[f"{name}_proj.weight"].T
        taps = layer[f"{name}_conv1d.weight"].squeeze(1)  # [channels, positions]
        width = taps.shape[1] - 1
        seen = before.get(name, projected.new_zeros(len(x), width, projected.shape[-1]))
        seen = torch.cat([seen, projected], 1)
        windows = seen.unfold(1, width + 1, 1)  # [B, T, channels, positions]
        parts[name] = torch.nn.functional.silu((windows * taps).sum(-1))
        padded = torch.nn.functional.pad(seen, (0, 0, late, 0))
        kept[name] = padded[:, padded.shape[1] - width - late : padded.shape[1] - late]
    heads = layer["b_proj.weight"].shape[0]
    q, k, v = (parts[name].unflatten(-1, (heads, -1)) for name in "qkv")
    beta = 2 * torch.sigmoid(inputs @ layer["b_proj.weight"].T)
    scale = q.shape[-1] ** -0.5
    o, memory = recurrent(q=unit(q), k=unit(k), v=v, beta=beta, scale=scale, state=memory)
    y = x + rms(o, layer["o_norm.weight"]).flatten(-2) @ layer["o_proj.weight"].T
    logits = rms(y, frame["norm.weight"]) @ frame["readout.weight"].T + frame["readout.bias"]
    return logits, (kept, memory)


convolution_state_late = partial(forward, late=1)
