"""The looped Transformer: blocks that are repeated more often the longer the word is.

    x^(0) = E[symbols];    x^(n) = block_r(... block_1(x^(n-1)));    logits_t = C norm(x_t^(d(t)))

with the same weights in every repetition, and d(t) the number of binary digits of the position t:
1, 2, 2, 3, 3, 3, 3, 4, ... , which is 1 + log_2 t without its fraction. With `--loops n`, d(t) = n.
Each block is one of the Transformer's: softmax attention over everything read so far, then an MLP.
`--before s` puts s blocks that are not repeated before the others, so a word of T symbols is read
at its last position through s + r d(T) blocks.

The source proves that such a depth, growing with log T, is enough to recognise every regular
language, where a fixed one is not unless TC^0 = NC^1. That is of attention to the largest scores
alone, of numbers with O(log T) bits, and of a norm that can leave out coordinates; so nothing is
claimed here of softmax attention with a plain norm.

Source: Merrill & Sabharwal (2025), A Little Depth Goes a Long Way: The Expressive Power of
Log-Depth Transformers, arXiv:2503.03961; repeated blocks are Dehghani et al.'s (2018),
arXiv:1807.03819.

Parameters: those of a Transformer with s + r blocks.

Checked: against Transformers of copied blocks on each prefix, with gradients, to 1e-9 in
tests/references/test_attention_and_gates.py; no code of the authors was found.

Departures: every position is read after its own number of repetitions, so that its label does not
depend on how long the word is (in the source the whole word's length counts); no blocks follow the
repeated ones; attention is softmax, not averaging-hard, and norms leave out no coordinates. Blocks
and first weights are those of this package's Transformer, with its departures.

B batch, T time, D width.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from statetrack.algebra import Undecided
from statetrack.models._base import through
from statetrack.models._linear import compute_by
from statetrack.models._registry import MODELS
from statetrack.models._settings import MOST_LAYERS
from statetrack.models.transformer import Transformer, TransformerBlock, TransformerSettings
from statetrack.settings import option


class LoopedTransformerSettings(TransformerSettings):
    """Settings of the looped Transformer."""

    layers: int = option(1, "Number r of blocks that are repeated.", min=1, max=MOST_LAYERS)
    before: int = option(
        0, "Number s of blocks before those, which are not repeated.", min=0, max=MOST_LAYERS
    )
    loops: int = option(
        0,
        "How often the blocks are repeated; 0: as often as the position has binary digits.",
        min=0,
        max=MOST_LAYERS,
    )

    @property
    def recurrence(self) -> Undecided:  # type: ignore[override]
        """Softmax attention of growing depth: no rule is known."""
        return Undecided(state=False)


@MODELS.register("looped-transformer")
class LoopedTransformer(Transformer):
    """Looped Transformer: blocks repeated as often as the position has binary digits."""

    settings_class = LoopedTransformerSettings
    source = "Merrill & Sabharwal 2025, arXiv:2503.03961"

    def __init__(
        self, settings: LoopedTransformerSettings, *, num_symbols: int, num_labels: int
    ) -> None:
        super().__init__(settings, num_symbols=num_symbols, num_labels=num_labels)
        self.loops = settings.loops
        self.before = nn.ModuleList(TransformerBlock(settings) for _ in range(settings.before))
        compute_by(settings.kernel, self.before)

    def forward(self, symbols: Tensor) -> Tensor:
        """Logits [B, T, C] of int64 symbols [B, T], each after its position's repetitions.

        Raises `SettingsError` for words longer than the number of learned positions.
        """
        stream, bias = self.embedded(symbols)
        for block in self.before:
            stream = block(stream, bias)
        times = self.repetitions(symbols.shape[1])
        here = torch.tensor(times, device=symbols.device).unsqueeze(-1)  # [T, 1]
        result = torch.zeros_like(stream[:, self.bos :])
        for done in range(1, max(times, default=0) + 1):
            for block in self.blocks:
                stream = block(stream, bias)
            result = torch.where(here == done, stream[:, self.bos :], result)
        return through(self.readout, self.norm(result))

    def repetitions(self, length: int) -> list[int]:
        """How often the blocks are repeated for each of the first positions."""
        return [self.loops or place.bit_length() for place in range(1, length + 1)]
