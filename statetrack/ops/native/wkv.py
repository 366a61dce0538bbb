"""RWKV-4's averages of values by a loop.

B batch, T time, D width.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import Tensor

from statetrack.ops.native.calls import (
    Loop,
    Tensors,
    call,
    contiguous,
    loops,
    or_zeros,
    require_shape,
    rows_of_each,
)
from statetrack.ops.native.matrix_states import reads_whole_words


def weighted_averages(
    keys: Tensor,
    values: Tensor,
    gates: Tensor,
    log_decays: Tensor,
    bonuses: Tensor,
    sums: Tensor,
    exponents: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """(a + e^(u + k) v) / (b + e^(u + k)) times sigmoid(g), after which a is e^w a + e^k v.

    And b is e^w b + e^k. Keys k, values v and gates g are [B, T, D], log-decays w and bonuses u
    [D]; sums a and b [B, 2, D] are divided by e^m, with exponents m [B, D], which have no gradient.
    Results [B, T, D], and the last sums and exponents.
    """
    others = (values, gates, log_decays, bonuses, sums, exponents)
    outputs, sums, exponents = call(keys, _WKV, *others, has_lanes=False)
    return outputs, sums, exponents.detach()


def _forward(keep: bool, *inputs: Tensor) -> tuple[Tensor, ...]:
    keys, sums, exponents = inputs[0], *inputs[-2:]
    *lanes, _, channels = keys.shape
    require_shape(sums, *lanes, 2, channels)
    require_shape(exponents, *lanes, channels)
    rows, strides = rows_of_each(*inputs[:3], leading=3)
    outputs = keys.new_empty(keys.shape)
    last = [part.new_empty(part.shape) for part in (sums, exponents)]
    room: list[Tensor | None] = [*last]
    if reads_whole_words():
        room = [None, None]
        last = [keys.new_full((), math.nan).expand(part.shape) for part in last]
    arrays = contiguous(*inputs[3:])
    loops("wkv").wkv_forward(*rows, *arrays, outputs, *room, keys.shape, strides)
    return outputs, *last, keys.new_empty(len(keys), 0)


def _backward(
    inputs: Sequence[Tensor],
    kept: Tensor,
    by_outputs: Tensor | None,
    by_sums: Tensor | None,
    by_exponents: Tensor | None,
) -> Tensors:
    keys = inputs[0]
    rows, strides = rows_of_each(*inputs[:3], leading=3)
    wanted = (or_zeros(by_outputs, keys.shape, keys), *contiguous(by_sums))
    found = [part.new_empty(part.shape) for part in (*inputs[:3], inputs[5])]
    added = [part.new_zeros(part.shape) for part in inputs[3:5]]
    arrays = (*contiguous(*inputs[3:]), *wanted, *found[:3], *added, found[3])
    loops("wkv").wkv_backward(*rows, *arrays, keys.shape, strides)
    return *found[:3], *added, found[3], None


_WKV = Loop(_forward, _backward)
