"""Layers of the package xlstm, by the xLSTM's authors.

Their norms hold a weight less 1. Their scalar LSTM hands what it calls `fgate` to its cell as the
input gate, and `igate` as the forget gate.

Source: NX-AI/xlstm 2.0.6: blocks/mlstm/layer.py (mLSTMLayer), blocks/slstm/layer.py (sLSTMLayer);
Beck et al. (2024), arXiv:2405.04517.
"""

from __future__ import annotations

from typing import Any

import torch

from statetrack.exporting.layer import LAYOUTS, AuthorsLayer, Layout, Weights

LONGEST = 4096
"""The longest word of the matrix LSTM in its parallel form, whose mask has this length's square."""


def sigmoid_alone(mixer: Any) -> str | None:
    """The authors' cells have a sigmoid for a forget gate."""
    if mixer.forget_kind != "sigmoid":
        return "its forget gate is a sigmoid, and this one an exponential"
    return None


def matrix_fits(mixer: Any) -> str | None:
    """As `sigmoid_alone`; and the layer always has a convolution."""
    if mixer.convolution.filters is None:
        return "it has a convolution of one position or more, and this one is left out"
    return sigmoid_alone(mixer)


def matrix_weights(mixer: Any, own: Weights) -> Weights:
    """Queries and keys apart, block by block; the two gates apart."""
    queries, keys = own.pop("queries_and_keys.weight").chunk(2, -1)
    found = {
        "q_proj.weight": queries.mT,
        "k_proj.weight": keys.mT,
        "v_proj.weight": own.pop("values.weight").mT,
        "mlstm_cell.outnorm.weight": own.pop("norm.weight").flatten() - 1,
    }
    for kind in ("weight", "bias"):
        both = own.pop(f"gates.{kind}").chunk(2)
        found |= {f"mlstm_cell.{n}gate.{kind}": each for n, each in zip("if", both, strict=True)}
    return found


def scalar_weights(mixer: Any, own: Weights) -> Weights:
    """The four gates apart; the biases of i, f, z, o in one vector, that of i is 0."""
    pairs = own.pop("input_and_forget.weight"), own.pop("update_and_output.weight")
    gates = [gate for pair in pairs for gate in pair.chunk(2, -1)]
    found = {f"{n}gate.weight": gate.mT for n, gate in zip("fizo", gates, strict=True)}
    biases = [own.pop(f"{name}_bias") for name in ("forget", "update", "output")]
    found["slstm_cell._bias_"] = torch.stack([torch.zeros_like(biases[0]), *biases]).flatten()
    found["slstm_cell._recurrent_kernel_"] = own.pop("recurrent").mT
    found["group_norm.weight"] = own.pop("norm.weight").flatten() - 1
    return found


def kernel_size(mixer: Any) -> int:
    """The positions that the short convolution spans; 0 where it is left out."""
    filters = mixer.convolution.filters
    return 0 if filters is None else int(filters.kernel_size[0])


CONVOLUTION = {f"conv1d.conv.{kind}": f"convolution.filters.{kind}" for kind in ("weight", "bias")}

LAYOUTS.register("xlstm")(
    Layout(
        "xlstm 2.0.6",
        {
            "MLSTMMixer": AuthorsLayer(
                "xlstm.mLSTMLayer",
                lambda mixer, width: {
                    "embedding_dim": width,
                    "num_heads": mixer.heads,
                    "proj_factor": mixer.inner / width,
                    "round_proj_up_to_multiple_of": 1,
                    "conv1d_kernel_size": kernel_size(mixer),
                    "qkv_proj_blocksize": mixer.values.weight.shape[1],
                    "context_length": LONGEST,
                },
                {
                    "proj_up.weight": "up.weight",
                    "proj_down.weight": "down.weight",
                    "learnable_skip": "skip",
                    **CONVOLUTION,
                },
                others=matrix_weights,
                configuration="xlstm.mLSTMLayerConfig",
                fits=matrix_fits,
            ),
            "SLSTMMixer": AuthorsLayer(
                "xlstm.sLSTMLayer",
                lambda mixer, width: {
                    "embedding_dim": width,
                    "num_heads": mixer.heads,
                    "conv1d_kernel_size": kernel_size(mixer),
                    "backend": "vanilla",
                    "dtype": "float32",
                },
                CONVOLUTION,
                others=scalar_weights,
                configuration="xlstm.sLSTMLayerConfig",
                fits=sigmoid_alone,
            ),
        },
    )
)
