"""The description of a model in the terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from statetrack.catalogue import about_kernels, as_text, flag
from statetrack.report import drawing


def draw_model(about: dict[str, Any], console: Console) -> None:
    """The values of `describe_model`: equation, source, size and options."""
    what = f"  model, {about['family']}" if about["family"] else "  model"
    console.print(Text.assemble((about["name"], "bold"), (what, "dim")))
    drawing.prose(about["description"], console)
    usual = ", ".join(
        f"{flag(name)} {as_text(value)}" for name, value in about["training_defaults"].items()
    )
    console.print(
        drawing.facts(
            [
                ("source", about["source"] or "not given"),
                ("recurrence", _recurrence(about)),
                ("kernels", _kernels(about["kernels"])),
                ("parameters", f"{about['parameters']:,} at defaults on {about['parameters_on']}"),
                ("training", usual or "as for every model"),
            ]
        )
    )
    console.print()
    table = drawing.plain_table("option", "type", "default", "what it is")
    for setting in about["settings"]:
        default = as_text(setting["default"])
        cells = (setting["option"], _type_with_bounds(setting), default, setting["help"])
        table.add_row(*map(Text, cells))
    console.print(table)


def _kernels(kernels: list[str]) -> str:
    return ", ".join(kernels) + (f"; {about_kernels()}" if "fla" in kernels else "")


def _recurrence(about: dict[str, Any]) -> str:
    if about["linear"] is None:
        return "none"
    if not about["linear"]:
        return "not linear in the state"
    return f"linear in the state; transition: {about['transition']}"


def _type_with_bounds(setting: dict[str, Any]) -> str:
    signs = (("min", ">="), ("above", ">"), ("max", "<="))
    bounds = [f"{sign} {setting[name]:g}" for name, sign in signs if setting[name] is not None]
    return " ".join([setting["type"], ", ".join(bounds)]).rstrip()
