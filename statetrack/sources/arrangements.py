"""Automata whose labels are arrangements of points, and what their symbols do to the places.

The word problem of a group of permutations names each label by its cycles. Written as the images
p(1) ... p(n), a label is an arrangement of n points in n places; after a symbol that multiplies by
x from the right, place i holds what was in place x(i). So a program with one variable for each
place, and an assignment for each symbol, keeps the state.

Letters: S states, V symbols, n points.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from statetrack.errors import TaskError
from statetrack.sources._groups import Permutation, multiply, read_permutation
from statetrack.sources.automaton import Automaton


@dataclass(frozen=True)
class Rearranged:
    """A symbol after which place i holds what was in place `places[i]`."""

    places: Permutation


@dataclass(frozen=True)
class Replaced:
    """A symbol after which the places hold `points`, whatever they held before."""

    points: Permutation


@dataclass(frozen=True)
class Arrangements:
    """The labels of an automaton as arrangements of points 0 .. n-1, and what each symbol does."""

    first: Permutation  # before the first symbol
    labels: tuple[Permutation, ...]  # [C]
    symbols: tuple[Rearranged | Replaced, ...]  # [V]


def arrangements_of(automaton: Automaton) -> Arrangements | None:
    """The arrangements that the labels name, or None where they are none.

    None too where a symbol does something else to them in one of the S states: every row of
    `delta` is checked.
    """
    numbers = [int(number) for name in automaton.labels for number in re.findall("[0-9]+", name)]
    num_points = max(numbers, default=0)
    if not 2 <= num_points <= len(automaton.labels) or num_points > 26:
        return None
    try:
        labels = tuple(
            read_permutation(name, num_points) if name.startswith("(") or name == "e" else ()
            for name in automaton.labels
        )
    except TaskError:
        return None
    if () in labels:
        return None
    held = [labels[label] for label in automaton.output.tolist()]  # [S]
    symbols: list[Rearranged | Replaced] = []
    for targets in automaton.delta.T.tolist():
        after = [held[target] for target in targets]
        places = tuple(held[0].index(point) for point in after[0])
        if all(multiply(old, places) == new for old, new in zip(held, after, strict=True)):
            symbols.append(Rearranged(places))
        elif len(set(after)) == 1:
            symbols.append(Replaced(after[0]))
        else:
            return None
    return Arrangements(held[automaton.start], labels, tuple(symbols))
