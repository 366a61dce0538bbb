"""A failing word made shorter by leaving out pieces, as long as what is left fails earlier."""

from __future__ import annotations

import numpy as np

from statetrack.evidence.primitive_words import Word
from statetrack.evidence.searches import Budget
from statetrack.evidence.subject import Subject

MOST_TRIES = 64
"""Most words that are tried at once."""

MOST_SYMBOLS = 1 << 21
"""Most symbols that are read in all."""


def shorten(subject: Subject, word: Word, budget: Budget) -> Word:
    """A word whose last answer is wrong, and the first wrong one: at most as long as `word`.

    Pieces of half the word are left out first, then of a quarter, and so on; only drawable words
    are tried. It ends where no piece can be left out, or the work or the time is spent.
    """
    size = len(word) // 2
    left = MOST_SYMBOLS
    while size and left > 0 and not budget.spent:
        begins = np.unique(np.linspace(0, len(word) - size, MOST_TRIES).astype(int)).tolist()
        tried = [word[:begin] + word[begin + size :] for begin in begins]
        tried = [each for each in dict.fromkeys(tried) if each and _is_drawable(subject, each)]
        shorter = None
        if tried:
            left -= len(tried) * len(tried[0])
            errors = subject.first_errors(np.array(tried))
            failing = [
                each[:position]
                for each, position in zip(tried, errors.tolist(), strict=True)
                if position
            ]
            shorter = min(failing, key=len, default=None)
        if shorter is None:
            size //= 2
        else:
            word = shorter
            size = min(size, len(word) // 2)
    return word


def _is_drawable(subject: Subject, word: Word) -> bool:
    automaton = subject.automaton
    states = automaton.states_after(np.array(word)).astype(np.int64)
    before = np.concatenate([[automaton.start], states[:-1]])
    return bool(automaton.drawable[before, np.array(word)].all())
