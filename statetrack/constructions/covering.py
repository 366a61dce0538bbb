"""Words that lead a machine through every state, and read symbols in each of them.

B words, T time, S states.
"""

from __future__ import annotations

import numpy as np

from statetrack.sources import Automaton, Integers

RANDOM = -1
"""A place of a plan that is left to chance."""

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
    return allowed_words(automaton, rows, draw)


def allowed_words(automaton: Automaton, plans: Integers, draw: np.random.Generator) -> Integers:
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
