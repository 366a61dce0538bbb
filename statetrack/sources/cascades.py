"""Cascades: each automaton reads a symbol chosen by the input and the states before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from statetrack.sources._exploring import explore
from statetrack.sources.automaton import Automaton

MOST_STATES = 8192
"""Most states that a cascade may have."""

States = tuple[int, ...]
"""A state of each automaton of a cascade, or of those before one."""

Feed = Mapping[tuple[States, int], int]
"""The symbol that an automaton reads, by the states of those before it and the input symbol."""


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

    Raises `TaskError` where there are more than `MOST_STATES` states.
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
    states, delta = explore(start, numbers, step, MOST_STATES)
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
            _joined([a.states[own] for a, own in zip(automata, state, strict=True)])
            for state in states
        ],
        labels=[
            _joined([a.labels[own] for a, own in zip(shown, answer, strict=True)])
            for answer in different
        ],
        weights=[[float(drawn(state, symbol)) for symbol in numbers] for state in states],
        scored=[
            all(automata[place].scored[state[place]] for place in labelled) for state in states
        ],
    )


def _joined(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"({'|'.join(names)})"
