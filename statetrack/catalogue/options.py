"""The fields of a settings class as rows, in the notation of the command line.

A field is one option: its name in kebab-case, its type, default, bounds and help. Neither torch
nor numpy is imported, and pydantic only with a field: `statetrack --help` has none.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from statetrack.settings import Settings


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
    import annotated_types  # with pydantic, which a field has already imported

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
    from statetrack.settings import NameIn  # likewise

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
