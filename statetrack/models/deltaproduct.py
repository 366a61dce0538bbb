"""DeltaProduct.

    H_{t,j} = (I - beta_{t,j} k_{t,j} k_{t,j}^T) H_{t,j-1} + beta_{t,j} k_{t,j} v_{t,j}^T

for j = 1 .. n_h, with H_{t,0} = H_{t-1}, H_t = H_{t,n_h} and o_t = H_t^T q_t: n_h steps of
DeltaNet at every position, each with its own key, value and beta. The transition of a head is
a product of n_h generalised Householder matrices: of norm at most 1, the identity plus a
matrix of rank n_h, with determinant prod_j (1 - beta_{t,j}). One factor has real eigenvalues
only; two already make any rotation in a plane where beta reaches 2 (`--beta double`). State
of a layer: N K V numbers and, with a convolution, conv - 1 positions of N (K + n_h K + n_h V).
Parameters of a layer's mixer, without output gate:
D N (K + V + n_h (K + V + 1)) + conv N (K + n_h (K + V)) + V.

Source: Siems, Carstensen, Zela, Hutter, Pontil & Grazzi (2025), arXiv:2502.10297.

Checked: fla-org/flash-linear-attention 0.6.0, its layer without gates in Triton's interpreter, to
2e-6 in tests/references/test_delta_rules.py. Checked: against a loop over the equations, with
gradients, to 1e-9 in tests/references/test_delta_rules.py.

Departures: no output gate by default (`--output-gate`); values as wide as keys (twice as wide in
the library); blocks have no MLP by default (`--mlp 4 --mlp-kind swiglu` is the library's at width
128, where it has 512 units); the readout has a bias; with `--conv 0`, queries and keys still go
through silu. Version 0.6.0 of the library draws maps and convolutions from N(0, 0.02^2).
"""

from __future__ import annotations

from typing import Literal

from statetrack.algebra import HouseholderProduct, Size
from statetrack.models._delta import DeltaMixer, DeltaModel, DeltaSettings
from statetrack.models._registry import MODELS
from statetrack.settings import option


class DeltaProductSettings(DeltaSettings):
    """Settings of DeltaProduct."""

    householders: int = option(2, "Householder factors n_h of a transition.", min=1, max=64)
    beta: Literal["unit", "double"] = option(
        "double",
        "Range of beta: unit is [0, 1], with projections; double is [0, 2], with reflections.",
    )

    @property
    def recurrence(self) -> HouseholderProduct:
        """Products of n generalised reflections in each head."""
        return HouseholderProduct(
            factors=Size("householders", self.householders), beta=self.beta, sizes=self.sizes
        )


@MODELS.register("deltaproduct")
class DeltaProduct(DeltaModel[DeltaProductSettings]):
    """DeltaProduct: every position corrects the state along several keys, one after the other."""

    settings_class = DeltaProductSettings
    same_since = "0.2.0"
    source = "Siems et al. 2025, arXiv:2502.10297"

    def make_mixer(self, layer: int) -> DeltaMixer:
        """A delta rule with `householders` keys per position."""
        return DeltaMixer(self.settings, num_keys=self.settings.householders)
