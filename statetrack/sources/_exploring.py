"""Building a transition table from a step function: its states are those reached from a start."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

from statetrack.errors import TaskError

State = TypeVar("State", bound=Hashable)
Symbol = TypeVar("Symbol")


class TooManyStates(TaskError):
    """Words lead to more states than were allowed."""


def explore(
    start: State, symbols: Sequence[Symbol], step: Callable[[State, Symbol], State], most: int
) -> tuple[list[State], list[list[int]]]:
    """All states that words lead to, breadth first from `start`, and the table delta `[S, V]`.

    Raises `TooManyStates` as soon as there are more than `most`.
    """
    states = [start]
    number = {start: 0}
    delta: list[list[int]] = []
    for state in states:
        row: list[int] = []
        for symbol in symbols:
            target = step(state, symbol)
            if target not in number:
                number[target] = len(states)
                states.append(target)
                if len(states) > most:
                    raise TooManyStates(f"more than {most} states: too many")
            row.append(number[target])
        delta.append(row)
    return states, delta
