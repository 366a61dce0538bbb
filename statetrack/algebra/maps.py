"""Maps of states, and permutations of points: powers, cycles, and whether they commute.

A map is a row of S states. Letters: K and N maps, S states, P points.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from statetrack.sources import Booleans, Integers

Permutations = npt.NDArray[np.integer]
"""Permutations `[N, P]`, of any type of integers."""
MOST_TRIED = 64
"""States that are looked at for a base before all of them are one."""


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


def recurring_states(maps: Integers) -> Integers:
    """States that come back under the powers of each map, all of them, `[N, S]` from `[N, S]`."""
    if permute(maps).all():
        return np.broadcast_to(np.arange(maps.shape[1]), maps.shape)
    return settled_power(maps)


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


def order_of(permutation: Permutations) -> int:
    """The smallest n with g^n = 1 of a permutation `[P]`."""
    return math.lcm(*map(len, cycles(permutation.tolist())))


@dataclass(frozen=True, eq=False)
class Numbers:
    """The numbers of different maps, found from where a few states are taken: their *base*.

    Where a base is taken has a key, which is a sum of its states times factors drawn at random,
    such that all maps have different keys.
    """

    base: Integers  # [B]: states whose images distinguish all maps
    factors: npt.NDArray[np.uint64]  # [B]
    keys: npt.NDArray[np.uint64]  # [N], sorted
    order: Integers  # [N]: the number of the map with each key

    @classmethod
    def of_maps(cls, maps: np.ndarray) -> Self:
        """Of different maps `[N, S]`."""
        blocks = np.zeros(len(maps), np.int64)
        base: list[int] = []
        for state in range(min(maps.shape[1], MOST_TRIED)):
            if blocks.max() == len(maps) - 1:
                break
            pairs = blocks * maps.shape[1] + maps[:, state]
            finer = np.unique(pairs, return_inverse=True)[1].reshape(-1)
            if finer.max() > blocks.max():
                base.append(state)
                blocks = finer
        if blocks.max() < len(maps) - 1:
            base = [*range(maps.shape[1])]
        images = maps[:, base or [0]]
        draw = np.random.default_rng(0)
        while True:
            factors = draw.integers(0, 2**64, images.shape[1], np.uint64, endpoint=False)
            keys = _keys(images, factors)
            order = np.argsort(keys)
            if len(np.unique(keys)) == len(maps):
                return cls(np.array(base or [0]), factors, keys[order], order)

    def of(self, images: np.ndarray) -> Integers:
        """The numbers of maps, by where they take the base: `[...]` from `[..., B]`."""
        found: Integers = self.order[np.searchsorted(self.keys, _keys(images, self.factors))]
        return found


def _keys(images: np.ndarray, factors: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The sums of images `[..., B]` times factors `[B]`: `[...]`."""
    keys = np.zeros(images.shape[:-1], np.uint64)
    for place, factor in enumerate(factors):
        keys += images[..., place].astype(np.uint64) * factor
    return keys
