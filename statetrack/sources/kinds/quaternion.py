"""The quaternion group Q_8."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from statetrack.sources.automaton import Automaton
from statetrack.sources.groups import named_word_problem
from statetrack.sources.kinds import KINDS, argument

UNITS = "1ijk"
SIGNED_PRODUCTS = {"ij": "k", "jk": "i", "ki": "j", "ji": "-k", "kj": "-i", "ik": "-j"}


@KINDS.register("quaternion")
def quaternion(
    *,
    generators: Annotated[
        Literal["all"] | Annotated[list[str], Field(min_length=1)],
        argument("the symbols: all elements, or the names of some, such as [i, j]"),
    ] = "all",
) -> Automaton:
    """The word problem of Q_8 = {1, -1, i, -i, j, -j, k, -k}: i^2 = j^2 = k^2 = ijk = -1."""
    names = [sign + unit for unit in UNITS for sign in ("", "-")]

    def times(left: int, right: int) -> int:
        (first, minus), (second, other_minus) = divmod(left, 2), divmod(right, 2)
        name = _unit_product(UNITS[first], UNITS[second])
        return names.index(name) ^ minus ^ other_minus

    return named_word_problem(names, times, generators)


def _unit_product(left: str, right: str) -> str:
    if "1" in (left, right):
        return left if right == "1" else right
    return "-1" if left == right else SIGNED_PRODUCTS[left + right]
