"""Numbers of Mamba-2 from the authors' package: one layer, by its reference of the scan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

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
    "files": "mamba_ssm/modules/mamba2_simple.py (Mamba2Simple), ops/triton/ssd_combined.py",
    "licence": LICENCE,
    "remark": PACKAGE
    + "use_mem_eff_path=False, ssd_selective_scan and selective_scan_ref for the kernel; float64",
}
SETTINGS = {"d_model": 6, "d_state": 5, "headdim": 4, "use_mem_eff_path": False}


def record(settings: Mapping[str, Any]) -> Tensors:
    """Outputs [B, T, D] of inputs [B, T, D]."""
    code = module("modules.mamba2_simple")
    kernels = module("ops.triton.ssd_combined")
    interface = module("ops.selective_scan_interface")
    interface.selective_scan_fn = interface.selective_scan_ref

    def scan(x: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor, **named: Any) -> Tensor:
        outputs: Tensor = kernels.ssd_selective_scan(x, dt, a, b, c, D=named["D"])
        return outputs

    code.mamba_chunk_scan_combined = scan
    first = first_weights(lambda: code.Mamba2Simple(d_model=64, headdim=32))
    with double_precision():
        layer = with_large_steps(moved(code.Mamba2Simple(**settings).double(), 0.5), "dt_bias")
        inputs = torch.randn(2, 40, settings["d_model"])
        return {**answers(layer, inputs), **weights_of(layer), **first}


if __name__ == "__main__":
    run(record, METADATA, SETTINGS)
