"""The linear recurrence as one operation: from operators, symbols and a first state to all states.

    h_t = A(x_t) h_{t-1} (+ u_t),    t = 1 .. T

in every structure that the models use. Symbols are integers [B, T]; `first` is the state before
the first symbol; states are returned time-major, [T, B, ...]. Operators act on column vectors.
Each function agrees with the one of the same name in `reference`, which defines it in two lines.

A population of R replicas runs through `torch.func.vmap`, for which every kernel has a batching
rule, forward and backward. Gradients are taken outside the `vmap`, as `vmap(functional_call)(...)`
followed by `.backward()` does; second derivatives are not supported.

bfloat16 and float16 (autocast or not) are converted to float32: a recurrence always runs in
float32 or better, because its rounding errors accumulate over time.

Without gradients, `normalise_every=n` divides each word's state by its norm every n steps, so
that states of long words neither overflow nor underflow. Where the model is purely multiplicative
this changes the scale of the state only; it cannot be combined with `inputs`.

The layers' recurrences over activations have the layout [B, T, N, ...], with the heads after time,
and return outputs and the last state: `delta_rule`, `decayed_attention`, `gated_attention`,
`additive_attention`, `gated_diagonal` and `turning_diagonal`. Each takes `kernel`, and calls
flash-linear-attention where that is chosen and can run.
"""

from statetrack.ops.additive_attention import additive_attention
from statetrack.ops.block import block_recurrence
from statetrack.ops.contraction import contract
from statetrack.ops.decayed_attention import decayed_attention
from statetrack.ops.delta_rule import delta_rule, delta_rule_step
from statetrack.ops.dense import dense_recurrence
from statetrack.ops.diagonal import diagonal_recurrence
from statetrack.ops.factored import factored_recurrence
from statetrack.ops.gated_attention import gated_attention
from statetrack.ops.gated_diagonal import gated_diagonal, turning_diagonal
from statetrack.ops.lookup import lookup
from statetrack.ops.memory import keep_freed_memory
from statetrack.ops.rotation import rotation_recurrence

__all__ = [
    "additive_attention",
    "block_recurrence",
    "contract",
    "decayed_attention",
    "delta_rule",
    "delta_rule_step",
    "dense_recurrence",
    "diagonal_recurrence",
    "factored_recurrence",
    "gated_attention",
    "gated_diagonal",
    "keep_freed_memory",
    "lookup",
    "rotation_recurrence",
    "turning_diagonal",
]
