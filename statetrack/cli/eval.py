"""Evaluate a trained run on long words."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from statetrack.cli import options
from statetrack.errors import SettingsError
from statetrack.settings import GREATEST_SEED

if TYPE_CHECKING:
    from statetrack.cli._failures import Errors
    from statetrack.runs.rows import EvaluationRow

CURVE_FROM = 5
"""The least number of lengths for which a curve is drawn below the table."""

PLACE = 3
"""Its place among the commands that `statetrack --help` lists."""


def build(argv: list[str]) -> Callable[..., None]:
    """The command; its options do not depend on the arguments."""
    return evaluate


def evaluate(
    run: options.RunArgument = None,
    *,
    task: Annotated[
        str | None,
        typer.Option(
            help="Test on the words of another task with the same symbols and labels.",
            metavar="TASK",
        ),
    ] = None,
    length: Annotated[
        list[str] | None,
        typer.Option(
            help="500, or a range as 10-1000:10 or 10-100000:x10; repeatable. By default the "
            "task's own.",
            metavar="LENGTH",
        ),
    ] = None,
    samples: Annotated[int, typer.Option(help="Test words.", min=1, max=10**7)] = 2000,
    seed: Annotated[
        int, typer.Option(help="Seed of the test words.", min=0, max=GREATEST_SEED)
    ] = 0,
    everyone: Annotated[
        bool, typer.Option("--all", help="Every replica, not only the selected one.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object on stdout, and nothing else.")
    ] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="The rows as CSV on stdout.")] = False,
    errors: Annotated[
        int,
        typer.Option(
            help="Show so many test words of the longest length that are answered wrongly.",
            metavar="N",
            min=0,
            max=10_000,
        ),
    ] = 0,
    stress: Annotated[
        bool,
        typer.Option("--stress", help="Search for the word that is answered wrongly earliest."),
    ] = False,
    seconds: Annotated[
        float,
        typer.Option(help="Time for --stress, for each replica.", min=0.1, max=10**6),
    ] = 20.0,
    device: Annotated[
        str | None, typer.Option(help="auto, cpu, cuda or cuda:INDEX; by default the run's own.")
    ] = None,
    trust_plugin: options.TrustPlugin = False,
) -> None:
    """Evaluate a trained run on long words: accuracy by length, with its floor.

    Words of all lengths are prefixes of the same test words; for a sampler, separate words are
    drawn for each length. They are drawn apart from those of training. Words longer than those of
    training are new to the model; shorter ones may occur in training too. Accuracy is that at the
    last scored position of each word; an answer whose logits are not all finite is wrong. The
    sentence below the table is about the answers at all positions.
    """
    if as_json and as_csv:
        raise SettingsError("--json and --csv: choose one")
    if as_csv and (stress or errors):
        raise SettingsError("--csv has rows of accuracies only: leave out --stress and --errors")
    # what follows imports torch, which `--help` does not need
    from tqdm import tqdm

    from statetrack.cli._failures import errors_of, stressed
    from statetrack.cli._warnings import (
        warn_of_divergence,
        warn_of_nonfinite_logits,
        warn_of_shortcuts,
        warn_of_trained_lengths,
    )
    from statetrack.data import parse_lengths
    from statetrack.runs.folder import newest_run, to_json
    from statetrack.runs.run import RUNS, Run
    from statetrack.spec import load_task

    path = newest_run(RUNS).path if run is None else run
    evaluated = Run.open(path, device=device, trust_plugin=trust_plugin)
    tested = evaluated.task if task is None else load_task(task)
    lengths = parse_lengths(length or []) or tested.spec.test_lengths
    if stress:
        evaluated.require_automaton(tested)
    summary = evaluated.summary
    everyone = everyone and summary.selected is not None  # of none `score` says that all diverged
    scoring = evaluated.score(lengths, num_words=samples, seed=seed, everyone=everyone, task=tested)
    bar = tqdm(
        scoring, "evaluating", unit="row", file=sys.stderr, leave=False, delay=1.0, disable=None
    )
    rows = list(bar)
    about = {
        "run": str(evaluated.path),
        "task": evaluated.task.name,
        "model": evaluated.experiment.model,
    }
    source = tested.source
    worst = stressed(evaluated, tested, rows, seconds=seconds, seed=seed) if stress else ()
    wrong: Iterable[Errors] = ()
    if errors and rows:
        wrong = errors_of(evaluated, tested, rows, samples=samples, seed=seed, most=errors)
    if as_json:
        found = {**about, "rows": [row.to_json() for row in rows]}
        if stress:
            found["stress"] = [each.to_json(source) for each in worst]
        if errors:
            found["errors"] = [each.to_json(source) for each in wrong]
        typer.echo(to_json(found))
    elif as_csv:
        _write_csv(about, rows)
    else:
        _draw(about, rows, samples)
        for one in worst:
            one.draw(source)
        for other in wrong:
            other.draw(source)
        typer.echo(f"run: {about['run']}")
    if everyone:
        warn_of_divergence(summary)
    warn_of_nonfinite_logits(rows)
    warn_of_trained_lengths(rows, evaluated.words.lengths)
    warn_of_shortcuts(sorted(rows, key=lambda row: row.length))


def _write_csv(about: dict[str, str], rows: Iterable[EvaluationRow]) -> None:
    whole = [about | row.to_json() for row in rows]
    writer = csv.DictWriter(sys.stdout, list(whole[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(whole)


def _draw(about: dict[str, str], rows: Sequence[EvaluationRow], samples: int) -> None:
    from statetrack.report.curves import accuracy_curve
    from statetrack.report.drawing import console
    from statetrack.report.tables import closing_sentence, evaluation_table

    out = console()
    rows = sorted(rows, key=lambda row: row.length)
    trained, tested = about["task"], rows[0].task
    where = f"on {tested}" if tested == trained else f"of {trained} on {tested}"
    out.print(evaluation_table(f"{about['model']} {where}, {samples:,} words", rows))
    if len({row.length for row in rows}) >= CURVE_FROM:
        typer.echo(accuracy_curve(rows, coloured=out.is_terminal))
    for replica in dict.fromkeys(row.replica for row in rows):
        mine = [row for row in rows if row.replica == replica]
        said = closing_sentence(mine)
        out.print(f"seed {mine[0].seed}, lr {mine[0].lr:g}: {said}", soft_wrap=True)
