"""Settings, gates and the frame's first weights, which all models of the xLSTM family use.

Source: Beck et al. (2024), xLSTM: Extended Long Short-Term Memory, arXiv:2405.04517.
"""

from __future__ import annotations

from typing import Literal, TypeVar

from torch import Tensor, nn
from torch.nn import functional

from statetrack.models._blocks import BlockModel
from statetrack.models._settings import BlockSettings
from statetrack.models._small_weights import initialise_mlp, small_deviation
from statetrack.settings import option

ForgetKind = Literal["sigmoid", "exponential"]


class ExponentialGateSettings(BlockSettings):
    """Settings of the recurrences with exponential gates."""

    norm: Literal["rms", "layer", "none"] = option(
        "layer", "Normalisation before each mixer, each MLP and the readout."
    )
    mlp_kind: Literal["gelu", "swiglu", "geglu", "reglu"] = option(
        "geglu",
        "The MLP: gelu is W_2 gelu(W_1 x + b_1) + b_2; swiglu, geglu and reglu are "
        "W_2 (f(W_g x) * W_1 x), with f = silu, gelu or relu.",
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


ExponentialSettingsT = TypeVar("ExponentialSettingsT", bound=ExponentialGateSettings)


class ExponentialGateModel(BlockModel[ExponentialSettingsT]):
    """A block model whose frame starts as that of the source's language models."""

    family = "non-linear"

    def initialise_frame(self) -> None:
        """Embedding, MLPs and readout start small, biases at 0."""
        width, layers = self.settings.width, self.settings.layers
        nn.init.normal_(self.embedding.weight, std=small_deviation(width))
        nn.init.normal_(self.readout.weight, std=small_deviation(width))
        nn.init.zeros_(self.readout.bias)
        for block in self._blocks():
            initialise_mlp(block.mlp, width, layers)
