"""Machines in the DOT language: Mealy, Moore and accepting ones."""

from __future__ import annotations

import re

from statetrack.errors import TaskError
from statetrack.sources.formats._machine import Edge, MachineText

_EDGE = re.compile(r'^\s*"?([^"\s\[]+)"?\s*->\s*"?([^"\s\[;]+)"?\s*(?:\[(.*)\])?\s*;?\s*$')
_NODE = re.compile(r"^\s*(\w+)\s*\[(.*)\]\s*;?\s*$")
_LABEL = re.compile(r'label\s*=\s*(?:"([^"]*)"|([^\s,;\]]+))')
_START = "__start0"


def read(text: str) -> MachineText:
    """The machine of a DOT text; raises `TaskError` for one without transitions."""
    edges: list[Edge] = []
    outputs: dict[str, str] = {}
    start = ""
    for number, line in enumerate(text.splitlines(), 1):
        if arrow := _EDGE.match(line):
            source, target, attributes = arrow.groups()
            if source == _START:
                start = target
                continue
            label = _label(attributes or "")
            symbol, slash, output = label.partition("/")
            edges.append(
                Edge(source, symbol.strip(), target, output.strip() if slash else None, number)
            )
        elif (node := _NODE.match(line)) and node[1] not in ("node", "edge", "graph", _START):
            label = _label(node[2]).strip("{} ")
            accepting = "yes" if "doublecircle" in node[2] else "no"
            outputs[node[1]] = label.partition("|")[2].strip() if "|" in label else accepting
    if not edges:
        raise TaskError("no transition was found")
    mealy = any(edge.output is not None for edge in edges)
    return MachineText(start or edges[0].source, edges, None if mealy else outputs)


def _label(attributes: str) -> str:
    found = _LABEL.search(attributes)
    return (found[1] or found[2] or "") if found else ""
