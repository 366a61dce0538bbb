"""Modules that compute an automaton exactly, wrongly in one place, or rightly for a while."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from statetrack.sources import Automaton


class Computes(nn.Module):
    """Follows an automaton: its state is the number of the automaton's, as a float [B, 1]."""

    def __init__(self, automaton: Automaton) -> None:
        super().__init__()
        self.start = automaton.start
        self.register_buffer("moves", torch.from_numpy(automaton.delta.copy()))  # [S, V]
        labels = np.eye(automaton.num_labels, dtype="f4")[automaton.output]
        self.labels = nn.Parameter(torch.from_numpy(labels))  # [S, C]

    def initial_state(self, num_words: int) -> Tensor:
        return self.labels.new_full((num_words, 1), self.start)

    def step(self, symbols: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        reached = self.moves[state[:, 0].long(), symbols]
        return self.labels[reached], reached[:, None].to(self.labels.dtype)

    def forward(self, symbols: Tensor) -> Tensor:
        state, logits = self.initial_state(len(symbols)), []
        for symbol in symbols.unbind(1):
            output, state = self.step(symbol, state)
            logits.append(output)
        return torch.stack(logits, 1)


class Shrinks(Computes):
    """The same with one-hot states [B, S] that are multiplied by a number at every step."""

    def __init__(self, automaton: Automaton, factor: float) -> None:
        super().__init__(automaton)
        self.factor = factor
        one_hot = np.eye(automaton.num_states, dtype="f4")[automaton.delta]
        self.operators = nn.Parameter(torch.from_numpy(one_hot))  # [S, V, S]

    def initial_state(self, num_words: int) -> Tensor:
        return torch.eye(len(self.operators))[self.start].repeat(num_words, 1)

    def step(self, symbols: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        state = torch.einsum("bs,sbt->bt", state, self.operators[:, symbols]) * self.factor
        return state @ self.labels, state


class CountsToo(Computes):
    """The same with a counter of positions in its state, which all words share."""

    def initial_state(self, num_words: int) -> tuple[Tensor, Tensor]:
        return super().initial_state(num_words), torch.zeros(())

    def step(self, symbols: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple]:
        logits, inner = super().step(symbols, state[0])
        return logits, (inner, state[1] + 1)


def with_wrong_transition(automaton: Automaton, state: int, symbol: int, to: int) -> Automaton:
    """The automaton with one other transition."""
    delta = automaton.delta.copy()
    delta[state, symbol] = to
    return Automaton(delta, automaton.output, start=automaton.start, labels=automaton.labels)


def right_for(automaton: Automaton, steps: int) -> Automaton:
    """The automaton for so many symbols, after which its state stays what it is."""
    num_states = automaton.num_states
    step, state = np.divmod(np.arange((steps + 1) * num_states), num_states)
    delta = automaton.delta[state] + np.minimum(step + 1, steps)[:, None] * num_states
    delta[step == steps] = np.flatnonzero(step == steps)[:, None]
    output = automaton.output[state]
    seen, waiting = {automaton.start: 0}, [automaton.start]
    for place in waiting:
        for target in delta[place].tolist():
            if target not in seen:
                seen[target] = len(seen)
                waiting.append(target)
    new = np.vectorize(seen.__getitem__)
    return Automaton(new(delta[waiting]), output[waiting], labels=automaton.labels)
