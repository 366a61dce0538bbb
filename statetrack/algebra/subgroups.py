"""What is known of one group in a monoid, whether its elements could be listed or not."""

from __future__ import annotations

import math
from dataclasses import dataclass

from statetrack.algebra.groups import Group
from statetrack.algebra.naming import name_of
from statetrack.sources.arrays import Integers

MOST_POINTS = 24
"""The most states whose permutations are worked with unlisted: this takes S^5 steps."""


@dataclass(frozen=True)
class Subgroup:
    """A maximal subgroup of a transition monoid.

    `seen` says whether labels show it: whether all states that it moves into each other are told
    apart by words that are drawn and labels that are asked for. A group that is not seen need
    not be tracked.
    """

    name: str
    order: int
    abelian: bool
    nilpotent: bool
    solvable: bool
    derived_length: int | None
    exponent: int | None
    """The smallest n with g^n = 1 for all g; None where it was not worked out."""
    squares_length: int | None
    """The least length of a subnormal series whose factors are elementary abelian 2-groups.

    None where there is no such series, and where it was not worked out.
    """
    seen: bool


def listed_subgroup(group: Group, seen: bool) -> Subgroup:
    """What is known of a group whose elements are listed."""
    return Subgroup(
        name=name_of(group),
        order=len(group),
        abelian=group.is_abelian,
        nilpotent=group.is_nilpotent,
        solvable=group.derived_length is not None,
        derived_length=group.derived_length,
        exponent=group.exponent,
        squares_length=_squares_length(group),
        seen=seen,
    )


def generated_subgroup(permutations: Integers, seen: bool) -> Subgroup:
    """What the algorithm of Schreier and Sims (1970) finds of the group that permutations generate.

    `[K, S]`, of at most `MOST_POINTS` states.
    """
    from sympy.combinatorics import Permutation, PermutationGroup

    num_points = permutations.shape[1]
    assert num_points <= MOST_POINTS, num_points
    group = PermutationGroup([Permutation(each.tolist()) for each in permutations])
    order = int(group.order())
    solvable, abelian = bool(group.is_solvable), bool(group.is_abelian)
    series = group.derived_series() if solvable else ()
    return Subgroup(
        name=_large_name(order, num_points, solvable, abelian),
        order=order,
        abelian=abelian,
        nilpotent=bool(group.is_nilpotent),
        solvable=solvable,
        derived_length=len(series) - 1 if solvable else None,
        exponent=math.lcm(*(int(each.order()) for each in group.generators)) if abelian else None,
        squares_length=None,
        seen=seen,
    )


def _large_name(order: int, num_points: int, solvable: bool, abelian: bool) -> str:
    """S_n is all permutations of n points, A_n the only half of them that is a group."""
    if order == math.factorial(num_points):
        return f"S{num_points}"
    if 2 * order == math.factorial(num_points):
        return f"A{num_points}"
    solved = "solvable" if solvable else "not solvable"
    return f"order {order}, {solved}, {'abelian' if abelian else 'not abelian'}"


def _squares_length(group: Group) -> int | None:
    """The steps in which the subgroup of squares, taken again and again, becomes trivial.

    None where it never does.
    """
    length = 0
    while len(group) > 1:
        if len(group.squares) == len(group):
            return None
        group = group.squares
        length += 1
    return length
