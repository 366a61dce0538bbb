"""Writes `linear-attention.safetensors`: normalised linear attention of flash-linear-attention.

That is its layer with the feature map elu + 1 and without a norm of outputs, which is the source's.
"""

from tests.references.record._fla import record

if __name__ == "__main__":
    record(
        ("fla.layers.linear_attn", "LinearAttention"),
        {
            "hidden_size": 16,
            "num_heads": 2,
            "feature_map": "elu",
            "do_feature_map_norm": True,
            "output_norm": "identity",
            "mode": "fused_recurrent",
        },
    )
