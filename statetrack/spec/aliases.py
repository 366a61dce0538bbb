"""Further names of shipped tasks: earlier ones, which still work, with a note of what they are."""

from __future__ import annotations

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
