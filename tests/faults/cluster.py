"""A machine of a Ray cluster is killed in the middle of a sweep: `python -m tests.faults.cluster`.

Two machines are started here, as processes. Once some points have ended, one machine and all its
processes are killed. Every point must end, with the same results as alone, and none twice.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from statetrack.sweep import Done, Failed, Point, PointResult, Suite, points_of
from statetrack.sweep.executors.ray import QUIET, Ray
from statetrack.sweep.results import kept_result
from statetrack.sweep.work import Work, run_point

STORE = 80 * 1024 * 1024
"""Bytes of a machine's object store: the least that Ray takes is 75 MiB."""

COUNT = "ended.txt"
"""A line for every time that a point was run to its end, in the folder of the sweep."""


def a_suite(num_points: int, steps: int) -> Suite:
    """Small points that differ in their first seed."""
    return Suite(
        title="Points for a cluster",
        settings={"steps": steps, "batch_size": 16, "validate_every": steps, "finish": "none"},
        models={
            f"seed {seed}": {"model": "bilinear", "hidden": 2, "seed": seed}
            for seed in range(num_points)
        },
        tasks={"parity": "parity"},
        length=40,
        samples=20,
    )


@dataclass(frozen=True)
class Counted(Work):
    """Runs a point of a suite, and counts how often one was run to its end."""

    folder: Path = Path()

    def __call__(self, point: Point, stop: Callable[[], bool]) -> Done | None:
        """What became of the point."""
        kept = kept_result(self.suite, point)
        done = super().__call__(point, stop)
        if isinstance(done, PointResult) and kept is None:
            with (self.folder / COUNT).open("a") as file:
                file.write(f"{point.row}\n")
        return done


@contextmanager
def two_machines() -> Iterator[tuple[Any, Any]]:
    """A cluster of two machines with one processor each, and the second of them."""
    os.environ.update(QUIET)
    from ray.cluster_utils import Cluster

    given = {"num_cpus": 1, "object_store_memory": STORE, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=given)
    try:
        second = cluster.add_node(num_cpus=1, object_store_memory=STORE)
        cluster.wait_for_nodes()
        yield cluster, second
    finally:
        cluster.shutdown()


def run_and_kill(folder: Path, num_points: int, steps: int, kill_after: int) -> dict[str, Any]:
    """A sweep on two machines, one of which is killed once so many points have ended."""
    suite = a_suite(num_points, steps)
    points = points_of(suite, folder / "runs", {})
    folder.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    results: list[Done] = []
    with two_machines() as (cluster, second):
        ready = time.perf_counter()
        executor = Ray(address=cluster.address)
        for done in executor.map(Counted(suite, folder=folder), points, lambda: False):
            results.append(done)
            if len(results) == kill_after:
                cluster.remove_node(second, allow_graceful=False)
        ended = time.perf_counter()
    return {
        "points": points,
        "results": results,
        "cluster_seconds": ready - started,
        "seconds": ended - ready,
        "counted": Counter((folder / COUNT).read_text().splitlines()),
        "suite": suite,
    }


def wrong_in(outcome: dict[str, Any], alone: Sequence[PointResult]) -> list[str]:
    """What is wrong with the outcome of such a sweep, in words."""
    points, results = outcome["points"], outcome["results"]
    wrong = [f"{one.row}: {one.error}" for one in results if isinstance(one, Failed)]
    names = Counter(one.row for one in results)
    for point in points:
        if names[point.row] != 1:
            wrong.append(f"{point.row}: {names[point.row]} results")
        if outcome["counted"][point.row] != 1:
            wrong.append(f"{point.row}: run to its end {outcome['counted'][point.row]} times")
        evaluations = (point.path / "eval.jsonl").read_text().splitlines()
        if len({*evaluations}) != len(evaluations):
            wrong.append(f"{point.row}: an evaluation is there twice")
        steps = [json.loads(line) for line in (point.path / "metrics.jsonl").open()]
        if len({(one["step"], one["replica"]) for one in steps}) != len(steps):
            wrong.append(f"{point.row}: a step is there twice")
    ours = {one.row: _values(one) for one in results if isinstance(one, PointResult)}
    for one in alone:
        if ours.get(one.row) != _values(one):
            wrong.append(f"{one.row}: its results are not those of the point alone")
    return wrong


def _values(result: PointResult) -> dict[str, Any]:
    return {k: v for k, v in result.to_json().items() if k not in ("seconds", "run")}


def main() -> int:
    """Run it, and print what was found."""
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    num_points, steps, kill_after = (int(one) for one in (*sys.argv[1:], 12, 2500, 4)[:3])
    folder = Path(tempfile.mkdtemp())
    try:
        outcome = run_and_kill(folder, num_points, steps, kill_after)
        suite = outcome["suite"]
        alone = [run_point(suite, point) for point in points_of(suite, folder / "alone", {})[:3]]
        wrong = wrong_in(outcome, [one for one in alone if one is not None])
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(
        f"{num_points} points of {steps} steps on two machines, one killed after {kill_after}: "
        f"{len(outcome['results'])} results, {sum(outcome['counted'].values())} run to their end, "
        f"in {outcome['seconds']:.1f} s (the cluster began in {outcome['cluster_seconds']:.1f} s)"
    )
    for line in wrong:
        print(line)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
