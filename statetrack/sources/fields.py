"""Finite fields by their tables, and the matrices over them that move lines.

The elements of the field of q = p^k elements are the numbers 0 .. q-1, whose digits in base p are
the coefficients of a polynomial, the lowest first, modulo one of degree k for which the powers of
x are all the polynomials but 0. So x is a primitive element, and no other test is needed: where it
has q - 1 powers, every element but 0 has an inverse.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from statetrack.sources.arrays import Integers


@dataclass(frozen=True, eq=False)
class Field:
    """The field of q elements: sums and products of the numbers 0 .. q-1 as tables `[q, q]`."""

    sums: Integers
    products: Integers
    primitive: int
    """An element of which all elements but 0 are powers."""

    def __len__(self) -> int:
        return len(self.sums)

    def negative(self, element: int) -> int:
        """What gives 0 when added."""
        return int(np.flatnonzero(self.sums[element] == 0)[0])

    def inverse(self, element: int) -> int:
        """What gives 1 when multiplied, for an element that is not 0."""
        return int(np.flatnonzero(self.products[element] == 1)[0])

    def moved(self, matrix: list[list[int]], vector: tuple[int, ...]) -> tuple[int, ...]:
        """A matrix times a vector."""
        image = []
        for row in matrix:
            total = 0
            for entry, coordinate in zip(row, vector, strict=True):
                total = int(self.sums[total, self.products[entry, coordinate]])
            image.append(total)
        return tuple(image)

    def lines(self, dimension: int) -> list[tuple[int, ...]]:
        """A vector of every line through 0: that whose first coordinate that is not 0 is 1."""
        vectors = itertools.product(range(len(self)), repeat=dimension)
        return [each for each in vectors if next(filter(None, each), 0) == 1]

    def line_of(self, vector: tuple[int, ...]) -> tuple[int, ...]:
        """That vector of the line of a vector that is not 0."""
        scale = self.inverse(next(filter(None, vector)))
        return tuple(int(self.products[scale, each]) for each in vector)


@lru_cache(maxsize=32)
def field_of(prime: int, exponent: int) -> Field:
    """The field of prime^exponent elements."""
    size = prime**exponent
    digits = np.array([_digits(number, prime, exponent) for number in range(size)])
    weights = prime ** np.arange(exponent)
    sums = (digits[:, None] + digits[None, :]) % prime @ weights
    for low in itertools.product(reversed(range(prime)), repeat=exponent):
        times_x = _times_x(digits, np.array(low), prime) @ weights
        root = prime if exponent > 1 else (-low[0]) % prime
        power, powers = 1, []
        while power not in powers and power:
            powers.append(power)
            power = int(times_x[power])
        if power == 1 and len(powers) == size - 1:
            products = np.zeros((size, size), np.int64)
            products[np.ix_(powers, powers)] = np.array(powers)[
                np.add.outer(np.arange(size - 1), np.arange(size - 1)) % (size - 1)
            ]
            return Field(sums, products, root)
    raise AssertionError(f"there is no field of {size} elements")


def _digits(number: int, base: int, count: int) -> list[int]:
    return [number // base**place % base for place in range(count)]


def _times_x(digits: Integers, low: Integers, prime: int) -> Integers:
    """Polynomials `[q, k]` times x, modulo x^k + low."""
    higher = np.column_stack([np.zeros(len(digits), np.int64), digits[:, :-1]])
    shifted: Integers = (higher - digits[:, -1:] * low) % prime
    return shifted
