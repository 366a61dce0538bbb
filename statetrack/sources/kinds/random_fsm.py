"""A random machine: transitions drawn at random, the state is the label."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from statetrack.sources.automaton import Automaton
from statetrack.sources.graphs import reachable
from statetrack.sources.kinds import KINDS, argument
from statetrack.sources.randomness import Draws


@KINDS.register("random-fsm")
def random_fsm(
    *,
    states: Annotated[int, argument("how many states the machine has", min=2, max=4096)],
    symbols: Annotated[int, argument("how many symbols it reads", min=1, max=256)],
    seed: Annotated[int, argument("which of the random machines", min=0)],
) -> Automaton:
    """Every transition leads to a state drawn at random, and all states can be reached.

    While a state cannot be reached, a transition that the reached states can spare (it is not
    the one by which a state is first reached) is drawn at random and led to a random one of those
    that cannot. The label is the state, so no two states are alike.
    """
    draws = Draws(seed)
    delta = np.array([[draws.below(states) for _ in range(symbols)] for _ in range(states)])
    while not (seen := reachable(delta, 0)).all():
        spare = _spare_transitions(delta)
        state, symbol = spare[draws.below(len(spare))]
        lost = np.flatnonzero(~seen)
        delta[state, symbol] = lost[draws.below(len(lost))]
    return Automaton(delta)


def _spare_transitions(delta: np.ndarray) -> list[tuple[int, int]]:
    """The transitions of reached states that lead to a state reached before, breadth first."""
    found, seen, spare = [0], {0}, []
    for state in found:
        for symbol, target in enumerate(delta[state].tolist()):
            if target in seen:
                spare.append((state, symbol))
            else:
                seen.add(target)
                found.append(target)
    return spare
