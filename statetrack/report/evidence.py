"""Evidence as a terminal draws it: what is proven, the first word that fails, and every kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from statetrack.evidence import (
    NONE_FAILS,
    NONE_TRIED,
    Bracket,
    Facts,
    Grid,
    failure_text,
    number_of,
)
from statetrack.evidence import Line as EvidenceLine
from statetrack.report.table import Line, Styled, Table, facts, plain_columns

if TYPE_CHECKING:
    from statetrack.evidence import FailingWords, Window
    from statetrack.sources import Automaton


def drawn(lines: Iterable[EvidenceLine], indent: str = "") -> Iterator[RenderableType]:
    """What evidence says of itself; names of facts are indented."""
    for line in lines:
        match line:
            case Facts():
                yield facts((f"{indent}{name}", value) for name, value in line.rows)
            case Grid():
                yield Table(plain_columns(*line.headings, right=line.right), line.rows)
            case _:
                yield Text(line)


def bracket_lines(bracket: Bracket, symbols: Sequence[str], labels: Sequence[str]) -> list[str]:
    """What is proven, where the model fails, and what lies between: one sentence each."""
    failure = bracket.failure
    if bracket.verdict == "not proven":
        lines = ["proven: nothing"]
    else:
        to = (
            "every length"
            if bracket.proven is None
            else f"up to {number_of(bracket.proven, 'symbol')}"
        )
        lines = [f"proven: every word of {to} is answered rightly ({bracket.proven_by})"]
    position = bracket.fails_at
    if failure is not None and failure.position == position:
        lines.append(f"fails: {failure_text(failure, symbols, labels)}")
    elif position is not None:
        lines.append(f"fails: symbol {position:,} of a random word (`eval --errors` shows some)")
    elif bracket.proven is not None:
        lines.append(NONE_FAILS if bracket.tried else NONE_TRIED)
    if position is not None:
        low, high = bracket.proven or 0, position - 1
        between = f"is {high:,}" if low == high else f"lies between {low:,} and {high:,}"
        lines.append(f"the longest length at which every word is right {between}")
    return lines


def evidence_lines(bracket: Bracket) -> list[tuple[str, str]]:
    """Each kind of evidence, and what it says."""
    told = [(each.kind, each.summary) for each in bracket.evidence if each.summary]
    return told + [(kind, f"not looked for: {reason}") for kind, reason in bracket.skipped]


def window_table(
    window: Window, symbols: Sequence[str], labels: Sequence[str], width: int
) -> RichTable:
    """What stands around a wrong answer: positions, symbols, labels and answers as columns.

    As many positions as a terminal of this width has room for, the wrong one among them.
    """

    def named(row: Sequence[int | None], none: str) -> list[str]:
        return [none if each is None else labels[each] for each in row]

    answers = [
        "-" if label is None else text
        for text, label in zip(named(window.answers, "none"), window.labels, strict=True)
    ]
    rows = {
        "  position": [f"{window.begin + place:,}" for place in range(len(window.symbols))],
        "  symbol": [symbols[each] for each in window.symbols],
        "  label": named(window.labels, "-"),
        "  answer": answers,
    }
    wrong = window.position - window.begin
    widths = [max(map(cell_len, column)) for column in zip(*rows.values(), strict=True)]
    room = width - max(map(len, rows)) - GAP
    shown = range(*_fitting([each + GAP for each in widths], wrong, room))
    table = RichTable(box=None, pad_edge=False, show_header=False, padding=(0, GAP, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    for _ in shown:
        table.add_column(justify="right", no_wrap=True)
    styles = ("bold", "", "bold green", "bold red")
    for (name, texts), style in zip(rows.items(), styles, strict=True):
        cells = [Text(texts[place], style if place == wrong else "") for place in shown]
        table.add_row(name, *cells)
    return table


GAP = 2
"""Spaces between two columns."""


def _fitting(widths: Sequence[int], place: int, room: int) -> tuple[int, int]:
    """The first column and the one after the last that fit, at least that of a place.

    What comes before it matters more: two columns before it for each one behind it.
    """
    first, end, used = place, place + 1, widths[place]
    while True:
        before = first > 0 and (place - first <= 2 * (end - place - 1) or end == len(widths))
        if not before and end == len(widths):
            return first, end
        used += widths[first - 1] if before else widths[end]
        if used > room:
            return first, end
        first, end = (first - 1, end) if before else (first, end + 1)


def failing_words_line(found: FailingWords) -> str:
    """How many test words fail, and how many of them follow."""
    if not found.failing:
        return f"length {found.length:,}: none of {found.words:,} words is answered wrongly"
    return (
        f"length {found.length:,}: {found.failing:,} of {found.words:,} words are answered "
        f"wrongly, of which the earliest {len(found.shown):,}:"
    )


def transitions(machine: Automaton) -> Table:
    """The transition table; a symbol that is never drawn in a state has `-`."""
    rows = []
    for state, targets in enumerate(machine.delta.tolist()):
        label = machine.labels[machine.output[state]] if machine.scored[state] else "-"
        reached = [
            machine.states[target] if drawn else Styled("-", style="dim")
            for target, drawn in zip(targets, machine.drawable[state], strict=True)
        ]
        style = "bold" if state == machine.start else None
        rows.append(Line((machine.states[state], label, *reached), style))
    columns = plain_columns("state", "label", *machine.symbols)
    return Table(columns, rows, more="--json has the machine")
