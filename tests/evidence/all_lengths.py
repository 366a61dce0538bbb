"""Train saturating networks and prove them right: `python -m tests.evidence.all_lengths --out DIR`.

One run folder for every pair of a model and a task, and one table. What is interrupted is resumed,
and what is done is not done again; `statetrack certify` and `show` read the folders. Boxes are
counted, not seconds, so the table does not depend on what else a machine does; seconds are those
of the processor, and missing where the training was interrupted.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch: small matrices, many of them

import torch

from statetrack.evidence import SearchBudget
from statetrack.evidence.certificate.saturating import certify_saturating
from statetrack.runs import Run, write_file

UNLIMITED = 1e9
"""Seconds of a search that ends by its own count of boxes."""


@dataclass(frozen=True)
class Pair:
    """A model, a task and what is not a default of their training."""

    model: str
    task: str
    robust: str = "none"
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of its folder, which all of its settings are in."""
        more = (f"{key}={value}" for key, value in self.settings.items())
        words = (self.model, self.task, self.robust, *more)
        return "_".join(words).replace(":", "-")


LONGER: Mapping[str, Any] = {"steps": 1000, "robust_start": 0.1}

PAIRS = (
    Pair("rnn", "parity"),
    Pair("second-order-rnn", "random-fsm"),
    Pair("second-order-rnn", "parity", "interval"),
    Pair("second-order-rnn", "modular-addition", "interval"),
    Pair("second-order-rnn", "modular-addition:m=10", "interval"),
    Pair("second-order-rnn", "s3", "interval"),
    Pair("second-order-rnn", "flip-flop", "interval", {"train_length": "2-16"}),
    Pair("second-order-rnn", "random-fsm:seed=1", "interval"),
    Pair("gru", "parity", "contraction"),
    Pair("gru", "s3", "contraction", LONGER),
    Pair("gru", "modular-addition", "contraction", LONGER),
    Pair("gru", "random-fsm", "contraction", LONGER),
    Pair("lstm", "parity", "contraction", LONGER),
)


def proven(pair: Pair, folder: Path, seed: int) -> dict[str, Any]:
    """Train a pair, or take the training that is there, and certify it."""
    path = folder / f"{pair.name}_{seed}"
    seconds: float | None = None
    known = path / "pair.json"
    if known.exists():
        row: dict[str, Any] = json.loads(known.read_text())
        return row
    if not path.exists():
        run = Run.start(
            out=path,
            model=pair.model,
            task=pair.task,
            robust=pair.robust,
            seed=seed,
            **pair.settings,
        )
        before = time.process_time()
        list(run.train())
        seconds = time.process_time() - before
    run = Run.open(path)
    if not run.finished:
        list(Run.resume(path).train())
        run = Run.open(path)
    (score,) = run.evaluate([500], num_words=200).rows
    ((outcome, subject),) = run.subjects()
    before = time.process_time()
    found = certify_saturating(subject, budget=SearchBudget(UNLIMITED))
    row = {
        "pair": f"{pair.model} on {pair.task}",
        "seed": seed,
        "training": pair.robust if pair.robust != "none" else "usual",
        "settings": dict(pair.settings),
        "accuracy at 500": score.accuracy,
        "proven": found.verdict if found.length is None else f"{found.length} symbols",
        "method": found.method,
        "training, s": None if seconds is None else round(seconds, 1),
        "proof, s": round(time.process_time() - before, 1),
    }
    run.add_evidence(found, outcome)
    write_file(known, json.dumps(row).encode())
    return row


def table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """The lines of a Markdown table."""
    columns = [key for key in rows[0] if key not in ("settings", "method")]
    yield "| " + " | ".join(columns) + " |"
    yield "|" + "---|" * len(columns)
    for row in rows:
        texts = ("" if row[column] is None else str(row[column]) for column in columns)
        yield "| " + " | ".join(texts) + " |"


def main() -> None:
    """Prove the pairs that the command line names."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.evidence.all_lengths", description=__doc__
    )
    parser.add_argument("--out", type=Path, required=True, help="folder of the runs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="pairs whose folder's name has this text")
    given = parser.parse_args()
    torch.set_num_threads(1)
    given.out.mkdir(parents=True, exist_ok=True)
    rows = []
    for pair in PAIRS:
        if given.only in pair.name:
            rows.append(proven(pair, given.out, given.seed))
            print(rows[-1], flush=True)
    for line in table(rows) if rows else ():
        print(line)


if __name__ == "__main__":
    main()
