"""RWKV-4.

    a_t = e^{-w} a_{t-1} + e^{k_t} v_t,    b_t = e^{-w} b_{t-1} + e^{k_t}
    wkv_t = (a_{t-1} + e^{u + k_t} v_t) / (b_{t-1} + e^{u + k_t})
    o_t = W_o (sigmoid(r_t) * wkv_t)

coordinate by coordinate, with w = exp(lambda) and u learned. k_t, v_t and r_t are linear, each
in its own mixture of x_t and x_{t-1}, whose shares do not depend on the input. The transition is
diagonal and the same at every step: its eigenvalues e^{-w} lie in (0, 1). The weight e^{k_t} of a
new value depends on the input, the decay does not.

Source: Peng et al. (2023), RWKV: Reinventing RNNs for the Transformer Era, arXiv:2305.13048;
initialisation, and the norm of the embeddings, as in its released training code
(BlinkDL/RWKV-LM, `RWKV-v4neo/src/model.py`).

State: 4 D numbers per layer. Parameters of a layer's mixer: 4 D^2 + 5 D.

Checked: BlinkDL/RWKV-LM @ 038f06b9 (its CUDA kernel as a loop), to 1e-9 in
tests/references/test_rwkv.py. Checked: transformers' RwkvSelfAttention, with gradients, to 2e-4 in
tests/references/test_rwkv.py.

Departures: blocks have no MLP by default, and `--mlp` gives a plain one where the source has its
channel mixing (squared ReLU and a gate, of the inputs at two positions); embeddings start in
(-10^-4, 10^-4) (in the source, within its first learning rate), and the readout has a bias; the
source trains decays and bonuses at two and three times the learning rate.

a and b are stored as multiples of e^m. Any m gives the same wkv; one near the largest exponent so
far, max(m_{t-1} - w, k_t), keeps them in the range of floats.

B batch, T time, D width.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from statetrack import ops
from statetrack.algebra import FixedPositiveLayers, Size
from statetrack.models._base import through
from statetrack.models._blocks import AffineMixer
from statetrack.models._linear import Linear
from statetrack.models._registry import MODELS
from statetrack.models._rwkv import RWKVModel, first_shifts, last_of, log_decays_of, maps_of_shifted
from statetrack.models._settings import ABOUT_NORM, BlockSettings, NormKind
from statetrack.ops import DiagonalOperators, Operators, native, natively, widened
from statetrack.settings import option

BEFORE_ALL = -1e30
"""The m of the initial state: less than any exponent, and finite."""


class Sums(NamedTuple):
    """The sums: a and b divided by e^m [..., 2, D], and m [..., D]."""

    scaled: Tensor
    exponents: Tensor


class RWKV4Settings(BlockSettings):
    """Settings of RWKV-4."""

    norm: NormKind = option("layer", ABOUT_NORM)

    @property
    def recurrence(self) -> FixedPositiveLayers:
        """Gains in (0, 1) that do not depend on the input."""
        return FixedPositiveLayers(layers=Size("layers", self.layers), decays=True)


class RWKV4State(NamedTuple):
    """The sums, and the previous input [B, D]."""

    sums: Sums
    last: Tensor


Terms = tuple[Tensor, Tensor, Tensor]
"""Keys and values, and r, whose sigmoid is the output gate, each [..., D]."""


class RWKV4Mixer(AffineMixer[RWKV4State, Terms]):
    """The time mixing of RWKV-4; the state is the sums, their exponents, the previous input."""

    def __init__(self, settings: BlockSettings, layer: int) -> None:
        super().__init__()
        width = settings.width
        depth = layer / (settings.layers - 1) if settings.layers > 1 else 0.0
        shifts = first_shifts(width, layer / settings.layers, (1, 1, 0.5))
        shifts[1] -= 0.3 * depth
        self.shifts = nn.Parameter(shifts)  # for k, v, r
        self.log_rates = nn.Parameter(
            -5 + 8 * torch.linspace(0, 1, width) ** (0.7 + 1.3 * depth)
        )  # lambda
        zigzag = 0.5 * ((torch.arange(width) + 1) % 3 - 1)
        self.bonus = nn.Parameter(math.log(0.3) + zigzag)  # u
        self.key = Linear(width, width, bias=False)
        self.value = Linear(width, width, bias=False)
        self.receptance = Linear(width, width, bias=False)
        self.output = Linear(width, width, bias=False)
        nn.init.orthogonal_(self.value.weight)
        for linear in (self.key, self.receptance, self.output):
            nn.init.zeros_(linear.weight)

    def initial_state(self, num_words: int) -> RWKV4State:
        """Zero sums [B, 2, D], their exponents [B, D], and zeros [B, D]."""
        zeros = self.bonus.new_zeros(num_words, len(self.bonus))
        return RWKV4State(Sums(zeros.unsqueeze(1).expand(-1, 2, -1), zeros + BEFORE_ALL), zeros)

    def split(self, state: RWKV4State) -> tuple[Tensor, Sums]:
        """The previous input, and the sums."""
        return state.last, state.sums

    def join(self, window: Tensor, memory: Sums) -> RWKV4State:
        """The inverse of `split`."""
        return RWKV4State(memory, window)

    def terms(self, inputs: Tensor, window: Tensor) -> tuple[Terms, Tensor]:
        """K, v and r, from inputs and the inputs one position before."""
        maps = (self.key, self.value, self.receptance)
        keys, values, gate = maps_of_shifted(inputs, window, self.shifts, maps, kernel=self.kernel)
        return (widened(keys), widened(values), gate), last_of(inputs)

    def advance(self, terms: Terms, memory: Sums) -> tuple[Sums, Sums]:
        """The sums before a position, and after it."""
        keys, values, _ = terms
        log_decays = log_decays_of(self.log_rates)
        exponents = torch.maximum(memory.exponents + log_decays, keys).detach()
        kept = torch.exp(memory.exponents - exponents + log_decays)
        added = torch.exp(keys - exponents)
        scaled = kept.unsqueeze(-2) * memory.scaled + _terms(added, values)
        return memory, Sums(scaled, exponents)

    def recur(self, terms: Terms, memory: Sums) -> tuple[Sums | Tensor, Sums]:
        """The sums before each position, or wkv times the gate by a loop, and the last sums."""
        keys, values, _ = terms
        log_decays = log_decays_of(self.log_rates)
        if not natively(self.kernel, keys):
            return wkv_scan(keys, values, log_decays, memory)
        outputs, *last = native.weighted_averages(*terms, log_decays, self.bonus, *memory)
        return outputs, Sums(*last)

    def recurrent_part(self, state: RWKV4State) -> Tensor:
        """The sums a and b, [B, 2, D], which can leave the range of floats."""
        return state.sums.scaled * state.sums.exponents.exp().unsqueeze(-2)

    def with_recurrent_part(self, state: RWKV4State, part: Tensor) -> RWKV4State:
        """Other sums a and b, held as multiples of the same e^m."""
        exponents = state.sums.exponents
        return RWKV4State(Sums(part * (-exponents).exp().unsqueeze(-2), exponents), state.last)

    def operators(self, terms: Terms) -> Operators:
        """The decays e^{-w}, of a and of b, the same at every position."""
        decays = log_decays_of(self.log_rates).exp().repeat(2)
        return DiagonalOperators(decays.expand(terms[0].shape[:2].numel(), -1))

    def finish(self, read: Sums | Tensor, terms: Terms, inputs: Tensor) -> Tensor:
        """Outputs [..., D], from the sums before each position and the position's own term."""
        if isinstance(read, Tensor):
            return through(self.output, read)
        keys, values, gate = terms
        exponents = torch.maximum(read.exponents, self.bonus + keys).detach()
        kept = torch.exp(read.exponents - exponents).unsqueeze(-2)
        own = _terms(torch.exp(self.bonus + keys - exponents), values)
        above, below = (kept * read.scaled + own).unbind(-2)
        return through(self.output, torch.sigmoid(gate) * (above / below))


