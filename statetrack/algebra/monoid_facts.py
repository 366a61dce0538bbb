"""What is known of a transition monoid: its groups, and how hard it makes it to find labels.

Where the monoid is too large to list, the holonomy groups, on images of the states
(`holonomy_groups`), tell its maximal subgroups, and with them all but its size and what takes a
look at single elements. From the syntactic monoid follows the complexity class of the labels:

| class | when |
|---|---|
| AC0 | quasi-aperiodic: no group among the elements that words of one and the same length make |
| ACC0 | solvable: every group in the monoid is solvable; and not known to be in AC0 |
| NC1-complete | a group in the monoid is not solvable, and labels show it |

Star-free languages have an aperiodic monoid (Schützenberger 1965) and are in AC0; (aa)* is in AC0
too and not star-free.

Letters: S states, P points, K permutations.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from statetrack.algebra.groups import Group, factorise, name_of, name_of_simple
from statetrack.algebra.images import HolonomyGroup, StateImages
from statetrack.algebra.machine import Machine
from statetrack.algebra.maps import commute, cycles, order_of, settled_power
from statetrack.algebra.monoid import Monoid, stable_elements
from statetrack.algebra.representations import orbits_of_pairs
from statetrack.algebra.stabilizer_chain import (
    StabilizerChain,
    TooMuchWorkError,
    WorkLeft,
    is_regular,
)
from statetrack.sources import Booleans, Integers, orbits

MOST_LISTED = 5_040
"""The most elements of a group that is given by generators that are listed."""
FEWEST_OF_GIANT = 12
"""Groups on so many points or more are first looked at for all, or all even permutations."""
GIANT_PRODUCTS = 100
"""The number of elements that are looked at for that."""
FEWEST_OF_SIMPLE = 5
"""The alternating group of so many points, or more, is simple."""
MOST_STABLE_STEPS = 2**25
"""Most products that the search for the stable semigroup may take."""


# --- one group ---


@dataclass(frozen=True)
class Subgroup:
    """A maximal subgroup of a transition monoid.

    `seen` says whether labels show it: whether all states that it moves into each other are told
    apart by words that are drawn and labels that are asked for. A group that is not seen need
    not be tracked.
    """

    name: str
    order: int
    seen: bool
    abelian: bool = False
    nilpotent: bool = False
    solvable: bool = False
    derived_length: int | None = None
    exponent: int | None = None
    """The smallest n with g^n = 1 for all g; None where it was not worked out."""
    squares_length: int | None = None
    """The least length of a subnormal series whose factors are elementary abelian 2-groups.

    None where there is no such series, and where it was not worked out.
    """


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
        squares_length=group.squares_length,
        seen=seen,
    )


def generated_subgroup(
    permutations: Integers, seen: bool, work: WorkLeft | None = None
) -> Subgroup | None:
    """What is known of the group that permutations `[K, S]` generate; None for too much work.

    Where it is small enough, its elements are listed.
    """
    num_points = permutations.shape[1]
    if letter := _giant(permutations):
        order = math.factorial(num_points) // (1 if letter == "S" else 2)
        return Subgroup(f"{letter}{num_points}", order, seen)
    try:
        return _known_of(StabilizerChain(num_points, permutations, work), seen)
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
    if is_regular(permutations):
        return ""
    draw = np.random.default_rng(0)
    element = np.arange(num_points)
    for _ in range(GIANT_PRODUCTS):
        for chosen in draw.integers(len(permutations), size=num_points // 4):
            element = permutations[chosen][element]
        lengths = map(len, cycles(element.tolist()))
        if any(
            factorise(length) == {length: 1}
            for length in lengths
            if num_points / 2 < length < num_points - 2
        ):
            odd = any(sum(len(each) - 1 for each in cycles(g)) % 2 for g in permutations.tolist())
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
        return Subgroup(f"{letter}{num_points}", order, seen)
    derived = group.commutators(group)
    length = None if derived.order == order else derived.derived_length()
    if length is None:
        renumbered = (np.cumsum(moved) - 1)[permutations[:, moved]]
        simple = derived.order == order and _has_simple_socle(renumbered)
        name = name_of_simple(order) if simple else ""
        return Subgroup(name or f"order {order}, not solvable, not abelian", order, seen)
    abelian = derived.order == 1
    return Subgroup(
        name=f"order {order}, solvable, {'abelian' if abelian else 'not abelian'}",
        order=order,
        abelian=abelian,
        nilpotent=group.is_nilpotent(),
        solvable=True,
        derived_length=length + 1,
        exponent=math.lcm(*map(order_of, group.generators)) if abelian else None,
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


# --- the monoid ---


@dataclass(frozen=True, kw_only=True)
class MonoidFacts:
    """What is known of a transition monoid; None for what is not."""

    size: int | None = None
    idempotents: int | None = None
    commutative: bool
    r_trivial: bool
    """No two elements each are a product of the other and something behind it."""
    l_trivial: bool | None
    """No two elements each are a product of something before it and the other."""
    quasi_aperiodic: bool | None
    """No group among the elements that words of one length make; None beyond the budget."""
    counting_seen: bool
    """Whether labels show such a group, as far as is known: then they are not in AC0."""
    j_classes: int | None = None
    regular_j_classes: int | None = None
    subgroups: tuple[Subgroup, ...]
    """One maximal subgroup for each regular J-class, largest first.

    Without those of one element, where the monoid's elements are not listed.
    """

    @property
    def aperiodic(self) -> bool:
        """Whether every group in it is trivial: the labels are star-free."""
        return all(group.order == 1 for group in self.subgroups)

    @property
    def j_trivial(self) -> bool | None:
        """Whether no two elements are products of each other: in finite monoids, R- and L-trivial.

        Whether a word belongs to the language of such a monoid depends on which words of some
        length are scattered in it (Simon 1975).
        """
        return self.r_trivial and self.l_trivial

    @property
    def solvable(self) -> bool:
        """Whether every group in it is solvable."""
        return all(group.solvable for group in self.subgroups)

    @property
    def nilpotent(self) -> bool:
        """Whether every group in it is nilpotent."""
        return all(group.nilpotent for group in self.subgroups)

    @property
    def derived_length(self) -> int | None:
        """The largest derived length of a group in it; None where one is not solvable."""
        lengths = [
            group.derived_length for group in self.subgroups if group.derived_length is not None
        ]
        return max(lengths, default=0) if len(lengths) == len(self.subgroups) else None


def facts_of_listed(
    machine: Machine, monoid: Monoid, images: StateImages
) -> tuple[MonoidFacts, list[Group]]:
    """What a list of the elements tells, and a maximal subgroup for every regular J-class."""
    listed = [(points, Group(permutations)) for points, permutations in monoid.maximal_subgroups()]
    aperiodic = all(len(group) == 1 for _, group in listed)
    quasi_aperiodic, counting_seen = _groups_of_one_length(machine, monoid, images)
    subgroups = [
        listed_subgroup(
            group,
            is_seen(
                machine.apart, group.permutations[list(group.generators)].astype(np.int64), points
            ),
        )
        for points, group in listed
    ]
    facts = MonoidFacts(
        size=len(monoid),
        idempotents=len(monoid.idempotents),
        commutative=commute(monoid.generators),
        r_trivial=machine.partially_ordered,
        l_trivial=aperiodic and monoid.l_trivial,
        quasi_aperiodic=quasi_aperiodic,
        counting_seen=counting_seen,
        j_classes=int(monoid.j_classes.max()) + 1,
        regular_j_classes=len(listed),
        subgroups=_largest_first(subgroups),
    )
    return facts, [group for _, group in listed]


def facts_of_group(machine: Machine) -> MonoidFacts | None:
    """What generators tell of a monoid whose symbols all permute the states; None if too much."""
    actions = machine.actions
    seen = is_seen(machine.apart, actions)
    group = generated_subgroup(actions, seen)
    if group is None:
        return None
    return MonoidFacts(
        size=group.order,
        idempotents=1,
        commutative=group.abelian,
        r_trivial=group.order == 1,
        l_trivial=group.order == 1,
        quasi_aperiodic=len(actions) == 1,
        counting_seen=len(actions) > 1 and seen,
        j_classes=1,
        regular_j_classes=1,
        subgroups=(group,),
    )


def facts_of_images(machine: Machine, images: StateImages) -> MonoidFacts | None:
    """What images of the states tell; None where there are too many, or it is too much work.

    The maximal subgroups of the monoid are those groups of images that are maximal. The other ones
    are quotients of subgroups, so they are no news.
    """
    groups = images.groups
    if groups is None:
        return None
    apart = _apart_as_classes(machine, images)
    quasi_aperiodic, counting_seen = _lengths_by_images(groups, apart)
    work, subgroups = WorkLeft(), []
    for group in groups:
        if group.is_maximal:
            seen = is_seen(apart, group.permutations, group.points)
            subgroup = generated_subgroup(group.permutations, seen, work)
            if subgroup is None:
                return None
            subgroups.append(subgroup)
    aperiodic = not subgroups
    return MonoidFacts(
        commutative=commute(machine.actions),
        r_trivial=machine.partially_ordered,
        l_trivial=None if aperiodic else False,
        quasi_aperiodic=quasi_aperiodic,
        counting_seen=counting_seen,
        subgroups=_largest_first(subgroups),
    )


def is_seen(apart: Booleans | None, permutations: Integers, points: Integers | None = None) -> bool:
    """Whether labels distinguish all states that permutations map into each other.

    The permutations `[K, P]` are of some of the states, `points [P]`; left out, of all of them.
    `apart [S, S]` says which states labels distinguish; None is not known.
    """
    if apart is None:
        return False
    orbit = orbits(permutations, permutations.shape[1])
    among = apart if points is None else apart[np.ix_(points, points)]
    together: Booleans = among | (orbit[:, None] != orbit[None, :])
    np.fill_diagonal(together, True)
    return bool(together.all())


def _largest_first(groups: list[Subgroup]) -> tuple[Subgroup, ...]:
    return tuple(sorted(groups, key=lambda group: -group.order))


def _groups_of_one_length(
    machine: Machine, monoid: Monoid, images: StateImages
) -> tuple[bool | None, bool]:
    """Whether the stable semigroup has no group, and whether labels show that it has one.

    It has none if every element m of it has m^n = m^(n+1) for some n. If an element has a cycle on
    which labels distinguish two states, then a power of it, which is in the semigroup too, maps one
    of the two to the other: labels depend on how often it was read, modulo a number above 1.
    """
    if monoid.is_group and machine.complete:
        alone = len(machine.actions) == 1
        return alone, not alone
    stable = stable_elements(monoid, machine.actions, MOST_STABLE_STEPS)
    if stable is None:
        if (groups := images.groups) is None:
            return None, False
        return _lengths_by_images(groups, _apart_as_classes(machine, images))
    maps = monoid.elements[stable].astype(np.int64)
    powers = settled_power(maps)
    further = np.take_along_axis(maps, powers, axis=1)
    seen = machine.apart is not None and bool(machine.apart[powers, further].any())
    return bool((further == powers).all()), seen


def _lengths_by_images(
    groups: tuple[HolonomyGroup, ...], apart: Booleans | None
) -> tuple[bool, bool]:
    """The same from images: words of one length that make a group move a state of an image.

    In a group that is seen, they move it to one that labels tell from it.
    """
    counting = [group for group in groups if not group.by_length]
    seen = any(is_seen(apart, group.permutations, group.points) for group in counting)
    return not counting, seen


def _apart_as_classes(machine: Machine, images: StateImages) -> Booleans | None:
    """Which classes of states labels surely distinguish, whichever state of each it is."""
    apart, classes = machine.apart, images.settled.classes
    if apart is None:
        return None
    order = np.argsort(classes, kind="stable")
    first = np.flatnonzero(np.diff(classes[order], prepend=-1))
    rows = np.logical_and.reduceat(apart[np.ix_(order, order)], first, axis=0)
    both: Booleans = np.logical_and.reduceat(rows, first, axis=1)
    return both


# --- the complexity class of labels ---

ComplexityClass = Literal["AC0", "ACC0", "NC1-complete", "unknown"]


@dataclass(frozen=True)
class Complexity:
    """The complexity class of a task's labels, with the theorem that gives it."""

    name: ComplexityClass
    theorem: str
    source: str


