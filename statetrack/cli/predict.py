"""Predict which models can track a task, and which size they need, before any training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated

import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from statetrack import algebra as theory
from statetrack import report, spec
from statetrack.cli import options
from statetrack.cli._algebra import algebra_facts, draw_witnesses
from statetrack.cli._chosen_models import chosen_models
from statetrack.cli._terminal import print_json

PLACE = 7
"""Its place among the commands that `statetrack --help` lists."""


def build(argv: list[str]) -> Callable[..., None]:
    """The command `statetrack predict`."""
    return predictions


def predictions(
    tasks: Annotated[
        list[str] | None,
        typer.Argument(help="Tasks, by name or file; left out, all.", metavar="[TASK ...]"),
    ] = None,
    models: Annotated[str, options.models_option("all")] = "",
    as_json: options.PrintJson = False,
) -> None:
    """Predict which models can track a task, and which size they need, before any training.

    A model tracks a task if some one set of weights gives the right label a logit that is ahead
    by a fixed margin, on words of every length, in exact real arithmetic, with gains that may
    reach the closed ends of their range. What holds in another sense only, such as at finite
    precision or for constant depth, says so in its theorem.

    For one task, with the theorem and its source for every model; for several, a table. A model
    has its default settings, but for the options behind its name, which are those that `train`
    has for it. A size is a value of the named setting: `=` means that no smaller one suffices,
    `<=` that a construction needs no more, `layers ?` that some number does, and [has 2] that the
    model has less. *as set* says whether the model can with the settings that it has.

    Examples:
        statetrack predict s5
        statetrack predict s3 --models 'deltanet --beta double,lstm'

    """
    show_predictions(tasks or (), models, as_json)


SHORT = {"yes": "yes", "no": "no", "unknown": "?"}
"""An answer in a column whose heading says what is asked."""


def show_predictions(tasks: Sequence[str], models: str, as_json: bool) -> None:
    """Print the predictions for models on tasks; for all of them, where none is named."""
    from statetrack.catalogue import describe_algebra  # numpy, which `--help` does not need
    from statetrack.predicting import predict

    chosen = chosen_models(models)
    loaded = {name: spec.load_task(name) for name in tasks or _with_automata()}
    algebras = {name: theory.analyse(task.automaton) for name, task in loaded.items()}
    if as_json:
        print_json(
            {name: describe_algebra(loaded[name], each, chosen) for name, each in algebras.items()}
        )
        return
    found = {
        name: {model: predict(algebra, settings) for model, settings in chosen.items()}
        for name, algebra in algebras.items()
    }
    if len(found) == 1:
        ((name, row),) = found.items()
        facts = algebra_facts(algebras[name], spec.WordSpec.of(loaded[name]))
        console = report.drawing.console()
        numbers = _numbered(row)
        _draw_task(name, facts, row, numbers, console)
        draw_witnesses(numbers, loaded[name].automaton, console)
    else:
        _draw_table(found, report.drawing.console())


def _with_automata() -> list[str]:
    """The tasks that have an automaton; the others are listed on standard error."""
    without = [name for name in spec.TASKS if not spec.load_task(name).has_automaton]
    typer.echo(f"left out, because they have no automaton: {', '.join(without)}", err=True)
    return [name for name in spec.TASKS if name not in without]


def _numbered(row: dict[str, theory.Prediction]) -> dict[theory.Witness, int]:
    """The different witnesses of some predictions, numbered from 1."""
    witnesses = dict.fromkeys(found.witness for found in row.values() if found.witness is not None)
    return {witness: number for number, witness in enumerate(witnesses, start=1)}


def _draw_task(
    task: str,
    facts: list[tuple[str, str]],
    row: dict[str, theory.Prediction],
    numbers: dict[theory.Witness, int],
    console: Console,
) -> None:
    console.print(Text(task, "bold"))
    console.print(report.drawing.facts(facts))
    console.print()
    margins = any(found.margin is not None for found in row.values())
    columns = ("model", "can", "size", "as set", "robust", *["margin"] * margins)
    left_out = ("robust", "margin", "as set")
    table = report.drawing.plain_table(
        *columns, right=("margin",), whole=("can", "as set", "robust"), left_out=left_out
    )
    reasons: dict[str, list[str]] = {}
    for model, found in row.items():
        as_set = _as_set(found)
        margin = "" if found.margin is None else report.drawing.share(found.margin, 3)
        cells = (_answer(found), Text(_size(found)), as_set, SHORT[found.robust])
        table.add_row(Text(model), *cells, *[margin] * margins)
        shown = f"; words {numbers[found.witness]}" if found.witness else ""
        reasons.setdefault(f"{found.theorem} ({found.source}){shown}", []).append(model)
    console.print(table)
    for why, models in reasons.items():
        console.print()
        console.print(Text(", ".join(models), "bold"))
        console.print(Padding(Text(why), (0, 0, 0, 2)))


def _draw_table(found: dict[str, dict[str, theory.Prediction]], console: Console) -> None:
    for task, row in found.items():
        console.print(Text(task, "bold"))
        answers = {
            answer: ", ".join(
                _named(model, each) for model, each in row.items() if each.can == answer
            )
            for answer in report.SHOWN
        }
        lines = [
            (f"  {report.SHOWN[answer]}", Text(names, report.LOOKS[answer]))
            for answer, names in answers.items()
            if names
        ]
        console.print(report.drawing.facts(lines))
    console.print(Text("`statetrack predict TASK` gives the reasons.", "dim"))


def _named(model: str, found: theory.Prediction) -> str:
    size = _size(found)
    return f"{model} ({size})" if size else model


def _answer(found: theory.Prediction) -> Text:
    return Text(report.SHOWN[found.can], report.LOOKS[found.can])


def _as_set(found: theory.Prediction) -> Text:
    """Whether the settings that the model has are enough; nothing where none are."""
    return Text(SHORT[found.answer], report.LOOKS[found.answer]) if found.can == "yes" else Text()


def _size(found: theory.Prediction) -> str:
    """`block_size = 3` where no smaller size suffices, `rank <= 9 [has 4]` where 9 suffices.

    `layers ?` where no number is known to be enough.
    """
    sizes = (_need(need).replace(" ", report.NO_BREAK) for need in found.needs)
    return ", ".join(sizes) if found.can == "yes" else ""


def _need(need: theory.Need) -> str:
    at_least = need.value if need.value is not None else need.least
    has = f" [has {need.given}]" if at_least is not None and need.given < at_least else ""
    if need.smallest:
        return f"{need.setting} = {need.value}{has}"
    below = f"{need.least} <= " if need.least is not None and need.least > 1 else ""
    enough = f" <= {need.value}" if need.value is not None else "" if below else " ?"
    return f"{below}{need.setting}{enough}{has}"
