"""A state diagram as text in the DOT language, which Graphviz and many other programs read."""

from __future__ import annotations

from collections.abc import Sequence

from statetrack.pictures.drawn import Drawn


def dot(drawn: Drawn) -> str:
    """The machine: a node for each state with its label, an edge for all symbols between two.

    A state that is its own label has one line, and one whose label is not asked for has `-`.
    """
    lines = [
        "digraph {",
        f"  label={_quoted(drawn.title)};",
        "  rankdir=LR;",
        "  node [shape=circle];",
        '  start [shape=point, label=""];',
        f"  start -> s{drawn.start};",
    ]
    notes: Sequence[str | None] = drawn.notes or [None] * len(drawn.states)
    for state, (name, note) in enumerate(zip(drawn.states, notes, strict=True)):
        text = name if note is None else f"{name}\n{note}"
        lines.append(f"  s{state} [label={_quoted(text)}];")
    for state, targets in enumerate(drawn.delta.tolist()):
        for target in sorted(set(targets) - {-1}):
            symbols = [
                symbol
                for symbol, reached in zip(drawn.symbols, targets, strict=True)
                if reached == target
            ]
            lines.append(f"  s{state} -> s{target} [label={_quoted(', '.join(symbols))}];")
    return "\n".join([*lines, "}", ""])


def _quoted(text: str) -> str:
    """A string of the language, in which backslashes, quotes and ends of lines are escaped."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
