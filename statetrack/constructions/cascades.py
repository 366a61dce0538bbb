"""Cascades of a machine: components whose moves depend on the symbol and on the components before.

*Series.* Let N_0 > N_1 > .. > N_L = 1 be a subnormal series of the group with abelian factors. An
element g acts as t_1 t_2 .. t_L with t_l a representative of a coset of N_l in N_(l-1). Reading x
turns n in N_(l-1) into f n, where f depends on x and on the cosets before; so the characters of
N_(l-1) / N_l are multiplied by numbers of modulus 1 that depend on these alone (Shakerinava et al.
2026, arXiv:2603.01959). The cosets before a position follow from those after it and the symbol.

*Register.* Where every symbol keeps the state or resets it, one component holds the state.

B words, T time, V symbols, S states, J numbers of a component.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from statetrack.algebra import Group, MonoidBudget, transition_monoid
from statetrack.constructions.case import Case, NotBuilt
from statetrack.sources import Floats, Integers


@dataclass(frozen=True, eq=False)
class CascadePart:
    """One layer's part of a cascade over given words.

    The numbers of the component go to gains * numbers + terms. They start at 0 for a register, and
    at 1 for characters.
    """

    gains: np.ndarray  # [B, T, J], real or complex
    terms: np.ndarray  # [B, T, J]
    after: Integers  # [B, T]: the number of the component's state after every position


# --- series of a group ---


@dataclass(frozen=True, eq=False)
class Factor:
    """A subgroup and a normal subgroup of it with an abelian quotient, and its characters."""

    representatives: Integers  # [K, S]: an element of each coset, the identity's first
    coset_of: dict[bytes, int]  # the coset of every element of the larger group
    characters: np.ndarray  # [J, K]: that tell the cosets apart


def factors_of(group: Group, *, squares: bool, every: bool = False) -> list[Factor]:
    """The factors of the derived series; with `squares`, of the series with exponent 2.

    Of the trivial group it is one factor, the group itself. The characters are a few that tell the
    cosets apart, or, with `every`, one of each two that are conjugate.
    """
    factors = []
    while len(group) > 1:
        smaller = group.squares if squares else group.derived
        if len(smaller) == len(group):
            raise NotBuilt("the group has no such series")
        factors.append(_factor(group, smaller, every))
        group = smaller
    return factors or [_factor(group, group, every)]


def series(case: Case, words: Integers, *, squares: bool, every: bool = False) -> list[CascadePart]:
    """A component for every factor of a series of the task's group, over words `[B, T]`."""
    machine = case.algebra.machine
    monoid = transition_monoid(machine.actions, MonoidBudget())
    if monoid is None or not monoid.is_group:
        raise NotBuilt("only series of groups are built")
    factors = factors_of(Group(monoid.elements.astype(np.int64)), squares=squares, every=every)
    components = []
    # what acts on the part that is left: permutations [B, T, S]
    moves = np.ascontiguousarray(machine.delta.T)[words]
    for factor in factors:
        components.append(_follow(factor, moves))
        moves = _left_over(factor, moves, components[-1].after)
    return components


def _factor(group: Group, smaller: Group, every: bool) -> Factor:
    elements = group.permutations.astype(np.int64)
    identity = np.arange(elements.shape[1])
    inside = smaller.permutations.astype(np.int64)
    coset_of: dict[bytes, int] = {}
    representatives: list[Integers] = []
    for element in [identity, *elements]:
        if element.tobytes() in coset_of:
            continue
        for other in inside:
            coset_of[element[other].tobytes()] = len(representatives)  # element after other
        representatives.append(element)
    table = np.array(
        [[coset_of[one[other].tobytes()] for other in representatives] for one in representatives]
    )
    characters = _characters(table)
    if len(characters) > 1:  # of the trivial group the constant one is kept
        characters = (_one_of_each_two if every else _separating)(characters)
    return Factor(np.array(representatives), coset_of, _tidy(characters))


