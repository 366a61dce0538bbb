"""A word that a model answers wrongly, as text."""

from __future__ import annotations

from collections.abc import Sequence

from statetrack.evidence.rows import Failure

SYMBOLS_SHOWN = 24
"""The most symbols of a word that are shown on one line."""


def word_text(failure: Failure, symbols: Sequence[str]) -> str:
    """The word of a failure by the names of its symbols, shortened where it is long."""

    def named(word: Sequence[int]) -> str:
        shown = " ".join(symbols[symbol] for symbol in word[:SYMBOLS_SHOWN])
        return shown if len(word) <= SYMBOLS_SHOWN else f"{shown} ... ({len(word):,} symbols)"

    turns = failure.position - len(failure.prefix) - len(failure.suffix)
    if turns <= len(failure.period):
        return named(failure.word)
    again = named(failure.period) + (
        f" for {turns:,} symbols" if failure.suffix else " again and again"
    )
    parts = (named(failure.prefix), again, named(failure.suffix))
    return ", then ".join(filter(None, parts))


def failure_text(failure: Failure, symbols: Sequence[str], labels: Sequence[str]) -> str:
    """`symbol 1,702 of 0 3 2 again and again: 4, and right is 1`."""
    given = "no answer" if failure.answer is None else labels[failure.answer]
    return (
        f"symbol {failure.position:,} of {word_text(failure, symbols)}: the answer is {given}, "
        f"and {labels[failure.label]} is right"
    )
