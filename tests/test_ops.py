"""The recurrences agree with their two-line references, alone and as a population.

T time, B batch, V symbols, H hidden, N blocks, b block size, K rank, R replicas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.func import vmap

from statetrack import ops
from statetrack.ops import _all_symbols, _grouped, diagonal, matrices, symbol_tables
from tests import reference

Recurrence = Callable[..., Tensor]


@dataclass(frozen=True)
class Sizes:
    """The sizes of one case; `unused` symbols at the end of the alphabet are never read."""

    steps: int = 7
    batch: int = 5
    symbols: int = 4
    hidden: int = 6
    block: int = 3
    unused: int = 1


OPERATIONS = (
    "lookup",
    "contract",
    "dense_recurrence",
    "block_recurrence",
    "diagonal_recurrence",
    "factored_recurrence",
    "rotation_recurrence",
)
WITH_INPUTS = tuple(name for name in OPERATIONS[2:] if name != "rotation_recurrence")


def arguments(
    name: str,
    sizes: Sizes,
    *,
    with_inputs: bool = False,
    dtype: torch.dtype = torch.float64,
    seed: int = 0,
) -> list[Tensor]:
    """Arguments of an operation, in its order; the states neither grow nor vanish fast."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=dtype)

    steps, batch, hidden, size = sizes.steps, sizes.batch, sizes.hidden, sizes.block
    highest = max(1, sizes.symbols - sizes.unused)
    symbols = torch.randint(highest, (batch, steps), generator=generator)
    given_inputs = with_inputs and name in WITH_INPUTS
    if name == "lookup":
        return [normal(sizes.symbols, 3, hidden), symbols]
    if name == "contract":
        return [normal(3, hidden, 2), normal(sizes.symbols, 2)]
    if name == "dense_recurrence":
        operators = normal(sizes.symbols, hidden, hidden) / hidden**0.5
        inputs = [normal(steps, batch, hidden)] if given_inputs else []
        return [operators, symbols, normal(batch, hidden), *inputs]
    if name == "block_recurrence":
        operators = normal(sizes.symbols, hidden, size, size) / size**0.5
        inputs = [normal(steps, batch, hidden, size)] if given_inputs else []
        return [operators, symbols, normal(batch, hidden, size), *inputs]
    if name == "rotation_recurrence":
        return [normal(steps, batch, hidden), normal(batch, hidden, 2)]
    core = [normal(hidden, hidden) / hidden**0.5] if name == "factored_recurrence" else []
    inputs = [normal(steps, batch, hidden)] if given_inputs else []
    return [*core, normal(steps, batch, hidden), normal(batch, hidden), *inputs]


def contract_reference(weight: Tensor, embedding: Tensor) -> Tensor:
    return torch.einsum("ijd,vd->vij", weight, embedding)


def oracle(name: str) -> Recurrence:
    return contract_reference if name == "contract" else getattr(reference, name)


def with_gradients(values: list[Tensor]) -> list[Tensor]:
    """Copies that gradients flow to, where they can."""
    return [
        value.clone().requires_grad_() if value.is_floating_point() or value.is_complex() else value
        for value in values
    ]


def value_and_gradients(function: Recurrence, values: list[Tensor]) -> list[Tensor]:
    """The result, and the gradient of one fixed linear function of it by every argument."""
    leaves = with_gradients(values)
    result = function(*leaves)
    weights = torch.randn(
        result.shape, dtype=result.dtype, generator=torch.Generator().manual_seed(1)
    )
    total = (result * weights).sum()
    differentiable = [leaf for leaf in leaves if leaf.requires_grad]
    total = total.real if total.is_complex() else total
    return [result.detach(), *torch.autograd.grad(total, differentiable)]


