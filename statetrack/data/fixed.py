"""A fixed set of words to train on, epoch after epoch, and one held out from it.

This is what a data-efficiency curve needs: how well is a task learned from N words?

Letters: N batches in a block, B words per batch, T time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from statetrack.automata import Automaton
from statetrack.data.batch import Batch, Supervision, label
from statetrack.data.distinct import Words, draw_distinct
from statetrack.data.lengths import LengthDistribution
from statetrack.data.randomness import RandomBits

_HELD_OUT_CHOICE = 1


def fixed_words(
    automaton: Automaton,
    lengths: LengthDistribution,
    supervision: Supervision,
    num_train: int,
    num_held_out: int,
    seed: int,
) -> tuple[Batch, Batch]:
    """A training and a held-out set, `[num_train, T]` and `[num_held_out, T]`, all words different.

    Both follow the same law: together they are drawn without repetition by the lengths and the
    automaton's weights, and which of them are held out is chosen blindly.

    Raises `SettingsError` where there are not as many words.
    """
    assert num_train > 0 and num_held_out >= 0, (num_train, num_held_out)
    words = draw_distinct(automaton, lengths, num_train + num_held_out, seed)
    train, held_out = divide(words, num_held_out, seed)
    return (
        label(automaton, train.symbols, train.lengths, supervision),
        label(automaton, held_out.symbols, held_out.lengths, supervision),
    )


def divide(words: Words, num_held_out: int, seed: int) -> tuple[Words, Words]:
    """The words parted blindly in two, the second of `num_held_out`; each keeps its order."""
    bits = RandomBits(seed, "shuffle", _HELD_OUT_CHOICE).read(0, len(words.lengths))
    is_held_out = np.zeros(len(bits), np.bool_)
    is_held_out[np.argsort(bits, kind="stable")[:num_held_out]] = True
    return words.take(np.flatnonzero(~is_held_out)), words.take(np.flatnonzero(is_held_out))


class FixedStream:
    """Batches of one fixed set of words, in a new order every epoch.

    Epochs follow each other without a gap: a batch may end one and begin the next, and may be
    larger than the set. `progress` changes nothing: all words are there from the first batch on.
    """

    def __init__(self, words: Batch, seed: int) -> None:
        assert words.lengths.ndim == 1 and len(words) > 0, words.lengths.shape
        self._words = words
        self._bits = RandomBits(seed, "shuffle")
        self._epochs = range(0)
        self._orders: NDArray[np.int64] = np.empty((0, len(words)), np.int64)

    def block(
        self,
        first: int,
        num_batches: int,
        batch_size: int,
        progress: float | NDArray[np.float64] = 1.0,
    ) -> Batch:
        """The batches `first .. first + num_batches - 1`: arrays `[N, B, T]`."""
        num_words = len(self._words)
        begin, end = first * batch_size, (first + num_batches) * batch_size
        epochs = range(begin // num_words, (end - 1) // num_words + 1)
        offset = begin - epochs.start * num_words
        chosen = self._in_order(epochs).reshape(-1)[offset : offset + end - begin]
        return self._words[chosen.reshape(num_batches, batch_size)]

    def _in_order(self, epochs: range) -> NDArray[np.int64]:
        """The words' indices in the order of each epoch, `[epochs, words]`; the last are kept."""
        if epochs != self._epochs:
            num_words = len(self._words)
            bits = self._bits.read(epochs.start * num_words, len(epochs) * num_words)
            self._orders = np.argsort(bits.reshape(len(epochs), num_words), kind="stable")
            self._epochs = epochs
        return self._orders
