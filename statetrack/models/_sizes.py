"""How large a model is: its weights, and what it remembers of a word."""

from __future__ import annotations

from torch import Tensor

from statetrack.models._base import RecurrentModel, SequenceModel, State


def num_parameters(model: SequenceModel) -> int:
    """How many weights are trained."""
    return sum(parameter.numel() for parameter in model.parameters())


def state_size(model: SequenceModel) -> int | None:
    """How many numbers are remembered of each word; None where that grows with its length."""
    return numbers_in(model.initial_state(1)) if isinstance(model, RecurrentModel) else None


def numbers_in(state: State) -> int:
    """How many numbers a state holds."""
    return state.numel() if isinstance(state, Tensor) else sum(numbers_in(part) for part in state)
