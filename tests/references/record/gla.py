"""Writes `gla.safetensors`: the gated linear attention layer of flash-linear-attention."""

from tests.references.record._fla import record

if __name__ == "__main__":
    record(
        ("fla.layers.gla", "GatedLinearAttention"),
        {
            "hidden_size": 16,
            "num_heads": 2,
            "gate_low_rank_dim": 3,
            "use_short_conv": True,
            "mode": "fused_recurrent",
            "norm_eps": 1e-6,
        },
        shrink=("q_proj", "k_proj"),
    )
