"""Fused symbols: several symbols of an automaton are read as one."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from statetrack.errors import TaskError
from statetrack.sources.arrays import Floats
from statetrack.sources.automaton import Automaton
from statetrack.sources.graphs import explore
from statetrack.sources.kinds import KINDS, argument, build_inner

MOST_SYMBOLS = 4096

Action = tuple[int, ...]
"""Where each state is led."""


@KINDS.register("fused")
def fused(
    *,
    of: Annotated[dict[str, Any], argument("the automaton, with its kind and arguments")],
    count: Annotated[int, argument("how many of its symbols make one", min=1, max=64)],
) -> Automaton:
    """An automaton that reads words of `count` symbols of another one as a single symbol.

    Words that act alike on all states are one symbol, which is as likely as they are together.
    It bears the first word's symbols with dots between them; but where symbols are named after
    the states they lead to from the start, as in the word problem of a group, so is it.

    Siems et al. 2025, arXiv 2502.10297, fuse swaps to permutations that a model must take in at
    once, and then give it time: `tokens-per-transition` of this kind, filled with `e`.
    """
    inner = build_inner(of, "of")
    words = _words(inner, count)
    actions = list(words)
    states, delta = explore(
        inner.start,
        actions,
        lambda state, action: action[state],
        inner.num_states,
    )
    return Automaton(
        delta,
        inner.output[states],
        symbols=_names(inner, words),
        states=[inner.states[state] for state in states],
        labels=inner.labels,
        weights=np.stack([chance for _, chance in words.values()], axis=1)[states],
        scored=inner.scored[states],
    )


def _words(inner: Automaton, count: int) -> dict[Action, tuple[list[int], Floats]]:
    """What words of `count` symbols do: the first that does it, and its chance in each state."""
    columns = [tuple(column) for column in inner.delta.T.tolist()]
    words: dict[Action, tuple[list[int], Floats]] = {
        tuple(range(inner.num_states)): ([], np.ones(inner.num_states))
    }
    for _ in range(count):
        longer: dict[Action, tuple[list[int], Floats]] = {}
        for action, (word, chance) in words.items():
            for symbol, column in enumerate(columns):
                reached = list(action)
                further = tuple(column[state] for state in action)
                share = chance * inner.weights[reached, symbol]
                if further in longer:
                    share = share + longer[further][1]
                longer[further] = (longer.get(further, ([*word, symbol],))[0], share)
        if len(longer) > MOST_SYMBOLS:
            raise TaskError(f"count: more than {MOST_SYMBOLS} different words: too many symbols")
        words = longer
    return words


def _names(inner: Automaton, words: dict[Action, tuple[list[int], Floats]]) -> list[str]:
    """A name for each of the words: the state it leads to, or its symbols."""
    reached = [inner.states[action[inner.start]] for action in words]
    after_one = [inner.states[state] for state in inner.delta[inner.start]]
    if tuple(after_one) == inner.symbols and len(set(reached)) == len(reached):
        return reached
    return [".".join(inner.symbols[symbol] for symbol in word) for word, _ in words.values()]
