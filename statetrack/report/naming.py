"""Short names of run folders: as many of the last parts of each path as tell it from all others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def short_names(runs: Sequence[Path]) -> list[str]:
    """A name for each folder, in their order: `b`, or `sweep/b` where another has a `b` too.

    Folders with the same path have the same name.
    """
    found: dict[Path, str] = {}
    for run in runs:
        others = [each.parts for each in runs if each != run]
        for number in range(1, len(run.parts) + 1):
            end = run.parts[-number:]
            if all(other[-number:] != end for other in others):
                break
        found[run] = "/".join(run.parts[-number:]) if number < len(run.parts) else run.as_posix()
    return [found[run] for run in runs]
