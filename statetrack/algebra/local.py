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

MOST_LOCAL = 400
"""Most elements e t e whose orders are compared."""

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
