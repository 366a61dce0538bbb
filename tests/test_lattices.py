"""Lattices of functions on states, and small rational spaces of them, against SymPy."""

from __future__ import annotations

import numpy as np
import pytest
from sympy import Matrix, Poly, cyclotomic_poly, symbols
from sympy.matrices.normalforms import smith_normal_form
from sympy.polys.domains import ZZ

from statetrack.algebra import needed_machine, rational_spaces
from statetrack.algebra.lattices import (
    PRIME,
    action_on,
    as_integers,
    echelon,
    extended,
    null_space,
    outside,
    product,
    reduced,
    saturated,
)
from statetrack.sources import Integers
from statetrack.spec import load_task


def drawn(seed: int, size: int = 4, width: int = 9) -> Integers:
    return np.random.default_rng(seed).integers(-6, 7, size=(size, width))


def lattice_index(rows: Integers) -> int:
    """The index of a lattice in all integer vectors of its span: 1 where it is saturated."""
    form = smith_normal_form(Matrix(rows.tolist()), domain=ZZ)
    return int(abs(np.prod([int(form[place, place]) for place in range(len(rows))])))


@pytest.mark.parametrize("seed", range(6))
def test_a_reduced_basis_is_one_of_the_same_lattice_and_as_short_as_that_of_sympy(
    seed: int,
) -> None:
    rows = drawn(seed)
    found = reduced(rows)
    change = Matrix(found.tolist()) * Matrix(rows.tolist()).pinv()
    assert all(entry.is_integer for entry in change) and abs(change.det()) == 1
    known = Matrix(rows.tolist()).lll()
    longest = max(sum(value**2 for value in known.row(place)) for place in range(len(rows)))
    assert (found**2).sum(1).max() <= 1.5 * float(longest)


@pytest.mark.parametrize("seed", range(6))
def test_a_saturated_lattice_has_every_integer_vector_of_its_span(seed: int) -> None:
    mixed = np.array([[2, 0, 1, 1], [0, 3, 0, 1], [4, 1, 5, 0], [0, 0, 1, 7]])
    rows = mixed @ drawn(seed)
    assert lattice_index(rows) > 1
    found = saturated(rows)
    assert lattice_index(found) == 1
    assert np.linalg.matrix_rank(np.vstack([rows, found])) == len(rows)


def test_large_numbers_are_refused() -> None:
    rows = np.array([[2**22, 1, 0], [2**22 + 1, 0, 1]]) * np.array([[1], [2**20]])
    with pytest.raises(ArithmeticError, match="large numbers"):
        reduced(rows)


def test_equations_are_solved_modulo_the_prime() -> None:
    rows = np.vstack([drawn(1, 3, 7), drawn(1, 3, 7) * 2])
    kernel = null_space(rows)
    assert kernel.shape == (4, 7)
    assert not product(rows % PRIME, kernel.T).any()
    integers = as_integers(kernel[0])
    assert integers is None or not (rows @ integers).any()
    assert as_integers(np.array([1, pow(6, -1, PRIME), PRIME - 1])).tolist() == [6, 1, -6]
    assert as_integers(np.array([123456789])) is None


def test_an_echelon_form_is_extended_row_by_row() -> None:
    rows = drawn(2, 5, 8)
    space = echelon(rows[:1])
    for row in rows[1:]:
        space = extended(space, row)
    basis, pivots = echelon(rows)
    order = np.argsort(space[1])
    assert np.array_equal(space[1][order], pivots)
    assert np.array_equal(space[0][order], basis)
    assert not outside(rows, space).any()


@pytest.mark.parametrize("order", [1, 2, 3, 6, 12, 25, 30])
def test_cyclotomic_polynomials_are_those_of_sympy(order: int) -> None:
    x = symbols("x")
    wanted = Poly(cyclotomic_poly(order, x), x).all_coeffs()[::-1]
    assert list(rational_spaces.cyclotomic(order)) == wanted


def test_functions_that_symbols_do_not_keep_have_no_action() -> None:
    with pytest.raises(ArithmeticError):
        action_on(np.array([[1, 0, 0]]), np.array([[1, 2, 0]]))


SIZES = {
    "parity": (1, 1),
    "modular-addition:m=4": (2, 2),
    "modular-addition:m=5": (4, 4),
    "modular-addition:m=6": (2, 2),
    "s3": (2, 2),
    "dihedral": (2, 2),
    "quaternion": (4, 4),
    "random-fsm": (5, 5),
    "adder": (3, 3),
    "turnstile": (2, 2),
    "product(cyclic:n=2,cyclic:n=3)": (2, 2),
}


@pytest.mark.parametrize("task", SIZES)
def test_smallest_rational_spaces_have_integer_actions_that_tell_labels_apart(task: str) -> None:
    automaton = load_task(task).source.automaton
    assert automaton is not None
    machine = needed_machine(automaton)
    whole = rational_spaces.narrowest_rational(machine)
    blocks = rational_spaces.smallest_rational_blocks(machine)
    assert whole is not None and blocks is not None
    assert (whole.cost, blocks.cost) == SIZES[task]
    for choice in (whole, blocks):
        for part in choice.parts:
            action = action_on(np.rint(part.points).astype(np.int64).T, choice.actions)
            assert abs(action.matrices).max() <= 8
            assert np.array_equal(action.points, part.points)
        logits = choice.points @ choice.readout.rows.T
        live = np.flatnonzero(machine.live & machine.automaton.scored)[: len(logits)]
        if len(logits) == len(machine.live):
            assert np.array_equal(logits[live].argmax(1), machine.automaton.output[live])
