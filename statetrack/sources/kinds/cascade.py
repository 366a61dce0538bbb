"""The cascade: every automaton reads a symbol that the input and those before it choose."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, StrictInt

from statetrack.errors import TaskError, nearest_or_known
from statetrack.settings import Settings, build, option
from statetrack.sources import derived
from statetrack.sources.automaton import Automaton
from statetrack.sources.kinds import KINDS, argument, build_inner

ANY = "any"
"""Stands in a feed for every symbol, and for every state."""

LARGEST_FEED = 2**18
"""Most pairs of the states before a component and an input symbol."""

Symbol = str | StrictInt
"""A symbol's name; one that is a whole number need not stand in quotes."""


class Component(Settings):
    """One automaton of a cascade and what it reads."""

    of: dict[str, Any] = option(..., "The automaton, with its kind and arguments.")
    feed: dict[str, Symbol | dict[str, Symbol]] | None = option(
        None, "What is read for every input symbol; left out, the input symbol itself."
    )


@KINDS.register("cascade")
def cascade(
    *,
    components: Annotated[
        list[dict[str, Any]],
        argument(
            "automata in a line, each with `of` (its kind and arguments) and `feed`: what it "
            "reads for every input symbol, or for that and the states of those before it"
        ),
        Field(min_length=2),
    ],
    symbols: Annotated[
        list[str] | None,
        argument("the input symbols; left out, those of the first component"),
        Field(min_length=1),
    ] = None,
    labels: Annotated[
        Literal["all", "last"],
        argument("all: the tuple of the components' labels; last: the label of the last one"),
    ] = "all",
) -> Automaton:
    """Automata in a line: each reads a symbol that the input and the states before it choose.

    The states are those before the input is read. A feed says what a component reads:

        feed:
          tick: {open: "1", any: "0"}     # by the state of the one component before it
          reset: "0"                      # the same in every state
          any: "1"                        # every other input symbol

    Behind two components or more, a key has one state of each, in their order and with spaces:
    `open any`; `any` alone stands for all of them. The first entry that fits counts. A component
    without a feed reads the input itself. Symbols are drawn alike, but not where a component would
    read one that it never draws.

    Every automaton is covered by a cascade of flip-flops and of simple groups that divide its
    monoid (Krohn and Rhodes 1965, doi:10.1090/S0002-9947-1965-0188316-1).
    """
    parts = [
        build(Component, part, f"components.{place}", TaskError)
        for place, part in enumerate(components)
    ]
    automata = [build_inner(part.of, f"components.{place}.of") for place, part in enumerate(parts)]
    inputs = automata[0].symbols if symbols is None else tuple(symbols)
    if ANY in inputs or any(ANY in automaton.states for automaton in automata):
        raise TaskError(
            f"a symbol or state is named '{ANY}', which a feed takes for all: rename it"
        )
    feeds = [
        _feed(part.feed, automata[:place], automata[place], inputs, f"components.{place}")
        for place, part in enumerate(parts)
    ]
    places = range(len(automata))
    return derived.cascade(automata, feeds, inputs, places if labels == "all" else places[-1:])


def _feed(
    written: Mapping[str, Symbol | Mapping[str, Symbol]] | None,
    before: Sequence[Automaton],
    own: Automaton,
    inputs: Sequence[str],
    where: str,
) -> derived.Feed:
    """What a component reads, for all states before it and all input symbols.

    Raises `TaskError` for a name that does not exist, a case without an entry, an entry that
    never counts, and too many cases.
    """
    cases = math.prod(automaton.num_states for automaton in before) * len(inputs)
    if cases > LARGEST_FEED:
        raise TaskError(f"{where}: {cases} cases to feed: more than {LARGEST_FEED} are too many")
    if written is None:
        for name in inputs:
            if name not in own.symbols:
                raise TaskError(f"{where}: there is no symbol '{name}' to read: give it a 'feed'")
        written = {name: name for name in inputs}
    where = f"{where}.feed"
    for key in written:
        if key not in (*inputs, ANY):
            hint = nearest_or_known(key, inputs)
            raise TaskError(f"{where}: there is no input symbol '{key}'.{hint}")
    entries = {key: _entry(entry, before, own, f"{where}.{key}") for key, entry in written.items()}
    feed: dict[tuple[derived.States, int], int] = {}
    unused = set(entries)
    for number, name in enumerate(inputs):
        fitting = [key for key in entries if key in (name, ANY)]
        if not fitting:
            raise TaskError(f"{where}: nothing is said for the input symbol '{name}'")
        unused.discard(fitting[0])
        feed |= {(states, number): symbol for states, symbol in entries[fitting[0]].items()}
    _check_all_count(unused, where)
    return feed


def _entry(
    written: Symbol | Mapping[str, Symbol],
    before: Sequence[Automaton],
    own: Automaton,
    where: str,
) -> dict[derived.States, int]:
    """What is read at one input symbol, for all states before the component."""
    if not isinstance(written, Mapping):
        symbol = _symbol(written, own, where)
        sizes = [range(automaton.num_states) for automaton in before]
        return dict.fromkeys(itertools.product(*sizes), symbol)
    if not before:
        raise TaskError(f"{where}: no component stands before the first: name one symbol")
    patterns = {key: _pattern(key, before, where) for key in written}
    symbols = {key: _symbol(name, own, f"{where}.{key}") for key, name in written.items()}
    entry: dict[derived.States, int] = {}
    unused = set(patterns)
    for states in itertools.product(*(range(automaton.num_states) for automaton in before)):
        names = [automaton.states[state] for automaton, state in zip(before, states, strict=True)]
        fitting = [
            key
            for key, pattern in patterns.items()
            if all(part in (name, ANY) for part, name in zip(pattern, names, strict=True))
        ]
        if not fitting:
            raise TaskError(f"{where}: nothing is said for the state '{' '.join(names)}'")
        unused.discard(fitting[0])
        entry[states] = symbols[fitting[0]]
    _check_all_count(unused, where)
    return entry


def _pattern(key: str, before: Sequence[Automaton], where: str) -> list[str]:
    """A state, or `any`, for each component before."""
    names = key.split()
    if names == [ANY]:
        return [ANY] * len(before)
    if len(names) != len(before):
        raise TaskError(
            f"{where}: '{key}' names {len(names)} states for the {len(before)} components before: "
            f"write one for each, or '{ANY}'"
        )
    for name, automaton in zip(names, before, strict=True):
        if name not in (*automaton.states, ANY):
            hint = nearest_or_known(name, automaton.states)
            raise TaskError(f"{where}: there is no state '{name}'.{hint}")
    return names


def _symbol(name: Symbol, own: Automaton, where: str) -> int:
    if str(name) not in own.symbols:
        hint = nearest_or_known(str(name), own.symbols)
        raise TaskError(f"{where}: the component has no symbol '{name}'.{hint}")
    return own.symbols.index(str(name))


def _check_all_count(unused: set[str], where: str) -> None:
    if unused:
        raise TaskError(
            f"{where}: the entry '{min(unused)}' is never used: the first entry that fits is, "
            "and earlier ones fit all of its cases"
        )
