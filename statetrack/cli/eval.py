"""Evaluate trained runs on long words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from statetrack.cli import options
from statetrack.errors import SettingsError
from statetrack.settings import GREATEST_SEED

PLACE = 3
"""Its place among the commands that `statetrack --help` lists."""


def build(argv: list[str]) -> Callable[..., None]:
    """The command; its options do not depend on the arguments."""
    return evaluate


def evaluate(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[RUN ...]", help="Run folders, or folders of them; by default the newest run."
        ),
    ] = None,
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
    words: options.TestWords = None,
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
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Draw accuracy by length into a file whose name ends in .svg, .pdf or .png.",
        ),
    ] = None,
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
    """Evaluate trained runs on long words: accuracy by length, with its floor.

    A run that has not finished is evaluated at the best weights of its last checkpoint; the output
    says so, and nothing is kept in its folder. Of several runs, one that cannot be evaluated is
    named, the others are evaluated, and the exit code is 1.

    Words of all lengths are prefixes of the same test words; for a sampler, separate words are
    drawn for each length. They are of the kind that training drew, or of each kind that `--words`
    names. They are drawn apart from those of training. Words longer than those of
    training are new to the model; shorter ones may occur in training too. Accuracy is that at the
    last scored position of each word; an answer whose logits are not all finite is wrong. The
    sentence below the table is about the answers at all positions.

    Examples:
        statetrack eval
        statetrack eval runs/mine --length 100-1000:100 --all
        statetrack eval runs/mine --stress --seconds 60

    """
    if as_json and as_csv:
        raise SettingsError("--json and --csv: choose one")
    if as_csv and (stress or errors):
        raise SettingsError("--csv has rows of accuracies only: leave out --stress and --errors")
    if plot is not None:
        from statetrack.cli._files import require_writable
        from statetrack.pictures import check_path

        check_path(plot)
        require_writable(plot, "--plot")
    # what follows imports torch, which `--help` does not need
    from statetrack.cli._evaluating import (
        Asked,
        draw_figure,
        evaluate_runs,
        refuse_failed,
        runs_asked_for,
        warn_about,
    )
    from statetrack.sources import parse_lengths
    from statetrack.spec import load_task

    lengths = tuple(parse_lengths(length or []))
    if plot is not None and len(lengths) < 2:
        raise SettingsError(
            "--plot: is drawn by length: give two lengths or more, such as --length 10-10000:x10"
        )
    asked = Asked(
        task=None if task is None else load_task(task),
        lengths=lengths,
        words=tuple(dict.fromkeys(words or ())),
        samples=samples,
        seed=seed,
        everyone=everyone,
        errors=errors,
        stress=seconds if stress else None,
        device=device,
        trust_plugin=trust_plugin,
    )
    chosen = runs_asked_for(runs or ())
    found = evaluate_runs(chosen, asked)
    caption: tuple[str, ...] = ()
    if plot is not None and any(each.rows for each in found.evaluated):
        caption = draw_figure(found, plot)
    if as_json:
        found.print_json()
    elif as_csv:
        found.print_csv()
    else:
        found.draw()
        for line in caption:
            typer.echo(f"{line}.")
        if caption:
            typer.echo(f"figure: {plot}")
    for each in found.evaluated:
        warn_about(each, named=chosen.several)
    refuse_failed(found)
