"""The block-diagonal bilinear RNN.

    h_t = A(x_t) h_{t-1},    A(x) = blockdiag(A_1(x), .., A_N(x)),    logits = C h_t

with N = H / b free blocks of size b, each linear in x: H b D parameters. Size 1 is the real
diagonal model, size H the full one. A group of states can be tracked as soon as the blocks
are as large as the largest irreducible part of one of its faithful real representations.

Source: Ebrahimi & Memisevic (2025), arXiv:2505.21749 (the block-diagonal models).

Checked: against the equation above with its matrices A(x) written out, to 1e-9 in
tests/references/test_bilinear.py; no code was released.

Departures: symbols are one-hot by default, and H = 60 (256 in the source); blocks start as random
orthogonal matrices, because the source does not give its initialisation; whether the first state
is trained is not known, here it is.
"""

from __future__ import annotations

import torch

from statetrack.algebra import Blocks, Size
from statetrack.errors import setting
from statetrack.models._base import LinearModel, require_divisor
from statetrack.models._registry import MODELS
from statetrack.models._settings import LinearSettings
from statetrack.ops import BlockOperators
from statetrack.settings import option


class BilinearBlockSettings(LinearSettings):
    """Settings of the block-diagonal bilinear RNN."""

    hidden: int = option(
        60, "Width H of the hidden state, a multiple of the block size.", min=1, max=10**6
    )
    block_size: int = option(2, "Size b of each block.", min=1)
    gain: float = option(1.0, "Scale of the orthogonal blocks at the start.", above=0)

    @property
    def recurrence(self) -> Blocks:
        """Free blocks for every symbol."""
        return Blocks(size=Size("block_size", self.block_size), additive=self.additive)


@MODELS.register("bilinear-block")
class BilinearBlock(LinearModel):
    """Block-diagonal bilinear RNN: small free blocks for every symbol."""

    settings_class = BilinearBlockSettings
    operators_by_replica = True
    training_defaults = {"lrs": (1e-1,), "steps": 1500, "finish": "exact"}

    def __init__(
        self, settings: BilinearBlockSettings, *, num_symbols: int, num_labels: int
    ) -> None:
        super().__init__(settings, num_symbols=num_symbols, num_labels=num_labels)
        require_divisor(settings.hidden, "block_size", settings.block_size, setting("hidden"))
        size = settings.block_size
        shape = (self.embedding.num_rows, settings.hidden // size, size, size)
        blocks, _ = torch.linalg.qr(torch.randn(shape))
        self.weight = self.embedding.parameter(settings.gain * blocks)

    def operators(self) -> BlockOperators:
        """A(x) as blocks [V, N, b, b]."""
        return BlockOperators(self.embedding(self.weight))
