"""The "full matrix simple" model: a product of one free matrix for every symbol.

    H_t = A(x_t) H_{t-1},    H_0 = I,    logits = W P(vec H_t) + c

with A(x) a learned n x n matrix for every symbol and P the projection to the unit ball, P(h) = h /
max(1, |h|). The readout gets the whole product, not its action on one vector, so words with
different products can be told apart; the eigenvalues of the matrices are not bounded. It is a
bilinear RNN whose n columns share their operators, with a readout that does not depend on the
state's norm above 1. State: n^2 numbers and a scale. Parameters: V n^2 + C (n^2 + 1).

Source: Grazzi, Siems et al. (2024), arXiv:2411.12537 (the baseline of the S5 experiments).

Checked: against products of the matrices taken anew for every prefix, to 1e-9 in
tests/references/test_full_matrices.py; the code of this baseline was not found.

Departures: matrices start as scaled random orthogonal ones (the source does not give its
initialisation). The state is stored as H_t / |H_t| and log |H_t|, from which P(vec H_t) follows
exactly, so it stays within the range of floats on words of any length.

B batch, T time, V symbols, C labels, n matrix size.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from statetrack.algebra import Dense, Size
from statetrack.models._base import RecurrentModel, State, WithTransition
from statetrack.models._linear import Linear
from statetrack.models._registry import MODELS
from statetrack.models._settings import ModelSettings
from statetrack.ops import ColumnwiseOperators, DenseOperators, in_full_precision, widened
from statetrack.settings import option

Product = tuple[Tensor, Tensor]
"""A product H / |H| [B, n, n], and log |H| [B]."""


class FullMatrixSettings(ModelSettings):
    """Settings of the full-matrix model."""

    size: int = option(32, "Rows and columns n of each matrix.", min=1)
    gain: float = option(1.0, "Scale of the orthogonal matrices at the start.", above=0)

    @property
    def recurrence(self) -> Dense:
        """A free matrix for every symbol; the state is the product of them."""
        return Dense(size=Size("size", self.size), readout_bias=True, reads_product=True)


@MODELS.register("full-matrix")
class FullMatrix(RecurrentModel, WithTransition):
    """Full matrix simple: the product of the symbols' free matrices, read as a whole."""

    settings_class = FullMatrixSettings
    family = "bilinear"
    source = "Grazzi, Siems et al. 2024, arXiv:2411.12537"
    training_defaults = {"lrs": (1e-2,), "steps": 1000}

    def __init__(self, settings: FullMatrixSettings, *, num_symbols: int, num_labels: int) -> None:
        super().__init__(settings, num_symbols=num_symbols, num_labels=num_labels)
        size = settings.size
        matrices, _ = torch.linalg.qr(torch.randn(num_symbols, size, size))
        self.matrices = nn.Parameter(settings.gain * matrices)  # [V, n, n]
        self.readout = Linear(size * size, num_labels)

    def initial_state(self, num_words: int) -> State:
        """I / |I| [B, n, n] and log |I| [B] for every word."""
        return first_product(self.matrices, num_words)

    def step(self, symbols: Tensor, state: State) -> tuple[Tensor, State]:
        """Logits [B, C] and the next state, after one symbol per word, [B]."""
        direction, log_norm = state
        assert isinstance(direction, Tensor) and isinstance(log_norm, Tensor)
        direction, log_norm = multiply(self.matrices[symbols], direction, log_norm)
        projected = log_norm.clamp(max=0).exp().unsqueeze(-1) * direction.flatten(1)
        return self.readout(projected), (direction, log_norm)

    def recurrent_part(self, state: Product) -> Tensor:
        """H [B, n, n], which can leave the range of floats."""
        return product_of(state)

    def with_recurrent_part(self, state: Product, part: Tensor) -> Product:
        """H / |H| and log |H| of another H."""
        return normalised(part)

    def transition(self, inputs: Tensor, state: Product | None = None) -> ColumnwiseOperators:
        """The matrices of symbols [B, T], on each of the n columns."""
        matrices = DenseOperators(self.matrices[inputs.flatten()])
        return ColumnwiseOperators(matrices, self.matrices.shape[-1])


def first_product(matrices: Tensor, num_words: int) -> Product:
    """I / |I| and log |I| for every word, for matrices [..., n, n]."""
    size = matrices.shape[-1]
    identity = torch.eye(size, dtype=matrices.dtype, device=matrices.device) / size**0.5
    log_norms = torch.full_like(matrices[0, 0, 0], size**0.5).log()
    return identity.expand(num_words, -1, -1), log_norms.expand(num_words)


def product_of(state: Product) -> Tensor:
    """H [B, n, n]."""
    direction, log_norm = state
    return direction * log_norm.exp()[:, None, None]


def normalised(product: Tensor) -> Product:
    """H / |H| and log |H| of H [B, n, n]."""
    norm = torch.linalg.vector_norm(product, dim=(1, 2))
    return product / norm[:, None, None], norm.log()


@in_full_precision
def multiply(matrices: Tensor, direction: Tensor, log_norm: Tensor) -> Product:
    """Direction [B, n, n] and log-norm [B] of a product with matrices [B, n, n] from the left."""
    product = widened(matrices) @ direction
    norm = torch.linalg.vector_norm(product, dim=(-2, -1)).clamp_min(
        torch.finfo(product.dtype).tiny
    )
    return product / norm[..., None, None], log_norm + norm.log()
