"""Numbers of PD-SSM from the authors' code of the state-tracking experiments, with gradients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from tests.references.record.command import Tensors, moved, run, weights_of

METADATA = {
    "repository": "IBM/expressive-sparse-state-space-model",
    "commit": "cfa395ef542612134c4e06b1863abd253ddb5d35",
    "files": "state_tracking_PyTorch/models/pdssm.py (PD_Block, PD)",
    "licence": "Apache-2.0",
}
SETTINGS = {
    "output_size": 3,
    "input_size": 4,
    "state_size": 5,
    "embed_size": 5,  # the authors' readout needs as many states as embeddings have numbers
    "dictionary_size": 3,
    "num_layers": 2,
    "return_all_outputs": True,
}


def record(settings: Mapping[str, Any]) -> Tensors:
    """Logits [B, T, C] of symbols [B, T], and the gradients of a weighted sum of them."""
    from state_tracking_PyTorch.models.pdssm import PD  # type: ignore[import-not-found]

    model = moved(PD(**settings))
    symbols = torch.randint(settings["input_size"], (3, 13))
    logits = model(symbols)
    sums = torch.randn_like(logits)
    (logits * sums).sum().backward()
    gradients = {
        f"gradients.{name}": parameter.grad
        for name, parameter in model.named_parameters()
        if parameter.grad is not None
    }
    return {
        "inputs": symbols,
        "outputs": logits,
        "sums": sums,
        **gradients,
        **weights_of(model),
    }


if __name__ == "__main__":
    run(record, METADATA, SETTINGS)
