"""Maps of states, and permutations of points: powers, cycles, and whether they commute.

A map is a row of S states. Letters: K and N maps, S states, P points.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from statetrack.sources import Booleans, Integers


def permute(maps: Integers) -> Booleans:
    """Which of some maps `[K, S]` permute all states: `[K]`."""
    permuted: Booleans = (np.sort(maps, axis=1) == np.arange(maps.shape[1])).all(axis=1)
    return permuted


def commute(maps: np.ndarray) -> bool:
    """Whether any two of some maps `[K, S]` give the same in both orders."""
    return all(bool((maps[:, each] == each[maps]).all()) for each in maps)


def power(maps: Integers, exponent: int) -> Integers:
    """Every map `[..., S]` to a power that is 0 or more."""
    result = np.broadcast_to(np.arange(maps.shape[-1]), maps.shape)
    while exponent:
        if exponent & 1:
            result = np.take_along_axis(maps, result, axis=-1)
        exponent >>= 1
        maps = np.take_along_axis(maps, maps, axis=-1) if exponent else maps
    return result


def settled_power(maps: Integers) -> Integers:
    """Every map `[N, S]` to a power of 2 above S: whatever merges under its powers has merged."""
    return power(maps, 1 << int(maps.shape[1]).bit_length())


def cycles(permutation: Sequence[int]) -> list[list[int]]:
    """The cycles of a permutation, without fixed points."""
    found: list[list[int]] = []
    seen: set[int] = set()
    for begin in range(len(permutation)):
        if begin not in seen:
            cycle = [begin]
            while (following := permutation[cycle[-1]]) != begin:
                cycle.append(following)
            seen.update(cycle)
            found += [cycle] if len(cycle) > 1 else []
    return found


def order_of(permutation: Integers) -> int:
    """The smallest n with g^n = 1 of a permutation `[P]`."""
    return math.lcm(*map(len, cycles(permutation.tolist())))
