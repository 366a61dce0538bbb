"""Every structure of operators agrees with its own matrices, written out.

V symbols, B batch, H hidden, K rank, N blocks, b block size.
"""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from statetrack.ops.operators import (
    BlockOperators,
    ComplexDiagonalOperators,
    ComposableOperators,
    DenseOperators,
    DiagonalOperators,
    FactoredOperators,
    Operators,
    RotationOperators,
    as_complex,
    as_real,
)

V, H = 5, 6


def normal(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


STRUCTURES = {
    "dense": lambda: DenseOperators(normal(V, H, H)),
    "factored": lambda: FactoredOperators(normal(H, 4), normal(V, 4), normal(H, 4)),
    "blocks of 1": lambda: BlockOperators(normal(V, 6, 1, 1)),
    "blocks of 3": lambda: BlockOperators(normal(V, 2, 3, 3)),
    "rotation": lambda: RotationOperators(normal(V, 3)),
    "diagonal": lambda: DiagonalOperators(normal(V, H)),
    "complex diagonal": lambda: ComplexDiagonalOperators(torch.complex(normal(V, 3), normal(V, 3))),
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


@pytest.mark.parametrize("name", [name for name in STRUCTURES if name != "factored"])
def test_composing_multiplies_the_matrices_later_one_first(name: str) -> None:
    later, earlier = STRUCTURES[name](), STRUCTURES[name]()
    assert isinstance(later, ComposableOperators) and isinstance(earlier, ComposableOperators)
    composed = later.compose(earlier)
    assert type(composed) is type(later)
    torch.testing.assert_close(composed.dense(), later.dense() @ earlier.dense())


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
