"""The angles that models learned for cyclic groups, of all points of a suite in two tables.

They are read from the evidence of the points' runs, where `statetrack probe RUN --all` keeps it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

from statetrack.errors import StatetrackError
from statetrack.evidence import Plane, Representation
from statetrack.markup import markdown, markdown_table
from statetrack.report.table import share
from statetrack.runs import EvidenceRow, RunFolder, latest_evidence
from statetrack.sweep import PointResult

READ = 0.01
"""Planes with a smaller share of the squared logits are not shown."""


def kept_evidence(run: Path) -> list[EvidenceRow]:
    """The latest evidence of each kind in a run's folder; none where it cannot be read."""
    try:
        return latest_evidence(RunFolder(run).evidence())
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
