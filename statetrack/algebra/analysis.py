"""Everything that the algebra says of a task, from its automaton alone.

`analyse` reduces the automaton to its smallest machine, takes the transition monoid of that, and
reports what is known of it. A budget bounds the work: where it is not enough, what can be said
without the monoid is said, and `too_large` tells what was too large.

Letters: S states, V symbols, C labels.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from statetrack.algebra.closed_covers import FewestStates, fewest_states
from statetrack.algebra.counters import (
    counters_at_end,
    one_idempotent_each,
)
from statetrack.algebra.function_spaces import (
    ChosenFunctions,
    FunctionSpaces,
    best_construction,
    completions,
)
from statetrack.algebra.images import HolonomyGroup, Images, Settled, StateImages
from statetrack.algebra.krohn_rhodes import Cascade, cascade_of
from statetrack.algebra.machine import Machine, needed_machine
from statetrack.algebra.maps import permute
from statetrack.algebra.monoid import (
    Monoid,
    MonoidBudget,
    local_order,
    order_of_short_words,
    transition_monoid,
)
from statetrack.algebra.monoid_facts import (
    Complexity,
    MonoidFacts,
    complexity_of,
    facts_of_group,
    facts_of_images,
    facts_of_listed,
)
from statetrack.algebra.rational_spaces import narrowest_rational, smallest_rational_blocks
from statetrack.algebra.representations import MOST_STATES, Irreducibles, irreducibles_of
from statetrack.algebra.separation import Labels, noise_horizon, rounding_horizon
from statetrack.algebra.smallest_spaces import ChosenSpace, StateSpace, state_space
from statetrack.algebra.width_bounds import Bounds, width_bounds
from statetrack.algebra.witnesses import Witnesses
from statetrack.sources import Automaton, Floats, Integers, leading_to

MOST_OBSERVED = 256
"""Most states for which the linear dimension of the labels is worked out."""
ROUNDING = {"float32": 2.0**-23, "bfloat16": 2.0**-7}
"""The most that a step is taken to move the state off by rounding, as a part of its norm."""
NOISE = 0.01
"""The standard deviation of noise at every step along one direction, as a part of that norm."""
SAME_SPAN = 1e-10
"""Squared lengths below this, as a part of the largest, are rounding."""


@dataclass(frozen=True, eq=False)
class Algebra:
    """What the algebra says of a task; `to_json` gives it as plain values.

    `monoid` is None where too little is known of it, `irreducibles` and `space` where the machine's
    symbols do not all permute its states, or too many. `too_large` says of what there were too many
    elements to list. `order_matters` and the machine's own facts count only what words that are
    drawn and labels that are asked for can show.
    """

    machine: Machine
    monoid: MonoidFacts | None
    order_matters: bool | None
    irreducibles: Irreducibles | None
    space: StateSpace | None
    too_large: str | None
    state_images: StateImages
    elements: Monoid | None = None
    """The monoid, where it was not too large to list."""

    @property
    def num_states(self) -> int:
        """The number of states that a model must distinguish: all but the sink."""
        return int(self.machine.live.sum())

    @cached_property
    def fewest_states(self) -> FewestStates:
        """Bounds on the states of a smallest machine with the same labels where they are asked for.

        It can have fewer than `num_states`, where some labels are not asked for or some symbols
        are not drawn.
        """
        return fewest_states(self.machine)

    @property
    def is_group(self) -> bool:
        """Whether every symbol permutes the states: then the monoid is a group."""
        return bool(permute(self.machine.actions).all())

    @property
    def complexity(self) -> Complexity:
        """The complexity class of the labels."""
        return complexity_of(self.monoid)

    @property
    def settled(self) -> Settled:
        """The machine without the differences between states that end after some symbols."""
        return self.state_images.settled

    @property
    def images(self) -> Images | None:
        """The images of the settled machine, whose actions are the symbols; None for too many."""
        return self.state_images.images

    @property
    def holonomy_groups(self) -> tuple[HolonomyGroup, ...] | None:
        """The groups of these images, largest first; None where that is too much work."""
        return self.state_images.groups

    @cached_property
    def cascade(self) -> Cascade:
        """Bounds on a cascade of groups and resets that does what the machine does."""
        return cascade_of(self.machine.actions, self.elements, self.state_images)

    @cached_property
    def representation(self) -> ChosenSpace | None:
        """Irreducible parts of the smallest sum of dimensions that read all labels.

        None where the machine is no group, or is too large for such a choice.
        """
        space = self.space
        return None if space is None else space.with_smallest_sum(space.dimensions)

    @property
    def horizons(self) -> dict[str, float] | None:
        """How many symbols this representation is right for, by what disturbs it at every step."""
        if self.representation is None:
            return None
        margin = self.representation.readout.margin
        rounded = {name: rounding_horizon(margin, step) for name, step in ROUNDING.items()}
        return rounded | {"noise": noise_horizon(margin, NOISE)}

    @cached_property
    def local_order_matters(self) -> bool | None:
        """Whether labels show the order of words of one length among words that change nothing.

        None where that was not worked out.
        """
        if self.elements is not None:
            return local_order(self.machine, self.elements)[0]
        if self.monoid is not None and self.monoid.aperiodic:
            return order_of_short_words(self.machine) is not None or None
        return None

    @cached_property
    def c_rasp(self) -> bool | None:
        """Whether labels are in C-RASP where they are asked for after the end of a word.

        None where that takes too much work, or where the states that counters do not tell apart
        need not be told apart for the words and labels that there are.
        """
        counters, machine = counters_at_end(self.machine), self.machine
        if counters.tell_all or machine.complete:
            return counters.tell_all
        if counters.classes is None or machine.apart is None:
            return None
        return False if any(counters.untold(machine.apart)) else None

    @cached_property
    def c_rasp_in_place(self) -> bool | None:
        """Whether they are where they are asked for at the last symbol, which is seen.

        None where `c_rasp` would be.
        """
        _, counters = self.witnesses.counters
        if counters.tell_all is False and self.witnesses.uncounted is None:
            return None
        return counters.tell_all

    @cached_property
    def one_idempotent_each(self) -> bool | None:
        """Whether no two idempotents of the monoid are in one R-class; None without its elements.

        The languages of such monoids are called R_G, those that are aperiodic too R-infinity (Yang
        et al. 2026, arXiv:2608.13433); those of R-trivial monoids and of C-RASP are among them.
        """
        return None if self.elements is None else one_idempotent_each(self.elements)

    @property
    def r_infinity(self) -> bool | None:
        """Whether the monoid is aperiodic beside; None where that is not known."""
        if self.monoid is not None and not self.monoid.aperiodic:
            return False
        return None if self.monoid is None else self.one_idempotent_each

    @cached_property
    def last_but_one_matters(self) -> bool | None:
        """Whether labels show the order of two symbols in a row before the last symbol.

        None where there are too many pairs of states to tell.
        """
        apart, actions = self.machine.apart, self.machine.actions
        if apart is None:
            return None
        after = leading_to(actions, apart)
        return any(
            bool(after[second[first], first[second]].any())
            for place, first in enumerate(actions)
            for second in actions[:place]
        )

    @cached_property
    def witnesses(self) -> Witnesses:
        """Words that show what a model cannot track, found when they are asked for."""
        return Witnesses(self.machine, self.elements, self.state_images)

    @cached_property
    def width_bounds(self) -> Bounds:
        """A width, and a block size, below which no bounded linear model reads the labels."""
        return width_bounds(self.machine, self.elements, self.order_matters)

    @cached_property
    def _completed(self) -> list[FunctionSpaces]:
        return list(completions(self.machine))

    @cached_property
    def narrowest(self) -> ChosenFunctions | None:
        """The narrowest linear model that was found; None where the states' indicators are."""
        below = self.linear_dimension or self.num_states
        bound = self.width_bounds.width
        return best_construction(FunctionSpaces.narrowest, self._completed, bound, below)

    @cached_property
    def smallest_blocks(self) -> ChosenFunctions | None:
        """The linear model of the smallest blocks that was found; None where one block is."""
        below = self.narrowest.cost if self.narrowest else self.linear_dimension or self.num_states
        bound = self.width_bounds.block
        search = FunctionSpaces.of_smallest_blocks
        return best_construction(search, self._completed, bound, below) or self.narrowest

    @cached_property
    def narrowest_rational(self) -> ChosenFunctions | None:
        """The rational space of the smallest dimension that was found; None of too many states."""
        return narrowest_rational(self.machine)

    @cached_property
    def smallest_rational_blocks(self) -> ChosenFunctions | None:
        """The rational spaces of the smallest blocks that were found; None of too many states."""
        return smallest_rational_blocks(self.machine)

    @cached_property
    def num_moves(self) -> int:
        """How many pairs of a state and the next one some symbol makes."""
        delta, live = self.machine.delta, self.machine.live
        targets = np.sort(delta, axis=1)
        is_new = np.diff(targets, axis=1, prepend=-1) > 0
        return int((is_new & live[targets] & live[:, None]).sum())

    @cached_property
    def linear_dimension(self) -> int | None:
        """The smallest H for which A(x) [H, H] and a readout give a 1 for the right label, else 0.

        It is the rank of the Hankel matrix of the labels (Carlyle and Paz 1971; Fliess 1974), with
        that of the start before the first symbol. None where there are too many states to work it
        out.
        """
        machine, most = self.machine, self.num_states
        if most > MOST_OBSERVED:
            return None
        asked = machine.automaton.scored & machine.live
        output = machine.automaton.output
        span = (output[:, None] == np.unique(output[asked])) & asked[:, None]
        basis = _orthonormal(span.astype(np.float64))
        while basis.shape[1] < most:
            before = [
                np.where(machine.live[:, None], basis[action], 0) for action in machine.actions
            ]
            larger = _orthonormal(np.column_stack([basis, *before]))
            if larger.shape[1] == basis.shape[1]:
                break
            basis = larger
        return int(basis.shape[1])

    def to_json(self) -> dict[str, Any]:
        """All of it as plain values; what is not known is None."""
        facts, irreducibles = self.monoid, self.irreducibles
        return {
            "states": self.num_states,
            "fewest_states": [self.fewest_states.low, self.fewest_states.high],
            "symbols": self.machine.automaton.num_symbols,
            "too_large": self.too_large,
            "group": self.is_group,
            "commutative": facts and facts.commutative,
            "order_matters": self.order_matters,
            "monoid_size": facts and facts.size,
            "idempotents": facts and facts.idempotents,
            "aperiodic": facts and facts.aperiodic,
            "r_trivial": self.machine.partially_ordered,
            "l_trivial": facts and facts.l_trivial,
            "j_trivial": facts and facts.j_trivial,
            "c_rasp": self.c_rasp,
            "c_rasp_in_place": self.c_rasp_in_place,
            "r_infinity": self.r_infinity,
            "r_g": self.one_idempotent_each,
            "quasi_aperiodic": facts and facts.quasi_aperiodic,
            "nilpotent": facts and facts.nilpotent,
            "solvable": facts and facts.solvable,
            "derived_length": facts and facts.derived_length,
            "j_classes": facts and facts.j_classes,
            "regular_j_classes": facts and facts.regular_j_classes,
            "subgroups": facts
            and [
                {
                    "name": group.name,
                    "order": group.order,
                    "abelian": group.abelian,
                    "solvable": group.solvable,
                    "number": number,
                }
                for group, number in Counter(facts.subgroups).items()
            ],
            "irreducible_dimensions": irreducibles
            and {
                "complex": list(irreducibles.complex),
                "real": list(irreducibles.real),
                "real_faithful": list(irreducibles.real_faithful),
            },
            "cascade_levels": self.cascade.levels,
            "group_complexity": [self.cascade.fewest_groups, self.cascade.most_groups],
            "representation": self.representation
            and {
                "dimension": self.representation.cost,
                "margin": self.representation.readout.margin,
                "horizons": self.horizons,
            },
            "complexity": {
                "class": self.complexity.name,
                "theorem": self.complexity.theorem,
                "source": self.complexity.source,
            },
        }


