"""Automata that answer alike: the smallest of them, and a word after which two others do not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from statetrack.sources.arrays import Booleans, Integers
from statetrack.sources.automaton import Automaton
from statetrack.sources.graphs import coarsest_partition, numbered, paired, shortest_word

COPY = "@"
"""Stands in the name of a copy, between the name of what it is a copy of and its own mark."""


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
