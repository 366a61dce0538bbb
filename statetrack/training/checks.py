"""Checks of a model before it is trained: the shape of its logits, and that it is causal.

B batch, T time, C labels.
"""

from __future__ import annotations

import warnings

import torch
from torch import nn

from statetrack.errors import SettingsError, StatetrackWarning
from statetrack.spec import Task

NUM_WORDS, LONGEST = 2, 8
"""The number of words that are read, and the most symbols of each."""


@torch.no_grad()
def check_logits(model: nn.Module, task: Task, device: torch.device) -> None:
    """Run a model on a few words of a task, in evaluation mode, and check its logits.

    Raises `SettingsError` unless the logits are [B, T, C]. Warns with `StatetrackWarning` where
    logits depend on later symbols: accuracy is then no evidence of state tracking.
    """
    words = task.sample(NUM_WORDS, length=min(LONGEST, task.source.longest_word))
    symbols = words.to_torch().symbols.to(device)
    was_training = model.training
    model.eval()
    try:
        logits = model(symbols)
        expected = [*symbols.shape, task.source.num_labels]
        if not isinstance(logits, torch.Tensor) or list(logits.shape) != expected:
            found = (
                list(logits.shape) if isinstance(logits, torch.Tensor) else type(logits).__name__
            )
            raise SettingsError(
                f"the model gives {found} for symbols {list(symbols.shape)}, and task "
                f"'{task.name}' needs logits {expected}: one for each of its "
                f"{task.source.num_labels} labels at every position"
            )
        if symbols.shape[1] > 1:
            changed = symbols.clone()
            changed[:, -1] = (changed[:, -1] + 1) % task.source.num_symbols
            before, after = logits[:, :-1], model(changed)[:, :-1]
            if not torch.allclose(before, after, rtol=1e-3, atol=1e-4):
                warnings.warn(
                    "the model is not causal: logits change with later symbols, so that its "
                    "accuracy is no evidence of state tracking (`statetrack check` gives details)",
                    StatetrackWarning,
                    stacklevel=2,
                )
    finally:
        model.train(was_training)
