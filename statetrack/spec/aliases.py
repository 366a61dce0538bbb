"""Further names of shipped tasks: earlier ones, which still work, with a note of what they are."""

from __future__ import annotations

import re
from typing import Final

from statetrack.registry import Alias


def _brackets(depth: int) -> Alias:
    name = f"dyck-1-depth-{depth}"
    return Alias(
        name,
        f"task 'd{depth}' is {name}: balanced brackets at most {depth} deep; the dihedral group of "
        f"{2 * depth} elements is dihedral:n={depth}",
    )


ALIASES: Final = {f"d{depth}": _brackets(depth) for depth in (2, 3, 4, 12)}
"""By their names in Bhattamishra et al. (2020), arXiv 2009.11264, D_n are bounded brackets; beside
`s4` and `a4` they read like groups."""

_FAMILIES: Final = {
    "s": ("symmetric", "symmetric:n="),
    "a": ("alternating", "alternating:n="),
    "d": ("dihedral", "dihedral:n="),
    "z": ("cyclic", "cyclic:n="),
    "c": ("cyclic", "cyclic:n="),
}


def group_meant(name: str) -> str:
    """A sentence for a name that is no task but reads like a group, such as `d5`; empty for others.

    It says which task is that group.
    """
    found = re.fullmatch("([sadzc])_?([1-9][0-9]{0,3})", name, re.ASCII | re.IGNORECASE)
    if found is None:
        return ""
    family, task = _FAMILIES[found[1].lower()]
    return f" The {family} group {found[1].upper()}{found[2]} is `{task}{found[2]}`."
