"""A regular language, as an expression: whether the word so far belongs to it."""

from __future__ import annotations

from typing import Annotated

from automata.base.exceptions import InvalidSymbolError, RegexException
from automata.fa.dfa import DFA
from automata.fa.nfa import NFA
from pydantic import Field

from statetrack.errors import TaskError
from statetrack.sources._exploring import explore
from statetrack.sources.automaton import Automaton
from statetrack.sources.kinds import KINDS, argument
from statetrack.sources.languages import LabelForm, WordForm, language

MOST_STATES = 4096


@KINDS.register("regex")
def regex(
    *,
    pattern: Annotated[
        str, argument("the language: `|` or, `*` any number, `+` one or more, `?` at most one")
    ],
    alphabet: Annotated[
        str, argument("the symbols, one letter each, such as ab"), Field(min_length=1)
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
        machine = DFA.from_nfa(NFA.from_regex(pattern, input_symbols=set(alphabet)), minify=True)
    except RegexException as wrong:
        raise TaskError(f"pattern: '{pattern}' cannot be read: {wrong}") from None
    except InvalidSymbolError:
        raise TaskError(f"pattern: '{pattern}' has a letter that is not in '{alphabet}'") from None
    dead = object()
    states, delta = explore(
        machine.initial_state,
        list(alphabet),
        lambda state, symbol: machine.transitions.get(state, {}).get(symbol, dead),
        MOST_STATES,
    )
    accepting = [state in machine.final_states for state in states]
    return language(delta, accepting, list(alphabet), labels, words)
