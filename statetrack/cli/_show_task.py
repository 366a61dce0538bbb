"""The description of a task in the terminal."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from typing import Any

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from statetrack.audit import SOLVED
from statetrack.cli._algebra import Line
from statetrack.report import drawing
from statetrack.sources import KINDS
from statetrack.text import shortened

MOST_STATES = 30
"""The most rows of a transition table that is printed; `--json` has all."""


LONGEST_LOOKED_UP = 10
"""The most last symbols that are called a shortcut where they tell nearly all labels."""


LONGEST_VALUE = 200
"""The most letters of an argument's value that are printed."""


def draw_task(about: dict[str, Any], console: Console, *, algebra: list[Line] | None) -> None:
    """Print a task; `algebra` are the lines about its algebra, None where it has no automaton."""
    _draw_heading(console, about["name"], f"task, version {about['version']}", about["title"])
    if about["description"]:
        drawing.prose(about["description"].strip(), console)
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
    console.print(drawing.facts(rows))
    console.print()
    if algebra:
        _draw_transitions(about, console)
    else:
        drawing.prose(inspect.getdoc(KINDS[about["kind"]]) or "", console)
    _draw_examples(about["examples"], console)


WITHOUT_AUTOMATON = (
    "drawn whole: no states or transitions, no exact floor, no algebra and no "
    "predictions; `eval` measures the floor on the test words"
)


def _states(about: dict[str, Any]) -> list[tuple[str, str]]:
    states = about["states"]
    return [("states", f"{len(states)}, starting in {states[about['start']]}")]


def _automaton_facts(about: dict[str, Any], algebra: list[Line]) -> list[tuple[str, str]]:
    return [
        *(
            ("floor", f"{_floor(floor)} at length {int(length):,}: the best constant answer")
            for length, floor in about["floor"].items()
        ),
        ("words", _words(about)),
        ("merging horizon", _merging(about)),
        *(("shortcut", text) for text in _shortcuts(about)),
        *algebra,
    ]


def _floor(floor: float | None) -> str:
    """A floor; one that takes too long to compute is measured by `eval`, on its words."""
    return "not computed" if floor is None else drawing.share(floor, 4)


def _merging(about: dict[str, Any]) -> str:
    """How many of a word's last symbols the label depends on."""
    return "not computed" if about["merging"] is None else about["merging"]["summary"]


def _shortcuts(about: dict[str, Any]) -> Iterator[str]:
    """Answers without a state that are right on nearly all words of a tested length, if any."""
    after = "accuracy there is no evidence of state tracking (`statetrack audit`)"
    for length, floor in about["floor"].items():
        if floor is not None and floor >= SOLVED:
            yield (
                f"one answer is right on {drawing.share(floor, 2)} of words of length "
                f"{int(length):,}: {after}"
            )
            return
    merging = about["merging"] or {}
    if (horizon := merging.get("horizon")) is not None and horizon <= LONGEST_LOOKED_UP:
        symbols = "symbol tells" if horizon == 1 else f"{horizon} symbols tell"
        length = merging["length"]
        yield f"the last {symbols} the label of 99 % of words of length {length:,}: {after}"


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
    table = drawing.plain_table("state", "label", *symbols)
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
    """Words above their labels; long ones in several parts, each as wide as the terminal."""
    for word, labels in examples.items():
        pairs = list(zip(word.split(), labels.split(), strict=True))
        widths = [max(cell_len(symbol), cell_len(label)) for symbol, label in pairs]
        room = console.width - len("labels  ")
        while pairs:
            fitting = 1
            while fitting < len(pairs) and sum(widths[: fitting + 1]) + fitting <= room:
                fitting += 1
            for name, line in zip(
                ("word", "labels"), zip(*pairs[:fitting], strict=True), strict=True
            ):
                cells = [
                    set_cell_size(cell, width) for cell, width in zip(line, widths, strict=False)
                ]
                console.print(Text.assemble((f"{name:<8}", "dim"), " ".join(cells).rstrip()))
            pairs, widths = pairs[fitting:], widths[fitting:]
        console.print()


def _arguments(arguments: dict[str, Any]) -> str:
    """Arguments with short values; tables are left out."""
    shown = {name: _in_a_word(value) for name, value in arguments.items()}
    return ", ".join(f"{name}={value}" for name, value in shown.items() if value)


def _in_a_word(value: Any) -> str:
    """A value of an argument; for a machine its kind and arguments, for other tables nothing."""
    if isinstance(value, dict) and "kind" in value:
        inner = _arguments({key: each for key, each in value.items() if key != "kind"})
        return f"{value['kind']}({inner})" if inner else str(value["kind"])
    if isinstance(value, dict):
        return _in_a_word(value.get("of"))
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return f"[{', '.join(map(_in_a_word, value))}]"
    return "" if value is None else shortened(str(value), LONGEST_VALUE)


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
