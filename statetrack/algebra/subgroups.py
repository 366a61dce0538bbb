"""What is known of one group in a monoid, whether its elements could be listed or not."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from statetrack.algebra.groups import Group, factorise
from statetrack.algebra.naming import name_of, name_of_simple
from statetrack.algebra.representations import orbits_of_pairs
from statetrack.algebra.stabilizer_chain import StabilizerChain, TooMuchWorkError, Work
from statetrack.sources import Booleans, Integers, orbits

MOST_LISTED = 5_040
"""The most elements of a group that is given by generators that are listed."""

FEWEST_OF_GIANT = 12
"""Groups on so many points or more are first looked at for all, or all even permutations."""

GIANT_PRODUCTS = 100
"""The number of elements that are looked at for that."""

FEWEST_OF_SIMPLE = 5
"""The alternating group of so many points, or more, is simple."""


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


def generated_subgroup(
    permutations: Integers, seen: bool, work: Work | None = None
) -> Subgroup | None:
    """What is known of the group that permutations `[K, S]` generate; None for too much work.

    Where it is small enough, its elements are listed.
    """
    letter = _giant(permutations)
    if letter:
        num_points = permutations.shape[1]
        order = math.factorial(num_points) // (1 if letter == "S" else 2)
        return _not_solvable(f"{letter}{num_points}", order, seen)
    try:
        return _known_of(StabilizerChain(permutations.shape[1], permutations, work), seen)
    except TooMuchWorkError:
        return None


def _giant(permutations: Integers) -> str:
    """S or A, where `[K, P]` are surely found to generate all permutations, or all even ones.

    A transitive group contains all even permutations of P points if some element has a cycle of
    prime length p with P / 2 < p < P - 2 (Jordan 1873; Seress 2003, Permutation Group Algorithms,
    section 10.2): a power of it is that cycle alone. One in ln P elements or so of such a group
    has such a cycle; products of generators drawn at random are looked at. Else it is empty.
    """
    num_points = permutations.shape[1]
    if num_points < FEWEST_OF_GIANT or orbits(permutations, num_points).any():
        return ""
    draw = np.random.default_rng(0)
    element = np.arange(num_points)
    for _ in range(GIANT_PRODUCTS):
        for chosen in draw.integers(len(permutations), size=num_points // 4):
            element = permutations[chosen][element]
        lengths = set(_cycle_lengths(element))
        if any(
            factorise(length) == {length: 1}
            for length in lengths
            if num_points / 2 < length < num_points - 2
        ):
            odd = any((num_points - len(_cycle_lengths(each))) % 2 for each in permutations)
            return "S" if odd else "A"
    return ""


def _known_of(group: StabilizerChain, seen: bool) -> Subgroup:
    order = group.order
    if order <= MOST_LISTED:
        return listed_subgroup(Group(group.elements()), seen)
    permutations = np.array(group.generators)
    moved = (permutations != np.arange(group.num_points)).any(axis=0)
    num_points = int(moved.sum())
    everything = math.factorial(num_points)
    if num_points >= FEWEST_OF_SIMPLE and order in (everything, everything // 2):
        # S_n is all permutations of n points, and A_n the only half of them that is a group
        letter = "S" if order == everything else "A"
        return _not_solvable(f"{letter}{num_points}", order, seen)
    derived = group.commutators(group)
    length = None if derived.order == order else derived.derived_length()
    if length is None:
        simple = derived.order == order and _has_simple_socle(_of_moved(permutations, moved))
        name = name_of_simple(order) if simple else ""
        return _not_solvable(name or f"order {order}, not solvable, not abelian", order, seen)
    abelian = derived.order == 1
    return Subgroup(
        name=f"order {order}, solvable, {'abelian' if abelian else 'not abelian'}",
        order=order,
        abelian=abelian,
        nilpotent=group.is_nilpotent(),
        solvable=True,
        derived_length=length + 1,
        exponent=math.lcm(*map(_order_of, group.generators)) if abelian else None,
        squares_length=None,
        seen=seen,
    )


def _of_moved(permutations: Integers, moved: Booleans) -> Integers:
    """Permutations of the points that are moved alone, numbered from 0."""
    place = np.cumsum(moved) - 1
    return place[permutations[:, moved]]


def _order_of(permutation: Integers) -> int:
    """The smallest n with g^n = 1."""
    return math.lcm(*_cycle_lengths(permutation))


def _cycle_lengths(permutation: Integers) -> list[int]:
    cycles = orbits([permutation], len(permutation))
    lengths: list[int] = np.unique(cycles, return_counts=True)[1].tolist()
    return lengths


def _not_solvable(name: str, order: int, seen: bool) -> Subgroup:
    return Subgroup(
        name=name,
        order=order,
        abelian=False,
        nilpotent=False,
        solvable=False,
        derived_length=None,
        exponent=None,
        squares_length=None,
        seen=seen,
    )


def _has_simple_socle(permutations: Integers) -> bool:
    """Whether permutations `[K, S]` surely generate a group above one simple group, its socle.

    A group that is 2-transitive has one minimal normal subgroup, which is simple, or elementary
    abelian of S elements (Burnside 1911). The latter needs S to be a power of a prime; and where S
    is a prime, the group then is solvable. What lies above the simple one is solvable (Schreier's
    conjecture): so a perfect group is simple itself.
    """
    states = factorise(permutations.shape[1])
    is_higher_power = len(states) == 1 and set(states.values()) != {1}
    return not is_higher_power and len(np.unique(orbits_of_pairs(permutations))) == 2


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
