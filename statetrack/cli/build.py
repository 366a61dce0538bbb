"""Give a model weights that track a task by construction, as a run.

The options depend on `--model`: each model has its own.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable
from typing import Annotated, Any, Literal

import typer

from statetrack import runs
from statetrack.cli import options
from statetrack.cli._usage import refuse_unknown
from statetrack.cli.options import others_of, own_of
from statetrack.errors import SettingsError
from statetrack.models import MODEL_FACTS
from statetrack.settings import Settings, option
from statetrack.text import GREATEST_SEED, visible

PLACE = 1.5
"""Its place among the commands that `statetrack --help` lists."""


class BuildSettings(Settings):
    """What is built, apart from the settings of the model."""

    precision: Literal["float32", "float64"] = option(
        "float32",
        "The type of the weights: what is built is run over words that reach every state, in "
        "float64 and in this type, and refused where an answer is wrong.",
    )
    integers: bool = option(
        False,
        "Whole numbers alone, of linear models whose operators are matrices, blocks or terms: no "
        "step is ever rounded, and `certify` proves all lengths.",
    )
    noise: float = option(0.0, "The deviation of normal numbers added to every weight.", min=0)
    seed: int = option(0, "The seed of the noise.", min=0, max=GREATEST_SEED)


def build(argv: list[str]) -> Callable[..., None]:
    """The command for these arguments, with the chosen model's options."""
    given_name = options.peek(argv, "--model")
    name = str(given_name or options.DEFAULT_MODEL)
    said = name if given_name else f"{name}, the model where none is given,"
    facts = MODEL_FACTS[name]
    fields = facts.settings_class.model_fields
    also = ("model", "out", "force", "export", "json", "plugin")
    own = {*fields, *BuildSettings.model_fields, *also}

    def build_weights(
        context: typer.Context,
        task: Annotated[
            str, typer.Argument(metavar="TASK", help="A task, by name or file, with an automaton.")
        ],
        *,
        model: options.Model = name,
        out: options.NewRun = None,
        force: options.Force = False,
        export: Annotated[
            str | None,
            typer.Option(
                metavar="LAYOUT",
                help="Also write the weights in the layout of another library, as `export` does, "
                "into a folder beside that of --out: FOLDER-LAYOUT.",
            ),
        ] = None,
        as_json: options.PrintJson = False,
        **given: Any,
    ) -> None:
        """Give a model weights that track a task by construction, and keep them as a run.

        Every prediction *can* with a size has such weights where a construction for its class of
        recurrence is known. Settings that have to be large enough are as large as predicted where
        none is given; larger ones are filled with what does nothing. The run is one like any
        other: `eval`, `certify`, `probe`, `snap`, `train --from` and the rest read it.

        Examples:
            statetrack build s3 --model bilinear-block --out runs/exact
            statetrack build s5 --model deltaproduct --beta double --precision float64
            statetrack build s4 --model bilinear-block --integers
            statetrack build parity --model deltanet --beta double --export fla --out fla
            statetrack build parity --model lstm --noise 0.1 --seed 3

        """
        # an unknown option before the task takes its place
        rest = [task, *context.args] if task.startswith("--") else context.args
        refuse_unknown(rest, said, own, others_of(name), own_of(name), command="build")
        options.require_new_run(out, force=force)
        if export is not None and out is None:
            raise SettingsError("--export writes beside the run that --out names: name one")
        # what follows imports torch, which `--help` does not need
        from statetrack import constructions, exporting
        from statetrack.cli._terminal import print_json
        from statetrack.report import console, facts
        from statetrack.runs import write_built
        from statetrack.scoring import plain, rounded_down
        from statetrack.spec import load_task

        settings = options.collect(BuildSettings, given)
        beside = None
        if out is not None and export is not None:
            exporting.LAYOUTS[export]  # an unknown name is refused before anything is built
            beside = out.with_name(f"{out.name}-{export}")
            runs.require_new(beside)
        of_model = {name: given[name] for name in fields}
        loaded = load_task(task)
        found = constructions.build(
            loaded,
            name,
            dtype=settings.precision,
            noise=settings.noise,
            seed=settings.seed,
            integers=settings.integers,
            **options.on_command_line(context, of_model),
        )
        if export is not None and beside is not None:
            try:
                exporting.export(found.model, export, beside, task=loaded)
            except SettingsError as why:  # the setting `layout` has another name here
                raise why.renamed("layout", "export") from None
        command = shlex.join(["statetrack", "build", *argv])
        run = write_built(found, loaded, name, out, command=command, force=force)
        construction = found.construction
        if as_json:
            about = run.experiment.values()["built"]
            content = {"run": str(run.path), "model": name, "task": run.task.name, "built": about}
            content |= {} if beside is None else {"exported": str(beside)}
            print_json(plain(content | {"settings": found.settings.model_dump(mode="json")}))
            return
        sizes = ", ".join(f"{each} {value}" for each, value in found.sizes.items())
        promised = "none, with noise"
        if found.margin is not None:
            digits = max(2, -math.floor(math.log10(max(found.margin, 1e-9))))  # never 0.00
            promised = f"{rounded_down(found.margin, digits)} of the spread of the logits, in every"
            promised += " state"
        noise = f", noise {found.noise:g} (seed {found.seed})" if found.noise else ""
        lines = [
            ("construction", construction.name),
            ("equation", construction.equation),
            ("source", construction.source),
            ("margin", promised),
            ("sizes", sizes or "none matters"),
            ("weights", found.dtype + noise),
        ]
        console().print(f"{visible(name)} on {run.task.name}", style="bold")
        console().print(facts(lines))
        console().print(f"run: {run.path}", soft_wrap=True)
        if beside is not None:
            console().print(f"exported: {beside}", soft_wrap=True)

    own_options = options.parameters(facts.settings_class, f"Model {visible(name)}")
    shared = options.parameters(BuildSettings, "Weights")
    return options.with_settings(build_weights, [*shared, *own_options])
