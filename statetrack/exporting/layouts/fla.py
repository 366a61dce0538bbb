"""Layers of flash-linear-attention.

Source: Yang & Zhang (2024), fla-org/flash-linear-attention 0.6.0, `fla/layers`. Its layers of
DeltaProduct and of its gated form are one class, of which DeltaNet with one key is another.
"""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor

from statetrack.exporting.layer import LAYOUTS, AuthorsLayer, Layout, Weights

PARTS = ("q", "k", "v")


def convolution(mixer: Any) -> dict[str, Any]:
    """Whether there is a short convolution, and how many positions it spans."""
    place = mixer if hasattr(mixer, "convolution") else mixer.projection
    filters = place.convolution.filters
    if filters is None:
        return {"use_short_conv": False}
    return {"use_short_conv": True, "conv_size": filters.kernel_size[0]}


def ratio(size: int, of: int) -> float:
    """A number that times `of`, cut off to an integer, is `size`."""
    found = size / of
    return found if int(found * of) == size else math.nextafter(found, math.inf)


def delta_sizes(mixer: Any, width: int) -> dict[str, Any]:
    """What all delta rules with heads of a given size are built with."""
    heads, key_dim = mixer.key_shape[-2:]
    return {
        "hidden_size": width,
        "num_heads": heads,
        "head_dim": key_dim,
        "expand_v": ratio(mixer.value_shape[-1], key_dim),
        "allow_neg_eigval": mixer.beta_range == 2,
        "norm_eps": mixer.norm.epsilon,
        **convolution(mixer),
    }


DELTA = {
    "a_proj.weight": "forget_gate.steps.weight",
    "A_log": "forget_gate.log_rates",
    "dt_bias": "forget_gate.bias",
    "b_proj.weight": "betas.weight",
    "g_proj.weight": "gate.weight",
    "o_norm.weight": "norm.weight",
    "o_proj.weight": "output.weight",
}
DELTA_PARTS = {
    "project.weight": tuple(f"{part}_proj.weight" for part in PARTS),
    "convolution.filters.weight": tuple(f"{part}_conv1d.weight" for part in PARTS),
}


def short_key(mixer: Any) -> str | None:
    """The gated kernels' limit."""
    size = mixer.key_shape[-1]
    return (
        f"its kernels take keys of size 256 at most, and these have {size}" if size > 256 else None
    )


PLAIN_DELTA = AuthorsLayer(
    "fla.layers.delta_net.DeltaNet",
    lambda mixer, width: {
        "hidden_size": width,
        "num_heads": mixer.query_shape[0],
        "expand_k": math.prod(mixer.query_shape) / width,
        "expand_v": math.prod(mixer.value_shape) / width,
        "use_gate": mixer.gate is not None,
        "allow_neg_eigval": mixer.beta_range == 2,
        "norm_eps": mixer.norm.epsilon,
        **convolution(mixer),
    },
    DELTA,
    DELTA_PARTS,
    fits=short_key,
)
GATED_DELTA = AuthorsLayer(
    "fla.layers.gated_deltanet.GatedDeltaNet",
    lambda mixer, width: delta_sizes(mixer, width) | {"use_gate": mixer.gate is not None},
    DELTA,
    DELTA_PARTS,
    fits=short_key,
)
DELTA_PRODUCT = AuthorsLayer(
    "fla.layers.gated_deltaproduct.GatedDeltaProduct",
    lambda mixer, width: (
        delta_sizes(mixer, width)
        | {
            "use_output_gate": mixer.gate is not None,
            "use_forget_gate": mixer.forget_gate is not None,
            "num_householder": mixer.key_shape[0],
        }
    ),
    DELTA,
    DELTA_PARTS,
    fits=short_key,
)


def delta_rule(mixer: Any) -> AuthorsLayer:
    """With several keys DeltaProduct; with one, Gated DeltaNet where there is a forget gate."""
    if mixer.key_shape[0] > 1:
        return DELTA_PRODUCT
    return PLAIN_DELTA if mixer.forget_gate is None else GATED_DELTA


KIMI_DELTA = AuthorsLayer(
    "fla.layers.kda.KimiDeltaAttention",
    delta_sizes,
    {
        "b_proj.weight": "betas.weight",
        "f_proj.0.weight": "steps.0.weight",
        "f_proj.1.weight": "steps.1.weight",
        "A_log": "log_rates",
        "dt_bias": "bias",
        "g_proj.0.weight": "gate.0.weight",
        "g_proj.1.weight": "gate.1.weight",
        "g_proj.1.bias": "gate.1.bias",
        "o_norm.weight": "norm.weight",
        "o_proj.weight": "output.weight",
    },
    DELTA_PARTS,
    fits=short_key,
)


def same_norms(mixer: Any) -> str | None:
    """One gain for all heads."""
    weight: Tensor = mixer.norm.weight
    return None if (weight == weight[0]).all() else "its norm has the same weights in every head"


