"""Irreducible representations: of a finite group by characters, of a machine's states as matrices.

*Characters.* The class sums act on the class functions by convolution, and the characters are the
common eigenvectors (Burnside 1911; Dixon 1967 computed them so). One random Hermitian combination
of class sums has them as its only eigenvectors, all with different eigenvalues. The floating-point
values are then made exact: restricted to a cyclic subgroup, a character is a sum of roots of unity
with whole multiplicities, which are rounded, checked and summed again.

*Parts.* Where every symbol permutes S states, it is an orthogonal matrix on R^S. A random symmetric
matrix that commutes with all of these has the irreducible parts of R^S as its eigenspaces. The
matrices that commute are those that are constant on the orbits of pairs of states.

Letters: N elements, K conjugacy classes (and so K characters) or generators, V symbols, S states,
d the dimension of a part.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from statetrack.algebra.groups import Group
from statetrack.sources import Booleans, Floats, Integers, orbits

Complexes = npt.NDArray[np.complex128]
RealType = Literal["real", "complex", "quaternionic"]

WHOLE = 1e-6
"""How far from a whole number a multiplicity may come out; the next one is 1 away."""
MOST_CLASSES = 400
"""Most conjugacy classes of a group whose characters are worked out."""
MOST_STATES = 1024
"""The largest space that is decomposed: its matrices have S^2 entries, and it takes S^3 steps."""
SAME_EIGENVALUE = 1e-10
"""Eigenvalues this close, as a part of the largest, belong to one part."""
ORTHOGONAL = 1e-9
"""How far products of basis vectors may be from 0 and 1."""
SAME_POINT = 1e-6
"""Points this close are one."""
MOST_DIMENSIONS = 16
"""The largest part for which what commutes with it is worked out: by d^4 numbers."""
COMMUTES = 1e-8
"""Singular values below this, of the equations of commuting, are rounding."""
ATTEMPTS = 5


# --- characters ---


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
        if values is None:
            continue
        sizes = np.bincount(group.classes)
        degrees = np.round(values[:, 0].real).astype(np.int64)
        products = (values * sizes) @ values.conj().T / len(group)
        orthonormal = np.abs(products - np.eye(len(sizes))).max() < WHOLE
        if not orthonormal or (degrees**2).sum() != len(group):
            continue
        is_trivial = np.abs(values - 1).max(axis=1) < WHOLE
        order = np.lexsort((np.round(values.real, 6).sum(axis=1), ~is_trivial, degrees))
        values, degrees = values[order], degrees[order]
        squares = group.classes[group.times(np.arange(len(group)), np.arange(len(group)))]
        indicators = np.round(values[:, squares].mean(axis=1).real).astype(np.int64)
        overlaps = (values * sizes) @ values.T / len(group)  # 1 where the other is the conjugate
        return CharacterTable(values, sizes, degrees, indicators, overlaps.real.argmax(axis=1))
    raise ArithmeticError(f"no exact characters of a group of order {len(group)} were found")


def real_irreducibles(
    group: Group, table: CharacterTable | None = None
) -> tuple[RealIrreducible, ...]:
    """The irreducible representations over the real numbers, smallest first.

    Raises `ArithmeticError` as `character_table` does.
    """
    table = table or character_table(group)
    types: dict[int, RealType] = {1: "real", 0: "complex", -1: "quaternionic"}
    found = []
    for place, degree in enumerate(table.degrees.tolist()):
        if table.conjugates[place] < place:
            continue
        kind = types[int(table.indicators[place])]
        kernel = np.flatnonzero(np.abs(table.values[place] - degree) < WHOLE)
        dimension = degree if kind == "real" else 2 * degree
        found.append(RealIrreducible(dimension, kind, tuple(kernel.tolist())))
    return tuple(sorted(found, key=lambda irreducible: irreducible.dimension))


@dataclass(frozen=True)
class Irreducibles:
    """The dimensions of a group's irreducible representations, smallest first."""

    complex: tuple[int, ...]
    real: tuple[int, ...]
    real_faithful: tuple[int, ...]


