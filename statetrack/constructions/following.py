"""A model run over words, and compared with the labels at every position.

B words, T time, C labels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from statetrack.models import RecurrentModel, SequenceModel

NUMBERS_AT_ONCE = 4_000_000
"""About how many numbers of the widest tensor are held at once."""


@dataclass(frozen=True)
class Followed:
    """How a model followed an automaton's labels over some words."""

    num_symbols: int
    wrong: int
    first_wrong: int | None
    """The first position at which any answer is wrong, counted from 0."""
    margin: float
    """The least lead of the right label over all others, as a part of the logits' spread."""

    @property
    def exact(self) -> bool:
        """Whether every label that is asked for was right."""
        return self.wrong == 0


def follow_words(
    model: SequenceModel,
    words: np.ndarray,
    labels: np.ndarray,
    scored: np.ndarray,
    *,
    width: int = 1,
) -> Followed:
    """Run given words `[B, T]` and compare with labels where they are scored, both `[B, T]`.

    A model without a state reads them whole.
    """
    piece = max(16, min(1024, NUMBERS_AT_ONCE // (len(words) * max(width, 1))))
    wrong, first, margin, begin = 0, None, np.inf, 0
    model.eval()
    with torch.no_grad():
        state = None
        if isinstance(model, RecurrentModel):
            state = model.initial_state(len(words))
        else:
            piece = words.shape[1]
        for begin in range(0, words.shape[1], piece):
            span = slice(begin, begin + piece)
            symbols = torch.from_numpy(words[:, span].astype(np.int64))
            if isinstance(model, RecurrentModel):
                assert state is not None
                logits, state = model.scan(symbols, state)
            else:
                logits = model(symbols)
            leads = leads_of(logits, torch.from_numpy(labels[:, span].astype(np.int64)))
            asked = torch.from_numpy(np.ascontiguousarray(scored[:, span]))
            bad = (~(leads > 0)) & asked  # a NaN is wrong
            if bad.any():
                wrong += int(bad.sum())
                places = begin + int(bad.any(0).nonzero()[0])
                first = places if first is None else first
            if asked.any():
                margin = min(margin, float(leads[asked].min()))
    return Followed(int(scored.sum()), wrong, first, margin)


def leads_of(logits: Tensor, labels: Tensor) -> Tensor:
    """How far the right label leads all others `[B, T]`, as a part of the spread of logits.

    With one label only there is nothing to be wrong about: the lead is 1.
    """
    if logits.shape[-1] == 1:
        return torch.ones(logits.shape[:-1], dtype=logits.dtype)
    right = logits.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    others = logits.scatter(-1, labels.unsqueeze(-1), -torch.inf).amax(-1)
    spread = logits.amax(-1) - logits.amin(-1)
    return (right - others) / spread.clamp_min(torch.finfo(logits.dtype).tiny)
