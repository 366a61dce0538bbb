"""The suite `minimal-state`, written from what the algebra predicts now.

    python -m tests.minimal_state > tasks/suites/minimal-state.yaml
    statetrack reproduce minimal-state
    python -m tests.minimal_state suites/minimal-state    # the table of docs/minimal-state.md

Sizes come from `predict` alone. How long each is trained is set here, by size, and is the same one
below the predicted size and at it.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from statetrack.algebra import Algebra, MonoidBudget, analyse
from statetrack.algebra.recurrences.free import dimensions_of
from statetrack.predicting import predict
from statetrack.scoring import rounded_down
from statetrack.sources.named_groups import named_group
from statetrack.spec import load_task
from statetrack.sweep import PointResult, load_suite, points_of
from statetrack.sweep.results import kept_result
from statetrack.text import markdown_table

BELOW, AT = "one below", "predicted size"

COLLECTION = (
    *(f"C{n}" for n in range(2, 31)),
    *(f"D{n}" for n in range(3, 21)),
    *("V4", "Q8", "Q16", "Q32"),
    *(f"C2^{k}" for k in range(1, 6)),
    *(f"C3^{k}" for k in range(1, 5)),
    *(f"C5^{k}" for k in range(1, 5)),
    *("F20", "F21", "A3", "A4", "S3", "S4", "PSL(2,2)", "PSL(2,3)"),
    *(f"S{n}" for n in range(5, 10)),
    *(f"A{n}" for n in range(5, 10)),
    *(f"PSL(2,{q})" for q in (4, 5, 7, 8, 9, 11)),
    *(f"PSL(3,{q})" for q in (2, 3, 4, 5)),
    *("M11", "M12"),
)
"""The 94 groups of BeeGass/Group-Theory-Collection (2025), by the names that they have here.

58 are solvable, the first ones up to PSL(2,3); 36 names, as some groups have several, are of groups
that are not. Its files are called `c5`, `z3_2` for C3^2, `psl2_11` for PSL(2,11), and so on.
"""

BEYOND = ("C2", "C2^1")
"""They need one dimension: there is none below."""

LEFT_OUT = ("C3^4", "C5^3", "C5^4", "PSL(3,4)", "PSL(3,5)")
"""Not learned at their size within minutes, or not tried: then one below says nothing."""

MORE = ("Rubik-corners",)
"""Groups that are not of the collection."""

HEADER = """\
# Written by `python -m tests.minimal_state`: sizes are what `predict` says of a group's points.
title: The smallest state that tracks a point under a group
"""

STATED = "{seed: 0, loss: squared-error, optimizer: adam, beta1: 0.9, beta2: 0.95}"

STEPS = {4: 400, 6: 600, 9: 1000, 16: 1500}
"""Steps for a state of so many dimensions at most."""

LARGE = 12
"""From this size on, one block is trained, with more seeds."""

OF_ALL = 64
"""Up to so many elements, all of them are symbols, where the size is not the number of points - 1.

So they are where one element generates the group: it alone makes one word of every length.
"""

SMOOTHED = {"loss": "smoothed-cross-entropy", "label_smoothing": 0.5, "lrs": [0.1], "seeds": 8}
"""How sizes are trained that are not the number of points - 1.

The squared error of the labels then has the same minimum in all sums of parts of that size, also
in those that take different points for one; cross-entropy is larger there.
"""


@dataclass(frozen=True)
class Column:
    """A group, the size that is predicted, and the settings of its two runs."""

    name: str
    size: int
    settings: dict[str, Any]
    is_whole: bool
    """Whether the size is one less than the number of points."""
    points: int

    def cell(self, size: int) -> dict[str, Any]:
        """The settings of one run: one matrix of that size for each symbol."""
        if self.is_whole and self.size < LARGE:
            return {"hidden": size}
        return {"model": "bilinear-block", "hidden": size, "block_size": size}


FEW = MonoidBudget(most_elements=700)
"""The size needs no list of the group's elements, only how they permute the points."""


@cache
def algebra_of(name: str) -> Algebra:
    """The algebra of following a point under a group."""
    return analyse(load_task(f"point:group={name}").automaton, FEW)


def size_of(algebra: Algebra) -> int:
    """The predicted size of a dense state: `hidden` of `bilinear`."""
    size = predict(algebra, "bilinear").needs[0].value
    assert isinstance(size, int)
    return size


