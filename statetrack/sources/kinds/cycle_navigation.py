"""Cycle navigation: where one stands on a ring after steps back and forth."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from statetrack.sources.automaton import Automaton
from statetrack.sources.kinds import KINDS, argument


@KINDS.register("cycle-navigation")
def cycle_navigation(
    *, size: Annotated[int, argument("how many places the ring has", min=3, max=4096)] = 5
) -> Automaton:
    """The place on a ring after `stay`, `+1` and `-1`: Z_n with three symbols.

    Delétang et al. 2022, arXiv 2207.02098, with a ring of 5.
    """
    places = np.arange(size)
    return Automaton((places[:, None] + [0, 1, -1]) % size, symbols=["stay", "+1", "-1"])
