"""Record what training holds of exact weights: `python -m tests.held`; what is recorded stays.

The record is `tests/held/recorded.json`, which `docs/learned.py` makes a page of. It can be
interrupted at any time, and goes on with the next point; `--seconds` ends it by itself.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch

import torch

from tests.held.points import all_points
from tests.point_records import write_points

RECORD = Path(__file__).with_name("recorded.json")


def main() -> None:
    """Measure the points that are not recorded."""
    parser = argparse.ArgumentParser(prog="python -m tests.held", description=__doc__)
    parser.add_argument("--record", type=Path, default=RECORD)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="of processor time")
    parser.add_argument("--models", default="", help="names of models, with commas; all if empty")
    given = parser.parse_args()
    torch.set_num_threads(1)
    rows = {}
    if given.record.is_file():
        kept = json.loads(given.record.read_text())["points"]
        rows = {(row["model"], row["task"], row["condition"]): row for row in kept}
    names = given.models.split(",") if given.models else []
    points = [each for each in all_points() if not names or each.variant.model in names]
    refused = {place[:2] for place, row in rows.items() if "refused" in row}
    for point in points:
        place = point.place
        if place in rows or place[:2] in refused or time.process_time() > given.seconds:
            continue
        row = point.measure()
        rows[place] = row
        if "refused" in row:  # and so are the other conditions
            refused.add(place[:2])
        print(row, flush=True)
        write_points(given.record, rows.values())
    print(f"{len(rows)} points are recorded")


if __name__ == "__main__":
    main()
