"""Modular addition: the sum of the numbers so far, modulo m."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from statetrack.sources.automaton import Automaton
from statetrack.sources.kinds import KINDS, argument


@KINDS.register("modular-addition")
def modular_addition(
    *, m: Annotated[int, argument("the modulus: symbols and labels are 0 to m-1", min=2, max=4096)]
) -> Automaton:
    """The sum of the numbers so far modulo m: s' = s + x mod m, the group Z_m."""
    numbers = np.arange(m)
    return Automaton((numbers[:, None] + numbers) % m)
