"""IDS4: S4 with a dense transition matrix that depends on the input.

    H_t = H_{t-1} A(x_t),    A(x) = f(sum_d x_d A_d),    H_0 = I
    y_t = C (H_t w + b) + c + E x_t + e

with a state H [N, N], a trained matrix A_d for every coordinate of the input, f = GELU entry by
entry, and one vector w that the product is read with: row i of H is what the word makes of the
i-th unit vector. So A(x) can be the transition matrix of any symbol, and with N at least the number
of states one layer tracks any automaton; nothing bounds the eigenvalues. Blocks are normalised
after the layer. It is the model that Merrill et al. train beside S4 and Mamba on A5, to show what
the dependence on the input adds.

Source: Merrill, Petty & Sabharwal (2024), arXiv:2404.08819; the equations are those of the authors'
code.

Checked: jopetty/sfirah @ 071f29b (IDS4Block), to 1e-12 in
tests/references/test_recorded_state_space.py; outputs, gradients and first weights. Checked:
against every prefix's product applied to w from its last factor to its first, to 1e-9 in
tests/references/test_state_space_models.py; outputs and gradients.

State: N^2 numbers and a scale per block. Parameters per block: N^2 D, N + 1 for w and b, D (N + 1)
and D (D + 1), and 2 D of the norm.

Departures: N = 32 and width 64; no dropout. The state is stored as H / |H| and log |H|, and one
with a norm above e^40 is read as if it had that norm: the norm after the layer leaves a difference
of 4e-18. That norm scales numbers above 2^30 down before it squares them.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from statetrack.algebra import Size, TransitionMatrices
from statetrack.models._base import through
from statetrack.models._blocks import PlainMixer, PostNormModel
from statetrack.models._linear import Linear
from statetrack.models._registry import MODELS
from statetrack.models._settings import BlockSettings, NormKind
from statetrack.models.full_matrix import Product, first_product, multiply, normalised, product_of
from statetrack.ops import ColumnwiseOperators, DenseOperators, in_full_precision, widened
from statetrack.settings import option

LARGEST_LOG_NORM = 40.0
"""Norm up to which a state is read as it is."""


class IDS4Settings(BlockSettings):
    """Settings of input-dependent S4."""

    norm: NormKind = option("layer", "Normalisation after each block.")
    state: int = option(32, "Rows and columns N of the state.", min=1)
    activation: Literal["gelu", "none"] = option(
        "gelu", "What the matrices' entries go through: gelu, or none for matrices linear in x."
    )

    @property
    def recurrence(self) -> TransitionMatrices:
        """A matrix for every symbol, among them every transition matrix."""
        return TransitionMatrices(state=Size("state", self.state))


class IDS4Mixer(PlainMixer[Product, tuple[Tensor]]):
    """The product of the inputs' matrices, read with one vector. Its state is the product's."""

    def __init__(self, settings: IDS4Settings) -> None:
        super().__init__()
        width, state = settings.width, settings.state
        self.activation = settings.activation
        self.matrices = nn.Parameter(
            torch.eye(state) + torch.randn(width, state, state) / state**0.5
        )  # A_d, [D, N from, N to]
        self.reading = Linear(state, 1)  # w, b
        self.outward = Linear(state, width)  # C, c
        self.skip = Linear(width, width)  # E, e

    def initial_state(self, num_words: int) -> Product:
        """I / |I| [B, N, N] and log |I| [B]."""
        return first_product(self.matrices, num_words)

    def recurrent_part(self, state: Product) -> Tensor:
        """The transpose of H [B, N, N], which can leave the range of floats."""
        return product_of(state)

    def with_recurrent_part(self, state: Product, part: Tensor) -> Product:
        """H / |H| and log |H| of another H."""
        return normalised(part)

    def terms(self, inputs: Tensor, window: tuple[()]) -> tuple[tuple[Tensor], tuple[()]]:
        """The transposes of A(x), [.., N to, N from]."""
        matrices = _mixed(inputs, self.matrices)
        matrices = functional.gelu(matrices) if self.activation == "gelu" else matrices
        return (matrices.mT,), window

    def advance(self, terms: tuple[Tensor], memory: Product) -> tuple[Tensor, Product]:
        """H w + b [B, N], and H."""
        direction, log_norm = memory = multiply(*terms, *memory)
        scale = log_norm.clamp(max=LARGEST_LOG_NORM).exp()
        return through(self.reading, scale[:, None, None] * direction.mT).squeeze(-1), memory

    def operators(self, terms: tuple[Tensor]) -> ColumnwiseOperators:
        """The transposes of A(x), which act on each row of H."""
        matrices = terms[0].flatten(0, 1)
        return ColumnwiseOperators(DenseOperators(matrices), matrices.shape[-1])

    def finish(self, read: Tensor, terms: tuple[Tensor], inputs: Tensor) -> Tensor:
        """C (H w + b) + c + E x + e."""
        return through(self.outward, read) + through(self.skip, inputs)


@MODELS.register("ids4")
class IDS4(PostNormModel[IDS4Settings]):
    """IDS4: a dense matrix for every input, and the product of them as the state."""

    settings_class = IDS4Settings
    mixer_class = IDS4Mixer
    family = "state space, dense"
    source = "Merrill, Petty & Sabharwal 2024, arXiv:2404.08819"


@in_full_precision
def _mixed(inputs: Tensor, matrices: Tensor) -> Tensor:
    """The sums of x_d A_d [.., N, N] of inputs [.., D] and matrices [D, N, N]."""
    mixed: Tensor = (widened(inputs) @ matrices.flatten(1)).unflatten(-1, matrices.shape[1:])
    return mixed
