"""Layouts of Cayley graphs in which the cosets of a subgroup are alike.

Each coset, such as a cycle of one generator, is drawn in the same shape; cycles are around each
other, and cosets beside each other, where the other generators lead from one to another.

Letters: N elements, C cosets, H elements of each.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from statetrack.pictures.layouts import circle, layout
from statetrack.sources import Booleans, Floats, Integers

MOST_AROUND, MOST_BESIDE = 6, 24
"""The most cycles that are drawn around each other, and cosets beside each other."""

APART = 1.15
"""The distance of two cycles around each other, in steps."""

TURNS = 48
"""The directions that are tried for each coset."""


def coset_layouts(actions: Sequence[Integers]) -> Iterator[Floats]:
    """Candidates for positions `[N, 2]`, for each subgroup that one or two generators make.

    Neighbours are about 1 apart.
    """
    joined = _joined(actions)
    for number in (1, 2):
        for some in itertools.combinations(actions, number):
            cosets = _cosets(some)
            if not 1 < len(cosets) < len(joined) // 2:
                continue
            between = joined[cosets[:, :, None, None], cosets[None, None]].any(axis=(1, 3))
            if number == 1 and len(cosets) <= MOST_AROUND:
                yield _around(cosets, np.asarray(between), joined)
            if 2 < len(cosets) <= MOST_BESIDE:
                yield from _beside(cosets, np.asarray(between), joined)


def _joined(actions: Sequence[Integers]) -> Booleans:
    joined = np.zeros((len(actions[0]),) * 2, bool)
    for action in actions:
        joined[np.arange(len(action)), action] = True
    np.fill_diagonal(joined, False)
    return joined | joined.T


def _cosets(actions: Sequence[Integers]) -> Integers:
    """The cosets of a subgroup, `[C, H]`, each in the order of the same words of its generators.

    For one generator this is the order of its cycle.
    """
    words: dict[int, list[int]] = {0: []}
    for element in (waiting := [0]):
        for number, action in enumerate(actions):
            after = int(action[element])
            if after not in words:
                words[after] = [*words[element], number]
                waiting.append(after)
    left = set(range(len(actions[0])))
    found = []
    while left:
        coset = []
        first = min(left)
        for word in words.values():
            element = first
            for number in word:
                element = int(actions[number][element])
            coset.append(element)
        left -= set(coset)
        found.append(coset)
    return np.array(found)


def _around(cosets: Integers, between: Booleans, joined: Booleans) -> Floats:
    """Cycles around each other, that of the identity outermost."""
    number, length = cosets.shape
    order = [0]
    while len(order) < number:
        left = [each for each in range(number) if each not in order]
        near = [each for each in left if between[order[-1], each]]
        order.append((near or [each for each in left if between[order, each].any()])[0])
    unit = circle(np.arange(length))
    smallest = max(float(np.linalg.norm(unit[0])), 0.8)
    places = np.zeros((cosets.size, 2))
    placed = np.zeros(cosets.size, bool)
    for level, coset in enumerate(order):
        radius = smallest + APART * (number - 1 - level)
        shape = unit * radius / max(float(np.linalg.norm(unit[0])), 1e-9)
        _turn(cosets[coset], np.zeros(2), shape, places, placed, joined)
    return places


def _beside(cosets: Integers, between: Booleans, joined: Booleans) -> Iterator[Floats]:
    """Cosets beside each other: as the graph of cosets is laid out, and on a circle."""
    first = cosets[0]
    inside = joined[np.ix_(first, first)]
    is_cycle = bool((inside.sum(axis=1) <= 2).all())
    unit = circle(np.arange(len(first))) if is_cycle else layout(inside, 0)
    unit = unit - unit.mean(axis=0)
    wide = 2 * float(np.linalg.norm(unit, axis=1).max()) + 0.9
    number = len(cosets)
    for centres in (layout(between, 0), circle(np.arange(number))):
        yield _placed(cosets, wide * centres, unit, joined)
    if number > 3:
        middle = np.concatenate([np.zeros((1, 2)), circle(np.arange(number - 1))])
        radius = float(np.linalg.norm(middle[1]))
        yield _placed(cosets, wide * max(1.0, 1 / radius) * middle, unit, joined)


def _placed(cosets: Integers, centres: Floats, unit: Floats, joined: Booleans) -> Floats:
    """All cosets at their centres, each turned and mirrored so that lines to others are short."""
    places = np.zeros((cosets.size, 2))
    for coset, centre in zip(cosets, centres, strict=True):
        places[coset] = centre
    everywhere = np.ones(cosets.size, bool)
    for _ in range(5):
        for coset, centre in zip(cosets, centres, strict=True):
            _turn(coset, centre, unit, places, everywhere, joined)
    return places


def _turn(
    coset: Integers,
    centre: Floats,
    unit: Floats,
    places: Floats,
    placed: Booleans,
    joined: Booleans,
) -> None:
    """Place a coset about its centre so that its lines to what is placed are shortest."""
    edges = joined[coset] & placed
    edges[:, coset] = False
    source, target = np.nonzero(edges)
    angles = 2 * np.pi * np.arange(TURNS) / TURNS
    turned = np.stack([np.cos(angles), -np.sin(angles), np.sin(angles), np.cos(angles)], axis=1)
    shapes = np.stack([unit, unit * (1.0, -1.0)])
    found = np.einsum("tij,mhj->mthi", turned.reshape(-1, 2, 2), shapes).reshape(-1, *unit.shape)
    apart = centre + found[:, source] - places[target]
    cost = (np.linalg.norm(apart, axis=2) ** 2).sum(axis=1).round(6)
    places[coset] = centre + found[int(cost.argmin())]
    placed[coset] = True
