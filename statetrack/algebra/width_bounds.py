"""What width and what blocks a linear model of a machine needs at least.

All bounds are of models without additive terms and without a bias of the readout.

*Order.* Numbers commute: where labels show that the order of symbols matters, a width, or a block
size, of 1 is too little, whatever the products.

*Signs.* k states for which words realise every pattern of signs of two labels, each up to a change
of all signs, need a width of k, whatever the products (a form of the argument with which a
shattered set bounds a dimension).

*Groups.* Let all products be bounded, and let G be a maximal subgroup of the monoid, and X the
states that it permutes. For the label after every further word the linear program has to have a
positive optimum on parts of R^X whose dimensions sum up to at most the width, and each of which is
at most as large as a block. The constant is one of them if some word gives one label to an orbit.

*Resets.* If some word maps all of X to one state, from which words lead to all of X, blocks without
the constant do not count: one of size b gives other parts of at most b - 1 dimensions.

docs/proofs.md, *Widths and blocks from below*, has the proofs.

Letters: S states, N elements of the monoid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from statetrack.algebra.groups import Group
from statetrack.algebra.machine import Machine
from statetrack.algebra.monoid import Monoid
from statetrack.algebra.representations import SAME_POINT
from statetrack.algebra.separation import Labels, is_readable
from statetrack.algebra.smallest_spaces import StateSpace, cheapest_sets, state_space
from statetrack.sources import Booleans, Integers, places_of

MOST_ELEMENTS = 3_000
"""Most elements of a monoid whose labels are compared."""
MOST_POINTS = 128
"""Most states of a group whose parts are worked out."""
MOST_SIGNED = 20
"""Most states among which sets are looked for in which all signs are realised."""
MOST_SETS = 100
"""Most sets of one size that are followed."""
MOST_LABELLINGS = 12
"""Most maps of the monoid whose labels have to be read from a group's parts."""
MOST_PROGRAMS = 40
"""Most questions for a readout that the bound of a group takes."""
NOT_ASKED = -1


@dataclass(frozen=True)
class Bounds:
    """A width, and a block size, that no model without additive terms goes below."""

    width: int = 1
    block: int = 1


def width_bounds(machine: Machine, monoid: Monoid | None, order_matters: bool | None) -> Bounds:
    """What is known from below of a machine, of whose monoid the elements may be listed."""
    least = 2 if order_matters else 1
    if monoid is None or len(monoid) > MOST_ELEMENTS:
        return Bounds(least, least)
    automaton = machine.automaton
    shown = np.where(automaton.scored & machine.live, automaton.output, NOT_ASKED)
    labels = shown[monoid.elements.astype(np.int64)]  # [N, S]: after every element, from a state
    if not (machine.delta == automaton.start).any():
        labels[0, automaton.start] = NOT_ASKED  # the identity is the empty word, and shows none
    width, block = max(least, _signed_states(machine, labels)), least
    for points, permutations in monoid.maximal_subgroups():
        live = machine.live[points]
        if len(permutations) == 1 or not live.any() or live.sum() > MOST_POINTS:
            continue
        kept = np.flatnonzero(live)
        group = Group(places_of(kept, len(points))[permutations[:, kept]])
        found = _group_bounds(machine, monoid, group, points[kept], labels)
        width, block = max(width, found.width), max(block, found.block)
    return Bounds(width, block)


def _signed_states(machine: Machine, labels: Integers) -> int:
    """The size of the largest set that is found of states for which words realise all signs."""
    if len(np.unique(labels[labels >= 0])) < 2:
        return 1
    states = np.flatnonzero(machine.live)[:MOST_SIGNED]
    rows = np.unique(labels[:, states], axis=0)
    sets: list[tuple[int, ...]] = [(place,) for place in range(len(states))]
    while True:
        longer = []
        for each in sets:
            for place in range(each[-1] + 1, len(states)):
                if _all_signs(rows[:, [*each, place]]):
                    longer.append((*each, place))
            if len(longer) >= MOST_SETS:
                break
        if not longer:
            return len(sets[0])
        sets = longer


