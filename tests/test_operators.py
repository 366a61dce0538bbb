"""Every structure of operators agrees with its own matrices, written out.

V symbols, B batch, H hidden, K rank, N blocks, b block size.
"""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from statetrack.ops import (
    BlockOperators,
    ColumnwiseOperators,
    ComplexDiagonalOperators,
    DenseOperators,
    DiagonalMinusRankOneOperators,
    DiagonalOperators,
    DirectSumOperators,
    FactoredOperators,
    HouseholderOperators,
    OneHotColumnOperators,
    OneHotRowOperators,
    Operators,
    RotationOperators,
)
from statetrack.ops.operators import as_complex, as_real

V, H = 5, 6


def normal(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def complex_normal(*shape: int) -> Tensor:
    return torch.complex(normal(*shape), normal(*shape))


STRUCTURES = {
    "dense": lambda: DenseOperators(normal(V, H, H)),
    "factored": lambda: FactoredOperators(normal(H, 4), normal(V, 4), normal(H, 4)),
    "blocks of 1": lambda: BlockOperators(normal(V, 6, 1, 1)),
    "blocks of 3": lambda: BlockOperators(normal(V, 2, 3, 3)),
    "rotation": lambda: RotationOperators(normal(V, 3)),
    "diagonal": lambda: DiagonalOperators(normal(V, H)),
    "complex diagonal": lambda: ComplexDiagonalOperators(complex_normal(V, 3)),
    "columns": lambda: ColumnwiseOperators(DenseOperators(normal(V, 3, 3)), 2),
    "columns of a diagonal": lambda: ColumnwiseOperators(DiagonalOperators(normal(V, 2)), 3),
    "Householder": lambda: HouseholderOperators(normal(V, 2, 2, 3), normal(V, 2, 2)),
    "gated Householder": lambda: HouseholderOperators(
        normal(V, 1, 3, 2), normal(V, 1, 3), normal(V, 3)
    ),
    "diagonal minus rank one": lambda: DiagonalMinusRankOneOperators(
        normal(V, 2, 3), normal(V, 2, 3), normal(V, 2, 3)
    ),
    "one-hot columns": lambda: OneHotColumnOperators(
        torch.randint(3, (V, 3)), complex_normal(V, 3)
    ),
    "one-hot rows": lambda: OneHotRowOperators(torch.randint(3, (V, 3)), complex_normal(V, 3)),
    "direct sum": lambda: DirectSumOperators(
        (ComplexDiagonalOperators(complex_normal(V, 1)), DenseOperators(normal(V, 4, 4))), (2, 4)
    ),
}


@pytest.fixture(params=STRUCTURES)
def operators(request: pytest.FixtureRequest) -> Operators:
    made: Operators = STRUCTURES[request.param]()
    return made


def test_apply_multiplies_by_the_written_out_matrix(operators: Operators) -> None:
    symbols, states = torch.tensor([4, 0, 0, 3, 1, 2, 4]), normal(7, H)
    by_matrix = torch.stack(
        [operators.dense()[x] @ h for x, h in zip(symbols, states, strict=True)]
    )
    torch.testing.assert_close(operators.apply(symbols, states), by_matrix)


def test_select_takes_operators_in_the_given_order(operators: Operators) -> None:
    symbols = torch.tensor([3, 3, 0, 4])
    torch.testing.assert_close(operators.select(symbols).dense(), operators.dense()[symbols])


@pytest.mark.parametrize("with_inputs", [False, True])
def test_the_recurrence_is_one_product_after_the_other(
    operators: Operators, with_inputs: bool
) -> None:
    symbols, state = torch.randint(V, (3, 9)), normal(3, H)
    inputs = normal(9, 3, H) if with_inputs else None
    states = operators.recur(symbols, state, inputs)
    for time in range(9):
        state = torch.einsum("bij,bj->bi", operators.dense()[symbols[:, time]], state)
        state = state if inputs is None else state + inputs[time]
        torch.testing.assert_close(states[time], state)


def test_a_normalised_recurrence_keeps_directions(operators: Operators) -> None:
    symbols, first = torch.randint(V, (3, 9)), normal(3, H)
    with torch.no_grad():
        plain = operators.recur(symbols, first)
        states = operators.recur(symbols, first, normalise_every=4)
    directions = (part / part.norm(dim=-1, keepdim=True) for part in (states, plain))
    torch.testing.assert_close(*directions)
    # rotations keep lengths without it, and factored operators normalise in rank space
    if not isinstance(operators, RotationOperators | FactoredOperators):
        assert (states[7].abs().amax(-1) < 2).all()


def test_factored_operators_are_a_sum_of_outer_products() -> None:
    made = FactoredOperators(normal(H, 3), normal(V, 3), normal(H, 3))
    for x in range(V):
        terms = [
            made.gains[x, k] * torch.outer(made.left[:, k], made.right[:, k]) for k in range(3)
        ]
        torch.testing.assert_close(made.dense()[x], torch.stack(terms).sum(0))


def test_a_quarter_turn_takes_the_first_axis_to_the_second() -> None:
    turn = RotationOperators(torch.tensor([[math.pi / 2]], dtype=torch.float64))
    turned = turn.apply(torch.tensor([0]), torch.tensor([[1.0, 0.0]], dtype=torch.float64))
    torch.testing.assert_close(turned, torch.tensor([[0.0, 1.0]], dtype=torch.float64))


def test_multiplying_by_i_is_the_quarter_turn() -> None:
    turn = RotationOperators(torch.tensor([[math.pi / 2]], dtype=torch.float64))
    by_i = ComplexDiagonalOperators(torch.tensor([[1j]], dtype=torch.complex128))
    torch.testing.assert_close(by_i.dense(), turn.dense())


def test_complex_states_list_real_and_imaginary_parts_in_turn() -> None:
    states = torch.tensor([[1.0, 2.0, 3.0, 4.0]])
    assert as_complex(states).tolist() == [[1 + 2j, 3 + 4j]]
    assert torch.equal(as_real(as_complex(states)), states)


@pytest.mark.parametrize("name", ["rotation", "diagonal", "complex diagonal", "blocks of 1"])
def test_structures_for_abelian_groups_only_commute(name: str) -> None:
    matrices = STRUCTURES[name]().dense()
    products = matrices.unsqueeze(0) @ matrices.unsqueeze(1)  # [V, V, H, H]
    torch.testing.assert_close(products, products.transpose(0, 1))


@pytest.mark.parametrize("name", ["dense", "factored", "blocks of 3"])
def test_structures_for_more_than_abelian_groups_do_not_commute(name: str) -> None:
    matrices = STRUCTURES[name]().dense()
    assert (matrices[0] @ matrices[1] - matrices[1] @ matrices[0]).abs().max() > 0.1


def test_rotations_keep_every_length() -> None:
    matrices = RotationOperators(100 * normal(V, 3)).dense()
    identity = torch.eye(H, dtype=torch.float64).expand(V, -1, -1)
    torch.testing.assert_close(matrices.mT @ matrices, identity)
