"""`--dry-run`: what a sweep would take, and nothing is run or written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from statetrack.sweep import Executor, Point, Searching, Suite


def print_estimates(
    suite: Suite,
    points: Sequence[Point],
    executor: Executor,
    searching: Searching,
    *,
    as_json: bool,
) -> None:
    """Estimate the points of a suite on an executor, and print a table or JSON."""
    from statetrack.cli._json import print_json
    from statetrack.cli._verbosity import note
    from statetrack.report import console, estimates_lines, estimates_table
    from statetrack.sweep import BUDGET, estimate

    note(f"timing a few steps of every kind of point: about {BUDGET:g} s at most")
    found = estimate(suite, points, executor.num_at_once, searching)
    if as_json:
        print_json(found.to_json())
        return
    to = console()
    to.print(estimates_table(found))
    for line in estimates_lines(found):
        to.print(line)
