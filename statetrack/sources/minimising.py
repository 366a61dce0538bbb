"""Minimisation: the smallest automaton with the same labels, by Moore's partition refinement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from statetrack.sources.arrays import Integers
from statetrack.sources.automaton import Automaton

MOST_ROUNDS = 100
"""Rounds of Moore's algorithm before Hopcroft's takes over."""

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
    blocks = refined(automaton.delta, _told_apart_at_once(automaton))
    _, members = np.unique(blocks, return_index=True)  # blocks are numbered by first member
    output = automaton.output[members]
    return Automaton(
        blocks[automaton.delta[members]],
        np.where(_agree(automaton.output, blocks), output, 0),
        start=int(blocks[automaton.start]),
        symbols=automaton.symbols,
        states=_names(automaton.states, blocks, members),
        labels=automaton.labels,
        weights=automaton.weights[members],
        scored=automaton.scored[members],
        slips=automaton.slips[members] if automaton.can_slip else None,
        slip_rate=automaton.slip_rate,
    )


def _told_apart_at_once(automaton: Automaton) -> Integers:
    """The first partition, `[S]`: by scoring, scored label, weights and slips."""
    label = np.where(automaton.scored, automaton.output, -1)
    if automaton.uniform_weights:
        return _numbered(label)
    law = np.hstack([automaton.weights, automaton.slips])
    _, laws = np.unique(law, axis=0, return_inverse=True)
    return _pairs(laws.reshape(-1), label)


def refined(delta: Integers, blocks: Integers) -> Integers:
    """The coarsest partition `[S]` that is finer than `blocks` and that every symbol respects.

    A round of Moore's algorithm costs as much as there are states, and few rounds are enough for
    most automata; a line of states needs as many as it is long, and is left to Hopcroft's.
    """
    for _ in range(MOST_ROUNDS):
        finer = blocks
        for targets in delta.T:
            finer = _pairs(finer, blocks[targets])
        if finer.max() == blocks.max():
            return finer
        blocks = finer
    return _numbered(_refined_by_splitting(delta, blocks))


def _refined_by_splitting(delta: Integers, blocks: Integers) -> Integers:
    """The same partition, by splitting blocks, the smaller part first (Hopcroft 1971)."""
    num_states, num_symbols = delta.shape
    before: list[list[list[int]]] = []  # by symbol and state: the states that it leads here from
    for targets in delta.T.tolist():
        into: list[list[int]] = [[] for _ in range(num_states)]
        for state, target in enumerate(targets):
            into[target].append(state)
        before.append(into)
    block_of = blocks.tolist()
    members: list[set[int]] = [set() for _ in range(max(block_of) + 1)]
    for state, block in enumerate(block_of):
        members[block].add(state)
    waiting = {(block, symbol) for block in range(len(members)) for symbol in range(num_symbols)}
    while waiting:
        splitter, symbol = waiting.pop()
        touched: dict[int, set[int]] = {}
        for target in members[splitter]:
            for state in before[symbol][target]:
                touched.setdefault(block_of[state], set()).add(state)
        for block, part in touched.items():
            if len(part) == len(members[block]):
                continue
            members[block] -= part
            new = len(members)
            members.append(part)
            for state in part:
                block_of[state] = new
            for each in range(num_symbols):
                smaller = new if len(part) <= len(members[block]) else block
                waiting.add((new if (block, each) in waiting else smaller, each))
    return np.array(block_of)


def _pairs(left: Integers, right: Integers) -> Integers:
    """Equal pairs get one number. `[S]` from `[S]` and `[S]`, entries from -1."""
    return _numbered((left + 1) * (int(right.max()) + 2) + right + 1)


def _numbered(keys: Integers) -> Integers:
    """Equal keys get one number; numbers count up by first appearance. `[S]` from `[S]`."""
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.empty(len(first), np.int64)
    order[np.argsort(first)] = np.arange(len(first))
    return order[inverse]


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


def _agree(output: Integers, blocks: Integers) -> np.ndarray:
    """Whether all members of a block have the same output, for every block."""
    lowest = np.full(blocks.max() + 1, np.iinfo(np.int64).max)
    highest = np.full(blocks.max() + 1, -1)
    np.minimum.at(lowest, blocks, output)
    np.maximum.at(highest, blocks, output)
    agree: np.ndarray = lowest == highest
    return agree
