"""Numbers of Hawk's recurrent block from the authors' package."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import torch

from tests.references.record.authors_code import answers, double_precision, first_weights, load
from tests.references.record.command import Tensors, moved, run, weights_of

METADATA = {
    "repository": "google-deepmind/recurrentgemma",
    "commit": "2a3dde4b685283975fa1f7389fa4d04f57c83399",
    "files": "recurrentgemma/torch/modules.py (RecurrentBlock), recurrentgemma/torch/layers.py",
    "licence": "Apache-2.0",
    "remark": "run from the package 1.0.1, without its checks of shapes; all in float64",
}
SETTINGS = {"width": 6, "num_heads": 3, "lru_width": 12, "conv1d_temporal_width": 4}


def record(settings: Mapping[str, Any]) -> Tensors:
    """Outputs [B, T, D] of inputs [B, T, D], each word from its first position on."""
    folder = Path(sys.path[0]) / "recurrentgemma"
    package = sys.modules["recurrentgemma"] = MagicMock()
    parts = sys.modules["recurrentgemma.torch"] = package.torch
    parts.array_typing.typed = lambda function: function
    package.common = load(folder / "common.py", "recurrentgemma.common")
    parts.layers = layers = load(folder / "torch" / "layers.py", "recurrentgemma.torch.layers")
    modules = load(folder / "torch" / "modules.py", "recurrentgemma.torch.modules")
    scan = layers.rnn_scan
    layers.rnn_scan = lambda **named: scan(**named, acc_dtype=torch.float64)
    first = first_weights(lambda: modules.RecurrentBlock(width=64, num_heads=4))
    with double_precision():
        block = moved(modules.RecurrentBlock(**settings), 0.5)
        inputs = torch.randn(2, 40, settings["width"])
        positions = torch.arange(40).expand(2, -1)
        found = answers(lambda given: block(given, positions, return_cache=False)[0], inputs)
        return {**found, **weights_of(block), **first}


if __name__ == "__main__":
    run(record, METADATA, SETTINGS)
