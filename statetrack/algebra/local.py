"""What labels show of the order of words of one length, among words that change nothing.

Let T be the elements of the transition monoid that words of one length make, once that set repeats
itself (the stable semigroup), and e one of them with e e = e. The elements e t e with t in T are
the words that can be read among words e on the states that e keeps.

Letters: N elements, S states.
"""

from __future__ import annotations

import numpy as np

from statetrack.algebra.machine import Machine
from statetrack.algebra.monoid import Monoid, stable_elements
from statetrack.sources.arrays import Integers

MOST_LOCAL = 400
"""Most elements e t e whose orders are compared."""

MOST_WORDS = 2_000
"""Most words that are tried where the monoid is too large to list."""

MOST_STEPS = 2**24
"""Most products that the search for T takes."""

MOST_ENTRIES = 2**27
"""Most entries of tables that are gone through in all: the running time follows them."""


def local_order_matters(machine: Machine, monoid: Monoid) -> bool | None:
    """Whether labels tell e a e b e from e b e a e, for some e, a and b in T.

    None where it was not worked out: too many elements, or none found among those looked at.
    """
    apart = machine.apart
    stable = stable_elements(monoid, machine.actions, MOST_STEPS)
    if apart is None or stable is None:
        return None
    maps = monoid.elements[stable].astype(np.int64)
    squares = np.take_along_axis(maps, maps, axis=1)
    entries = MOST_ENTRIES
    complete = True
    for kept in maps[(squares == maps).all(axis=1)]:
        local = np.unique(kept[maps[:, kept]], axis=0)
        complete = complete and len(local) <= MOST_LOCAL
        local = local[:MOST_LOCAL]
        entries -= maps.size + len(local) * local.size
        if entries < 0:
            return None
        for first in local:
            if apart[local[:, first], first[local]].any():
                return True
    return False if complete else None


def order_shown_by_short_words(machine: Machine) -> bool:
    """Whether labels tell e a e b e from e b e a e, for e of one symbol and short words a and b.

    The monoid has to be aperiodic. Then all high powers of a symbol x are one idempotent e, so
    words of any length, each between powers of x that fill them up to one and the same length of
    the stable semigroup, act as e a e and e b e.
    """
    apart = machine.apart
    if apart is None:
        return False
    words, entries = _short_words(machine.actions), MOST_ENTRIES
    for action in machine.actions:
        kept = action
        while (square := kept[kept]).tolist() != kept.tolist():
            kept = square
        points = np.unique(kept)
        if len(points) < 2:
            continue
        maps = kept[words[:, points]]  # what each word does among the states that e keeps
        place = np.zeros(len(kept), np.int64)
        place[points] = np.arange(len(points))
        local = place[np.unique(maps, axis=0)[:MOST_LOCAL]]
        told = apart[np.ix_(points, points)]
        entries -= maps.size + len(local) * local.size
        if entries < 0:
            return False
        if any(told[local[:, first], first[local]].any() for first in local):
            return True
    return False


def _short_words(actions: Integers) -> Integers:
    """The maps that the shortest words make, once each: `[at most MOST_WORDS, S]`."""
    maps = [np.arange(actions.shape[1])]
    known = {maps[0].tobytes()}
    for word in maps:
        for action in actions:
            after = action[word]
            if after.tobytes() not in known:
                known.add(after.tobytes())
                maps.append(after)
        if len(maps) >= MOST_WORDS:
            break
    return np.array(maps[:MOST_WORDS])
