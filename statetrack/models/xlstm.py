"""The xLSTM: matrix and scalar LSTM blocks, in an alternating pattern.

    x = x + mlstm(norm(x))                                       in the blocks marked m
    x = x + slstm(norm(x)),    x = x + mlp(norm(x))              in the blocks marked s

with the mixers of `mlstm` and `slstm`. The pattern is repeated over the layers: `ms` is the
source's xLSTM[1:1], `m` xLSTM[1:0], `mmmmmmms` xLSTM[7:1].

Source: Beck, Pöppel, Spanring, Auer, Prudnikova, Kopp, Klambauer, Brandstetter & Hochreiter
(2024), xLSTM: Extended Long Short-Term Memory, arXiv:2405.04517.

Checked: NX-AI/xlstm @ 8901ba0 (package xlstm 2.0.6: a language model of two blocks, xLSTM[1:1], the
matrix LSTM in its parallel form), to 1e-6 in tests/references/test_recorded_matrices.py.

State and parameters: those of its blocks.

Departures: those of `mlstm` and `slstm`.
"""

from __future__ import annotations

from typing import Any

from pydantic import field_validator

from statetrack.algebra import Recurrence, Saturating, Size
from statetrack.models._blocks import Block, Mixer
from statetrack.models._registry import MODELS
from statetrack.models._settings import MOST_LAYERS
from statetrack.models.mlstm import ExponentialGateModel, MLSTMMixer, MLSTMSettings
from statetrack.models.slstm import SLSTMMixer, SLSTMSettings
from statetrack.settings import option


class XLSTMSettings(MLSTMSettings, SLSTMSettings):
    """Settings of the xLSTM."""

    layers: int = option(2, "Number of blocks.", min=1, max=MOST_LAYERS)
    mlp: float = option(
        1.3, "Width M of the MLP in blocks marked s, as a multiple of D; 0: none.", min=0
    )
    pattern: str = option(
        "ms", "Blocks in order, m for matrix and s for scalar LSTM; the pattern repeats."
    )

    @field_validator("pattern")
    @classmethod
    def _only_blocks(cls, pattern: str) -> str:
        if not pattern or set(pattern) - {"m", "s"}:
            raise ValueError("a pattern is made of the letters m and s")
        return pattern

    @property
    def recurrence(self) -> Recurrence:
        """Saturating units, unless the model has no scalar LSTM blocks."""
        if "s" not in self.pattern[: self.layers]:
            return super().recurrence
        return Saturating(units=Size("width", self.width), groups=self.heads, beside=3)


@MODELS.register("xlstm")
class XLSTM(ExponentialGateModel[XLSTMSettings]):
    """xLSTM: matrix and scalar LSTM blocks, in an alternating pattern."""

    settings_class = XLSTMSettings
    same_since = "0.2.0"
    source = "Beck et al. 2024, arXiv:2405.04517"
    training_defaults = {"lrs": (1e-2,), "steps": 1000, "warmup": 0.1, "clip": 1.0}

    def make_mixer(self, layer: int) -> Mixer[Any]:
        """The mixer that the pattern has at this layer."""
        if self._letter(layer) == "m":
            return MLSTMMixer(self.settings)
        return SLSTMMixer(self.settings, layer)

    def make_block(self, layer: int) -> Block:
        """A block whose MLP is left out around a matrix LSTM, which has its own projections."""
        mlp = 0.0 if self._letter(layer) == "m" else self.settings.mlp
        return Block(self.settings.model_copy(update={"mlp": mlp}), self.make_mixer(layer))

    def _letter(self, layer: int) -> str:
        return self.settings.pattern[layer % len(self.settings.pattern)]
