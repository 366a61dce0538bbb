"""Test words that a model answers wrongly, each with what stands around its first wrong answer.

The words are those of `evaluate`, read once more in the same pieces; so memory does not grow with
their length.

B words, T time, C labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from statetrack.data import stream_words, whole_words
from statetrack.evaluation import CHUNK, WHOLE_CHUNK
from statetrack.evidence.subject import NO_ANSWER, Reader, Subject
from statetrack.sources import Batch, Source

BEFORE, AFTER = 12, 4
"""How many symbols are shown before the first wrong answer, and after it."""


@dataclass(frozen=True)
class Window:
    """A part of a word around its first wrong answer, at `position` from 1 in the whole word.

    `begin` is the position of the first symbol of the part. A label is None where none is asked
    for, an answer where the logits are not all finite. `word` is the number of the word among the
    test words.
    """

    word: int
    position: int
    begin: int
    symbols: tuple[int, ...]
    labels: tuple[int | None, ...]
    answers: tuple[int | None, ...]

    @property
    def label(self) -> int | None:
        """What is right at the position."""
        return self.labels[self.position - self.begin]

    @property
    def answer(self) -> int | None:
        """What the model says there."""
        return self.answers[self.position - self.begin]


@dataclass(frozen=True)
class FailingWords:
    """Of `words` test words of one `length`, those with a wrong answer: `failing` in number.

    `shown` are some of them, the earliest first wrong answer first.
    """

    length: int
    words: int
    failing: int
    shown: tuple[Window, ...]


def find_failing_words(
    model: nn.Module,
    source: Source,
    length: int,
    *,
    num_words: int,
    seed: int,
    most: int,
    device: torch.device | None = None,
) -> FailingWords:
    """The test words of `evaluate` that are answered wrongly; at most so many of them are shown."""
    reader = Reader(
        model, num_symbols=source.num_symbols, num_labels=source.num_labels, device=device
    )
    windows: list[Window] = []
    failing = first = 0
    for pieces, count in _batches(reader, source, num_words, length, seed):
        found, wrong = _read(reader, pieces, first, most)
        failing += wrong
        first += count
        windows = sorted([*windows, *found], key=lambda one: (one.position, one.word))[:most]
    return FailingWords(length, num_words, failing, tuple(windows))


def window_of(subject: Subject, word: NDArray[np.integer], position: int) -> Window:
    """What stands around a position of one word."""
    rows = np.asarray(word, np.int64)[None]
    labels, scored = subject.automaton.read(rows)
    whole = _Piece(1, rows, labels.astype(np.int64), scored, subject.answers(rows))
    return whole.window(0, 0, position)


def _batches(
    reader: Reader, source: Source, num_words: int, length: int, seed: int
) -> Iterator[tuple[Iterable[Batch], int]]:
    """Test words in consecutive pieces, and how many of them."""
    if source.prefixes_are_words:
        chunk = CHUNK if reader.has_state else num_words * length
        yield stream_words(source, num_words, length, seed, chunk), num_words
        return
    for words in whole_words(source, num_words, length, seed, WHOLE_CHUNK):
        size = max(1, CHUNK // len(words)) if reader.has_state else length
        yield (words.cut(at, at + size) for at in range(0, length, size)), len(words)


@dataclass(frozen=True)
class _Piece:
    """Some positions of all words: symbols, labels, whether they are asked for, answers [B, T]."""

    begin: int
    symbols: NDArray[np.int64]
    labels: NDArray[np.int64]
    scored: NDArray[np.bool_]
    answers: NDArray[np.int64]

    def followed_by(self, other: _Piece) -> _Piece:
        """The last positions that a window may show, joined with the next piece."""
        first = max(0, self.symbols.shape[1] - BEFORE - AFTER)
        return _Piece(
            self.begin + first,
            np.concatenate([self.symbols[:, first:], other.symbols], 1),
            np.concatenate([self.labels[:, first:], other.labels], 1),
            np.concatenate([self.scored[:, first:], other.scored], 1),
            np.concatenate([self.answers[:, first:], other.answers], 1),
        )

    def window(self, row: int, word: int, position: int) -> Window:
        """What stands around a position of the word in a row, whose number is `word`."""
        begin = max(self.begin, position - BEFORE)
        part = slice(begin - self.begin, position + AFTER + 1 - self.begin)
        labels = zip(self.labels[row, part].tolist(), self.scored[row, part], strict=True)
        return Window(
            word,
            position,
            begin,
            tuple(self.symbols[row, part].tolist()),
            tuple(label if asked else None for label, asked in labels),
            tuple(
                None if answer == NO_ANSWER else answer
                for answer in self.answers[row, part].tolist()
            ),
        )


def _read(
    reader: Reader, pieces: Iterable[Batch], first: int, most: int
) -> tuple[list[Window], int]:
    """The earliest windows of some words, numbered from `first`, and how many words fail."""
    wrong_at: NDArray[np.int64] | None = None
    chosen: dict[int, int] = {}  # the words that are shown, and where they fail
    windows: dict[int, Window] = {}
    held: _Piece | None = None
    for piece in _answered(reader, pieces):
        held = piece if held is None else held.followed_by(piece)
        wrong = (piece.answers != piece.labels) & piece.scored
        wrong_at = np.zeros(len(wrong), np.int64) if wrong_at is None else wrong_at
        new = np.flatnonzero(wrong.any(1) & (wrong_at == 0))
        wrong_at[new] = piece.begin + wrong[new].argmax(1)
        earliest = new[np.argsort(wrong_at[new], kind="stable")][: most - len(chosen)]
        chosen |= {int(word): int(wrong_at[word]) for word in earliest}
        for word, position in chosen.items():
            if position >= piece.begin - AFTER:  # else its window was whole before
                windows[word] = held.window(word, first + word, position)
    failing = 0 if wrong_at is None else int((wrong_at > 0).sum())
    return list(windows.values()), failing


def _answered(reader: Reader, pieces: Iterable[Batch]) -> Iterator[_Piece]:
    """The pieces with the model's answers; positions count from 1."""
    begin, state = 1, None
    for piece in pieces:
        if reader.has_state:
            state = reader.first(len(piece)) if state is None else state
            logits, state = reader.scan(piece.symbols.astype(np.int64), state)
            answers = reader.answers_of(logits)
        else:
            answers = reader.answers(piece.symbols.astype(np.int64))
        yield _Piece(
            begin,
            piece.symbols.astype(np.int64),
            piece.labels.astype(np.int64),
            piece.scored,
            answers,
        )
        begin += piece.longest
