"""Numbers of S4D from the authors' code: the minimal layer."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from tests.references.record.authors_code import (
    answers,
    double_precision,
    first_weights,
    load,
    stand_in,
)
from tests.references.record.command import Tensors, moved, run, weights_of

METADATA = {
    "repository": "state-spaces/s4",
    "commit": "2ed46fcf77f2392145ceb801a553367c9111675a",
    "files": "models/s4/s4d.py (S4D)",
    "licence": "Apache-2.0",
    "remark": "without dropout, whose module is not imported; in float64",
}
SETTINGS = {"d_model": 6, "d_state": 8, "transposed": False}


def record(settings: Mapping[str, Any]) -> Tensors:
    """Outputs [B, T, D] of inputs [B, T, D]."""
    stand_in("src", "src.models", "src.models.nn")
    code = load(Path(sys.path[0]) / "models" / "s4" / "s4d.py", "authors_s4d")
    first = first_weights(lambda: code.S4D(d_model=64, d_state=64))
    with double_precision():
        layer = moved(code.S4D(**settings).double(), 0.5)
        inputs = torch.randn(2, 40, settings["d_model"])
        found = answers(lambda given: layer(given)[0], inputs)
        return {**found, **weights_of(layer), **first}


if __name__ == "__main__":
    run(record, METADATA, SETTINGS)
