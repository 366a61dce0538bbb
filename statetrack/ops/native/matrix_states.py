"""What is kept of matrix states for a backward pass."""

from __future__ import annotations

from torch import Tensor

from statetrack.ops.native.calls import loops


def states_kept(state: Tensor, steps: int, corrections: int, keep: bool) -> Tensor:
    """Room for states before chunks, but the first, and corrections; none unless to be kept."""
    lanes, chunk = loops("vectors").LANES, loops("matrix_states").CHUNK
    words, heads, key_size, value_size = state.shape
    rows = (steps - 1) // chunk * key_size + corrections
    size = heads * rows * -(-value_size // lanes) * lanes
    return state.new_empty(words, size if keep else 0)
