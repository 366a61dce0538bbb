"""Words no two of which are equal: how many there are, all of them, or some drawn at random.

Letters: N words, T time, S states, V symbols.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from statetrack.automata import Automaton
from statetrack.data.batch import PADDING, Unsigned, smallest_type
from statetrack.data.lengths import LengthDistribution
from statetrack.data.randomness import RandomBits
from statetrack.data.words import SymbolSampler
from statetrack.errors import SettingsError

UNCOUNTABLE: Final = 2**53
"""Where counting words stops: `count_words` returns this for any number as large or larger."""

_ALWAYS_LISTED = 2**16
_DRAWN_PER_WORD = 100
_DRAWN_AT_ONCE = 2**24


class Words(NamedTuple):
    """Unlabelled words, padded at the end."""

    symbols: Unsigned  # [N, T]
    lengths: NDArray[np.int64]  # [N]

    def take(self, index: NDArray[np.integer]) -> Words:
        """The words at `index`, in that order."""
        return Words(self.symbols[index], self.lengths[index])

    def keys(self) -> list[bytes]:
        """A name for every word: equal where and only where the words are equal."""
        return [
            row[:length].tobytes() for row, length in zip(self.symbols, self.lengths, strict=True)
        ]


def count_words(automaton: Automaton, lengths: LengthDistribution) -> int:
    """How many words of these lengths may be drawn (no weight 0 on their way).

    Returns `UNCOUNTABLE` where there are at least as many.
    """
    allowed = automaton.weights > 0
    targets = automaton.delta[allowed]
    ends_in = np.zeros(automaton.num_states)  # words of the present length that end there: [S]
    ends_in[automaton.start] = 1
    total = 0.0
    for length in range(1, lengths.longest + 1):
        continued = np.broadcast_to(ends_in[:, None], allowed.shape)[allowed]
        ends_in = np.zeros(automaton.num_states)
        np.add.at(ends_in, targets, continued)
        if ends_in.sum() >= UNCOUNTABLE:
            return UNCOUNTABLE  # every word can be continued: longer ones are no fewer
        if length >= lengths.shortest:
            total += float(ends_in.sum())
    return int(min(total, UNCOUNTABLE))


def list_words(
    automaton: Automaton, lengths: LengthDistribution
) -> tuple[Words, NDArray[np.float64]]:
    """All words of these lengths that may be drawn, and how likely each is: `[N]`, sum 1.

    In order of length, then of symbols. The caller makes sure with `count_words` that they fit.
    """
    words = np.zeros((1, 0), smallest_type(automaton.num_symbols))
    states = np.array([automaton.start])
    chances = np.array([1.0 / lengths.num_lengths])
    found: list[Unsigned] = []
    likely: list[NDArray[np.float64]] = []
    for length in range(1, lengths.longest + 1):
        parents, drawn = np.nonzero(automaton.weights[states] > 0)
        chances = chances[parents] * automaton.weights[states[parents], drawn]
        words = np.column_stack([words[parents], drawn.astype(words.dtype)])
        states = automaton.delta[states[parents], drawn]
        if length >= lengths.shortest:
            found.append(_padded(words, lengths.longest))
            likely.append(chances)
    counts = [len(words) for words in found]
    all_lengths = np.repeat(np.arange(lengths.shortest, lengths.longest + 1), counts)
    return Words(np.concatenate(found), all_lengths), np.concatenate(likely)


def draw_distinct(
    automaton: Automaton,
    lengths: LengthDistribution,
    num_words: int,
    seed: int,
    *,
    variant: int = 0,
    excluded: Set[bytes] = frozenset(),
) -> Words:
    """`num_words` words drawn one after the other, each from those not yet drawn or `excluded`.

    The law is that of drawing words by length and weights and leaving out every one that was
    there before. Where words are few all are listed, each with an exponential variate over its
    probability as its key, and the smallest keys taken, which has the same law (Efraimidis and
    Spirakis, 2006); otherwise repeated words are just drawn again. `variant` tells apart draws of
    one seed.

    Raises `SettingsError` where there are not as many words, or too unlikely ones.
    """
    among = count_words(automaton, lengths)
    step = smallest_type(automaton.num_symbols).itemsize
    taken = sum(lengths.shortest <= len(key) // step <= lengths.longest for key in excluded)
    if among - taken < num_words:
        left = f" ({taken} of them are in use elsewhere)" if taken else ""
        raise SettingsError(
            f"{num_words} different words of length {lengths} are asked for, "
            f"but there are only {among}{left}: ask for fewer or for other lengths"
        )
    bits = RandomBits(seed, "distinct", variant)
    if among <= max(_ALWAYS_LISTED, 4 * (num_words + taken)):
        return _draw_from_list(automaton, lengths, num_words, bits, excluded)
    return _draw_until_new(automaton, lengths, num_words, bits, excluded)


def _draw_from_list(
    automaton: Automaton,
    lengths: LengthDistribution,
    num_words: int,
    bits: RandomBits,
    excluded: Set[bytes],
) -> Words:
    words, chances = list_words(automaton, lengths)
    keys = -np.log((bits.read(0, len(chances)) + 0.5) / 2**32) / chances
    order = np.argsort(keys, kind="stable")
    if excluded:
        is_free = np.array([key not in excluded for key in words.keys()])
        order = order[is_free[order]]
    return words.take(order[:num_words])


def _draw_until_new(
    automaton: Automaton,
    lengths: LengthDistribution,
    num_words: int,
    bits: RandomBits,
    excluded: Set[bytes],
) -> Words:
    width = 1 + lengths.longest
    sampler = SymbolSampler(automaton)
    seen = set(excluded)
    parts: list[Words] = []
    num_found = num_drawn = 0
    while num_found < num_words:
        if num_drawn > _DRAWN_PER_WORD * num_words:
            raise SettingsError(
                f"{num_words} different words of length {lengths} are asked for, but only "
                f"{num_found} came up in {num_drawn} draws, the rest being too unlikely: "
                "ask for fewer or for other lengths"
            )
        size = max(1, min(num_words - num_found, _DRAWN_AT_ONCE // width))
        drawn = bits.read(num_drawn * width, size * width).reshape(size, width)
        num_drawn += size
        word_lengths = lengths.draw(drawn[:, 0])
        symbols = sampler.draw(drawn[:, 1:])
        symbols[np.arange(lengths.longest) >= word_lengths[:, None]] = PADDING
        words = Words(symbols, word_lengths)
        new = _new_ones(words, seen)[: num_words - num_found]
        parts.append(words.take(new))
        num_found += len(new)
    return Words(
        np.concatenate([part.symbols for part in parts]),
        np.concatenate([part.lengths for part in parts]),
    )


def _new_ones(words: Words, seen: set[bytes]) -> NDArray[np.int64]:
    """The indices of the words that are not in `seen`, each equal word once; enters them there."""
    new: list[int] = []
    for index, key in enumerate(words.keys()):
        if key not in seen:
            seen.add(key)
            new.append(index)
    return np.array(new, np.int64)


def _padded(words: Unsigned, longest: int) -> Unsigned:
    return np.pad(words, ((0, 0), (0, longest - words.shape[1])), constant_values=PADDING)
