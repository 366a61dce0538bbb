"""AUSSM: characters of modulus 1, four channels for each.

N inputs (one for every context), D width, J numbers of a component.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from statetrack.constructions.layers._selective import channels_of, open_channels
from statetrack.constructions.stacks import Layer, WantedGates
from statetrack.constructions.weights import SHUT, put, silu_preimage


def set_gates(mixer: Any, wanted: WantedGates, begin: int) -> None:
    """Four channels for every character: turned either way, fed with each part of the terms.

    A channel's term is real, and its state h is read as Re(C h) with one C for all, here
    exp(i pi / 4). So two channels give the real and the imaginary part of h: p = (Re h - Im h) / r
    and q = (Re h + Im h) / r with r the root of 2. The character less 1 is the h of the real parts
    of the terms plus i times that of the imaginary parts: only the sums are bounded.
    """
    step = 10.0
    terms = np.concatenate([wanted.terms.real] * 2 + [wanted.terms.imag] * 2, 1) / step
    angles = np.angle(wanted.gains)
    turns = np.concatenate([angles, -angles, angles, -angles], 1)  # [N, 4 J]
    size = terms.shape[1]
    width = mixer.skip.numel()
    open_channels(mixer, wanted.inputs, terms)
    convolved = silu_preimage(channels_of(terms, width))
    solved = np.linalg.lstsq(convolved, turns, rcond=1e-12)[0]
    weight = np.zeros(mixer.angles.weight.shape)
    weight.reshape(width, -1, width)[:size, 0] = solved.T * math.sqrt(width)
    put(mixer.angles.weight, weight)
    bias = (step + math.log(-math.expm1(-step))) / 2  # it is added twice
    put(mixer.time_steps.bias, np.full(width, bias))
    one = math.log(math.expm1(1.0))
    put(
        mixer.writings,
        np.stack([np.full(mixer.writings.shape[1], one), 0 * mixer.writings[0].detach().numpy()]),
    )
    reading = np.zeros(mixer.readings.shape)
    reading[0], reading[1] = SHUT, math.pi / 4
    reading[0, 0] = one
    put(mixer.readings, reading)
    count = size // 4
    combined = np.zeros(mixer.outward.weight.shape)
    of_p, of_q, of_p_imaginary, of_q_imaginary = (
        np.arange(part * count, (part + 1) * count) for part in range(4)
    )
    real, imaginary = begin + np.arange(count), begin + count + np.arange(count)
    combined[real, of_p] = combined[real, of_q] = combined[real, of_p_imaginary] = 1
    combined[real, of_q_imaginary] = combined[imaginary, of_p] = -1
    combined[imaginary, of_q] = combined[imaginary, of_p_imaginary] = 1
    combined[imaginary, of_q_imaginary] = 1
    put(mixer.outward.weight, combined / math.sqrt(2))


turns = Layer(
    set_gates,
    columns=lambda numbers: 2 * numbers,
    free=lambda numbers, width: {"state": 1, "width": width + 4 * numbers},
)
