"""The Heisenberg group: matrices with ones on the diagonal and zeros below."""

from __future__ import annotations

import itertools
from typing import Annotated, Literal

from statetrack.sources.automaton import Automaton
from statetrack.sources.groups import named_word_problem
from statetrack.sources.kinds import KINDS, Names, argument


@KINDS.register("heisenberg")
def heisenberg(
    *,
    m: Annotated[
        int, argument("the modulus of the entries: the group has m^3 elements", min=2, max=11)
    ],
    generators: Annotated[
        Literal["all", "standard"] | Names,
        argument(
            "the symbols: all elements; standard: (1,0,0), (0,1,0) and their inverses; "
            "or the names of some"
        ),
    ] = "all",
) -> Automaton:
    """The word problem of H_3(Z_m): matrices of three rows with entries modulo m.

    The element (a,b,c) is the matrix of rows 1 a c, 0 1 b, 0 0 1, so that
    (a,b,c)(d,e,f) = (a+d, b+e, c+f+ae). It commutes with all others only where a = b = 0: the
    group is nilpotent of class 2. H_3(Z_2) is the dihedral group of order 8.
    """
    elements = list(itertools.product(range(m), repeat=3))
    names = [f"({a},{b},{c})" for a, b, c in elements]

    def times(left: int, right: int) -> int:
        (a, b, c), (d, e, f) = elements[left], elements[right]
        return ((a + d) % m * m + (b + e) % m) * m + (c + f + a * e) % m

    if generators == "standard":
        steps = ["(1,0,0)", "(0,1,0)", f"({m - 1},0,0)", f"(0,{m - 1},0)"]
        return named_word_problem(names, times, list(dict.fromkeys(steps)))
    return named_word_problem(names, times, generators)
