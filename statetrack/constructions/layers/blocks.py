"""Any layer of blocks without a file of its own: its weights are solved for, from what is wanted.

In every context n the layer gets an input of its own, and numbers q are to become g_n q + u_n. All
weights of the layer, and a map W of the numbers into the layer's state, are solved for so that one
step takes the state h_0 + W q to h_0 + W (g_n q + u_n), and writes g_n q + u_n into columns of its
own of the stream, and nothing else. The layer is affine in its state, so that it does so for all q
where it does for 0 and the unit vectors.

N contexts, J numbers (real ones: complex numbers are two), Q = J + 1 points, D width.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call

from statetrack.constructions.case import NotBuilt
from statetrack.constructions.solving import Numbers, solved
from statetrack.constructions.stacks import Layer, WantedGates
from statetrack.models import LinearMixer, numbers_in

STARTS = 8
"""Initial weights that are tried."""

PLACES = "places"
"""The name of W among what is solved for."""


def set_gates(mixer: Any, wanted: WantedGates, begin: int) -> None:
    """Solve for the weights of a layer whose next state is affine in its state alone."""
    if not isinstance(mixer, LinearMixer):
        raise NotBuilt("the next state of its layers is not known to be affine in their state")
    first = mixer.initial_state(1)
    part = mixer.recurrent_part(first)
    if numbers_in(first) != part.numel():
        raise NotBuilt("its layers keep more than the recurrent state, such as the last inputs")
    step = _Step(mixer, wanted, begin)
    found = solved(step.missed, _starts(wanted, part.numel(), step.numbers), "the wanted gates")
    with torch.no_grad():
        for name, value in mixer.named_parameters():
            value.copy_(found[name])


def _starts(wanted: WantedGates, size: int, numbers: int) -> Iterator[Numbers]:
    for seed in range(STARTS):
        weights = {name: value.detach() for name, value in wanted.fresh(seed).named_parameters()}
        drawn = np.random.default_rng(seed).normal(size=(size, numbers))
        yield {**weights, PLACES: torch.from_numpy(drawn)}


class _Step(nn.Module):
    """One step of a layer from all points, in all contexts."""

    def __init__(self, mixer: LinearMixer[Any], wanted: WantedGates, begin: int) -> None:
        super().__init__()
        self.mixer = mixer
        gains, terms = wanted.gains, wanted.terms
        if np.iscomplexobj(gains):
            maps = np.stack([gains.real, -gains.imag, gains.imag, gains.real], -1)
            maps = maps.reshape(*gains.shape, 2, 2)
            terms = np.stack([terms.real, terms.imag], -1).reshape(len(terms), -1)
        else:
            maps = gains[..., None, None]
        size = maps.shape[-1]
        self.numbers = terms.shape[1]
        points = np.vstack([np.zeros(self.numbers), np.eye(self.numbers)])  # [Q, J]
        moved = np.einsum("njab,qjb->nqja", maps, points.reshape(len(points), -1, size))
        after = moved.reshape(len(terms), len(points), -1) + terms[:, None]
        self.before, self.after = torch.from_numpy(points), torch.from_numpy(after)
        self.inputs = torch.from_numpy(wanted.inputs).repeat_interleave(len(points), 0)
        self.columns = slice(begin, begin + self.numbers)

    def forward(self, places: Tensor) -> Tensor:
        """What is missed in each context, [N, ..]."""
        state = self.mixer.initial_state(len(self.inputs))
        first = self.mixer.recurrent_part(state)
        here = (self.before @ places.mT).repeat(len(self.after), 1)
        state = self.mixer.with_recurrent_part(state, first + here.view_as(first))
        outputs, state = self.mixer.step(self.inputs, state)
        written = torch.zeros_like(outputs)
        written[:, self.columns] = self.after.flatten(0, 1).to(outputs)
        reached = (self.mixer.recurrent_part(state) - first).flatten(1)
        wanted = self.after.flatten(0, 1) @ places.mT
        missed = torch.cat([reached - wanted, outputs - written], 1)
        return missed.view(len(self.after), -1)

    def missed(self, numbers: Numbers) -> Tensor:
        """The same, of weights by name."""
        weights = {f"mixer.{name}": value for name, value in numbers.items() if name != PLACES}
        found: Tensor = functional_call(self, weights, (numbers[PLACES],))
        return found


def _pairs(numbers: int) -> int:
    return 2 * numbers


register = signs = Layer(set_gates)
turns = Layer(set_gates, columns=_pairs)
