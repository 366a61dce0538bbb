"""The dense recurrence: one full matrix per symbol."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from torch import Tensor

from statetrack.ops import _all_symbols, _grouped
from statetrack.ops.lanes import LaneFunction, apply, backward_pass, check_normalise
from statetrack.ops.precision import in_full_precision, widened


def dense_recurrence(
    operators: Tensor,
    symbols: Tensor,
    first: Tensor,
    inputs: Tensor | None = None,
    *,
    normalise_every: int = 0,
) -> Tensor:
    """h_t = A(x_t) h_{t-1} (+ u_t), with one matrix A per symbol.

    operators [V, H, H], symbols [B, T], first [B, H], inputs [T, B, H] give the states
    [T, B, H].
    """
    assert operators.shape[1:] == (first.shape[-1],) * 2, "operators are [V, H, H], first [B, H]"
    assert symbols.shape[0] == first.shape[0], "symbols are [B, T], first is [B, H]"
    check_normalise(normalise_every, inputs)
    states = lane_recurrence(
        widened(operators).unsqueeze(0),
        symbols.unsqueeze(0),
        widened(first).unsqueeze(0),
        None if inputs is None else widened(inputs).unsqueeze(1),
        normalise_every,
        1,
    )
    return states.squeeze(1)


def lane_recurrence(
    operators: Tensor,
    symbols: Tensor,
    first: Tensor,
    inputs: Tensor | None,
    normalise_every: int,
    num_blocks: int,
) -> Tensor:
    """The dense recurrence of G lanes at once; `num_blocks` consecutive lanes make up one word.

    operators [G, V, H, H], symbols [G, B, T], first [G, B, H], inputs [T, G, B, H] give the
    states [T, G, B, H].
    """
    states: Tensor
    states, _ = apply(
        _LaneRecurrence, operators, symbols, first, inputs, normalise_every, num_blocks
    )
    return states


class _LaneRecurrence(LaneFunction):
    """The states [T, G, B, H], and [T + 1, G, B, H] with the first one for the backward pass."""

    axes = (0, 0, 0, 1)
    saved = (0, 1)

    @staticmethod
    @in_full_precision
    def forward(
        operators: Tensor,
        symbols: Tensor,
        first: Tensor,
        inputs: Tensor | None,
        normalise_every: int,
        num_blocks: int,
    ) -> tuple[Tensor, Tensor]:
        kernel = _kernel(operators)
        states = kernel.states(operators, symbols, first, inputs, normalise_every, num_blocks)
        return states[1:], states

    @staticmethod
    @backward_pass
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        operators, symbols, states = ctx.saved_tensors
        wants_operators, _, wants_first, wants_inputs, *_ = ctx.needs_input_grad
        kernel = _kernel(operators)
        adjoints = kernel.adjoints(operators, symbols, gradient)
        return (
            kernel.operator_gradient(adjoints[1:], states[:-1], symbols, operators.shape[1])
            if wants_operators
            else None,
            None,
            adjoints[0] if wants_first else None,
            adjoints[1:] if wants_inputs else None,
            None,
            None,
        )


def _kernel(operators: Tensor) -> ModuleType:
    """The module with the faster `states`, `adjoints` and `operator_gradient` on this device.

    Grouping reads the symbols on the host, so it is used on a CPU only.
    """
    return _grouped if operators.device.type == "cpu" else _all_symbols