def column_of(name: str) -> Column:
    """What is trained for a group."""
    group = named_group(name)
    task = f"point:group={name}"
    size = size_of(algebra_of(name))
    whole = size == group.points - 1
    steps = next(steps for most, steps in STEPS.items() if size <= most)
    settings: dict[str, Any] = {"steps": steps, "seeds": 3}
    if len(group.generators) == 1 or not (whole or size >= LARGE):
        task += f",generators={'all' if group.order <= OF_ALL else 'with-inverses'}"
    if size >= LARGE:
        settings |= {"lrs": [0.1], "seeds": 4}
    elif not whole:
        settings |= SMOOTHED
    return Column(name, size, {"task": task, **settings}, whole, group.points)


def columns() -> list[Column]:
    """Those of the suite, the smallest states first."""
    names = [name for name in (*COLLECTION, *MORE) if name not in (*BEYOND, *LEFT_OUT)]
    found = map(column_of, names)
    return sorted(found, key=lambda each: (not each.is_whole, each.size, each.points))


def document() -> str:
    """The suite's file."""
    found = columns()
    lines = [HEADER + "settings: " + STATED, "models:"]
    lines += [f"  {row}: {{model: bilinear}}" for row in (BELOW, AT)]
    lines.append("tasks:")
    lines += [f"  {_text(each.name)}: {_flow(each.settings)}" for each in found]
    lines.append("cells:")
    for each in found:
        cells = {BELOW: each.cell(each.size - 1), AT: each.cell(each.size)}
        lines.append(f"  {_text(each.name)}: {_flow(cells)}")
    lines += ["length: 500", "samples: 1000", "horizon_lengths: [5000]", "horizon_samples: 100"]
    return "\n".join(lines) + "\n"


def _flow(value: Any) -> str:
    return json.dumps(value)


def _text(name: str) -> str:
    return json.dumps(name)


def table(folder: Path) -> str:
    """The table of the results in a suite's folder, as Markdown."""
    suite = load_suite("minimal-state")
    kept: dict[str, dict[str, PointResult]] = {}
    for point in points_of(suite, folder, {}):
        result = kept_result(suite, point)
        if result is not None:
            kept.setdefault(point.column, {})[point.row] = result
    pairs = {name: each for name, each in kept.items() if len(each) == len(suite.rows)}
    rows = [_row(name, each[BELOW], each[AT]) for name, each in pairs.items()]
    return f"{_summary(pairs)}\n\n{markdown_table(HEAD, rows)}"


def _summary(pairs: dict[str, dict[str, PointResult]]) -> str:
    """What the table adds up to, in three sentences."""
    below, at = ([each[row] for each in pairs.values()] for row in (BELOW, AT))
    solved, right = (sum(each.num_right > 0 for each in results) for results in (below, at))
    some = (sum(each.num_right for each in results) for results in (below, at))
    tried = (sum(each.replicas for each in results) for results in (below, at))
    (few, many), (few_tried, many_tried) = some, tried
    hours = sum(each.seconds for each in (*below, *at)) / 3600
    return (
        f"**{len(pairs)} groups** are trained. One below, {solved} of them are solved ({few} of "
        f"{few_tried} replicas); at H, {right} of them are ({many} of {many_tried} replicas). "
        f"All {2 * len(pairs)} runs took {hours:.1f} hours, while other programs had most of "
        "the two cores."
    )


HEAD = [
    *("group", "order", "points", "predicted H", "parts"),
    *("solved at H - 1", "best accuracy", "solved at H", "accuracy", "right to", "seconds"),
]


def _row(name: str, below: PointResult, at: PointResult) -> list[str]:
    group, algebra = named_group(name), algebra_of(name)
    assert algebra.representation is not None and at.selected is not None
    return [
        name,
        f"{group.order:,}",
        str(group.points),
        str(size_of(algebra)),
        dimensions_of(algebra.representation),
        f"{below.num_right}/{below.replicas}",
        rounded_down(max((row.accuracy for row in below.rows), default=0.0)),
        f"{at.num_right}/{at.replicas}",
        rounded_down(at.selected.accuracy),
        f"{at.horizon:,}",
        f"{below.seconds + at.seconds:.0f}",
    ]


if __name__ == "__main__":
    print(table(Path(sys.argv[1])) if len(sys.argv) > 1 else document().rstrip("\n"))
