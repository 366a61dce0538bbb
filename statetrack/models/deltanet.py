"""DeltaNet.

    S_t = S_{t-1} (I - beta_t k_t k_t^T) + beta_t v_t k_t^T,    o_t = S_t q_t

in each of N heads, with keys and queries of unit length, queries, keys and values from a
short convolution and silu, beta_t = c sigmoid(w . x_t), an RMS norm of each head's output,
and a residual block around it. The transition of a head has the eigenvalue 1 (K - 1 times)
and 1 - beta_t: in (0, 1) for `--beta unit`, in (-1, 1) for `--beta double`, where it can be
a reflection. State of a layer: N K V numbers and, with a convolution, conv - 1 positions of
N (2 K + V). Parameters of a layer's mixer, without output gate:
D N (2 K + 2 V + 1) + conv N (2 K + V) + V.

Source: Yang, Wang, Zhang, Shen & Kim (2024), arXiv:2406.06484; the range [0, 2] of beta is
Grazzi, Siems et al.'s (2024), arXiv:2411.12537. The delta rule in a network is Schlag, Irie &
Schmidhuber's (2021), arXiv:2102.11174.

Departures: one layer without an MLP by default (the sources stack several, each with a gated
MLP); queries are not scaled by 1 / sqrt(K): the norm of the outputs cancels such a factor.
"""

from __future__ import annotations

from statetrack.algebra.recurrences import Householder
from statetrack.models import MODELS
from statetrack.models._blocks import BlockModel
from statetrack.models._delta import DeltaMixer, DeltaSettings


class DeltaNetSettings(DeltaSettings):
    """Settings of DeltaNet."""

    @property
    def recurrence(self) -> Householder:
        """One generalised reflection in each head."""
        return Householder(beta=self.beta, layers=self.layers)


@MODELS.register("deltanet")
class DeltaNet(BlockModel[DeltaNetSettings]):
    """DeltaNet: every position corrects the state along one key."""

    settings_class = DeltaNetSettings
    mixer_class = DeltaMixer
    family = "delta rule"
    source = "Yang et al. 2024, arXiv:2406.06484"