GATED_LINEAR = AuthorsLayer(
    "fla.layers.gla.GatedLinearAttention",
    lambda mixer, width: {
        "hidden_size": width,
        "num_heads": mixer.heads,
        "expand_k": ratio(mixer.heads * mixer.key_size, width),
        "gate_logit_normalizer": mixer.slowness,
        "gate_low_rank_dim": mixer.gate[0].out_features,
        "norm_eps": 1e-6,
        **convolution(mixer),
    },
    {
        "gk_proj.0.weight": "gate.0.weight",
        "gk_proj.1.weight": "gate.1.weight",
        "gk_proj.1.bias": "gate.1.bias",
        "g_proj.weight": "output_gate.weight",
        "o_proj.weight": "output.weight",
    },
    {
        "projection.linear.weight": DELTA_PARTS["project.weight"],
        "projection.convolution.filters.weight": DELTA_PARTS["convolution.filters.weight"],
    },
    others=lambda mixer, own: {"g_norm_swish_gate.weight": own.pop("norm.weight")[0]},
    fits=same_norms,
)


HGRN2 = AuthorsLayer(
    "fla.layers.hgrn2.HGRN2Attention",
    lambda mixer, width: {
        "hidden_size": width,
        "num_heads": mixer.heads,
        "expand_ratio": None,
        "layer_idx": 1,
    },
    {
        "q_proj.weight": "query.weight",
        "f_proj.weight": "forget.weight",
        "i_proj.weight": "value.weight",
        "g_norm.weight": "norm.weight",
        "o_proj.weight": "output.weight",
    },
    call=lambda mixer: {
        "lower_bound": mixer.lower_bound().detach().expand(mixer.norm.weight.shape)
    },
)


def low_rank(theirs: str, ours: str, *, bias: bool) -> dict[str, str]:
    """The names of a map of low rank."""
    names = {"lora.0.weight": "inner.weight", "lora.2.weight": "outer.weight"}
    names |= {"lora.2.bias": "bias"} if bias else {}
    return {f"{theirs}.{key}": f"{ours}.{value}" for key, value in names.items()}


NORM = {"g_norm.weight": "norm.weight", "g_norm.bias": "norm.bias"}


def shares_of_7(mixer: Any, own: Weights) -> Weights:
    """The shares of the position before, for r, w, k, v, a and g."""
    shifts = own.pop("shifts")
    return {f"x_{n}": each.view(1, 1, -1) for n, each in zip("rwkvag", shifts, strict=True)}


RWKV7 = AuthorsLayer(
    "fla.layers.rwkv7.RWKV7Attention",
    lambda mixer, width: {
        "hidden_size": width,
        "head_dim": mixer.heads[1],
        **{
            f"{name}_low_rank_dim": mixer.decay.inner.out_features
            for name in ("decay", "gate", "a")
        },
        "norm_eps": mixer.norm.eps / mixer.heads[1],
        "layer_idx": 0,
        "num_hidden_layers": 2,
    },
    {
        "k_k": "removal",
        "k_a": "replacement",
        "r_k": "bonus",
        "r_proj.weight": "receptance.weight",
        "k_proj.weight": "key.weight",
        "v_proj.weight": "value.weight",
        "o_proj.weight": "output.weight",
        **low_rank("w_lora", "decay", bias=True),
        **low_rank("a_lora", "rate", bias=True),
        **low_rank("g_lora", "gate", bias=False),
        **NORM,
    },
    others=shares_of_7,
)

ORDER_OF_6 = [3, 0, 1, 2, 4]
"""The authors' mixtures come in the order r, w, k, v, g, ours in the order w, k, v, r, g."""


def shares_of_6(mixer: Any, own: Weights) -> Weights:
    """The maps of low rank that make five shares of the position before."""
    outer = own.pop("shift_outer")  # [5, R, D]
    _, rank, width = outer.shape
    inner = own.pop("shift_inner.weight").view(5, rank, width)
    return {
        "x_bias": own.pop("shifts")[ORDER_OF_6],
        "x_proj.0.linear.weight": inner[ORDER_OF_6].flatten(0, 1),
        "x_proj.2.weight": outer[ORDER_OF_6].permute(2, 0, 1).flatten(1),
    }


RWKV6 = AuthorsLayer(
    "fla.layers.rwkv6.RWKV6Attention",
    lambda mixer, width: {
        "hidden_size": width,
        "num_heads": mixer.heads[0],
        "expand_k": 1.0,
        "proj_low_rank_dim": mixer.shift_outer.shape[1],
        "gate_low_rank_dim": mixer.decay.inner.out_features,
        "norm_eps": mixer.norm.eps,
        "layer_idx": 0,
    },
    {
        "x_proj.0.mu": "shift",
        "bonus": "bonus",
        "o_proj.weight": "output.weight",
        "r_proj.linear.weight": "receptance.weight",
        "k_proj.linear.weight": "key.weight",
        "v_proj.linear.weight": "value.weight",
        "g_proj.linear.weight": "gate.weight",
        **low_rank("w_proj.linear", "decay", bias=True),
        **NORM,
    },
    others=shares_of_6,
)

LAYOUTS.register("fla")(
    Layout(
        "flash-linear-attention 0.6.0",
        {
            "DeltaMixer": delta_rule,
            "KDAMixer": KIMI_DELTA,
            "GLAMixer": GATED_LINEAR,
            "HGRN2Mixer": HGRN2,
            "RWKV6Mixer": RWKV6,
            "RWKV7Mixer": RWKV7,
        },
    )
)
