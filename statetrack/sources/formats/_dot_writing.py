r"""A machine as text in the DOT language: a Moore machine in the dialect of AALpy and LearnLib.

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

import re

from statetrack.sources.automaton import Automaton
from statetrack.sources.formats._writing import steps

_PLAIN = re.compile(r"[\w.:@,=~+-]+")
"""Names of states that are written: others could be read as something else."""


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
