"""Numbers of Mamba-3 from the authors' package: one layer, step by step, by its references.

Whether the decay rate is a softplus (the released versions) or heavy-tailed (since pull request
962) is a matter of the checkout.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from tests.references.record.authors_code import double_precision, first_weights, with_large_steps
from tests.references.record.command import Tensors, moved, run, weights_of
from tests.references.record.mamba_ssm_package import (
    COMMIT,
    LICENCE,
    PACKAGE,
    REPOSITORY,
    module,
    step_in_torch,
)

METADATA = {
    "repository": REPOSITORY,
    "commit": COMMIT,
    "files": (
        "mamba_ssm/modules/mamba3.py (Mamba3.step), ops/triton/mamba3/mamba3_mimo_rotary_step.py, "
        "ops/cute/mamba3/mamba3_step_fn.py"
    ),
    "licence": LICENCE,
}
REMARK = PACKAGE + (
    "apply_rotary_qk_inference_reference and "
    "selective_state_update_fused_ref_v2 for the kernels; in float64"
)
HEAVY_TAIL = "; its line of the decay rate as changed by pull request 962 (c69aaab)"
SETTINGS = {"d_model": 6, "d_state": 8, "headdim": 4, "rope_fraction": 0.5}


def record(settings: Mapping[str, Any]) -> Tensors:
    """Outputs [B, T, D] of inputs [B, T, D]."""
    code = module("modules.mamba3")
    rotary = module("ops.triton.mamba3.mamba3_mimo_rotary_step")
    kernel = module("ops.cute.mamba3.mamba3_step_fn")

    def rotate(*, inplace: bool, **named: Any) -> Any:
        return rotary.apply_rotary_qk_inference_reference(**named)

    code.apply_rotary_qk_inference_fwd = rotate
    code.mamba3_step_fn = step_in_torch(kernel.selective_state_update_fused_ref_v2)
    first = first_weights(lambda: code.Mamba3(d_model=64, d_state=64, headdim=32))
    with double_precision(), torch.no_grad():
        layer = with_large_steps(moved(code.Mamba3(**settings).double(), 0.5), "dt_bias")
        inputs = torch.randn(2, 40, settings["d_model"])
        state = layer.allocate_inference_cache(2, 40, dtype=torch.float64)
        state = tuple(part.double() for part in state)
        outputs = [layer.step(each, *state)[0] for each in inputs.unbind(1)]
        return {
            "inputs": inputs,
            "outputs": torch.stack(outputs, 1),
            **weights_of(layer),
            **first,
        }


def main() -> None:
    """Record what the checkout computes, and say which of the two it is."""
    checkout = Path(sys.argv[sys.argv.index("--checkout") + 1])
    text = (checkout / "mamba_ssm" / "modules" / "mamba3.py").read_text(encoding="utf-8")
    heavy = "heavy_tail" in text
    metadata = {**METADATA, "remark": REMARK + (HEAVY_TAIL if heavy else "")}
    rates = "heavy-tail" if heavy else "softplus"
    run(lambda settings: record(SETTINGS), metadata, {**SETTINGS, "rates": rates})


if __name__ == "__main__":
    main()
