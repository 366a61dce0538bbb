"""Numbers of AUSSM from the authors' code: one block, by its own reference in torch."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch

from tests.references.record.authors_code import (
    answers,
    double_precision,
    first_weights,
    load,
    stand_in,
)
from tests.references.record.command import Tensors, moved, run

METADATA = {
    "repository": "arjunkaruvally/AUSSM",
    "commit": "153956b9b8462aafffc9ea153478500f4ffe6b74",
    "files": (
        "ai-modules/wavesAI/model/aussm.py (SSMauBlock); extension-cpp/extension_cpp/ops.py "
        "(reference_ssm_adaptive_unitary_optimized_polar)"
    ),
    "licence": "none stated",
    "remark": (
        "cuda=False, so that the block calls the reference in torch; torch.compile and the "
        "registration of the CUDA operators left out; in float64; complex weights as pairs"
    ),
}
SETTINGS = {"d_model": 6, "d_state": 3, "cuda": False}


def record(settings: Mapping[str, Any]) -> Tensors:
    """Outputs [B, T, D] of inputs [B, T, D]."""
    checkout = Path(sys.path[0])
    stand_in("PIL", "PIL.ImageOps", "matplotlib", "matplotlib.pyplot", "icecream", "tqdm")
    stand_in("mamba_ssm", "mamba_ssm.ops", "mamba_ssm.ops.selective_scan_interface")
    stand_in("sympy", "sympy.polys", "sympy.polys.polyoptions")
    with (
        patch.object(torch, "compile", lambda function: function),
        patch.object(torch.library, "register_autograd"),
        patch.object(torch.library, "register_fake", lambda name: lambda function: function),
        patch("builtins.print"),
    ):
        operators = load(checkout / "extension-cpp" / "extension_cpp" / "ops.py", "authors_ops")
        sys.modules["extension_cpp"] = SimpleNamespace(ops=operators)  # type: ignore[assignment]
        path = checkout / "ai-modules" / "wavesAI" / "model" / "aussm.py"
        code = load(path, "authors_aussm")
        wide = code.ModelArgsSSMau(**{**settings, "d_model": 32, "d_state": 16})
        first = first_weights(lambda: code.SSMauBlock(wide))
        with double_precision():
            block = code.SSMauBlock(code.ModelArgsSSMau(**settings)).double()
            block.B.data, block.C.data = block.B.data.cdouble(), block.C.data.cdouble()
            moved(block, 0.5)
            inputs = torch.randn(2, 40, settings["d_model"])
            found = answers(block, inputs)
    weights = {
        f"weights.{name}": torch.view_as_real(value) if value.is_complex() else value
        for name, value in block.state_dict().items()
    }
    return {**found, **weights, **first}


if __name__ == "__main__":
    run(record, METADATA, SETTINGS)
