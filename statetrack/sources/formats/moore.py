"""Four words a line: a state, its label, a symbol and the next state; the first line's is first."""

from __future__ import annotations

from statetrack.errors import TaskError
from statetrack.sources.automaton import Automaton
from statetrack.sources.formats import MACHINE_FORMATS, MachineFormat
from statetrack.sources.formats._text import Edge, MachineText, add, problem, rows


def read(text: str) -> MachineText:
    """The machine of a text; raises `TaskError` with the line of what cannot be read."""
    edges: list[Edge] = []
    labels: dict[str, str] = {}
    for number, row in rows(text):
        words = row.split()
        if len(words) != 4:
            raise problem(number, "expected a state, its label, a symbol and the next state")
        state, label, symbol, target = words
        if labels.setdefault(state, label) != label:
            raise problem(number, f"state {state} has the labels {labels[state]} and {label}")
        add(edges, Edge(state, symbol, target, None, number))
    if not edges:
        raise TaskError("line 1: nothing is there, where a transition must be")
    for edge in edges:
        labels.setdefault(edge.target, edge.target)
    return MachineText(edges[0].source, edges, labels)


def write(automaton: Automaton) -> str:
    """The transitions of a machine, those of the first state first."""
    names = (*automaton.states, *automaton.symbols, *automaton.labels)
    for name in names:
        if not name or len(name.split()) != 1 or name.split()[0] != name:
            raise TaskError(f"the format cannot hold the name {name!r}, which has white space")
    order = sorted(range(automaton.num_states), key=lambda state: state != automaton.start)
    return "".join(
        f"{automaton.states[state]} {automaton.labels[automaton.output[state]]} {symbol} "
        f"{automaton.states[target]}\n"
        for state in order
        for symbol, target in zip(automaton.symbols, automaton.delta[state].tolist(), strict=True)
    )


MACHINE_FORMATS.register("moore")(MachineFormat((".moore",), read, write))
