"""Regular languages as tasks: what is asked after every symbol, and which words are drawn.

A state is *alive* where some word leads from it to a member of the language, and *dead* where none
does; a symbol is *legal* in a living state where it leads to a living one. Words whose symbols are
drawn uniformly are almost all dead in a language that has illegal symbols, and words drawn from
the members alone can be answered without following the language, because nothing ever goes wrong
in them. `words="mixed"` is between the two: members with a few illegal symbols, the slips.

Letters: S states, V symbols.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from statetrack.errors import TaskError
from statetrack.sources.arrays import Booleans, Integers
from statetrack.sources.automaton import Automaton
from statetrack.sources.derived import COPY, delayed, minimise
from statetrack.sources.graphs import explore, reaching

LabelForm = Literal["membership", "next-symbols", "states", "states-before"]
WordForm = Literal["uniform", "members", "mixed"]

SLIP_RATE: Final = 0.25
"""Where every living state has an illegal symbol, half of all words of 10 symbols have not slipped,
and a fifth of those of 500."""


def language(
    delta: npt.ArrayLike,
    accepting: npt.ArrayLike,
    symbols: Sequence[str],
    labels: LabelForm,
    words: WordForm,
) -> Automaton:
    """The automaton of a language, from an acceptor: transitions `[S, V]`, members `[S]`.

    It starts in state 0, and has the fewest states that give these labels and draw these words:
    where words slip, several dead ones, which are one for the algebra (`needed_machine`). Labels
    are

    - `membership`: 1 where the word so far is a member, 0 where it is not;
    - `next-symbols`: the set of legal symbols, such as `ab`, with commas between symbols where one
      is longer than a letter; `none` in a dead state;
    - `states`: the state of the smallest automaton of membership;
    - `states-before`: that before the last symbol, which does not tell the label then.

    Words are

    - `uniform`: all symbols are alike;
    - `members`: all legal symbols are alike, the others are never drawn;
    - `mixed`: as `members`, except that at position t, counted from 0, a slip is drawn instead
      with chance r / (t + 1 + r), r = `SLIP_RATE`; all illegal symbols are alike. Where none is
      illegal, nothing slips. A word that has slipped goes on as if it had not read the illegal
      symbol, further slips included, so that neither its later symbols nor their number tell that
      it is dead.

    Under `mixed`, a word of n symbols has not slipped with probability
    Gamma(n + 1) Gamma(1 + r) / Gamma(n + 1 + r) where every living state has an illegal symbol, and
    those that have not are then drawn exactly as under `members`. Where some have none, the chance
    that a word drawn as under `members` stays without a slip is the product of
    (t + 1) / (t + 1 + r) over the positions t at which it is in a state with an illegal symbol.

    Raises `TaskError` for labels that are always the same, for `mixed` words of a language in which
    no symbol is illegal, and where there is no member, or one that no legal symbol follows although
    words are drawn from legal symbols.
    """
    table, members = np.array(delta, np.int64), np.array(accepting, bool)
    if labels == "states-before":
        return minimise(delayed(language(delta, accepting, symbols, "states", words)))
    if labels == "states":
        smallest = minimise(Automaton(table, members.astype(np.int64)))
        table, members = smallest.delta.astype(np.int64), smallest.output.astype(bool)
    alive = reaching(table, members)
    if not alive[0]:
        raise TaskError("the language has no member")
    legal = alive[table] & alive[:, None]
    names = _state_names(alive)
    outputs, label_names = _labels(labels, members, legal, symbols, names)
    if words == "uniform":
        return minimise(
            Automaton(table, outputs, symbols=symbols, states=names, labels=label_names)
        )
    if not legal[alive].any(axis=1).all():
        raise TaskError(
            f"words: '{words}' have only symbols after which a member can still be reached, but "
            "some member cannot be continued to a longer one: use 'uniform'"
        )
    if words == "members":
        weights = np.where(alive[:, None], legal, True)
        return minimise(
            Automaton(
                table, outputs, symbols=symbols, states=names, labels=label_names, weights=weights
            )
        )
    if alive.all():
        raise TaskError(
            "words: 'mixed' have symbols after which no member can be reached, but there is none "
            "in this language: use 'uniform'"
        )
    return _mixed(table, outputs, legal, symbols, names, label_names)


def can_be_left(delta: npt.ArrayLike, accepting: npt.ArrayLike) -> bool:
    """Whether words can be drawn as `mixed`: some symbol is illegal, and some one always legal.

    Uniform words of such a language are dead soon, and have the label 0 from then on.
    """
    table, members = np.array(delta, np.int64), np.array(accepting, bool)
    alive = reaching(table, members)
    legal = alive[table] & alive[:, None]
    return bool(alive[0] and not alive.all() and legal[alive].any(axis=1).all())


def _labels(
    form: LabelForm,
    members: Booleans,
    legal: Booleans,
    symbols: Sequence[str],
    states: Sequence[str],
) -> tuple[Integers, list[str]]:
    """The label of every state, and the labels' names."""
    if form == "membership":
        return members.astype(np.int64), ["0", "1"]
    if form == "states":
        return np.arange(len(states)), list(states)
    comma = "," if any(len(symbol) > 1 for symbol in symbols) else ""
    sets = [comma.join(np.array(symbols)[row]) or "none" for row in legal]
    names = list(dict.fromkeys(sets))
    if len(names) == 1:
        raise TaskError(
            "labels: 'next-symbols' are always the same: every symbol is legal everywhere; "
            "use 'membership'"
        )
    return np.array([names.index(each) for each in sets]), names


def _state_names(alive: Booleans) -> list[str]:
    """Live states by number, dead ones by name."""
    numbers, num_dead = alive.cumsum() - 1, int((~alive).sum())
    dead = ["dead"] if num_dead == 1 else [f"dead{COPY}{count}" for count in range(num_dead)]
    rest = iter(dead)
    return [
        str(number) if lives else next(rest) for number, lives in zip(numbers, alive, strict=True)
    ]


def _mixed(
    delta: Integers,
    outputs: Integers,
    legal: Booleans,
    symbols: Sequence[str],
    names: Sequence[str],
    labels: Sequence[str],
) -> Automaton:
    """The language with a dead copy of every live state, which draws words as that one does."""
    dead_label = int(outputs[~legal.any(axis=1)][0])

    def step(state: tuple[int, bool], symbol: int) -> tuple[int, bool]:
        live, has_slipped = state
        if legal[live, symbol]:
            return int(delta[live, symbol]), has_slipped
        return live, True

    pairs, table = explore((0, False), range(len(symbols)), step, most=2 * len(delta))
    drawn_as = [live for live, _ in pairs]
    only_one = sum(has_slipped for _, has_slipped in pairs) == 1
    dead = {live: "dead" if only_one else f"dead{COPY}{names[live]}" for live in drawn_as}
    return minimise(
        Automaton(
            table,
            [dead_label if has_slipped else outputs[live] for live, has_slipped in pairs],
            symbols=symbols,
            states=[dead[q] if has_slipped else names[q] for q, has_slipped in pairs],
            labels=labels,
            weights=legal[drawn_as],
            slips=~legal[drawn_as],
            slip_rate=SLIP_RATE,
        )
    )
