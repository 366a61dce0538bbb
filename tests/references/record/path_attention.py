"""Writes `path-attention.safetensors`: the PaTH attention layer of flash-linear-attention."""

from tests.references.record._fla import record

if __name__ == "__main__":
    record(
        ("fla.layers.path_attn", "PaTHAttention"),
        {"hidden_size": 32, "num_heads": 2, "layer_idx": 0},
    )
