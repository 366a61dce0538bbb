"""Comparing two automata: the shortest word on which they answer differently."""

from __future__ import annotations

import numpy as np

from statetrack.sources.automaton import Automaton


def shortest_difference(first: Automaton, second: Automaton) -> tuple[int, ...] | None:
    """A shortest word after which two automata answer differently; None where there is none.

    They answer differently where only one of them scores, or both do and give labels of
    different index. Words have at least one symbol: before the first, no label is asked for.
    Every symbol counts, whatever its weight. Both must have the same number of symbols.
    """
    assert first.num_symbols == second.num_symbols, (first, second)
    width = second.num_states
    start = first.start * width + second.start
    came_from: dict[int, tuple[int, int]] = {}
    seen = np.zeros(first.num_states * width, bool)
    seen[start] = True
    frontier = np.array([start])
    while frontier.size:
        ones, twos = np.divmod(frontier, width)
        targets = first.delta[ones] * width + second.delta[twos]  # [N, V]
        wrong = np.argwhere(_differ(first, second, targets))
        if len(wrong):
            place, symbol = wrong[0]
            return (*_way_to(int(frontier[place]), came_from), int(symbol))
        new, places = np.unique(targets, return_index=True)
        fresh = ~seen[new]
        parents, symbols = np.divmod(places[fresh], first.num_symbols)
        came_from.update(
            zip(
                new[fresh].tolist(),
                zip(frontier[parents].tolist(), symbols.tolist(), strict=True),
                strict=True,
            )
        )
        frontier = new[fresh]
        seen[frontier] = True
    return None


def equivalent(first: Automaton, second: Automaton) -> bool:
    """Whether two automata answer alike after every word of one symbol or more."""
    return shortest_difference(first, second) is None


def _differ(first: Automaton, second: Automaton, pairs: np.ndarray) -> np.ndarray:
    ones, twos = np.divmod(pairs, second.num_states)
    both = first.scored[ones] & second.scored[twos]
    one_only = first.scored[ones] != second.scored[twos]
    differ: np.ndarray = one_only | (both & (first.output[ones] != second.output[twos]))
    return differ


def _way_to(pair: int, came_from: dict[int, tuple[int, int]]) -> tuple[int, ...]:
    word: list[int] = []
    while pair in came_from:
        pair, symbol = came_from[pair]
        word.append(symbol)
    return tuple(reversed(word))
