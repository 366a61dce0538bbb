"""The suite `minimal-state`, written from what the algebra predicts now.

    python -m tests.minimal_state > tasks/suites/minimal-state.yaml

Sizes come from `predict` alone. How long each is trained is set here, by size, and is the same one
below the predicted size and at it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from statetrack.predicting import predict
from statetrack.sources.named_groups import COLLECTION, named_group

BELOW, AT = "one below", "predicted size"

BEYOND = ("C2", "C2^1")
"""They need one dimension: there is none below."""

LEFT_OUT: tuple[str, ...] = ("C5^4",)
"""625 points: not trained."""

HEADER = """\
# Written by `python -m tests.minimal_state`: sizes are what `predict` says of a group's points.
title: The smallest state that tracks a point under a group
departures: "own: no paper has this table"
"""

STEPS = {4: 400, 6: 600, 9: 1000, 12: 1500, 31: 3000}
"""Steps for a state of so many dimensions at most."""

LARGE = 12
"""Larger states come last, as do groups of more than `MANY` points: they take the longest."""

MANY = 64

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

    @property
    def is_late(self) -> bool:
        """Whether it takes long."""
        return self.size > LARGE or self.points > MANY

    def cell(self, size: int) -> dict[str, Any]:
        """The settings of one run: one matrix of that size for each symbol."""
        if self.is_whole:
            return {"hidden": size}
        return {"model": "bilinear-block", "hidden": size, "block_size": size}


def column_of(name: str) -> Column:
    """What is trained for a group."""
    group = named_group(name)
    task = f"point:group={name}"
    size = predict(task, "bilinear").needs[0].value
    assert isinstance(size, int)
    whole = size == group.points - 1
    steps = next(steps for most, steps in STEPS.items() if size <= most)
    settings: dict[str, Any] = {"steps": steps, "seeds": 3}
    if len(group.generators) == 1 or not whole:
        task += f",generators={'all' if group.order <= OF_ALL else 'with-inverses'}"
    if not whole:
        settings |= SMOOTHED
        if group.points > MANY:
            settings |= {"steps": 2000, "train_length": "2-16"}
    return Column(name, size, {"task": task, **settings}, whole, group.points)


def columns() -> list[Column]:
    """Those of the suite, the smallest states first."""
    names = [name for name in COLLECTION if name not in (*BEYOND, *LEFT_OUT)]
    found = map(column_of, names)
    return sorted(found, key=lambda each: (each.is_late, not each.is_whole, each.size, each.points))


def document() -> str:
    """The suite's file."""
    found = columns()
    lines = [HEADER + "settings: {seed: 0}", "models:"]
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


if __name__ == "__main__":
    print(document(), end="")
