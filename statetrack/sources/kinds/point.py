"""Point tracking: where a group of permutations takes one point."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from statetrack.errors import TaskError
from statetrack.sources.automaton import MOST_TRANSITIONS, Automaton
from statetrack.sources.kinds import KINDS, argument
from statetrack.sources.named_groups import ALPHABETS, FAMILIES, Alphabet, alphabet_of, named_group


@KINDS.register("point")
def point(
    *,
    group: Annotated[str, argument(f"the group: {FAMILIES}")],
    generators: Annotated[Alphabet, argument(ALPHABETS)] = "few",
    points: Annotated[
        int | None,
        argument(
            "how many points it moves, for a group with several actions; left out, the usual one",
            min=2,
        ),
    ] = None,
    start: Annotated[int, argument("the point that is followed", min=1)] = 1,
) -> Automaton:
    """Where one point is, after permutations one after the other: y_t = x_t(y_(t-1)).

    The states are the points, however many elements the group has: M12 is tracked by 12 states.
    """
    named = named_group(group, points)
    if start > named.points:
        raise TaskError(f"start: {start} is not one of the points 1 to {named.points}")
    symbols = alphabet_of(named, generators)
    if named.points * len(symbols) > MOST_TRANSITIONS:
        raise TaskError(f"generators: {named.points} points and {len(symbols)} symbols: too many")
    return Automaton(
        np.array(list(symbols.values())).T,
        symbols=list(symbols),
        states=[str(place + 1) for place in range(named.points)],
        start=start - 1,
    )
