"""The training part of `statetrack atlas`: run the points, show predicted beside measured."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from statetrack.atlas import (
    MachineFile,
    MachineRow,
    Models,
    trained_rows,
    training_suite,
)
from statetrack.cli import _sweeping as sweeping
from statetrack.cli import _tables as tables
from statetrack.cli._json import print_json
from statetrack.errors import SettingsError
from statetrack.report import (
    TRAINING_LEGEND,
    Document,
    summary_lines,
    training_markdown,
    training_tables,
    training_values,
)
from statetrack.runs import RunFolder
from statetrack.sweep import BUDGETS, Local, PointResult, Suite, points_of

if TYPE_CHECKING:
    from statetrack.cli._atlas import Asked


def show_training(
    asked: Asked, files: Sequence[MachineFile], models: Models, rows: Sequence[MachineRow]
) -> tuple[str, Document]:
    """Train every model on every machine that can be read; print the tables, return the pages.

    Runs that are finished are not trained again. Raises `typer.Exit` where it was interrupted.
    """
    read = {row.name: row for row in rows if not row.error}
    suite = _suite(asked, [file for file in files if file.name in read], models)
    folder = asked.out / ("runs" if asked.budget == BUDGETS[0] else f"runs-{asked.budget}")
    every_point = points_of(suite, folder, {}, to_train=not asked.finished)
    points = [
        point for point in every_point if not asked.finished or RunFolder(point.path).finished
    ]
    sweep = sweeping.Sweep(suite, suite.title, folder, Local(jobs=asked.jobs), "")
    every = sweeping.run_points(sweep, points)
    results = [done for done in every if isinstance(done, PointResult)]
    trained = trained_rows(list(read.values()), results)
    document = Document(
        title=suite.title,
        parts=lambda: [
            *training_tables(list(read.values()), trained),
            TRAINING_LEGEND,
            *summary_lines(trained),
        ],
        rows=lambda: training_values(trained),
        json=lambda: [row.to_json() for row in trained],
    )
    if asked.as_json:
        print_json([row.to_json() for row in trained])
    else:
        tables.show_document(document, "csv" if asked.as_csv else "rich")
    how = f"{_how(suite)} {len(results)} of {len(every_point)} runs are finished."
    page = training_markdown(suite.title, list(read.values()), trained, _command(asked), how)
    return page, document


def _suite(asked: Asked, files: Sequence[MachineFile], models: Models) -> Suite:
    if asked.budget not in ("minutes", "hours"):
        raise SettingsError(f"--budget {asked.budget}: it is minutes or hours")
    written = re.fullmatch(r"([0-9]{1,6}),([0-9]{1,6})", "".join(asked.lengths.split()))
    lengths = tuple(sorted(map(int, written.groups()))) if written else ()
    if len({*lengths}) != 2 or lengths[0] < 1:
        raise SettingsError(
            f"--length {asked.lengths}: write two lengths with a comma between, as 20,500"
        )
    title = f"Models trained on {asked.machines.name}"
    suite = training_suite(title, files, models, (lengths[0], lengths[1])).for_budget(asked.budget)
    own = {name: getattr(asked, name) for name in ("seeds", "steps") if getattr(asked, name)}
    suite = suite.with_settings(own)
    return suite.tested({"samples": asked.samples} if asked.samples else {})


def _how(suite: Suite) -> str:
    """How runs are trained and tested, in a sentence."""
    settings = suite.settings
    rates = ", ".join(f"{rate:g}" for rate in settings["lrs"])
    return (
        f"{settings['steps']:,} steps of {settings['batch_size']} words of lengths "
        f"{settings['train_length']}, {settings['seeds']} seeds, learning rate {rates}; the "
        f"replica is selected on words of these lengths. Tested on {suite.samples:,} words of each "
        "kind, with 95 % Wilson intervals."
    )


def _command(asked: Asked) -> str:
    from statetrack.cli._atlas import command_of

    return command_of(asked)
