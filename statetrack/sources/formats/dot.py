r"""Machines in the DOT language: Mealy machines, Moore machines and acceptors.

The dialects of AALpy, LearnLib (AutomataLib) and the automata wiki of Radboud University are read,
and whatever the same rules make of other files:

*Start.* The target of an arrow from a node called `__start...`, or from a node that nothing enters,
that is drawn as nothing (`shape=none`, `point`, `plaintext`, `style=invis`, an empty name) and has
one arrow, without a label. Where there is none, the source of the first arrow. Two starts are
refused.

*Kind.* A Moore machine where the labels of all states have two fields, `s0|1` or `{ A | 0 }`, drawn
as a record or with arrows that have no `/`; or `s0 / 1`, or two lines, where no arrow has a `/`. An
acceptor where states have `shape=doublecircle` and not every arrow has a `/`. A Mealy machine where
every arrow has a `/`, or every arrow a label of two lines, the first without `/`: input over
output. Where no state accepts and no arrow has an output, every state says its own label, or its
name where it has none.

*Which `/` separates input from output.* The only one, or the only one with spaces around it, where
every arrow has just one. Otherwise the first or the last one: the reading in which no state has two
transitions with one symbol and fewer transitions are missing. Where both do equally well, the file
is refused. In an acceptor and a Moore machine all of the label is the symbol; so of a visibly
pushdown automaton of AALpy, `( / push(()`, the finite control is read, and what it does to the
stack is part of the symbol.

*Several transitions on one arrow.* Lines of a label (`\n`, `<br/>`, rows of a table) that each have
a `/`, or are labels of an acceptor; other lines are joined. Symbols with `|` or with `,` outside
brackets are lists of symbols where so fewer transitions are missing and none contradict each other.

Labels in HTML are read without their tags. Arrows with `style=invis` are left out.

What is written is a Moore machine in the dialect of AALpy and LearnLib:

    digraph {
    __start0 [label="", shape=none];
    s0 [label="locked|0", shape=record, style=rounded];
    s1 [label="unlocked|1", shape=record, style=rounded];
    __start0 -> s0 [label=""];
    s0 -> s1 [label="coin"];
    ...

A node's label is the state's name and its output. AALpy's own loader reads neither quotes nor
backslashes inside labels; a name that has some is written as Graphviz reads it.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from statetrack.errors import TaskError
from statetrack.sources.automaton import Automaton
from statetrack.sources.formats import MACHINE_FORMATS, MachineFormat
from statetrack.sources.formats._dot_language import Arrow, Graph, Node, Text, parse
from statetrack.sources.formats._text import (
    ACCEPTED,
    REJECTED,
    Edge,
    MachineText,
    problem,
    shown,
    steps,
)

START: Final = "__start"
"""How the name of the node begins from which an arrow leads to the start."""

_NOT_DRAWN = frozenset({"none", "point", "plaintext", "plain"})
_STACK = re.compile(r"/\s*(?:push|pop)\(")
_TAG = re.compile(r"<(/?)\s*(\w*)[^>]*>")
_BREAKING = frozenset({("", "br"), ("/", "br"), ("/", "tr")})
_COMMENT = re.compile(r"<!(?=--).*?(?:-->|\Z)", re.DOTALL)
"""One that is not closed goes to the end."""

_FIELDS = re.compile(r"(?<!\\)\|")
_PORT = re.compile(r"(?<!\\)<[^<>]*>")
_PLAIN = re.compile(r"[\w.:@,=~+-]+")
"""Names of states that are written: others could be read as something else."""


def read(text: str) -> MachineText:
    """The machine of a DOT text.

    Raises `TaskError`, with the line where there is one, for a text that is no directed graph, one
    without transitions, and one whose labels cannot be read by the rules above.
    """
    graph = parse(text)
    start, arrows = _start_and_arrows(graph)
    lines = [_lines_of(arrow) for arrow in arrows]
    nodes = {name: graph.nodes[name] for arrow in arrows for name in arrow[:2]}
    nodes.setdefault(start, graph.nodes[start])
    with_slash = [any("/" in line for line in each) for each in lines]
    two_lines = all(len(each) == 2 and "/" not in each[0] for each in lines)
    accepting = any(map(_accepts, nodes.values()))
    stack = any(_STACK.search(line) for each in lines for line in each)
    outputs = _outputs_in_fields(nodes, any(with_slash))
    if outputs is None and accepting and (stack or not all(with_slash)):
        outputs = {name: ACCEPTED if _accepts(node) else REJECTED for name, node in nodes.items()}
    if outputs is None and not accepting and two_lines:
        edges = [
            Edge(arrow.source, each[0], arrow.target, each[1], arrow.line)
            for arrow, each in zip(arrows, lines, strict=True)
        ]
        return MachineText(start, _with_lists(edges), None)
    if outputs is None and all(with_slash):
        several = all("/" in line for each in lines for line in each)
        labels = lines if several else [[" ".join(each)] for each in lines]
        return MachineText(start, _with_lists(_mealy(_edges(arrows, labels))), None)
    if outputs is None and any(with_slash):
        without, having = with_slash.index(False), with_slash.index(True)
        raise problem(
            arrows[without].line,
            f"the label {shown(' '.join(lines[without]))} says no "
            f"output, but {shown(' '.join(lines[having]))} in line {arrows[having].line} does: "
            "write input/output on every arrow, or shape=doublecircle for accepting states",
        )
    if outputs is None:
        outputs = {
            name: " ".join(_lines(node.said("label"), name)) or name for name, node in nodes.items()
        }
    return MachineText(start, _with_lists(_edges(arrows, lines)), outputs)


def _edges(arrows: Sequence[Arrow], labels: Sequence[Sequence[str]]) -> list[Edge]:
    """A transition for each label of an arrow, all of the label its symbol."""
    return [
        Edge(arrow.source, label, arrow.target, None, arrow.line)
        for arrow, each in zip(arrows, labels, strict=True)
        for label in each
    ]


def _start_and_arrows(graph: Graph) -> tuple[str, list[Arrow]]:
    """The state before the first symbol, and the arrows between states."""
    drawn = [arrow for arrow in graph.arrows if "invis" not in arrow.said("style").word]
    entered = {arrow.target for arrow in graph.arrows}
    leaving: dict[str, list[Arrow]] = {}
    for arrow in graph.arrows:
        leaving.setdefault(arrow.source, []).append(arrow)

    def is_mark(node: Node) -> bool:
        if node.name.startswith(START):
            return True
        arrows = leaving.get(node.name, [])
        return (
            node.name not in entered
            and len(arrows) == 1
            and not arrows[0].label.word
            and (
                not node.name.strip()
                or node.said("shape").word in _NOT_DRAWN
                or "invis" in node.said("style").word
            )
        )

    marks = {name for name, node in graph.nodes.items() if is_mark(node)}
    for arrow in graph.arrows:
        if arrow.target in marks:
            raise problem(
                arrow.line, f"an arrow leads to {shown(arrow.target)}, which only marks the start"
            )
    marking = [arrow for arrow in graph.arrows if arrow.source in marks]
    for arrow in marking[1:]:
        if arrow.target != marking[0].target:
            raise problem(
                arrow.line,
                f"a second start {shown(arrow.target)}: the first is "
                f"{shown(marking[0].target)} in line {marking[0].line}",
            )
    arrows = [arrow for arrow in drawn if arrow.source not in marks]
    if not arrows:
        raise TaskError("no transition was found: there is no arrow between two states")
    return (marking[0].target if marking else arrows[0].source), arrows


def _accepts(node: Node) -> bool:
    return "double" in node.said("shape").word or node.said("peripheries").word == "2"


def _lines_of(arrow: Arrow) -> list[str]:
    """The lines of an arrow's label; raises `TaskError` where there is none."""
    lines = _lines(arrow.label)
    if not lines:
        raise problem(
            arrow.line,
            f"the arrow from {shown(arrow.source)} to "
            f"{shown(arrow.target)} has no label: every transition needs its symbol",
        )
    return lines


