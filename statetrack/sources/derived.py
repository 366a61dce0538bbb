"""Automata made from others: side by side, in turns, in a cascade, or the smallest that is alike.

The label of several is the tuple of their labels. Side by side, tuples are numbered row by row, so
that the last automaton's part changes fastest. In a cascade each automaton reads a symbol chosen by
the input and the states before it. Two automata are alike where no word leads to other answers.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from statetrack.errors import TaskError
from statetrack.sources.arrays import Booleans, Floats, Integers
from statetrack.sources.automaton import MOST_TRANSITIONS, Automaton
from statetrack.sources.graphs import (
    coarsest_partition,
    explore,
    numbered,
    paired,
    places_of,
    reachable,
    shortest_word,
)

MOST_FACTORS = 32
"""Most automata side by side: NumPy's arrays have no more axes than that."""

LARGEST_CASCADE = 8192
"""Most states that a cascade may have."""

COPY = "@"
"""Stands in the name of a copy, between the name of what it is a copy of and its own mark."""

BEFORE = ">"
"""Stands in the name of a state of `delayed`, between those before and after the last symbol."""

States = tuple[int, ...]
"""A state of each automaton of a cascade, or of those before one."""

Feed = Mapping[tuple[States, int], int]
"""The symbol that an automaton reads, by the states of those before it and the input symbol."""


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


def cascade(
    automata: Sequence[Automaton],
    feeds: Sequence[Feed],
    symbols: Sequence[str],
    labelled: Sequence[int],
) -> Automaton:
    """The cascade of automata; its states are the tuples of states that words lead to.

    From states q_1, ..., q_n the input x leads automaton i to delta_i(q_i, f_i(q_1, ...,
    q_(i-1), x)), where f_i is its feed. The label is that of the automata whose places are in
    `labelled`, a tuple where they are several, and scored where all of theirs are. Symbols are
    drawn alike, but not where an automaton would read one that it never draws.

    Raises `TaskError` where there are more than `LARGEST_CASCADE` states.
    """
    targets = [automaton.delta.tolist() for automaton in automata]
    drawable = [automaton.drawable.tolist() for automaton in automata]

    def reads(state: States, symbol: int) -> list[tuple[int, int, int]]:
        """The place of each automaton, its own state, and the symbol that it reads."""
        return [
            (place, state[place], feed[state[:place], symbol]) for place, feed in enumerate(feeds)
        ]

    def step(state: States, symbol: int) -> States:
        return tuple(targets[place][own][read] for place, own, read in reads(state, symbol))

    def drawn(state: States, symbol: int) -> bool:
        return all(drawable[place][own][read] for place, own, read in reads(state, symbol))

    start = tuple(automaton.start for automaton in automata)
    numbers = range(len(symbols))
    states, delta = explore(start, numbers, step, LARGEST_CASCADE)
    shown = [automata[place] for place in labelled]
    answers = [
        tuple(int(automata[place].output[state[place]]) for place in labelled) for state in states
    ]
    different = sorted(set(answers))
    number = {answer: label for label, answer in enumerate(different)}
    return Automaton(
        delta,
        [number[answer] for answer in answers],
        symbols=symbols,
        states=[
            _tuple([a.states[own] for a, own in zip(automata, state, strict=True)])
            for state in states
        ],
        labels=[
            _tuple([a.labels[own] for a, own in zip(shown, answer, strict=True)])
            for answer in different
        ],
        weights=[[float(drawn(state, symbol)) for symbol in numbers] for state in states],
        scored=[
            all(automata[place].scored[state[place]] for place in labelled) for state in states
        ],
    )


def delayed(automaton: Automaton) -> Automaton:
    """The label after every word is that after the word without its last symbol.

    Its states are pairs: that before the last symbol, and that after it. Words are drawn, and
    positions scored, as those of the automaton.
    """
    start = automaton.start

    def step(pair: tuple[int, int], symbol: int) -> tuple[int, int]:
        return pair[1], int(automaton.delta[pair[1], symbol])

    pairs, table = explore(
        (start, start), range(automaton.num_symbols), step, most=automaton.delta.size + 1
    )
    before, after = (np.array(part) for part in zip(*pairs, strict=True))
    return Automaton(
        table,
        automaton.output[before],
        symbols=automaton.symbols,
        states=[f"{automaton.states[one]}{BEFORE}{automaton.states[two]}" for one, two in pairs],
        labels=automaton.labels,
        weights=automaton.weights[after],
        scored=automaton.scored[after],
        slips=automaton.slips[after] if automaton.can_slip else None,
        slip_rate=automaton.slip_rate,
    )


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
        delta = delta * automaton.num_states + _columns(automaton.delta, place, reads, place)
        weights = weights * _columns(automaton.weights, place, reads, 1.0)
        at_slip = automaton.slips if automaton.can_slip else automaton.weights
        slips = slips * _columns(at_slip, place, reads, 1.0)
    start = int(np.ravel_multi_index([automaton.start for automaton in automata], sizes))
    output = np.ravel_multi_index(
        [automaton.output[place] for automaton, place in zip(automata, places, strict=True)],
        [automaton.num_labels for automaton in automata],
    )
    scored = np.logical_and.reduce(
        [automaton.scored[place] for automaton, place in zip(automata, places, strict=True)]
    )
    kept = np.flatnonzero(reachable(delta, start))
    renumbered = places_of(kept, len(delta))
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


