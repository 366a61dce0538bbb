"""Write a run's weights in the layout of another library, with words to test a kernel by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from statetrack.cli import options
from statetrack.registry import modules_in
from statetrack.settings import Settings, option
from statetrack.text import GREATEST_SEED

PLACE = 3.7
"""Its place among the commands that `statetrack --help` lists."""

LONGEST = 10**6


def layouts() -> str:
    """The names of all layouts, of their files alone."""
    return ", ".join(modules_in("statetrack.exporting.layouts"))


class ExportSettings(Settings):
    """The golden words that are exported with the weights."""

    length: int = option(2048, "Symbols of the longest golden words.", min=1, max=LONGEST)
    seed: int = option(0, "The seed that golden words come from.", min=0, max=GREATEST_SEED)


def build(argv: list[str]) -> Callable[..., None]:
    """The command; its options do not depend on the arguments."""

    def export(
        run: options.RunArgument = None,
        *,
        layout: Annotated[
            str,
            typer.Option(
                metavar="LAYOUT",
                help=f"The library whose layers and names are written: {layouts()}, of which "
                "safetensors has the model's own names.",
            ),
        ] = "safetensors",
        out: Annotated[
            Path | None,
            typer.Option(
                help="The folder to write; by default RUN with -LAYOUT behind it.",
                metavar="FOLDER",
            ),
        ] = None,
        replica: options.Replica = None,
        as_json: options.AsJson = False,
        trust_plugin: options.TrustPlugin = False,
        **given: Any,
    ) -> None:
        """Write a run's weights in the layout of another library, with words to test a kernel by.

        The folder has the weights as that library's own layers load them, golden words with the
        right answers, and a program that says at which position a kernel's answer is wrong first.
        The run may have been trained, built or snapped.

        Examples:
            statetrack export runs/exact --layout fla
            statetrack export runs/mine --out weights --length 500

        """
        settings = options.collect(ExportSettings, given)
        # what follows imports torch, which `--help` does not need
        from statetrack import exporting
        from statetrack.cli._terminal import print_json
        from statetrack.report import console, facts
        from statetrack.runs import RUNS, Run, newest_run
        from statetrack.scoring import plain, rounded_down

        path = newest_run(RUNS).path if run is None else run
        opened = Run.open(path, trust_plugin=trust_plugin)
        folder = path.with_name(f"{path.name}-{layout}") if out is None else out
        found = exporting.export(
            opened.model(replica),
            layout,
            folder,
            task=opened.task,
            length=settings.length,
            seed=settings.seed,
        )
        if as_json:
            content = asdict(found) | {"run": str(path), "folder": str(found.folder)}
            print_json(plain(content))
            return
        kernel = found.kernel or f"none alone: {found.why_no_kernel}"
        lines = [
            ("layers", ", ".join(dict.fromkeys(found.layers)) or "model.safetensors"),
            (
                "golden words",
                f"{found.words:,} of up to {found.longest:,} symbols, {found.answers:,} answers",
            ),
            ("margin", f"{rounded_down(found.margin)}, the least of a right answer in float64"),
            ("kernel", kernel),
        ]
        console().print(f"{opened.experiment.model} on {opened.task.name}", style="bold")
        console().print(facts(lines))
        console().print(f"exported: {folder}", soft_wrap=True)

    return options.with_settings(export, options.parameters(ExportSettings, "Golden words"))
