"""Gridworld: where one stands in a corridor with a wall at each end."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np

from statetrack.sources.automaton import Automaton
from statetrack.sources.kinds import KINDS, argument


@KINDS.register("gridworld")
def gridworld(
    *,
    size: Annotated[int, argument("how many places the corridor has", min=2, max=4096)],
    labels: Annotated[
        Literal["place", "wall"],
        argument("place: where one stands; wall: whether that is beside a wall"),
    ] = "place",
) -> Automaton:
    """The place in a corridor after steps `left` and `right`, which do nothing against a wall.

    Liu et al. 2022, arXiv 2210.10749. One starts at the left wall. Often taken for
    `cycle-navigation`, whose ring makes a group: here steps cannot be undone, and all is aperiodic.
    """
    places = np.arange(size)
    delta = np.stack([np.maximum(places - 1, 0), np.minimum(places + 1, size - 1)], axis=1)
    if labels == "place":
        return Automaton(delta, symbols=["left", "right"])
    beside = (places == 0) | (places == size - 1)
    return Automaton(delta, beside.astype(int), symbols=["left", "right"], labels=["0", "1"])
