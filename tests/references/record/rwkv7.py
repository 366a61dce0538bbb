"""Writes `rwkv7.safetensors`: the RWKV-7 layer of flash-linear-attention, first of two.

Its norm's epsilon is that of heads of size 64, as in the released training code.
"""

from tests.references.record._fla import record

if __name__ == "__main__":
    record(
        ("fla.layers.rwkv7", "RWKV7Attention"),
        {
            "hidden_size": 16,
            "head_dim": 8,
            "decay_low_rank_dim": 4,
            "gate_low_rank_dim": 4,
            "a_low_rank_dim": 4,
            "norm_eps": 8e-5,
            "mode": "fused_recurrent",
            "layer_idx": 0,
            "num_hidden_layers": 2,
        },
    )
