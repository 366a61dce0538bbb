"""The linear recurrence as one operation: from operators, symbols and a first state to all states.

    h_t = A(x_t) h_{t-1} (+ u_t),    t = 1 .. T

in every structure that the models use. Symbols are integers [B, T]; `first` is the state before
the first symbol; states are returned time-major, [T, B, ...]. Operators act on column vectors.
Each function agrees with its definition in two lines, in `tests/reference.py`.

A population of R replicas runs through `torch.func.vmap`, for which every kernel has a batching
rule, forward and backward. Gradients are taken outside the `vmap`, as `vmap(functional_call)(...)`
followed by `.backward()` does; second derivatives are refused.

bfloat16 and float16 (autocast or not) are converted to float32: a recurrence always runs in
float32 or better, because its rounding errors accumulate over time.

Without gradients, `normalise_every=n` divides each word's state by a power of two every n steps,
which rounds nothing, so that states of long words neither overflow nor underflow. Where the model
is purely multiplicative this changes the scale of the state only; it cannot be combined with
`inputs`.

The layers' recurrences over activations have the layout [B, T, N, ...], with the heads after time,
and return outputs and the last state: `delta_rule`, `decayed_attention`, `gated_attention`,
`additive_attention`, `gated_diagonal` and `turning_diagonal`. Each takes `kernel`, and calls
flash-linear-attention or compiled loops (`native`) where these are chosen and can run.
"""

from statetrack.ops import boxes as boxes
from statetrack.ops import native as native
from statetrack.ops.attention import CHUNK as CHUNK
from statetrack.ops.attention import additive_attention as additive_attention
from statetrack.ops.attention import decayed_attention as decayed_attention
from statetrack.ops.attention import decayed_chunk as decayed_chunk
from statetrack.ops.attention import gated_attention as gated_attention
from statetrack.ops.attention import sums_between as sums_between
from statetrack.ops.boxes import FLOAT32 as FLOAT32
from statetrack.ops.boxes import UNITS_OF_A_FUNCTION as UNITS_OF_A_FUNCTION
from statetrack.ops.boxes import Box as Box
from statetrack.ops.boxes import TanhStep as TanhStep
from statetrack.ops.casts import RoundedArithmetic as RoundedArithmetic
from statetrack.ops.casts import arithmetic as arithmetic
from statetrack.ops.casts import rounded as rounded
from statetrack.ops.delta_rule import delta_rule as delta_rule
from statetrack.ops.delta_rule import delta_rule_step as delta_rule_step
from statetrack.ops.devices import Kernel as Kernel
from statetrack.ops.devices import KernelChoice as KernelChoice
from statetrack.ops.devices import choose_device as choose_device
from statetrack.ops.devices import in_threads as in_threads
from statetrack.ops.devices import keep_freed_memory as keep_freed_memory
from statetrack.ops.devices import kernel_for as kernel_for
from statetrack.ops.devices import natively as natively
from statetrack.ops.devices import set_threads as set_threads
from statetrack.ops.devices import why_not as why_not
from statetrack.ops.diagonal import clamped_recurrence as clamped_recurrence
from statetrack.ops.diagonal import diagonal_recurrence as diagonal_recurrence
from statetrack.ops.diagonal import gated_diagonal as gated_diagonal
from statetrack.ops.diagonal import rotation_recurrence as rotation_recurrence
from statetrack.ops.diagonal import turning_diagonal as turning_diagonal
from statetrack.ops.fla import LARGEST_GATED_KEY as LARGEST_GATED_KEY
from statetrack.ops.lanes import apply as apply
from statetrack.ops.lanes import has_numbers as has_numbers
from statetrack.ops.lanes import in_full_precision as in_full_precision
from statetrack.ops.lanes import is_transformed as is_transformed
from statetrack.ops.lanes import join_lanes as join_lanes
from statetrack.ops.lanes import power_of_two as power_of_two
from statetrack.ops.lanes import refusing_second_derivatives as refusing_second_derivatives
from statetrack.ops.lanes import require_below as require_below
from statetrack.ops.lanes import turned as turned
from statetrack.ops.lanes import widened as widened
from statetrack.ops.layer_operators import ColumnwiseOperators as ColumnwiseOperators
from statetrack.ops.layer_operators import (
    DiagonalMinusRankOneOperators as DiagonalMinusRankOneOperators,
)
from statetrack.ops.layer_operators import DirectSumOperators as DirectSumOperators
from statetrack.ops.layer_operators import HouseholderOperators as HouseholderOperators
from statetrack.ops.layer_operators import OneHotColumnOperators as OneHotColumnOperators
from statetrack.ops.layer_operators import OneHotRowOperators as OneHotRowOperators
from statetrack.ops.matrices import block_recurrence as block_recurrence
from statetrack.ops.matrices import dense_recurrence as dense_recurrence
from statetrack.ops.matrices import factored_recurrence as factored_recurrence
from statetrack.ops.operators import BlockOperators as BlockOperators
from statetrack.ops.operators import ComplexDiagonalOperators as ComplexDiagonalOperators
from statetrack.ops.operators import DenseOperators as DenseOperators
from statetrack.ops.operators import DiagonalOperators as DiagonalOperators
from statetrack.ops.operators import FactoredOperators as FactoredOperators
from statetrack.ops.operators import Operators as Operators
from statetrack.ops.operators import RotationOperators as RotationOperators
from statetrack.ops.operators import diagonal_operators as diagonal_operators
from statetrack.ops.symbol_tables import contract as contract
from statetrack.ops.symbol_tables import lookup as lookup
