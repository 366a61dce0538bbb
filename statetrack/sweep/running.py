"""Running a suite: every cell trained and evaluated, several at a time.

Each cell has a run folder that is kept, so an interrupted suite continues from there.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool

import torch

from statetrack.errors import RunError, setting
from statetrack.runs.folder import RunFolder, is_run
from statetrack.runs.rows import EvaluationRow
from statetrack.runs.run import Run
from statetrack.scoring import horizon_of
from statetrack.sweep.cells import Cell
from statetrack.sweep.results import CellResult
from statetrack.sweep.suite import Suite


def run_suite(suite: Suite, cells: list[Cell], jobs: int) -> Iterator[CellResult]:
    """Train and evaluate every cell, `jobs` at a time with one thread each; yield each result.

    Finished cells come first and are not run again. Raises `RunError` where a cell's folder
    holds another experiment, or where a worker process was killed.
    """
    waiting = []
    for cell in cells:
        found = _finished(cell)
        if found is None:
            waiting.append(cell)
        else:
            yield found
    if jobs == 1:
        for cell in waiting:
            yield run_cell(suite, cell)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        jobs, context, initializer=torch.set_num_threads, initargs=(1,)
    ) as pool:
        futures = [pool.submit(run_cell, suite, cell) for cell in waiting]
        try:
            for future in as_completed(futures):
                yield future.result()
        except BrokenProcessPool:
            raise RunError(
                "a worker process was killed; finished cells are kept: run the command again"
            ) from None
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in multiprocessing.active_children():
                process.terminate()
            raise


def run_cell(suite: Suite, cell: Cell) -> CellResult:
    """Train one cell (or continue it), evaluate it, and keep the result in its folder."""
    experiment = cell.experiment  # which loads the plugins that were given by hand
    run = Run.open(cell.path) if is_run(cell.path) else Run.start(experiment, out=cell.path)
    if not run.finished:
        for _ in run.train():
            pass
    lengths = sorted({suite.length, *suite.curve_lengths})
    curves = run.evaluate(lengths, num_words=suite.samples, seed=0, everyone=True)
    rows = curves.at(suite.length)
    far: tuple[EvaluationRow, ...] = ()
    if suite.horizon_lengths:
        far = run.evaluate(suite.horizon_lengths, num_words=suite.horizon_samples, seed=1).rows
    selected = next(row for row in rows if row.selected)
    reached = sorted((row.length, row.accuracy) for row in (selected, *far))
    summary = run.summary
    result = CellResult(
        row=cell.row,
        column=cell.column,
        run=str(cell.path),
        rows=rows,
        curves=curves.rows if suite.curve_lengths else (),
        selected=selected,
        success=sum(row.accuracy == 1.0 for row in rows) / len(rows),
        horizon=horizon_of(reached),
        steps=summary.steps,
        seconds=summary.seconds,
    )
    run.folder.write_cell(result.to_json())
    return result


def _finished(cell: Cell) -> CellResult | None:
    """The result of a finished cell; None for a cell that is to be trained or evaluated."""
    if not is_run(cell.path):
        return None
    folder = RunFolder.open(cell.path)
    if folder.config() != cell.experiment.values():
        raise RunError(
            f"{cell.path}: holds a run with other settings: choose another {setting('out')}, "
            "or delete it"
        )
    kept = folder.cell()
    return None if kept is None else CellResult.from_json(kept, f"{cell.path}: cell")
