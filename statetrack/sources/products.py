"""Automata side by side: the label is the tuple of their labels.

Tuples are numbered row by row, so that the last automaton's part changes fastest.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from statetrack.errors import TaskError
from statetrack.sources.arrays import Floats, Integers
from statetrack.sources.automaton import MOST_TRANSITIONS, Automaton
from statetrack.sources.graphs import reachable

MOST_FACTORS = 32
"""Most automata side by side: NumPy's arrays have no more axes than that."""


def product(*automata: Automaton) -> Automaton:
    """Automata that each read their own part of a symbol: the alphabet is all tuples of symbols.

    For groups read element by element this is the direct product. A tuple is as likely as its
    parts together, and scored where all parts are.

    Raises `TaskError` where the product has more than `MOST_TRANSITIONS` transitions, and where
    more than one automaton slips: no distribution of two slips at once is defined.
    """
    counts = [automaton.num_symbols for automaton in automata]
    _check_size(automata, math.prod(counts))
    _check_slips(automata, most=1)
    parts = np.indices(counts).reshape(len(counts), -1)  # [N, V]: each automaton's own symbol
    return _combined(
        automata,
        symbols=_tuples([automaton.symbols for automaton in automata]),
        moves=[part.tolist() for part in parts],
    )


def interleave(*automata: Automaton) -> Automaton:
    """Automata that take turns: one of them reads a symbol, the others keep their states.

    The alphabet is one alphabet after the other, named `1:symbol`, `2:symbol` and so on. Each
    automaton is chosen equally often. Scored where all parts are.

    Raises `TaskError` where the product has more than `MOST_TRANSITIONS` transitions, and where an
    automaton slips: the positions of its symbols would no longer be those of the word.
    """
    _check_size(automata, sum(automaton.num_symbols for automaton in automata))
    _check_slips(automata, most=0)
    moves: list[list[int | None]] = [[] for _ in automata]
    names: list[str] = []
    for turn, automaton in enumerate(automata):
        names += [f"{turn + 1}:{symbol}" for symbol in automaton.symbols]
        for place, others in enumerate(moves):
            count = automaton.num_symbols
            others += list(range(count)) if place == turn else [None] * count
    return _combined(automata, symbols=tuple(names), moves=moves)


def _check_size(automata: Sequence[Automaton], num_symbols: int) -> None:
    if len(automata) > MOST_FACTORS:
        raise TaskError(f"the product has {len(automata)} factors: the most is {MOST_FACTORS}")
    num_states = math.prod(automaton.num_states for automaton in automata)
    if num_states * num_symbols > MOST_TRANSITIONS:
        raise TaskError(
            f"the product has {num_states} states and {num_symbols} symbols: "
            f"more than {MOST_TRANSITIONS} transitions are too many"
        )


def _check_slips(automata: Sequence[Automaton], most: int) -> None:
    if sum(automaton.can_slip for automaton in automata) > most:
        may = "only one factor can have" if most else "factors that take turns cannot have"
        raise TaskError(f"{may} words that slip: use other words for the others")


def _combined(
    automata: Sequence[Automaton], symbols: tuple[str, ...], moves: Sequence[Sequence[int | None]]
) -> Automaton:
    """The reachable part of automata side by side.

    `moves[n][x]` is what automaton n reads for the symbol x; None means that it keeps its state.
    """
    sizes = [automaton.num_states for automaton in automata]
    places = np.indices(sizes).reshape(len(sizes), -1)  # [N, S]: each automaton's own state
    delta = np.zeros((places.shape[1], len(symbols)), np.int64)
    weights = np.ones(delta.shape)
    slips = np.ones(delta.shape)
    for automaton, place, reads in zip(automata, places, moves, strict=True):
        delta = delta * automaton.num_states + _moved(automaton, place, reads)
        weights = weights * _weighed(automaton.weights, place, reads)
        at_slip = automaton.slips if automaton.can_slip else automaton.weights
        slips = slips * _weighed(at_slip, place, reads)
    start = int(np.ravel_multi_index([automaton.start for automaton in automata], sizes))
    output = np.ravel_multi_index(
        [automaton.output[place] for automaton, place in zip(automata, places, strict=True)],
        [automaton.num_labels for automaton in automata],
    )
    scored = np.logical_and.reduce(
        [automaton.scored[place] for automaton, place in zip(automata, places, strict=True)]
    )
    kept = np.flatnonzero(reachable(delta, start))
    renumbered = np.zeros(len(delta), np.int64)
    renumbered[kept] = np.arange(len(kept))
    states = _tuples([automaton.states for automaton in automata])
    uniform = all(automaton.uniform_weights for automaton in automata)
    slip_rate = max(automaton.slip_rate for automaton in automata)
    equal_turns = bool((weights == weights[0, 0]).all())
    return Automaton(
        renumbered[delta[kept]],
        output[kept],
        start=int(renumbered[start]),
        symbols=symbols,
        states=[states[state] for state in kept],
        labels=_tuples([automaton.labels for automaton in automata]),
        weights=None if uniform and equal_turns else weights[kept],
        scored=scored[kept],
        slips=slips[kept] if slip_rate > 0 else None,
        slip_rate=slip_rate,
    )


def _moved(automaton: Automaton, place: Integers, reads: Sequence[int | None]) -> Integers:
    """The automaton's next state, `[S, V]` of the product."""
    columns = [place if read is None else automaton.delta[place, read] for read in reads]
    return np.stack(columns, axis=1)


def _weighed(weights: Floats, place: Integers, reads: Sequence[int | None]) -> Floats:
    """An automaton's share in the weight of a symbol, `[S, V]` of the product."""
    ones = np.ones(len(place))
    columns = [ones if read is None else weights[place, read] for read in reads]
    return np.stack(columns, axis=1)


def _tuples(names: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(f"({'|'.join(parts)})" for parts in itertools.product(*names))
