"""Settings: one frozen class per component, which YAML files can fill.

The fields of a `Settings` class are at once its Python arguments, its YAML keys, its
command-line options and its help text. Unknown keys are refused with the nearest name.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic_core import CoreSchema, ErrorDetails, core_schema

from statetrack.errors import SettingsError, StatetrackError, nearest_or_known, setting
from statetrack.text import LONGEST_NAME, flaw_in, flaw_in_lines

S = TypeVar("S", bound="Settings")


class Settings(BaseModel):
    """The frozen settings of one component; every field is made with `option`.

    Raises `SettingsError` for an unknown name, with the nearest, and for a value that its field
    refuses; its `__cause__` is the `ValidationError` of pydantic.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    def __init__(self, /, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as invalid:
            raise SettingsError(_in_words(type(self), invalid)) from invalid

    @field_validator("*", mode="before")
    @classmethod
    def _truth_values_are_not_numbers(cls, value: Any, info: ValidationInfo) -> Any:
        assert info.field_name is not None
        if isinstance(value, bool) and cls.model_fields[info.field_name].annotation is not bool:
            raise ValueError(f"`{'yes' if value else 'no'}` is a truth value to YAML: use quotes")
        return value


def option(
    default: Any,
    help: str,
    *,
    min: float | None = None,
    max: float | None = None,
    above: float | None = None,
) -> Any:
    """A field of a `Settings` class: its default, one sentence of help, and its bounds.

    `min` and `max` are inclusive, `above` is exclusive.
    """
    return Field(default, description=help, ge=min, le=max, gt=above)


@dataclass(frozen=True)
class NameIn:
    """Marks a setting, `Annotated[str, NameIn(REGISTRY)]`, whose value is a name in a registry.

    A name is checked when the settings are made, without loading the component.
    """

    registry: Mapping[str, object]

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._known, handler(source))

    def _known(self, name: str) -> str:
        if name not in self.registry:
            raise ValueError(f"there is no '{name}'.{nearest_or_known(name, self.registry)}")
        return name


def _name(text: str) -> str:
    return _flawless(text, flaw_in(text, most=LONGEST_NAME))


def _line(text: str) -> str:
    return _flawless(text, flaw_in(text))


def _line_or_empty(text: str) -> str:
    return _line(text) if text else text


def _lines(text: str) -> str:
    return _flawless(text, flaw_in_lines(text))


def _flawless(text: str, flaw: str | None) -> str:
    if flaw is not None:
        raise ValueError(flaw)
    return text


Name = Annotated[str, AfterValidator(_name)]
"""A setting that is a name: printable, on one line, of at most `text.LONGEST_NAME` characters."""

Line = Annotated[str, AfterValidator(_line)]
"""A setting that is a title or a reference: printable, on one line."""

LineOrEmpty = Annotated[str, AfterValidator(_line_or_empty)]
"""The same where it may be left out."""

Lines = Annotated[str, AfterValidator(_lines)]
"""A setting that is a text of any number of lines: printable, but for newlines and tabs."""


def build(
    kind: type[S],
    values: Mapping[str, Any],
    where: str,
    error: type[StatetrackError] = SettingsError,
) -> S:
    """Check `values` and make the settings; error messages begin with `where`."""
    for key in values:
        if key not in kind.model_fields:
            hint = nearest_or_known(str(key), kind.model_fields)
            raise error(f"{where}: unknown key '{key}'.{hint}")
    try:
        return kind(**values)
    except SettingsError as problem:
        assert isinstance(problem.__cause__, ValidationError)
        raise error(f"{where}: {explain(problem.__cause__)}") from None


def _in_words(kind: type[Settings], invalid: ValidationError) -> str:
    """The first error that pydantic found among the arguments of a settings class."""
    first = invalid.errors(include_url=False)[0]
    name = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        hint = nearest_or_known(name, kind.model_fields)
        return f"{kind.__name__} has no setting '{name}'.{hint}"
    if not name:
        return _reason(first)
    if first["type"] == "missing":
        return f"{kind.__name__}: '{name}' is missing"
    return f"{setting(name)}: {_reason(first)} (given: {_shown(first['input'])})"


def explain(invalid: ValidationError) -> str:
    """The first error that pydantic found, as one line with its place and its value."""
    first = invalid.errors(include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    if first["type"] == "missing":
        return f"'{place}' is missing"
    if not place:
        return _reason(first)
    return f"'{place}': {_reason(first)} (given: {_shown(first['input'])})"


def _reason(mistake: ErrorDetails) -> str:
    return mistake["msg"].removeprefix("Value error, ")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


class _StrictLoader(yaml.SafeLoader):
    """PyYAML's safe loader, except that values which are easily misread raise an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: dict[Hashable, int] = {}
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            line = key_node.start_mark.line + 1
            if not isinstance(key, str):
                text = getattr(key_node, "value", key)
                raise _Misread(line, f"the key `{text}` is not text: write it in quotes")
            if key in seen:
                raise _Misread(line, f"the key '{key}' appears twice (first in line {seen[key]})")
            seen[key] = line
        return super().construct_mapping(node, deep=deep)


class _Misread(Exception):
    def __init__(self, line: int, text: str) -> None:
        super().__init__(text)
        self.line = line


def _plain_text(loader: _StrictLoader, node: yaml.ScalarNode) -> str:
    """Text; a value without quotes that Python would read as a number is refused."""
    if node.style is None and _is_number(node.value):
        number = float(node.value)
        better = f"{number:.1e}" if "e" in node.value.lower() else f"{number:g}"
        raise _Misread(
            node.start_mark.line + 1,
            f"`{node.value}` is text to YAML: write {better}, or put it in quotes",
        )
    return str(node.value)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text.lower().lstrip("+-") not in {"nan", "inf", "infinity"}


def _plain_number(loader: _StrictLoader, node: yaml.ScalarNode) -> Any:
    """A number; `010`, `1_000` and `1:30` are refused, since YAML reads them as 8, 1000 and 90."""
    tag = node.tag.removeprefix("tag:yaml.org,2002:")
    value = getattr(loader, f"construct_yaml_{tag}")(node)
    if re.search(r"[_:]|^[-+]?0[0-9xb]", node.value):
        raise _Misread(
            node.start_mark.line + 1,
            f"`{node.value}` is {value} to YAML: write it plainly, or put it in quotes",
        )
    return value


_StrictLoader.add_constructor("tag:yaml.org,2002:str", _plain_text)
_StrictLoader.add_constructor("tag:yaml.org,2002:int", _plain_number)
_StrictLoader.add_constructor("tag:yaml.org,2002:float", _plain_number)


def read_yaml(path: Path, error: type[StatetrackError] = SettingsError) -> dict[str, Any]:
    """The mapping that a YAML file contains.

    Raises `error` where the file cannot be read, is not YAML, is not a mapping, repeats a
    key, has a key that is not text (`no`, `1`), or a number that YAML takes for text (`1e-3`).
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        reason = getattr(problem, "strerror", None) or "it is not UTF-8 text"
        raise error(f"{path}: cannot be read: {reason}") from None
    try:
        content = yaml.load(text, Loader=_StrictLoader)
    except _Misread as misread:
        raise error(f"{path}, line {misread.line}: {misread}") from None
    except yaml.YAMLError as problem:
        mark = getattr(problem, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        reason = getattr(problem, "problem", None) or "not valid YAML"
        raise error(f"{path}{line}: {reason}") from None
    if not isinstance(content, dict):
        raise error(f"{path}: holds no `key: value` lines")
    return content
