r"""Finite-state machines in the text format of AT&T FSM, which OpenFst, HFST and foma read.

    0  1  coin    beep
    1  0  button  coffee
    0
    1

A row of four columns is a transition of a transducer, `from to input output`; one of three is a
transition of an acceptor, `from to symbol`; one of one names a final state. The first row's state
is the start. A fifth column of a transducer, and the second of a final state, is a weight, which
must be 0. A transducer is a Mealy machine, so that every state must be final, or none. An acceptor
says `yes` in its final states.

The empty word, written `<eps>`, `<epsilon>`, `@0@`, `ε` or `0`, is neither a symbol nor an output
of a machine, but for one row: to the start, from a state that nothing enters, with the empty word
as input. Its output is the label of the start before anything enters that. A backslash at the
beginning of a symbol is left out, so that `\0` is the symbol `0`.
"""

from __future__ import annotations

from statetrack.errors import TaskError
from statetrack.sources.automaton import Automaton
from statetrack.sources.formats import MACHINE_FORMATS, MachineFormat
from statetrack.sources.formats._text import (
    Edge,
    MachineText,
    add,
    first_label,
    problem,
    rows,
    shown,
    start_mark,
    steps,
)

EMPTY = frozenset({"<eps>", "<epsilon>", "@0@", "@_EPSILON_SYMBOL_@", "ε", "0"})
"""How the empty word is written."""


def read(text: str) -> MachineText:
    """The machine of a text; raises `TaskError` with the line of what cannot be read."""
    edges: list[Edge] = []
    final: dict[str, int] = {}
    empty: list[Edge] = []
    start, columns = None, 0
    for line, row in rows(text):
        parts = row.split()
        start = parts[0] if start is None else start
        if len(parts) <= 2:
            final[parts[0]] = line
            _check_weight(parts[1:], line)
            continue
        if len(parts) > 5:
            raise problem(line, f"has {len(parts)} columns: at most `from to input output weight`")
        columns = columns or len(parts)
        if (columns == 3) != (len(parts) == 3):
            raise problem(
                line,
                f"has {len(parts)} columns where others have {columns}: write either an acceptor "
                "without weights, `from to symbol`, or a transducer, `from to input output`",
            )
        _check_weight(parts[4:], line)
        output = _letter(parts[3], line) if len(parts) > 3 else None
        edge = Edge(parts[0], parts[2], parts[1], output, line)
        if parts[2] in EMPTY and output is not None and not empty:
            empty.append(edge)
        else:
            add(edges, edge._replace(symbol=_letter(parts[2], line)))
    if start is None or not (edges or empty):
        raise TaskError("line 1: no transition is in the file")
    mark = start_mark([*edges, *empty], start, lambda edge: edge in empty) if edges else None
    if mark is None and empty:
        raise _is_empty(empty[0].symbol, empty[0].line)
    states = dict.fromkeys(state for edge in edges for state in (edge.source, edge.target))
    for state, line in final.items():
        if state not in states and state != start:
            raise problem(line, f"the final state {shown(state)} has no transition")
    if columns == 3:
        return MachineText(start, edges, {s: "yes" if s in final else "no" for s in states})
    if final and len(final) < len(states):
        other = next(edge for edge in edges if not {edge.source, edge.target} <= final.keys())
        state = other.target if other.source in final else other.source
        raise problem(
            other.line,
            f"state {shown(state)} is not final and others are: a machine with outputs answers "
            "after every word, so that all states must be final, or none",
        )
    return MachineText(start, edges, None, mark and mark.output)


def _check_weight(parts: list[str], line: int) -> None:
    for part in parts:
        try:
            nothing = float(part) == 0
        except ValueError:
            raise problem(line, f"{shown(part)} stands where a weight does") from None
        if not nothing:
            raise problem(line, f"the weight {shown(part)}: weights are not read, but for 0")


def _letter(text: str, line: int) -> str:
    if text in EMPTY:
        raise _is_empty(text, line)
    return text[1:] if len(text) > 1 and text.startswith("\\") else text


def write(automaton: Automaton) -> str:
    """The text of a machine, as a transducer: every transition says the label it leads to."""
    said = [_escaped(automaton.labels[label]) for label in automaton.output.tolist()]
    names = [_escaped(symbol) for symbol in automaton.symbols]
    lines = [
        f"{source}\t{target}\t{names[symbol]}\t{said[target]}"
        for source, symbol, target in steps(automaton)
    ]
    if (first := first_label(automaton)) is not None:
        lines.append(f"{automaton.num_states}\t{automaton.start}\t<eps>\t{_escaped(first)}")
    return "\n".join([*lines, *map(str, range(automaton.num_states)), ""])


def _is_empty(text: str, line: int) -> TaskError:
    return problem(
        line, f"{shown(text)} is the empty word: a machine reads and says one symbol at a time"
    )


def _escaped(name: str) -> str:
    return f"\\{name}" if name in EMPTY or name.startswith("\\") else name


MACHINE_FORMATS.register("fst")(MachineFormat((".fst", ".att"), read, write))
