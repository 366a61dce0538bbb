"""Are the irreducible parts that are named those that a model was built of?"""

from __future__ import annotations

import itertools

import numpy as np

from statetrack.evidence import SearchBudget, Subject
from statetrack.evidence.learned_operators import find_representation
from tests.evidence import machines, networks
from tests.evidence.checks import Check
from tests.evidence.machines import Table

Floats = networks.Floats


def symmetric_parts(points: int) -> dict[str, list[Floats]]:
    """Real irreducible representations of S3 or S4, a matrix for each element in order."""
    elements = machines.symmetric(points)
    permuting = [np.eye(points)[:, list(element)] for element in elements]
    # vectors whose sum is 0, in an orthonormal basis
    basis = np.linalg.qr(np.column_stack([np.ones(points), np.eye(points)[:, :-1]]))[0][:, 1:]
    standard = [basis.T @ matrix @ basis for matrix in permuting]
    sign = [np.array([[np.linalg.det(matrix)]]) for matrix in permuting]
    parts = {
        "trivial": [np.ones((1, 1)) for _ in elements],
        "sign": sign,
        "standard": standard,
    }
    if points == 4:
        parts["standard, sign"] = [one * two for one, two in zip(standard, sign, strict=True)]
        parts["two"] = _of_three_pairings(elements)
    return parts


def _of_three_pairings(elements: list[tuple[int, ...]]) -> list[Floats]:
    """The action on the three ways to pair four points, less the vector that it leaves as it is."""
    pairings = [
        frozenset({frozenset({0, other}), frozenset({1, 2, 3} - {other})}) for other in (1, 2, 3)
    ]
    basis = np.linalg.qr(np.column_stack([np.ones(3), np.eye(3)[:, :-1]]))[0][:, 1:]
    found = []
    for element in elements:
        matrix = np.zeros((3, 3))
        for column, pairing in enumerate(pairings):
            moved = frozenset(frozenset(element[point] for point in pair) for pair in pairing)
            matrix[pairings.index(moved), column] = 1
        found.append(basis.T @ matrix @ basis)
    return found


def built(
    draws: np.random.Generator, points: int, names: tuple[str, ...]
) -> tuple[networks.Linear, list[int]]:
    """A model whose matrices are these parts in a random basis, and the sizes of the parts."""
    parts = symmetric_parts(points)
    elements = machines.symmetric(points)
    table = machines.group_table(elements, elements)
    sizes = [len(parts[name][0]) for name in names]
    matrices = np.zeros((len(elements), sum(sizes), sum(sizes)))
    for index in range(len(elements)):
        for name, end in zip(names, itertools.accumulate(sizes), strict=True):
            block = parts[name][index]
            here = slice(end - len(block), end)
            matrices[index, here, here] = block
    # (x after s) is the matrix of x times that of s, where permutations multiply as functions
    first = draws.normal(size=sum(sizes))
    points_of = matrices @ first
    exact = networks.Linear("parts", table, matrices, points_of, points_of)
    basis = draws.normal(size=(sum(sizes), sum(sizes)))
    return networks.changed_basis(exact, basis), sizes


COMBINATIONS: tuple[tuple[int, tuple[str, ...]], ...] = (
    (3, ("standard",)),
    (3, ("standard", "sign")),
    (3, ("trivial", "sign", "standard", "standard")),
    (4, ("standard",)),
    (4, ("standard, sign", "two")),
    (4, ("trivial", "sign", "two", "standard", "standard, sign")),
    (4, ("standard", "standard", "two")),
)


def representations(seconds: float) -> list[Check]:
    """Models of known parts, conjugated by random invertible matrices."""
    check = Check("irreducible parts are those that a model was built of")
    for number, (points, names) in enumerate(COMBINATIONS):
        draws = np.random.default_rng([13, number])
        exact, sizes = built(draws, points, names)
        subject = Subject(exact.model(), exact.table.automaton())
        found = find_representation(subject, budget=SearchBudget(seconds), seed=0)
        dimensions = sorted(
            part.dimension
            for part in found.groups[0].irreducibles
            for _ in range(round(part.multiplicity))
        )
        check.case(
            dimensions == sorted(sizes),
            f"S{points} by {', '.join(names)}: {dimensions}, built of {sorted(sizes)}",
        )
        check.note("greatest residue", found.groups[0].residue)
        assert found.homomorphism is not None
        check.note("greatest defect", found.homomorphism.largest)
    return [check]


def is_action(exact: networks.Linear) -> bool:
    """Whether every matrix takes every point to that of the next state."""
    table: Table = exact.table
    return all(
        np.allclose(exact.matrices[symbol] @ exact.points[state], exact.points[target])
        for state, row in enumerate(table.delta)
        for symbol, target in enumerate(row)
    )
