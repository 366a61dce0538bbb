"""Record the law of precision: `python -m tests.precision`; what is recorded already stays.

The record is `tests/precision/recorded.json`. It can be interrupted at any time, and goes on with
the next point; `--seconds` ends it by itself.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch

import torch

from tests.point_records import write_points
from tests.precision.points import Weights, all_points, kept_rows, measure

RECORD = Path(__file__).with_name("recorded.json")


def main() -> None:
    """Measure the points that are not recorded."""
    parser = argparse.ArgumentParser(prog="python -m tests.precision", description=__doc__)
    parser.add_argument("--record", type=Path, default=RECORD)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="of processor time")
    parser.add_argument("--weights", type=Path, help="folder for trained weights")
    parser.add_argument("--only", default="", help="points whose name has this text")
    given = parser.parse_args()
    torch.set_num_threads(1)
    rows = kept_rows(given.record)
    points = [each for each in all_points() if given.only in each.name]
    made: dict[Weights, Any] = {}
    for point in points:
        if point.name in rows or time.process_time() > given.seconds:
            continue
        if point.weights not in made:
            made[point.weights] = point.weights.make(given.weights)
        started = time.process_time()
        row = measure(point, *made[point.weights])
        row["seconds"] = round(time.process_time() - started, 2)
        rows[point.name] = row
        print(f"{point.name}: {row['seconds']} s", flush=True)
        write(given.record, rows)
    left = sum(point.name not in rows for point in points)
    print(f"{len(rows)} points, {left} left")


def write(path: Path, rows: dict[str, dict[str, object]]) -> None:
    """Write the record, a point a line."""
    names = [point.name for point in all_points()]
    order = [name for name in names if name in rows] + [name for name in rows if name not in names]
    write_points(path, (rows[name] for name in order))


if __name__ == "__main__":
    main()
