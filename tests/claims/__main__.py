"""Check what is claimed of every model on every shipped task: `python -m tests.claims`."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch: small matrices, many of them

import torch
from tqdm import tqdm

from tests.claims.attacking import Attack, attack, chosen_targets
from tests.claims.building import Budget, Built, build_and_run
from tests.claims.cells import (
    RECORDED_TASKS,
    Cell,
    cells,
    counts,
    counts_before,
    tasks_with_automata,
)


def main() -> int:
    """Check the cells that the command line names; 1 where a claim does not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.claims", description=__doc__)
    parser.add_argument("--models", default="", help="names of models, with commas; all if empty")
    parser.add_argument("--tasks", default="", help="names of tasks, with commas; all if empty")
    parser.add_argument("--symbols", type=int, default=Budget.symbols, help="length of words")
    parser.add_argument("--words", type=int, default=Budget.words, help="words of each cell")
    parser.add_argument("--budget", type=int, default=Budget.size, help="largest size built")
    parser.add_argument(
        "--cells",
        type=Path,
        help="file of cells that were built, one a line: they are read, and others are added",
    )
    parser.add_argument(
        "--seconds", type=float, help="begin no further cell of --cells after so many seconds"
    )
    parser.add_argument("--only", choices=["cells", "constructions", "attacks"])
    parser.add_argument(
        "--json", type=Path, help="file for all results; what this run leaves out stays in it"
    )
    given = parser.parse_args()
    torch.set_num_threads(1)
    found = list(cells(_names(given.models), _names(given.tasks)))
    result: dict[str, Any] = {"tasks": len({cell.task for cell in found}), "counts": counts(found)}
    result["cells"] = {task: _answers(found, task) for task in RECORDED_TASKS}
    failed = _check_cells(found)
    if given.only in (None, "constructions"):
        budget = Budget(given.budget, symbols=given.symbols, words=given.words)
        built = _build(found, budget, given.cells, given.seconds)
        failed += sum(each.outcome in ("WRONG", "broken") for each in built)
        result |= summary_of(built, budget)
    if given.only in (None, "attacks"):
        attacked = _attack(found)
        failed += sum(each.succeeded for each in attacked)
        result["attacks"] = [each.to_json() for each in attacked]
    if given.json:
        old = json.loads(given.json.read_text()) if given.json.exists() else {}
        if given.models or given.tasks:
            result = merged(old, result)
        result = old | result
        given.json.write_text(json.dumps(result, indent=1) + "\n")
    print("every claim that was checked holds" if not failed else f"{failed} claims do not hold")
    return int(failed > 0)


def summary_of(built: Sequence[Built], budget: Budget) -> dict[str, Any]:
    """What was built, as plain values: of each model outcomes, least margin, and exact tasks."""
    models: dict[str, dict[str, Any]] = {}
    for each in built:
        row = models.setdefault(
            each.cell.variant.name,
            {
                **{"symbols": budget.symbols, "outcomes": Counter(), "float32": 0},
                **{"margin": None, "exact": []},
            },
        )
        row["outcomes"][each.outcome] += 1
        row["float32"] += each.single == "exact"
        if each.outcome == "exact":
            row["exact"].append(each.cell.task)
        if each.outcome == "exact" and each.margin is not None:
            least = min(each.margin, row["margin"] or each.margin)
            row["margin"] = float(f"{least:.1e}")
    return {
        "budget": {"size": budget.size, "words": budget.words},
        "built": {name: row | {"outcomes": dict(row["outcomes"])} for name, row in models.items()},
        "left": [
            [each.cell.variant.name, each.cell.task, each.outcome, each.detail]
            for each in built
            if each.outcome not in ("exact", "no size")
        ],
    }


