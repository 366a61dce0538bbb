"""What is known of a transition monoid, from a list of its elements or from images of the states.

Where the monoid is too large to list, the groups on images of the states (`image_groups`) tell its
maximal subgroups, and with them all but its size and what takes a look at single elements.

Letters: S states, P points.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from statetrack.algebra.groups import Group
from statetrack.algebra.images import ImageGroup, StateImages
from statetrack.algebra.machine import Machine
from statetrack.algebra.monoid import Monoid, stable_elements
from statetrack.algebra.stabilizer_chain import Work
from statetrack.algebra.subgroups import Subgroup, generated_subgroup, listed_subgroup
from statetrack.sources import Booleans, Integers, orbits

MOST_STABLE_STEPS = 2**25
"""Most products that the search for the stable semigroup may take."""


@dataclass(frozen=True)
class MonoidFacts:
    """What is known of a transition monoid; None for what is not."""

    size: int | None
    idempotents: int | None
    commutative: bool
    r_trivial: bool
    """No two elements each are a product of the other and something behind it."""
    l_trivial: bool | None
    """No two elements each are a product of something before it and the other."""
    quasi_aperiodic: bool | None
    """No group among the elements that words of one length make; None beyond the budget."""
    counting_seen: bool
    """Whether labels show such a group, as far as is known: then they are not in AC0."""
    j_classes: int | None
    regular_j_classes: int | None
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
            group, is_seen(machine.apart, group.permutations[list(group.generators)], points)
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
    apart = _apart_as_classes(machine, images.settled.classes)
    work, subgroups = Work(), []
    for group in groups:
        if group.is_maximal:
            seen = is_seen(apart, group.permutations, group.points)
            subgroup = generated_subgroup(group.permutations, seen, work)
            if subgroup is None:
                return None
            subgroups.append(subgroup)
    aperiodic = not subgroups
    return MonoidFacts(
        size=None,
        idempotents=None,
        commutative=commute(machine.actions),
        r_trivial=machine.partially_ordered,
        l_trivial=None if aperiodic else False,
        quasi_aperiodic=all(group.by_length for group in groups),
        counting_seen=_counting_seen(groups, apart),
        j_classes=None,
        regular_j_classes=None,
        subgroups=_largest_first(subgroups),
    )


def commute(maps: np.ndarray) -> bool:
    """Whether any two of some maps `[K, S]` give the same in both orders."""
    return all(
        bool((second[first] == first[second]).all())
        for place, first in enumerate(maps)
        for second in maps[:place]
    )


def is_seen(apart: Booleans | None, permutations: Integers, points: Integers | None = None) -> bool:
    """Whether labels distinguish all states that permutations map into each other.

    The permutations `[K, P]` are of some of the states, `points [P]`; left out, of all of them.
    `apart [S, S]` says which states labels distinguish; None is not known.
    """
    if apart is None:
        return False
    orbit = orbits(permutations, permutations.shape[1])
    moved = (orbit[:, None] == orbit[None, :]) & ~np.eye(len(orbit), dtype=bool)
    among = apart if points is None else apart[np.ix_(points, points)]
    return bool(among[moved].all())


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
        groups = images.groups
        if groups is None:
            return None, False
        apart = _apart_as_classes(machine, images.settled.classes)
        return all(group.by_length for group in groups), _counting_seen(groups, apart)
    maps = monoid.elements[stable].astype(np.int64)
    powers = maps
    for _ in range(len(machine.delta).bit_length()):
        powers = np.take_along_axis(powers, powers, axis=1)  # m^(2^k), then beyond the S-th
    further = np.take_along_axis(maps, powers, axis=1)
    seen = machine.apart is not None and bool(machine.apart[powers, further].any())
    return bool((further == powers).all()), seen


def _counting_seen(groups: tuple[ImageGroup, ...], apart: Booleans | None) -> bool:
    """Whether labels show a group that words of one length make.

    Such words move a state of the image to another one: in a group that is seen, to one that labels
    tell from it.
    """
    return any(
        not group.by_length and is_seen(apart, group.permutations, group.points) for group in groups
    )


def _apart_as_classes(machine: Machine, classes: Integers) -> Booleans | None:
    """Which classes of states labels surely distinguish, whichever state of each it is."""
    apart = machine.apart
    if apart is None:
        return None
    order = np.argsort(classes, kind="stable")
    first = np.flatnonzero(np.diff(classes[order], prepend=-1))
    rows = np.logical_and.reduceat(apart[np.ix_(order, order)], first, axis=0)
    both: Booleans = np.logical_and.reduceat(rows, first, axis=1)
    return both
