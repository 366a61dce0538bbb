"""Give a model weights that track a task by construction, as a run.

The options depend on `--model`: each model has its own.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from statetrack.cli import options
from statetrack.cli._usage import refuse_unknown
from statetrack.cli.options import fields_of_models
from statetrack.errors import SettingsError
from statetrack.models import MODEL_FACTS
from statetrack.text import visible

PLACE = 1.5
"""Its place among the commands that `statetrack --help` lists."""

DEFAULT_MODEL = "bilinear-cp"


def build(argv: list[str]) -> Callable[..., None]:
    """The command for these arguments, with the chosen model's options."""
    given_name = options.peek(argv, "--model")
    name = str(given_name or DEFAULT_MODEL)
    said = name if given_name else f"{name}, the model where none is given,"
    facts = MODEL_FACTS[name]
    fields = facts.settings_class.model_fields
    own = {
        *fields,
        "model",
        "precision",
        "integers",
        "noise",
        "seed",
        "out",
        "force",
        "json",
        "plugin",
    }

    def build_weights(
        context: typer.Context,
        task: Annotated[
            str, typer.Argument(metavar="TASK", help="A task, by name or file, with an automaton.")
        ],
        *,
        model: Annotated[
            str,
            typer.Option(metavar="NAME", help="The model; its own options are listed below."),
        ] = name,
        precision: Annotated[
            Literal["float32", "float64"], typer.Option(help="The type of the weights.")
        ] = "float32",
        integers: Annotated[
            bool,
            typer.Option(
                "--integers",
                help="Whole numbers alone, of linear models: nothing is ever rounded.",
            ),
        ] = False,
        noise: Annotated[
            float,
            typer.Option(
                metavar="S", help="Deviation of normal noise to add to every weight.", min=0
            ),
        ] = 0.0,
        seed: Annotated[int, typer.Option(metavar="N", help="The seed of the noise.", min=0)] = 0,
        out: Annotated[
            Path | None,
            typer.Option(metavar="FOLDER", help="The run folder; by default a new one in runs/."),
        ] = None,
        force: options.Force = False,
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
            statetrack build parity --model lstm --noise 0.1 --seed 3

        """
        refuse_unknown(context.args, said, own, fields_of_models, command="build")
        if force and out is None:
            raise SettingsError("--force replaces the run that --out names: name one")
        # what follows imports torch, which `--help` does not need
        from statetrack import constructions
        from statetrack.cli._terminal import print_json
        from statetrack.report import console, facts
        from statetrack.runs import require_new, write_built
        from statetrack.scoring import plain, rounded_down
        from statetrack.spec import load_task

        if out is not None:
            require_new(out, force=force)
        chosen = {
            each: value
            for each, value in given.items()
            if (source := context.get_parameter_source(each)) and source.name == "COMMANDLINE"
        }
        loaded = load_task(task)
        found = constructions.build(
            loaded, name, dtype=precision, noise=noise, seed=seed, integers=integers, **chosen
        )
        command = shlex.join(["statetrack", "build", *argv])
        run = write_built(found, loaded, name, out, command=command, force=force)
        construction = found.construction
        if as_json:
            about = run.experiment.values()["built"]
            content = {"run": str(run.path), "model": name, "task": run.task.name, "built": about}
            print_json(plain(content | {"settings": found.settings.model_dump(mode="json")}))
            return
        sizes = ", ".join(f"{each} {value}" for each, value in found.sizes.items())
        promised = (
            "none, with noise"
            if found.margin is None
            else f"{rounded_down(found.margin)} of the spread of the logits, in every state"
        )
        lines = [
            ("construction", construction.name),
            ("equation", construction.equation),
            ("source", construction.source),
            ("margin", promised),
            ("sizes", sizes or "none matters"),
            ("weights", found.dtype + (f", noise {noise:g} (seed {seed})" if noise else "")),
        ]
        console().print(f"{visible(name)} on {run.task.name}", style="bold")
        console().print(facts(lines))
        console().print(f"run: {run.path}", soft_wrap=True)

    panel = f"Model {visible(name)}"
    return options.with_settings(
        build_weights, list(options.parameters(facts.settings_class, panel))
    )
