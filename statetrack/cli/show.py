"""Show everything about one task or one model.

A task: its states, alphabet, labels, transitions, examples and what a constant answer scores.
A model: its equation, source, settings and number of parameters.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from statetrack.algebra import Algebra, analyse, predict
from statetrack.automata import best_constant
from statetrack.cli import _drawing, options
from statetrack.cli._inventory import SIZED_FOR, build_at_defaults
from statetrack.cli.predict import algebra_facts
from statetrack.errors import UnknownNameError, nearest
from statetrack.models import MODELS
from statetrack.models._sizes import num_parameters, state_size
from statetrack.spec import TASKS, Task, arguments_that_can_be_set, golden_hash, load_task

MOST_STATES = 30
"""The longest transition table that is printed; `--json` has them all."""

EXAMPLE_LENGTH = 8


def build(argv: list[str]) -> Callable[..., None]:
    """The command `statetrack show`."""
    return show


def show(
    name: Annotated[
        str, typer.Argument(help="A task (its name, or a .yaml file) or a model.", metavar="NAME")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
) -> None:
    """Show everything about one task or one model.

    A task's name may carry arguments, as in `statetrack show modular-addition:m=7`.
    """
    if name in MODELS:
        about = describe_model(name)
        draw: Callable[[dict[str, Any], Console], None] = _draw_model
    else:
        task = load_named_task(name)
        algebra = analyse(task.automaton)
        about = describe_task(task, algebra)
        draw = partial(_draw_task, algebra=algebra)
    if as_json:
        _drawing.print_json(about)
    else:
        draw(about, _drawing.console())


def describe_task(task: Task, algebra: Algebra) -> dict[str, Any]:
    """All that is known of a task, as plain values: what `show --json` prints."""
    spec, automaton = task.spec, task.automaton
    floors = best_constant(automaton, spec.test_lengths)
    return {
        "name": task.name,
        "type": "task",
        "title": spec.title,
        "version": spec.version,
        "reference": spec.reference,
        "description": spec.description,
        "kind": spec.automaton["kind"],
        "arguments": arguments_that_can_be_set(task),
        "states": list(automaton.states),
        "symbols": list(automaton.symbols),
        "labels": list(automaton.labels),
        "start": automaton.start,
        "transitions": automaton.delta.tolist(),
        "output": automaton.output.tolist(),
        "scored": automaton.scored.tolist(),
        "weights": automaton.weights.tolist(),
        "train_length": list(spec.train_length),
        "test_lengths": list(spec.test_lengths),
        "supervision": spec.supervision,
        "floor": {str(length): floor for length, floor in floors.items()},
        "examples": dict(spec.examples) or _made_up_example(task),
        "hash": golden_hash(task),
        "algebra": algebra.to_json(),
        "predictions": {name: predict(algebra, name).to_json() for name in MODELS},
    }


def describe_model(name: str) -> dict[str, Any]:
    """All that is known of a model, as plain values: what `show --json` prints."""
    model = MODELS[name]
    built = build_at_defaults(name)
    return {
        "name": name,
        "type": "model",
        "summary": (inspect.getdoc(model) or "").partition("\n")[0],
        "family": model.family,
        "source": model.source,
        "description": inspect.cleandoc(sys.modules[model.__module__].__doc__ or ""),
        "settings": options.describe(model.settings_class),
        "training_defaults": dict(model.training_defaults),
        "parameters": num_parameters(built),
        "parameters_on": SIZED_FOR,
        "state": state_size(built),
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
    """One word that the task's own weights allow, and its labels."""
    automaton = task.automaton
    word, state = [], automaton.start
    for place in range(EXAMPLE_LENGTH):
        allowed = [int(symbol) for symbol in automaton.weights[state].nonzero()[0]]
        word.append(allowed[(place * place + 1) % len(allowed)])
        state = int(automaton.delta[state, word[-1]])
    return {task.format_word(word): task.format_labels(word)}


def _draw_task(about: dict[str, Any], console: Console, *, algebra: Algebra) -> None:
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
        ("states", f"{len(about['states'])}, starting in {about['states'][about['start']]}"),
        ("symbols", _names(about["symbols"])),
        ("labels", _names(about["labels"])),
        ("train", f"lengths {shortest}-{longest}, a label after {after}"),
        ("test", f"length {lengths}"),
        *(
            ("floor", f"{floor:.4f} at length {int(length):,}: the best constant answer")
            for length, floor in about["floor"].items()
        ),
        ("words", _words(about)),
        *algebra_facts(algebra),
    ]
    console.print(_drawing.facts(rows))
    console.print()
    _draw_transitions(about, console)
    _draw_examples(about["examples"], console)


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


def _draw_model(about: dict[str, Any], console: Console) -> None:
    console.print(Text.assemble((about["name"], "bold"), (f"  model, {about['family']}", "dim")))
    _drawing.prose(about["description"], console)
    usual = ", ".join(
        f"{options.flag(name)} {options.as_text(value)}"
        for name, value in about["training_defaults"].items()
    )
    console.print(
        _drawing.facts(
            [
                ("source", about["source"]),
                ("parameters", f"{about['parameters']:,} at defaults on {about['parameters_on']}"),
                ("training", usual or "as for every model"),
            ]
        )
    )
    console.print()
    table = _drawing.plain_table("option", "type", "default", "what it is")
    for setting in about["settings"]:
        default = options.as_text(setting["default"])
        cells = (setting["option"], _type_with_bounds(setting), default, setting["help"])
        table.add_row(*map(Text, cells))
    console.print(table)


def _type_with_bounds(setting: dict[str, Any]) -> str:
    signs = (("min", ">="), ("above", ">"), ("max", "<="))
    bounds = [f"{sign} {setting[name]:g}" for name, sign in signs if setting[name] is not None]
    return " ".join([setting["type"], ", ".join(bounds)]).rstrip()


def _arguments(arguments: dict[str, Any]) -> str:
    """The arguments that fit in a word; tables that a file writes out are shown as a table."""
    return ", ".join(
        f"{name}={value}"
        for name, value in arguments.items()
        if value is not None and not isinstance(value, dict)
    )


def _names(names: Sequence[str], most: int = 24) -> str:
    shown = " ".join(names[:most])
    return f"{len(names)}: {shown}" + (" ..." if len(names) > most else "")


def _words(about: dict[str, Any]) -> str:
    uniform = all(len(set(row)) == 1 for row in about["weights"])
    if uniform:
        return "symbols drawn uniformly"
    return "symbols drawn with the weights of each state; dim targets are never drawn"
