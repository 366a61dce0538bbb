"""The law of learning, step by step; each step reads what the one before wrote.

python -m tests.learning predict    # fit the law on the map; say what training will find
python -m tests.learning train      # train what was said; what is recorded stays
python docs/learned.py              # compare, on the page
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch

import numpy as np

from statetrack.report import RecordedTable
from statetrack.report.recorded import RecordedCell, dependencies
from statetrack.runs import RunFolder, files
from statetrack.spec import WordSpec, load_task
from statetrack.sweep import Failed, Local, run_suite
from tests.learning import law as laws
from tests.learning.features import FEATURES, Cell, read_map
from tests.learning.judging import PREDICTED, RECORDED
from tests.learning.machines import points, suite_of

HERE = Path(__file__).parent
MAP = HERE.parents[1] / "docs/recorded/map.json"


def predict() -> None:
    """Write the law and what it says of the machines that are held out, before one is trained."""
    if RECORDED.is_file():
        raise SystemExit(f"{RECORDED.name} has machines that are trained: nothing is said anew")
    table, trained = RecordedTable.read(MAP), read_map(MAP)
    known = {each.cell.machine for each in trained}
    chosen = points(suite_of(table))
    cells = [cell for cell in map(Cell.of, chosen) if cell is not None]
    assert not known & {cell.machine for cell in cells}, "a machine of the map is held out"
    content: dict[str, Any] = {
        "map": hashlib.sha256(MAP.read_bytes()).hexdigest()[:16],
        "depends": dependencies(chosen),
        "cells": len(trained),
        "machines": len(known),
        "features": FEATURES,
    }
    shares = {
        "cell": np.array([float(each.learned) for each in trained]),
        "replica": np.array([each.right / each.replicas for each in trained]),
    }
    said: list[dict[str, Any]] = [
        {
            "model": cell.model,
            "task": cell.task,
            "longest": WordSpec.of(load_task(cell.task)).lengths.longest,
            "features": _rounded(cell.features),
        }
        for cell in cells
    ]
    for what, chances in shares.items():
        law = laws.Law.fit([each.cell for each in trained], chances)
        ends = laws.intervals(trained, chances, cells)
        for row, chance, interval in zip(said, law.chances(cells), ends, strict=True):
            row[what] = _rounded([chance, *interval])
            row[f"{what} of model"] = round(laws.share_of_model(trained, chances, row["model"]), 4)
        every, own = laws.left_out_shares(trained, chances)
        checked = {"law": laws.left_out(trained, chances), "base": every, "model": own}
        spread = float((chances * (1 - chances)).mean())  # within cells: 0 of some replica right
        content[what] = {
            "base": round(float(chances.mean()), 4),
            "left out": {
                name: round(float(((found - chances) ** 2).mean()) + spread, 4)
                for name, found in checked.items()
            },
            "law": {
                "mean": _rounded(law.mean),
                "deviation": _rounded(law.deviation),
                "models": law.models,
                "recurrences": law.recurrences,
                "weights": _rounded(law.weights),
            },
        }
    lines = ",\n".join(f" {json.dumps(row)}" for row in said)
    head = ",\n".join(f"{json.dumps(name)}: {json.dumps(part)}" for name, part in content.items())
    PREDICTED.write_text(f'{{\n{head},\n"said": [\n{lines}\n]\n}}\n', encoding="utf-8")
    print(f"{len(said)} cells of {len({row['task'] for row in said})} machines are predicted")


def _rounded(numbers: Any) -> list[float]:
    return [round(float(number), 4) for number in numbers]


def train(seconds: float) -> None:
    """Train the cells that are predicted, within seconds; what is recorded stays."""
    import torch

    torch.set_num_threads(1)
    said = json.loads(PREDICTED.read_text("utf-8"))["said"]
    wanted = {(row["model"], row["task"]) for row in said}
    rows: list[dict[str, Any]] = []
    if RECORDED.is_file():
        rows = json.loads(RECORDED.read_text("utf-8"))["cells"]
    there = {(row["row"], row["column"]) for row in rows}
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        suite = suite_of(RecordedTable.read(MAP))
        for point in points(suite, Path(folder)):
            if (point.row, point.column) not in wanted - there:
                continue
            if time.monotonic() - started > seconds:
                break
            for done in run_suite(suite, [point], Local(jobs=1)):
                if isinstance(done, Failed):
                    raise SystemExit(f"{point.name}: {done}")
                summary = RunFolder(Path(done.run)).read(files.SUMMARY)
                rows.append(vars(RecordedCell.of(done, summary)))
            print(f"{point.row} on {point.column}: {rows[-1]['seconds']} s", file=sys.stderr)
            _write(rows)


def _write(rows: list[dict[str, Any]]) -> None:
    """Write the record whole: a line for each cell."""
    import torch

    from statetrack import __version__

    head = f'{{"version": "{__version__}", "torch": "{torch.__version__}", "cells": [\n'
    partial = RECORDED.with_suffix(".partial")
    partial.write_text(head + ",\n".join(map(json.dumps, rows)) + "\n]}\n", encoding="utf-8")
    partial.replace(RECORDED)


def main() -> None:
    """One step."""
    parser = argparse.ArgumentParser(prog="python -m tests.learning", description=__doc__)
    parser.add_argument("step", choices=["predict", "train"])
    parser.add_argument("--seconds", type=float, default=float("inf"), help="of training")
    given = parser.parse_args()
    if given.step == "predict":
        predict()
    else:
        train(given.seconds)


if __name__ == "__main__":
    main()
