"""Statecharts in SCXML (W3C, 2015), if they are flat: states and transitions between them.

    <scxml xmlns="http://www.w3.org/2005/07/scxml" version="1.0" initial="off">
      <state id="off"><transition event="switch" target="on"/></state>
      <state id="on">
        <transition event="switch" target="off"><log expr="'click'"/></transition>
      </state>
    </scxml>

States inside states, parallel ones, history, conditions, data, scripts, services and transitions
without an event are refused: with them a chart is more than an automaton of its states.

What is said is the event of a `<send>` and the text of a `<log>`, in transitions or on entry to
states; `_charts` says how a machine comes of it. A `<final>` state is never left. Elements of other
namespaces, which editors leave behind, are passed over.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from xml.sax.saxutils import quoteattr

from statetrack.sources.automaton import Automaton
from statetrack.sources.formats import MACHINE_FORMATS, MachineFormat
from statetrack.sources.formats._charts import Chart, Reaction, encoded, machine_of
from statetrack.sources.formats._text import MachineText, problem, shown
from statetrack.sources.formats._xml import Element, parse

NAMESPACE: Final = "http://www.w3.org/2005/07/scxml"

_WHY: Final = {
    "state": "states inside states are not read: flatten the chart",
    "parallel": "parallel states are not read: write their product",
    "history": "history is not read: write a state for each memory",
    "initial": "states inside states are not read: flatten the chart",
    "datamodel": "data are not read: an automaton has states alone",
    "script": "scripts are not read, and never run",
    "invoke": "services are not read: an automaton has states alone",
    "onexit": "what is said on leaving a state is not read: say it in the transitions",
}
"""Why elements are refused, beside all that are not known."""

_TEXT = re.compile(r"""'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)\"""", re.DOTALL)


def read(text: str) -> MachineText:
    """The machine of a text; raises `TaskError` with the line of what cannot be read."""
    root = parse(text)
    if root.name != "scxml" or root.space not in ("", NAMESPACE):
        raise problem(root.line, f"a file of SCXML begins with <scxml>, not <{root.name}>")
    states = {}
    for child in _own(root):
        if child.name not in ("state", "final"):
            raise _refused(child)
        name = child.attributes.get("id", "")
        if not name or name in states:
            what = f"a second state with the id {shown(name)}" if name else "a state needs an id"
            raise problem(child.line, what)
        states[name] = child
    if not states:
        raise problem(root.line, "there is no <state>")
    start = root.attributes.get("initial", next(iter(states)))
    if start not in states:
        raise problem(root.line, f"initial={shown(start)} is the id of no state")
    says: dict[str, list[str]] = {}
    reactions: dict[str, dict[str, Reaction]] = {}
    for name, state in states.items():
        reactions[name] = {}
        for child in _own(state):
            if child.name == "transition" and state.name == "state":
                _transition(child, name, states, reactions[name])
            elif child.name == "onentry":
                says[name] = says.get(name, []) + _said(child)
            else:
                raise _refused(child)
        if "initial" in state.attributes:
            raise problem(state.line, _WHY["initial"])
    found = dict.fromkeys(event for row in reactions.values() for event in row if event)
    return machine_of(
        Chart(
            start,
            {state: said for state, said in says.items() if said},
            reactions,
            list(found),
            _patterns,
        )
    )


def _own(parent: Element) -> list[Element]:
    """The children that are not of another program's namespace."""
    return [child for child in parent.children if child.space in ("", NAMESPACE)]


def _refused(element: Element) -> Exception:
    why = _WHY.get(element.name, "is not read: a flat chart has states and transitions alone")
    return problem(element.line, f"<{element.name}>: {why}")


def _transition(
    element: Element, state: str, states: dict[str, Element], row: dict[str, Reaction]
) -> None:
    events = element.attributes.get("event", "").split()
    if "cond" in element.attributes:
        raise problem(element.line, "conditions (cond) are not read: write a state for each case")
    if not events:
        raise problem(element.line, "a transition without an event is not read")
    target = element.attributes.get("target")
    if target is not None and target not in states:
        raise problem(element.line, f"target={shown(target)} is the id of no state")
    reaction = Reaction(target, _said(element), len(row), element.line)
    for event in events:
        pattern = "" if event == "*" else event.removesuffix("*").removesuffix(".")
        if pattern in row:
            raise problem(
                element.line,
                f"state {shown(state)} already has a transition for {shown(event)}, in line "
                f"{row[pattern].line}",
            )
        row[pattern] = reaction


def _patterns(event: str) -> list[str]:
    """The patterns that an event matches: itself, what stands before its dots, and all."""
    parts = event.split(".")
    return ["", *(".".join(parts[:count]) for count in range(1, len(parts) + 1))]


def _said(holder: Element) -> list[str]:
    said = []
    for child in _own(holder):
        if child.name == "send" and "event" in child.attributes:
            if {"delay", "delayexpr"} & child.attributes.keys():
                raise problem(child.line, "a <send> with a delay is not read: time is no symbol")
            said.append(child.attributes["event"])
        elif child.name == "log" and "expr" in child.attributes:
            said.append(_unquoted(child.attributes["expr"]))
        else:
            raise problem(
                child.line,
                f"<{child.name}> is not read: what is said is a <send event> or a <log expr>",
            )
    return said


def _unquoted(expression: str) -> str:
    """The text of an expression that is one text in quotes; another expression as it stands."""
    found = _TEXT.fullmatch(expression.strip())
    if not found:
        return expression.strip()
    return re.sub(r"\\(.)", r"\1", found[1] if found[1] is not None else found[2])


def write(automaton: Automaton) -> str:
    """The text of a machine: every state logs its label when it is entered."""
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<scxml xmlns="{NAMESPACE}" version="1.0" initial="s{automaton.start}">',
    ]
    events = [quoteattr(name) for name in _events(automaton.symbols)]
    for state, (row, label) in enumerate(
        zip(automaton.delta.tolist(), automaton.output.tolist(), strict=True)
    ):
        text = "'" + re.sub(r"(['\\])", r"\\\1", automaton.labels[label]) + "'"
        lines += [
            f'  <state id="s{state}">',
            f"    <onentry><log expr={quoteattr(text)}/></onentry>",
            *(
                f'    <transition event={event} target="s{target}"/>'
                for event, target in zip(events, row, strict=True)
            ),
            "  </state>",
        ]
    return "\n".join([*lines, "</scxml>", ""])


def _events(symbols: Sequence[str]) -> list[str]:
    """Symbols as events, with codes for dots where one would match another, and for stars."""
    known = set(symbols)
    events = []
    for symbol in symbols:
        apart = not known.isdisjoint(_patterns(symbol)[1:-1]) or not all(symbol.split("."))
        events.append(encoded(symbol, "*." if apart else "*"))
    return events


MACHINE_FORMATS.register("scxml")(MachineFormat((".scxml",), read, write))
