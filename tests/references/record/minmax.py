"""Numbers of the MinMax recurrence from the author's package: a backbone of two layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from tests.references.record.command import Tensors, moved, run, weights_of

METADATA = {
    "repository": "minmaxrnc/model",
    "commit": "01ad9c7e69de96f021abce54e94fd23454f8a693",
    "files": "src/minmaxrnc (MinMaxRNC)",
    "licence": "PolyForm-Noncommercial-1.0.0",
    "remark": "run from the package minmaxrnc 0.3.0, whose forward pass is that of the commit",
}
SETTINGS = {"d_model": 6, "n_layers": 2, "d_state": 5}


def record(settings: Mapping[str, Any]) -> Tensors:
    """Outputs [B, T, D] of inputs [B, T, D], in evaluation (dropout does nothing)."""
    from minmaxrnc import MinMaxRNC, MinMaxRNCConfig  # type: ignore[import-not-found]

    model = moved(MinMaxRNC(MinMaxRNCConfig(**settings)), spread=0.5)
    inputs = torch.randn(3, 17, settings["d_model"])
    return {"inputs": inputs, "outputs": model(inputs, unroll_steps=17), **weights_of(model)}


if __name__ == "__main__":
    run(record, METADATA, SETTINGS)
