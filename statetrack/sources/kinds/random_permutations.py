"""A random permutation machine: every symbol permutes the states."""

from __future__ import annotations

import itertools
from typing import Annotated

import numpy as np

from statetrack.sources.automaton import Automaton
from statetrack.sources.graphs import reachable
from statetrack.sources.groups import multiply
from statetrack.sources.kinds import KINDS, argument
from statetrack.sources.randomness import Draws


@KINDS.register("random-permutations")
def random_permutations(
    *,
    states: Annotated[int, argument("how many states the machine has", min=3, max=4096)],
    symbols: Annotated[int, argument("how many symbols it reads", min=2, max=256)],
    seed: Annotated[int, argument("which of the random machines", min=0)],
) -> Automaton:
    """Every symbol is a permutation of the states, drawn at random: s' = x(s), label s'.

    Drawn again until every state can be reached and two symbols do not commute.
    """
    draws = Draws(seed)
    while True:
        drawn = [draws.permutation(states) for _ in range(symbols)]
        delta = np.array(drawn).T
        if reachable(delta, 0).all() and any(
            multiply(left, right) != multiply(right, left)
            for left, right in itertools.combinations(drawn, 2)
        ):
            return Automaton(delta)
