"""Gated DeltaNet.

    S_t = S_{t-1} (alpha_t (I - beta_t k_t k_t^T)) + beta_t v_t k_t^T,    o_t = S_t q_t

which is DeltaNet with a forget gate alpha_t = exp(-a softplus(w . x_t + b)) in (0, 1) for
each of N heads, values twice as wide as keys, and an output gate silu(W_g x_t). The
transition of a head has the eigenvalue alpha_t (K - 1 times) and alpha_t (1 - beta_t): in
(0, 1) for `--beta unit`, in (-1, 1) for `--beta double`. State of a layer: N K V numbers
and, with a convolution, conv - 1 positions of N (2 K + V). Parameters of a layer's mixer:
D N (2 K + 3 V + 2) + conv N (2 K + V) + V + 2 N.

Source: Yang, Kautz & Hatamizadeh (2024), arXiv:2412.06464; the range [0, 2] of beta is Grazzi,
Siems et al.'s (2024), arXiv:2411.12537.

Checked: fla-org/flash-linear-attention 0.6.0, its layer in Triton's interpreter, to 2e-6 in
tests/references/test_delta_rules.py. Checked: transformers' OlmoHybridGatedDeltaNet, with an
epsilon of 1e-6 and with gradients, to 1e-3 in tests/references/test_delta_rules.py. Checked:
against a loop over the equations, with gradients, to 1e-9 in tests/references/test_delta_rules.py.

Departures: one block without an MLP by default (the source stacks several, each with a SwiGLU:
`--mlp 4 --mlp-kind swiglu` is the library's at width 128, where it has 512 units); 4 heads of size
16, whose keys together are as wide as the default stream (three quarters of it in the source);
the readout has a bias; a is drawn from (0.001, 16), where 0 as in the source would make log a
infinite. Version 0.6.0 of the library draws maps and convolutions from N(0, 0.02^2). Weight decay
leaves the gate's a and its bias alone, as in the library.
"""

from __future__ import annotations

from statetrack.algebra import Householder
from statetrack.models._delta import DeltaMixer, DeltaModel, DeltaSettings, ForgetGate
from statetrack.models._registry import MODELS
from statetrack.settings import option


class GatedDeltaNetSettings(DeltaSettings):
    """Settings of Gated DeltaNet."""

    value_dim: int = option(32, "Size V of a head's values.", min=1)
    output_gate: bool = option(True, "Whether outputs are multiplied by silu of a linear map.")

    @property
    def recurrence(self) -> Householder:
        """One generalised reflection in each head, times a gate."""
        return Householder(beta=self.beta, sizes=self.sizes, structure="alpha (I - beta k k^T)")


@MODELS.register("gated-deltanet")
class GatedDeltaNet(DeltaModel[GatedDeltaNetSettings]):
    """Gated DeltaNet: the state decays, then is corrected along one key."""

    settings_class = GatedDeltaNetSettings
    same_since = "0.2.0"
    source = "Yang, Kautz & Hatamizadeh 2024, arXiv:2412.06464"

    def make_mixer(self, layer: int) -> DeltaMixer:
        """A gated delta rule with one key per position."""
        settings = self.settings
        return DeltaMixer(settings, forget_gate=ForgetGate(settings.width, settings.heads))
