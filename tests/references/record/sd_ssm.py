"""Numbers of the selective dense state space model from the authors' code: a whole network."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from tests.references.record.authors_code import answers, first_weights, load
from tests.references.record.command import Tensors, moved, run, weights_of

METADATA = {
    "repository": "IBM/selective-dense-state-space-model",
    "commit": "68a8f0902835ee29c2ba63bc461c9f15ea22bc90",
    "files": "models/SDSSM.py (LSRNN)",
    "licence": "Apache-2.0",
    "remark": "in float64",
}
SETTINGS = {
    "output_size": 6,
    "input_size": 6,
    "state_size": 5,
    "num_transition_matrices": 3,
    "Lp_norm": 1.2,
    "return_all_outputs": True,
}


def record(settings: Mapping[str, Any]) -> Tensors:
    """Outputs [B, T, D] of inputs [B, T, D]."""
    code = load(Path(sys.path[0]) / "models" / "SDSSM.py", "authors_sdssm")
    wide = {**settings, "output_size": 32, "input_size": 32, "state_size": 32}
    first = first_weights(lambda: code.LSRNN(**wide))
    network = moved(code.LSRNN(**settings), 0.5)
    inputs = torch.randn(2, 40, settings["input_size"])
    return {**answers(network, inputs), **weights_of(network), **first}


if __name__ == "__main__":
    run(record, METADATA, SETTINGS)
