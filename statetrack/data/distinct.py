"""Words no two of which are equal, drawn at random.

Letters: N words.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Final

import numpy as np
from numpy.typing import NDArray

from statetrack.errors import SettingsError
from statetrack.sources import (
    PADDING,
    LengthDistribution,
    RandomBits,
    Source,
    UnlabelledWords,
    smallest_type,
)

_ALWAYS_LISTED: Final = 2**16
_DRAWN_PER_WORD: Final = 100
_DRAWN_AT_LEAST: Final = 2**10
_DRAWN_AT_ONCE: Final = 2**24


def has_words(source: Source, lengths: LengthDistribution, num_words: int, seed: int) -> bool:
    """Whether `draw_distinct` finds so many words of these lengths.

    Where the source cannot count its words, they are drawn to see.
    """
    among = source.count_words(lengths)
    if among is not None:
        return among >= num_words
    bits = RandomBits(seed, "distinct")
    return len(_draw_until_new(source, lengths, num_words, bits, frozenset()).lengths) == num_words


def list_or_draw_words(
    source: Source, lengths: LengthDistribution, seed: int
) -> tuple[UnlabelledWords, NDArray[np.float64]]:
    """All words of these lengths and how likely each is: `[N]`, sum 1.

    Where the source cannot list them: the different words among many drawn ones, in order of
    their first occurrence, with their relative frequencies.
    """
    listed = source.list_words(lengths)
    if listed is not None:
        return listed
    width = 1 + source.num_bits(lengths.longest)
    num_draws = max(1, min(_ALWAYS_LISTED, _DRAWN_AT_ONCE // width))
    bits = RandomBits(seed, "distinct").read(0, num_draws * width).reshape(num_draws, width)
    words = words_from(source, lengths, bits)
    counts: dict[bytes, int] = {}
    for key in words.keys():
        counts[key] = counts.get(key, 0) + 1
    return words.take(_new_ones(words, set())), np.array(list(counts.values())) / num_draws


def draw_distinct(
    source: Source,
    lengths: LengthDistribution,
    num_words: int,
    seed: int,
    *,
    variant: int = 0,
    excluded: Set[bytes] = frozenset(),
) -> UnlabelledWords:
    """`num_words` words drawn one after the other, each from those not yet drawn or `excluded`.

    The distribution is that of drawing words as the source does and leaving out every one that
    was drawn before. Where words are few all are listed, each with an exponential variate over
    its probability as its key, and the smallest keys taken, which has the same distribution
    (Efraimidis and Spirakis, 2006); otherwise repeated words are drawn again. `variant` tells
    apart draws of one seed.

    Raises `SettingsError` where there are not as many words, or too unlikely ones.
    """
    source.check_length(lengths.longest)
    bits = RandomBits(seed, "distinct", variant)
    step = smallest_type(source.num_symbols).itemsize
    taken = sum(lengths.shortest <= len(key) // step <= lengths.longest for key in excluded)
    among = source.count_words(lengths)
    listed = source.list_words(lengths) if needs_list(among, num_words + taken) else None
    if listed is not None and taken:  # of a source whose words have parts, others are taken too
        taken = len(excluded & set(listed[0].keys()))
    if among is not None and among - taken < num_words:
        left = f" ({taken} of them are in use elsewhere)" if taken else ""
        raise SettingsError(
            f"{num_words} different words of length {lengths} are asked for, "
            f"but there are only {among}{left}: ask for fewer or for other lengths"
        )
    if listed is not None:
        return _draw_from_list(*listed, num_words, bits, excluded)
    found = _draw_until_new(source, lengths, num_words, bits, excluded)
    if len(found.lengths) < num_words:
        raise too_unlikely(lengths, num_words, len(found.lengths), most_draws(num_words), taken)
    return found


def needs_list(among: int | None, num_words: int) -> bool:
    """Whether so many different words are a large share of those that there are."""
    return among is not None and among <= max(_ALWAYS_LISTED, 4 * num_words)


def too_unlikely(
    lengths: LengthDistribution, num_words: int, num_found: int, num_drawn: int, taken: int
) -> SettingsError:
    """The error for words of which the rest did not come up."""
    beside = f" beside {taken} that are in use elsewhere" if taken else ""
    return SettingsError(
        f"{num_words} different words of length {lengths} are asked for, but only {num_found} "
        f"came up{beside} in {num_drawn} draws, the rest being too unlikely: ask for fewer or for "
        "other lengths"
    )


def most_draws(num_words: int) -> int:
    """After how many draws the search for new words is given up."""
    return max(_DRAWN_AT_LEAST, _DRAWN_PER_WORD * num_words)


def _draw_from_list(
    words: UnlabelledWords,
    chances: NDArray[np.float64],
    num_words: int,
    bits: RandomBits,
    excluded: Set[bytes],
) -> UnlabelledWords:
    keys = -np.log((bits.read(0, len(chances)) + 0.5) / 2**32) / chances
    order = np.argsort(keys, kind="stable")
    if excluded:
        is_free = np.array([key not in excluded for key in words.keys()])
        order = order[is_free[order]]
    return words.take(order[:num_words])


def _draw_until_new(
    source: Source,
    lengths: LengthDistribution,
    num_words: int,
    bits: RandomBits,
    excluded: Set[bytes],
) -> UnlabelledWords:
    """The first `num_words` new words, or fewer where that many draws do not bring them up."""
    width = 1 + source.num_bits(lengths.longest)
    seen = set(excluded)
    parts: list[UnlabelledWords] = []
    num_found = num_drawn = 0
    while num_found < num_words and num_drawn < most_draws(num_words):
        size = max(num_words - num_found, _DRAWN_AT_LEAST)
        size = max(1, min(size, _DRAWN_AT_ONCE // width))
        drawn = bits.read(num_drawn * width, size * width).reshape(size, width)
        num_drawn += size
        words = words_from(source, lengths, drawn)
        new = _new_ones(words, seen)[: num_words - num_found]
        parts.append(words.take(new))
        num_found += len(new)
    return UnlabelledWords(
        np.concatenate([part.symbols for part in parts]),
        np.concatenate([part.lengths for part in parts]),
    )


def words_from(
    source: Source, lengths: LengthDistribution, bits: NDArray[np.uint32]
) -> UnlabelledWords:
    """A word from each row of integers `[N, 1 + num_bits]`; the first one gives its length."""
    word_lengths = lengths.draw(bits[:, 0])
    symbols = source.draw(bits[:, 1:], word_lengths, lengths.longest)
    symbols[np.arange(lengths.longest) >= word_lengths[:, None]] = PADDING
    return UnlabelledWords(symbols, word_lengths)


def _new_ones(words: UnlabelledWords, seen: set[bytes]) -> NDArray[np.int64]:
    """The indices of the words that are not in `seen`, each equal word once; enters them there."""
    new: list[int] = []
    for index, key in enumerate(words.keys()):
        if key not in seen:
            seen.add(key)
            new.append(index)
    return np.array(new, np.int64)
