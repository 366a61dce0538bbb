"""Residual blocks that are normalised after their mixer rather than before it.

    y = x + mixer(x)  (mixer(x) without a residual),    y = y + stage(y),    x = norm(y)

where the stage after the mixer is optional; logits = C x + c, without a further norm.

B batch, T time, D width of the residual stream.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from statetrack.models._base import through
from statetrack.models._blocks import (
    LARGEST_SQUARED,
    Block,
    BlockModel,
    Mixer,
    SettingsT,
    make_norm,
)
from statetrack.models._settings import BlockSettings


class PostNormModel(BlockModel[SettingsT]):
    """A block model whose blocks end with a norm; a subclass may give them a stage."""

    def __init__(self, settings: SettingsT, *, num_symbols: int, num_labels: int) -> None:
        super().__init__(settings, num_symbols=num_symbols, num_labels=num_labels)
        self.norm = nn.Identity()  # the last block's output is normalised

    def make_block(self, layer: int) -> Block:
        """A block with the stage of `make_stage`."""
        return PostNormBlock(self.settings, self.make_mixer(layer), self.make_stage())

    def make_stage(self) -> nn.Module | None:
        """What is added to a block's stream after its mixer; None: nothing."""
        return None


class PostNormBlock(Block):
    """Mixer, stage and (unless its width is 0) norm and MLP, each added; then a norm."""

    def __init__(
        self, settings: BlockSettings, mixer: Mixer[Any], stage: nn.Module | None = None
    ) -> None:
        super().__init__(settings, mixer)
        self.mixer_norm = nn.Identity()
        self.stage = stage
        width = settings.width
        self.norm = (
            WideLayerNorm(width) if settings.norm == "layer" else make_norm(settings.norm, width)
        )

    def _finish(self, stream: Tensor, mixed: Tensor) -> Tensor:
        stream = stream + mixed if self.residual else mixed
        for module in (self.stage, self.mlp):
            if module is not None:
                stream = stream + through(module, stream)
        return through(self.norm, stream)


class WideLayerNorm(nn.LayerNorm):
    """Layer normalisation without overflow at any magnitude (see `rms_norm`)."""

    def forward(self, inputs: Tensor) -> Tensor:
        """Normalise over the last axis."""
        largest = inputs.detach().abs().amax(-1, keepdim=True)
        return super().forward(inputs * (largest / LARGEST_SQUARED).clamp_min(1.0).reciprocal())
