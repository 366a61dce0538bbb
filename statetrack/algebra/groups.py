"""Groups of permutations with all elements listed.

The product `a b` does a first: as permutations, `(a b)[p] = b[a[p]]`. Elements are numbers from
0, the identity.

Letters: N elements, P points, K generators.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from statetrack.sources import Booleans, Integers, orbits


@dataclass(frozen=True, eq=False)
class Group:
    """A group of permutations `[N, P]`: closed under products, the identity first."""

    permutations: Integers

    def __len__(self) -> int:
        return len(self.permutations)

    def times(self, left: npt.ArrayLike, right: npt.ArrayLike) -> Integers:
        """The numbers of products of elements, number by number (shapes are broadcast)."""
        first, second = np.asarray(left)[..., None], np.asarray(right)[..., None]
        return self._found(self.permutations[second, self.permutations[first, self._base]])

    def number_of(self, permutation: Integers) -> int:
        """The number of a permutation `[P]` that is an element."""
        return int(self._found(permutation[self._base]))

    @cached_property
    def inverses(self) -> Integers:
        """The inverse of every element, `[N]`."""
        return self._found(np.argsort(self.permutations, axis=1)[:, self._base])

    @cached_property
    def generators(self) -> tuple[int, ...]:
        """Elements that generate the group, none of them a product of those before it."""
        return self._generated(range(len(self)))[1]

    @cached_property
    def orders(self) -> Integers:
        """The order of every element, `[N]`."""
        orders = np.ones(len(self), np.int64)
        open_, powers = np.arange(len(self)), np.arange(len(self))
        while True:
            unfinished = powers != 0
            open_, powers = open_[unfinished], powers[unfinished]
            if not len(open_):
                return orders
            orders[open_] += 1
            powers = self.times(powers, open_)

    @cached_property
    def exponent(self) -> int:
        """The smallest n with g^n = 1 for all g."""
        return math.lcm(*map(int, np.unique(self.orders)))

    @cached_property
    def classes(self) -> Integers:
        """The conjugacy class of every element, `[N]`: numbered by first member, so 0 is {1}."""
        everything = np.arange(len(self))
        maps = [
            self.times(self.times(self.inverses[generator], everything), generator)
            for generator in self.generators
        ]
        return np.unique(orbits(maps, len(self)), return_inverse=True)[1]

    @cached_property
    def is_abelian(self) -> bool:
        """Whether all elements commute."""
        chosen = np.array(self.generators, np.int64)
        products = self.times(chosen[:, None], chosen[None, :])
        return bool((products == products.T).all())

    @cached_property
    def center(self) -> Booleans:
        """The elements that commute with all, `[N]`."""
        everything = np.arange(len(self))
        central = np.ones(len(self), bool)
        for generator in self.generators:
            central &= self.times(everything, generator) == self.times(generator, everything)
        return central

    @cached_property
    def derived(self) -> Group:
        """The subgroup of commutators.

        [gh, x] = [g, x]^h [h, x], so commutators of all elements with generators generate a
        normal subgroup, which then is the whole one.
        """
        everything = np.arange(len(self))
        commutators = {0}
        for generator in self.generators:
            conjugates = self.times(self.times(self.inverses[generator], everything), generator)
            commutators |= set(self.times(self.inverses, conjugates).tolist())
        return self.subgroup(self._generated(sorted(commutators))[0])

    @cached_property
    def squares(self) -> Group:
        """The subgroup that squares generate: its quotient is an elementary abelian 2-group."""
        everything = np.arange(len(self))
        found = np.unique(self.times(everything, everything))
        return self.subgroup(self._generated(found.tolist())[0])

    @cached_property
    def derived_length(self) -> int | None:
        """The length of the derived series; None where it does not end in 1."""
        if len(self) == 1:
            return 0
        if len(self.derived) == len(self):
            return None
        further = self.derived.derived_length
        return None if further is None else 1 + further

    @cached_property
    def is_nilpotent(self) -> bool:
        """Whether it is the direct product of its Sylow subgroups.

        That holds exactly where, for every prime p, the number of elements whose order is a power
        of p is the largest power of p that divides the order of the group.
        """
        return all(
            self._num_of_power_order(prime) == prime**exponent
            for prime, exponent in factorise(len(self)).items()
        )

    def subgroup(self, members: Booleans) -> Group:
        """The subgroup of some elements `[N]`, which must be one."""
        return Group(self.permutations[members])

    def closure(self, elements: Integers) -> Booleans:
        """The members of the subgroup that some elements generate, `[N]`."""
        return self._generated(elements.tolist())[0]

    @cached_property
    def _base(self) -> Integers:
        """Points whose images distinguish all elements."""
        blocks = np.zeros(len(self), np.int64)
        chosen: list[int] = []
        for point in range(self.permutations.shape[1]):
            if blocks.max() == len(self) - 1:
                break
            finer = np.unique(
                blocks * self.permutations.shape[1] + self.permutations[:, point],
                return_inverse=True,
            )[1]
            if finer.max() > blocks.max():
                chosen.append(point)
                blocks = finer
        return np.array(chosen or [0])

    @cached_property
    def _keys(self) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64], Integers]:
        """Factors for images of the base; the sorted keys of all elements, and their numbers."""
        draw = np.random.default_rng(0)
        images = self.permutations[:, self._base].astype(np.uint64)
        while True:
            factors = draw.integers(0, 2**64, len(self._base), np.uint64, endpoint=False)
            keys = images @ factors
            order = np.argsort(keys)
            if len(np.unique(keys)) == len(self):
                return factors, keys[order], order

    def _found(self, images: Integers) -> Integers:
        """The numbers of elements by the images of the base: `[...]` from `[..., base]`."""
        factors, keys, order = self._keys
        numbers: Integers = order[np.searchsorted(keys, images.astype(np.uint64) @ factors)]
        return numbers

    def _generated(self, elements: range | list[int]) -> tuple[Booleans, tuple[int, ...]]:
        """The members of the subgroup that elements generate, and those that were needed for it."""
        members = np.zeros(len(self), bool)
        members[0] = True
        chosen: list[int] = []
        for element in elements:
            if members[element]:
                continue
            chosen.append(element)
            fresh = self.times(np.flatnonzero(members), element)
            while len(fresh):
                members[fresh] = True
                products = np.unique(self.times(fresh[:, None], np.array(chosen)))
                fresh = products[~members[products]]
        return members, tuple(chosen)

    def _num_of_power_order(self, prime: int) -> int:
        counts = Counter(self.orders.tolist())
        return sum(count for order, count in counts.items() if set(factorise(order)) <= {prime})


def factorise(number: int) -> dict[int, int]:
    """The primes that divide a number, with how often they do."""
    factors: Counter[int] = Counter()
    divisor = 2
    while divisor * divisor <= number:
        while number % divisor == 0:
            factors[divisor] += 1
            number //= divisor
        divisor += 1
    if number > 1:
        factors[number] += 1
    return dict(factors)