@MODELS.register("rwkv4")
class RWKV4(RWKVModel[RWKV4Settings]):
    """RWKV-4: averages of values with exponential weights and input-independent decays."""

    settings_class = RWKV4Settings
    family = "diagonal, time-invariant"
    source = "Peng et al. 2023, arXiv:2305.13048"

    def make_mixer(self, layer: int) -> RWKV4Mixer:
        """The time mixing of a layer; its initial weights depend on the layer's depth."""
        return RWKV4Mixer(self.settings, layer)


def wkv_scan(keys: Tensor, values: Tensor, log_decays: Tensor, first: Sums) -> tuple[Sums, Sums]:
    """The sums before each of T positions, and the last ones.

    keys and values [B, T, D], log_decays -w [D]. The exponents of all positions come first, as
    running maxima of k_t + w t, in float64 since w t may be large against k_t.
    """
    times = torch.arange(1, keys.shape[1] + 1, device=keys.device).unsqueeze(-1)
    with torch.no_grad():
        elapsed = -log_decays.double() * times  # [T, D]
        candidates = torch.cat([first.exponents.unsqueeze(1), keys + elapsed], 1)
        exponents = (candidates.cummax(1).values[:, 1:] - elapsed).to(keys.dtype)
    before = torch.cat([first.exponents.unsqueeze(1), exponents[:, :-1]], 1)
    # differences of near exponents are exact, where before - w would be rounded
    gains = torch.exp(before - exponents + log_decays).unsqueeze(-2)
    terms = _terms(torch.exp(keys - exponents), values)  # [B, T, 2, D]
    states = ops.diagonal_recurrence(
        gains.expand_as(terms).flatten(2).transpose(0, 1),
        first.scaled.flatten(1),
        terms.flatten(2).transpose(0, 1),
    )
    scaled = states.transpose(0, 1).unflatten(2, (2, -1))
    scaled_before = torch.cat([first.scaled.unsqueeze(1), scaled[:, :-1]], 1)
    return Sums(scaled_before, before), Sums(scaled[:, -1], exponents[:, -1])


def _terms(weights: Tensor, values: Tensor) -> Tensor:
    """The terms added to a and b, [..., 2, D]: a value times its weight, and the weight."""
    return torch.stack([weights * values, weights], -2)
