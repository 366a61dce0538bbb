"""What `--dry-run` says of points, against what they then take: all models on some tasks.

    python -m tests.benchmarks.estimates [--models lstm,transformer] [--tasks parity,s3]

All points are estimated at once, in the seconds that the command takes for it, and then run one
after the other in this process, on one thread. Seconds are of the processor, so that what else the
machine does matters little. Training ends without solving for operators, which depends on what was
learned, and which an estimate does not count.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import torch

from statetrack.models import MODELS
from statetrack.sweep import Estimate, Suite, estimate, points_of
from statetrack.sweep.work import run_point

TASKS = ("parity", "s3")


def main() -> None:
    """Print a row for each point, and the most by which an estimate is off."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--length", type=int, default=300)
    parser.add_argument("--samples", type=int, default=300)
    given = parser.parse_args()
    torch.set_num_threads(1)
    suite = Suite(
        title="Points of which it is estimated what they take",
        settings={"steps": given.steps, "seeds": 2, "finish": "none"},
        models={name: name for name in given.models.split(",")},
        tasks={name: name for name in given.tasks.split(",")},
        length=given.length,
        samples=given.samples,
    )
    with tempfile.TemporaryDirectory() as folder:
        points = points_of(suite, Path(folder), {})
        found = estimate(suite, points, 1)
        print(f"{len(points)} points, estimated in {found.measuring_seconds:.0f} s\n")
        print(
            "| model | task | estimated (s) | real (s) | real / estimated |\n|---|---|---|---|---|"
        )
        ratios = []
        for point, one in zip(points, found.points, strict=True):
            began = time.process_time()
            run_point(suite, point)
            ratios.append(shown(one, time.process_time() - began))
    within = sum(0.5 <= ratio <= 2 for ratio in ratios)
    extremes = f"{min(ratios):.2f} to {max(ratios):.2f}"
    print(f"\n{within} of {len(ratios)} within a factor of two: {extremes}")


def shown(one: Estimate, real: float) -> float:
    """Print the row of a point; the ratio."""
    ratio = real / one.seconds
    scaled = "" if one.measured else "~"
    cells = (one.row, one.column, f"{scaled}{one.seconds:.2f}", f"{real:.2f}", f"{ratio:.2f}")
    print("|", " | ".join(cells), "|", flush=True)
    return ratio


if __name__ == "__main__":
    main()
