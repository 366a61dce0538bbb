"""Writes `rwkv6.safetensors`: the RWKV-6 layer of flash-linear-attention.

Its norm's epsilon is given, since the library's own would be that of heads of size 64 only.
"""

from tests.references.record._fla import record

if __name__ == "__main__":
    record(
        ("fla.layers.rwkv6", "RWKV6Attention"),
        {
            "hidden_size": 16,
            "num_heads": 2,
            "expand_k": 1.0,
            "proj_low_rank_dim": 3,
            "gate_low_rank_dim": 4,
            "norm_eps": 64e-5,
            "mode": "fused_recurrent",
            "layer_idx": 0,
        },
    )
