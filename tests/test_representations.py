"""Irreducible representations: against known character tables, formulas, and each other."""

from __future__ import annotations

import itertools
import math
import time
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

from statetrack.algebra import (
    Group,
    MonoidBudget,
    character_table,
    needed_machine,
    transition_monoid,
)
from statetrack.algebra.representations import irreducible_parts, real_irreducibles
from statetrack.sources import Automaton
from statetrack.spec import load_task
from tests.claims.cells import algebra_of


def group_of(task: str) -> Group:
    return Group(generated(needed_machine(load_task(task).automaton).actions))


def generated(maps: np.ndarray) -> np.ndarray:
    monoid = transition_monoid(np.asarray(maps), MonoidBudget())
    assert monoid is not None
    return monoid.elements.astype(np.int64)


def partitions(total: int, largest: int | None = None) -> Iterator[tuple[int, ...]]:
    """The ways to write a number as a sum, largest part first."""
    if total == 0:
        yield ()
    for part in range(min(total, largest or total), 0, -1):
        for rest in partitions(total - part, part):
            yield (part, *rest)


def murnaghan_nakayama(shape: tuple[int, ...], cycles: tuple[int, ...]) -> int:
    """The character of S_n of a partition, on permutations with cycles of given lengths."""
    if not cycles:
        return 1
    hook, value = cycles[0], 0
    beads = [part + len(shape) - 1 - row for row, part in enumerate(shape)]
    for row, bead in enumerate(beads):
        moved = bead - hook
        if moved < 0 or moved in beads:
            continue
        jumped = sum(moved < other < bead for other in beads)
        fewer = sorted([*beads[:row], *beads[row + 1 :], moved], reverse=True)
        rest = tuple(each - (len(fewer) - 1 - place) for place, each in enumerate(fewer))
        value += (-1) ** jumped * murnaghan_nakayama(rest, cycles[1:])
    return value


def cycle_type(permutation: np.ndarray) -> tuple[int, ...]:
    left, lengths = set(range(len(permutation))), []
    while left:
        point, length = min(left), 0
        while point in left:
            left.remove(point)
            point = int(permutation[point])
            length += 1
        lengths.append(length)
    return tuple(sorted(lengths, reverse=True))


@pytest.mark.parametrize("num_points", [3, 4, 5, 6])
def test_characters_of_the_symmetric_group_are_those_of_murnaghan_and_nakayama(
    num_points: int,
) -> None:
    group = Group(np.array(list(itertools.permutations(range(num_points)))))
    table = character_table(group)
    _, members = np.unique(group.classes, return_index=True)
    types = [cycle_type(group.permutations[member]) for member in members]
    expected = sorted(
        tuple(murnaghan_nakayama(shape, cycles) for cycles in types)
        for shape in partitions(num_points)
    )
    assert sorted(map(tuple, np.round(table.values.real).astype(int).tolist())) == expected
    np.testing.assert_allclose(table.values, np.round(table.values.real), atol=1e-12)
    assert (table.indicators == 1).all()


GOLDEN = (1 + math.sqrt(5)) / 2
DEGREES = {
    "a4": [1, 1, 1, 3],
    "a5": [1, 3, 3, 4, 5],
    "alternating:n=6": [1, 5, 5, 8, 8, 9, 10],
    "quaternion": [1, 1, 1, 1, 2],
    "a4xz5": [1] * 15 + [3] * 5,
}
REAL = {
    "a4": [(1, "real"), (2, "complex"), (3, "real")],
    "a5": [(1, "real"), (3, "real"), (3, "real"), (4, "real"), (5, "real")],
    "alternating:n=6": [(d, "real") for d in (1, 5, 5, 8, 8, 9, 10)],
    "quaternion": [(1, "real")] * 4 + [(4, "quaternionic")],
    "a4xz5": [(1, "real")] + [(2, "complex")] * 7 + [(3, "real")] + [(6, "complex")] * 2,
}


@pytest.mark.parametrize("task", DEGREES)
def test_degrees_and_real_types_of_known_groups(task: str) -> None:
    group = group_of(task)
    assert character_table(group).degrees.tolist() == DEGREES[task]
    found = [(each.dimension, each.type) for each in real_irreducibles(group)]
    assert sorted(found) == sorted(REAL[task])


def test_the_icosahedron_has_two_characters_with_the_golden_ratio_on_fifth_turns() -> None:
    group = group_of("a5")
    table = character_table(group)
    fifths = np.unique(group.classes[group.orders == 5])
    values = table.values[1:3][:, fifths]
    assert len(fifths) == 2
    np.testing.assert_allclose(np.sort(values.real), [[1 - GOLDEN, GOLDEN]] * 2, atol=1e-12)
    assert abs(values[0, 0] - values[1, 0]) > 1


@pytest.mark.parametrize("n", [3, 4, 5, 8, 12, 15])
def test_a_polygon_has_planes_and_two_or_four_signs(n: int) -> None:
    signs = 4 if n % 2 == 0 else 2
    planes = (2 * n - signs) // 4
    irreducibles = real_irreducibles(group_of(f"dihedral:n={n}"))
    dimensions = [each.dimension for each in irreducibles]
    assert dimensions == [1] * signs + [2] * planes
    assert all(each.type == "real" for each in irreducibles)
    coprime = sum(math.gcd(turn, n) == 1 for turn in range(1, n)) // 2
    assert sum(each.is_faithful for each in irreducibles) == coprime


