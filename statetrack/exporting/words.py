"""Golden words: words with right answers by which a kernel is tested, of every kind that is hard.

Random words; powers of short words; long runs of one symbol; words whose state changes just at the
edges of chunks; and words of lengths around powers of two, at which chunks are cut. Every answer
is the automaton's, and the model gives it too, computed in float64.

W words, T time, C labels, P places of words at which logits are kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from torch import nn

from statetrack.errors import SettingsError
from statetrack.sources import Automaton, Booleans, Floats, Integers

CHUNKS: Final = (16, 32, 64, 128)
"""Lengths of chunks in common kernels."""

SHORT: Final = (1, 2, 3, *(size + more for size in CHUNKS for more in (-1, 0, 1)), 200)
"""Lengths of the random words that are cut where chunks are."""

NUM_RANDOM, NUM_POWERS, NUM_RUNS = 3, 3, 2
LONGEST_PERIOD: Final = 3
MEAN_RUN: Final = 48

SMALLEST_MARGIN: Final = 1e-6
"""The least margin of an answer that float32 can be expected to give."""

MOST_LOGITS: Final = 60_000
"""Most logits that are kept, over all words."""

NOT_ASKED: Final = -1
"""The answer at positions that are not asked for, or that a word does not have."""


@dataclass(frozen=True, eq=False)
class GoldenWords:
    """Words, their right answers, and what the model gives in float64."""

    kinds: tuple[str, ...]
    tokens: Integers
    """`[W, T]`, 0 beyond a word's end."""
    lengths: Integers
    """`[W]`."""
    answers: Integers
    """`[W, T]`, `NOT_ASKED` where there is none."""
    margins: Floats
    """By how much the right logit leads, `[W, T]`; 0 where no answer is asked for."""
    places: Integers
    """Positions whose logits are kept, `[P]`."""
    logits: Floats
    """`[W, P, C]`; those beyond a word's end mean nothing."""

    @property
    def num_answers(self) -> int:
        """How many answers are asked for."""
        return int((self.answers != NOT_ASKED).sum())

    @property
    def margin(self) -> float:
        """The least margin."""
        return float(self.margins[self.answers != NOT_ASKED].min())


