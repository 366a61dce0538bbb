"""Numbers of input-dependent S4 from the authors' package: one block."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from tests.references.record.authors_code import answers, first_weights
from tests.references.record.command import Tensors, moved, run, weights_of

METADATA = {
    "repository": "jopetty/sfirah",
    "commit": "071f29b7880beccc38fba72545b820798e8c9692",
    "files": "sfirah/ids4.py (IDS4Block)",
    "licence": "none found in the repository",
    "remark": "in float64",
}
SETTINGS = {"activation": "gelu", "d_state": 4, "d_model": 6}


def record(settings: Mapping[str, Any]) -> Tensors:
    """Outputs [B, T, D] of inputs [B, T, D], small enough that products stay of order 1."""
    from sfirah.ids4 import IDS4Block  # type: ignore[import-not-found]

    first = first_weights(lambda: IDS4Block("gelu", d_state=16, d_model=32))
    block = moved(IDS4Block(**settings), 0.1)
    inputs = 0.45 * torch.randn(3, 16, settings["d_model"])
    return {**answers(block, inputs), **weights_of(block), **first}


if __name__ == "__main__":
    run(record, METADATA, SETTINGS)
