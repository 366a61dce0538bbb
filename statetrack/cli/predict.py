"""Predict which models can track a task, and which size they need, before any training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from statetrack import algebra as theory
from statetrack import catalogue, report, sources, spec
from statetrack.cli import options
from statetrack.cli._algebra import algebra_facts, draw_witnesses
from statetrack.cli._terminal import print_json
from statetrack.cli.options import chosen_models
from statetrack.errors import UnknownNameError
from statetrack.models import MODELS

PLACE = 7
"""Its place among the commands that `statetrack --help` lists."""


SHORT = {"yes": "yes", "no": "no", "unknown": "?"}
"""An answer in a column whose heading says what is asked."""


def command(
    tasks: Annotated[
        list[str] | None,
        typer.Argument(help="Tasks, by name or file; left out, all.", metavar="[TASK ...]"),
    ] = None,
    models: Annotated[str, options.models_option("all")] = "",
    why: Annotated[
        bool,
        typer.Option(
            "--why",
            help="Also the theorem of every answer and the words that prove it; of models that are "
            "named by --models they are shown anyway.",
        ),
    ] = False,
    as_json: options.PrintJson = False,
) -> None:
    """Predict which models can track a task, and which size they need, before any training.

    A model tracks a task if some one set of weights gives the right label a logit that is ahead
    by a fixed margin, on words of every length, in exact real arithmetic, with gains that may
    reach the closed ends of their range. What holds in another sense only, such as at finite
    precision or for constant depth, says so in its theorem.

    For one task, a line for each model; with `--why`, and of models that are named, the theorem of
    each answer with its source, and the words that prove a *cannot*. For several tasks, which
    models can and which cannot. A model has its default settings, but for the options behind its
    name, which are those that `train` has for it. A size is a value of the named setting: `hidden
    >= 2` means that 2 is enough and no less, `hidden >= 2 (3 is enough)` that less than 2 is not,
    `hidden 37 is enough` that less may be, `layers ?` that some number is, and [has 2] that the
    model has less. *as set* says whether the model can with the settings that it has, and
    *generalises*, of causal attention, whether what it learns on short words holds on longer ones.

    Examples:
        statetrack predict s5
        statetrack predict s5 --why
        statetrack predict s3 --models 'deltanet --beta double,lstm'

    """
    for name in tasks or ():
        if name not in spec.TASKS and all(each.strip() in MODELS for each in name.split(",")):
            is_one = "is a model, and its" if name in MODELS else "are models, whose"
            raise UnknownNameError(
                f"{name} {is_one} predictions are for a task: `statetrack predict TASK "
                f"--models {name}`"
            )
    chosen = chosen_models(models)
    names: Sequence[str] = tasks or list(spec.TASKS)
    loaded = {name: spec.load_task(name) for name in names}
    if not tasks:
        without = [name for name, task in loaded.items() if not task.has_automaton]
        typer.echo(f"left out, because they have no automaton: {', '.join(without)}", err=True)
        loaded = {name: task for name, task in loaded.items() if task.has_automaton}
    from statetrack.predicting import algebra_of, predict  # numpy, which `--help` does not need

    algebras = {name: algebra_of(task.automaton) for name, task in loaded.items()}
    if as_json:
        print_json(
            {
                name: catalogue.describe_algebra(loaded[name], each, chosen)
                for name, each in algebras.items()
            }
        )
        return
    found = {
        name: {model: predict(algebra, settings) for model, settings in chosen.items()}
        for name, algebra in algebras.items()
    }
    console = report.console()
    if len(found) > 1 and not why:
        _draw_tasks(found, console)
        return
    for name, row in found.items():
        console.print(Text(name, "bold"))
        console.print(report.facts(algebra_facts(algebras[name], spec.WordSpec.of(loaded[name]))))
        console.print()
        reasons = why or bool(models.strip())
        console.print(_table(row, console.width, brief=not reasons))
        if reasons:
            _draw_reasons(row, loaded[name].automaton, console)
        else:
            console.print(Text("--why says why, with the words that prove a cannot", "dim"))
        if len(found) > 1:
            console.print()


def _table(row: Mapping[str, theory.Prediction], width: int, *, brief: bool) -> report.Table:
    """A line for each model; a brief one has what decides, and fits a terminal of 80 columns."""
    columns = [
        report.Column("model", "name"),
        report.Column("can", "whole"),
        report.Column("size", "whole" if brief and _fits_whole(row, width) else "text"),
        report.Column("as set", "whole"),
    ]
    if not brief:
        columns.append(report.Column("robust", "whole"))
    if not brief and any(found.margin is not None for found in row.values()):
        columns.append(report.Column("margin", "number"))
    if any(found.generalises is not None for found in row.values()):
        columns.append(report.Column("generalises", "whole"))
    rows = []
    for model, found in row.items():
        as_set = found.answer if found.can == "yes" else None  # settings are enough of that alone
        longer = found.generalises
        cells: dict[str, str | Text] = {
            "model": model,
            "can": Text(report.SHOWN[found.can], report.LOOKS[found.can]),
            "size": _size(found, brief=brief),
            "as set": "" if as_set is None else Text(SHORT[as_set], report.LOOKS[as_set]),
            "robust": SHORT[found.robust],
            "margin": "" if found.margin is None else report.share(found.margin, 3),
            "generalises": ""
            if longer is None
            else Text(SHORT[longer.answer], report.LOOKS[longer.answer]),
        }
        rows.append([cells[column.name] for column in columns])
    left_out = ("robust", "margin", *(("generalises",) if brief else ()), "as set", "generalises")
    return report.Table(columns, rows, left_out=left_out)


def _draw_reasons(
    row: Mapping[str, theory.Prediction], automaton: sources.Automaton, console: Console
) -> None:
    """Every theorem with the models that it is about, and the words that show it."""
    witnesses = dict.fromkeys(shown for each in row.values() for shown in each.witnesses)
    numbers = {witness: number for number, witness in enumerate(witnesses, start=1)}
    reasons: dict[str, list[str]] = {}
    for model, found in row.items():
        shown = f"; words {numbers[found.witness]}" if found.witness else ""
        reasons.setdefault(f"{found.reason}{shown}", []).append(model)
        longer = found.generalises
        if longer is not None and longer.theorem != found.theorem:  # else it is said
            shown = f"; words {numbers[longer.witness]}" if longer.witness else ""
            why = f"trained on short words: {longer.reason}{shown}"
            reasons.setdefault(why, []).append(model)
    for why, models in reasons.items():
        console.print()
        console.print(Text(", ".join(models), "bold"))
        console.print(Padding(Text(why), (0, 0, 0, 2)))
    draw_witnesses(numbers, automaton, console)


def _draw_tasks(found: Mapping[str, Mapping[str, theory.Prediction]], console: Console) -> None:
    """The models that can, that cannot and of which neither is known, for every task."""
    for task, row in found.items():
        lines = []
        for answer, shown in report.SHOWN.items():
            sizes = {model: _size(each) for model, each in row.items() if each.can == answer}
            names = [f"{model} ({size})" if size else model for model, size in sizes.items()]
            if names:
                lines.append((f"  {shown}", Text(", ".join(names), report.LOOKS[answer])))
        console.print(Text(task, "bold"))
        console.print(report.facts(lines))
    console.print(Text("`statetrack predict TASK --why` gives the reasons.", "dim"))


def _size(found: theory.Prediction, *, brief: bool = False) -> str:
    """The bounds of every size, with what the model has where that is less than is known to do.

    A brief text has those that the model has less of, or the one that counts most.
    """
    needs = found.needs if found.can == "yes" else ()
    if brief:
        needs = tuple(need for need in needs if need.met != "yes") or needs[:1]
    bounds = (
        f"{need.bounds}{f' [has {need.given}]' if need in found.unmet else ''}" for need in needs
    )
    return ", ".join(map(report.breaking_at_brackets, bounds))


def _fits_whole(row: Mapping[str, theory.Prediction], width: int) -> bool:
    """Whether a line of this width has room for every model, its answer and its size."""
    sizes = max(len(_size(found, brief=True)) for found in row.values())
    return max(map(len, row)) + max(map(len, report.SHOWN.values())) + sizes + 4 <= width