def irreducibles_of(group: Group) -> Irreducibles | None:
    """The dimensions of the irreducible representations; None where there are too many."""
    if group.is_abelian:
        real = int((group.orders <= 2).sum())
        pairs = (len(group) - real) // 2
        # only cyclic groups have faithful ones: by the elements that generate them
        generating = int((group.orders == len(group)).sum())
        faithful = (1,) * generating if len(group) <= 2 else (2,) * (generating // 2)
        return Irreducibles((1,) * len(group), (1,) * real + (2,) * pairs, faithful)
    if int(group.classes.max()) >= MOST_CLASSES:
        return None
    table = character_table(group)
    real_ones = real_irreducibles(group, table)
    return Irreducibles(
        tuple(table.degrees.tolist()),
        tuple(each.dimension for each in real_ones),
        tuple(each.dimension for each in real_ones if each.is_faithful),
    )


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
        along = group.classes[group.powers(element)]  # [order]: the classes of 1, g, g^2, ...
        multiplicities = np.fft.fft(values[:, along], axis=1) / len(along)
        whole = np.round(multiplicities.real)
        if np.abs(multiplicities - whole).max() > WHOLE or whole.min() < 0:
            return None
        exact[:, along] = np.fft.ifft(whole, axis=1) * len(along)
    return exact


# --- the states' space ---


@dataclass(frozen=True, eq=False)
class IrreduciblePart:
    """An irreducible part of R^S: an orthonormal basis of it, and a point in it for every state."""

    points: Floats  # [S, d]: the columns are the basis, the rows the states' projections onto it

    @property
    def dimension(self) -> int:
        """The dimension d."""
        return int(self.points.shape[1])

    def matrices(self, actions: Integers) -> Floats:
        """The orthogonal matrices `[V, d, d]` of maps of the states `[V, S]`.

        A(x) points[s] = points[x[s]], so reading x and then y is A(y) A(x).
        """
        moved = self.points[actions[:, self._basis]]  # [V, d, d]: where points of a basis are taken
        matrices: Floats = np.swapaxes(np.linalg.inv(self.points[self._basis]) @ moved, 1, 2)
        return matrices

    @cached_property
    def _basis(self) -> Integers:
        """States whose points are a basis: `[d]`, each as far as it can be from those before."""
        left, chosen = self.points.copy(), []
        for _ in range(self.dimension):
            chosen.append(int((left**2).sum(axis=1).argmax()))
            along = left[chosen[-1]] / np.linalg.norm(left[chosen[-1]])
            left -= np.outer(left @ along, along)
        return np.array(chosen)

    def looks_like(self, state: int) -> Booleans:
        """The states that have the same point as a given one, `[S]`."""
        distance = np.linalg.norm(self.points - self.points[state], axis=1)
        same: Booleans = distance < SAME_POINT
        return same


def irreducible_parts(permutations: Integers) -> tuple[IrreduciblePart, ...]:
    """R^S as an orthogonal sum of irreducible parts, smallest first.

    `permutations [K, S]` generate the group. A representation that occurs several times gives as
    many parts.

    Raises `ArithmeticError` where the eigenvalues are not clearly separated.
    """
    num_states = permutations.shape[1]
    orbit = orbits_of_pairs(permutations)
    for seed in range(ATTEMPTS):
        # the eigenspaces of a random symmetric matrix that commutes with all permutations
        entries = commuting_matrix(orbit, np.random.default_rng(seed))
        values, vectors = np.linalg.eigh(entries + entries.T)
        starts = np.flatnonzero(np.diff(values) > SAME_EIGENVALUE * np.abs(values).max()) + 1
        bases = np.split(vectors, starts, axis=1)
        if all(_is_invariant(basis, permutations) for basis in bases):
            return tuple(map(IrreduciblePart, sorted(bases, key=lambda basis: basis.shape[1])))
    raise ArithmeticError(f"a space of {num_states} dimensions could not be decomposed")


def orbits_of_pairs(permutations: Integers) -> Integers:
    """A number for the orbit of every pair of states, `[S, S]`, under permutations `[K, S]`."""
    num_states = permutations.shape[1]
    assert num_states <= MOST_STATES, num_states
    pairs = np.arange(num_states**2).reshape(num_states, num_states)
    maps = [pairs[each][:, each].ravel() for each in permutations]
    return orbits(maps, num_states**2).reshape(num_states, num_states)


def commuting_matrix(orbits_of_pairs: Integers, draw: np.random.Generator) -> Floats:
    """A random matrix `[S, S]` that commutes with all permutations: it is constant on orbits."""
    matrix: Floats = draw.normal(size=orbits_of_pairs.size)[orbits_of_pairs]
    return matrix


def _is_invariant(basis: Floats, permutations: Integers) -> bool:
    """Whether a subspace is invariant: it is not where part of an eigenspace was cut off."""
    for permutation in permutations:
        matrix = basis[permutation].T @ basis
        if np.abs(matrix.T @ matrix - np.eye(basis.shape[1])).max() > ORTHOGONAL:
            return False
    return True


def commuting_dimension(matrices: Floats) -> int:
    """The dimension, 1, 2 or 4, of what commutes with irreducible matrices `[V, d, d]`.

    1 where the part is too large to work it out.
    """
    size = matrices.shape[1]
    return 1 if size % 2 or size > MOST_DIMENSIONS else len(commuting_matrices(matrices))


def commuting_matrices(matrices: Floats) -> Floats:
    """An orthonormal basis of the matrices that commute with some, `[dimension, d, d]`."""
    size = matrices.shape[1]
    unit = np.eye(size)
    draw = np.random.default_rng(0)
    if len(matrices) > 4:
        matrices = np.tensordot(draw.normal(size=(4, len(matrices))), matrices, 1)
    equations = np.vstack([np.kron(unit, each.T) - np.kron(each, unit) for each in matrices])
    _, sizes, rows = np.linalg.svd(equations, full_matrices=False)
    found: Floats = rows[sizes < COMMUTES * max(float(sizes.max()), 1.0)]
    return found.reshape(-1, size, size)


def num_terms(dimension: int, commuting: int) -> int:
    """The number of terms a b^T whose span contains all operators of an irreducible part.

    By Schur's lemma the matrices that commute with a real irreducible part of dimension d form the
    real numbers, the complex numbers or the quaternions, of dimension 1, 2 or 4. The operators are
    then the matrices over these of d, d/2 or d/4 rows, and a number in such a matrix is a block:

    - a real one is a term: d^2 terms;
    - a complex one is [[x, -y], [y, x]] = (x - y) e_1 e_1^T + (x + y) e_2 e_2^T
      + y (e_1 + e_2)(e_1 - e_2)^T (Gauss): 3 (d/2)^2 = 3/4 d^2 terms;
    - a quaternion w + x i + y j + z k, in the basis (v, iv, jv, kv) of what commutes with it, is a
      matrix that, with the last three columns negated, is the table q[r xor c] of (-w, x, y, z), a
      sum of four terms of Hadamard's matrix, but for 2w, -2z, -2x and -2y at (0, 0), (1, 2), (2, 3)
      and (3, 1): 8 (d/4)^2 = 1/2 d^2 terms.
    """
    return {1: dimension**2, 2: 3 * dimension**2 // 4, 4: dimension**2 // 2}[commuting]
