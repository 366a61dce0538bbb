"""The representation that a model learned, as facts and tables for the terminal."""

from __future__ import annotations

import math

from rich.console import RenderableType
from rich.text import Text

from statetrack.evidence import Irreducible, LearnedGroup, Plane, Representation
from statetrack.report.drawing import facts, plain_table

MOST_PLANES = 12
"""The most planes that are shown."""

NOT_READ = 1e-3
"""Planes with a smaller share of the squared logits are counted and not shown."""

NOT_LEARNED = 0.05
"""Irreducibles with a smaller multiplicity are named and not shown."""

SHOWN_GROUPS = 3
"""The most groups that are shown."""


def representation_lines(found: Representation) -> list[RenderableType]:
    """What is known of it: facts, the irreducibles of its groups, planes that operators keep."""
    lines: list[RenderableType] = [facts(_facts(found))]
    for group in found.groups[:SHOWN_GROUPS]:
        lines += [Text(), *_group_lines(group)]
    if len(found.groups) > SHOWN_GROUPS:
        lines.append(Text(f"and {len(found.groups) - SHOWN_GROUPS} smaller groups"))
    if found.planes:
        lines += [Text(), *_plane_lines(found)]
    return lines


def _facts(found: Representation) -> list[tuple[str, str]]:
    told = [("  dimensions", _dimensions(found))]
    if found.dimension:
        least, most = min(found.growth), max(found.growth)
        if (least, most) != (1.0, 1.0):
            told.append(
                ("  growth", f"{least - 1:+.1e} to {most - 1:+.1e} per symbol, divided out")
            )
        told.append(("  eigenvalues", _moduli(found)))
    if found.commutators is not None:
        parts = []
        if found.commutators.largest_of_commuting is not None:
            parts.append(f"at most {found.commutators.largest_of_commuting:.1e} where maps commute")
        if found.commutators.smallest_of_others is not None:
            parts.append(f"at least {found.commutators.smallest_of_others:.2g} where not")
        pairs = _number(found.commutators.pairs, "pair")
        told.append(("  commutators", f"{', '.join(parts)} ({pairs} of symbols)"))
    if found.homomorphism is not None:
        defect = found.homomorphism
        told.append(
            (
                "  homomorphism",
                f"words that do the same differ by {defect.largest:.1e} at most, {defect.mean:.1e} "
                f"in the mean ({_number(defect.pairs, 'pair')}, {_number(defect.elements, 'map')}"
                f"{'' if defect.complete else ', not all'})",
            )
        )
    if found.groups_are:
        told.append(("  groups", f"none: {found.groups_are}"))
    if not found.planes:
        told.append(("  planes", found.planes_are))
    return told


def _dimensions(found: Representation) -> str:
    constant = " and a constant" if found.affine else ""
    text = f"{found.dimension} of {found.width}{constant} keep the state"
    if not found.read:
        text += " (the readout is not linear: read or not)"
    if found.dimension:
        text += f"; spread within a state {found.spread:.1e} of its distance"
    return text


def _moduli(found: Representation) -> str:
    used = [math.hypot(*each) for spectrum in found.spectra for each in spectrum.used]
    every = [math.hypot(*each) for spectrum in found.spectra for each in spectrum.every]
    text = f"moduli {_range(min(used), max(used))} where the state is kept"
    if every:
        text += f", at most {max(every):.5f} in all"
    if len(found.spectra) < len(found.symbols):
        text += f" (of {len(found.spectra)} of {len(found.symbols)} symbols)"
    return text


def _group_lines(group: LearnedGroup) -> list[RenderableType]:
    learned = [each for each in group.irreducibles if abs(each.multiplicity) >= NOT_LEARNED]
    absent = [each.name for each in group.irreducibles if abs(each.multiplicity) < NOT_LEARNED]
    total = f"{group.dimension:.4f}".rstrip("0").rstrip(".")
    title = (
        f"{group.name} ({_number(group.order, 'element')}) acts on {total} dimensions; the parts "
        f"add up to {group.accounted} (residue {group.residue:.1e})"
    )
    number = ("dimension", "multiplicity", "read")
    table = plain_table("irreducible", "dimension", "type", "multiplicity", "read", right=number)
    for each in learned:
        table.add_row(
            _name(each),
            str(each.dimension),
            each.type,
            f"{each.multiplicity:z.5f}",
            f"{100 * each.weight:.1f} %",
        )
    lines: list[RenderableType] = [Text(title)]
    if learned:
        lines.append(table)
    if absent:
        lines.append(Text(f"not learned: {', '.join(absent)}"))
    return lines


def _name(irreducible: Irreducible) -> str:
    return irreducible.name + (", faithful" if irreducible.faithful else "")


def _plane_lines(found: Representation) -> list[RenderableType]:
    read = [plane for plane in found.planes if plane.weight >= NOT_READ]
    counting = found.modulus is not None
    lines: list[RenderableType] = [Text(f"planes: {found.planes_are}")]
    if counting and found.unit is not None:
        lines.append(
            Text(
                f"harmonic: the angle of symbol {found.symbols[found.unit]}, over 2 pi / "
                f"{found.modulus}; off: the largest angle between a symbol and the whole harmonic"
            )
        )
    elif any(None in plane.angles for plane in read):
        lines.append(Text("angles: of each symbol, in radians; -: it does not rotate the plane"))
    else:
        lines.append(Text("angles: of each symbol, in radians"))
    headings = ["dimension", "read", "modulus", *(["harmonic", "off"] if counting else ["angles"])]
    table = plain_table(*headings, right=("dimension", "read", "modulus", "harmonic", "off"))
    for plane in read[:MOST_PLANES]:
        table.add_row(
            str(plane.dimension),
            f"{100 * plane.weight:.1f} %",
            _range(min(plane.moduli), max(plane.moduli)),
            *(_counted(plane) if counting else [_angles(plane)]),
        )
    lines.append(table)
    left = len(found.planes) - len(read)
    if len(read) > MOST_PLANES:
        lines.append(Text(f"and {len(read) - MOST_PLANES} more"))
    if left:
        lines.append(Text(f"{_number(left, 'plane')} hardly read (below {100 * NOT_READ:g} %)"))
    return lines


def _counted(plane: Plane) -> list[str]:
    harmonic = "-" if plane.harmonic is None else f"{plane.harmonic:z.4f}"
    return [harmonic, "-" if plane.deviation is None else f"{plane.deviation:.1e}"]


def _angles(plane: Plane) -> str:
    shown = ["-" if angle is None else f"{angle:z.3f}" for angle in plane.angles[:6]]
    return " ".join(shown) + (" ..." if len(plane.angles) > len(shown) else "")


def _range(least: float, most: float) -> str:
    """Two moduli, as one where they look the same."""
    ends = (f"{least:.5f}", f"{most:.5f}")
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def _number(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