@pytest.mark.parametrize("n", [2, 5, 12, 30])
def test_characters_of_a_cyclic_group_are_powers_of_roots_of_unity(n: int) -> None:
    group = Group((np.arange(n)[:, None] + np.arange(n)[None, :]) % n)
    values = character_table(group).values[:, np.argsort(group.classes)]
    turns = np.exp(2j * np.pi / n * np.outer(np.arange(n), np.arange(n)))
    distance = np.abs(values[:, None] - turns[None]).max(axis=2)
    np.testing.assert_allclose(distance.min(axis=1), 0, atol=1e-12)
    assert sorted(distance.argmin(axis=1).tolist()) == list(range(n))


MANY = [
    *DEGREES,
    *("s3", "s4", "s5", "z60", "dihedral:n=6", "dihedral:n=7", "product(s3,s3)"),
    *("product(quaternion,cyclic:n=3)", "product(a5,cyclic:n=2)", "product(quaternion,s3)"),
]


@pytest.mark.parametrize("task", MANY)
def test_squares_of_degrees_sum_up_to_the_order_and_signed_degrees_to_the_involutions(
    task: str,
) -> None:
    """Frobenius and Schur: there are as many g with g^2 = 1 as indicators times degrees."""
    group = group_of(task)
    table = character_table(group)
    assert int((table.degrees**2).sum()) == len(group)
    assert int((table.degrees * table.indicators).sum()) == int((group.orders <= 2).sum())
    columns = table.values.conj().T @ table.values
    np.testing.assert_allclose(columns, np.diag(len(group) / table.class_sizes), atol=1e-9)
    conjugated = table.values[table.conjugates]
    np.testing.assert_allclose(conjugated, table.values.conj(), atol=1e-9)


@pytest.mark.parametrize("task", MANY)
def test_the_regular_representation_holds_each_part_as_often_as_it_must(task: str) -> None:
    """Real and complex types come as often as the degree says, quaternionic ones half as often."""
    automaton = needed_machine(load_task(task).automaton)
    parts = irreducible_parts(automaton.actions)
    expected: Counter[int] = Counter()
    for each in real_irreducibles(group_of(task)):
        copies = {"real": 1, "complex": 2, "quaternionic": 4}[each.type]
        expected[each.dimension] += each.dimension // copies
    assert Counter(part.dimension for part in parts) == expected


@pytest.mark.parametrize("task", ["s3", "s4", "a5", "quaternion", "a4xz5", "random-permutations"])
def test_parts_are_orthogonal_representations_that_move_their_points(task: str) -> None:
    delta = needed_machine(load_task(task).automaton).delta
    parts = irreducible_parts(delta.T)
    together = np.column_stack([part.points for part in parts])
    np.testing.assert_allclose(together.T @ together, np.eye(len(delta)), atol=1e-10)
    for part in parts:
        matrices = part.matrices(delta.T)
        identity = np.broadcast_to(np.eye(part.dimension), matrices.shape)
        np.testing.assert_allclose(matrices @ matrices.transpose(0, 2, 1), identity, atol=1e-10)
        moved = np.einsum("vij,sj->svi", matrices, part.points)
        np.testing.assert_allclose(moved, part.points[delta], atol=1e-10)


def test_points_of_a_part_tell_states_apart_up_to_its_kernel() -> None:
    """Of 24 permutations, the plane of S4 tells 6 kinds, its signs 2, and its cubes all."""
    machine = needed_machine(load_task("s4").automaton)
    like = {
        (part.dimension, int(part.looks_like(0).sum()))
        for part in irreducible_parts(machine.actions)
    }
    assert like == {(1, 24), (1, 12), (2, 4), (3, 1)}


LARGE = {
    "affine maps modulo 37": (1332, [1] * 36 + [36]),
    "turned 500-gon": (1000, [1] * 4 + [2] * 249),
    "signed permutations of 5": (3840, None),
}


def large_group(name: str) -> Group:
    if name == "affine maps modulo 37":
        points = np.arange(37)
        return Group(generated(np.array([(points + 1) % 37, points * 2 % 37])))
    if name == "turned 500-gon":
        points = np.arange(500)
        return Group(generated(np.array([(points + 1) % 500, -points % 500])))
    signed = [[1, 0, *range(2, 10)], [2, 3, 4, 5, 6, 7, 8, 9, 0, 1], [2, 3, 0, 1, *range(4, 10)]]
    return Group(generated(np.array(signed)))


@pytest.mark.parametrize("name", LARGE)
def test_groups_of_more_than_a_thousand_elements_take_seconds(name: str) -> None:
    order, degrees = LARGE[name]
    begun = time.process_time()
    group = large_group(name)
    table = character_table(group)
    assert time.process_time() - begun < 10
    assert len(group) == order == int((table.degrees**2).sum())
    assert degrees is None or table.degrees.tolist() == degrees
    assert int((table.degrees * table.indicators).sum()) == int((group.orders <= 2).sum())


@pytest.mark.parametrize("moduli", [(2,), (6,), (2, 2), (2, 4), (3, 3), (60,)])
def test_dimensions_of_abelian_groups_are_those_of_their_characters(
    moduli: tuple[int, ...],
) -> None:
    factors = ",".join(f"cyclic:n={modulus}" for modulus in moduli)
    task = f"product({factors})" if len(moduli) > 1 else factors
    found = algebra_of(task).irreducibles
    expected = real_irreducibles(group_of(task))
    assert found is not None
    assert found.real == tuple(each.dimension for each in expected)
    assert found.real_faithful == tuple(each.dimension for each in expected if each.is_faithful)
    assert len(found.complex) == math.prod(moduli)


def test_points_of_a_machine_that_is_not_regular_are_the_parts_of_its_permutations() -> None:
    """S5 on 5 points: the constant and the simplex."""
    machine = Automaton(np.transpose([[1, 0, 2, 3, 4], [1, 2, 3, 4, 0]]))
    parts = irreducible_parts(machine.delta.T)
    assert [part.dimension for part in parts] == [1, 4]
