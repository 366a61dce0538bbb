"""Linear maps with units between them by a loop.

D inputs, U units, N outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal

from torch import Tensor

from statetrack.ops.native.calls import Loop, Tensors, call, contiguous, loops, rows_of

Unit = Literal["gelu", "silu", "relu"]
"""What an MLP's units make of their arguments."""


def mlp(
    inputs: Tensor,
    kind: Unit,
    maps: tuple[Tensor, Tensor | None],
    last: tuple[Tensor, Tensor | None],
    gates: tuple[Tensor, Tensor | None] | None = None,
    others: Tensor | None = None,
) -> Tensor:
    """C f(A x + a) + c of rows x [..., D]: [..., N].

    With gates C (f(B x + b) (A x + a)) + c. Maps are A [U, D] and a [U] or None, the last ones
    C [N, U] and c [N], gates B [U, D] and b [U]. Others [..., N] are added.
    """
    weights = (*maps, *(gates or (None, None)), *last)
    loop = Loop(partial(_forward, kind), partial(_backward, kind))
    return call(inputs, loop, *weights, others, has_lanes=False)[0]


def _forward(kind: Unit, keep: bool, inputs: Tensor, *given: Tensor | None) -> tuple[Tensor, ...]:
    *weights, others = given
    sizes = _sizes(inputs, weights)
    outputs = inputs.new_empty(*inputs.shape[:-1], sizes[-1])
    rows, stride = rows_of(inputs, inputs.dim() - 1)
    arrays = contiguous(*weights, others)
    loops("mlp").mlp_forward(rows, *arrays, outputs, sizes, stride, _number(kind))
    return outputs, outputs.new_empty(len(outputs), 0)


def _backward(kind: Unit, given: list[Tensor | None], kept: Tensor, by_outputs: Tensor) -> Tensors:
    inputs, *weights, others = given
    assert inputs is not None
    rows, stride = rows_of(inputs, inputs.dim() - 1)
    by_inputs = inputs.new_empty(inputs.shape)
    found = [None if part is None else part.new_zeros(part.shape) for part in weights]
    arrays = contiguous(*weights[:-1], by_outputs, by_inputs, *found)
    sizes = _sizes(inputs, weights)
    loops("mlp").mlp_backward(rows, *arrays, sizes, stride, _number(kind))
    return by_inputs, *found, None if others is None else by_outputs


def _number(kind: Unit) -> int:
    number: int = getattr(loops("normal"), kind.upper())
    return number


def _sizes(inputs: Tensor, weights: Sequence[Tensor | None]) -> tuple[int, ...]:
    """R, M, D, U and N."""
    maps, last = weights[0], weights[4]
    assert maps is not None and last is not None
    lanes, width = len(inputs), inputs.shape[-1]
    return lanes, inputs.numel() // (lanes * width), width, maps.shape[1], last.shape[1]
