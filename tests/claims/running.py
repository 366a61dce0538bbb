"""A model run over hard words, and compared with the automaton at every position."""

from __future__ import annotations

from statetrack.constructions import Followed, follow_words
from statetrack.models import SequenceModel
from statetrack.sources import Automaton
from tests.claims.words import hard_words


def follow(
    model: SequenceModel,
    automaton: Automaton,
    num_symbols: int,
    *,
    num_words: int = 6,
    seed: int = 0,
    width: int = 1,
) -> Followed:
    """Run hard words of `num_symbols` symbols; `width` numbers are held for each position."""
    words = hard_words(automaton, num_words, num_symbols, seed)
    labels, scored = automaton.read(words)
    return follow_words(model, words, labels, scored, width=width)
