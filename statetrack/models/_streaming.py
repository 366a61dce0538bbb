"""The methods by which a model of any class reads long words in constant memory.

B words, T time, C labels.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from torch import Tensor


@runtime_checkable
class Scanning(Protocol):
    """A model that reads words piece by piece and passes a state from one to the next."""

    def initial_state(self, num_words: int) -> Any:
        """The state of `num_words` words before their first symbol."""

    def scan(self, symbols: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Logits [B, T, C] and the last state, after symbols [B, T]."""


@runtime_checkable
class Stepping(Protocol):
    """A model that reads words symbol by symbol and passes a state from one to the next."""

    def initial_state(self, num_words: int) -> Any:
        """The state of `num_words` words before their first symbol."""

    def step(self, symbols: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Logits [B, C] and the next state, after one symbol per word, [B]."""
