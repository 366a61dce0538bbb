"""DeltaNet.

    S_t = S_{t-1} (I - beta_t k_t k_t^T) + beta_t v_t k_t^T,    o_t = S_t q_t

in each of N heads, with keys of unit length and queries of length 1 / sqrt(K), queries, keys and
values from a short convolution and silu, beta_t = c sigmoid(w . x_t), an RMS norm of each head's
output, and a residual block around it. The transition of a head has the eigenvalue 1 (K - 1 times)
and 1 - beta_t: in (0, 1) for `--beta unit`, in (-1, 1) for `--beta double`, where it can be
a reflection. State of a layer: N K V numbers and, with a convolution, conv - 1 positions of
N (2 K + V). Parameters of a layer's mixer, without output gate:
D N (2 K + 2 V + 1) + conv N (2 K + V) + V.

Source: Yang, Wang, Zhang, Shen & Kim (2024), arXiv:2406.06484; the range [0, 2] of beta is
Grazzi, Siems et al.'s (2024), arXiv:2411.12537. The delta rule in a network is Schlag, Irie &
Schmidhuber's (2021), arXiv:2102.11174.

Checked: fla-org/flash-linear-attention 0.6.0, its layer in Triton's interpreter, to 2e-6 in
tests/references/test_delta_rules.py. Checked: against a loop over the equations, with gradients,
to 1e-9 in tests/references/test_delta_rules.py.

Departures: one block without an MLP by default (the sources stack several, each with a SwiGLU:
`--mlp 4 --mlp-kind swiglu` is theirs at width 128, where it has 512 units); the readout has a
bias; 4 heads of size 16 by default, whatever the width; with `--conv 0`, q and k still go through
silu, as in version 0.6.0 of the library, where the code of arXiv:2411.12537 left it out. Weights
start as in that code, embeddings and readout too; version 0.6.0 draws maps and convolutions from
N(0, 0.02^2).
"""

from __future__ import annotations

from statetrack.algebra import Householder
from statetrack.models._delta import DeltaMixer, DeltaModel, DeltaSettings
from statetrack.models._registry import MODELS


class DeltaNetSettings(DeltaSettings):
    """Settings of DeltaNet."""

    @property
    def recurrence(self) -> Householder:
        """One generalised reflection in each head."""
        return Householder(beta=self.beta, sizes=self.sizes)


@MODELS.register("deltanet")
class DeltaNet(DeltaModel[DeltaNetSettings]):
    """DeltaNet: every position corrects the state along one key."""

    settings_class = DeltaNetSettings
    same_since = "0.2.0"
    mixer_class = DeltaMixer
    source = "Yang et al. 2024, arXiv:2406.06484"
