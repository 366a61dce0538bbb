"""Resets: an automaton whose state can also be set outright."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np

from statetrack.errors import TaskError, nearest_or_known
from statetrack.sources.automaton import Automaton
from statetrack.sources.kinds import KINDS, Names, argument, build_inner


@KINDS.register("with-resets")
def with_resets(
    *,
    of: Annotated[dict[str, Any], argument("the automaton, with its kind and arguments")],
    to: Annotated[
        Literal["all"] | Names,
        argument("the states that can be set: all, or the names of some"),
    ] = "all",
    chance: Annotated[
        float, argument("the chance of a reset; all resets share it", min=0.001, max=0.999)
    ] = 0.1,
) -> Automaton:
    """An automaton with one more symbol `=q` for each of some states q, which leads there.

    Over a group these are the permutation-reset automata from which Krohn and Rhodes 1965,
    doi:10.1090/S0002-9947-1965-0188316-1, build all others; Liu et al. 2022, arXiv 2210.10749,
    have them as a task with resets at drawn distances, where here each symbol is one or not
    independently of the others.
    """
    inner = build_inner(of, "of")
    names = list(inner.states) if isinstance(to, str) else to
    for name in names:
        if name not in inner.states:
            hint = nearest_or_known(name, inner.states)
            raise TaskError(f"to: there is no state '{name}'.{hint}")
    targets = [inner.states.index(name) for name in names]
    rows = (inner.num_states, len(targets))
    return Automaton(
        np.hstack([inner.delta, np.broadcast_to(targets, rows)]),
        inner.output,
        start=inner.start,
        symbols=[*inner.symbols, *(f"={name}" for name in names)],
        states=inner.states,
        labels=inner.labels,
        weights=np.hstack([inner.weights * (1 - chance), np.full(rows, chance / len(targets))]),
        scored=inner.scored,
    )
