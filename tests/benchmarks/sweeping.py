"""A sweep with two processes, against the same points one after the other with `train` and `eval`.

    python -m tests.benchmarks.sweeping

All are commands in processes of their own, as a user gives them, and take turns. Seconds of
processors, user and system, hardly depend on what else the machine does; those of a clock do.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import NamedTuple

MODELS = ("diagonal-real", "lstm")
TASKS = ("parity", "cyclic:n=3", "s3")
TRAINED = ("--seeds", "1", "--lrs", "0.01")
TESTED = ("--length", "100", "--samples", "500")


class Took(NamedTuple):
    """What something took, in seconds, and the load that the machine had at its end."""

    clock: float
    processors: float
    load: float


def statetrack(folder: Path, *words: str) -> None:
    """Run a command to its end; its output is not shown."""
    command = [sys.executable, "-m", "statetrack", *words]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)


def timed(work: Callable[[Path, int], None], folder: Path, steps: int) -> Took:
    """What commands take, with the processes that they begin."""

    def processors() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    started, before = time.perf_counter(), processors()
    work(folder, steps)
    return Took(time.perf_counter() - started, processors() - before, os.getloadavg()[0])


def as_sweep(folder: Path, steps: int) -> None:
    """One sweep of all points."""
    points = ("--model", ",".join(MODELS), "--task", ",".join(TASKS))
    settings = (*TRAINED, "--steps", str(steps), *TESTED)
    statetrack(folder, "sweep", *points, *settings, "--jobs", "2", "--out", "sweep")


def one_by_one(folder: Path, steps: int) -> None:
    """`train` and `eval` of one point after the other."""
    for number, (task, model) in enumerate(product(TASKS, MODELS)):
        run, settings = f"run-{number}", (*TRAINED, "--steps", str(steps))
        statetrack(folder, "train", "--model", model, "--task", task, *settings, "--out", run)
        statetrack(folder, "eval", run, *TESTED, "--all")


def require_same_weights(folder: Path) -> None:
    """Both trained the same models, to the last bit."""
    sweep = {path.read_bytes() for path in folder.glob("sweep/*/*/weights.safetensors")}
    alone = {path.read_bytes() for path in folder.glob("run-*/weights.safetensors")}
    assert sweep == alone and len(alone) == len(MODELS) * len(TASKS), "other models were trained"


def main(argv: list[str]) -> None:
    """Time both in turns; print a row of a table for each, and the ratios of each turn."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=1)
    given = parser.parse_args(argv)
    print("| round | | seconds | processor seconds | load |\n|---|---|---|---|---|", flush=True)
    for number in range(given.rounds):
        took: dict[str, Took] = {}
        with tempfile.TemporaryDirectory() as name:
            ways = [("sweep", as_sweep), ("one by one", one_by_one)]
            for said, way in ways if number % 2 == 0 else reversed(ways):
                took[said] = one = timed(way, Path(name), given.steps)
                print(
                    f"| {number + 1} | {said} | {one.clock:.1f} | {one.processors:.1f} "
                    f"| {one.load:.1f} |",
                    flush=True,
                )
            require_same_weights(Path(name))
        sweep, alone = took["sweep"], took["one by one"]
        ratios = f"{alone.clock / sweep.clock:.2f} | {alone.processors / sweep.processors:.2f}"
        print(f"| {number + 1} | **ratio** | {ratios} | |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
