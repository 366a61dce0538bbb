"""What a machine file says, whatever its format, and the automaton of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from statetrack.errors import TaskError
from statetrack.sources.automaton import Automaton
from statetrack.sources.minimising import minimise


class Edge(NamedTuple):
    """A transition; in a Mealy machine it says an output."""

    source: str
    symbol: str
    target: str
    output: str | None
    line: int


@dataclass(frozen=True)
class MachineText:
    """A machine as a file says it.

    A Mealy machine where `outputs` is None; else a Moore machine or an acceptor, whose states have
    the outputs.
    """

    start: str
    edges: Sequence[Edge]
    outputs: Mapping[str, str] | None


def automaton_of(machine: MachineText) -> Automaton:
    """The smallest Moore machine with the same outputs after every word but the empty one.

    A Mealy machine's state is split by the output with which it is entered. Where a state lacks a
    transition, one leads to a state `missing` that is never left, with the output `missing`.
    """
    symbols = list(dict.fromkeys(edge.symbol for edge in machine.edges))
    steps: dict[tuple[str, str], Edge] = {}
    for edge in machine.edges:
        if steps.setdefault((edge.source, edge.symbol), edge)[2:4] != edge[2:4]:
            raise TaskError(
                f"line {edge.line}: state '{edge.source}' already has a transition for "
                f"'{edge.symbol}', to '{steps[edge.source, edge.symbol].target}'"
            )
    outputs = machine.outputs

    def said(edge: Edge) -> str:
        return (edge.output or "") if outputs is None else outputs.get(edge.target, "")

    first = (machine.start, "" if outputs is None else outputs.get(machine.start, ""))
    numbers = {first: 0}
    rows: list[list[int]] = []
    for state, _ in (waiting := [first]):
        row = []
        for symbol in symbols:
            step = steps.get((state, symbol))
            after = ("missing", "missing") if step is None else (step.target, said(step))
            if after not in numbers:
                numbers[after] = len(numbers)
                waiting.append(after)
            row.append(numbers[after])
        rows.append(row)
    labels = list(dict.fromkeys(output for _, output in numbers))
    whole = Automaton(
        rows,
        [labels.index(output) for _, output in numbers],
        symbols=["_".join(symbol.split()) for symbol in symbols],
        states=[str(number) for number in range(len(numbers))],
        labels=["_".join(label.split()) or "-" for label in labels],
    )
    return minimise(whole)
