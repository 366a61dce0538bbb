"""Weights set by hand: models whose matrices can be an automaton's, with the predicted sizes.

V symbols, S states, C labels, D width, N numbers remembered.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from statetrack.algebra.analysing import analyse
from statetrack.evaluation import evaluate
from statetrack.models import MODELS
from statetrack.models._base import SequenceModel
from statetrack.models._settings import recurrence_of
from statetrack.settings import build
from statetrack.sources import Automaton
from statetrack.spec import load_task

LENGTHS = [3, 2_000]
TASKS = ["s3", "random-fsm:states=7,symbols=4,seed=11", "zero-then-twos"]


def needed(name: str, automaton: Automaton) -> dict[str, int]:
    """The sizes that the prediction names, and a width with room for them."""
    recurrence = recurrence_of(MODELS[name].settings_class())
    assert recurrence is not None
    prediction = recurrence.predict(analyse(automaton))
    assert prediction.can == "yes"
    sizes = {need.setting: need.value for need in prediction.needs}
    assert all(value is not None for value in sizes.values())
    largest = max(automaton.num_symbols, *(value for value in sizes.values() if value))
    return {key: value for key, value in sizes.items() if value} | {"width": 4 * largest}


def made(name: str, automaton: Automaton) -> SequenceModel:
    """A model of the needed sizes with all weights 0, and symbols embedded as unit vectors."""
    kind = MODELS[name]
    settings = build(kind.settings_class, needed(name, automaton), name)
    model = kind(settings, num_symbols=automaton.num_symbols, num_labels=automaton.num_labels)
    for weight in model.parameters():
        weight.zero_()
    model.embedding.weight.copy_(torch.eye(*model.embedding.weight.shape))
    return model


def moves(automaton: Automaton) -> Tensor:
    """A 1 at [x, s, t] where symbol x leads from state s to state t: [V, S, S]."""
    return functional.one_hot(torch.tensor(automaton.delta.T.astype(np.int64))).float()


def first_number_with_gelu(value: float) -> float:
    """The x > 0 with gelu(x) = value, by bisection."""
    low, high = torch.zeros((), dtype=torch.float64), torch.full((), 9.0, dtype=torch.float64)
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if functional.gelu(middle) < value else (low, middle)
    return float(low)


def ids4(automaton: Automaton) -> SequenceModel:
    """The row of the start is read as a number per label, which the norm puts on a circle."""
    model = made("ids4", automaton)
    mixer, block = model.blocks[0].mixer, model.blocks[0]
    num_symbols, num_states = automaton.num_symbols, automaton.num_states
    mixer.matrices[:num_symbols] = first_number_with_gelu(1.0) * moves(automaton)
    tangents = torch.linspace(-1.2, 1.2, automaton.num_labels).tan()
    mixer.reading.weight[0] = tangents[torch.tensor(automaton.output)]
    width = mixer.skip.in_features
    one, two = torch.tensor([1.0, -1.0]).repeat(width // 2), torch.ones(width)
    two = two.unflatten(0, (-1, 2, 2)).mul(torch.tensor([1.0, -1.0])[:, None]).flatten()
    mixer.outward.weight[:, automaton.start] = one
    mixer.outward.bias.copy_(two)
    mixer.skip.weight.copy_(-torch.eye(width))  # takes the residual stream back
    block.norm.weight.fill_(1.0)
    points = tangents[:, None] * one + two
    model.readout.weight.copy_(points / points.norm(dim=-1, keepdim=True))
    assert num_states == mixer.matrices.shape[-1]
    return model


def sd_ssm(automaton: Automaton) -> SequenceModel:
    """The last coordinate is the constant that takes back what every input adds."""
    model = made("sd-ssm", automaton)
    mixer = model.blocks[0].mixer
    num_symbols, num_states = automaton.num_symbols, automaton.num_states
    actions = list(dict.fromkeys(map(tuple, automaton.delta.T.tolist())))
    assert mixer.dictionary.shape == (len(actions), num_states + 1, num_states + 1)
    for symbol in range(num_symbols):
        action = tuple(automaton.delta[:, symbol].tolist())
        chosen, led_to = actions.index(action), action[automaton.start]
        mixer.selection.weight[chosen, symbol] = 200.0
        mixer.dictionary[chosen, :num_states, :num_states] = moves(automaton)[symbol].mT
        mixer.dictionary[chosen, led_to, num_states] = -1.0
        mixer.writings.weight[[led_to, num_states], symbol] = 1.0
    mixer.state_norm.weight.fill_(1.0)
    mixer.outward.weight[: num_states + 1] = torch.eye(num_states + 1)
    labels = torch.tensor(automaton.output)
    model.readout.weight[labels, torch.arange(num_states)] = 1.0
    return model


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("by_hand", [ids4, sd_ssm])
@torch.no_grad()
def test_an_automaton_is_tracked_with_the_sizes_that_are_predicted(by_hand, task: str) -> None:
    automaton = load_task(task).source
    assert isinstance(automaton, Automaton)
    model = by_hand(automaton)
    device = torch.device("cpu")
    for score in evaluate(model, automaton, LENGTHS, num_words=4, seed=1, device=device):
        assert (score.accuracy, score.prefix_accuracy) == (1.0, 1.0), score.length
