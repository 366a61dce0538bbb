"""Stacks of residual blocks: a layer for every component of a cascade.

The stream at a position takes finitely many values, one for each symbol with the states of the
components so far (its *context*). A mixer's gates and terms are solved so that they are right for
each of these values. Behind it an MLP has two units for every context, which are on there alone,
and whose difference is the same for all inputs near its own: it writes a unit vector into the
stream, without the errors of the state that it was read from. So the next layer's gates can be any
function of it, and what is rounded in one layer does not add up in the gates of the next.

N contexts, D width, J numbers of a component.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from statetrack.constructions.cascades import CascadePart
from statetrack.constructions.case import BeyondBudget, Case, NotBuilt
from statetrack.constructions.covering import covering_words
from statetrack.constructions.readouts import read_labels
from statetrack.constructions.weights import inputs_of, inputs_of_mixer, one_hot_embedding, put
from statetrack.sources import Floats, Integers

MOST_CONTEXTS = 800
"""Most contexts behind the last of several layers: an MLP has two units for each of them."""

STEEP = 40.0
"""What the two units of a context differ by there; they give 60 and 20, and -20 and less elsewhere.

gelu is the identity above 20, and 0 below -20, to all digits.
"""


@dataclass(frozen=True, eq=False)
class WantedGates:
    """What a layer's recurrence has to do in every context: numbers go to gains * them + terms."""

    inputs: Floats  # [N, D]
    gains: np.ndarray  # [N, J]
    terms: np.ndarray  # [N, J]
    fresh: Callable[[int], Any]
    """The layer's mixer with the first weights that a seed draws."""


LOUD = 256.0
"""What an MLP writes for a context.

A norm divides the stream by its length, and with it errors of a state come into what all layers
behind get: where what they are to read is this much larger, that part is smaller by its square.
"""

Setter = Callable[[Any, WantedGates, int], None]
"""Sets a mixer's weights; its outputs are written from the given column of the stream on."""

Cascade = Callable[[Case, Integers], list[CascadePart]]


def _the_same(numbers: int) -> int:
    return numbers


def _nothing(numbers: int, width: int) -> dict[str, Any]:
    return {}


@dataclass(frozen=True)
class Layer:
    """How the gates of a kind of layer are set as functions of its inputs."""

    set_gates: Setter
    columns: Callable[[int], int] = _the_same
    """How many columns of the stream a component of J numbers is written to."""
    free: Callable[[int, int], dict[str, Any]] = _nothing
    """Settings that it needs, for at most J numbers in a layer and D."""


def build_stack(case: Case, cascade: Cascade, how: Layer) -> Any:
    """The model with a component in each layer; spare layers do nothing."""
    words = covering_words(case.automaton)
    components = cascade(case, words)
    num_layers = case.sizes.get("layers", 1)
    if len(components) > num_layers:
        raise NotBuilt(f"{len(components)} components are known, {num_layers} are predicted")
    contexts = _contexts(case.automaton.num_symbols, words, components)
    numbers = [int(each.max()) + 1 for each in contexts]
    spans = [how.columns(component.gains.shape[2]) for component in components]
    several = len(components) > 1
    if several and numbers[-1] > MOST_CONTEXTS:
        raise BeyondBudget(f"{numbers[-1]} contexts of a symbol and a state")
    begin = case.automaton.num_symbols
    width = begin + sum(spans) + (sum(numbers[1:-1]) + case.automaton.num_labels) * several
    width = case.room("width", width + -width % 4)
    free = how.free(max(each.gains.shape[2] for each in components), width)
    width = free.pop("width", width)
    if several:
        free |= {"mlp": (2 * max(numbers[1:]) + 1) / width, "mlp_kind": "gelu"}
    free = {"width": width, "norm": "rms", "layers": num_layers} | free
    model = case.blank(**free)
    one_hot_embedding(model)
    symbols = torch.from_numpy(words)
    for layer, (component, span) in enumerate(zip(components, spans, strict=True)):
        block = model.blocks[layer]
        got = inputs_of_mixer(model, layer, symbols).numpy()
        first = _first_of(contexts[layer])
        gains, terms = (
            part.reshape(-1, part.shape[-1]) for part in (component.gains, component.terms)
        )
        _check_function(contexts[layer], got, gains, terms)
        how.set_gates(
            block.mixer,
            WantedGates(
                got.reshape(-1, got.shape[-1])[first],
                gains[first],
                terms[first],
                partial(_fresh_mixer, case, free, layer),
            ),
            begin,
        )
        begin += span
        if several:
            last = layer == len(components) - 1
            targets = np.arange(numbers[layer + 1])
            if last:
                labels = case.automaton.labels_of(words).astype(np.int64)
                targets = labels.ravel()[_first_of(contexts[layer + 1])]
            _two_units_each(model, block, symbols, contexts[layer + 1], begin, targets)
            begin += int(targets.max()) + 1
    read_labels(
        model, case, slice(begin - case.automaton.num_labels, begin) if several else slice(begin)
    )
    return model


def _fresh_mixer(case: Case, free: dict[str, Any], layer: int, seed: int) -> Any:
    return case.fresh(seed, **free).blocks[layer].mixer


def _contexts(
    num_symbols: int, words: Integers, components: Sequence[CascadePart]
) -> list[Integers]:
    """Before each layer and after the last, the number of every position's context: `[B, T]`."""
    found = [np.unique(words, return_inverse=True)[1].reshape(words.shape)]
    for component in components:
        both = found[-1] * (component.after.max() + 1) + component.after
        found.append(np.unique(both, return_inverse=True)[1].reshape(words.shape))
    return found


def _first_of(contexts: Integers) -> Integers:
    """For every context the first position that has it, of all in order: `[N]`."""
    first: Integers = np.unique(contexts.ravel(), return_index=True)[1]
    return first


def _check_function(contexts: Integers, *parts: np.ndarray) -> None:
    """Whether what is wanted, and what a layer gets, depends on the context alone."""
    first = _first_of(contexts)[contexts.ravel()]
    for part in parts:
        flat = part.reshape(contexts.size, -1)
        error = np.abs(flat - flat[first]).max()
        if error > 1e-6:
            raise NotBuilt(f"positions with one context differ by {error:.1e}")


def _two_units_each(
    model: Any, block: Any, symbols: Tensor, contexts: Integers, begin: int, targets: Integers
) -> None:
    """Two units of the MLP for every context, on there alone, that write 1 into its target column.

    The first leads the second by the same for all inputs.
    """
    maps = [module for module in block.mlp.modules() if isinstance(module, nn.Linear)]
    inward, outward = maps[0], maps[-1]
    got = inputs_of(model, inward, symbols).numpy()
    points = got.reshape(-1, got.shape[-1])[_first_of(contexts)]
    products = points @ points.T
    own = products.diagonal().copy()
    np.fill_diagonal(products, -np.inf)
    margins = own - products.max(axis=1)
    if margins.min() < 1e-6:
        raise NotBuilt("an MLP cannot tell two contexts apart")
    weight, bias = np.zeros(inward.weight.shape), np.full(inward.bias.shape, -STEEP)
    out, count = np.zeros(outward.weight.shape), len(points)
    scale = 2 * STEEP / margins
    for unit, (lead, sign) in enumerate(((1.5, 1), (0.5, -1))):
        rows = slice(unit * count, (unit + 1) * count)
        weight[rows] = scale[:, None] * points
        bias[rows] = lead * STEEP - scale * own
        out[begin + targets, np.arange(count) + unit * count] = sign * LOUD / STEEP
    put(inward.weight, weight)
    put(inward.bias, bias)
    put(outward.weight, out)
