"""Length generalisation: the accuracy of a trained model on words longer than those of training.

One pass over words of the longest length gives the scores of all shorter lengths, since models are
causal and a prefix of a random word is a random word. A model with a state reads words in chunks,
and no more words at once than have states that fit into memory, so that it grows neither with
length nor with the number of words. Where the source's words are not closed under prefixes,
separate words are drawn for every length.

An answer is right only where all its logits are finite.

B words, T time, C labels.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from statetrack.data import measured_floors, stream_words, whole_words
from statetrack.errors import SettingsError, StatetrackWarning
from statetrack.models import (
    Rounded,
    Scanning,
    Stepping,
    numbers_in,
    reading,
    require_initialised,
    require_logits,
    require_module,
)
from statetrack.ops import in_threads
from statetrack.rounding import Rounding, load_rounding
from statetrack.scoring import Counts, Score, Tally, ratio, score_of
from statetrack.settings import require_seed, require_whole
from statetrack.sources import Batch, Source
from statetrack.spec import Task, load_task
from statetrack.training import LONGEST, answers_of, warn_of_later_symbols

CHUNK = 1 << 16
"""Words times steps that are read at once: a few tens of megabytes of states."""
WHOLE_CHUNK = 1 << 21
"""Symbols of whole words that are drawn at once, where the source is a sampler."""
STATE_NUMBERS = 1 << 26
"""Numbers of states that words which are read at once have together: a quarter of a gigabyte."""


MOST_WORDS = 10**9
"""The most test words."""


class Answers(NamedTuple):
    """The answers at the next positions of some words.

    `nonfinite` is the first of these positions, from 0, at which the logits of any word are not all
    finite; None where they are.
    """

    right: NDArray[np.bool_]  # [B, T]
    scored: NDArray[np.bool_]  # [B, T]
    nonfinite: int | None


def evaluate(
    model: nn.Module,
    task: Task | str | Path | Source,
    lengths: Sequence[int] | int,
    *,
    num_words: int = 2000,
    seed: int = 0,
    device: torch.device | str | None = None,
    threads: int = 0,
    rounding: Rounding | str | Path | None = None,
) -> Iterator[Score]:
    """Score any module from symbols [B, T] to logits [B, T, C] at each length, in rising order.

    `task` is a task, its name, or its source. The `num_words` test words are the same for the same
    seed, and are drawn apart from those of training. Only those that are longer are new to the
    model: short ones may occur in training too. A model with `initial_state` and `scan`
    or `step` reads long words in constant memory. Words are put on `device`, by default that of the
    model's first parameter, and computed with `threads` of the CPU, by default one for a module of
    less than a million weights, as in runs. An answer whose logits are not all finite is wrong, and
    the score says from which position there are such (`nonfinite_from`). The model runs in
    evaluation mode, and its mode is restored afterwards. `rounding` is a rounding model under which
    it is computed, its name, a type of the state or a file.

    Raises `SettingsError` for what is no module, where there are no lengths or words, for lengths
    that are no numbers or too long for the source, for what is no seed, where the module does not
    read the task's symbols or the number of labels of the logits is not that of the task, and for
    casts that the model has no place for. Warns, once each, where logits depend on later symbols,
    and where they are not finite.
    """
    asked = _Asked.of(model, task, lengths, num_words, seed, device, rounding)
    return in_threads(_warning(asked, asked.scores(num_words, seed)), threads, asked.num_weights)


def scored(
    model: nn.Module,
    task: Task | str | Path | Source,
    lengths: Sequence[int] | int,
    *,
    num_words: int = 2000,
    seed: int = 0,
    device: torch.device | str | None = None,
    threads: int = 0,
    rounding: Rounding | str | Path | None = None,
) -> Iterator[Score]:
    """What `evaluate` yields, without its warnings: for a model that was looked at before."""
    asked = _Asked.of(model, task, lengths, num_words, seed, device, rounding)
    return in_threads(asked.scores(num_words, seed), threads, asked.num_weights)


def _warning(asked: _Asked, scores: Iterator[Score]) -> Iterator[Score]:
    """The scores; with a warning where what they say of the model is not what it seems."""
    if not asked.reader.streams:  # what is read piece by piece sees no later symbol
        with _evaluating(asked.model):
            length = min(asked.lengths[-1], LONGEST)
            words = torch.arange(2 * length).view(2, length) % asked.source.num_symbols
            source = asked.source
            warn_of_later_symbols(
                asked.model, words.to(asked.device), source.num_symbols, source.num_labels
            )
    told = False
    for score in scores:
        if score.nonfinite_from is not None and not told:
            told = True
            warnings.warn(
                f"logits are NaN or infinite from position {score.nonfinite_from:,} on: such "
                "answers count as wrong",
                StatetrackWarning,
                stacklevel=3,
            )
        yield score


@dataclass(frozen=True)
class _Asked:
    """A model, with what reads words with it, and the source and lengths that it is scored on."""

    model: nn.Module
    source: Source
    lengths: list[int]
    device: torch.device
    reader: _Reader

    @classmethod
    def of(
        cls,
        model: nn.Module,
        task: Task | str | Path | Source,
        lengths: Sequence[int] | int,
        num_words: int,
        seed: int,
        device: torch.device | str | None,
        rounding: Rounding | str | Path | None,
    ) -> _Asked:
        """Raises `SettingsError` as `evaluate` says."""
        module = require_module(model, "evaluate")
        require_initialised(module, "evaluate")
        rising = rising_lengths(lengths, "evaluate")
        require_words(num_words, seed, "evaluate")
        source = load_task(task).source if isinstance(task, Task | str | Path) else task
        source.check_length(rising[-1])
        if rounding is not None:
            module = Rounded(module, load_rounding(rounding))
        source = source.part("test")
        on = torch.device(device) if device is not None else _device_of(module)
        return cls(module, source, rising, on, _Reader(module, source, on))

    @property
    def num_weights(self) -> int:
        """The number of the model's weights."""
        return sum(parameter.numel() for parameter in self.model.parameters())

    def scores(self, num_words: int, seed: int) -> Iterator[Score]:
        """The scores on words of a seed, in evaluation mode."""
        source, lengths = self.source, self.lengths
        with _evaluating(self.model):
            if source.prefixes_are_words:
                yield from _score_prefixes(self.reader, source, lengths, num_words, seed)
            else:
                floors = source.floors(lengths) or {}
                for length in lengths:
                    floor = floors.get(length)
                    yield _score_whole_words(self.reader, source, length, floor, num_words, seed)


