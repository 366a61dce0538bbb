"""Numbers of Mamba from the authors' package: one layer, by its reference of the scan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from tests.references.record.authors_code import (
    answers,
    double_precision,
    first_weights,
    with_large_steps,
)
from tests.references.record.command import Tensors, moved, run, weights_of
from tests.references.record.mamba_ssm_package import COMMIT, LICENCE, PACKAGE, REPOSITORY, module

METADATA = {
    "repository": REPOSITORY,
    "commit": COMMIT,
    "files": "mamba_ssm/modules/mamba_simple.py (Mamba), ops/selective_scan_interface.py",
    "licence": LICENCE,
    "remark": PACKAGE + "use_fast_path=False and selective_scan_ref; in float64",
}
SETTINGS = {"d_model": 6, "d_state": 3, "use_fast_path": False}


def record(settings: Mapping[str, Any]) -> Tensors:
    """Outputs [B, T, D] of inputs [B, T, D]."""
    code = module("modules.mamba_simple")
    code.selective_scan_fn = module("ops.selective_scan_interface").selective_scan_ref
    first = first_weights(lambda: code.Mamba(d_model=64))
    with double_precision():
        layer = with_large_steps(moved(code.Mamba(**settings).double(), 0.5), "dt_proj.bias")
        inputs = torch.randn(2, 40, settings["d_model"])
        return {**answers(layer, inputs), **weights_of(layer), **first}


if __name__ == "__main__":
    run(record, METADATA, SETTINGS)
