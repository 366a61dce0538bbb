"""Models as `list` and `show` tell of them: what they are, can do and weigh."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.text import Text

from statetrack.algebra.recurrences import Attention, LinearRecurrence
from statetrack.cli import _drawing, options
from statetrack.cli._inventory import Row
from statetrack.errors import StatetrackError
from statetrack.experiment import choose_device
from statetrack.models import MODELS
from statetrack.models._base import SequenceModel
from statetrack.models._settings import KernelSettings, recurrence_of, variants
from statetrack.models._sizes import num_parameters, state_size
from statetrack.ops.fla import why_not
from statetrack.settings import Settings
from statetrack.spec import load_task

SIZED_FOR = "modular-addition"
"""The task for whose symbols and labels the sizes of models are given."""


def list_models() -> Iterator[Row]:
    """A row for every registered model, or the reason why there is none."""
    for name in MODELS:
        try:
            model = MODELS[name]
        except (ImportError, StatetrackError) as error:
            yield {"name": name, "error": str(error)}
            continue
        summary = (inspect.getdoc(model) or "").partition("\n")[0]
        built = build_at_defaults(name)
        yield {
            "name": name,
            "family": model.family,
            "linear": is_linear(model.settings_class),
            "transition": transition_of(model.settings_class),
            "kernels": kernels_of(model),
            "state": state_size(built),
            "parameters": num_parameters(built),
            "summary": summary,
            "source": model.source,
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
        "linear": is_linear(model.settings_class),
        "transition": transition_of(model.settings_class),
        "kernels": kernels_of(model),
        "source": model.source,
        "description": inspect.cleandoc(sys.modules[model.__module__].__doc__ or ""),
        "settings": options.describe(model.settings_class),
        "training_defaults": dict(model.training_defaults),
        "parameters": num_parameters(built),
        "parameters_on": SIZED_FOR,
        "state": state_size(built),
    }


def draw_model(about: dict[str, Any], console: Console) -> None:
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
                ("recurrence", _recurrence(about)),
                ("kernels", _kernels(about["kernels"])),
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


def is_linear(kind: type[Settings]) -> bool | None:
    """Whether a state is an affine function of the one before, at default settings.

    None where there is no recurrent state, or the settings do not say.
    """
    recurrence = recurrence_of(kind())
    if recurrence is None or isinstance(recurrence, Attention):
        return None
    return isinstance(recurrence, LinearRecurrence)


def transition_of(kind: type[Settings]) -> str | None:
    """What multiplies the state, and where its eigenvalues lie; None where it is not linear."""
    recurrence = recurrence_of(kind())
    if not isinstance(recurrence, LinearRecurrence):
        return None
    bounds = "" if recurrence.eigenvalues == "any" else f", {recurrence.eigenvalues}"
    return f"{recurrence.structure}{bounds}" + "".join(
        f"; {options.flag(other.setting)} {other.value}: {other.recurrence.eigenvalues}"
        for other in variants(kind)
    )


def kernels_of(model: type[SequenceModel]) -> list[str]:
    """What can compute a model's recurrence, by the names that `--kernel` takes."""
    return ["torch", "fla"] if issubclass(model.settings_class, KernelSettings) else ["torch"]


def about_kernels() -> str:
    """Whether the kernels of flash-linear-attention can be used here."""
    problem = why_not(choose_device("auto"))
    return "fla can be used here." if problem is None else f"fla cannot be used here: {problem}."


def build_at_defaults(name: str) -> SequenceModel:
    """A model with its default settings, for the symbols and labels of the default task."""
    machine = load_task(SIZED_FOR).source
    model = MODELS[name]
    return model(
        model.settings_class(),
        num_symbols=machine.num_symbols,
        num_labels=machine.num_labels,
    )


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
