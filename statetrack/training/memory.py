"""Whether training fits into memory, from sizes alone: nothing is drawn before it is known.

Linux grants more memory than there is and ends the process later, without a message. What is
counted is what training surely takes, so that nothing is refused that fits: weights with what is
kept for each, the words of a block of steps, and what one step keeps for its gradients.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from statetrack.errors import SettingsError, setting
from statetrack.models import TRAINING, check_memory, free_memory, with_shapes
from statetrack.training.settings import TrainSettings
from statetrack.training.trainer import BLOCK
from statetrack.training.words import TaskWords

BYTES_OF_A_SYMBOL = 17
"""What a position of words takes on the device: a symbol, a label, and whether it is scored."""

LEAST_KEPT = 10_000
"""Bytes: where so many for every symbol, or the weights, would fit, it is not counted how many."""

SURELY = 0.4
"""The part of what short words keep that a step takes at least.

Of 16 models whose peaks were measured a transformer took the least, 0.7 of it; a Mamba took 0.42 of
what is counted without values, which compiled loops do not keep.
"""

TRACED = (8, 16)
"""The lengths of the two words of which it is counted what a model keeps for its gradients."""


def require_memory(make: Callable[[], nn.Module], words: TaskWords, device: torch.device) -> None:
    """Raise `SettingsError` where training on these words surely needs more memory than is free.

    `make` builds one replica. What a step keeps is counted on two short words, where ten times
    more than usual would not fit; it grows with their length at least.
    """
    training, longest = words.training, words.lengths.longest
    replicas = training.seeds * len(training.lrs)
    num_weights = check_memory(make, replicas, TRAINING, device)
    free = free_memory(device)
    if free is None:
        return
    # of a fixed set, fewer words may be left for validation, and what is held is drawn once
    validated = 0 if words.data.train_samples else training.validation_words
    held = min(BLOCK, training.steps) * training.batch_size + validated
    needed: float = training.seeds * held * longest * BYTES_OF_A_SYMBOL
    logits = 8 * words.task.source.num_labels  # float32, and as many that the loss is made of
    read = replicas * training.batch_size * longest
    each = float(logits)
    if read * max(LEAST_KEPT, 4 * num_weights) > free - needed:
        each = max(each, SURELY * _surely_kept(make, training))
    needed += max(read * each, replicas * validated * longest * logits)
    if needed > free:
        raise SettingsError(
            f"out of memory: a step of {_counted(replicas, 'replica')} on "
            f"{training.batch_size:,} words of up to {_counted(longest, 'symbol')}, or validation "
            f"on {training.validation_words:,}, takes at least {needed / 1e9:,.1f} GB, and "
            f"{free / 1e9:,.1f} GB are free: lower {setting('batch_size')}, "
            f"{setting('validation_words')}, {setting('train_length')}, {setting('seeds')} or the "
            "size of the model"
        )


def _surely_kept(make: Callable[[], nn.Module], training: TrainSettings) -> float:
    """The bytes that one replica keeps for its gradients of every symbol; 0 where not known.

    It is not known of a frozen recurrence, nor of numbers of lower precision.
    """
    usual = training.freeze == "none" and training.precision == "float32"
    return kept_by_symbol(make) if usual else 0.0


def kept_by_symbol(make: Callable[[], nn.Module]) -> float:
    """The bytes that a replica keeps for its gradients of every symbol of a short word.

    0 where it is not known. `make` builds it; a large one without values, which takes a while.
    """
    model = with_shapes(make)
    if model is None:
        return 0.0
    own = {weight.untyped_storage()._cdata for weight in (*model.parameters(), *model.buffers())}
    device = next(model.parameters()).device
    counted: list[int] = []
    for length in TRACED:
        kept: list[torch.Tensor] = []

        def keep(value: torch.Tensor, kept: list[torch.Tensor] = kept) -> torch.Tensor:
            kept.append(value)
            return value

        try:
            with torch.autograd.graph.saved_tensors_hooks(keep, lambda value: value):
                logits = model(torch.zeros((1, length), dtype=torch.long, device=device))
        except Exception:  # it needs values, or what is wrong is said when it is trained
            return 0.0
        storages = [value.untyped_storage() for value in (*kept, logits)]
        sizes = {each._cdata: each.nbytes() for each in storages if each._cdata not in own}
        counted.append(sum(sizes.values()))
    return max(0.0, (counted[1] - counted[0]) / (TRACED[1] - TRACED[0]))


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" + "s" * (number != 1)