def _lines(text: Text, name: str = "") -> list[str]:
    r"""The lines of a label that are not empty, without tags or escapes; `name` is for `\N`."""

    def in_place_of(tag: re.Match[str]) -> str:
        kind = (tag[1], tag[2].lower())
        return "\n" if kind in _BREAKING else " " if kind == ("/", "td") else ""

    if text.html:
        label = " ".join(_COMMENT.sub("", text.text).split())
        plain = html.unescape(_TAG.sub(in_place_of, label))
    else:
        special = {"n": "\n", "l": "\n", "r": "\n", "N": name}
        plain = re.sub(r"\\(.)", lambda escape: special.get(escape[1], escape[1]), text.text)
    return [" ".join(line.split()) for line in plain.split("\n") if line.strip()]


def _outputs_in_fields(nodes: Mapping[str, Node], with_slash: bool) -> dict[str, str] | None:
    """The outputs of a Moore machine whose states have labels of two fields; None for others."""
    labels = {name: node.said("label") for name, node in nodes.items()}
    fields = {name: _fields(label, name) for name, label in labels.items()}
    num_with_two = sum(len(each) > 1 for each in fields.values())
    as_records = all(
        "record" in node.said("shape").word or re.fullmatch(r"\{.*\}", labels[name].word, re.DOTALL)
        for name, node in nodes.items()
    )
    if num_with_two == len(nodes) and (as_records or not with_slash):
        return {name: each[1] for name, each in fields.items()}
    if with_slash:
        return None
    if num_with_two and not any(map(_accepts, nodes.values())):
        # a state whose label has one field has an output of that name: so AALpy reads it
        return {name: each[-1] or name for name, each in fields.items()}
    lines = {name: _lines(label, name) for name, label in labels.items()}
    if all(len(each) == 1 and each[0].count("/") == 1 for each in lines.values()):
        return {name: each[0].partition("/")[2].strip() for name, each in lines.items()}
    if all(len(each) == 2 for each in lines.values()):
        return {name: each[1] for name, each in lines.items()}
    return None


