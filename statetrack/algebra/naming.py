"""Names of groups, where they have one: Z4, Z2xZ2, S3, D4, Q8, A5, F20.

A name is given only where it is certain: by invariants that no other group of the same order
has, or by elements that satisfy the defining relations.
"""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from statetrack.algebra.groups import Group, factorise


def name_of(group: Group) -> str:
    """What a group is called, or what is known of it: `order 48, solvable, not abelian`.

    Zn is cyclic, Dn the symmetries of an n-gon, Qn generalised quaternions, Dicn dicyclic, Sn and
    An permutations, Fn the affine maps of a prime field, Hp the Heisenberg group modulo p, `Zp:Zk`
    a semidirect product of cyclic groups. Abelian groups are written by invariant factors, each a
    multiple of the one before.
    """
    if group.is_abelian:
        return "x".join(f"Z{factor}" for factor in invariant_factors(group)) or "trivial"
    for rule in (_permutations, _affine, _dihedral, _dicyclic, _heisenberg, _linear):
        name = rule(group)
        if name:
            return name
    return _coprime_product(group) or _product_with_center(group) or _described(group)


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


def _permutations(group: Group) -> str:
    """S_n and A_n for n up to 7.

    S3, A4 and S4 are the only groups of order 6, 12 and 24 without a center; A5, A6 and A7 the
    only perfect ones of order 60, 360 and 2520. Without a center and with one of these as
    commutators of index 2 there are S5, S7, and three groups above A6, of which only S6 has
    elements of order 6.
    """
    order, center = len(group), int(group.center.sum())
    if center > 1:
        return ""
    if order in (6, 12, 24):
        return {6: "S3", 12: "A4", 24: "S4"}[order]
    alternating = {60: "A5", 360: "A6", 2520: "A7"}
    if len(group.derived) == order:
        return alternating.get(order, "")
    above = 2 * len(group.derived) == order and order // 2 in alternating
    if above and len(group.derived.derived) == order // 2 and 6 in group.orders:
        return alternating[order // 2].replace("A", "S")
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


def _dihedral(group: Group) -> str:
    """An element r of order n, and s with s^2 = 1 and s r s = r^-1 that is no power of r."""
    half = len(group) // 2
    return f"D{half}" if _has_inverting_element(group, half, square=0) else ""


def _dicyclic(group: Group) -> str:
    """An element r of order 2n, and s with s^2 = r^n and s^-1 r s = r^-1."""
    half = len(group) // 2
    if half % 2 or not _has_inverting_element(group, half, square=half // 2):
        return ""
    is_two_group = set(factorise(len(group))) == {2}
    return f"Q{len(group)}" if is_two_group else f"Dic{half // 2}"


def _has_inverting_element(group: Group, half: int, square: int) -> bool:
    """Whether some s has s^-1 r s = r^-1 and s^2 = r^square, for an r of order `half`."""
    candidates = np.flatnonzero(group.orders == half)
    if len(group) != 2 * half or not len(candidates):
        return False
    for element in candidates.tolist():
        powers = _powers(group, element)
        others = np.setdiff1d(np.arange(len(group)), powers)
        conjugates = group.times(group.times(group.inverses[others], element), others)
        fits = (conjugates == group.inverses[element]) & (
            group.times(others, others) == powers[square]
        )
        if fits.any():
            return True
    return False


def _heisenberg(group: Group) -> str:
    """Matrices with ones on the diagonal: not abelian, of order p^3, with g^p = 1."""
    factors = factorise(len(group))
    if len(factors) != 1 or set(factors.values()) != {3}:
        return ""
    (prime,) = factors
    return f"H{prime}" if group.exponent == prime else ""


def _linear(group: Group) -> str:
    """SL(2,3), with Q8 as commutators in order 24; SL(2,5), perfect of order 120; PSL(2,7)."""
    order, commutators = len(group), len(group.derived)
    if order == 24 and commutators == 8:
        return "SL(2,3)"
    if order == 120 and commutators == 120:
        return "SL(2,5)"
    if order == 168 and commutators == 168:
        return "PSL(2,7)"
    return ""


def _coprime_product(group: Group) -> str:
    """The direct product of groups of coprime orders: both are normal as sets of some orders."""
    factors = factorise(len(group))
    if len(factors) == 1:
        return ""
    for prime, power in factors.items():
        inside = np.array([set(factorise(order)) <= {prime} for order in group.orders.tolist()])
        outside = group.orders % prime != 0
        if inside.sum() == prime**power and outside.sum() * prime**power == len(group):
            names = [name_of(group.subgroup(outside)), name_of(group.subgroup(inside))]
            return "x".join(names) if not any("," in name for name in names) else ""
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
    names = [name_of(commutators), name_of(center)]
    return "x".join(names) if not any("," in name for name in names) else ""


def _described(group: Group) -> str:
    solvable = "not solvable" if group.derived_length is None else "solvable"
    return f"order {len(group)}, {solvable}, not abelian"


def _powers(group: Group, element: int) -> np.ndarray:
    powers = [0]
    while (following := int(group.times(powers[-1], element))) != 0:
        powers.append(following)
    return np.array(powers)
