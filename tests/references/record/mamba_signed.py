"""Numbers of Mamba with eigenvalues in (-1, 1) from the authors' code: one mixer."""

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
    with_large_steps,
)
from tests.references.record.command import Tensors, moved, run, weights_of

METADATA = {
    "repository": "automl/unlocking_state_tracking",
    "commit": "b8b290d4680fe481609b71c8978b1c2a8b0426e2",
    "files": (
        "xlstm/mamba/mamba.py (NonnegativeMambaBlock, selective_scan); "
        "flash-linear-attention_mod/fla/models/mamba_py/{mamba,pscan}.py"
    ),
    "licence": "MIT (mamba_py)",
    "remark": (
        "read in the fork adankow/unlocking_state_tracking; mamba_py from the package mambapy "
        "1.2.0, of which the folder is a copy; in float64"
    ),
}
SETTINGS = {
    "d_model": 6,
    "n_layers": 1,
    "d_state": 3,
    "d_conv": 1,
    "positive_and_negative": True,
    "use_cuda": False,
}


def record(settings: Mapping[str, Any]) -> Tensors:
    """Outputs [B, T, D] of inputs [B, T, D]."""
    checkout = Path(sys.path[0])
    stand_in("fla", "fla.models", "fla.models.mamba_py")
    folder = checkout / "flash-linear-attention_mod" / "fla" / "models" / "mamba_py"
    load(folder / "pscan.py", "fla.models.mamba_py.pscan")
    load(folder / "mamba.py", "fla.models.mamba_py.mamba")
    code = load(checkout / "xlstm" / "mamba" / "mamba.py", "authors_mamba")
    wide = code.MambaConfig(**{**settings, "d_model": 64, "d_state": 16})
    first = first_weights(lambda: code.NonnegativeMambaBlock(wide))
    with double_precision():
        mixer = moved(code.NonnegativeMambaBlock(code.MambaConfig(**settings)).double(), 0.5)
        with_large_steps(mixer, "dt_proj.bias")
        inputs = torch.randn(2, 40, settings["d_model"])
        return {**answers(mixer, inputs), **weights_of(mixer), **first}


if __name__ == "__main__":
    run(record, METADATA, SETTINGS)
