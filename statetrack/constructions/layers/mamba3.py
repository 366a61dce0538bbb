"""Mamba-3: a head that is kept or reset, or a pair of rows for every character.

N inputs (one for every context), D width, J numbers of a component.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from statetrack.constructions.stacks import Layer, WantedGates
from statetrack.constructions.weights import LONG, ONE, OPEN, SHUT, aim, put, unit_columns


def set_gates(mixer: Any, wanted: WantedGates, begin: int) -> None:
    """As Mamba-2: nothing is turned, since a time step of 0 also turns by nothing."""
    size, inner = wanted.terms.shape[1], mixer.sizes[0]
    num_contexts = len(wanted.inputs)
    gate, x = np.zeros((2, num_contexts, inner))
    gate[:, :size] = ONE
    x[:, :size] = wanted.terms / LONG
    rest = [np.zeros((num_contexts, count)) for count in mixer.sizes[2:]]
    rest[2][:] = np.where(wanted.gains[:, :1] == 1, SHUT, LONG)  # time steps
    rest[3][:] = OPEN  # rates
    rest[4][:] = OPEN  # the rule: the end of the step
    aim(mixer.inward, wanted.inputs, np.column_stack([gate, x, *rest]))
    first = np.zeros(mixer.writing_bias.shape)
    first[:, 0] = 1
    put(mixer.writing_bias, first)
    put(mixer.reading_bias, first)
    unit_columns(mixer.outward, begin, size)


def set_turns(mixer: Any, wanted: WantedGates, begin: int) -> None:
    """A pair of rows for every character, and two heads, which read its two rows.

    Time steps are 1 and rates 0, so that nothing decays. Each head has two channels: for the real
    and the imaginary part of the terms. The character less 1 is the h of the first plus i times
    that of the second.
    """
    num_contexts, count = wanted.gains.shape
    heads, size = mixer.head_shape
    inner, pairs = mixer.sizes[0], mixer.sizes[-1]
    x, gate = np.zeros((2, num_contexts, heads, size))
    x[:, : 2 * count, 0] = np.repeat(wanted.terms.real, 2, axis=1)
    x[:, : 2 * count, 1] = np.repeat(wanted.terms.imag, 2, axis=1)
    gate[:, : 2 * count, :2] = ONE
    rest = [np.zeros((num_contexts, part)) for part in mixer.sizes[2:]]
    rest[3][:] = SHUT  # rates
    rest[4][:] = OPEN  # the rule: the end of the step
    share = np.clip(-np.angle(wanted.gains) / math.pi, -1 + 1e-16, 1 - 1e-16)
    rest[5][:, :count] = np.where(
        np.abs(share) > 1 - 1e-12, np.sign(share) * OPEN, np.arctanh(share)
    )
    flat = [each.reshape(num_contexts, inner) for each in (gate, x)]
    aim(mixer.inward, wanted.inputs, np.column_stack([*flat, *rest]))
    put(mixer.time_step_bias, np.full(heads, math.log(math.expm1(1.0))))
    writing, reading = np.zeros((2, heads, mixer.writing_bias.shape[1]))
    for head in range(2 * count):
        writing[head, head - head % 2] = reading[head, head] = 1
    put(mixer.writing_bias, writing)
    put(mixer.reading_bias, reading)
    weight = np.zeros((mixer.outward.out_features, heads, size))
    for character in range(count):
        real, imaginary = begin + character, begin + count + character
        weight[real, 2 * character, 0], weight[real, 2 * character + 1, 1] = 1, -1
        weight[imaginary, 2 * character + 1, 0] = weight[imaginary, 2 * character, 1] = 1
    put(mixer.outward.weight, weight.reshape(len(weight), inner))
    assert pairs >= count


def _free(numbers: int, width: int) -> dict[str, Any]:
    heads = 2 * numbers
    wide = width + -width % heads
    return {"heads": heads, "state": heads, "turned": 1.0, "slowest": 0.0, "width": wide}


register = Layer(set_gates, free=lambda numbers, _: {"heads": 1, "state": 2})
turns = Layer(set_turns, columns=lambda numbers: 2 * numbers, free=_free)
