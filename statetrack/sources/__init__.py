"""Automata: Moore machines in integer tables, how to run, build, compare and reduce them."""

from statetrack.sources.automaton import Automaton
from statetrack.sources.comparing import equivalent, shortest_difference
from statetrack.sources.floors import best_constant
from statetrack.sources.kinds import (
    KINDS,
    Argument,
    arguments_of,
    build_automaton,
    build_source,
)
from statetrack.sources.minimising import minimise
from statetrack.sources.products import interleave, product
from statetrack.sources.sampler import Sampler, Source

__all__ = [
    "KINDS",
    "Argument",
    "Automaton",
    "Sampler",
    "Source",
    "arguments_of",
    "best_constant",
    "build_automaton",
    "build_source",
    "equivalent",
    "interleave",
    "minimise",
    "product",
    "shortest_difference",
]
