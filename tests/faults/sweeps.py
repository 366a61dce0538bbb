"""A sweep that is killed with `kill -9` at random moments ends with the rows of one that is not.

    python -m tests.faults.sweeps --points 200 --kills 10

The main process, one of its workers, or the whole group of processes is killed, whenever so many
points have ended; where the main process died, the same command is given again. Then every row of
eval.jsonl and metrics.jsonl, cell.json, summary.json (but for seconds and paths) and the weights
are compared with those of a sweep that nobody disturbed, and no row may be there twice.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

TIMES = ("seconds", "run")
"""Keys that differ between two sweeps."""

LONGEST = 3600.0
"""Seconds after which a sweep is taken for one that hangs."""


def suite_of(points: int) -> dict[str, Any]:
    """A suite of so many tiny points, an even number: two models at every seed."""
    return {
        "title": f"{points} points",
        "settings": {
            **{"steps": 8, "batch_size": 4, "train_length": "2-4", "hidden": 4, "lrs": [0.01]},
            **{"validate_every": 4, "validation_words": 8, "checkpoint_every": 2, "seeds": 2},
            **{"finish": "none", "device": "cpu"},
        },
        "models": {"bilinear": "bilinear", "rnn": "rnn"},
        "tasks": {"parity": "parity"},
        "axes": {"seed": list(range(0, points, 2))},
        **{"length": 12, "samples": 16, "curve_lengths": [8], "horizon_lengths": [20]},
        "horizon_samples": 8,
    }


def begin(folder: Path, out: str, log: Path) -> subprocess.Popen[bytes]:
    """The command, in a session of its own."""
    command = ["-m", "statetrack", "sweep", "suite.yaml", "--jobs", "2", "--out", out]
    with log.open("ab") as file:
        return subprocess.Popen(
            [sys.executable, *command], cwd=folder, stdout=file, stderr=file, start_new_session=True
        )


def processes_of(session: int) -> list[int]:
    """The processes of a session that still run."""
    table = subprocess.run(["ps", "-eo", "pid,sid,stat"], capture_output=True, text=True)
    rows = [line.split() for line in table.stdout.splitlines()[1:]]
    return [int(pid) for pid, sid, stat in rows if sid == str(session) and stat[0] != "Z"]


def ended(out: Path) -> int:
    """How many points have a result."""
    columns = [out / name for name in os.listdir(out)] if out.is_dir() else []
    return sum(
        (column / name / "cell.json").exists()
        for column in columns
        if column.is_dir()
        for name in os.listdir(column)
    )


def wait_for(what: Callable[[], bool], why: str) -> None:
    """Wait until something is so."""
    until = time.monotonic() + LONGEST
    while not what():
        if time.monotonic() > until:
            raise AssertionError(f"{why}: not within {LONGEST:g} s")
        time.sleep(0.02)


def run_killed(folder: Path, points: int, kills: int, choose: random.Random) -> list[str]:
    """Run the sweep `killed`, kill it so often, and let it end; say what was killed when."""
    out, log = folder / "killed", folder / "killed.log"
    process, first = begin(folder, "killed", log), ended(out)
    done = []
    for number in range(kills):
        due = first + int((points - first) * (number + choose.random()) / (kills + 1))
        wait_for(lambda due=due: ended(out) >= due, f"{due} points")  # type: ignore[misc]
        time.sleep(choose.random())
        workers = [pid for pid in processes_of(process.pid) if pid != process.pid]
        whom = choose.choice(["main", "worker", "group"] if workers else ["main", "group"])
        at = ended(out)
        if whom == "worker":
            os.kill(choose.choice(workers), signal.SIGKILL)
        else:
            kill = os.killpg if whom == "group" else os.kill
            kill(process.pid, signal.SIGKILL)
            assert process.wait() == -signal.SIGKILL, "it ended before it was killed"
            wait_for(lambda pid=process.pid: not processes_of(pid), "the end of its workers")  # type: ignore[misc]
            process = begin(folder, "killed", log)
        done.append(f"{whom} at {at}")
        print(f"killed: {done[-1]} of {points} points", flush=True)
    assert process.wait() == 0, log.read_text()[-2000:]
    return done


def kept(run: Path) -> dict[str, Any]:
    """What a point's folder says, without times."""
    files: dict[str, Any] = {}
    for name in ("cell.json", "summary.json"):
        content = json.loads((run / name).read_text())
        files[name] = {key: value for key, value in content.items() if key not in TIMES}
    for name in ("eval.jsonl", "metrics.jsonl"):
        rows = (run / name).read_text().splitlines()
        assert max(Counter(rows).values()) == 1, f"{run / name}: a row is there twice"
        files[name] = sorted(rows) if name == "eval.jsonl" else rows
    files["weights"] = (run / "weights.safetensors").read_bytes()
    files["others"] = sorted(path.name for path in run.iterdir() if path.name[0] != ".")
    return files


def compare(folder: Path, points: int) -> int:
    """The number of rows of evaluations, all of which are equal in both sweeps."""
    rows = 0
    runs = sorted(path.parent for path in (folder / "whole").rglob("cell.json"))
    assert len(runs) == points, f"{len(runs)} points and not {points}"
    assert ended(folder / "killed") == points
    for run in runs:
        one, other = kept(run), kept(folder / "killed" / run.relative_to(folder / "whole"))
        for name, content in one.items():
            assert content == other[name], f"{run}: {name} differs"
        rows += len(one["eval.jsonl"])
    return rows


def main(argv: list[str]) -> None:
    """Run both sweeps and compare them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--points", type=int, default=200)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "suite.yaml").write_text(yaml.safe_dump(suite_of(given.points)))
        started = time.monotonic()
        whole = begin(folder, "whole", folder / "whole.log")
        assert whole.wait() == 0, (folder / "whole.log").read_text()[-2000:]
        undisturbed = time.monotonic() - started
        print(f"{given.points} points without a kill: {undisturbed:.0f} s", flush=True)
        run_killed(folder, given.points, given.kills, random.Random(given.seed))
        disturbed = time.monotonic() - started - undisturbed
        rows = compare(folder, given.points)
    print(
        f"{given.points} points, killed {given.kills} times: {rows} rows, all equal, none twice; "
        f"{disturbed:.0f} s, and {undisturbed:.0f} s without a kill"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
