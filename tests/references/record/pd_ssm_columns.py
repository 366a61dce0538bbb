"""Numbers of PD-SSM with one-hot columns from the authors' layer in JAX, with gradients.

Run with a Python that has torch, jax and equinox.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from tests.references.record.command import Tensors, run

METADATA = {
    "repository": "IBM/expressive-sparse-state-space-model",
    "commit": "cfa395ef542612134c4e06b1863abd253ddb5d35",
    "files": "time_series_JAX/models/PDSSM.py (PDSSMLayer)",
    "licence": "Apache-2.0",
}
SETTINGS = {"N": 5, "H": 6, "K": 3}


def record(settings: Mapping[str, Any]) -> Tensors:
    """Outputs [B, T, D] of inputs [B, T, D], and gradients of a weighted sum of them."""
    import jax  # type: ignore[import-not-found]

    jax.config.update("jax_enable_x64", True)
    import equinox  # type: ignore[import-not-found]
    from time_series_JAX.models.PDSSM import PDSSMLayer  # type: ignore[import-not-found]

    layer = PDSSMLayer(**settings, key=jax.random.PRNGKey(0))
    generator = np.random.default_rng(0)
    inputs = generator.standard_normal((3, 13, settings["H"]))
    sums = generator.standard_normal(inputs.shape)

    def total(layer: Any) -> Any:
        return (jax.vmap(layer)(inputs) * sums).sum()

    gradients = equinox.filter_grad(total)(layer)

    def tensors(prefix: str, layer: Any) -> Tensors:
        return {
            f"{prefix}.{name}": torch.from_numpy(np.array(getattr(layer, name)))
            for name in layer.__dataclass_fields__
            if "2" not in name  # the second maps of the networks are not used
        }

    return {
        "inputs": torch.from_numpy(inputs),
        "outputs": torch.from_numpy(np.array(jax.vmap(layer)(inputs))),
        "sums": torch.from_numpy(sums),
        **tensors("weights", layer),
        **tensors("gradients", gradients),
    }


if __name__ == "__main__":
    run(record, METADATA, SETTINGS)
