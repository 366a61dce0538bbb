"""Machines of JFLAP, the teaching program: `.jff`, in XML.

Finite automata (`fa`), which say `yes` in final states and `no` in others, Moore machines and Mealy
machines, if they are deterministic. What a transition reads is one symbol, however many letters it
has, but for a range `[a-f]` of single letters, which are symbols each. Automata with a stack or a
tape, grammars and the other things that JFLAP draws are refused by name.
"""

from __future__ import annotations

import math
import re
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from statetrack.errors import TaskError
from statetrack.sources.automaton import Automaton
from statetrack.sources.formats import MACHINE_FORMATS, MachineFormat
from statetrack.sources.formats._text import Edge, MachineText, add, problem, shown, steps
from statetrack.sources.formats._xml import Element, parse

_READ: Final = ("fa", "moore", "mealy")
_NOT_READ: Final = {
    "pda": "a pushdown automaton",
    "turing": "a Turing machine",
    "grammar": "a grammar",
    "lsystem": "an L-system",
    "re": "a regular expression (a task file takes one)",
}
RANGE: Final = re.compile(r"\[(.)-(.)\]")
"""A range of letters, each of which is a symbol."""


def read(text: str) -> MachineText:
    """The machine of a text; raises `TaskError` with the line of what cannot be read."""
    root = parse(text)
    if root.name != "structure":
        raise problem(root.line, f"a file of JFLAP begins with <structure>, not <{root.name}>")
    kind = root.word("type")
    if kind not in _READ:
        what = _NOT_READ.get(kind or "", f"the type {shown(kind or '')}")
        raise problem(root.line, f"{what} is not read: a file holds one of {', '.join(_READ)}")
    body = root.only("automaton") or root
    for block in body.all("block"):
        raise problem(block.line, "building blocks are those of a Turing machine, and are not read")
    states = _states(body, kind)
    edges: list[Edge] = []
    for transition in body.all("transition"):
        source, target = (_end(transition, name, states) for name in ("from", "to"))
        output = (transition.word("transout") or "") if kind == "mealy" else None
        for symbol in _symbols(transition):
            add(edges, Edge(source, symbol, target, output, transition.line))
    if not edges:
        raise problem(body.line, "a machine without transitions has no symbols")
    initial = [state for state in body.all("state") if state.only("initial") is not None]
    if len(initial) != 1:
        line = initial[1].line if initial else body.line
        raise problem(line, f"{len(initial)} states are <initial/>: one must be")
    return MachineText(initial[0].attributes["id"], edges, None if kind == "mealy" else states)


def _states(body: Element, kind: str) -> dict[str, str]:
    """What each state says, by its number; of a Mealy machine nothing."""
    states: dict[str, str] = {}
    for state in body.all("state"):
        name = state.attributes.get("id")
        if name is None:
            raise problem(state.line, "a <state> needs an id")
        if name in states:
            raise problem(state.line, f"a second state with the id {shown(name)}")
        if kind == "fa":
            states[name] = "no" if state.only("final") is None else "yes"
        else:
            states[name] = state.word("output") or ""
    return states


def _end(transition: Element, name: str, states: dict[str, str]) -> str:
    state = transition.word(name)
    if state not in states:
        said = "is missing" if state is None else f"{shown(state)} is the id of no state"
        raise problem(transition.line, f"<{name}> of a transition: {said}")
    return state


def _symbols(transition: Element) -> list[str]:
    read = transition.word("read")
    if not read:
        raise problem(
            transition.line, "a transition that reads nothing (lambda): determinise first"
        )
    if letters := RANGE.fullmatch(read):
        first, last = map(ord, letters.groups())
        if first <= last < first + 1000:
            return [chr(code) for code in range(first, last + 1)]
        raise problem(transition.line, f"the range {shown(read)} is empty, or of 1,000 letters")
    return [read]


def write(automaton: Automaton) -> str:
    """The text of a machine, as a Moore machine, its states in a circle.

    Raises `TaskError` for a symbol that JFLAP reads as a range of letters.
    """
    for name in automaton.symbols:
        if RANGE.fullmatch(name):
            raise TaskError(
                f"the symbol {shown(name)} is a range of letters to JFLAP: write another format"
            )
    lines = [
        '<?xml version="1.0" encoding="UTF-8" standalone="no"?>',
        "<structure>",
        "<type>moore</type>",
        "<automaton>",
    ]
    radius = 30 * max(3, automaton.num_states / math.pi)
    for state, label in enumerate(automaton.output.tolist()):
        angle = 2 * math.pi * state / automaton.num_states
        across, down = radius * (1.2 + math.cos(angle)), radius * (1.2 + math.sin(angle))
        first = "<initial/>" if state == automaton.start else ""
        name = quoteattr(automaton.states[state])
        lines.append(
            f'<state id="{state}" name={name}><x>{across:.1f}</x><y>{down:.1f}</y>{first}'
            f"<output>{escape(automaton.labels[label])}</output></state>"
        )
    read_as = [escape(symbol) for symbol in automaton.symbols]
    lines += [
        f"<transition><from>{source}</from><to>{target}</to><read>{read_as[symbol]}</read>"
        "</transition>"
        for source, symbol, target in steps(automaton)
    ]
    return "\n".join([*lines, "</automaton>", "</structure>", ""])


MACHINE_FORMATS.register("jff")(MachineFormat((".jff",), read, write))
