"""Groups of permutations with all elements listed, and their names: Z4, Z2xZ2, S3, D4, Q8, A5.

The product `a b` does a first: as permutations, `(a b)[p] = b[a[p]]`. Elements are numbers from
0, the identity. A name is given only where it is certain: by invariants that no other group of the
same order has, or by elements that satisfy the defining relations.

Letters: N elements, P points, K generators.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from statetrack.algebra.maps import Numbers, Permutations
from statetrack.sources import Booleans, Integers, orbits

MATHIEU = {7920: "M11", 95040: "M12", 443520: "M22", 10200960: "M23", 244823040: "M24"}
"""The Mathieu groups by their orders."""
MOST_DIMENSIONS = 8
"""The largest n of the groups PSL(n,q) that are named."""


@dataclass(frozen=True, eq=False)
class Group:
    """A group of permutations `[N, P]`: closed under products, the identity first."""

    permutations: Permutations

    def __len__(self) -> int:
        return len(self.permutations)

    def times(self, left: npt.ArrayLike, right: npt.ArrayLike) -> Integers:
        """The numbers of products of elements, number by number (shapes are broadcast)."""
        first, second = np.asarray(left)[..., None], np.asarray(right)[..., None]
        base = self._numbers.base
        return self._numbers.of(self.permutations[second, self.permutations[first, base]])

    def number_of(self, permutation: Permutations) -> int:
        """The number of a permutation `[P]` that is an element."""
        return int(self._numbers.of(permutation[self._numbers.base]))

    @cached_property
    def inverses(self) -> Integers:
        """The inverse of every element, `[N]`."""
        taken_there = [(self.permutations == p).argmax(axis=1) for p in self._numbers.base]
        return self._numbers.of(np.stack(taken_there, axis=1))

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

    def powers(self, element: int) -> list[int]:
        """1, g, g^2, ... of an element g, as many as its order."""
        powers = [0]
        while (following := int(self.times(powers[-1], element))) != 0:
            powers.append(following)
        return powers

    @cached_property
    def exponent(self) -> int:
        """The smallest n with g^n = 1 for all g."""
        return math.lcm(*map(int, np.unique(self.orders)))

    @cached_property
    def classes(self) -> Integers:
        """The conjugacy class of every element, `[N]`: numbered by first member, so 0 is {1}."""
        maps = [self._conjugates_by(generator) for generator in self.generators]
        return np.unique(orbits(maps, len(self)), return_inverse=True)[1]

    def alike(self, elements: Sequence[int]) -> Integers:
        """A number for each of some elements, equal for conjugates of powers of each other."""
        numbers = np.full(int(self.classes.max()) + 1, -1)
        for element in elements:
            if numbers[self.classes[element]] < 0:
                powers = np.array(self.powers(element))
                generate = np.gcd(np.arange(len(powers)), len(powers)) == 1
                numbers[self.classes[powers[generate]]] = self.classes[element]
        return numbers[self.classes[[*elements]]]

    @cached_property
    def is_abelian(self) -> bool:
        """Whether all elements commute."""
        chosen = np.array(self.generators, np.int64)
        products = self.times(chosen[:, None], chosen[None, :])
        return bool((products == products.T).all())

    @cached_property
    def center(self) -> Booleans:
        """The elements that commute with all, `[N]`."""
        conjugates = [self._conjugates_by(generator) for generator in self.generators]
        fixed = np.array([np.arange(len(self)), *conjugates]) == np.arange(len(self))
        return np.asarray(fixed.all(axis=0))

    @cached_property
    def derived(self) -> Group:
        """The subgroup of commutators.

        [gh, x] = [g, x]^h [h, x], so commutators of all elements with generators generate a
        normal subgroup, which then is the whole one.
        """
        commutators = {0}
        for generator in self.generators:
            found = self.times(self.inverses, self._conjugates_by(generator))
            commutators |= set(found.tolist())
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
    def squares_length(self) -> int | None:
        """In how many steps the subgroup of squares, taken again and again, becomes trivial.

        None where it never does.
        """
        if len(self) == 1:
            return 0
        if len(self.squares) == len(self):
            return None
        further = self.squares.squares_length
        return None if further is None else 1 + further

    @cached_property
    def is_nilpotent(self) -> bool:
        """Whether it is the direct product of its Sylow subgroups.

        That holds exactly where, for every prime p, the number of elements whose order is a power
        of p is the largest power of p that divides the order of the group.
        """
        counts = Counter(self.orders.tolist())
        return all(
            sum(counts[order] for order in counts if set(factorise(order)) <= {prime})
            == prime**exponent
            for prime, exponent in factorise(len(self)).items()
        )

    def _conjugates_by(self, element: int) -> Integers:
        """g^-1 x g for every element x, `[N]`."""
        return self.times(self.times(self.inverses[element], np.arange(len(self))), element)

    def subgroup(self, members: Booleans) -> Group:
        """The subgroup of some elements `[N]`, which must be one."""
        return Group(self.permutations[members])

    def closure(self, elements: Integers) -> Booleans:
        """The members of the subgroup that some elements generate, `[N]`."""
        return self._generated(elements.tolist())[0]

    @cached_property
    def _numbers(self) -> Numbers:
        return Numbers.of_maps(self.permutations)

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


# --- names ---


def name_of(group: Group) -> str:
    """What a group is called, or what is known of it: `order 48, solvable, not abelian`.

    Zn is cyclic, Dn the symmetries of an n-gon, Qn generalised quaternions, Dicn dicyclic, Sn and
    An permutations, PSL(n,q) and M11 simple groups, Fn the affine maps of a prime field, Hp the
    Heisenberg group modulo p, `Zp:Zk` a semidirect product of cyclic groups. Abelian groups are
    written by invariant factors, each a multiple of the one before.
    """
    if group.is_abelian:
        return "x".join(f"Z{factor}" for factor in invariant_factors(group)) or "trivial"
    for rule in (_simple, _permutations, _affine, _dihedral_or_dicyclic, _of_matrices):
        name = rule(group)
        if name:
            return name
    solvable = "not solvable" if group.derived_length is None else "solvable"
    described = f"order {len(group)}, {solvable}, not abelian"
    return _coprime_product(group) or _product_with_center(group) or described


def invariant_factors(group: Group) -> list[int]:
    """The orders of the cyclic factors of an abelian group, each dividing the next.

    For a prime p, there are p^(sum of min(e_i, k)) elements with g^(p^k) = 1, from which the
    exponents e_i of the cyclic factors of p-power order are read off.
    """
    orders = Counter(group.orders.tolist())
    columns: list[list[int]] = []
    for prime, highest in factorise(len(group)).items():
        roots = [
            sum(count for order, count in orders.items() if prime**power % order == 0)
            for power in range(highest + 2)
        ]
        logs = [round(math.log(number, prime)) for number in roots]
        at_least = [logs[power] - logs[power - 1] for power in range(1, highest + 2)]
        columns.append([prime ** sum(n > place for n in at_least) for place in range(at_least[0])])
    longest = max(map(len, columns), default=0)
    padded = [column + [1] * (longest - len(column)) for column in columns]
    return [math.prod(factors) for factors in zip(*padded, strict=True)][::-1]


def name_of_simple(order: int, has_order_6: bool | None = None) -> str:
    """A_n, PSL(n,q), M11 or M12, for the order of a simple group that is not abelian; else empty.

    By the classification, the order decides which simple group it is, but for 20160 and orders from
    4,585,351,680 on, of which none belongs to these families (Kimmerle, Lyons, Sandling and Teague
    1990). A8 and PSL(3,4) have 20160 elements, of which some of A8 have order 6.
    """
    if order == 20160:
        return {None: "", True: "A8", False: "PSL(3,4)"}[has_order_6]
    if order in MATHIEU:
        return MATHIEU[order]
    size, letters = 60, 5
    while size < order:
        letters += 1
        size *= letters
    if size == order:
        return f"A{letters}"
    for dimension in range(2, MOST_DIMENSIONS + 1):
        field = 2
        while field ** (dimension**2 - 1) <= 2 * dimension * order:
            if _order_of_linear(dimension, field) == order and len(factorise(field)) == 1:
                return f"PSL({dimension},{field})"
            field += 1
    return ""


def _order_of_linear(dimension: int, field: int) -> int:
    """The order of PSL(n,q): at least q^(n^2 - 1) / 2n."""
    matrices: int = math.prod(field**dimension - field**power for power in range(dimension))
    return matrices // (field - 1) // math.gcd(dimension, field - 1)


def _simple(group: Group) -> str:
    """The name that its order gives a simple group: conjugates of a prime order generate it.

    An abelian group is named otherwise.
    """
    if group.is_abelian or len(group.derived) < len(group):
        return ""
    for number in np.unique(group.classes):
        members = np.flatnonzero(group.classes == number)
        order = int(group.orders[members[0]])
        if factorise(order) == {order: 1} and not group.closure(members).all():
            return ""
    return name_of_simple(len(group), bool((group.orders == 6).any()))


def _permutations(group: Group) -> str:
    """S_n and A_n for n up to 4, S_n for n from 5.

    S3, A4 and S4 are the only groups of order 6, 12 and 24 without a center. Without a center and
    with A_n as commutators of index 2 there is S_n, and two more groups above A6, in which no
    element has order 6: all automorphisms of other A_n are conjugations by permutations.
    """
    order, center = len(group), int(group.center.sum())
    if center > 1:
        return ""
    if order in (6, 12, 24):
        return {6: "S3", 12: "A4", 24: "S4"}[order]
    if 2 * len(group.derived) == order and 6 in group.orders:
        below = _simple(group.derived)
        return below.replace("A", "S") if below.startswith("A") else ""
    return ""


def _affine(group: Group) -> str:
    """Zp and a cyclic group of automorphisms: the commutators are Zp, its own centraliser."""
    prime = len(group.derived)
    if factorise(prime) != {prime: 1} or (len(group) // prime) % prime == 0:
        return ""
    if int(group.center.sum()) > 1 or int((group.orders % prime == 0).sum()) != prime - 1:
        return ""
    index = len(group) // prime
    if index == 2:
        return f"D{prime}"
    return f"F{len(group)}" if index == prime - 1 else f"Z{prime}:Z{index}"


def _dihedral_or_dicyclic(group: Group) -> str:
    """An element r of order n, and s with s^-1 r s = r^-1 that is no power of r.

    With s^2 = 1 it is dihedral; dicyclic with s^2 = r^(n / 2).
    """
    half = len(group) // 2
    if _has_inverting_element(group, half, square=0):
        return f"D{half}"
    if half % 2 or not _has_inverting_element(group, half, square=half // 2):
        return ""
    return f"Q{len(group)}" if set(factorise(len(group))) == {2} else f"Dic{half // 2}"


def _has_inverting_element(group: Group, half: int, square: int) -> bool:
    """Whether some s has s^-1 r s = r^-1 and s^2 = r^square, for an r of order `half`."""
    candidates = np.flatnonzero(group.orders == half)
    if len(group) != 2 * half or not len(candidates):
        return False
    for element in candidates.tolist():
        powers = group.powers(element)
        others = np.setdiff1d(np.arange(len(group)), powers)
        conjugates = group.times(group.times(group.inverses[others], element), others)
        fits = (conjugates == group.inverses[element]) & (
            group.times(others, others) == powers[square]
        )
        if fits.any():
            return True
    return False


def _of_matrices(group: Group) -> str:
    """SL(2,3), with Q8 as commutators in order 24; SL(2,5), perfect of order 120; Heisenberg.

    The latter are matrices with ones on the diagonal: not abelian, of order p^3, with g^p = 1.
    """
    known = {(24, 8): "SL(2,3)", (120, 120): "SL(2,5)"}.get((len(group), len(group.derived)))
    factors = list(factorise(len(group)).items())
    if known is None and len(factors) == 1 and factors[0] == (group.exponent, 3):
        return f"H{group.exponent}"
    return known or ""


def _coprime_product(group: Group) -> str:
    """The direct product of groups of coprime orders: both are normal as sets of some orders."""
    factors = factorise(len(group))
    if len(factors) == 1:
        return ""
    for prime, power in factors.items():
        inside = np.array([set(factorise(order)) <= {prime} for order in group.orders.tolist()])
        outside = group.orders % prime != 0
        if inside.sum() == prime**power and outside.sum() * prime**power == len(group):
            return _product([group.subgroup(outside), group.subgroup(inside)])
    return ""


def _product_with_center(group: Group) -> str:
    """The direct product of the commutators, where these are perfect, and a center above 1."""
    commutators, center = group.derived, group.subgroup(group.center)
    if len(center) == 1:
        return ""
    if len(commutators) * len(center) != len(group) or len(commutators.derived) < len(commutators):
        return ""
    if int(commutators.center.sum()) > 1:
        return ""
    return _product([commutators, center])


def _product(factors: list[Group]) -> str:
    """The name of a direct product; empty where a factor has none."""
    names = [name_of(factor) for factor in factors]
    return "x".join(names) if not any("," in name for name in names) else ""