def golden_words(model: nn.Module, automaton: Automaton, *, length: int, seed: int) -> GoldenWords:
    """Golden words of a model, which is in float64; the longest have the given length.

    A word ends before the first answer that the model does not give: one that was trained may be
    right up to some length only. Raises `SettingsError` where it is wrong from the start.
    """
    draw = np.random.default_rng(seed)
    kinds, words = zip(*_words(automaton, length, draw), strict=True)
    lengths = np.array([len(word) for word in words])
    tokens = np.zeros((len(words), lengths.max()), np.int64)
    for row, word in zip(tokens, words, strict=True):
        row[: len(word)] = word
    with torch.no_grad():
        logits = model(torch.from_numpy(tokens)).numpy()
    labels, scored = automaton.read(tokens)
    labels = labels.astype(np.int64)
    answers = np.where(scored & (np.arange(tokens.shape[1]) < lengths[:, None]), labels, NOT_ASKED)
    margins = _margins(logits, answers)
    lengths = _right_lengths(margins, answers, lengths)
    kept = lengths > 0
    if not kept.any():
        raise SettingsError(
            "the model answers wrongly on every golden word from its first symbols on: what is "
            "exported has to follow its task; build it, or train it further"
        )
    beyond = np.arange(tokens.shape[1]) >= lengths[:, None]
    answers[beyond], tokens[beyond], margins[beyond] = NOT_ASKED, 0, 0
    longest = int(lengths.max())
    places = _places(longest, MOST_LOGITS // (len(words) * logits.shape[-1]))
    return GoldenWords(
        tuple(kind for kind, keep in zip(kinds, kept, strict=True) if keep),
        tokens[kept, :longest],
        lengths[kept],
        answers[kept, :longest],
        margins[kept, :longest],
        places,
        logits[kept][:, places],
    )


def _words(
    automaton: Automaton, length: int, draw: np.random.Generator
) -> Iterator[tuple[str, list[int]]]:
    for _ in range(NUM_RANDOM):
        yield "random", _followed(automaton, [-1] * length, draw)
    for period in _hardest_periods(automaton):
        word = (period * (length // len(period) + 1))[:length]
        named = " ".join(automaton.symbols[symbol] for symbol in period)
        yield f"power of '{named}'", _followed(automaton, word, draw)
    for _ in range(NUM_RUNS):
        runs: list[int] = []
        while len(runs) < length:
            runs += [int(draw.integers(automaton.num_symbols))] * int(draw.geometric(1 / MEAN_RUN))
        yield "runs", _followed(automaton, runs[:length], draw)
    still = _stillest(automaton)
    for edge in (64, 128):
        word = [-1 if place % edge in (0, edge - 1) else still for place in range(length)]
        yield f"edges of {edge}", _followed(automaton, word, draw)
    for short in SHORT:
        if short <= length:
            yield f"length {short}", _followed(automaton, [-1] * short, draw)


def _followed(automaton: Automaton, wanted: list[int], draw: np.random.Generator) -> list[int]:
    """The wanted symbols, -1 for any; what may not stand in a state is replaced by what may."""
    allowed = [np.flatnonzero(row) for row in automaton.drawable]
    word, state = [], automaton.start
    for symbol in wanted:
        if symbol < 0 or not automaton.drawable[state, symbol]:
            symbol = int(draw.choice(allowed[state]))
        word.append(symbol)
        state = int(automaton.delta[state, symbol])
    return word


def _hardest_periods(automaton: Automaton) -> list[list[int]]:
    """The short words whose powers pass through most states, longest first among equals."""
    periods = [[symbol] for symbol in range(min(automaton.num_symbols, 60))]
    for _ in range(LONGEST_PERIOD - 1):
        if len(periods) * automaton.num_symbols <= 4_000:
            periods += [[*each, more] for each in periods for more in range(automaton.num_symbols)]
    ranked = {tuple(each): _states_passed(automaton, each) for each in periods}
    best = sorted(ranked, key=lambda each: (-ranked[each], -len(set(each)), len(each), each))
    return [list(each) for each in best[:NUM_POWERS]]


def _states_passed(automaton: Automaton, period: list[int]) -> int:
    state, seen = automaton.start, set[int]()
    while state not in seen:
        seen.add(state)
        for symbol in period:
            state = int(automaton.delta[state, symbol])
    return len(seen)


def _stillest(automaton: Automaton) -> int:
    """The symbol that changes the fewest states."""
    moved: Booleans = automaton.delta != np.arange(len(automaton.delta))[:, None]
    return int(moved.sum(0).argmin())


def _margins(logits: Floats, answers: Integers) -> Floats:
    """By how much the right logit leads, 0 where no answer is asked for, -inf where one is NaN."""
    asked = answers != NOT_ASKED
    right = np.where(asked, answers, 0)[..., None]
    others = logits.copy()
    np.put_along_axis(others, right, -np.inf, -1)
    with np.errstate(invalid="ignore"):  # infinite logits: of a state that grew beyond float64
        margins = np.take_along_axis(logits, right, -1)[..., 0] - others.max(-1)
    return np.where(asked, np.nan_to_num(margins, nan=-np.inf, posinf=np.inf), 0.0)


def _right_lengths(margins: Floats, answers: Integers, lengths: Integers) -> Integers:
    """Every word's length, or that before the first position that is not clearly right."""
    wrong = (answers != NOT_ASKED) & (margins < SMALLEST_MARGIN)
    return np.where(wrong.any(1), np.minimum(wrong.argmax(1), lengths), lengths)


def _places(longest: int, most: int) -> Integers:
    """Positions around the edges of chunks, and the last ones: at most so many, at least one."""
    edges = [size * times + off for size in CHUNKS for times in (1, 2) for off in (-1, 0)]
    wanted = [longest - 1, 0, *edges, *range(longest - 2, 0, -1)]
    chosen = list(dict.fromkeys(place for place in wanted if 0 <= place < longest))
    return np.sort(np.array(chosen[: max(1, most)]))