def _characters(table: Integers) -> np.ndarray:
    """All characters of an abelian group with this table `[K, K]`, element 0 its identity."""
    known = {0: 0}  # element: its row in the values below
    values = np.ones((1, 1), complex)  # [characters, known elements]
    for generator in range(len(table)):
        if generator in known:
            continue
        powers, power = [0], generator
        while power not in known:
            powers.append(power)
            power = table[power, generator]
        order = len(powers)
        roots = values[:, known[power]] ** (1 / order)
        choices = [roots * np.exp(2j * np.pi * k / order) for k in range(order)]
        elements = list(known)
        values = np.concatenate(
            [
                np.concatenate([values * root[:, None] ** k for k in range(order)], 1)
                for root in choices
            ]
        )
        known = {
            int(table[power, element]): row
            for row, (power, element) in enumerate(
                (power, element) for power in powers for element in elements
            )
        }
    columns = [known[element] for element in range(len(table))]
    return values[:, columns]


def _separating(characters: np.ndarray) -> np.ndarray:
    """A few of the characters that together tell all elements apart."""
    chosen: list[np.ndarray] = []
    like_identity = np.ones(characters.shape[1], bool)
    while like_identity.sum() > 1:
        trivial = np.abs(characters - 1) < 1e-6  # [characters, K]
        best = int((trivial & like_identity).sum(axis=1).argmin())
        chosen.append(characters[best])
        like_identity &= trivial[best]
    return np.array(chosen)


def _one_of_each_two(characters: np.ndarray) -> np.ndarray:
    """All characters but the constant one, and of two that are conjugate the first."""
    chosen: list[np.ndarray] = []
    for character in characters:
        known = [np.ones_like(character), *chosen]
        if all(np.abs(character.conj() - other).max() > 1e-6 for other in known):
            chosen.append(character)
    return np.array(chosen)


def _tidy(characters: np.ndarray) -> np.ndarray:
    """Characters with real values as they are, without what was rounded."""
    real = np.abs(characters.imag) < 1e-12
    return np.where(real, np.round(characters.real) + 0j, characters)


def _follow(factor: Factor, moves: Integers) -> CascadePart:
    """The cosets and the gains of their characters, where permutations `[B, T, S]` act."""
    which = np.array(
        [[factor.coset_of[move.tobytes()] for move in word] for word in moves], dtype=np.int64
    )
    gains = factor.characters.T[which]  # [B, T, J]
    values = np.cumprod(gains, axis=1)
    distance = np.abs(values[:, :, None, :] - factor.characters.T).sum(-1)  # [B, T, K]
    after = distance.argmin(-1)
    return CascadePart(gains, gains - 1, after)


def _left_over(factor: Factor, moves: Integers, after: Integers) -> Integers:
    """t(after)^-1 x t(before): what acts on the subgroup. `[B, T, S]`."""
    before = np.column_stack([np.zeros(len(after), np.int64), after[:, :-1]])
    inverse = np.argsort(factor.representatives, axis=1)
    moved = np.take_along_axis(moves, factor.representatives[before], axis=2)
    return np.ascontiguousarray(np.take_along_axis(inverse[after], moved, axis=2))


# --- registers ---


def register(case: Case, words: Integers) -> list[CascadePart]:
    """The state as a unit vector, the start as 0, where every symbol keeps it or resets it."""
    machine = case.algebra.machine
    num_states = len(machine.delta)
    keeps = (machine.delta == np.arange(num_states)[:, None]).all(axis=0)  # [V]
    resets = (machine.delta == machine.delta[:1]).all(axis=0)
    if not (keeps | resets).all():
        raise NotBuilt("only registers are built")
    others = [state for state in range(num_states) if state != machine.automaton.start]
    points = np.zeros((num_states, max(len(others), 1)))
    points[others, np.arange(len(others))] = 1
    kept = keeps[words][..., None]
    terms = np.where(kept, 0.0, points[machine.delta[0]][words])
    after = machine.automaton.states_after(words).astype(np.int64)
    return [CascadePart(np.repeat(kept.astype(float), points.shape[1], 2), terms, after)]


__all__ = ["CascadePart", "Factor", "Floats", "factors_of", "register", "series"]
