"""Attack what evidence says: `python -m tests.evidence`; 1 where a claim is broken."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch: small matrices, many of them

import torch

from tests.evidence.certificates import certificates
from tests.evidence.checks import Check
from tests.evidence.counterexamples import counterexamples
from tests.evidence.extractions import extractions
from tests.evidence.horizons import horizons
from tests.evidence.representations import representations
from tests.evidence.rounded import rounded
from tests.evidence.soundness import FAMILIES, soundness

SECONDS = 20.0
"""The budget of one search of the program, unless another is asked for."""

ATTACKS: dict[str, Callable[[int, float, int], Iterable[Check]]] = {
    "certificates": certificates,
    "soundness": soundness,
    "rounded": rounded,
    "horizons": horizons,
    "counterexamples": lambda cases, seconds, seed: counterexamples(cases, seconds),
    "extractions": lambda cases, seconds, seed: extractions(cases // 4, seconds),
    "representations": lambda cases, seconds, seed: representations(seconds),
}


def main() -> int:
    """Make the attacks that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m tests.evidence", description=__doc__)
    parser.add_argument("--only", choices=[*ATTACKS], action="append", help="repeatable")
    parser.add_argument("--cases", type=int, default=240, help="cases of every attack")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--family",
        choices=[*FAMILIES],
        action="append",
        help="of soundness and rounded; repeatable",
    )
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of work, for one search")
    parser.add_argument("--json", type=Path, help="file for the results, others in it stay")
    given = parser.parse_args()
    torch.set_num_threads(1)
    broken = 0
    for name in given.only or [*ATTACKS]:
        started = time.perf_counter()
        checks: list[Check] = []
        print(name)
        attack = ATTACKS[name]
        if name in ("soundness", "rounded") and given.family:
            attack = partial(
                {"soundness": soundness, "rounded": rounded}[name], families=given.family
            )
        for check in attack(given.cases, given.seconds, given.seed):
            checks.append(check)
            broken += len(check.broken)
            noted = ", ".join(f"{what}: {value:.4g}" for what, value in check.noted.items())
            told = f"{check.cases} cases, {len(check.broken)} broken; {noted}"
            print(f"  {check.claim}: {told}", flush=True)
            for detail in check.broken:
                print(f"    BROKEN {detail}", flush=True)
        seconds = time.perf_counter() - started
        print(f"  {seconds:.0f} s")
        if given.json:
            old = json.loads(given.json.read_text()) if given.json.exists() else {}
            old[name] = {
                "seconds": round(seconds),
                "checks": [
                    {
                        "claim": check.claim,
                        "cases": check.cases,
                        "broken": len(check.broken),
                        "noted": {key: float(f"{n:.4g}") for key, n in check.noted.items()},
                    }
                    for check in checks
                ],
            }
            given.json.write_text(json.dumps(old, indent=1) + "\n")
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main())
