"""What labels show of the order of words of one length, among words that change nothing.

Let T be the elements of the transition monoid that words of one length make, once that set repeats
itself (the stable semigroup), and e one of them with e e = e. The elements e t e with t in T are
the words that can be read among words e on the states that e keeps.

Letters: N elements, S states.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from statetrack.algebra.machine import Machine
from statetrack.algebra.monoid import Monoid, stable_elements
from statetrack.algebra.short_words import ShortWords
from statetrack.algebra.witness import Word

MOST_LOCAL = 400
"""Most elements e t e whose orders are compared."""

MOST_WORDS = 2_000
"""Most words that are tried where the monoid is too large to list."""

MOST_STEPS = 2**24
"""Most products that the search for T takes."""

MOST_ENTRIES = 2**27
"""Most entries of tables that are gone through in all: the running time follows them."""


@dataclass(frozen=True)
class LocalOrder:
    """Elements e, a and b of the monoid, by number, and a state, from which labels tell orders."""

    idle: int
    first: int
    second: int
    state: int


def local_order_matters(machine: Machine, monoid: Monoid) -> bool | None:
    """Whether labels tell e a e b e from e b e a e, for some e, a and b in T.

    None where it was not worked out: too many elements, or none found among those looked at.
    """
    return _search(machine, monoid)[0]


def local_order(machine: Machine, monoid: Monoid) -> LocalOrder | None:
    """Elements that show it; None where none were found."""
    return _search(machine, monoid)[1]


def _search(machine: Machine, monoid: Monoid) -> tuple[bool | None, LocalOrder | None]:
    apart = machine.apart
    stable = stable_elements(monoid, machine.actions, MOST_STEPS)
    if apart is None or stable is None:
        return None, None
    numbers = np.flatnonzero(stable)
    maps = monoid.elements[numbers].astype(np.int64)
    squares = np.take_along_axis(maps, maps, axis=1)
    entries = MOST_ENTRIES
    complete = True
    for idle in np.flatnonzero((squares == maps).all(axis=1)).tolist():
        kept = maps[idle]
        local, places = np.unique(kept[maps[:, kept]], axis=0, return_index=True)
        complete = complete and len(local) <= MOST_LOCAL
        local = local[:MOST_LOCAL]
        entries -= maps.size + len(local) * local.size
        if entries < 0:
            return None, None
        for place, first in enumerate(local):
            told = apart[local[:, first], first[local]]
            if told.any():
                # local[:, first] reads `first` before the other one
                second, state = np.argwhere(told)[0].tolist()
                a, b = int(numbers[places[place]]), int(numbers[places[second]])
                return True, LocalOrder(int(numbers[idle]), a, b, state)
    return (False if complete else None), None


def order_shown_by_short_words(machine: Machine) -> bool:
    """Whether labels tell e a e b e from e b e a e, for e of one symbol and short words a and b.

    The monoid has to be aperiodic. Then all high powers of a symbol x are one idempotent e, so
    words of any length, each between powers of x that fill them up to one and the same length of
    the stable semigroup, act as e a e and e b e.
    """
    return order_by_short_words(machine) is not None


@dataclass(frozen=True)
class ShortOrder:
    """The number of an action, words of numbers of actions, and a state, that show it."""

    idle: int
    first: Word
    second: Word
    state: int


def order_by_short_words(machine: Machine) -> ShortOrder | None:
    """Words that show it; None where none were found."""
    apart = machine.apart
    if apart is None:
        return None
    words = ShortWords.of(machine.actions, range(len(machine.actions)), MOST_WORDS)
    tried, entries = words.maps[:MOST_WORDS], MOST_ENTRIES
    for number, action in enumerate(machine.actions):
        kept = action
        while (square := kept[kept]).tolist() != kept.tolist():
            kept = square
        points = np.unique(kept)
        if len(points) < 2:
            continue
        maps = kept[tried[:, points]]  # what each word does among the states that e keeps
        place = np.zeros(len(kept), np.int64)
        place[points] = np.arange(len(points))
        found, places = np.unique(maps, axis=0, return_index=True)
        local = place[found[:MOST_LOCAL]]
        told = apart[np.ix_(points, points)]
        entries -= maps.size + len(local) * local.size
        if entries < 0:
            return None
        for one, first in enumerate(local):
            shown = told[local[:, first], first[local]]
            if shown.any():
                other, point = np.argwhere(shown)[0].tolist()
                return ShortOrder(
                    number,
                    words.word(int(places[one])),
                    words.word(int(places[other])),
                    int(points[point]),
                )
    return None
