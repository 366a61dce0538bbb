"""Writes `kda.safetensors`: the Kimi delta attention layer of flash-linear-attention."""

from tests.references.record._fla import record

if __name__ == "__main__":
    record(
        ("fla.layers.kda", "KimiDeltaAttention"),
        {
            "hidden_size": 16,
            "num_heads": 2,
            "head_dim": 8,
            "mode": "fused_recurrent",
            "allow_neg_eigval": True,
            "norm_eps": 1e-6,
        },
        shrink=("q_proj", "k_proj", "v_proj"),
    )