def merged(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The results of a run over some models, with those of the models that it leaves out."""
    kept: dict[str, Any] = {**old, **{key: new[key] for key in ("tasks", "budget") if key in new}}
    for key in ("counts", "built"):
        kept[key] = dict(sorted((old.get(key, {}) | new.get(key, {})).items()))
    cells = old.get("cells", {})
    kept["cells"] = {
        task: dict(sorted((cells.get(task, {}) | new["cells"].get(task, {})).items()))
        for task in cells | new["cells"]
    }
    again = set(new.get("built", {}))
    left = [row for row in old.get("left", []) if row[0] not in again]
    kept["left"] = sorted(left + new.get("left", []))
    attacked = {row["model"] for row in new.get("attacks", [])}
    before = [row for row in old.get("attacks", []) if row["model"] not in attacked]
    kept["attacks"] = sorted(
        before + new.get("attacks", []), key=lambda row: (row["model"], row["task"], row["claim"])
    )
    return kept


def _answers(found: Sequence[Cell], task: str) -> dict[str, str]:
    return {cell.variant.name: cell.prediction.can for cell in found if cell.task == task}


def _names(written: str) -> list[str]:
    return [name.strip() for name in written.split(",") if name.strip()]


def _check_cells(found: Sequence[Cell]) -> int:
    """Print the counts before and now, and what is missing in predictions; give how many are."""
    now, before = counts(found), counts_before()
    whole = {cell.task for cell in found} == set(tasks_with_automata())
    print(f"{len(found)} cells: can / cannot / unknown, with the version before in brackets")
    for name, row in now.items():
        old = before.get(name) if whole else None
        past = f"  ({_counted(old)})" if old else ""
        print(f"  {name:44}{_counted(row)}{past}")
    models = [name for name in now if name in before]
    if whole and models:
        both = [_total([table[name] for name in models]) for table in (now, before)]
        print(f"  {'all of the version before':44}{_counted(both[0])}  ({_counted(both[1])})")
    complaints = [(cell, text) for cell in found for text in cell.complaints]
    for cell, text in complaints:
        print(f"WRONG  {cell.variant.name} on {cell.task}: {text}")
    return len(complaints)


def _counted(row: dict[str, int]) -> str:
    return " / ".join(f"{row[answer]:3}" for answer in ("yes", "no", "unknown"))


def _total(rows: Sequence[dict[str, int]]) -> dict[str, int]:
    return {answer: sum(row[answer] for row in rows) for answer in rows[0]} if rows else {}


def _build(
    found: Sequence[Cell], budget: Budget, kept: Path | None, seconds: float | None
) -> list[Built]:
    """Build and run every cell that can, and print what became of them.

    Of a file of cells, those in it are read, and those that are built are added to it.
    """
    able = [cell for cell in found if cell.prediction.can == "yes"]
    known = _read(kept, able)
    built, started = list(known.values()), time.perf_counter()
    for cell in tqdm(able, desc="constructions", unit="cell", file=sys.stderr, disable=None):
        if cell.key in known:
            continue
        if seconds is not None and time.perf_counter() - started > seconds:
            break
        built.append(build_and_run(cell, budget))
        if built[-1].outcome not in ("exact", "no size"):
            each = built[-1]
            tqdm.write(f"{each.outcome}  {cell.variant.name} on {cell.task}: {each.detail}")
        if kept is not None:
            with kept.open("a", encoding="utf-8") as file:
                file.write(json.dumps(built[-1].to_json()) + "\n")
    outcomes = Counter(each.outcome for each in built)
    print(
        f"{len(able)} cells that can, {len(built)} of them built or tried, sizes up to "
        f"{budget.size}, {budget.words} words of {budget.symbols:,} symbols "
        f"({time.perf_counter() - started:.0f} s):"
    )
    for outcome, number in outcomes.most_common():
        print(f"  {outcome:20}{number}")
    single = sum(each.outcome == "exact" and each.single == "exact" for each in built)
    print(f"  {'exact in float32':20}{single}")
    for each in built:
        if each.outcome == "exact" != each.single:
            print(f"float32  {each.cell.variant.name} on {each.cell.task}: {each.single}")
    return built


def _read(kept: Path | None, able: Sequence[Cell]) -> dict[tuple[str, str], Built]:
    """What a file says of cells, by model and task; of several lines, the last one."""
    if kept is None or not kept.exists():
        return {}
    cells = {cell.key: cell for cell in able}
    found = {}
    for line in kept.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        key = row["model"], row["task"]
        if key in cells and row["outcome"]:
            parts = (row[name] for name in ("outcome", "detail", "margin", "single"))
            found[key] = Built(cells[key], *parts)
    return found


def _attack(found: Sequence[Cell]) -> list[Attack]:
    """Attack a representative of every rule for every model that cannot, and print the best."""
    done = []
    chosen = chosen_targets(found)
    for target in tqdm(chosen, desc="attacks", unit="claim", file=sys.stderr, disable=None):
        done.append(attack(target))
        if done[-1].succeeded:
            tqdm.write(
                f"WRONG  {target.cell.variant.name} on {target.cell.task}: {done[-1].detail}"
            )
    succeeded = sum(each.succeeded for each in done)
    print(f"{len(done)} attacks on what cannot: {succeeded} succeeded")
    return done


if __name__ == "__main__":
    sys.exit(main())
