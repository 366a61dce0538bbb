"""Numbers of SLiCE from the authors' code: a stack of two block-diagonal blocks.

`models/slcde.py` imports a CUDA package for a variant that is not built here; an empty module
stands in for it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import torch

from tests.references.record.command import Tensors, moved, run, weights_of

METADATA = {
    "repository": "Benjamin-Walker/structured-linear-cdes",
    "commit": "00f605522dab2efcdf1690d991f0dd054ca9c30c",
    "files": "models/slcde.py (LinearCDE, LinearCDEBlock, StackedLCDE)",
    "licence": "MIT",
    "remark": "fast_hadamard_transform, which these settings do not call, is an empty module",
}
SETTINGS = {
    "num_blocks": 2,
    "model_dim": 6,
    "data_dim": 4,
    "label_dim": 3,
    "init_std": 0.5,
    "block_size": 3,
    "diagonal": True,
}


def record(settings: Mapping[str, Any]) -> Tensors:
    """Logits [B, T, C] of symbols [B, T]; every weight moved from its first value."""
    name = "fast_hadamard_transform.fast_hadamard_transform_interface"
    sys.modules["fast_hadamard_transform"] = ModuleType("fast_hadamard_transform")
    sys.modules[name] = ModuleType(name)
    sys.modules[name].hadamard_transform = None  # type: ignore[attr-defined]
    from models.slcde import StackedLCDE  # type: ignore[import-not-found]

    model = moved(StackedLCDE(**settings))
    symbols = torch.randint(settings["data_dim"], (3, 17))
    weights = {key: value for key, value in weights_of(model).items() if not key.endswith("mask")}
    return {"inputs": symbols, "outputs": model(symbols), **weights}


if __name__ == "__main__":
    run(record, METADATA, SETTINGS)
