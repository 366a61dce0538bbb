"""SD-SSM: dense transition matrices, mixed from a dictionary and normalised column by column.

    h_t = A(x_t) h_{t-1} + B x_t,    y_t = W norm(h_t) + w
    A(x) = M(x) / column norms,    M(x) = sum_k softmax(S x + s)_k M_k

with N numbers in h, zeros at first, K trained matrices M_k, and every column of A(x) divided by its
p-norm (`power`): columns then lie between one-hot, which is p-norm 1 for every p, and spread out. A
symbol's transition matrix has one-hot columns, so one layer tracks any automaton with N - 1 states.
A matrix expands the 1-norm by at most N^(1 - 1/p), which bounds its eigenvalues: by 1 for p = 1, by
2 at the defaults. `norm` is a layer norm of the state.

Source: Terzic, Hersche, Camposampiero, Hofmann, Sebastian & Rahimi (2025), arXiv:2412.19350.

Checked: IBM/selective-dense-state-space-model @ 68a8f09 (models/SDSSM.py, the whole network as a
layer), to 1e-12 in tests/references/test_recorded_state_space.py; outputs, gradients and first
weights. Checked: against the equations above, one position and one column at a time, to 1e-9 in
tests/references/test_state_space_models.py; outputs and gradients.

State: N numbers per block. Parameters per block: K N^2, (D + 1) K, N D, 2 N of the norm and
(N + 1) D.

Departures: symbols are embedded (the source's are one-hot), and the readout W, w of the source maps
to the width, on which the model's own linear readout acts. K = 8 and p = 1.2 by default, which the
source uses for parity; its other tasks have K from 6 to 18 and p from 1.2 to 1.4.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from statetrack.algebra import Size, TransitionMatrices
from statetrack.models._base import through
from statetrack.models._blocks import BlockModel, DenseMixer
from statetrack.models._layers import LayerNorm
from statetrack.models._linear import Linear
from statetrack.models._registry import MODELS
from statetrack.models._settings import ABOUT_NORM, BlockSettings, NormKind
from statetrack.ops import in_full_precision, widened
from statetrack.settings import option


class SDSSMSettings(BlockSettings):
    """Settings of the selective dense state space model."""

    norm: NormKind = option("none", ABOUT_NORM)
    residual: bool = option(False, "Whether blocks are added to their input.")
    state: int = option(64, "Numbers N remembered.", min=1)
    dictionary: int = option(8, "Matrices K that the transitions are mixed from.", min=1)
    power: float = option(1.2, "The p of the p-norm that columns are divided by.", min=1)

    @property
    def recurrence(self) -> TransitionMatrices:
        """A matrix for every symbol, among them every transition matrix."""
        expansion = self.state ** (1 - 1 / self.power)  # of the 1-norm, by Hoelder's inequality
        return TransitionMatrices(
            state=Size("state", self.state),
            from_zero=True,
            dictionary=Size("dictionary", self.dictionary),
            structure="matrix with normalised columns",
            eigenvalues=f"modulus <= {math.ceil(1000 * expansion) / 1000:g}",
        )


class SDSSMMixer(DenseMixer):
    """The recurrence, its norm and its readout. Its state is h [B, N]."""

    def __init__(self, settings: SDSSMSettings) -> None:
        super().__init__()
        width, state = settings.width, settings.state
        self.power = settings.power
        self.selection = Linear(width, settings.dictionary)  # S, s
        self.writings = Linear(width, state, bias=False)  # B
        bound = (6 / (2 * state)) ** 0.5
        self.dictionary = nn.Parameter(
            torch.empty(settings.dictionary, state, state).uniform_(-bound, bound)
        )  # [K, N to, N from]
        self.state_norm = LayerNorm(state)
        self.outward = Linear(state, width)  # W, w

    def initial_state(self, num_words: int) -> Tensor:
        """Zeros [B, N]."""
        return self.dictionary.new_zeros(num_words, self.dictionary.shape[-1])

    def terms(self, inputs: Tensor, window: tuple[()]) -> tuple[tuple[Tensor, Tensor], tuple[()]]:
        """A(x) [.., N to, N from], and B x [.., N]."""
        added = widened(self.writings(inputs))
        shares = widened(self.selection(inputs)).softmax(-1)
        matrices = _columns_divided(shares, self.dictionary, self.power)
        return (matrices, added), window

    def finish(self, read: Tensor, terms: tuple[Tensor, Tensor], inputs: Tensor) -> Tensor:
        """The states, normalised and mapped."""
        return through(self.outward, self.state_norm(read))


@MODELS.register("sd-ssm")
class SDSSM(BlockModel[SDSSMSettings]):
    """SD-SSM: dense matrices mixed from a dictionary, with normalised columns."""

    settings_class = SDSSMSettings
    mixer_class = SDSSMMixer
    family = "state space, dense"
    source = "Terzic et al. 2025, arXiv:2412.19350"


@in_full_precision
def _columns_divided(shares: Tensor, dictionary: Tensor, power: float) -> Tensor:
    """Mixtures [.., N, N] by shares [.., K], every column divided by its p-norm."""
    mixed = (shares @ dictionary.flatten(1)).unflatten(-1, dictionary.shape[1:])
    return functional.normalize(mixed, p=power, dim=-2, eps=1e-30)
