"""Words no two of which are equal: how many there are, all of them, or some drawn at random.

Letters: N words, T time, S states, V symbols.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from statetrack.data.batch import PADDING
from statetrack.data.lengths import LengthDistribution
from statetrack.data.randomness import RandomBits
from statetrack.data.words import WordSampler
from statetrack.errors import SettingsError
from statetrack.sources import Automaton, Sampler, Source
from statetrack.sources.running import Unsigned, smallest_type

UNCOUNTABLE: Final = 2**53
"""Where counting words stops: `count_words` returns this for any number as large or larger."""

_ALWAYS_LISTED = 2**16
_DRAWN_PER_WORD = 100
_DRAWN_AT_LEAST = 2**10
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
    """How many words of these lengths may be drawn.

    Returns `UNCOUNTABLE` where there are at least as many.
    """
    allowed = automaton.drawable
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
        parents, drawn = np.nonzero(automaton.drawable[states])
        chances = chances[parents] * automaton.chances_at(length - 1)[states[parents], drawn]
        words = np.column_stack([words[parents], drawn.astype(words.dtype)])
        states = automaton.delta[states[parents], drawn]
        if length >= lengths.shortest:
            found.append(_padded(words, lengths.longest))
            likely.append(chances)
    counts = [len(words) for words in found]
    all_lengths = np.repeat(np.arange(lengths.shortest, lengths.longest + 1), counts)
    return Words(np.concatenate(found), all_lengths), np.concatenate(likely)


def has_words(machine: Source, lengths: LengthDistribution, num_words: int, seed: int) -> bool:
    """Whether `draw_distinct` finds so many words of these lengths.

    Words of an automaton are counted; those of a sampler cannot be, and are drawn to see.
    """
    if isinstance(machine, Automaton):
        return count_words(machine, lengths) >= num_words
    bits = RandomBits(seed, "distinct")
    return len(_draw_until_new(machine, lengths, num_words, bits, frozenset()).lengths) == num_words


def list_drawn_words(
    sampler: Sampler, lengths: LengthDistribution, seed: int
) -> tuple[Words, NDArray[np.float64]]:
    """The different words among many drawn ones, in order of their first coming, and their shares.

    What `list_words` is for an automaton, but for words so unlikely that they did not come up.
    """
    source = WordSampler(sampler, lengths.longest)
    width = 1 + source.num_bits
    num_draws = max(1, min(_ALWAYS_LISTED, _DRAWN_AT_ONCE // width))
    bits = RandomBits(seed, "distinct").read(0, num_draws * width).reshape(num_draws, width)
    words = _words_from(source, lengths, bits)
    counts: dict[bytes, int] = {}
    for key in words.keys():
        counts[key] = counts.get(key, 0) + 1
    return words.take(_new_ones(words, set())), np.array(list(counts.values())) / num_draws


def draw_distinct(
    machine: Source,
    lengths: LengthDistribution,
    num_words: int,
    seed: int,
    *,
    variant: int = 0,
    excluded: Set[bytes] = frozenset(),
) -> Words:
    """`num_words` words drawn one after the other, each from those not yet drawn or `excluded`.

    The law is that of drawing words by length, weights and slips and leaving out every one that was
    there before. Where words are few all are listed, each with an exponential variate over its
    probability as its key, and the smallest keys taken, which has the same law (Efraimidis and
    Spirakis, 2006); otherwise repeated words are just drawn again. `variant` tells apart draws of
    one seed.

    Raises `SettingsError` where there are not as many words, or too unlikely ones.
    """
    bits = RandomBits(seed, "distinct", variant)
    step = smallest_type(machine.num_symbols).itemsize
    taken = sum(lengths.shortest <= len(key) // step <= lengths.longest for key in excluded)
    if isinstance(machine, Sampler):
        found = _draw_until_new(machine, lengths, num_words, bits, excluded)
        return _as_many(num_words, lengths, found, taken)
    among = count_words(machine, lengths)
    if among - taken < num_words:
        left = f" ({taken} of them are in use elsewhere)" if taken else ""
        raise SettingsError(
            f"{num_words} different words of length {lengths} are asked for, "
            f"but there are only {among}{left}: ask for fewer or for other lengths"
        )
    if among <= max(_ALWAYS_LISTED, 4 * (num_words + taken)):
        return _draw_from_list(machine, lengths, num_words, bits, excluded)
    found = _draw_until_new(machine, lengths, num_words, bits, excluded)
    return _as_many(num_words, lengths, found, taken)


def _as_many(num_words: int, lengths: LengthDistribution, found: Words, num_taken: int) -> Words:
    """The words found, or `SettingsError` where they are not as many as were asked for."""
    if len(found.lengths) < num_words:
        beside = f" beside {num_taken} that are in use elsewhere" if num_taken else ""
        raise SettingsError(
            f"{num_words} different words of length {lengths} are asked for, but only "
            f"{len(found.lengths)} came up{beside} in {_most_draws(num_words)} draws, the rest "
            "being too unlikely: ask for fewer or for other lengths"
        )
    return found


def _most_draws(num_words: int) -> int:
    """After how many draws the search for new words is given up."""
    return max(_DRAWN_AT_LEAST, _DRAWN_PER_WORD * num_words)


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
    machine: Source,
    lengths: LengthDistribution,
    num_words: int,
    bits: RandomBits,
    excluded: Set[bytes],
) -> Words:
    """The first `num_words` new words, or fewer where that many draws do not bring them up."""
    source = WordSampler(machine, lengths.longest)
    width = 1 + source.num_bits
    seen = set(excluded)
    parts: list[Words] = []
    num_found = num_drawn = 0
    while num_found < num_words and num_drawn < _most_draws(num_words):
        size = max(num_words - num_found, _DRAWN_AT_LEAST)
        size = max(1, min(size, _DRAWN_AT_ONCE // width))
        drawn = bits.read(num_drawn * width, size * width).reshape(size, width)
        num_drawn += size
        words = _words_from(source, lengths, drawn)
        new = _new_ones(words, seen)[: num_words - num_found]
        parts.append(words.take(new))
        num_found += len(new)
    return Words(
        np.concatenate([part.symbols for part in parts]),
        np.concatenate([part.lengths for part in parts]),
    )


def _words_from(
    source: WordSampler, lengths: LengthDistribution, bits: NDArray[np.uint32]
) -> Words:
    """A word from each row of integers `[N, 1 + num_bits]`; the first one gives its length."""
    word_lengths = lengths.draw(bits[:, 0])
    symbols = source.draw(bits[:, 1:], word_lengths, lengths.longest)
    symbols[np.arange(lengths.longest) >= word_lengths[:, None]] = PADDING
    return Words(symbols, word_lengths)


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
