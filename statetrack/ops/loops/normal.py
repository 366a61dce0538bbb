"""The normal distribution, and the units of MLPs that are made of it and of others."""

from __future__ import annotations

import math
from typing import Any

from statetrack.ops.loops.compiling import part
from statetrack.ops.loops.memory import Array
from statetrack.ops.loops.vectors import (
    absolute,
    exponential,
    greater,
    polynomial,
    sigmoid,
    splat,
    with_sign_of,
)

GELU, SILU, RELU = 0, 1, 2
"""The units, by the numbers that loops know them by."""

CENTRE = 3.0
"""Where the argument of the series is 0."""

_DENSITY = 1 / math.sqrt(2 * math.pi)

_tail_ratio = polynomial(
    (
        0.121513924,
        -0.20640263,
        0.123226174,
        -0.0462125351,
        0.0061235249,
        0.00289836295,
        -0.000963076664,
        -0.000323330715,
        9.94763567e-5,
        4.01481493e-5,
    ),
    (
        0.12151394835556217,
        -0.20640261200847704,
        0.12322495031534876,
        -0.046213457519598794,
        0.006133359686603356,
        0.0029059147107097717,
        -0.0009908381631940646,
        -0.0003455701478330074,
        0.00013154220651667974,
        6.84949715240989e-05,
        -1.2596910995003313e-05,
        -1.53431047987881e-05,
        -1.2408069147834402e-06,
        2.8617492909217035e-06,
        1.193963296702869e-06,
        -2.299950961717096e-07,
        -3.770660189731855e-07,
        -1.0137424925540704e-07,
        5.6797796771183534e-08,
        5.401231305392829e-08,
        5.449786121138445e-09,
        -1.2597050152623179e-08,
        -4.54573335502572e-09,
        1.303265373829535e-09,
        7.179456295159002e-10,
    ),
)
"""e^(x^2 / 2) (1 - Phi(x)) of x >= 0, of (x - 3) / (x + 3): to rounding, by Chebyshev nodes."""


@part
def normal(vector: Any, array: Array) -> Any:
    """The distribution function Phi of the normal distribution, and its density."""
    half, centre = array.dtype.type(0.5), array.dtype.type(CENTRE)
    size = absolute(vector)
    falling = exponential(array.dtype.type(-0.5) * size * size)
    tail = falling * _tail_ratio((size - centre) / (size + centre))
    return half + with_sign_of(half - tail, vector), falling * array.dtype.type(_DENSITY)


@part
def unit(vector: Any, array: Array, kind: int) -> Any:
    """What a unit makes of its argument, and the slope there.

    gelu(x) = x Phi(x);    silu(x) = x sigmoid(x);    relu(x) = max(x, 0), of slope 0 at 0
    """
    zero, one, half = array.dtype.type(0), array.dtype.type(1), array.dtype.type(0.5)
    if kind == GELU:
        below, density = normal(vector, array)
        return vector * below, below + vector * density
    if kind == SILU:
        share = sigmoid(vector, array)
        return vector * share, share * (one + vector * (one - share))
    return greater(splat(zero), vector), half - with_sign_of(splat(half), zero - vector)
