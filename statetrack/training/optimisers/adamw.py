"""AdamW: Adam with decoupled weight decay (Loshchilov & Hutter 2019, arXiv:1711.05101), fused."""

from __future__ import annotations

from statetrack.training.optimisers.adam import Adam
from statetrack.training.settings import OPTIMISERS


@OPTIMISERS.register("adamw")
class AdamW(Adam):
    """Adam with decoupled weight decay."""

    of_torch = "AdamW"
