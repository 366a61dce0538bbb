"""The size of a model: the number of its weights, and of the numbers in its state."""

from __future__ import annotations

from torch import Tensor

from statetrack.models._base import RecurrentModel, SequenceModel, State


def num_parameters(model: SequenceModel) -> int:
    """The number of trained weights."""
    return sum(parameter.numel() for parameter in model.parameters())


def state_size(model: SequenceModel) -> int | None:
    """The numbers in the state of one word; None where that grows with the word's length."""
    return numbers_in(model.initial_state(1)) if isinstance(model, RecurrentModel) else None


def numbers_in(state: State) -> int:
    """The number of values in a state."""
    return state.numel() if isinstance(state, Tensor) else sum(numbers_in(part) for part in state)
