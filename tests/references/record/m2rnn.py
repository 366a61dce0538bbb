"""Numbers of M2RNN's recurrence from the authors' implementation in torch.

That file is imported alone: two of its helpers, which choose kernels, are replaced by what they
come to here (`torch.tanh`, no clipping of gradients, and as many heads of every kind).
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from tests.references.record.command import Tensors, run

METADATA = {
    "repository": "open-lm-engine/flash-model-architectures",
    "commit": "3c5d7a438845f06ceb2f3788e17a73df06df0084",
    "files": "xma/layers/m2rnn/torch_implementation.py (_torch)",
    "licence": "Apache-2.0",
    "remark": "the helpers tanh, clip_gradients and _get_num_heads are replaced",
}
SETTINGS = {"heads": 2, "key_size": 3, "value_size": 4}


def record(settings: Mapping[str, Any]) -> Tensors:
    """What is read [B, T, N, P], and the last state, of keys [B, T, N, K] and all other parts."""
    heads, rows, columns = settings["heads"], settings["key_size"], settings["value_size"]
    helpers = {
        "xma.torch_utils": {"tanh": torch.tanh, "clip_gradients": lambda h, _: h},
        "xma.layers.m2rnn.utils": {"_get_num_heads": lambda **_: (heads,) * 6},
    }
    for package in ("xma", "xma.layers", "xma.layers.m2rnn"):
        sys.modules[package] = ModuleType(package)
        sys.modules[package].__path__ = [str(Path(sys.path[0], *package.split(".")))]
    for name, functions in helpers.items():
        sys.modules[name] = ModuleType(name)
        for key, function in functions.items():
            setattr(sys.modules[name], key, function)
    theirs = importlib.import_module("xma.layers.m2rnn.torch_implementation")._torch
    parts = {
        "q": torch.randn(3, 13, heads, rows),
        "k": torch.randn(3, 13, heads, rows),
        "v": torch.randn(3, 13, heads, columns),
        "W": torch.randn(heads, columns, columns),
        "xf": torch.rand(3, 13, heads),
        "h0": torch.randn(3, heads, rows, columns),
    }
    outputs, last = theirs(**parts, gradient_clipping=None, cu_seqlens=None, max_seqlen=None)
    named = {f"inputs.{name}": part for name, part in parts.items() if name not in ("k", "W")}
    given = {"inputs": parts["k"], "weights.W": parts["W"], **named}
    return {"outputs": outputs, "last": last, **given}


if __name__ == "__main__":
    run(record, METADATA, SETTINGS)
