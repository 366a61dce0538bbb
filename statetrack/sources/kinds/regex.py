"""A regular language, as an expression: whether the word so far belongs to it."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Final, NamedTuple

import numpy as np

from statetrack.errors import TaskError
from statetrack.sources.automaton import Automaton, check_names
from statetrack.sources.graphs import TooManyStates, coarsest_partition, explore, renumbered
from statetrack.sources.kinds import KINDS, argument
from statetrack.sources.languages import LabelForm, WordForm, language
from statetrack.sources.patterns import Nondeterministic, alphabet_of, build, read
from statetrack.sources.patterns.reading import MOST_SYMBOLS
from statetrack.text import shortened

MOST_STATES: Final = 4096
"""States of the smallest automaton of a language."""

MOST_SETS: Final = 2 * MOST_STATES
"""States before states that are alike are merged: sets of states of the nondeterministic one."""

MOST_STEPS: Final = 1_000_000
"""States that are looked at while sets of them are formed."""


@KINDS.register("regex")
def regex(
    *,
    pattern: Annotated[
        str,
        argument(
            "the language, as a regular expression that matches whole words: `|` or, `*` any "
            "number, `+` one or more, `?` at most one, `{2,3}`, `[abc]`, `.`, `(...)`"
        ),
    ],
    alphabet: Annotated[
        str | list[str] | None,
        argument(
            "the symbols: letters, such as ab, or a list of names; left out, the symbols that the "
            "pattern names, in order"
        ),
    ] = None,
    labels: Annotated[
        LabelForm,
        argument(
            "membership: 1 where the word so far belongs to the language, 0 where it does not; "
            "next-symbols: the symbols after which some continuation belongs to it"
        ),
    ] = "membership",
    words: Annotated[
        WordForm,
        argument(
            "uniform: all symbols alike; members: only symbols after which the word can still be "
            "continued to a word of the language; mixed: as members, with slips"
        ),
    ] = "uniform",
) -> Automaton:
    """Whether the word so far belongs to a regular language, or which symbols may come next.

    A pattern means what it means to Python's `re.fullmatch`; beside that, `a&b` is both at once,
    and `(?shuffle:a|b)` one between the other. With `alphabet: [open, close]` the symbols of the
    pattern are separated by spaces: `(open close)*`. Without a file: `regex:(ab|ba)*`.
    """
    found = acceptor(pattern, None if alphabet is None else tuple(alphabet))
    return language(found.delta, found.accepting, found.symbols, labels, words)


class Acceptor(NamedTuple):
    """The smallest automaton of a language: transitions `[S, V]`, which states are accepting."""

    delta: list[list[int]]
    accepting: list[bool]
    symbols: tuple[str, ...]


@lru_cache(maxsize=4)  # a pattern is looked at before its task is made
def acceptor(pattern: str, alphabet: tuple[str, ...] | None) -> Acceptor:
    """The smallest automaton of a pattern, which starts in state 0.

    Raises `TaskError` for what is no pattern or no alphabet, and where it is too large.
    """
    symbols = None if alphabet is None else _symbols(alphabet)
    tokens = read(pattern, symbols)
    if symbols is None:
        symbols = _symbols(alphabet_of(tokens))
    delta, accepting = _smallest(*_determined(build(tokens, symbols), len(symbols)))
    return Acceptor(delta, accepting, symbols)


def _symbols(symbols: tuple[str, ...]) -> tuple[str, ...]:
    """The symbols of an alphabet; `TaskError` for none, too many, and no names."""
    if not 1 <= len(symbols) <= MOST_SYMBOLS:
        raise TaskError(f"alphabet: it has {len(symbols)} symbols: give 1 to {MOST_SYMBOLS}")
    check_names(symbols, "alphabet: symbol")
    for symbol in symbols:
        if symbols.count(symbol) > 1:
            raise TaskError(f"alphabet: '{shortened(symbol)}' appears twice")
    return symbols


def _determined(machine: Nondeterministic, num_symbols: int) -> tuple[list[list[int]], list[bool]]:
    """The transitions `[S, V]` between sets of states, state 0 first, and which are accepting.

    Raises `TaskError` once they are more than `MOST_SETS`, or take more than `MOST_STEPS`.
    """
    closures: dict[int, frozenset[int]] = {}
    steps = 0

    def count(number: int) -> None:
        nonlocal steps
        steps += number
        if steps > MOST_STEPS:
            raise TaskError(
                f"pattern: its automaton takes more than {MOST_STEPS:,} steps to find: "
                "write it in a simpler way"
            )

    def closure(state: int) -> frozenset[int]:
        """The states that a state leads to without a symbol, itself included."""
        if state not in closures:
            found, waiting = {state}, [state]
            while waiting:
                further = set(machine.free[waiting.pop()]) - found
                count(1 + len(further))
                found |= further
                waiting += further
            # only what reads a symbol or accepts tells sets apart
            closures[state] = frozenset(
                each for each in found if each == machine.accepting or machine.reads[each]
            )
        return closures[state]

    def step(states: frozenset[int], symbol: int) -> frozenset[int]:
        count(1 + len(states))
        reached = [
            closure(target)
            for target in {
                target
                for state in states
                for bits, target in machine.reads[state]
                if bits >> symbol & 1
            }
        ]
        count(sum(map(len, reached)))
        return frozenset().union(*reached)

    try:
        sets, delta = explore(closure(machine.start), range(num_symbols), step, MOST_SETS)
    except TooManyStates:
        raise TaskError(
            f"pattern: its automaton needs more than {MOST_SETS:,} states before those that are "
            "alike are merged: write it in a simpler way"
        ) from None
    return delta, [machine.accepting in states for states in sets]


def _smallest(delta: list[list[int]], accepting: list[bool]) -> tuple[list[list[int]], list[bool]]:
    """The same language with the fewest states, numbered breadth first."""
    table, members = np.array(delta), np.array(accepting)
    blocks = coarsest_partition(table, members.astype(np.int64))
    _, firsts = np.unique(blocks, return_index=True)
    if len(firsts) > MOST_STATES:
        raise TaskError(f"pattern: its automaton has more than {MOST_STATES:,} states")
    order, rows = renumbered(blocks[table[firsts]], int(blocks[0]))
    return rows, members[firsts][order].tolist()
