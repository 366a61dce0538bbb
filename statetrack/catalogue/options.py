"""The fields of a settings class as rows, in the notation of the command line.

A field is one option: its name in kebab-case, its type, default, bounds and help. The settings of
`gen` and `audit` are here too, which give options and docs. Neither torch nor numpy is imported.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any, Literal

import annotated_types
from pydantic.fields import FieldInfo

from statetrack.settings import GREATEST_SEED, Settings, option


def describe(kind: type[Settings]) -> list[dict[str, Any]]:
    """The options of a settings class, as plain values: name, type, default, bounds, help."""
    rows = []
    defaults = kind().model_dump(mode="json")
    for name, field in kind.model_fields.items():
        lower, upper, above = bounds(field)
        rows.append(
            {
                "name": name,
                "option": flag(name),
                "type": type_of(field),
                "default": defaults[name],
                "min": lower,
                "max": upper,
                "above": above,
                "help": field.description,
            }
        )
    return rows


def flag(name: str) -> str:
    """The option of a field: `train_length` is `--train-length`."""
    return "--" + name.replace("_", "-")


def as_text(value: Any) -> str:
    """A value as the command line takes it: `0.001,0.003`; a flag is on or off."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if value is None:
        return "-"
    if isinstance(value, tuple | list):
        return ",".join(as_text(item) for item in value)
    return str(value)


def inner_type(annotation: Any) -> Any:
    """The type inside `Annotated[type, ...]` and `type | None`."""
    if typing.get_origin(annotation) is Annotated:
        return inner_type(typing.get_args(annotation)[0])
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        inner = [kind for kind in typing.get_args(annotation) if kind is not type(None)]
        return inner_type(inner[0]) if len(inner) == 1 else annotation
    return annotation


def bounds(field: FieldInfo) -> tuple[float | None, float | None, float | None]:
    """(lowest, highest, exclusive lower bound) of a field; None where there is none."""
    found: dict[type, Any] = {type(bound): bound for bound in field.metadata}
    lower, upper = found.get(annotated_types.Ge), found.get(annotated_types.Le)
    above = found.get(annotated_types.Gt)
    return (
        None if lower is None else lower.ge,
        None if upper is None else upper.le,
        None if above is None else above.gt,
    )


def names_for(field: FieldInfo) -> Collection[str] | None:
    """The names that a field's value can have, where it is a name in a registry."""
    from statetrack.settings import NameIn  # with pydantic, which a field has already imported

    registries = [mark.registry for mark in field.metadata if isinstance(mark, NameIn)]
    return registries[0] if registries else None


def type_of(field: FieldInfo) -> str:
    """The type of a field's values; where those are names in a registry, all of its names."""
    names = names_for(field)
    return type_name(field.annotation) if names is None else "|".join(names)


def type_name(annotation: Any) -> str:
    """A type as help and tables name it: `integer`, `adam|sgd`, `number,...`."""
    core = inner_type(annotation)
    if typing.get_origin(core) is Literal:
        return "|".join(str(choice) for choice in typing.get_args(core))
    if typing.get_origin(core) in (tuple, list):
        return f"{type_name(typing.get_args(core)[0])},..."
    words = {int: "integer", float: "number", str: "text", bool: "flag", Path: "path"}
    return words.get(core, "text")


MOST_WORDS = 10**15
"""The most words that can be asked for: whether the disk holds them is another question."""


class GenSettings(Settings):
    """The words of a dataset, apart from its task and its test lengths."""

    length: str = option("task", "Training lengths, as 2-10 or 500; `task`: the task's own.")
    samples: int = option(10_000, "Training words.", min=1, max=MOST_WORDS)
    validation_samples: int = option(
        1_000,
        "Validation words, of the training lengths but never among those.",
        min=0,
        max=MOST_WORDS,
    )
    test_samples: int = option(1_000, "Words at every test length.", min=0, max=MOST_WORDS)
    supervision: Literal["task", "every", "last"] = option(
        "task", "A label after every symbol, or after the last only; `task`: the task's own."
    )
    words: str = option(
        "task", "How words are drawn: task, uniform, group, group:NAME or weighted:FILE."
    )
    format: Literal["parquet", "jsonl", "npz", "csv", "lm-eval"] = option(
        "parquet", "The format of the files; `lm-eval`: tasks for lm-evaluation-harness."
    )
    text: Literal["tokens", "repl"] = option(
        "tokens",
        "With `lm-eval`, words as the names of symbols, or as a session of a Python interpreter.",
    )
    prompt: str = option(
        "{word} =>", "With `tokens`, what a model reads; {word} stands for the symbols' names."
    )
    reveal: float = option(
        0.0, "With `repl`, the share of states that are printed on the way.", min=0, max=1
    )
    seed: int = option(0, "The seed that all words come from.", min=0, max=GREATEST_SEED)


class AuditSettings(Settings):
    """The words of a task that are drawn for an audit, apart from the test lengths."""

    words: str = option(
        "task", "How words are drawn: task, uniform, group, group:NAME or weighted:FILE."
    )
    samples: int = option(2000, "Test words at every length, and held-out words.", min=1, max=10**7)
    train_length: str = option("task", "Training lengths, as 2-10 or 10; `task`: the task's own.")
    train_samples: int = option(10_000, "Training words to fit the shortcuts on.", min=1, max=10**7)
    supervision: Literal["task", "every", "last"] = option(
        "task", "A label after every symbol, or after the last only; `task`: the task's own."
    )
    seed: int = option(0, "The seed that all words come from.", min=0, max=GREATEST_SEED)
