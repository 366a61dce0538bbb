"""A regular language, as an expression: whether the word so far belongs to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Final

import numpy as np
from automata.base.exceptions import InvalidSymbolError, RegexException
from automata.fa.nfa import NFA
from automata.regex.parser import add_concat_and_empty_string_tokens, get_regex_lexer
from automata.regex.postfix import (
    InfixOperator,
    PostfixOperator,
    tokens_to_postfix,
    validate_tokens,
)
from pydantic import Field

from statetrack.errors import TaskError
from statetrack.sources._exploring import TooManyStates, explore
from statetrack.sources.automaton import Automaton
from statetrack.sources.kinds import KINDS, argument
from statetrack.sources.languages import LabelForm, WordForm, language
from statetrack.sources.minimising import refined
from statetrack.text import shortened

MOST_LETTERS: Final = 10_000
"""Letters of a pattern."""

MOST_STATES: Final = 4096
"""States of the smallest automaton of a language."""

MOST_SETS: Final = 2 * MOST_STATES
"""States before states that are alike are merged: sets of states of the nondeterministic one."""

MOST_NONDETERMINISTIC: Final = 10_000
"""States of the nondeterministic automaton, which has a few for every letter of the pattern, and
copies of them for `{n}`, `^` and `&`."""

MOST_COPIED: Final = 20_000
"""States of parts of it that operators copy, one inside the other."""

MOST_STEPS: Final = 1_000_000
"""States that are looked at while sets of them are formed."""

WIDEST_RANGE: Final = 1_000
"""Letters between the two of a range such as `[a-z]`."""


@KINDS.register("regex")
def regex(
    *,
    pattern: Annotated[
        str, argument("the language: `|` or, `*` any number, `+` one or more, `?` at most one")
    ],
    alphabet: Annotated[
        str,
        argument("the symbols, one letter each, such as ab"),
        Field(min_length=1, max_length=256),
    ],
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

    Patterns are those of automata-lib: beside the above, `.` is any symbol, `(...)` a group,
    `{2,3}` a number of times, `&` and, `^` shuffled with. They match the whole word.
    """
    for letter in alphabet:
        if alphabet.count(letter) > 1 or letter in "()|*+?&^.{}[]\\" or letter.isspace():
            raise TaskError(f"alphabet: '{letter}' appears twice, or has a meaning in patterns")
    try:
        _check_size(pattern, frozenset(alphabet))
        machine = NFA.from_regex(pattern, input_symbols=set(alphabet))
    except RegexException as wrong:
        reason = shortened(str(wrong), 200)
        raise TaskError(f"pattern: '{shortened(pattern)}' cannot be read: {reason}") from None
    except InvalidSymbolError:
        raise TaskError(
            f"pattern: '{shortened(pattern)}' has a letter that is not in '{alphabet}'"
        ) from None
    delta, accepting = _smallest(*_determined(machine, alphabet))
    return language(delta, accepting, list(alphabet), labels, words)


def _check_size(pattern: str, alphabet: frozenset[str]) -> None:
    """Builds the nondeterministic automaton step by step; `TaskError` once it is too large.

    automata-lib numbers every state that it makes by one counter, so a counter that ends stops it.
    """
    if len(pattern) > MOST_LETTERS:
        raise TaskError(f"pattern: it has {len(pattern)} letters, the most is {MOST_LETTERS}")
    for first, last in zip(pattern, pattern[2:], strict=False):
        if ord(last) - ord(first) > WIDEST_RANGE and f"{first}-{last}" in pattern:
            raise TaskError(f"pattern: '{first}-{last}' has more than {WIDEST_RANGE} letters")
    for letter in pattern:
        if letter.isdigit() and not letter.isascii() and letter not in alphabet:
            raise TaskError(f"pattern: '{letter}' is not in the alphabet, and no digit 0 to 9")
    numbers: Any = _numbers()
    tokens = get_regex_lexer(alphabet, numbers).lex(pattern)
    validate_tokens(tokens)
    waiting: list[Any] = []
    copied = 0
    token: Any
    for token in tokens_to_postfix(add_concat_and_empty_string_tokens(tokens, numbers)):
        if isinstance(token, InfixOperator):
            right = waiting.pop()
            waiting.append(token.op(waiting.pop(), right))
        elif isinstance(token, PostfixOperator):
            copied += len(waiting[-1]._transitions)
            if copied > MOST_COPIED:
                raise TaskError(
                    f"pattern: its repetitions inside each other copy more than {MOST_COPIED} "
                    "states: write it in a simpler way"
                )
            waiting.append(token.op(waiting.pop()))
        else:
            waiting.append(token.val())


def _numbers() -> Iterator[int]:
    """The numbers of states; `TaskError` where there are too many."""
    yield from range(MOST_NONDETERMINISTIC)
    raise TaskError(
        f"pattern: it needs more than {MOST_NONDETERMINISTIC} states before they are merged: "
        "write it in a simpler way"
    )


def _determined(machine: NFA, alphabet: str) -> tuple[list[list[int]], list[bool]]:
    """The transitions `[S, V]` between sets of states, state 0 first, and which are accepting.

    Raises `TaskError` once they are more than `MOST_SETS`, or take more than `MOST_STEPS`.
    """
    transitions = machine.transitions
    closures: dict[Any, frozenset[Any]] = {}
    steps = 0

    def count(number: int) -> None:
        nonlocal steps
        steps += number
        if steps > MOST_STEPS:
            raise TaskError(
                f"pattern: its automaton takes more than {MOST_STEPS} steps to find: "
                "write it in a simpler way"
            )

    def closure(state: Any) -> frozenset[Any]:
        """The states that a state leads to without a symbol, itself included."""
        if state not in closures:
            found, waiting = {state}, [state]
            while waiting:
                further = transitions.get(waiting.pop(), {}).get("", frozenset()) - found
                count(1 + len(further))
                found |= further
                waiting += further
            # only what reads a symbol or accepts tells sets apart
            closures[state] = frozenset(
                each
                for each in found
                if each in machine.final_states or transitions.get(each, {}).keys() - {""}
            )
        return closures[state]

    def step(states: frozenset[Any], symbol: str) -> frozenset[Any]:
        count(1 + len(states))
        targets = {
            target
            for state in states
            for target in transitions.get(state, {}).get(symbol, frozenset())
        }
        reached = [closure(target) for target in targets]
        count(sum(map(len, reached)))
        return frozenset().union(*reached)

    try:
        sets, delta = explore(closure(machine.initial_state), list(alphabet), step, MOST_SETS)
    except TooManyStates:
        raise TaskError(
            f"pattern: its automaton needs more than {MOST_SETS} states before those that are "
            "alike are merged: write it in a simpler way"
        ) from None
    return delta, [not machine.final_states.isdisjoint(states) for states in sets]


def _smallest(delta: list[list[int]], accepting: list[bool]) -> tuple[list[list[int]], list[bool]]:
    """The same language with the fewest states, numbered breadth first."""
    table, members = np.array(delta), np.array(accepting)
    blocks = refined(table, members.astype(np.int64))
    _, firsts = np.unique(blocks, return_index=True)
    merged = blocks[table[firsts]].tolist()
    try:
        order, rows = explore(
            int(blocks[0]),
            range(table.shape[1]),
            lambda block, symbol: merged[block][symbol],
            MOST_STATES,
        )
    except TooManyStates:
        raise TaskError(f"pattern: its automaton has more than {MOST_STATES} states") from None
    return rows, members[firsts][order].tolist()
