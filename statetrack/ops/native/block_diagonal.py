"""Products with block-diagonal matrices by a loop.

n blocks, K inputs and J outputs of a block.
"""

from __future__ import annotations

from torch import Tensor

from statetrack.ops.native.calls import Loop, Tensors, call, contiguous, loops, rows_of


def block_diagonal(inputs: Tensor, blocks: Tensor) -> Tensor:
    """Vectors [..., n K] times blocks [n, K, J], each its own part: [..., n, J]."""
    return call(inputs, _BLOCKS, blocks, has_lanes=False)[0]


def _block_forward(keep: bool, inputs: Tensor, blocks: Tensor) -> tuple[Tensor, ...]:
    outputs = inputs.new_empty(*inputs.shape[:-1], blocks.shape[1], blocks.shape[3])
    numbers, stride = rows_of(inputs, inputs.dim() - 1)
    sizes = _block_sizes(inputs, blocks)
    loops("block_diagonal").block_forward(numbers, blocks.contiguous(), outputs, sizes, stride)
    return outputs, outputs.new_empty(len(outputs), 0)


def _block_backward(given: list[Tensor], kept: Tensor, by_outputs: Tensor) -> Tensors:
    inputs, blocks = given
    numbers, stride = rows_of(inputs, inputs.dim() - 1)
    found = [part.new_empty(part.shape) for part in given]
    arrays = contiguous(blocks, by_outputs, *found)
    sizes = _block_sizes(inputs, blocks)
    loops("block_diagonal").block_backward(numbers, *arrays, sizes, stride)
    return tuple(found)


_BLOCKS = Loop(_block_forward, _block_backward)


def _block_sizes(inputs: Tensor, blocks: Tensor) -> tuple[int, ...]:
    lanes, width = len(inputs), inputs.shape[-1]
    return lanes, inputs.numel() // (lanes * width), *blocks.shape[1:]
