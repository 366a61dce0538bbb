"""Writes `hgrn2.safetensors`: the HGRN2 layer of flash-linear-attention, second of two."""

import torch

from tests.references.record._fla import record

if __name__ == "__main__":
    record(
        ("fla.layers.hgrn2", "HGRN2Attention"),
        {
            "hidden_size": 16,
            "num_heads": 2,
            "expand_ratio": None,
            "mode": "fused_recurrent",
            "norm_eps": 1e-6,
            "layer_idx": 1,
        },
        call={"lower_bound": torch.linspace(0.1, 0.9, 16)},
    )
