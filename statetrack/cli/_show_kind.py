"""The description of a kind of automata in the terminal."""

from __future__ import annotations

import json
from typing import Any

from rich.console import Console
from rich.text import Text

from statetrack.report import drawing
from statetrack.runs import to_yaml
from statetrack.text import shortened

LONGEST_EXAMPLE = 600
"""The most letters of an example that is printed; `--json` has all of it."""


def draw_kind(about: dict[str, Any], console: Console) -> None:
    """The values of `describe_kind`: what it is, its arguments, an example and its tasks."""
    console.print(Text.assemble((about["name"], "bold"), ("  kind of automaton", "dim")))
    drawing.prose(about["description"], console)
    if about["arguments"]:
        table = drawing.plain_table("argument", "default", "what it is")
        for each in about["arguments"]:
            default = "required" if each["required"] else json.dumps(each["default"])
            table.add_row(each["name"], default, each["help"])
        console.print(table)
        console.print()
    if about["example"] is not None:
        console.print(Text("in a task file", "bold"))
        written = to_yaml({"automaton": about["example"]}).rstrip()
        for line in shortened(written, LONGEST_EXAMPLE).split("\n"):
            console.print(Text(f"    {line}"))
        console.print()
    tasks = ", ".join(about["tasks"]) or "none of those that statetrack has"
    console.print(drawing.facts([("tasks", tasks)]))
