"""Samplers: where the words of a task come from when its language is not regular.

A sampler draws whole words, and labels any word that it is given, but it has no finite set of
states, so nothing that needs an automaton can be computed from it. Words may be conditioned on
their length, so a prefix of a drawn word need not be distributed like a drawn word.
"""

from __future__ import annotations

from typing import ClassVar

from statetrack.sources.automaton import Source
from statetrack.sources.randomness import one_of as one_of
from statetrack.sources.randomness import one_true as one_true


class Sampler(Source):
    """A source given by two procedures: one that draws words, and one that labels them."""

    noun: ClassVar[str] = "a sampler"
