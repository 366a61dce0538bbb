"""Groups of permutations by name: C12, D5, Q16, S5, A7, F21, PSL(2,8), M11, C2^3, S3xC4.

Every group acts on points 1 to n, and no point is apart from the others: some element takes each
to each. Generators are computed, but for those of the Mathieu groups, which are facts: those of M11
on 11 and M12 on 12 points as in GAP (The GAP Group, `MathieuGroup`), those of M11 on 12 points the
standard ones of the ATLAS of Finite Group Representations, version 3 (Wilson and others).

    Cn, Zn      the numbers modulo n, on themselves
    Dn          the symmetries of a polygon with n corners, on these: 2n elements
    Qn          generalised quaternions, on themselves; n is a multiple of 4. Dicn is Q4n
    Sn, An      all permutations of n points, and the even ones
    Fn          x -> ax + b on the prime field of p elements, p the largest prime that divides n,
                a in the group of n/p elements
    PSL(n,q)    matrices of determinant 1 over the field of q elements, on the lines through 0 of a
                space of n dimensions. PSL(2,q) moves the q + 1 points x of the projective line by
                x + 1, -1/x and, where q is no prime, a^2 x with a primitive
    M11, M12    the Mathieu groups, on 11 and on 12 points; M11 also on 12
    V4          C2xC2
    Rubik-corners, Rubik-edges    the turns of the cube, on 24 stickers of its corners or edges
    GxH, G^k    direct products, on tuples of points

The elements of the field of q = p^k elements are the numbers 0 .. q-1, whose digits in base p are
the coefficients of a polynomial, the lowest first, modulo one of degree k for which the powers of
x are all the polynomials but 0. So x is a primitive element, and no other test is needed: where it
has q - 1 powers, every element but 0 has an inverse.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Literal

import numpy as np

from statetrack.errors import TaskError
from statetrack.sources.arrays import Integers
from statetrack.sources.graphs import orbits
from statetrack.sources.groups import Permutation, cycle_name, generated, read_permutation

MOST_POINTS = 1024
"""The most points that a group by name moves: as many states as the algebra takes apart."""

FAMILIES = (
    "C5, D5, Q8, Dic3, S5, A5, F21, PSL(2,7), M11, M12, V4, Rubik-corners, Rubik-edges, and "
    "products: S3xC4, C2^3"
)

GAP = "The GAP Group, GAP 4, MathieuGroup"
ATLAS = "Wilson et al., ATLAS of Finite Group Representations v3, standard generators"


Alphabet = Literal["few", "with-inverses", "all"]

ALPHABETS = (
    "the symbols: a `few` elements that generate the group, these `with-inverses`, or `all` "
    "elements"
)


@dataclass(frozen=True)
class NamedGroup:
    """A transitive group of permutations: its order, and generators by their names."""

    order: int
    generators: dict[str, Permutation]
    source: str = "constructed"

    @property
    def points(self) -> int:
        """How many points it moves."""
        return len(next(iter(self.generators.values())))


def named_group(name: str, points: int | None = None) -> NamedGroup:
    """The group of a name; `points` chooses among its actions, where it has more than one here.

    Raises `TaskError` for what is no name of a group, and for an action that is not there.
    """
    text = name.replace(" ", "")
    if points is not None and (text, points) in FURTHER:
        return FURTHER[text, points]
    group = _named(text, name)
    if points is not None and points != group.points:
        further = [f", {number}" for known, number in FURTHER if known == text]
        raise TaskError(
            f"points: '{name}' moves {group.points}{''.join(further)} points here, not {points}"
        )
    return group


def alphabet_of(group: NamedGroup, which: Alphabet) -> dict[str, Permutation]:
    """Elements that generate a group, by their names: all of them are named by their cycles.

    Raises `TaskError` where all elements are too many.
    """
    if which == "all":
        return {cycle_name(each): each for each in generated(list(group.generators.values()))}
    symbols = dict(group.generators)
    if which == "with-inverses":
        for name, element in group.generators.items():
            inverse = tuple(sorted(range(group.points), key=element.__getitem__))
            if inverse not in symbols.values():
                symbols[f"{name}^-1"] = inverse
    return symbols


def _named(text: str, whole: str) -> NamedGroup:
    factors = re.split(r"x(?![^(]*\))", text)
    if len(factors) > 1:
        return _product([_named(factor, whole) for factor in factors], whole)
    power = re.fullmatch(r"(.+)\^([1-9][0-9]?)", text)
    if power:
        return _product([_named(power[1], whole)] * int(power[2]), whole)
    if text in FIXED:
        return FIXED[text]
    for pattern, family in FAMILY.items():
        matched = re.fullmatch(pattern, text)
        if matched:
            return family(*map(int, matched.groups()))
    raise TaskError(f"group: there is no group '{whole}'. Known are {FAMILIES}")


def _cyclic(n: int) -> NamedGroup:
    _check(2 <= n <= MOST_POINTS, f"C{n}: n is 2 to {MOST_POINTS}")
    return NamedGroup(n, {"a": _turn(n)})


def _dihedral(n: int) -> NamedGroup:
    _check(3 <= n <= MOST_POINTS, f"D{n}: n is 3 to {MOST_POINTS}: D2 is V4, and D1 is C2")
    return NamedGroup(2 * n, {"r": _turn(n), "s": tuple(-corner % n for corner in range(n))})


def _quaternion(n: int) -> NamedGroup:
    """The elements a^i b^j with a^(n/2) = 1, b^2 = a^(n/4), a b = b a^-1, times a and times b."""
    _check(
        n % 4 == 0 and 8 <= n <= MOST_POINTS,
        f"Q{n}: n is a multiple of 4, 8 to {MOST_POINTS}: Q4 is C4",
    )
    half = n // 2
    elements = [(i, j) for j in range(2) for i in range(half)]
    times_a = [((i + (1, -1)[j]) % half, j) for i, j in elements]
    times_b = [((i + j * (half // 2)) % half, 1 - j) for i, j in elements]
    number = {element: place for place, element in enumerate(elements)}
    a, b = (tuple(number[each] for each in images) for images in (times_a, times_b))
    return NamedGroup(n, {"a": a, "b": b})


def _symmetric(n: int) -> NamedGroup:
    _check(2 <= n <= MOST_POINTS, f"S{n}: n is 2 to {MOST_POINTS}")
    swap = (1, 0, *range(2, n))
    return NamedGroup(math.factorial(n), {"swap": swap} | ({"turn": _turn(n)} if n > 2 else {}))


def _alternating(n: int) -> NamedGroup:
    """A cycle of 3 points, and one of all points or, where their number is even, of all but one."""
    _check(3 <= n <= MOST_POINTS, f"A{n}: n is 3 to {MOST_POINTS}")
    three = (1, 2, 0, *range(3, n))
    still = 1 - n % 2
    turn = (*range(still), *(still + point for point in _turn(n - still)))
    return NamedGroup(math.factorial(n) // 2, {"three": three} | ({"turn": turn} if n > 3 else {}))


def _affine(n: int) -> NamedGroup:
    prime = max(_primes_of(n), default=1)
    index = n // prime
    _check(
        n > 2 and index > 1 and (prime - 1) % index == 0 and prime <= MOST_POINTS,
        f"F{n}: n is p k with a prime p and a number k > 1 that divides p - 1, as 20, 21 and 42",
    )
    factor = pow(field_of(prime, 1).primitive, (prime - 1) // index, prime)
    times = tuple(factor * x % prime for x in range(prime))
    return NamedGroup(n, {"plus": _turn(prime), "times": times})


def _linear(n: int, q: int) -> NamedGroup:
    """Transvections and, where q is no prime, diagonal matrices, moved around by a cyclic one.

    Conjugates of the transvection under the cyclic matrix and the diagonal one give elementary
    matrices in every place with every entry.
    """
    primes = _primes_of(q)
    number = (q**n - 1) // (q - 1) if q > 1 and n < 12 else MOST_POINTS + 1
    _check(
        n > 1 and len(primes) == 1 and number <= MOST_POINTS,
        f"PSL({n},{q}): n is at least 2, q a power of a prime, and the points at most "
        f"{MOST_POINTS}",
    )
    prime = primes.pop()
    field = field_of(prime, round(math.log(q, prime)))
    lines = field.lines(n)
    one = [[int(row == column) for column in range(n)] for row in range(n)]
    transvection = [[1, 1, *one[0][2:]], *one[1:]]
    around = [*one[1:], [1 if n % 2 else field.negative(1), *one[0][1:]]]
    matrices = {"shift": transvection, "around": around}
    if q > prime:
        a = field.primitive
        scaled = [[a, *one[0][1:]], [0, field.inverse(a), *one[1][2:]], *one[2:]]
        matrices["scale"] = scaled
    place = {line: number for number, line in enumerate(lines)}
    generators = {
        name: tuple(place[field.line_of(field.moved(matrix, line))] for line in lines)
        for name, matrix in matrices.items()
    }
    of_linear = math.prod(q**n - q**k for k in range(n)) // (q - 1)
    return NamedGroup(of_linear // math.gcd(n, q - 1), generators)


def _product(factors: list[NamedGroup], whole: str) -> NamedGroup:
    """Generators of every factor move its own coordinate of a tuple of points."""
    points = math.prod(factor.points for factor in factors)
    _check(points <= MOST_POINTS, f"{whole}: it would move {points} points")
    if len(factors) == 1:
        return factors[0]
    tuples = list(product(*(range(factor.points) for factor in factors)))
    number = {each: place for place, each in enumerate(tuples)}
    generators: dict[str, Permutation] = {}
    for place, factor in enumerate(factors):
        for name, moved in factor.generators.items():
            generators[f"{place + 1}:{name}"] = tuple(
                number[*each[:place], moved[each[place]], *each[place + 1 :]] for each in tuples
            )
    sources = dict.fromkeys(factor.source for factor in factors)
    order = math.prod(factor.order for factor in factors)
    return NamedGroup(order, generators, "; ".join(sources))


def _turn(n: int) -> Permutation:
    return tuple((point + 1) % n for point in range(n))


def _primes_of(number: int) -> set[int]:
    primes, divisor = set(), 2
    while number > 1:
        if divisor * divisor > number:
            divisor = number
        while number % divisor == 0:
            primes.add(divisor)
            number //= divisor
        divisor += 1
    return primes


def _check(holds: bool, message: str) -> None:
    if not holds:
        raise TaskError(f"group: {message}")


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
        vectors = product(range(len(self)), repeat=dimension)
        return [each for each in vectors if next(filter(None, each), 0) == 1]

    def line_of(self, vector: tuple[int, ...]) -> tuple[int, ...]:
        """That vector of the line of a vector that is not 0."""
        scale = self.inverse(next(filter(None, vector)))
        return tuple(int(self.products[scale, each]) for each in vector)


@lru_cache(maxsize=32)
def field_of(prime: int, exponent: int) -> Field:
    """The field of prime^exponent elements."""
    size = prime**exponent
    weights = prime ** np.arange(exponent)
    digits = np.arange(size)[:, None] // weights % prime  # [q, k]
    higher = np.column_stack([np.zeros(size, np.int64), digits[:, :-1]])
    sums = (digits[:, None] + digits[None, :]) % prime @ weights
    for low in product(reversed(range(prime)), repeat=exponent):
        # polynomials times x, modulo x^k + low
        times_x = (higher - digits[:, -1:] * np.array(low)) % prime @ weights
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


def _written(order: int, points: int, source: str, **cycles: str) -> NamedGroup:
    generators = {name: read_permutation(each, points) for name, each in cycles.items()}
    return NamedGroup(order, generators, source)


FAMILY: dict[str, Callable[..., NamedGroup]] = {
    "[CZ]([0-9]{1,4})": _cyclic,
    "D([0-9]{1,4})": _dihedral,
    "Q([0-9]{1,4})": _quaternion,
    "Dic([0-9]{1,4})": lambda n: _quaternion(4 * n),
    "S([0-9]{1,4})": _symmetric,
    "A([0-9]{1,4})": _alternating,
    "F([0-9]{1,6})": _affine,
    r"PSL\(([0-9]{1,2}),([0-9]{1,4})\)": _linear,
}

_ELEVEN = "(1,2,3,4,5,6,7,8,9,10,11)"
_FOURS = "(3,7,11,8)(4,10,5,6)"

_CUBE = {
    "U": "(1,3,8,6)(2,5,7,4)(9,33,25,17)(10,34,26,18)(11,35,27,19)",
    "L": "(9,11,16,14)(10,13,15,12)(1,17,41,40)(4,20,44,37)(6,22,46,35)",
    "F": "(17,19,24,22)(18,21,23,20)(6,25,43,16)(7,28,42,13)(8,30,41,11)",
    "R": "(25,27,32,30)(26,29,31,28)(3,38,43,19)(5,36,45,21)(8,33,48,24)",
    "B": "(33,35,40,38)(34,37,39,36)(3,9,46,32)(2,12,47,29)(1,14,48,27)",
    "D": "(41,43,48,46)(42,45,47,44)(14,22,30,38)(15,23,31,39)(16,24,32,40)",
}
"""The six turns of Rubik's cube, on its 48 stickers that move, as in GAP's example of it."""


def _stickers(order: int, first: int) -> NamedGroup:
    """The turns of the cube on the 24 stickers to which they take one of them."""
    turns = {face: read_permutation(cycles, 48) for face, cycles in _CUBE.items()}
    orbit = orbits(map(np.array, turns.values()), 48)
    kept = np.flatnonzero(orbit == orbit[first - 1]).tolist()
    number = {each: place for place, each in enumerate(kept)}
    generators = {face: tuple(number[turn[each]] for each in kept) for face, turn in turns.items()}
    return NamedGroup(order, generators, "The GAP Group, GAP 4, example of Rubik's cube")


FIXED = {
    "Rubik-corners": _stickers(math.factorial(8) * 3**7, 1),
    "Rubik-edges": _stickers(math.factorial(12) * 2**11, 2),
    "M11": _written(7920, 11, GAP, a=_ELEVEN, b=_FOURS),
    "M12": _written(95040, 12, GAP, a=_ELEVEN, b=_FOURS, c="(1,12)(2,11)(3,6)(4,8)(5,9)(7,10)"),
    "V4": _product([_cyclic(2), _cyclic(2)], "V4"),
}

FURTHER = {
    ("M11", 12): _written(
        7920, 12, ATLAS, a="(1,6)(2,9)(5,7)(8,10)", b="(1,6,7,4)(2,8)(3,9)(5,11,12,10)"
    ),
}
"""Actions beside the one that a name means, by the number of their points."""