def _all_signs(rows: Integers) -> bool:
    """Whether labels `[number, k]` show all 2^(k-1) ways to divide k states by two labels."""
    like_first = rows == rows[:, :1]
    others = np.where(like_first, NOT_ASKED, rows).max(axis=1)
    two = (like_first | (rows == others[:, None])).all(axis=1)
    codes = like_first[(rows >= 0).all(axis=1) & two] @ (1 << np.arange(rows.shape[1]))
    return bool(len(np.unique(codes)) == 1 << (rows.shape[1] - 1))


def _group_bounds(
    machine: Machine, monoid: Monoid, group: Group, points: Integers, labels: Integers
) -> Bounds:
    """What the parts of R^X need for the labels of all words that were compared."""
    generators = group.permutations[list(group.generators)].astype(np.int64)
    number = machine.automaton.num_labels
    everything = Labels(np.arange(len(points)), np.ones(len(points), bool), len(points))
    alone = np.ones(len(generators), np.int64)
    space = state_space(generators, everything, 0, generators, alone, states_are_told_apart=False)
    rows = np.unique(labels[:, points], axis=0)
    constant = _needs_constant(space, rows)
    # labels of some words that differ among the states, those with the most labels first
    different = np.array([len(np.unique(row[row >= 0])) for row in rows])
    order = np.argsort(-different, kind="stable")
    telling = rows[order[different[order] > 1][:MOST_LABELLINGS]]
    asked = [Labels(row, row >= 0, number) for row in telling]
    is_constant = []  # whether the group acts trivially on the parts of each kind
    for places in space.kinds.values():
        part = space.parts[places[0]]
        moved = np.abs(part.points[space.generators] - part.points).max(initial=0.0)
        is_constant.append(part.dimension == 1 and float(moved) < SAME_POINT)
    programs = [MOST_PROGRAMS]

    def refuted(kinds: Sequence[int]) -> bool:
        columns = space.points_of([place for kind in kinds for place in space.kinds[kind]])
        for each in asked:
            programs[0] -= 1
            if programs[0] < 0:
                return False
            if is_readable(columns, each) is False:
                return True
        return False

    sizes = [space.dimensions[places[0]] for places in space.kinds.values()]
    needed = tuple(kind for kind, each in enumerate(is_constant) if each and constant)
    others = [kind for kind in range(len(sizes)) if kind not in needed]
    width = next(
        sum(sizes[kind] for kind in kinds)
        for _, chosen in cheapest_sets([sizes[kind] for kind in others])
        for kinds in [(*needed, *(others[place] for place in chosen))]
        if kinds and not refuted(kinds)
    )
    programs[0] = MOST_PROGRAMS
    spent = 1 if _resets(monoid, points) else 0
    costs = [size + spent * (not each) for size, each in zip(sizes, is_constant, strict=True)]
    bounds = (
        bound
        for bound in sorted(set(costs))
        if not refuted([kind for kind, cost in enumerate(costs) if cost <= bound])
    )
    block = next(bounds, 1)
    return Bounds(width, block)


def _needs_constant(space: StateSpace, rows: Integers) -> bool:
    """Whether some row gives one label to an orbit, while other labels occur."""
    if len(np.unique(rows[rows >= 0])) < 2:
        return False
    orbit = np.diag(space.orbits)
    for each in np.unique(orbit):
        members = rows[:, orbit == each]
        if ((members == members[:, :1]).all(axis=1) & (members[:, 0] >= 0)).any():
            return True
    return False


def _resets(monoid: Monoid, points: Integers) -> bool:
    """Whether an element maps all points to one state from which words lead to all of them."""
    images = monoid.elements[:, points].astype(np.int64)
    onto: Booleans = (images == images[:, :1]).all(axis=1)
    for state in np.unique(images[onto, 0]):
        reached = np.unique(monoid.elements[:, state].astype(np.int64))
        if np.isin(points, reached).all():
            return True
    return False