DEFAULT_BUDGET = MonoidBudget()


def analyse(automaton: Automaton, budget: MonoidBudget = DEFAULT_BUDGET) -> Algebra:
    """What the algebra says of the labels of an automaton, within a budget.

    The monoid's elements are listed first: that takes half a second at most, and tells more. Where
    they are too many, the images of the states are looked at.
    """
    machine = needed_machine(automaton)
    images = StateImages(machine.delta, budget.most_images)
    monoid = transition_monoid(machine.actions, budget)
    if monoid is None:
        return _without_monoid(machine, images, budget)
    facts, groups = facts_of_listed(machine, monoid, images)
    irreducibles = space = None
    if monoid.is_group:
        group = groups[0]
        irreducibles = irreducibles_of(group)
        if len(machine.delta) <= MOST_STATES:  # the space, with one symbol of those that are alike
            classes = group.alike([group.number_of(action) for action in machine.actions])
            _, first, count = np.unique(classes, return_index=True, return_counts=True)
            generators = monoid.generators.astype(np.int64)
            space = _space(machine, generators, machine.actions[first], count)
    if machine.complete or facts.commutative:
        order_matters: bool | None = not facts.commutative
    else:
        order_matters = _order_matters(machine, monoid)
    return Algebra(machine, facts, order_matters, irreducibles, space, None, images, monoid)