BARRINGTON = "Barrington 1989, J. Comput. Syst. Sci. 38"
COUNTING = "all groups are solvable: constant depth with counting modulo m; "
REGULAR = "in NC1, as every regular language is; the monoid "

QUASI_APERIODIC = Complexity(
    "AC0",
    "words of one length never make a group: constant depth, polynomial size, no counting",
    "Barrington, Compton, Straubing and Therien 1992, J. Comput. Syst. Sci. 44",
)
SOLVABLE = Complexity(
    "ACC0",
    COUNTING + "some word length makes a group, so not AC0",
    "Barrington and Therien 1988, doi:10.1145/48014.63138",
)
SOLVABLE_AT_MOST = replace(SOLVABLE, theorem=COUNTING + "whether AC0 is enough is not known")
NOT_SOLVABLE = Complexity(
    "NC1-complete",
    "a group is not solvable: as hard as evaluating formulas, under AC0 reductions",
    BARRINGTON,
)
NOT_SHOWN = Complexity(
    "unknown",
    REGULAR + "has a group that is not solvable, but no label that is asked for shows it",
    BARRINGTON,
)
TOO_LARGE = Complexity("unknown", REGULAR + "is too large to say more", BARRINGTON)


def complexity_of(facts: MonoidFacts | None) -> Complexity:
    """The class of labels with such a monoid; None is a monoid that is too large.

    A group makes labels hard only where they show it.
    """
    if facts is None:
        return TOO_LARGE
    if not facts.solvable:
        shown = any(group.seen and not group.solvable for group in facts.subgroups)
        return NOT_SOLVABLE if shown else NOT_SHOWN
    if facts.quasi_aperiodic:
        return QUASI_APERIODIC
    return SOLVABLE if facts.counting_seen else SOLVABLE_AT_MOST
