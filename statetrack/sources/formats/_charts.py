r"""Flat statecharts, of SCXML or XState: what happens in a state on an event.

An event that a state does not list is ignored: the machine stays where it is.

What a machine says is written in one of two ways. Where states have outputs, it is a Moore
machine, and `-` is the output of a state without one. Where transitions say something, it is a
Mealy machine, and `-` is the output of a transition that says nothing and of an event that is
ignored. Several things that are said at once are joined by commas. Where nothing is said at all,
every state is its own label.

In the name of an event, `_x002A_` stands for the character with that number, as in names of XML
that other programs write: a star or a dot would be read as part of a pattern.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from statetrack.sources.formats._text import MOST_EDGES, Edge, MachineText, problem, shown
from statetrack.text import LONGEST_NAME

NOTHING: Final = "-"
"""The output where nothing is said."""

MOST_DOTS: Final = 30
"""The most dots in the name of an event: each makes it match one more pattern."""

_CODE = re.compile(r"_x([0-9A-Fa-f]{4,6})_")


@dataclass(frozen=True)
class Reaction:
    """What a state does on an event: where it goes, None to stay, and what it says.

    Of several reactions to one event, that of the lowest rank is taken. `place` is where the file
    says so, as errors write it.
    """

    target: str | None
    says: Sequence[str]
    rank: int
    line: int = 0
    path: str = ""


@dataclass(frozen=True)
class Chart:
    """A flat statechart.

    `says` has the outputs of those states that have one. `reactions` are by state and by pattern of
    events, and `patterns(event)` are the patterns that an event matches.
    """

    start: str
    says: Mapping[str, Sequence[str]]
    reactions: Mapping[str, Mapping[str, Reaction]]
    events: Sequence[str]
    patterns: Callable[[str], Sequence[str]]


def machine_of(chart: Chart) -> MachineText:
    """The machine of a chart; raises `TaskError` where it says things in two ways."""
    if not chart.events:
        raise problem(0, "no state has a transition on a named event, so there are no symbols")
    for event in chart.events:
        if len(event) > LONGEST_NAME or event.count(".") > MOST_DOTS:
            raise problem(
                0,
                f"the event {shown(event)} has {len(event):,} characters and {event.count('.'):,} "
                f"dots: {LONGEST_NAME:,} and {MOST_DOTS} are the most",
            )
    if len(chart.reactions) * len(chart.events) > MOST_EDGES:
        raise problem(
            0,
            f"{len(chart.reactions):,} states with {len(chart.events):,} events are too many: a "
            f"machine has at most {MOST_EDGES:,} transitions, with those that stay",
        )
    speaking = next(
        (each for row in chart.reactions.values() for each in row.values() if each.says), None
    )
    if chart.says and speaking is not None:
        raise problem(
            speaking.line,
            f"{speaking.path}a transition says {shown(_joined(speaking.says))} and states have "
            "outputs too: a machine says things in one of the two ways",
        )
    edges: list[Edge] = []
    for event in chart.events:
        patterns = chart.patterns(event)
        symbol = decoded(event)
        for state, row in chart.reactions.items():
            found = [row[pattern] for pattern in patterns if pattern in row]
            taken = min(found, key=lambda each: each.rank, default=None)
            target = state if taken is None or taken.target is None else taken.target
            said = None if speaking is None else _joined(taken.says if taken else ())
            edges.append(Edge(state, symbol, target, said, taken.line if taken else 0))
    if speaking is not None:
        return MachineText(chart.start, edges, None)
    outputs = {state: _joined(chart.says.get(state, ())) for state in chart.reactions}
    named = {state: state for state in chart.reactions}
    return MachineText(chart.start, edges, outputs if chart.says else named)


def decoded(name: str) -> str:
    """A name with its coded characters as themselves."""
    return _CODE.sub(lambda found: _character(found[1], found[0]), name)


def encoded(name: str, coded: str) -> str:
    """A name in which the characters of `coded` stand as codes: `decoded` gives it back."""
    kept = _CODE.sub(lambda found: f"_x005F_{found[0][1:]}", name)
    return "".join(f"_x{ord(each):04X}_" if each in coded else each for each in kept)


def _character(digits: str, code: str) -> str:
    number = int(digits, 16)
    return chr(number) if number <= 0x10FFFF and not 0xD800 <= number <= 0xDFFF else code


def _joined(says: Sequence[str]) -> str:
    return ",".join(says) or NOTHING