def _order_matters(machine: Machine, monoid: Monoid | None) -> bool | None:
    """Whether labels distinguish the two orders of some two words; None where that is not known.

    If they do not distinguish the two orders of any two symbols, then they do not distinguish those
    of two words either, which exchanging neighbours leads to one from the other: as long as *not
    told apart* is an equivalence.
    """
    order_matters, apart = machine.order_matters(machine.actions), machine.apart
    if order_matters or apart is None:
        return order_matters
    alike = np.argmin(apart, axis=1)  # the first state that is not told apart from each
    if ((alike[:, None] != alike[None, :]) == apart).all():
        return order_matters
    return None if monoid is None else machine.order_matters(monoid.elements.astype(np.int64))


def _without_monoid(machine: Machine, images: StateImages, budget: MonoidBudget) -> Algebra:
    """What can be said without a list of the monoid's elements."""
    actions = machine.actions
    too_large = f"the monoid has more than {budget.most_elements:,} elements, or takes too long"
    order_matters = _order_matters(machine, None)
    if not permute(actions).all():
        facts = facts_of_images(machine, images)
        if facts is None:
            too_large += (
                f"; the states have more than {budget.most_images:,} images under words, or their "
                "groups take too long"
            )
        return Algebra(machine, facts, order_matters, None, None, too_large, images)
    alone = np.ones(len(actions), np.int64)
    few = len(machine.delta) <= MOST_STATES
    space = _space(machine, actions, actions, alone) if few else None
    facts = facts_of_group(machine)
    return Algebra(machine, facts, order_matters, None, space, None if facts else too_large, images)


def _space(
    machine: Machine, generators: Integers, symbols: Integers, num_alike: Integers
) -> StateSpace:
    automaton = machine.automaton
    apart = machine.apart
    told_apart = apart is not None and int(apart.sum()) == len(apart) * (len(apart) - 1)
    return state_space(
        generators,
        Labels(automaton.output, automaton.scored, automaton.num_labels),
        automaton.start,
        symbols,
        num_alike,
        states_are_told_apart=told_apart,
    )


def _orthonormal(columns: Floats) -> Floats:
    """An orthonormal basis of the span of some columns."""
    squares, vectors = np.linalg.eigh(columns @ columns.T)
    basis: Floats = vectors[:, squares > SAME_SPAN * squares[-1]]
    return basis
