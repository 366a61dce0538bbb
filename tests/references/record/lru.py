"""Numbers of the linear recurrent unit from a public implementation in JAX: one layer."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor

from tests.references.record.authors_code import NUM_DRAWS, quantiles
from tests.references.record.command import Tensors, run

METADATA = {
    "repository": "NicolasZucchet/minimal-LRU",
    "commit": "bbd71b1104c399ec0d13819527d791949e66f599",
    "files": "lru/model.py (LRU, SequenceLayer)",
    "licence": "none stated",
    "remark": "outputs of the layer before its norm, its input subtracted; in float64",
}
SETTINGS = {"d_model": 6, "d_hidden": 5}


def record(settings: Mapping[str, Any]) -> Tensors:
    """Outputs [B, T, D] of inputs [B, T, D]."""
    import jax  # type: ignore[import-not-found]
    import numpy as np

    jax.config.update("jax_enable_x64", True)
    from lru import model as code  # type: ignore[import-not-found]

    def layer_of(width: int, state: int) -> Any:
        unit = partial(code.LRU, d_model=width, d_hidden=state)
        # The norm comes first here and is left out by an identity in its place.
        return WithoutNorm(lru=unit, d_model=width, prenorm=True, training=False)

    class WithoutNorm(code.SequenceLayer):  # type: ignore[misc, name-defined]
        def setup(self) -> None:
            super().setup()
            self.normalization = lambda x: x

    def started(width: int, state: int, seed: int) -> dict[str, Any]:
        layer = layer_of(width, state)
        values: dict[str, Any] = layer.init(
            jax.random.PRNGKey(seed), jax.numpy.zeros((3, width), "float64")
        )["params"]
        return values

    def flat(values: Mapping[str, Any], before: str = "") -> dict[str, Tensor]:
        found: dict[str, Tensor] = {}
        for name, value in values.items():
            if isinstance(value, Mapping):
                found |= flat(value, f"{before}{name}.")
            else:
                found[before + name] = torch.tensor(np.array(value))
        return found

    drawn = [flat(started(64, 64, seed)) for seed in range(NUM_DRAWS)]
    first = {
        f"first.{name}": quantiles(torch.stack([each[name] for each in drawn])) for name in drawn[0]
    }
    width = settings["d_model"]
    numbers = np.random.default_rng(0)
    values = jax.tree_util.tree_map(
        lambda value: value + 0.2 * numbers.standard_normal(value.shape),
        started(width, settings["d_hidden"], 0),
    )
    inputs = numbers.standard_normal((2, 40, width))
    layer = layer_of(width, settings["d_hidden"])
    outputs = np.stack([np.array(layer.apply({"params": values}, word)) - word for word in inputs])
    weights = {f"weights.{name}": value for name, value in flat(values).items()}
    return {"inputs": torch.tensor(inputs), "outputs": torch.tensor(outputs), **weights, **first}


if __name__ == "__main__":
    run(record, METADATA, SETTINGS)
