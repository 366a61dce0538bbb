"""Evidence as a terminal draws it, and the angles that models learned, of all points of a suite.

What is proven, the first word that fails, and every kind; the angles of cyclic groups are read from
the evidence of the points' runs, where `statetrack probe RUN --all` keeps it, in two tables.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from statetrack.errors import StatetrackError
from statetrack.evidence import (
    NONE_FAILS,
    NONE_TRIED,
    Bracket,
    Facts,
    Grid,
    Plane,
    Representation,
    failure_text,
    number_of,
)
from statetrack.evidence import Line as EvidenceLine
from statetrack.report.table import Line, Styled, Table, facts, plain_columns, share
from statetrack.runs import EvidenceRow, RunFolder, known_evidence
from statetrack.sweep import PointResult
from statetrack.text import markdown, markdown_table

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
                yield line


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
        proof = next(each for each in bracket.evidence if each.kind == bracket.proven_by)
        how = f"{proof.kind}: {proof.condition}" if proof.condition else proof.kind
        lines = [f"proven: every word of {to} is answered rightly ({how})"]
    if bracket.expected is not None:
        lines.append(f"expected: {bracket.expected.summary}")
    position = bracket.fails_at
    if failure is not None and failure.position == position:
        lines.append(f"fails: {failure_text(failure, symbols, labels)}")
    elif position is not None:
        lines.append(f"fails: symbol {position:,} of a random word (`eval --errors` shows some)")
    elif bracket.proven is not None:
        lines.append(NONE_FAILS if bracket.tried else NONE_TRIED)
    worst = bracket.worst_case
    if position is None and worst is not None and worst.expected is not None:
        lines.append(f"predicted: {worst.expected.summary}")
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


READ = 0.01
"""Planes with a smaller share of the squared logits are not shown."""


def kept_evidence(run: Path) -> list[EvidenceRow]:
    """The latest evidence of each kind in a run's folder; none where it cannot be read."""
    try:
        return known_evidence(RunFolder(run).evidence())
    except StatetrackError:
        return []


def harmonics_markdown(
    results: Sequence[PointResult],
    evidence_of: Callable[[Path], Sequence[EvidenceRow]] = kept_evidence,
) -> str:
    """The harmonics of every replica's planes, and the angles of the selected one by symbol.

    Empty where no run has evidence about a task that counts modulo m.
    """
    found = [
        (result, row, row.evidence)
        for result in results
        for row in evidence_of(Path(result.run))
        if isinstance(row.evidence, Representation) and row.evidence.modulus is not None
    ]
    if not found:
        return ""
    head = ("row", "column", "seed", "lr", "scaled", "harmonics read", "off")
    lines = [_line(*each) for each in found]
    parts = [
        "Each plane that a replica reads: its harmonic, which is the angle of symbol 1 over "
        "2 pi / m, and its share of the squared logits. Off: the largest angle between a symbol "
        "and the whole harmonic, in radians. Planes below 1 % are left out.\n",
        markdown_table(head, lines),
    ]
    for result, row, evidence in found:
        if row.selected:
            name = f"{result.row}, {result.column}, seed {row.seed}, lr {row.lr:g}"
            parts.append(
                f"{markdown(name)}: the angle of each symbol over 2 pi / {evidence.modulus}.\n"
            )
            parts.append(_angles(evidence))
    return "\n".join(parts)


def _line(result: PointResult, row: EvidenceRow, found: Representation) -> list[str]:
    scaled = next((each.scaled for each in result.rows if each.replica == row.replica), None)
    planes = _read(found)
    off = [plane.deviation for plane in planes if plane.deviation is not None]
    return [
        markdown(result.row),
        markdown(result.column),
        str(row.seed),
        f"{row.lr:g}",
        share(scaled) + " (selected)" * row.selected,
        ", ".join(f"{_harmonic(plane)} ({100 * plane.weight:.0f} %)" for plane in planes) or "-",
        f"{max(off):.1e}" if off else "-",
    ]


def _read(found: Representation) -> list[Plane]:
    """The planes that are read, by their harmonics."""
    planes = [plane for plane in found.planes if plane.weight >= READ]
    return sorted(planes, key=lambda plane: math.inf if plane.harmonic is None else plane.harmonic)


def _harmonic(plane: Plane) -> str:
    return "-" if plane.harmonic is None else f"{plane.harmonic:z.3f}"


def _angles(found: Representation) -> str:
    unit = 2 * math.pi / (found.modulus or 1)
    lines = [
        [
            f"{100 * plane.weight:.0f} %",
            *("-" if angle is None else f"{angle / unit:z.2f}" for angle in plane.angles),
        ]
        for plane in _read(found)
    ]
    return markdown_table(("plane, read", *map(markdown, found.symbols)), lines)
