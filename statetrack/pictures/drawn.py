"""The machine that a picture shows: the minimal one, without transitions that never occur.

Letters: S states, V symbols.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from statetrack.algebra import needed_machine
from statetrack.sources import Booleans, Integers
from statetrack.spec import Task


@dataclass(frozen=True, eq=False)
class Drawn:
    """An automaton with everything that a picture shows of it.

    `delta[s, x]` is -1 where x is never drawn in s. `labels` are None where each state is its own
    label; `second` is the second label where there are two, so that it is enough to mark its
    states. `asked` marks the states in which the label is scored.
    """

    states: tuple[str, ...]
    symbols: tuple[str, ...]
    delta: Integers  # [S, V]
    start: int
    labels: tuple[str, ...] | None
    second: str | None
    asked: Booleans  # [S]
    title: str
    """The task, and how much of its automaton is drawn."""

    @property
    def notes(self) -> list[str] | None:
        """The text next to the name of every state: its label, `-` where it is not scored."""
        if self.labels is None:
            return None
        pairs = zip(self.labels, self.asked, strict=True)
        return [label if asked else "-" for label, asked in pairs]

    @property
    def full_names(self) -> list[str]:
        """The names of all states, with their labels in brackets.

        Those that end in their label, as the states of an imported machine do, are names alone.
        """
        if self.notes is None:
            return [*self.states]
        return [
            state if state.endswith(f"@{note}") else f"{state} [{note}]"
            for state, note in zip(self.states, self.notes, strict=True)
        ]

    @property
    def said_of_labels(self) -> list[str]:
        """What a caption says of the labels in full names."""
        if self.notes is None:
            return []
        behind = any(name in self.states for name in self.full_names)
        inside = any(name not in self.states for name in self.full_names)
        places = ["in brackets"] * inside + ["behind @"] * behind
        unscored = "" if self.asked.all() else ", - if not scored"
        return [f"{' or '.join(places)}: the label{unscored}"]

    @property
    def leaves_out(self) -> bool:
        """Whether some symbol is never drawn in some state, so that its transition is left out."""
        return bool((self.delta < 0).any())

    @cached_property
    def is_group(self) -> bool:
        """Whether every symbol permutes the states: then the maps that words make are a group."""
        moves = np.sort(self.delta, axis=0)
        return bool((moves == np.arange(len(self.states))[:, None]).all())

    @cached_property
    def regular_group(self) -> bool:
        """Whether the states are the elements of a group, and symbols multiply from the right.

        This holds where every symbol permutes the states, and only the identity, of the maps that
        words make, fixes the start: the group acts regularly.
        """
        return self.is_group and group_of(self.delta, len(self.states)) is not None


def group_of(delta: Integers, most: int) -> Integers | None:
    """The maps of the states that words make, `[N, S]`, the identity first; None for more.

    They are numbered as they are found: by length of a shortest word, then by its symbols.
    """
    identity = tuple(range(len(delta)))
    found: dict[tuple[int, ...], int] = {identity: 0}
    queue = [identity]
    for element in queue:
        for action in delta.T:
            after = tuple(int(target) for target in action[list(element)])
            if after not in found:
                if len(found) == most:
                    return None
                found[after] = len(queue)
                queue.append(after)
    return np.array(queue, np.int64)


def drawn_machine(task: Task) -> Drawn:
    """The drawn machine of a task; `TaskError` for a task without an automaton."""
    given = task.automaton
    machine = needed_machine(given)
    smallest, live = machine.automaton, machine.live
    renumbered = np.full(smallest.num_states, -1)
    renumbered[live] = np.arange(live.sum())
    kept = np.flatnonzero(live)
    states = tuple(smallest.states[state] for state in kept)
    labels = tuple(smallest.labels[smallest.output[state]] for state in kept)
    asked = smallest.scored[kept]
    named = labels == states and bool(asked.all())
    return Drawn(
        states=states,
        symbols=smallest.symbols,
        delta=renumbered[smallest.delta[kept]],
        start=int(renumbered[smallest.start]),
        labels=None if named else labels,
        second=smallest.labels[1] if smallest.num_labels == 2 and not named else None,
        asked=asked,
        title=_title(task.name, len(states), given.num_states, smallest.num_symbols),
    )


def _title(task: str, drawn: int, states: int, symbols: int) -> str:
    """The task, without the folder of its file, and how much of its automaton is drawn."""
    name = Path(task).name if Path(task).is_file() else task
    if drawn < states:
        return f"{name}: the smallest automaton, {drawn} of {states} states"
    said = "1 state" if drawn == 1 else f"{drawn} states"
    return f"{name}: {said}, {symbols} symbol{'' if symbols == 1 else 's'}"
