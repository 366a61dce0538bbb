"""Length generalisation: how right a trained model is on words far longer than it saw.

One pass over words of the longest length gives every shorter one, since models are causal
and a prefix of a random word is a random word. Recurrent models are read in chunks, so memory
does not grow with length. Words of a sampler are drawn whole, for every length anew.

B words, T time, C labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from statetrack.data import Batch, measured_floors, stream_words, whole_words
from statetrack.models._base import RecurrentModel, SequenceModel, State
from statetrack.scoring import Accuracies, Tally, ratio
from statetrack.sources import Source

CHUNK = 1 << 16
"""Words times steps that are read at once: a few tens of megabytes of states."""
WHOLE_CHUNK = 1 << 21
"""Symbols of whole words that are drawn at once, where words come from a sampler."""
HORIZON_ACCURACY = 1.0
"""The accuracy that a horizon asks for: nothing wrong."""


@dataclass(frozen=True)
class Score:
    """How one model did on words of one length; every accuracy is a share between 0 and 1.

    `accuracy` is over the last scored position of each word, with its 95 % Wilson interval
    `low` to `high`; `symbol_accuracy` over all scored positions; `prefix_accuracy` is the
    share of words with every scored position right. `floor` is the accuracy of the best
    constant answer at that length (exact from an automaton, on the words themselves where they
    come from a sampler), `chance` is 1 / C; `scaled` and `scaled_to_floor` put chance, or the
    floor, at 0 and perfection at 1.
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
    source: Source,
    lengths: Sequence[int],
    *,
    num_words: int,
    seed: int,
    device: torch.device,
) -> Iterator[Score]:
    """Score a model at the given lengths (in rising order), on the same words for the same seed.

    Raises `SettingsError` for lengths that are too long for the source.
    """
    assert list(lengths) == sorted(set(lengths)) and num_words > 0, (lengths, num_words)
    source.check_length(lengths[-1])
    if source.prefixes_are_words:
        yield from _score_prefixes(model, source, lengths, num_words, seed, device)
    else:
        floors = source.floors(lengths) or {}
        for length in lengths:
            floor = floors.get(length)
            yield _score_whole_words(model, source, length, floor, num_words, seed, device)


def _score_whole_words(
    model: SequenceModel,
    source: Source,
    length: int,
    floor: float | None,
    num_words: int,
    seed: int,
    device: torch.device,
) -> Score:
    """Words are drawn for this length alone; a floor that is not known is measured on them."""
    model.eval()
    tally = Tally(num_words)
    answers_asked = np.zeros(source.num_labels, np.int64)
    first = 0
    for words in whole_words(source, num_words, length, seed, WHOLE_CHUNK):
        part = tally.part(first, first + len(words))
        first += len(words)
        for right, scored in _read(model, words, device):
            part.add(right, scored)
        answers_asked += np.bincount(words.last_labels(), minlength=source.num_labels)
    if floor is None:
        floor = ratio(int(answers_asked.max()), int(answers_asked.sum()))
    return score_of(length, tally.accuracies(), floor, 1.0 / source.num_labels)


def _score_prefixes(
    model: SequenceModel,
    source: Source,
    lengths: Sequence[int],
    num_words: int,
    seed: int,
    device: torch.device,
) -> Iterator[Score]:
    """One pass over words of the longest length gives every shorter one."""
    floors = source.floors(lengths) or measured_floors(source, lengths, num_words, seed)
    chance = 1.0 / source.num_labels
    tally = Tally(num_words)
    wanted = iter(lengths)
    length, reached = next(wanted), 0
    for right, scored in answers(model, source, lengths[-1], num_words, seed, device):
        start = 0
        while length <= reached + right.shape[1]:
            stop = length - reached
            tally.add(right[:, start:stop], scored[:, start:stop])
            yield score_of(length, tally.accuracies(), floors[length], chance)
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


def score_of(length: int, counted: Accuracies, floor: float, chance: float) -> Score:
    """The score of what was counted up to a length."""
    return Score(
        length=length,
        **asdict(counted),
        floor=floor,
        chance=chance,
        scaled=rescale(counted.accuracy, chance),
        scaled_to_floor=rescale(counted.accuracy, floor),
    )


def rescale(accuracy: float, zero: float) -> float:
    """(accuracy - zero) / (1 - zero); not a number where `zero` is already perfect."""
    return (accuracy - zero) / (1 - zero) if zero < 1 else float("nan")


def answers(
    model: SequenceModel,
    source: Source,
    length: int,
    num_words: int,
    seed: int,
    device: torch.device,
) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.bool_]]]:
    """Whether each answer is right, and whether it counts: chunks [B, T] of the same words."""
    model.eval()
    if isinstance(model, RecurrentModel):
        pieces = stream_words(source, num_words, length, seed, CHUNK)
        yield from _read_in_pieces(model, pieces, device)
    else:
        (words,) = stream_words(source, num_words, length, seed, num_words * length)
        yield _read_whole(model, words, device)


def _read(
    model: SequenceModel, words: Batch, device: torch.device
) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.bool_]]]:
    """The same for whole words, given at once."""
    if isinstance(model, RecurrentModel):
        size = max(1, CHUNK // len(words))
        pieces = (words.cut(first, first + size) for first in range(0, words.longest, size))
        yield from _read_in_pieces(model, pieces, device)
    else:
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
