"""The command line that the drivers of this folder have in common.

    python -m tests.references.record.MODEL --checkout PATH --out FILE

computes numbers with the authors' code at PATH and writes them to FILE.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from tests.references import recorded

Tensors = dict[str, Tensor]


def run(
    record: Callable[[Mapping[str, Any]], Tensors],
    metadata: Mapping[str, str],
    settings: Mapping[str, Any],
) -> None:
    """Make `record(settings)` available under the command line above.

    The authors' package is imported inside of `record`, after PATH is first in `sys.path`. All
    numbers are computed in float64.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--checkout", type=Path, required=True, help="the authors' repository")
    parser.add_argument("--out", type=Path, required=True, help="the file to write")
    given = parser.parse_args()
    sys.path.insert(0, str(given.checkout.resolve()))
    torch.set_default_dtype(torch.float64)  # so that rounding hides no difference
    torch.manual_seed(0)
    tensors = record(settings)
    recorded.save(given.out, tensors, {**metadata, "settings": json.dumps(dict(settings))})
    print(f"{given.out}: {given.out.stat().st_size:,} bytes")


def moved(module: nn.Module, spread: float = 0.2) -> nn.Module:
    """The module in evaluation, with every trained weight moved away from where it started."""
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.requires_grad:
                parameter.add_(spread * torch.randn_like(parameter))
    return module.eval()


def weights_of(module: nn.Module) -> Tensors:
    """Its state dict, under the names that a file of numbers has for weights."""
    return {f"weights.{name}": value for name, value in module.state_dict().items()}
