"""Gated DeltaProduct.

    H_{t,0} = alpha_t H_{t-1}
    H_{t,j} = (I - beta_{t,j} k_{t,j} k_{t,j}^T) H_{t,j-1} + beta_{t,j} k_{t,j} v_{t,j}^T

for j = 1 .. n_h, with H_t = H_{t,n_h} and o_t = H_t^T q_t: DeltaProduct with the forget gate
alpha_t = exp(-a softplus(w . x_t + b)) in (0, 1) of Gated DeltaNet, once per position and
before the first factor, and an output gate. The transition of a head is alpha_t times a
product of n_h generalised Householder matrices: its norm is at most alpha_t. State of a
layer: N K V numbers and, with a convolution, conv - 1 positions of N (K + n_h K + n_h V).
Parameters of a layer's mixer: D N (K + 2 V + 1 + n_h (K + V + 1))
+ conv N (K + n_h (K + V)) + V + 2 N.

Source: Siems, Carstensen, Zela, Hutter, Pontil & Grazzi (2025), arXiv:2502.10297; the gate is
Yang, Kautz & Hatamizadeh's (2024), arXiv:2412.06464.

Checked: fla-org/flash-linear-attention 0.6.0, its layer in Triton's interpreter, to 2e-6 in
tests/references/test_delta_rules.py. Checked: against a loop over the equations, with gradients,
to 1e-9 in tests/references/test_delta_rules.py.

Departures: values as wide as keys (twice as wide in the library); blocks have no MLP by default
(`--mlp 4 --mlp-kind swiglu` is the library's at width 128, where it has 512 units); the readout
has a bias; a is drawn from (0.001, 16), where 0 as in the source would make log a infinite.
Version 0.6.0 of the library draws maps and convolutions from N(0, 0.02^2). Weight decay leaves the
gate's a and its bias alone, as in the library.
"""

from __future__ import annotations

from statetrack.algebra import HouseholderProduct, Size
from statetrack.models._delta import DeltaMixer, DeltaModel, ForgetGate
from statetrack.models._registry import MODELS
from statetrack.models.deltaproduct import DeltaProductSettings
from statetrack.settings import option


class GatedDeltaProductSettings(DeltaProductSettings):
    """Settings of Gated DeltaProduct."""

    output_gate: bool = option(True, "Whether outputs are multiplied by silu of a linear map.")

    @property
    def recurrence(self) -> HouseholderProduct:
        """Products of n generalised reflections in each head, times a gate."""
        return HouseholderProduct(
            factors=Size("householders", self.householders),
            beta=self.beta,
            sizes=self.sizes,
            structure="alpha x product of n I - beta k k^T",
        )


@MODELS.register("gated-deltaproduct")
class GatedDeltaProduct(DeltaModel[GatedDeltaProductSettings]):
    """Gated DeltaProduct: the state decays, then is corrected along several keys in order."""

    settings_class = GatedDeltaProductSettings
    same_since = "0.2.0"
    source = "Siems et al. 2025, arXiv:2502.10297"

    def make_mixer(self, layer: int) -> DeltaMixer:
        """A gated delta rule with `householders` keys per position."""
        settings = self.settings
        return DeltaMixer(
            settings,
            num_keys=settings.householders,
            forget_gate=ForgetGate(settings.width, settings.heads),
        )
