"""Sources of words and labels: automata in integer tables, samplers, and how words are drawn."""

from statetrack.sources.automaton import Automaton
from statetrack.sources.batch import PADDING, Batch, Supervision, TensorBatch, UnlabelledWords
from statetrack.sources.comparing import equivalent, shortest_difference
from statetrack.sources.kinds import (
    KINDS,
    Argument,
    arguments_of,
    build_automaton,
    build_source,
)
from statetrack.sources.lengths import LengthDistribution, parse_lengths
from statetrack.sources.minimising import minimise
from statetrack.sources.products import interleave, product
from statetrack.sources.sampler import Sampler
from statetrack.sources.source import Source
from statetrack.sources.word_stream import WordStream

__all__ = [
    "KINDS",
    "PADDING",
    "Argument",
    "Automaton",
    "Batch",
    "LengthDistribution",
    "Sampler",
    "Source",
    "Supervision",
    "TensorBatch",
    "UnlabelledWords",
    "WordStream",
    "arguments_of",
    "build_automaton",
    "build_source",
    "equivalent",
    "interleave",
    "minimise",
    "parse_lengths",
    "product",
    "shortest_difference",
]
