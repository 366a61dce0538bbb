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

    Time steps are 1 and rates 0, so that nothing decays. Where a term is written with the modulus
    of the character's and along its direction, a pair is the character less 1. (With a channel for
    the real part of terms and one for the imaginary, written along one direction, each of the two
    grows with the number of symbols, and float32 loses their sum.)
    """
    num_contexts, count = wanted.gains.shape
    heads, size = mixer.head_shape
    inner, pairs = mixer.sizes[0], mixer.sizes[-1]
    assert pairs >= count
    moduli = np.abs(wanted.terms)
    x, gate = np.zeros((2, num_contexts, heads, size))
    x[:, : 2 * count, 0] = np.repeat(moduli, 2, axis=1)
    gate[:, : 2 * count, 0] = ONE
    rest = [np.zeros((num_contexts, part)) for part in mixer.sizes[2:]]
    # of length 1 for every character and context, so that the norm divides all by the same
    directions = np.ones((num_contexts, count), complex)
    np.divide(wanted.terms, moduli, out=directions, where=moduli > 1e-12)
    rest[0][:, 0 : 2 * count : 2], rest[0][:, 1 : 2 * count : 2] = directions.real, directions.imag
    rest[3][:] = SHUT  # rates
    rest[4][:] = OPEN  # the rule: the end of the step
    share = np.clip(-np.angle(wanted.gains) / math.pi, -1 + 1e-16, 1 - 1e-16)
    rest[5][:, :count] = np.where(
        np.abs(share) > 1 - 1e-12, np.sign(share) * OPEN, np.arctanh(share)
    )
    flat = [each.reshape(num_contexts, inner) for each in (gate, x)]
    aim(mixer.inward, wanted.inputs, np.column_stack([*flat, *rest]))
    put(mixer.time_step_bias, np.full(heads, math.log(math.expm1(1.0))))
    put(mixer.writing_bias, np.zeros(mixer.writing_bias.shape))
    reading = np.zeros(mixer.reading_bias.shape)
    weight = np.zeros((mixer.outward.out_features, heads, size))
    for head in range(2 * count):
        reading[head, head] = 1
        weight[begin + head % 2 * count + head // 2, head, 0] = 1
    put(mixer.reading_bias, reading)
    put(mixer.outward.weight, weight.reshape(len(weight), inner))


def _free(numbers: int, width: int) -> dict[str, Any]:
    heads = 2 * numbers
    wide = width + -width % heads
    return {"heads": heads, "state": heads, "turned": 1.0, "slowest": 0.0, "width": wide}


register = Layer(set_gates, free=lambda numbers, _: {"heads": 1, "state": 2})
turns = Layer(set_turns, columns=lambda numbers: 2 * numbers, free=_free)
