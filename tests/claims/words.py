"""Words that are hard to follow: random ones, powers of short words, long runs of one symbol.

B words, T time, V symbols, S states.
"""

from __future__ import annotations

import numpy as np

from statetrack.sources import Automaton, Integers

RANDOM = -1
"""A place of a plan that is left to chance."""

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
    return _allowed(automaton, np.stack(rows), draw)


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


def _allowed(automaton: Automaton, plans: Integers, draw: np.random.Generator) -> Integers:
    """The plans with symbols that are drawn in the states that they lead to."""
    drawable, delta = automaton.drawable, automaton.delta
    choices = [np.flatnonzero(row) for row in drawable]
    counts = np.array([len(each) for each in choices])
    table = np.stack([np.resize(each, automaton.num_symbols) for each in choices])
    places = draw.random(plans.shape)
    words = plans.copy()
    states = np.full(len(plans), automaton.start)
    for time in range(plans.shape[1]):
        wanted = plans[:, time]
        other = table[states, (places[:, time] * counts[states]).astype(np.int64)]
        fits = (wanted != RANDOM) & drawable[states, wanted]
        words[:, time] = np.where(fits, wanted, other)
        states = delta[states, words[:, time]]
    return words


MOST_COVERING = 6_000
"""Most words of a cover; beyond it, each state is followed by fewer symbols."""


def covering_words(automaton: Automaton, further: int = 4) -> Integers:
    """Words that go through every state that is reached, and read symbols in each of them.

    All symbols that are drawn in a state are read in it, unless these are too many words; then a
    few drawn ones are. Each word goes on for `further` random symbols.
    """
    draw = np.random.default_rng(0)
    paths: dict[int, list[int]] = {automaton.start: []}
    queue = [automaton.start]
    for state in queue:
        for symbol in np.flatnonzero(automaton.drawable[state]):
            target = int(automaton.delta[state, symbol])
            if target not in paths:
                paths[target] = [*paths[state], int(symbol)]
                queue.append(target)
    most = max(2, MOST_COVERING // len(paths))
    plans = []
    for state, path in paths.items():
        symbols = np.flatnonzero(automaton.drawable[state])
        if len(symbols) > most:
            symbols = draw.choice(symbols, most, replace=False)
        plans += [[*path, int(symbol)] for symbol in symbols]
    length = max(map(len, plans)) + further
    rows = np.full(
        (len(plans) + 8000 // length, length), RANDOM
    )  # the last ones are left to chance
    for row, plan in enumerate(plans):
        rows[row, : len(plan)] = plan
    return _allowed(automaton, rows, draw)
