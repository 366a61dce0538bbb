"""Show everything about one task or one model.

A task: its states, alphabet, labels, transitions, examples and what a constant answer scores.
A model: its equation, source, settings and number of parameters.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from statetrack.algebra.analysing import Algebra, analyse
from statetrack.cli import _drawing
from statetrack.cli.predict import algebra_facts
from statetrack.data import whole_words
from statetrack.errors import SettingsError, UnknownNameError, nearest
from statetrack.models import MODELS
from statetrack.pictures.pictures import MANNERS, draw_task
from statetrack.predicting import predict
from statetrack.sources import KINDS, Sampler, best_constant
from statetrack.spec import TASKS, Task, arguments_that_can_be_set, golden_hash, load_task

MOST_STATES = 30
"""The longest transition table that is printed; `--json` has them all."""

EXAMPLE_LENGTH = 8

AUTO = "auto"
"""The value of `--plot-as` that leaves the choice to the task."""


def build(argv: list[str]) -> Callable[..., None]:
    """The command `statetrack show`."""
    return show


def show(
    name: Annotated[
        str, typer.Argument(help="A task (its name, or a .yaml file) or a model.", metavar="NAME")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the task instead, as .svg, .png or .pdf."),
    ] = None,
    plot_as: Annotated[
        str, typer.Option(help=f"{', '.join(MANNERS)}; auto: what suits the task.")
    ] = AUTO,
) -> None:
    """Show everything about one task or one model.

    A task's name may carry arguments, as in `statetrack show modular-addition:m=7`.
    """
    if plot is not None:
        if as_json:
            raise SettingsError("--json and --plot: choose one")
        _plot(name, plot, plot_as)
        return
    if plot_as != AUTO:
        raise SettingsError("--plot-as: needs --plot FILE as well")
    if name in MODELS:
        from statetrack.cli import _models  # brings torch in, which tasks do not need

        model = _models.describe_model(name)
        if as_json:
            _drawing.print_json(model)
        else:
            _models.draw_model(model, _drawing.console())
        return
    task = load_named_task(name)
    algebra = analyse(task.automaton) if task.has_automaton else None
    about = describe_task(task)
    if as_json:
        _drawing.print_json(about | _describe_algebra(algebra))
    else:
        _draw_task(about, _drawing.console(), algebra=algebra)


def _plot(name: str, path: Path, manner: str) -> None:
    """Draw a task into a file, and say what was drawn."""
    if name in MODELS:
        raise SettingsError(f"--plot: {name} is a model, and only tasks are drawn")
    if manner not in (AUTO, *MANNERS):
        known = ", ".join((AUTO, *MANNERS))
        raise SettingsError(f"--plot-as {manner}: is none of {known}.{nearest(manner, MANNERS)}")
    task = load_named_task(name)
    chosen = next((each for each in MANNERS if each == manner), None)
    what = draw_task(task, path, chosen)
    _drawing.console().print(Text(f"{path}: {what}"), soft_wrap=True)


def describe_task(task: Task) -> dict[str, Any]:
    """What is known of a task without its algebra, as plain values.

    What only an automaton has is null for a task whose words come from a sampler.
    """
    spec = task.spec
    return {
        "name": task.name,
        "type": "task",
        "title": spec.title,
        "version": spec.version,
        "reference": spec.reference,
        "description": spec.description,
        "kind": spec.automaton["kind"],
        "arguments": arguments_that_can_be_set(task),
        "symbols": list(task.source.symbols),
        "labels": list(task.source.labels),
        **(_describe_automaton(task) if task.has_automaton else dict.fromkeys(OF_AUTOMATA)),
        "train_length": list(spec.train_length),
        "test_lengths": list(spec.test_lengths),
        "supervision": spec.supervision,
        "examples": dict(spec.examples) or _made_up_example(task),
        "hash": golden_hash(task),
    }


def _describe_algebra(algebra: Algebra | None) -> dict[str, Any]:
    """What the algebra says of a task, and of every model on it; null where there is none."""
    return {
        "algebra": algebra and algebra.to_json(),
        "predictions": algebra and {name: predict(algebra, name).to_json() for name in MODELS},
    }


OF_AUTOMATA = (
    *("states", "start", "transitions", "output", "scored", "weights", "slips", "slip_rate"),
    "floor",
)
"""What is shown of an automaton alone."""


def _describe_automaton(task: Task) -> dict[str, Any]:
    automaton = task.automaton
    floors = best_constant(automaton, task.spec.test_lengths)
    return {
        "states": list(automaton.states),
        "start": automaton.start,
        "transitions": automaton.delta.tolist(),
        "output": automaton.output.tolist(),
        "scored": automaton.scored.tolist(),
        "weights": automaton.weights.tolist(),
        "slips": automaton.slips.tolist(),
        "slip_rate": automaton.slip_rate,
        "floor": {str(length): floor for length, floor in floors.items()},
    }


def load_named_task(name: str) -> Task:
    """The task of a name; a name of nothing gets the nearest of tasks and models."""
    plain = name.strip().isidentifier() or all(c.isalnum() or c == "-" for c in name)
    if plain and name not in TASKS:
        hint = nearest(name, [*TASKS, *MODELS])
        raise UnknownNameError(
            f"there is no task or model '{name}'.{hint} "
            "`statetrack list tasks` and `statetrack list models` show all."
        )
    return load_task(name)


def _made_up_example(task: Task) -> dict[str, str]:
    """One word that the task can draw, and its labels."""
    if isinstance(task.source, Sampler):
        (words,) = whole_words(task.source, 1, EXAMPLE_LENGTH, seed=0)
        return {task.format_word(words.symbols[0]): task.format_labels(words.symbols[0])}
    automaton = task.automaton
    word, state = [], automaton.start
    for place in range(EXAMPLE_LENGTH):
        allowed = [int(symbol) for symbol in automaton.drawable[state].nonzero()[0]]
        word.append(allowed[(place * place + 1) % len(allowed)])
        state = int(automaton.delta[state, word[-1]])
    return {task.format_word(word): task.format_labels(word)}


def _draw_task(about: dict[str, Any], console: Console, *, algebra: Algebra | None) -> None:
    _draw_heading(console, about["name"], f"task, version {about['version']}", about["title"])
    if about["description"]:
        _drawing.prose(about["description"].strip(), console)
    lengths = ", ".join(f"{length:,}" for length in about["test_lengths"])
    after = "every symbol" if about["supervision"] == "every" else "the last symbol"
    shortest, longest = about["train_length"]
    rows = [
        ("reference", about["reference"]),
        ("kind", about["kind"]),
        *(
            [("arguments", _arguments(about["arguments"]))]
            if _arguments(about["arguments"])
            else []
        ),
        *(_states(about) if algebra else []),
        ("symbols", _names(about["symbols"])),
        ("labels", _names(about["labels"])),
        ("train", f"lengths {shortest}-{longest}, a label after {after}"),
        ("test", f"length {lengths}"),
        *(_automaton_facts(about, algebra) if algebra else [("words", WITHOUT_AUTOMATON)]),
    ]
    console.print(_drawing.facts(rows))
    console.print()
    if algebra:
        _draw_transitions(about, console)
    else:
        _drawing.prose(inspect.getdoc(KINDS[about["kind"]]) or "", console)
    _draw_examples(about["examples"], console)


WITHOUT_AUTOMATON = (
    "drawn whole, by a sampler: no states or transitions, no exact floor, no algebra and no "
    "predictions; `eval` measures the floor on the test words"
)


def _states(about: dict[str, Any]) -> list[tuple[str, str]]:
    states = about["states"]
    return [("states", f"{len(states)}, starting in {states[about['start']]}")]


def _automaton_facts(about: dict[str, Any], algebra: Algebra) -> list[tuple[str, str]]:
    return [
        *(
            ("floor", f"{floor:.4f} at length {int(length):,}: the best constant answer")
            for length, floor in about["floor"].items()
        ),
        ("words", _words(about)),
        *algebra_facts(algebra),
    ]


def _draw_heading(console: Console, name: str, what: str, title: str) -> None:
    console.print(Text.assemble((name, "bold"), (f"  {what}", "dim")))
    console.print(Text(title))
    console.print()


def _draw_transitions(about: dict[str, Any], console: Console) -> None:
    states, symbols = about["states"], about["symbols"]
    width = max(map(len, states)) * (len(symbols) + 2) + 2 * len(symbols) + 10
    if len(states) > MOST_STATES or width > console.width:
        size = f"{len(states)} states x {len(symbols)} symbols"
        console.print(Text(f"transitions: {size}, too many to print; --json has them", "dim"))
        console.print()
        return
    table = _drawing.plain_table("state", "label", *symbols)
    for index, state in enumerate(states):
        label = about["labels"][about["output"][index]] if about["scored"][index] else "-"
        reached = [
            states[target] if weight else Text(states[target], "dim")
            for target, weight in zip(
                about["transitions"][index], about["weights"][index], strict=True
            )
        ]
        table.add_row(state, label, *reached, style="bold" if index == about["start"] else None)
    console.print(table)
    console.print()


def _draw_examples(examples: dict[str, str], console: Console) -> None:
    for word, labels in examples.items():
        pairs = list(zip(["word", *word.split()], ["labels", *labels.split()], strict=True))
        widths = [max(len(symbol), len(label)) for symbol, label in pairs]
        for line in zip(*pairs, strict=True):
            cells = [f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)]
            console.print(Text.assemble((cells[0] + "  ", "dim"), " ".join(cells[1:]).rstrip()))
        console.print()


def _arguments(arguments: dict[str, Any]) -> str:
    """The arguments that fit in a word; tables that a file writes out are shown as a table."""
    shown = {name: _in_a_word(value) for name, value in arguments.items()}
    return ", ".join(f"{name}={value}" for name, value in shown.items() if value)


def _in_a_word(value: Any) -> str:
    """A value of an argument; of a machine its kind and arguments, of other tables nothing."""
    if isinstance(value, dict) and "kind" in value:
        inner = _arguments({key: each for key, each in value.items() if key != "kind"})
        return f"{value['kind']}({inner})" if inner else str(value["kind"])
    if isinstance(value, dict):
        return _in_a_word(value.get("of"))
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return f"[{', '.join(map(_in_a_word, value))}]"
    return "" if value is None else str(value)


def _names(names: Sequence[str], most: int = 24) -> str:
    shown = " ".join(names[:most])
    return f"{len(names)}: {shown}" + (" ..." if len(names) > most else "")


def _words(about: dict[str, Any]) -> str:
    if rate := about["slip_rate"]:
        chance = f"{rate:g} / (t + {1 + rate:g}) at position t, from 0"
        return f"drawn by weights; a slip (dim) has chance {chance}"
    if all(len(set(row)) == 1 for row in about["weights"]):
        return "symbols drawn uniformly"
    return "symbols drawn with the weights of each state; dim targets are never drawn"
