"""Bounds on what a cascade of groups and resets needs (Krohn and Rhodes 1965), from both sides.

The *group complexity* of a monoid is the fewest layers of groups in a wreath product, of groups and
aperiodic monoids in turn, that it divides. Deciding it is hard; what is proven here:

- 0 exactly where every group in the monoid is trivial, so at least 1 otherwise;
- at least r - 1, where the elements e m e of some idempotent e of rank r act on its r states as all
  maps of them: the monoid of all maps of r states has complexity r - 1 (Krohn and Rhodes 1968,
  Ann. Math. 88), and a monoid that divides another has no higher complexity;
- for the same reason at most S - 1 for S states;
- at most 1, where idempotents commute: then the monoid divides an inverse one (Ash 1987), and that
  a semidirect product of a semilattice and a group;
- at most the most J-classes with a group that is not trivial, one above the other (Tilson's depth
  decomposition theorem, in Eilenberg 1976, vol. B, ch. XI);
- at most the number of levels of the holonomy decomposition with such a group.

Where the monoid is too large to list, images of the states tell (`statetrack.algebra.images`):
which idempotents have which group, and of J-classes one above the other at least those that are.

The *holonomy decomposition* (Zeiger 1967; Eilenberg 1976, vol. B, ch. II) is a cascade with one
level for each height of the sets of states that words make of all states: such a set is below
another where some word maps the other onto a set that contains it. A level consists of resets and
of the groups that permute the largest sets inside a set of its height. So a cascade of as many
levels as the set of all states is high does it, each of a group and resets.

Letters: I sets of states, S states, K actions, N elements.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from statetrack.algebra.images import HolonomyGroup, Images, Loops, StateImages, images_of
from statetrack.algebra.maps import commute, permute
from statetrack.algebra.monoid import Monoid
from statetrack.sources import Booleans, Integers, places_of, reachable, strong_components

MOST_SETS = 2_000
"""Most sets of states for which the holonomy decomposition is worked out."""
MOST_MARKS = 2**27
"""Most marks of images by groups that are compared."""
MOST_IDEMPOTENTS = 500
"""Most idempotents of which every pair is compared."""
AT_ONCE = 256
"""So many loops are looked at together."""


@dataclass(frozen=True)
class Cascade:
    """Bounds on a cascade of groups and resets that does what a machine does."""

    levels: int | None
    """Levels of the holonomy decomposition, which are enough; None beyond the budget."""
    fewest_groups: int
    """The group complexity is at least this."""
    most_groups: int | None
    """It is at most this; None where no bound is known."""


def cascade_of(
    actions: Integers, monoid: Monoid | None, images: StateImages | None = None
) -> Cascade:
    """The bounds for the monoid that some maps of the states generate: `actions [K, S]`.

    `monoid` is None where it is too large to list; then the images of the states tell as much.
    """
    if permute(actions).all():
        group = int((actions != np.arange(actions.shape[1])).any())
        return Cascade(int(actions.shape[1] > 1), group, group)
    holonomy = holonomy_levels(actions)
    levels, with_groups = holonomy if holonomy is not None else (None, None)
    if monoid is None:
        if images is None or images.images is None or images.groups is None:
            return Cascade(levels, int(bool(with_groups)), with_groups)
        maximal = [group for group in images.groups if group.is_maximal]
        largest = _largest_full_image(images.images, maximal)
        above = _depth_of_images(images.images, maximal)
        known = [each for each in (above, with_groups, actions.shape[1] - 1) if each is not None]
        return Cascade(levels, max(int(bool(maximal)), largest - 1), min(known))
    depth = _depth(monoid)
    bounds = [depth, actions.shape[1] - 1, depth if with_groups is None else with_groups]
    idempotents = monoid.elements[monoid.idempotents].astype(np.int64)
    if depth > 1 and len(idempotents) <= MOST_IDEMPOTENTS and commute(idempotents):
        bounds.append(1)
    return Cascade(levels, max(min(depth, 1), _largest_full_rank(monoid) - 1), min(bounds))


def holonomy_levels(actions: Integers) -> tuple[int, int] | None:
    """The levels of the holonomy decomposition, and those with a group; None beyond the budget."""
    found = images_of(actions, MOST_SETS, and_states=True)
    if found is None:
        return None
    sizes, counts = found.sizes, found.members.astype(np.float32)
    # whether the first set lies inside the second and is smaller
    inside = (counts @ counts.T == sizes[:, None]) & (sizes[:, None] < sizes[None, :])
    classes = strong_components(found.step)
    height, with_groups = np.zeros(len(found), np.int64), set()
    # a set leads to smaller ones, or to those of its size that stand in an earlier class
    first_ones = np.unique(classes, return_index=True)[1].tolist()
    for first in sorted(first_ones, key=lambda each: (sizes[each], classes[each])):
        members = np.flatnonzero(classes == classes[first])
        if sizes[first] == 1:
            continue
        below: Booleans = np.logical_or.reduce(inside[:, members], axis=1)
        below[found.step[members].ravel()] = True
        below[members] = False
        height[members] = 1 + height[below].max()
        within = np.flatnonzero(inside[:, first])
        tiles = within[~inside[np.ix_(within, within)].any(axis=1)]
        level = int(height[first])
        if level not in with_groups and _moves_tiles(members, found, found.members[tiles]):
            with_groups.add(level)
    return int(height[0]), len(with_groups)


def _moves_tiles(members: Integers, images: Images, tiles: Booleans) -> bool:
    """Whether some word that maps the first set of a class onto itself moves some tile.

    Tiles `[number, S]` are the largest sets inside the first set.
    """
    place = places_of(members, len(images))
    source, action = np.nonzero(place[images.step[members]] >= 0)
    target = place[images.step[members[source], action]]

    def moved_by(maps: Integers) -> bool:
        return any(not tile[maps[:, tile]].all() for tile in tiles)

    at_once = (source == 0) & (target == 0)  # symbols that do so tell most often
    if moved_by(images.actions[action[at_once]]):
        return True
    if len(members) == 1:
        return False
    loops = Loops.of(np.array([0]), source, target, action, images.actions)
    edges = np.arange(len(source))
    return any(
        moved_by(loops.done_by(edges[begin : begin + AT_ONCE]))
        for begin in range(0, len(edges), AT_ONCE)
    )


def _depth(monoid: Monoid) -> int:
    """The most regular J-classes with a group that is not trivial, one above the other."""
    classes = monoid.j_classes
    depth = np.zeros(int(classes.max()) + 1, np.int64)
    for idempotent in monoid.regular_idempotents:
        depth[classes[idempotent]] = monoid.order_at(int(idempotent)) > 1
    order = np.argsort(classes, kind="stable")
    steps = classes[monoid.neighbours[order]]
    begins = np.searchsorted(classes[order], np.arange(len(depth) + 1))
    for each in range(len(depth)):  # classes are numbered after all that they lead to
        below = np.unique(steps[begins[each] : begins[each + 1]])
        depth[each] += max((int(depth[other]) for other in below if other != each), default=0)
    return int(depth.max())


def _largest_full_rank(monoid: Monoid) -> int:
    """The largest r found with elements e m e that act on the r states of e as all maps of them.

    All permutations of r states and one map onto r - 1 of them generate all maps.
    """
    largest = 1
    for idempotent in monoid.regular_idempotents.tolist():
        onto = monoid.elements[idempotent].astype(np.int64)
        points = np.unique(onto)
        rank = len(points)
        if rank <= largest or monoid.order_at(idempotent) != math.factorial(rank):
            continue
        maps = np.sort(onto[monoid.elements[:, points].astype(np.int64)], axis=1)
        ranks = 1 + (maps[:, 1:] != maps[:, :-1]).sum(axis=1)
        if (ranks == rank - 1).any():
            largest = rank
    return largest


def _depth_of_images(images: Images, groups: Sequence[HolonomyGroup]) -> int | None:
    """A bound on the depth by images: on regular J-classes with a group, one above the other.

    If f = x e y, then the image of f lies in Qey, an image that leads on from that of e. So chains
    of images of which each lies in one that leads on from the one before are as long. None beyond
    the budget. `groups` are maximal subgroups of more than one element.
    """
    if len(groups) * len(images) > MOST_MARKS:
        return None
    reached = np.array([reachable(images.step, group.image) for group in groups])
    largest_first = sorted(range(len(groups)), key=lambda each: -len(groups[each].points))
    depth: dict[int, int] = {}
    for each in largest_first:
        inside = images.packed[groups[each].image]
        around: Booleans = ((images.packed & inside) == inside).all(axis=1)
        above = [depth[other] for other in depth if (reached[other] & around).any()]
        depth[each] = 1 + max(above, default=0)
    return max(depth.values(), default=0)


def _largest_full_image(images: Images, groups: Sequence[HolonomyGroup]) -> int:
    """The largest r found where words map the r states of an image into itself in all ways.

    The image is that of an idempotent e, and words permute its states in all ways; where one maps
    it onto r - 1 of its states, the elements e m e are all maps of it.
    """
    largest = 1
    for group in groups:
        rank = len(group.points)
        if rank <= largest or group.order != math.factorial(rank):
            continue
        after = np.flatnonzero(reachable(images.step, group.image) & (images.sizes == rank - 1))
        outside = images.packed[after] & ~images.packed[group.image]
        if (outside == 0).all(axis=1).any():
            largest = rank
    return largest