def _columns(
    table: Integers | Floats, place: Integers, reads: Sequence[int | None], kept: Integers | float
) -> npt.NDArray[Any]:
    """An automaton's share in the columns of the product, `[S, V]`; `kept` where it reads none."""
    alone = np.broadcast_to(kept, place.shape)
    columns = [alone if read is None else table[place, read] for read in reads]
    return np.stack(columns, axis=1)


def _tuples(names: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(f"({'|'.join(parts)})" for parts in itertools.product(*names))


def _tuple(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"({'|'.join(names)})"


def minimise(automaton: Automaton) -> Automaton:
    """The smallest automaton with the same scored labels, the same scoring and the same words.

    Two states are merged where no word distinguishes them: by whether a label is asked for, by the
    label where it is, or by how likely a symbol is, by slip or not. So words are drawn from the
    small automaton exactly as from the large one; `minimise(a.with_uniform_weights())` asks for the
    labels alone.
    A merged state has the name of its first member, and states keep that order; but copies of a
    state, `name@...` each, that merge to one without any other copy left have the bare name. Labels
    of states that are not scored do not count, and read 0 where states with different ones merge.
    """
    blocks = np.where(automaton.scored, automaton.output, -1)
    if not automaton.uniform_weights:
        law = np.hstack([automaton.weights, automaton.slips])
        blocks = paired(np.unique(law, axis=0, return_inverse=True)[1].reshape(-1), blocks)
    blocks = coarsest_partition(automaton.delta, numbered(blocks))
    _, members = np.unique(blocks, return_index=True)  # blocks are numbered by first member
    agree = np.ones(len(members), bool)
    np.logical_and.at(agree, blocks, automaton.output == automaton.output[members][blocks])
    return Automaton(
        blocks[automaton.delta[members]],
        np.where(agree, automaton.output[members], 0),
        start=int(blocks[automaton.start]),
        symbols=automaton.symbols,
        states=_names(automaton.states, blocks, members),
        labels=automaton.labels,
        weights=automaton.weights[members],
        scored=automaton.scored[members],
        slips=automaton.slips[members] if automaton.can_slip else None,
        slip_rate=automaton.slip_rate,
    )


def _names(states: Sequence[str], blocks: Integers, members: Integers) -> list[str]:
    """The name of every block, from the states' names `[S]` and the blocks' first members."""
    originals = [name.partition(COPY)[0] or name for name in states]
    pairs = set(zip(originals, blocks.tolist(), strict=True))
    num_blocks = Counter(original for original, _ in pairs)
    num_originals = Counter(block for _, block in pairs)
    sizes = np.bincount(blocks)
    names = []
    for block, member in enumerate(members):
        original = originals[member]
        all_copies = num_blocks[original] == 1 and num_originals[block] == 1 and sizes[block] > 1
        names.append(original if all_copies else states[member])
    return names


def shortest_difference(first: Automaton, second: Automaton) -> tuple[int, ...] | None:
    """A shortest word after which two automata answer differently; None where there is none.

    They answer differently where only one of them scores, or both do and give labels of
    different index. Words have at least one symbol: before the first, no label is asked for.
    Every symbol counts, whatever its weight. Both must have the same number of symbols.
    """
    assert first.num_symbols == second.num_symbols, (first, second)
    width = second.num_states  # a pair of states is one number

    def targets_of(pairs: Integers) -> Integers:
        ones, twos = np.divmod(pairs, width)
        targets: Integers = first.delta[ones] * width + second.delta[twos]
        return targets

    def differ(pairs: Integers) -> Booleans:
        ones, twos = np.divmod(pairs, width)
        both = first.scored[ones] & second.scored[twos]
        one_only = first.scored[ones] != second.scored[twos]
        found: Booleans = one_only | (both & (first.output[ones] != second.output[twos]))
        return found

    start = first.start * width + second.start
    return shortest_word(start, first.num_states * width, targets_of, differ)


def equivalent(first: Automaton, second: Automaton) -> bool:
    """Whether two automata answer alike after every word of one symbol or more."""
    return shortest_difference(first, second) is None
