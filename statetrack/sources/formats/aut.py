r"""Labelled transition systems in the Aldebaran format, `.aut`, of CADP and mCRL2.

    des (0, 2, 2)
    (0, "coin/beep", 1)
    (1, "button/coffee", 0)

The format has neither outputs nor accepting states. Where every label has a slash between two
texts, the machine is a Mealy machine, and the text after the first slash is the output. One step
may have nothing before its slash: that from a state which nothing enters to the first state, and
its output is the label of the first state before anything enters that. Elsewhere every state is its
own label. In a label `\/`, `\"` and `\\` stand for the character behind the backslash, and that
slash separates nothing.
"""

from __future__ import annotations

import re

from statetrack.errors import TaskError
from statetrack.sources.automaton import Automaton
from statetrack.sources.formats import MACHINE_FORMATS, MachineFormat
from statetrack.sources.formats._text import (
    Edge,
    MachineText,
    add,
    first_label,
    number_in,
    problem,
    rows,
    shown,
    start_mark,
    steps,
)

_HIDDEN = ("i", "tau")
"""The labels of a step that nobody sees: the first of CADP, the second of mCRL2."""

_SLASH = re.compile(r"((?:[^\\/]|\\.?+)*+)/(.*)", re.DOTALL)
_ESCAPED = re.compile(r'\\([\\/"])')


def read(text: str) -> MachineText:
    """The machine of a text; raises `TaskError` with the line of what cannot be read."""
    lines = rows(text)
    header, row = next(lines, (0, ""))
    if not header:
        raise TaskError(
            "line 1: nothing is there, where `des (first, transitions, states)` must be"
        )
    first, num_edges, num_states = _header(row, header)
    found: list[Edge] = []
    for line, row in lines:
        source, label, target = _step(row, line)
        for state in (source, target):
            if state >= num_states:
                raise problem(
                    line, f"state {state}, but line {header} says that there are {num_states:,}"
                )
        add(found, Edge(str(source), label, str(target), None, line))
    if len(found) != num_edges:
        raise problem(header, f"{num_edges:,} transitions are said to be there: {len(found):,} are")
    if not found:
        raise problem(header, "a machine without transitions has no symbols")
    mark = start_mark(found, str(first), lambda step: step.symbol.startswith("/"))
    if mark is not None:
        found.remove(mark)
    parts = [_SLASH.fullmatch(step.symbol) for step in found]
    if all(part is not None and part[1].strip() and part[2].strip() for part in parts):
        mealy = [
            step._replace(symbol=_plain(part[1]), output=_plain(part[2]))
            for step, part in zip(found, parts, strict=True)
            if part is not None
        ]
        return MachineText(str(first), mealy, None, mark and _plain(mark.symbol[1:]))
    if mark is not None:
        raise problem(mark.line, f"{shown(mark.symbol)}, but other labels have no output")
    for step in found:
        if step.symbol in _HIDDEN:
            raise problem(
                step.line, f"the hidden step {shown(step.symbol)} is not read: determinise first"
            )
    named = [step._replace(symbol=_plain(step.symbol)) for step in found]
    states = dict.fromkeys(state for step in found for state in (step.source, step.target))
    return MachineText(str(first), named, {state: state for state in (str(first), *states)})


def _header(row: str, line: int) -> tuple[int, int, int]:
    found = re.fullmatch(r"des\s*\(([^,()]*),([^,()]*),([^,()]*)\)", row)
    if not found:
        raise problem(line, f"{shown(row)} is not `des (first, transitions, states)`")
    first, edges, states = (
        number_in(part.strip(), line, what)
        for part, what in zip(
            found.groups(),
            ("the first state", "the number of transitions", "the number of states"),
            strict=True,
        )
    )
    if first >= states:
        raise problem(line, f"the first state is {first}, but there are {states:,}, counted from 0")
    return first, edges, states


def _step(row: str, line: int) -> tuple[int, str, int]:
    if not (row.startswith("(") and row.endswith(")")):
        raise problem(line, f'{shown(row)} is no transition `(from, "label", to)`')
    source, comma, rest = row[1:-1].partition(",")
    label, other, target = rest.rpartition(",")
    label = label.strip()
    if not (comma and other and label):
        raise problem(line, f'{shown(row)} is no transition `(from, "label", to)`')
    if label.startswith('"'):
        if len(label) < 3 or not label.endswith('"'):
            raise problem(line, f"the label {shown(label)} must be text between two quotes")
        label = label[1:-1].strip()
    return (
        number_in(source.strip(), line, "the state that is left"),
        label,
        number_in(target.strip(), line, "the state that is reached"),
    )


def _plain(label: str) -> str:
    return _ESCAPED.sub(r"\1", label.strip())


def write(automaton: Automaton) -> str:
    """The text of a machine, as a Mealy machine: every transition says the label it leads to."""
    said = [_escaped(automaton.labels[label]) for label in automaton.output.tolist()]
    names = [_escaped(symbol) for symbol in automaton.symbols]
    lines = [
        f'({source}, "{names[symbol]}/{said[target]}", {target})'
        for source, symbol, target in steps(automaton)
    ]
    num_states = automaton.num_states
    if (first := first_label(automaton)) is not None:
        lines.append(f'({num_states}, "/{_escaped(first)}", {automaton.start})')
        num_states += 1
    head = f"des ({automaton.start}, {len(lines)}, {num_states})"
    return "\n".join([head, *lines, ""])


def _escaped(name: str) -> str:
    return re.sub(r'([\\/"])', r"\\\1", name)


MACHINE_FORMATS.register("aut")(MachineFormat((".aut",), read, write))