def assert_same(left: list[Tensor], right: list[Tensor]) -> None:
    assert len(left) == len(right)
    for one, other in zip(left, right, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


@pytest.fixture(params=["padded", "packed", "all symbols"])
def dense_kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every way in which the dense recurrence can be computed, forced in turn."""
    if request.param == "all symbols":
        monkeypatch.setattr(matrices, "_kernel", lambda operators: _all_symbols)
        monkeypatch.setattr(_all_symbols, "_SLAB_NUMBERS", 1)
    else:
        choice = request.param == "padded"
        monkeypatch.setattr(_grouped, "padding_pays", lambda *sizes: choice)
    return str(request.param)


@pytest.fixture(params=["by coordinate", "by matrix products"])
def block_kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways in which the block recurrence can be computed, forced in turn."""
    limit = 100 if request.param == "by coordinate" else 0
    monkeypatch.setattr(matrices, "LARGEST_BY_COORDINATE", limit)
    return str(request.param)


@pytest.fixture(params=["in chunks", "in sequence"])
def diagonal_kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways in which the diagonal recurrence can be computed, forced in turn."""
    monkeypatch.setattr(diagonal, "chunks_pay", lambda gains: request.param == "in chunks")
    return str(request.param)


some_sizes = st.builds(
    Sizes,
    steps=st.integers(1, 9),
    batch=st.integers(1, 7),
    symbols=st.integers(1, 6),
    hidden=st.integers(1, 9),
    block=st.integers(1, 3),
    unused=st.integers(0, 3),
)


@pytest.mark.parametrize("name", OPERATIONS)
@settings(max_examples=20, deadline=None, derandomize=True)
@given(sizes=some_sizes, with_inputs=st.booleans(), seed=st.integers(0, 99))
def test_values_and_gradients_are_those_of_the_reference(
    name: str, sizes: Sizes, with_inputs: bool, seed: int
) -> None:
    values = arguments(name, sizes, with_inputs=with_inputs, seed=seed)
    assert_same(
        value_and_gradients(getattr(ops, name), values),
        value_and_gradients(oracle(name), values),
    )


@pytest.mark.parametrize("with_inputs", [False, True])
@pytest.mark.parametrize("sizes", [Sizes(), Sizes(steps=1), Sizes(batch=1, symbols=1, unused=0)])
def test_every_dense_kernel_is_the_reference(
    dense_kernel: str, sizes: Sizes, with_inputs: bool
) -> None:
    values = arguments("dense_recurrence", sizes, with_inputs=with_inputs)
    assert_same(
        value_and_gradients(ops.dense_recurrence, values),
        value_and_gradients(reference.dense_recurrence, values),
    )


@pytest.mark.parametrize("with_inputs", [False, True])
def test_every_block_kernel_is_the_reference(
    block_kernel: str, dense_kernel: str, with_inputs: bool
) -> None:
    values = arguments("block_recurrence", Sizes(), with_inputs=with_inputs)
    assert_same(
        value_and_gradients(ops.block_recurrence, values),
        value_and_gradients(reference.block_recurrence, values),
    )


@pytest.mark.parametrize("steps", [1, 2, 16, 61])
@pytest.mark.parametrize("with_inputs", [False, True])
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_every_diagonal_kernel_is_the_reference(
    diagonal_kernel: str, steps: int, with_inputs: bool, dtype: torch.dtype
) -> None:
    values = arguments(
        "diagonal_recurrence", Sizes(steps=steps), with_inputs=with_inputs, dtype=dtype
    )
    assert_same(
        value_and_gradients(ops.diagonal_recurrence, values),
        value_and_gradients(reference.diagonal_recurrence, values),
    )


@pytest.mark.parametrize("steps", [1, 7, 100])
@pytest.mark.parametrize("replicas", [0, 3])
def test_a_clamped_state_and_its_gradients_are_the_reference(steps: int, replicas: int) -> None:
    generator = torch.Generator().manual_seed(steps)
    lanes = (replicas,) if replicas else ()
    lower, width = torch.randn(2, *lanes, 4, steps, 5, generator=generator, dtype=torch.float64)
    first = torch.randn(*lanes, 4, 5, generator=generator, dtype=torch.float64)
    values = [lower, lower + 2 * width, first]  # bounds cross in half of the places
    both = [lambda *given: ops.clamped_recurrence(*given)[0], reference.clamped_recurrence]
    mapped = [torch.func.vmap(each) if replicas else each for each in both]
    assert_same(*(value_and_gradients(each, values) for each in mapped))
    last = ops.clamped_recurrence(*(each[0] for each in values) if replicas else values)[1]
    assert torch.equal(last, both[1](*(each[0] for each in values) if replicas else values)[:, -1])


def test_the_gradient_of_a_state_equal_to_a_bound_is_that_by_the_state_before() -> None:
    bounds = torch.tensor([[[1.0], [1.0]]], requires_grad=True)
    states, _ = ops.clamped_recurrence(bounds - 5, bounds, torch.full((1, 1), 3.0))
    (by_bounds,) = torch.autograd.grad(states[0, 1, 0], bounds)
    assert states.flatten().tolist() == [1.0, 1.0] and by_bounds.flatten().tolist() == [1.0, 0.0]


@pytest.mark.parametrize("with_inputs", [False, True])
@pytest.mark.parametrize("name", OPERATIONS)
def test_gradients_are_the_numerical_ones(name: str, with_inputs: bool) -> None:
    sizes = Sizes(steps=4, batch=2, hidden=3, block=2)
    values = arguments(name, sizes, with_inputs=with_inputs)
    torch.autograd.gradcheck(getattr(ops, name), with_gradients(values))


def test_complex_gradients_are_the_numerical_ones() -> None:
    values = arguments(
        "diagonal_recurrence",
        Sizes(steps=4, batch=2, hidden=3),
        with_inputs=True,
        dtype=torch.complex128,
    )
    torch.autograd.gradcheck(ops.diagonal_recurrence, with_gradients(values))


@pytest.mark.parametrize("name", OPERATIONS)
def test_only_gradients_that_are_asked_for_are_given(name: str) -> None:
    values = arguments(name, Sizes(), with_inputs=True)
    expected = iter(value_and_gradients(getattr(ops, name), values)[1:])
    for index, value in enumerate(values):
        if not value.is_floating_point():
            continue
        alone = [each if place != index else each.clone() for place, each in enumerate(values)]
        alone[index].requires_grad_()
        result = getattr(ops, name)(*alone)
        weights = torch.randn(
            result.shape, dtype=result.dtype, generator=torch.Generator().manual_seed(1)
        )
        (gradient,) = torch.autograd.grad((result * weights).sum(), [alone[index]])
        torch.testing.assert_close(gradient, next(expected))


def populations(name: str, with_inputs: bool) -> Iterator[tuple[list[Tensor], list[int | None]]]:
    """Arguments of three replicas: all of their own, and with each argument shared in turn."""
    replicas = [arguments(name, Sizes(), with_inputs=with_inputs, seed=seed) for seed in range(3)]
    stacked = [torch.stack(values) for values in zip(*replicas, strict=True)]
    yield stacked, [0] * len(stacked)
    for shared in range(len(stacked)):
        values = [value[0] if i == shared else value for i, value in enumerate(stacked)]
        yield values, [None if i == shared else 0 for i in range(len(stacked))]


def assert_population_is_each_alone(name: str, with_inputs: bool) -> None:
    def each_alone(*values: Tensor, axes: list[int | None]) -> Tensor:
        pairs = list(zip(values, axes, strict=True))
        replicas = [
            [value if axis is None else value[r] for value, axis in pairs] for r in range(3)
        ]
        return torch.stack([oracle(name)(*replica) for replica in replicas])

    for values, axes in populations(name, with_inputs):
        together = value_and_gradients(vmap(getattr(ops, name), in_dims=tuple(axes)), values)
        alone = value_and_gradients(lambda *v, axes=axes: each_alone(*v, axes=axes), values)
        assert_same(together, alone)


@pytest.mark.parametrize("with_inputs", [False, True])
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_population_is_each_replica_alone(name: str, with_inputs: bool) -> None:
    assert_population_is_each_alone(name, with_inputs)


def test_a_population_is_each_replica_alone_in_every_dense_kernel(dense_kernel: str) -> None:
    assert_population_is_each_alone("dense_recurrence", with_inputs=True)


def test_a_population_is_each_replica_alone_in_every_block_kernel(block_kernel: str) -> None:
    assert_population_is_each_alone("block_recurrence", with_inputs=True)


@pytest.mark.parametrize("name", OPERATIONS)
def test_populations_nest(name: str) -> None:
    cells = [arguments(name, Sizes(), with_inputs=True, seed=seed) for seed in range(6)]
    flat = [torch.stack(values) for values in zip(*cells, strict=True)]
    stacked = [value.unflatten(0, (2, 3)) for value in flat]
    nested = vmap(vmap(getattr(ops, name)))
    weights = torch.randn_like(vmap(getattr(ops, name))(*flat))
    leaves = with_gradients(flat)
    alone = torch.autograd.grad(
        (vmap(getattr(ops, name))(*leaves) * weights).sum(),
        [leaf for leaf in leaves if leaf.requires_grad],
    )
    leaves = with_gradients(stacked)
    together = torch.autograd.grad(
        (nested(*leaves) * weights.unflatten(0, (2, 3))).sum(),
        [leaf for leaf in leaves if leaf.requires_grad],
    )
    assert_same([gradient.flatten(0, 1) for gradient in together], list(alone))


@pytest.mark.parametrize("name", OPERATIONS)
def test_results_are_contiguous(name: str) -> None:
    assert getattr(ops, name)(*arguments(name, Sizes(), with_inputs=True)).is_contiguous()


def test_operators_act_on_column_vectors() -> None:
    operator = torch.tensor([[[0.0, 2.0], [0.0, 0.0]]])
    states = ops.dense_recurrence(operator, torch.tensor([[0]]), torch.tensor([[3.0, 5.0]]))
    assert states.tolist() == [[[10.0, 0.0]]]
    blocks = ops.block_recurrence(
        operator.unsqueeze(1), torch.tensor([[0]]), torch.tensor([[[3.0, 5.0]]])
    )
    assert blocks.tolist() == [[[[10.0, 0.0]]]]


def test_a_later_symbol_acts_on_the_result_of_an_earlier_one() -> None:
    swap, project = torch.tensor([[0.0, 1.0], [1.0, 0.0]]), torch.tensor([[1.0, 0.0], [0.0, 0.0]])
    states = ops.dense_recurrence(
        torch.stack([swap, project]), torch.tensor([[1, 0]]), torch.tensor([[3.0, 5.0]])
    )
    assert states[:, 0].tolist() == [[3.0, 0.0], [0.0, 3.0]]


NORMALISED = (
    "dense_recurrence",
    "block_recurrence",
    "diagonal_recurrence",
    "factored_recurrence",
)


def assert_equal_up_to_a_positive_scale(one: Tensor, other: Tensor) -> None:
    one, other = one.flatten(2), other.flatten(2)
    one = one / one.norm(dim=2, keepdim=True)
    other = other / other.norm(dim=2, keepdim=True)
    torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("name", NORMALISED)
def test_normalised_states_are_the_reference_up_to_scale(name: str, every: int) -> None:
    values = arguments(name, Sizes(steps=20))
    with torch.no_grad():
        states = getattr(ops, name)(*values, normalise_every=every)
    assert_equal_up_to_a_positive_scale(states, oracle(name)(*values))
    largest = states.flatten(2).abs().amax(2)[every - 1 :: every]
    assert ((largest >= 1) & (largest < 2)).all()


def test_normalised_words_keep_the_balance_of_their_blocks(
    block_kernel: str, dense_kernel: str
) -> None:
    values = arguments("block_recurrence", Sizes(steps=20))
    with torch.no_grad():
        states = ops.block_recurrence(*values, normalise_every=3)
    assert_equal_up_to_a_positive_scale(states, reference.block_recurrence(*values))


def test_a_normalised_population_is_each_replica_alone(dense_kernel: str) -> None:
    replicas = [arguments("block_recurrence", Sizes(steps=9), seed=seed) for seed in range(3)]
    stacked = [torch.stack(values) for values in zip(*replicas, strict=True)]
    with torch.no_grad():
        together = vmap(lambda *v: ops.block_recurrence(*v, normalise_every=2))(*stacked)
        alone = [ops.block_recurrence(*values, normalise_every=2) for values in replicas]
    torch.testing.assert_close(together, torch.stack(alone))


@pytest.mark.parametrize("scale", [30.0, 1 / 30.0])
@pytest.mark.parametrize("name", NORMALISED)
def test_long_words_neither_overflow_nor_vanish(name: str, scale: float) -> None:
    sizes = Sizes(steps=2_000, batch=3, hidden=4)
    values = arguments(name, sizes, dtype=torch.float32)
    place = 1 if name == "factored_recurrence" else 0
    values[place] = scale * values[place].abs().clamp_min(0.1)
    with torch.no_grad():
        states = getattr(ops, name)(*values, normalise_every=4).flatten(2)
    assert states.isfinite().all()
    assert (states.abs().amax(2) > 0).all()


def test_a_slab_of_time_after_another_gives_the_same_states(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values = arguments("block_recurrence", Sizes(steps=23), with_inputs=True)
    expected = ops.block_recurrence(*with_gradients(values))
    monkeypatch.setattr(matrices, "_SLAB_NUMBERS", 5 * values[0][0].numel() * 5)
    with torch.no_grad():
        torch.testing.assert_close(ops.block_recurrence(*values), expected.detach())
        whole = ops.block_recurrence(*values[:3], normalise_every=4)
        largest = whole[3::4].flatten(2).abs().amax(2)
        assert ((largest >= 1) & (largest < 2)).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_powers_of_two_are_those_below(dtype: torch.dtype) -> None:
    sizes = torch.tensor([1.0, 1.99, 2.0, 3.5, 1000.0, 0.3, 0.0], dtype=dtype)
    found = ops.power_of_two(sizes)
    smallest = torch.finfo(dtype).tiny
    assert found.tolist() == [1.0, 1.0, 2.0, 2.0, 512.0, 0.25, smallest]
    assert ops.power_of_two(sizes.to("meta")).dtype == dtype


def test_whole_numbers_stay_exact_when_normalised(dense_kernel: str) -> None:
    turns = torch.tensor([[[0.0, -1.0], [1.0, -1.0]], [[0.0, 1.0], [1.0, 0.0]]])  # S3
    symbols = torch.randint(2, (4, 50))
    with torch.no_grad():
        states = ops.dense_recurrence(turns, symbols, torch.tensor([[5.0, 3.0]] * 4))
        divided = ops.dense_recurrence(
            turns, symbols, torch.tensor([[5.0, 3.0]] * 4), normalise_every=3
        )
    scale = ops.power_of_two(divided.abs().amax(2, keepdim=True))
    whole = ops.power_of_two(states.abs().amax(2, keepdim=True))
    assert torch.equal(divided / scale, states / whole)


def test_a_state_of_zeros_stays_zero_when_normalised() -> None:
    with torch.no_grad():
        states = ops.diagonal_recurrence(torch.zeros(6, 2, 3), torch.ones(2, 3), normalise_every=2)
    assert (states == 0).all()


def test_a_rescaled_state_is_refused_where_it_would_be_wrong() -> None:
    gains, first, inputs = arguments("diagonal_recurrence", Sizes(), with_inputs=True)
    with pytest.raises(AssertionError, match="no gradient"):
        ops.diagonal_recurrence(gains, first, normalise_every=2)
    with torch.no_grad(), pytest.raises(AssertionError, match="scale-invariant"):
        ops.diagonal_recurrence(gains, first, inputs, normalise_every=2)


@pytest.mark.parametrize("name", OPERATIONS[1:])
def test_recurrences_run_in_float32_under_autocast(name: str) -> None:
    values = arguments(name, Sizes(), with_inputs=True, dtype=torch.float32)
    expected = value_and_gradients(getattr(ops, name), values)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        measured = value_and_gradients(getattr(ops, name), values)
    for one, other in zip(measured, expected, strict=True):
        assert one.dtype == torch.float32
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("name", OPERATIONS[1:])
def test_bfloat16_is_widened_to_float32(name: str) -> None:
    values = arguments(name, Sizes(), with_inputs=True, dtype=torch.bfloat16)
    result = getattr(ops, name)(*values)
    assert result.dtype == torch.float32
    wide = [value.float() if value.is_floating_point() else value for value in values]
    torch.testing.assert_close(result, getattr(ops, name)(*wide))


def test_a_long_sum_of_angles_stays_exact_in_float32() -> None:
    steps = 50_000
    angles = torch.full((steps, 1, 1), 2 * torch.pi / 5)
    states = ops.rotation_recurrence(angles, torch.tensor([[[1.0, 0.0]]]))[:, 0, 0]
    exact = angles.double().flatten().cumsum(0)
    expected = torch.stack([exact.cos(), exact.sin()], 1)
    assert (states.double() - expected).abs().max() < 1e-5


def test_long_rotations_have_the_gradients_of_short_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    values = arguments("rotation_recurrence", Sizes())
    expected = value_and_gradients(ops.rotation_recurrence, values)
    monkeypatch.setattr(diagonal, "_LONGEST_PLAIN_SUM", 0)
    assert_same(value_and_gradients(ops.rotation_recurrence, values), expected)


def test_words_that_all_read_one_symbol_are_not_padded() -> None:
    skewed = _grouped.group(torch.zeros(1, 1024, dtype=torch.long), 120, 64)
    even = _grouped.group((torch.arange(1024) % 120).unsqueeze(0), 120, 64)
    assert isinstance(skewed, _grouped.Packed)
    assert isinstance(even, _grouped.Padded)


def test_rows_are_summed_alike_on_every_device() -> None:
    symbols, gradient = torch.randint(4, (3, 5, 7)), torch.randn(7, 3, 5, 2).double()
    torch.testing.assert_close(
        symbol_tables._sum_by_product(gradient, symbols, 6),
        symbol_tables._sum_by_addition(gradient, symbols, 6),
    )


def test_freed_memory_can_be_kept_more_than_once() -> None:
    ops.keep_freed_memory()
    ops.keep_freed_memory()
    assert torch.ones(2**20).sum() == 2**20
