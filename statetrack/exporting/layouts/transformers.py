"""Layers of the library transformers, which also run without a GPU.

Source: Wolf et al. (2020), arXiv:1910.03771, version 5.23: MambaMixer, Mamba2Mixer,
OlmoHybridGatedDeltaNet, RwkvSelfAttention.
"""

from __future__ import annotations

from typing import Any

from statetrack.exporting.layer import LAYOUTS, AuthorsLayer, Layout, Weights
from statetrack.exporting.layouts.mamba import MAMBA, MAMBA2, kernel_size, positive_alone

MODELS = "transformers.models"


def one_gated_key(mixer: Any) -> str | None:
    """Gated DeltaNet alone, with its convolution and its output gate."""
    if mixer.key_shape[0] != 1:
        return f"it has one key a position, and these are {mixer.key_shape[0]}"
    if mixer.forget_gate is None or mixer.gate is None or mixer.convolution.filters is None:
        return "it has a forget gate, an output gate and a short convolution"
    return None


def shares(mixer: Any, own: Weights) -> Weights:
    """RWKV-4's shares of the own position, where the mixer has those of the one before."""
    names = ("key", "value", "receptance")
    before = own.pop("shifts")
    return {
        f"time_mix_{n}": (1 - each).view(1, 1, -1) for n, each in zip(names, before, strict=True)
    }


LAYOUTS.register("transformers")(
    Layout(
        "transformers 5.23",
        {
            "MambaMixer": AuthorsLayer(
                f"{MODELS}.mamba.modeling_mamba.MambaMixer",
                lambda mixer, width: {
                    "hidden_size": width,
                    "state_size": mixer.sizes[1],
                    "conv_kernel": kernel_size(mixer),
                    "expand": len(mixer.skip) // width,
                    "time_step_rank": mixer.sizes[0],
                    "num_hidden_layers": 1,
                },
                MAMBA,
                configuration="transformers.MambaConfig",
                more={"layer_idx": 0},
                fits=positive_alone,
            ),
            "Mamba2Mixer": AuthorsLayer(
                f"{MODELS}.mamba2.modeling_mamba2.Mamba2Mixer",
                lambda mixer, width: {
                    "hidden_size": width,
                    "state_size": mixer.sizes[1],
                    "conv_kernel": kernel_size(mixer),
                    "expand": mixer.sizes[0] // width,
                    "num_heads": mixer.head_shape[0],
                    "head_dim": mixer.head_shape[1],
                    "n_groups": 1,
                    "layer_norm_epsilon": mixer.norm.epsilon,
                    "num_hidden_layers": 1,
                },
                MAMBA2,
                configuration="transformers.Mamba2Config",
                more={"layer_idx": 0},
            ),
            "DeltaMixer": AuthorsLayer(
                f"{MODELS}.olmo_hybrid.modeling_olmo_hybrid.OlmoHybridGatedDeltaNet",
                lambda mixer, width: {
                    "hidden_size": width,
                    "linear_num_value_heads": mixer.query_shape[0],
                    "linear_num_key_heads": mixer.query_shape[0],
                    "linear_key_head_dim": mixer.query_shape[1],
                    "linear_value_head_dim": mixer.value_shape[-1],
                    "linear_conv_kernel_dim": kernel_size(mixer),
                    "linear_allow_neg_eigval": mixer.beta_range == 2,
                    "num_hidden_layers": 2,
                    "layer_types": ["linear_attention", "full_attention"],
                },
                {
                    "conv1d.weight": "convolution.filters.weight",
                    "a_proj.weight": "forget_gate.steps.weight",
                    "A_log": "forget_gate.log_rates",
                    "dt_bias": "forget_gate.bias",
                    "b_proj.weight": "betas.weight",
                    "g_proj.weight": "gate.weight",
                    "o_norm.weight": "norm.weight",
                    "o_proj.weight": "output.weight",
                },
                parts={"project.weight": ("q_proj.weight", "k_proj.weight", "v_proj.weight")},
                configuration="transformers.OlmoHybridConfig",
                more={"layer_idx": 0},
                attributes={"o_norm.variance_epsilon": 1e-6},
                fits=one_gated_key,
            ),
            "RWKV4Mixer": AuthorsLayer(
                f"{MODELS}.rwkv.modeling_rwkv.RwkvSelfAttention",
                lambda mixer, width: {
                    "hidden_size": width,
                    "attention_hidden_size": width,
                    "num_hidden_layers": 2,
                },
                {
                    "time_decay": "log_rates",
                    "time_first": "bonus",
                    **{
                        f"{n}.weight": f"{n}.weight"
                        for n in ("key", "value", "receptance", "output")
                    },
                },
                others=shares,
                configuration="transformers.RwkvConfig",
                more={"layer_id": 0},
            ),
        },
    )
)
