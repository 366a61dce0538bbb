"""Numbers of minGRU from a package of another author: its layer, in the space of logarithms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from tests.references.record.command import Tensors, moved, run, weights_of

METADATA = {
    "repository": "lucidrains/minGRU-pytorch",
    "commit": "270743367e9d9d1ea7e2fc0fba4145e3cc8c2c8c",
    "files": "minGRU_pytorch/minGRU.py (minGRU)",
    "licence": "MIT",
    "remark": "run from the package minGRU-pytorch 0.2.1; not by the paper's authors",
}
SETTINGS = {"dim": 6, "expansion_factor": 1.5}


def record(settings: Mapping[str, Any]) -> Tensors:
    """Outputs [B, T, D] of inputs [B, T, D]."""
    from minGRU_pytorch.minGRU import minGRU  # type: ignore[import-not-found]

    layer = moved(minGRU(**settings), spread=0.5)
    inputs = torch.randn(3, 17, settings["dim"])
    return {"inputs": inputs, "outputs": layer(inputs), **weights_of(layer)}


if __name__ == "__main__":
    run(record, METADATA, SETTINGS)
