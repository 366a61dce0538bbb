"""Words that are hard to follow: random ones, powers of short words, long runs of one symbol.

B words, T time, V symbols, S states.
"""

from __future__ import annotations

import numpy as np

from statetrack.constructions import RANDOM, allowed_words
from statetrack.sources import Automaton, Integers

LONGEST_BASE = 6
"""Length of the longest word whose powers are taken."""


def hard_words(automaton: Automaton, num_words: int, length: int, seed: int) -> Integers:
    """Words `[B, T]`: of every three, one random, one mostly a power, one with long runs.

    Where a plan asks for a symbol that is never drawn in the state reached, one that is drawn
    there takes its place.
    """
    draw = np.random.default_rng(seed)
    plans = [_random_plan, _power_plan, _run_plan]
    rows = [plans[row % 3](automaton, length, draw) for row in range(num_words)]
    return allowed_words(automaton, np.stack(rows), draw)


def _random_plan(automaton: Automaton, length: int, draw: np.random.Generator) -> Integers:
    return np.full(length, RANDOM)


def _power_plan(automaton: Automaton, length: int, draw: np.random.Generator) -> Integers:
    """A short word again and again, after some random symbols."""
    base = draw.integers(automaton.num_symbols, size=draw.integers(1, LONGEST_BASE + 1))
    plan = np.resize(base, length)
    plan[: draw.integers(0, 20)] = RANDOM
    return plan


def _run_plan(automaton: Automaton, length: int, draw: np.random.Generator) -> Integers:
    """Runs of symbols that leave most states as they are, with random symbols between them."""
    fixed = (automaton.delta == np.arange(automaton.num_states)[:, None]).sum(axis=0)
    still = np.flatnonzero(fixed == fixed.max())
    plan = np.full(length, RANDOM)
    begin = 0
    while begin < length:
        begin += int(draw.integers(1, 30))
        end = begin + int(draw.integers(1, max(length // 2, 2)))
        plan[begin:end] = draw.choice(still)
        begin = end
    return plan
