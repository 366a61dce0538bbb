"""Parity: whether the number of ones so far is odd."""

from __future__ import annotations

from statetrack.sources.automaton import Automaton
from statetrack.sources.kinds import KINDS


@KINDS.register("parity")
def parity() -> Automaton:
    """Whether the number of ones so far is odd: the group Z_2 in two states."""
    return Automaton([[0, 1], [1, 0]])
