"""Length generalisation: how right a trained model is on words far longer than it saw.

One pass over words of the longest length gives every shorter one, since models are causal
and a prefix of a random word is a random word. Recurrent models are read in chunks, so memory
does not grow with length.

B words, T time, C labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from statetrack.automata import Automaton, best_constant
from statetrack.data import Batch, stream_words
from statetrack.models._base import RecurrentModel, SequenceModel, State

Z_95 = 1.959963984540054
"""The 97.5 % quantile of the normal distribution, for 95 % intervals."""
CHUNK = 1 << 16
"""Words times steps that are read at once: a few tens of megabytes of states."""
HORIZON_ACCURACY = 1.0
"""The accuracy that a horizon asks for: nothing wrong."""


@dataclass(frozen=True)
class Score:
    """How one model did on words of one length; every accuracy is a share between 0 and 1.

    `accuracy` is over the last scored position of each word, with its 95 % Wilson interval
    `low` to `high`; `symbol_accuracy` over all scored positions; `prefix_accuracy` is the
    share of words with every scored position right. `floor` is the accuracy of the best
    constant answer at that length (exact, from the automaton), `chance` is 1 / C; `scaled`
    and `scaled_to_floor` put chance, or the floor, at 0 and perfection at 1.
    """

    length: int
    sequences: int
    accuracy: float
    low: float
    high: float
    symbol_accuracy: float
    prefix_accuracy: float
    floor: float
    chance: float
    scaled: float
    scaled_to_floor: float


def evaluate(
    model: SequenceModel,
    automaton: Automaton,
    lengths: Sequence[int],
    *,
    num_words: int,
    seed: int,
    device: torch.device,
) -> Iterator[Score]:
    """Score a model at the given lengths (in rising order), on the same words for the same seed."""
    assert list(lengths) == sorted(set(lengths)) and num_words > 0, (lengths, num_words)
    floors = best_constant(automaton, lengths)
    chance = 1.0 / automaton.num_labels
    tally = Tally(num_words)
    wanted = iter(lengths)
    length, reached = next(wanted), 0
    for right, scored in answers(model, automaton, lengths[-1], num_words, seed, device):
        start = 0
        while length <= reached + right.shape[1]:
            stop = length - reached
            tally.add(right[:, start:stop], scored[:, start:stop])
            yield tally.score(length, floors[length], chance)
            start = stop
            length = next(wanted, lengths[-1] + 1)
        tally.add(right[:, start:], scored[:, start:])
        reached += right.shape[1]


def horizon_of(accuracies: Iterable[tuple[int, float]], at_least: float = HORIZON_ACCURACY) -> int:
    """The longest tested length up to which accuracy never falls below `at_least` (0: none).

    `accuracies` are pairs of a length and its accuracy, in rising order. A length at which no
    word counts (its accuracy is not a number) says nothing.
    """
    longest = 0
    for length, accuracy in accuracies:
        if accuracy >= at_least:
            longest = length
        elif accuracy < at_least:
            break
    return longest


class Tally:
    """Counts what was right, word by word, as words are read from left to right."""

    def __init__(self, num_words: int) -> None:
        self.num_right = np.zeros(num_words, np.int64)
        self.num_scored = np.zeros(num_words, np.int64)
        self.last_right = np.zeros(num_words, bool)

    def add(self, right: NDArray[np.bool_], scored: NDArray[np.bool_]) -> None:
        """Add the next positions, [B, T]: whether each was right, and whether it counts."""
        if not right.shape[1]:
            return
        self.num_right += (right & scored).sum(1)
        self.num_scored += scored.sum(1)
        last = right.shape[1] - 1 - scored[:, ::-1].argmax(1)
        some = scored.any(1)
        rows = np.flatnonzero(some)
        self.last_right[rows] = right[rows, last[rows]]

    def score(self, length: int, floor: float, chance: float) -> Score:
        """The score of everything read so far. Words with no scored position do not count."""
        counted = self.num_scored > 0
        total = int(counted.sum())
        hits = int(self.last_right[counted].sum())
        accuracy = share(hits, total)
        low, high = wilson(hits, total)
        return Score(
            length=length,
            sequences=total,
            accuracy=accuracy,
            low=low,
            high=high,
            symbol_accuracy=share(self.num_right.sum(), self.num_scored.sum()),
            prefix_accuracy=share((self.num_right == self.num_scored)[counted].sum(), total),
            floor=floor,
            chance=chance,
            scaled=rescale(accuracy, chance),
            scaled_to_floor=rescale(accuracy, floor),
        )


def share(part: int, total: int) -> float:
    """The part's share of the total; not a number where there is nothing to share."""
    return float(part / total) if total else float("nan")


def rescale(accuracy: float, zero: float) -> float:
    """(accuracy - zero) / (1 - zero); not a number where `zero` is already perfect."""
    return (accuracy - zero) / (1 - zero) if zero < 1 else float("nan")


def wilson(hits: int, total: int) -> tuple[float, float]:
    """The 95 % score interval of a share (Wilson 1927, doi:10.1080/01621459.1927.10502953)."""
    if not total:
        return float("nan"), float("nan")
    p, z2 = hits / total, Z_95**2
    centre = (p + z2 / (2 * total)) / (1 + z2 / total)
    half = Z_95 / (1 + z2 / total) * (p * (1 - p) / total + z2 / (4 * total**2)) ** 0.5
    return max(0.0, centre - half), min(1.0, centre + half)


def answers(
    model: SequenceModel,
    automaton: Automaton,
    length: int,
    num_words: int,
    seed: int,
    device: torch.device,
) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.bool_]]]:
    """Whether each answer is right, and whether it counts: chunks [B, T] of the same words."""
    model.eval()
    if isinstance(model, RecurrentModel):
        pieces = stream_words(automaton, num_words, length, seed, CHUNK)
        yield from _read_in_pieces(model, pieces, device)
    else:
        (words,) = stream_words(automaton, num_words, length, seed, num_words * length)
        yield _read_whole(model, words, device)


@torch.no_grad()
def _read_in_pieces(
    model: RecurrentModel, pieces: Iterable[Batch], device: torch.device
) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.bool_]]]:
    """Models with a state carry it from piece to piece."""
    state: State | None = None
    for words in pieces:
        if state is None:
            state = model.initial_state(len(words))
        logits, state = model.scan(_tensor(words.symbols, device), state)
        yield _compare(logits, words.labels), words.scored


@torch.no_grad()
def _read_whole(
    model: SequenceModel, words: Batch, device: torch.device
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Models without a state read whole words, a few at a time."""
    at_once = max(1, CHUNK // words.symbols.shape[1])
    parts = [words[row : row + at_once] for row in range(0, len(words), at_once)]
    right = [_compare(model(_tensor(part.symbols, device)), part.labels) for part in parts]
    return np.concatenate(right), words.scored


def _tensor(symbols: NDArray[np.integer], device: torch.device) -> Tensor:
    return torch.from_numpy(symbols.astype(np.int64)).to(device)


def _compare(logits: Tensor, labels: NDArray[np.integer]) -> NDArray[np.bool_]:
    guesses = logits.argmax(-1).cpu().numpy()
    return np.asarray(guesses == labels)