def rising_lengths(lengths: Sequence[int] | int, where: str) -> list[int]:
    """The different lengths in rising order; one number is one length.

    Raises `SettingsError` where there are none, and for what is no length.
    """
    given = [lengths] if isinstance(lengths, int) else lengths
    wrong = isinstance(given, str) or not isinstance(given, Iterable)
    numbers = [] if wrong else list(given)
    if wrong or any(isinstance(each, bool | str | float) for each in numbers):
        raise SettingsError(f"{where}: lengths {lengths!r}: write whole numbers, as in [10, 500]")
    if not numbers or min(numbers) < 1:
        raise SettingsError(f"{where}: lengths {numbers}: give one length or more, each from 1 on")
    return sorted({int(each) for each in numbers})


def require_words(num_words: int, seed: int, where: str) -> None:
    """Raise `SettingsError` unless words are to be drawn, and from a seed."""
    require_whole("num_words", num_words, where, least=1, most=MOST_WORDS)
    require_seed(seed, where)


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    before = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(before)


def _device_of(model: nn.Module) -> torch.device:
    """The device of the first parameter; the CPU for a model without parameters."""
    return next((parameter.device for parameter in model.parameters()), torch.device("cpu"))


def _score_whole_words(
    reader: _Reader, source: Source, length: int, floor: float | None, num_words: int, seed: int
) -> Score:
    """Score separate words of this length; without a known floor, it is measured on them."""
    tally = Tally(num_words)
    answers_asked = np.zeros(source.num_labels, np.int64)
    first, nonfinite = 0, None
    at_once = min(WHOLE_CHUNK, length * reader.words_at_once)
    for words in whole_words(source, num_words, length, seed, at_once):
        part = tally.part(first, first + len(words))
        first += len(words)
        reached = 0
        for answers in reader.read(words):
            part.add(answers.right, answers.scored)
            nonfinite = _earlier(nonfinite, answers.nonfinite, reached + 1)
            reached += answers.right.shape[1]
        answers_asked += np.bincount(words.last_labels(), minlength=source.num_labels)
    if floor is None:
        floor = ratio(int(answers_asked.max()), int(answers_asked.sum()))
    return score_of(length, tally.accuracies(), floor, 1.0 / source.num_labels, nonfinite)


def _score_prefixes(
    reader: _Reader, source: Source, lengths: Sequence[int], num_words: int, seed: int
) -> Iterator[Score]:
    """Score every length in one pass over words of the longest, for some words after the other."""
    floors = source.floors(lengths) or measured_floors(source, lengths, num_words, seed)
    chance = 1.0 / source.num_labels
    size = reader.words_at_once
    groups = [slice(first, first + size) for first in range(0, num_words, size)]
    chunk = CHUNK * len(groups) if reader.streams else num_words * lengths[-1]
    counts: dict[int, Counts] = {}
    broken: dict[int, int | None] = {}
    for rows in groups:
        pieces = (
            words[rows] for words in stream_words(source, num_words, lengths[-1], seed, chunk)
        )
        tally = Tally(min(size, num_words - rows.start))
        for length, found, nonfinite in _count_prefixes(reader, pieces, lengths, tally):
            counts[length] = counts[length] + found if length in counts else found
            broken[length] = _earlier(broken.get(length), nonfinite, 0)
            if rows is groups[-1]:
                accuracies = counts[length].accuracies()
                yield score_of(length, accuracies, floors[length], chance, broken[length])