def _fields(label: Text, name: str) -> list[str]:
    """A record's first field and the rest, without brackets and ports; or the label alone."""
    raw = label.text.strip()
    if not label.html and _FIELDS.search(raw):
        raw = _PORT.sub("", raw)
        if raw.startswith("{") and raw.endswith("}") and not raw.endswith("\\}"):
            raw = raw[1:-1]
        parts = _FIELDS.split(raw, maxsplit=1)
        return [" ".join(_lines(Text(part), name)) for part in parts]
    return [" ".join(_lines(label, name))]


def _mealy(labelled: Sequence[Edge]) -> list[Edge]:
    """The transitions of a Mealy machine, once it is known which `/` separates the output."""
    for separator in ("/", " / "):
        if all(each.symbol.count(separator) == 1 for each in labelled):
            return _split(labelled, separator, str.partition)
    separator = " / " if all(" / " in each.symbol for each in labelled) else "/"
    first = _split(labelled, separator, str.partition)
    last = _split(labelled, separator, str.rpartition)
    cost_of_first, cost_of_last = _faults(first), _faults(last)
    if cost_of_first == cost_of_last and not cost_of_first[0]:
        unclear = next(each for each in labelled if each.symbol.count(separator) > 1)
        raise problem(
            unclear.line,
            f"{shown(unclear.symbol)} has several '/', and which one "
            "separates input from output is not clear: put spaces around that one, in every label",
        )
    return first if cost_of_first <= cost_of_last else last


def _split(
    labelled: Iterable[Edge],
    separator: str,
    parts: Callable[[str, str], tuple[str, str, str]],
) -> list[Edge]:
    edges = []
    for each in labelled:
        symbol, _, output = parts(each.symbol, separator)
        if not symbol.strip():
            raise problem(each.line, f"{shown(each.symbol)} has no input before '/'")
        edges.append(each._replace(symbol=symbol.strip(), output=output.strip()))
    return edges


def _with_lists(edges: Sequence[Edge]) -> Sequence[Edge]:
    """The transitions, with lists of symbols taken apart where the machine is more whole so."""
    best = edges
    for separator in "|,":
        if not any(separator in edge.symbol for edge in edges):
            continue
        apart = [
            edge._replace(symbol=symbol)
            for edge in edges
            for symbol in _apart(edge.symbol, separator)
        ]
        if _faults(apart) < _faults(best):
            best = apart
    return best


def _apart(symbol: str, separator: str) -> list[str]:
    """The parts of a list, taken apart where the separator stands outside brackets."""
    parts, depth = [""], 0
    for letter in symbol:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == separator and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    stripped = [part.strip() for part in parts]
    return stripped if all(stripped) else [symbol]


def _faults(edges: Sequence[Edge]) -> tuple[bool, int]:
    """Whether transitions contradict each other, and how many are missing."""
    steps: dict[tuple[str, str], tuple[str, str | None]] = {}
    contradicted = False
    for source, symbol, target, output, _ in edges:
        contradicted |= steps.setdefault((source, symbol), (target, output)) != (target, output)
    states = {state for edge in edges for state in (edge.source, edge.target)}
    return contradicted, len(states) * len({symbol for _, symbol in steps}) - len(steps)


def write(automaton: Automaton) -> str:
    """The text of a machine: a node for each state, an arrow for each of its symbols."""
    lines = ["digraph {", '__start0 [label="", shape=none];']
    for state, label in enumerate(automaton.output.tolist()):
        name = automaton.states[state]
        first = name if _PLAIN.fullmatch(name) else f"s{state}"
        field = re.sub(r"([\\{}|<>\"])", r"\\\1", automaton.labels[label])
        lines.append(f's{state} [label="{first}|{field}", shape=record, style=rounded];')
    lines.append(f'__start0 -> s{automaton.start} [label=""];')
    symbols = [re.sub(r"([\\\"])", r"\\\1", symbol) for symbol in automaton.symbols]
    lines += [
        f's{source} -> s{target} [label="{symbols[symbol]}"];'
        for source, symbol, target in steps(automaton)
    ]
    return "\n".join([*lines, "}", ""])


MACHINE_FORMATS.register("dot")(MachineFormat((".dot", ".gv"), read, write))
