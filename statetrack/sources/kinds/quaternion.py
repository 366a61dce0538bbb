"""The quaternion group Q_8."""

from __future__ import annotations

from typing import Annotated, Literal

from statetrack.sources.automaton import Automaton
from statetrack.sources.groups import named_word_problem
from statetrack.sources.kinds import KINDS, Names, argument

PRODUCTS = [
    ["1", "i", "j", "k"],
    ["i", "-1", "k", "-j"],
    ["j", "-k", "-1", "i"],
    ["k", "j", "-i", "-1"],
]
"""Of the units 1, i, j and k: the left one chooses the row."""


@KINDS.register("quaternion")
def quaternion(
    *,
    generators: Annotated[
        Literal["all"] | Names,
        argument("the symbols: all elements, or the names of some, such as [i, j]"),
    ] = "all",
) -> Automaton:
    """The word problem of Q_8 = {1, -1, i, -i, j, -j, k, -k}: i^2 = j^2 = k^2 = ijk = -1."""
    names = [sign + unit for unit in PRODUCTS[0] for sign in ("", "-")]

    def times(left: int, right: int) -> int:
        (first, minus), (second, other_minus) = divmod(left, 2), divmod(right, 2)
        return names.index(PRODUCTS[first][second]) ^ minus ^ other_minus

    return named_word_problem(names, times, generators)
