"""A regular language, as an expression: whether the word so far belongs to it."""

from __future__ import annotations

from typing import Annotated

from statetrack.sources.automaton import Automaton
from statetrack.sources.kinds import KINDS, argument
from statetrack.sources.languages import LabelForm, WordForm, language
from statetrack.sources.patterns import acceptor


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
            "next-symbols: the symbols after which some continuation belongs to it; states: the "
            "state of the smallest automaton that tells membership; states-before: that before "
            "the last symbol"
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
    """Whether the word so far belongs to a regular language, or what may come next, or the state.

    A pattern means what it means to Python's `re.fullmatch`; beside that, `a&b` is both at once,
    and `(?shuffle:a|b)` one between the other. With `alphabet: [open, close]` the symbols of the
    pattern are separated by spaces: `(open close)*`. Without a file: `regex:(ab|ba)*`.
    """
    found = acceptor(pattern, None if alphabet is None else tuple(alphabet))
    return language(found.delta, found.accepting, found.symbols, labels, words)
