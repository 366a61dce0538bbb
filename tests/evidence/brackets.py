"""The table of brackets: `python -m tests.evidence.brackets FOLDER`, resumable.

Every network is trained with default settings in a folder of its own, then certified within a
budget of work; what stands there already is not made again. The table has for each what is proven,
where the first word fails that is known, and that word. Beside an accuracy of 1.00 a first failure
below `LOW` symbols is marked.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from statetrack.evidence import Failure, word_text

LOW = 1_000
"""A network that is wrong on words shorter than this is not right because random words say so."""

NETWORKS = (
    *((model, "modular-addition") for model in ("bilinear", "bilinear-rotation", "bilinear-cp")),
    *((model, "s3") for model in ("second-order-rnn", "rnn", "gru", "lstm")),
    *((model, "modular-addition") for model in ("second-order-rnn", "rnn", "gru", "lstm")),
    *((model, "parity") for model in ("gru", "lstm", "mamba")),
    *((model, "random-fsm:states=5") for model in ("second-order-rnn", "rnn")),
    *((model, "s4") for model in ("bilinear-cp", "second-order-rnn")),
    ("second-order-rnn", "flip-flop"),
    ("gru", "permutation-reset"),
)
"""Models and tasks, as `train` takes them."""


def called(*arguments: str) -> Any:
    """What a command prints with `--json`."""
    command = [sys.executable, "-m", "statetrack", *arguments, "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def rows(folder: Path, seconds: float, seed: int) -> Iterator[dict[str, Any]]:
    """What is known of each network, one after the other."""
    for model, task in NETWORKS:
        run = folder / f"{model}-{task.replace(':', '-').replace('=', '-')}-{seed}"
        kept = run / "bracket.json"
        if not (run / "summary.json").exists():
            called(
                "train", "--model", model, "--task", task, "--seed", str(seed), "--out", str(run)
            )
        if not kept.exists() or json.loads(kept.read_text())["seconds"] < seconds:
            scored = called("eval", str(run))["rows"]
            (found,) = called("certify", str(run), "--seconds", str(seconds))["replicas"]
            accuracy = max(scored, key=lambda row: row["length"])["accuracy"]
            row = {"model": model, "task": task, "seed": seed, "seconds": seconds}
            names = ("proven", "verdict", "fails_at", "failure")
            row |= {"accuracy": accuracy, **{name: found[name] for name in names}}
            kept.write_text(json.dumps(row))
        yield json.loads(kept.read_text())


def line(row: dict[str, Any]) -> str:
    """A row of the table in Markdown."""
    proven = "all lengths" if row["verdict"] == "all lengths" else f"{row['proven'] or 0:,}"
    fails, failure = row["fails_at"], row["failure"]
    low = fails is not None and fails < LOW
    accuracy = f"{int(100 * row['accuracy']) / 100:.2f}" + (f" (wrong at {fails:,})" if low else "")
    word = "-"
    if failure is not None:
        parts = [failure[name] for name in ("prefix", "period", "suffix")]
        names = list(dict.fromkeys(symbol for part in parts for symbol in part))
        prefix, period, suffix = (tuple(map(names.index, part)) for part in parts)
        word = word_text(Failure(prefix, period, failure["position"], 0, None, suffix), names)
    cells = [row["model"], row["task"], str(row["seed"]), accuracy, proven]
    cells += [f"{fails:,}" if fails else "none", word, f"{row['seconds']:g}"]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Print the table, each row as soon as it is known."""
    parser = argparse.ArgumentParser(prog="python -m tests.evidence.brackets", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=40.0, help="work of each search")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print("| model | task | seed | accuracy | proven to | first failure | word | budget |")
    print("|---|---|---|---|---|---|---|---|")
    for row in rows(given.folder, given.seconds, given.seed):
        print(line(row), flush=True)


if __name__ == "__main__":
    main()
