"""Layers of the package mamba_ssm, by Mamba's authors.

Source: state-spaces/mamba 2.3.2.post1: mamba_ssm/modules/mamba_simple.py (Mamba; Gu & Dao 2023,
arXiv:2312.00752), mamba2.py (Mamba2; Dao & Gu 2024, arXiv:2405.21060), whose weights also
mamba2_simple.py (Mamba2Simple) takes.
"""

from __future__ import annotations

from typing import Any

from statetrack.exporting.layer import LAYOUTS, AuthorsLayer, Layout

MAMBA = {
    "A_log": "log_rates",
    "D": "skip",
    "in_proj.weight": "inward.weight",
    "conv1d.weight": "convolution.filters.weight",
    "conv1d.bias": "convolution.filters.bias",
    "x_proj.weight": "selection.weight",
    "dt_proj.weight": "time_steps.weight",
    "dt_proj.bias": "time_steps.bias",
    "out_proj.weight": "outward.weight",
}
MAMBA2 = {
    "dt_bias": "time_step_bias",
    "A_log": "log_rates",
    "D": "skip",
    "in_proj.weight": "inward.weight",
    "conv1d.weight": "convolution.filters.weight",
    "conv1d.bias": "convolution.filters.bias",
    "norm.weight": "norm.weight",
    "out_proj.weight": "outward.weight",
}


def positive_alone(mixer: Any) -> str | None:
    """The authors' Mamba has eigenvalues in (0, 1)."""
    if mixer.eigenvalues == "signed":
        return "its eigenvalues are exp(dt A), in (0, 1), and these are 2 exp(dt A) - 1"
    return None


def kernel_size(mixer: Any) -> int:
    """The positions that a mixer's short convolution spans."""
    return int(mixer.convolution.filters.kernel_size[0])


LAYOUTS.register("mamba")(
    Layout(
        "mamba_ssm 2.3.2",
        {
            "MambaMixer": AuthorsLayer(
                "mamba_ssm.modules.mamba_simple.Mamba",
                lambda mixer, width: {
                    "d_model": width,
                    "d_state": mixer.sizes[1],
                    "d_conv": kernel_size(mixer),
                    "expand": len(mixer.skip) // width,
                    "dt_rank": mixer.sizes[0],
                },
                MAMBA,
                fits=positive_alone,
            ),
            "Mamba2Mixer": AuthorsLayer(
                "mamba_ssm.modules.mamba2.Mamba2",
                lambda mixer, width: {
                    "d_model": width,
                    "d_state": mixer.sizes[1],
                    "d_conv": kernel_size(mixer),
                    "expand": mixer.sizes[0] // width,
                    "headdim": mixer.head_shape[1],
                },
                MAMBA2,
            ),
        },
    )
)
