"""The linear recurrent unit (LRU).

    h_t = lambda * h_{t-1} + gamma * (B u_t),    y_t = Re(C h_t) + D * u_t
    lambda = exp(-exp(nu) + i exp(theta))

with N complex numbers in h, dense complex B [N, D] and C [D, N], and gamma > 0 trained from
sqrt(1 - |lambda|^2); y goes through GELU and a gated linear map (GLU). The transition is the same
at every step; its eigenvalues lie inside the unit circle for all parameters.

Source: Orvieto, Smith, Gu, Fernando, Gulcehre, Pascanu & De (2023), arXiv:2303.06349.

State: 2 N numbers per block. Parameters per block: 4 D N + 3 N + D for the unit and 2 D (D + 1) for
the gated map.

Checked: NicolasZucchet/minimal-LRU @ bbd71b1 (a public implementation; the authors released none),
to 1e-12 in tests/references/test_recorded_state_space.py; outputs and first weights. Checked:
against the impulse response summed over all earlier positions, to 1e-9 in
tests/references/test_state_space_models.py; outputs and gradients.

Departures: normalisation before the unit (RMS by default) where the paper normalises batches; no
dropout; one learning rate and weight decay for all weights, where the public implementation has a
smaller rate and no decay for lambda, gamma and B. GELU is the tanh approximation, as there. At the
start |lambda|^2 is kept between 1e-6 and 1 - 1e-6.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from statetrack.algebra import Size, TimeInvariantLayers
from statetrack.models._blocks import BlockModel, DiagonalMixer, DiagonalTerms, PlainMixer
from statetrack.models._linear import Linear, linear_map
from statetrack.models._registry import MODELS
from statetrack.models._settings import BlockSettings
from statetrack.ops import widened
from statetrack.settings import option

DEVIATION_OF_CUT_NORMAL = 0.87962566103423978
"""Standard deviation of N(0, 1) cut off at -2 and 2."""


class LRUSettings(BlockSettings):
    """Settings of the linear recurrent unit."""

    state: int = option(64, "Complex numbers N remembered.", min=1)
    least_radius: float = option(
        0.0, "Least modulus of the eigenvalues at the start.", min=0, max=0.9999
    )
    largest_radius: float = option(
        1.0, "Largest modulus of the eigenvalues at the start.", above=0, max=1
    )
    largest_phase: float = option(
        6.28, "Largest phase of the eigenvalues at the start.", above=0, max=6.28
    )

    @property
    def recurrence(self) -> TimeInvariantLayers:
        """Complex gains that do not depend on the input."""
        return TimeInvariantLayers(layers=Size("layers", self.layers))


class LRUMixer(PlainMixer[Tensor, DiagonalTerms], DiagonalMixer[Tensor]):
    """The unit, GELU, gated linear map. Its state is h [B, N], complex."""

    def __init__(self, settings: LRUSettings) -> None:
        super().__init__()
        width, state = settings.width, settings.state
        least, largest = settings.least_radius**2, settings.largest_radius**2
        square = least + (largest - least) * torch.rand(state)  # |lambda|^2, uniform on the ring
        square = square.clamp(1e-6, 1 - 1e-6)
        self.log_damping = nn.Parameter((-0.5 * square.log()).log())  # nu
        self.log_phases = nn.Parameter((settings.largest_phase * torch.rand(state)).log())  # theta
        self.log_scales = nn.Parameter(0.5 * torch.log1p(-square))  # log gamma
        self.writings = nn.Parameter(torch.randn(2, state, width) / (2 * width) ** 0.5)  # B
        self.readings = nn.Parameter(torch.randn(2, width, state) / state**0.5)  # C
        self.skip = nn.Parameter(torch.randn(width))
        self.outward = Linear(width, 2 * width)
        nn.init.zeros_(self.outward.bias)
        # LeCun's normal distribution, cut off at two of its deviations, with variance 1 / D.
        deviation = width**-0.5 / DEVIATION_OF_CUT_NORMAL
        nn.init.trunc_normal_(self.outward.weight, 0.0, deviation, -2 * deviation, 2 * deviation)

    def initial_state(self, num_words: int) -> Tensor:
        """Complex zeros [B, N]."""
        gains = self._gains().detach()
        return gains.new_zeros(num_words, len(gains))

    def terms(self, inputs: Tensor, window: tuple[()]) -> tuple[DiagonalTerms, tuple[()]]:
        """Lambda, the same at every position, and gamma * (B u)."""
        first = inputs.movedim(-2, 0)  # time first, as the recurrence takes it
        real, imaginary = (
            linear_map(first, part, None, self.kernel) for part in self.writings.unbind(0)
        )
        added = self.log_scales.exp() * torch.complex(widened(real), widened(imaginary))
        terms = DiagonalTerms(self._gains().expand_as(added), added)
        return DiagonalTerms(*(part.movedim(0, -2) for part in terms)), window

    def finish(self, read: Tensor, terms: DiagonalTerms, inputs: Tensor) -> Tensor:
        """Re(C h) + D * u, through GELU and the gated map."""
        real, imaginary = (
            linear_map(part, weight, None, self.kernel)
            for part, weight in zip((read.real, read.imag), self.readings.unbind(0), strict=True)
        )
        outputs = functional.gelu(real - imaginary + self.skip * inputs, approximate="tanh")
        return functional.glu(self.outward(outputs), -1)

    def _gains(self) -> Tensor:
        """Lambda, [N]."""
        return torch.exp(torch.complex(-self.log_damping.exp(), self.log_phases.exp()))


@MODELS.register("lru")
class LRU(BlockModel[LRUSettings]):
    """Linear recurrent unit: an input-independent complex diagonal recurrence."""

    settings_class = LRUSettings
    mixer_class = LRUMixer
    family = "diagonal, time-invariant"
    source = "Orvieto et al. 2023, arXiv:2303.06349"
