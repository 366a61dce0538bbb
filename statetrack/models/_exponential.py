"""Settings, gates and initial weights that both recurrences of the xLSTM use.

Source: Beck et al. (2024), xLSTM: Extended Long Short-Term Memory, arXiv:2405.04517.
"""

from __future__ import annotations

from typing import Literal

from torch import Tensor
from torch.nn import functional

from statetrack.models._settings import BlockSettings
from statetrack.settings import option

ForgetKind = Literal["sigmoid", "exponential"]


class ExponentialGateSettings(BlockSettings):
    """Settings of the recurrences with exponential gates."""

    norm: Literal["rms", "layer", "none"] = option(
        "layer", "Normalisation before each mixer, each MLP and the readout."
    )
    heads: int = option(4, "Number of heads, which see channels of their own.", min=1)
    conv: int = option(
        4, "Positions that the short convolution of a mixer spans; 0 leaves it out.", min=0
    )
    forget: ForgetKind = option(
        "sigmoid", "The forget gate's activation; the input gate's is exponential."
    )


def log_forget(kind: ForgetKind, logits: Tensor) -> Tensor:
    """The logarithm of a forget gate."""
    return functional.logsigmoid(logits) if kind == "sigmoid" else logits


def small_deviation(width: int) -> float:
    """The standard deviation of the initial weights of input projections."""
    return float((2 / (5 * width)) ** 0.5)