def _count_prefixes(
    reader: _Reader, pieces: Iterable[Batch], lengths: Sequence[int], tally: Tally
) -> Iterator[tuple[int, Counts, int | None]]:
    """What is right up to each length, and the first position without finite logits, if any."""
    wanted = iter(lengths)
    length, reached, nonfinite = next(wanted), 0, None
    for right, scored, broken in reader.read_pieces(pieces):
        nonfinite = _earlier(nonfinite, broken, reached + 1)
        start = 0
        while length <= reached + right.shape[1]:
            stop = length - reached
            tally.add(right[:, start:stop], scored[:, start:stop])
            yield length, tally.counts(), nonfinite
            start = stop
            length = next(wanted, lengths[-1] + 1)
        tally.add(right[:, start:], scored[:, start:])
        reached += right.shape[1]


def _earlier(position: int | None, found: int | None, offset: int) -> int | None:
    """The earlier of a position and one that was found `offset` after where it is counted from."""
    if found is None:
        return position
    return found + offset if position is None else min(position, found + offset)


class _Reader:
    """Reads words with a model: piece by piece where it has a state, else a few words at a time."""

    def __init__(self, model: nn.Module, source: Source, device: torch.device) -> None:
        self._model = model
        self._num_symbols, self._num_labels = source.num_symbols, source.num_labels
        self._device = device
        self._stream = stream_of(model)

    @property
    def streams(self) -> bool:
        """Whether words can be read piece by piece."""
        return self._stream is not None

    @cached_property
    def words_at_once(self) -> int:
        """As many words as have states that fit into memory, and any number without a state."""
        if self._stream is None:
            return STATE_NUMBERS
        first, _ = self._stream
        return max(1, STATE_NUMBERS // max(1, numbers_in(first(1))))

    def read(self, words: Batch) -> Iterator[Answers]:
        """The answers on whole words."""
        if not self.streams:
            return self.read_pieces([words])
        size = max(1, CHUNK // len(words))
        return self.read_pieces(
            words.cut(first, first + size) for first in range(0, words.longest, size)
        )

    def read_pieces(self, pieces: Iterable[Batch]) -> Iterator[Answers]:
        """The answers on consecutive pieces of the same words; without a state, on one piece."""
        if self._stream is None:
            (words,) = pieces
            yield self._read_whole(words)
            return
        first, scan = self._stream
        state = None
        for words in pieces:
            with torch.no_grad(), reading(self._model, self._num_symbols):
                if state is None:
                    state = first(len(words))
                logits, state = scan(self._tensor(words.symbols), state)
                answers = self._compare(logits, words)
            yield answers

    @torch.no_grad()
    def _read_whole(self, words: Batch) -> Answers:
        at_once = max(1, CHUNK // words.longest)
        parts = [words[row : row + at_once] for row in range(0, len(words), at_once)]
        with reading(self._model, self._num_symbols):
            read = [self._compare(self._model(self._tensor(part.symbols)), part) for part in parts]
        nonfinite = None
        for answers in read:
            nonfinite = _earlier(nonfinite, answers.nonfinite, 0)
        return Answers(np.concatenate([each.right for each in read]), words.scored, nonfinite)

    def _tensor(self, symbols: NDArray[np.integer]) -> Tensor:
        return torch.from_numpy(symbols.astype(np.int64)).to(self._device)

    def _compare(self, given: Any, words: Batch) -> Answers:
        labels = words.labels
        logits = require_logits(given, labels.shape, self._num_labels)
        if _all_finite(logits):
            right = np.asarray(logits.max(-1).indices.cpu().numpy() == labels)
            return Answers(right, words.scored, None)
        answers, finite = (part.cpu().numpy() for part in answers_of(logits))
        return Answers((answers == labels) & finite, words.scored, int(finite.all(0).argmin()))


def _all_finite(logits: Tensor) -> bool:
    """Whether no logit is NaN or infinite: both show in the smallest or in the largest one."""
    return not logits.numel() or all(bool(one.isfinite()) for one in torch.aminmax(logits))


Stream = tuple[Callable[[int], Any], Callable[[Tensor, Any], tuple[Tensor, Any]]]
"""`initial_state` of a number of words, and `scan`, which reads a piece from a state."""


def stream_of(model: nn.Module) -> Stream | None:
    """The functions by which a model reads words piece by piece; None without a state."""
    if isinstance(model, Scanning):
        return model.initial_state, model.scan
    if not isinstance(model, Stepping):
        return None
    step = model.step

    def scan(symbols: Tensor, state: Any) -> tuple[Tensor, Any]:
        logits = []
        for symbol in symbols.unbind(1):
            output, state = step(symbol, state)
            logits.append(output)
        return torch.stack(logits, 1), state

    return model.initial_state, scan
