"""Print how many words of a length a task draws from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from statetrack.cli import options

PLACE = 30
"""Its place among the commands that `statetrack --help` lists."""


def build(argv: list[str]) -> Callable[..., None]:
    """The command `statetrack count`."""
    return count


def count(
    task: Annotated[str, typer.Argument(help="A task, or a file of one.")],
    length: Annotated[int, typer.Option(min=0, help="Symbols of a word.")] = 10,
    as_json: options.PrintJson = False,
) -> None:
    """Print how many words of a length a task draws from.

    Examples:
        statetrack count parity
        statetrack count s3 --length 20

    """
    import numpy as np

    from statetrack.algebra import analyse
    from statetrack.catalogue import load_named_task

    found = analyse(load_named_task(task).automaton)
    machine = found.machine
    ways = [int(state == machine.automaton.start) for state in range(machine.automaton.num_states)]
    for _ in range(length):
        after = [0] * len(ways)
        for state, symbol in np.ndindex(*machine.delta.shape):
            if machine.delta[state, symbol] != machine.sink:
                after[machine.delta[state, symbol]] += ways[state]
        ways = after
    if as_json:
        from statetrack.cli._terminal import print_json

        print_json({"task": task, "length": length, "words": sum(ways)})
    else:
        print(f"{sum(ways):,}")
