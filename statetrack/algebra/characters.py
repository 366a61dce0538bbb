"""Irreducible representations of a finite group, by their characters.

The class sums act on the class functions by convolution, and the characters are the common
eigenvectors (Burnside 1911; Dixon 1967 computed them so). One random Hermitian combination of
class sums has them as its only eigenvectors, all with different eigenvalues. The floating-point
values are then made exact: restricted to a cyclic subgroup, a character is a sum of roots
of unity with whole multiplicities, which are rounded, checked and summed again.

Letters: N elements, K conjugacy classes (and so K characters).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from statetrack.algebra.groups import Group
from statetrack.sources import Integers

Complexes = npt.NDArray[np.complex128]
RealType = Literal["real", "complex", "quaternionic"]

TOLERANCE = 1e-6
"""How far from a whole number a multiplicity may come out; the next one is 1 away."""

ATTEMPTS = 5


@dataclass(frozen=True, eq=False)
class CharacterTable:
    """The complex irreducible characters of a group, smallest degree first, the trivial one first.

    `values[i, c]` is the i-th character on the c-th conjugacy class; class 0 is that of 1.
    """

    values: Complexes  # [K, K]
    class_sizes: Integers  # [K]
    degrees: Integers  # [K]
    indicators: Integers  # [K]: of Frobenius and Schur, 1 real, 0 complex, -1 quaternionic
    conjugates: Integers  # [K]: the number of the complex conjugate character


@dataclass(frozen=True)
class RealIrreducible:
    """One irreducible representation over the real numbers.

    A complex one of degree d and real type stays as it is; one of complex type and its conjugate
    become one of dimension 2 d; one of quaternionic type becomes one of dimension 2 d (Frobenius
    and Schur 1906).
    """

    dimension: int
    type: RealType
    kernel: tuple[int, ...]
    """The conjugacy classes that it sends to the identity."""

    @property
    def is_faithful(self) -> bool:
        """Whether its kernel is trivial."""
        return self.kernel == (0,)


def character_table(group: Group) -> CharacterTable:
    """The irreducible characters of a group.

    Takes a number of steps that grows with N K + K^3. Raises `ArithmeticError` where no
    characters with whole multiplicities come out (rounding, for very many classes).
    """
    for seed in range(ATTEMPTS):
        values = _made_exact(group, _eigenvectors(group, np.random.default_rng(seed)))
        if values is not None and _is_table(group, values):
            return _sorted_table(group, values)
    raise ArithmeticError(f"no exact characters of a group of order {len(group)} were found")


def real_irreducibles(group: Group) -> tuple[RealIrreducible, ...]:
    """The irreducible representations over the real numbers, smallest first.

    Raises `ArithmeticError` as `character_table` does.
    """
    table = character_table(group)
    types: dict[int, RealType] = {1: "real", 0: "complex", -1: "quaternionic"}
    found = []
    for place, degree in enumerate(table.degrees.tolist()):
        if table.conjugates[place] < place:
            continue
        kind = types[int(table.indicators[place])]
        kernel = np.flatnonzero(np.abs(table.values[place] - degree) < TOLERANCE)
        dimension = degree if kind == "real" else 2 * degree
        found.append(RealIrreducible(dimension, kind, tuple(kernel.tolist())))
    return tuple(sorted(found, key=lambda irreducible: irreducible.dimension))


def _eigenvectors(group: Group, draw: np.random.Generator) -> Complexes:
    """Characters up to rounding, `[K, K]`: the eigenvectors of a random Hermitian class sum."""
    sizes = np.bincount(group.classes)
    num_classes = len(sizes)
    representatives = np.unique(group.classes, return_index=True)[1]
    weights = draw.normal(size=num_classes) + 1j * draw.normal(size=num_classes)
    weights = weights / np.sqrt(sizes)
    weights = weights + weights[group.classes[group.inverses[representatives]]].conj()
    convolution = np.empty((num_classes, num_classes), np.complex128)
    for place, element in enumerate(representatives):
        others = group.classes[group.times(group.inverses, element)]  # the class of x^-1 z
        spread = weights[group.classes]
        real = np.bincount(others, spread.real, num_classes)
        imaginary = np.bincount(others, spread.imag, num_classes)
        convolution[place] = real + 1j * imaginary
    scale = np.sqrt(sizes)
    _, vectors = np.linalg.eigh(convolution * scale[:, None] / scale[None, :])
    at_one = vectors[0]  # the degree over sqrt(N), up to a phase
    vectors = vectors * (np.abs(at_one) / at_one)
    functions: Complexes = (vectors / scale[:, None] * np.sqrt(len(group))).T
    return functions


def _made_exact(group: Group, values: Complexes) -> Complexes | None:
    """The values as sums of roots of unity with whole multiplicities; None where they are not."""
    exact = np.full_like(values, np.nan)
    representatives = np.unique(group.classes, return_index=True)[1]
    for element in representatives[np.argsort(-group.orders[representatives], kind="stable")]:
        if not np.isnan(exact[0, group.classes[element]]):
            continue
        powers = [0]
        while (following := int(group.times(powers[-1], element))) != 0:
            powers.append(following)
        along = group.classes[powers]  # [order]: the classes of 1, g, g^2, ...
        multiplicities = np.fft.fft(values[:, along], axis=1) / len(powers)
        whole = np.round(multiplicities.real)
        if np.abs(multiplicities - whole).max() > TOLERANCE or whole.min() < 0:
            return None
        exact[:, along] = np.fft.ifft(whole, axis=1) * len(powers)
    return exact


def _is_table(group: Group, values: Complexes) -> bool:
    """Whether rows are orthonormal, and the squares of the degrees sum up to the order."""
    sizes = np.bincount(group.classes)
    degrees = np.round(values[:, 0].real).astype(np.int64)
    products = (values * sizes) @ values.conj().T / len(group)
    close = np.abs(products - np.eye(len(sizes))).max() < TOLERANCE
    return bool(close and (degrees**2).sum() == len(group))


def _sorted_table(group: Group, values: Complexes) -> CharacterTable:
    sizes = np.bincount(group.classes)
    degrees = np.round(values[:, 0].real).astype(np.int64)
    is_trivial = np.abs(values - 1).max(axis=1) < TOLERANCE
    order = np.lexsort((np.round(values.real, 6).sum(axis=1), ~is_trivial, degrees))
    values, degrees = values[order], degrees[order]
    squares = group.classes[group.times(np.arange(len(group)), np.arange(len(group)))]
    indicators = np.round(values[:, squares].mean(axis=1).real).astype(np.int64)
    overlaps = (values * sizes) @ values.T / len(group)  # 1 where the other is the conjugate
    return CharacterTable(values, sizes, degrees, indicators, overlaps.real.argmax(axis=1))
