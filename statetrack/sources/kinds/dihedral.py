"""The dihedral group D_n: the symmetries of a regular polygon with n corners."""

from __future__ import annotations

from typing import Annotated, Literal

from statetrack.sources.automaton import Automaton
from statetrack.sources.groups import named_word_problem
from statetrack.sources.kinds import KINDS, Names, argument


@KINDS.register("dihedral")
def dihedral(
    *,
    n: Annotated[int, argument("how many corners the polygon has", min=3, max=512)],
    generators: Annotated[
        Literal["all"] | Names,
        argument("the symbols: all elements, or the names of some, such as [r, s]"),
    ] = "all",
) -> Automaton:
    """The word problem of D_n, which has 2n elements e, r, r^2, ..., s, rs, r^2s, ...

    r turns and s reflects: r^n = s^2 = e and s r = r^-1 s, so that
    (r^a s^b)(r^c s^d) = r^(a + c or a - c, as b is 0 or 1) s^(b + d).
    """
    turns = ["", "r", *(f"r^{power}" for power in range(2, n))]
    names = ["e", *turns[1:], *(f"{turn}s" for turn in turns)]

    def times(left: int, right: int) -> int:
        (b, a), (d, c) = divmod(left, n), divmod(right, n)
        return (a + (c, -c)[b]) % n + n * ((b + d) % 2)

    return named_word_problem(names, times, generators)
