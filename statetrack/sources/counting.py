"""The words that an automaton can draw: how many there are, and all of them.

Letters: N words, S states, V symbols.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from statetrack.sources.arrays import Floats, Unsigned, smallest_type
from statetrack.sources.batch import PADDING, UnlabelledWords
from statetrack.sources.lengths import LengthDistribution

if TYPE_CHECKING:
    from statetrack.sources.automaton import Automaton

UNCOUNTABLE: Final = 2**53
"""Where counting words stops: `count_words` returns this for any number as large or larger."""


def count_words(automaton: Automaton, lengths: LengthDistribution) -> int:
    """How many words of these lengths can be drawn.

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


def list_words(automaton: Automaton, lengths: LengthDistribution) -> tuple[UnlabelledWords, Floats]:
    """All words of these lengths that can be drawn, and how likely each is: `[N]`, sum 1.

    In order of length, then of symbols. The caller makes sure with `count_words` that they fit.
    """
    words = np.zeros((1, 0), smallest_type(automaton.num_symbols))
    states = np.array([automaton.start])
    chances = np.array([1.0 / lengths.num_lengths])
    found: list[Unsigned] = []
    likely: list[Floats] = []
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
    return UnlabelledWords(np.concatenate(found), all_lengths), np.concatenate(likely)


def _padded(words: Unsigned, longest: int) -> Unsigned:
    return np.pad(words, ((0, 0), (0, longest - words.shape[1])), constant_values=PADDING)
