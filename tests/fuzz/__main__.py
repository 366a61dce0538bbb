"""The long run of the fuzzers: `python -m tests.fuzz --target task-files --cases 10000`."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # before torch: forked processes cannot share its threads

import torch
from tqdm import tqdm

from tests.fuzz.harness import run_cases
from tests.fuzz.targets import TARGETS


def main() -> int:
    """Run the fuzzers that the command line names; 1 where any case failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--target", choices=[*TARGETS, "all"], default="all")
    parser.add_argument("--cases", type=int, default=10_000, help="cases of each target")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int, help="run this one case alone")
    parser.add_argument(
        "--keep", type=Path, default=Path("fuzz-failures"), help="folder for cases that failed"
    )
    given = parser.parse_args()
    torch.set_num_threads(1)
    cases = range(given.cases) if given.case is None else [given.case]
    failed = 0
    for name in TARGETS if given.target == "all" else [given.target]:
        started = time.perf_counter()
        with tqdm(total=len(cases), desc=name, unit="case", file=sys.stderr, disable=None) as bar:
            report = run_cases(
                TARGETS[name](),
                cases,
                given.seed,
                keep=given.keep.resolve(),
                tick=lambda verdict, bar=bar: bar.update(),
            )
        print("\n".join(report.lines()))
        print(f"  {time.perf_counter() - started:.0f} s in all", flush=True)
        failed += report.num_failed
    if failed:
        print(f"the folders of cases that failed are in {given.keep}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
