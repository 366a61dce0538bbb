"""Settings: one frozen class per component, which YAML files can fill.

The fields of a `Settings` class are at once its Python arguments, its YAML keys, its
command-line options and its help text. Unknown keys are refused with the nearest name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar, cast

import annotated_types
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
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, ErrorDetails, core_schema

from statetrack import yaml_text
from statetrack.errors import (
    SettingsError,
    StatetrackError,
    nearest_or_known,
    nearest_setting_or_known,
    setting,
)
from statetrack.text import GREATEST_SEED, LONGEST_NAME, flaw_in, flaw_in_lines, is_plain_number

S = TypeVar("S", bound="Settings")


class Settings(BaseModel):
    """The frozen settings of one component; every field is made with `option`.

    Raises `SettingsError` for an unknown name, with the nearest, and for a value that its field
    refuses; its `__cause__` is the `ValidationError` of pydantic. No field takes NaN, an infinity,
    a whole number beyond `greatest_integer` where it has no bound of its own, or text that UTF-8
    cannot write.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", validate_default=True, allow_inf_nan=False
    )

    greatest_integer: ClassVar[int] = 10**9
    """The greatest whole number of a field that has no bound of its own."""

    def __init__(self, /, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as invalid:
            raise SettingsError(_in_words(type(self), invalid)) from invalid

    @field_validator("*", mode="before")
    @classmethod
    def _is_what_it_seems(cls, value: Any, info: ValidationInfo) -> Any:
        match value:
            case bool() if cls._field(info).annotation is not bool:
                word = "yes" if value else "no"
                raise ValueError(f"`{word}` is a truth value to YAML: use quotes")
            case str():
                _check_text(value, numeric=cls._field(info).annotation in (int, float))
            case tuple() | list():
                for part in value:
                    if isinstance(part, str):
                        numeric = cls._field(info).annotation == tuple[float, ...]
                        _check_text(part, numeric=numeric)
        return value

    @field_validator("*", mode="after")
    @classmethod
    def _integers_are_bounded(cls, value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, int) and abs(value) > cls.greatest_integer:
            marks = cls._field(info).metadata
            if not any(isinstance(mark, annotated_types.Le) for mark in marks):
                raise ValueError(f"must be at most {cls.greatest_integer}")
        return value

    @classmethod
    def _field(cls, info: ValidationInfo) -> FieldInfo:
        assert info.field_name is not None
        return cls.model_fields[info.field_name]


def _check_text(text: str, numeric: bool) -> None:
    """Raises `ValueError` for text that UTF-8 cannot write, and for numbers like `1_000`."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("is not text that UTF-8 can write") from None
    if numeric and not is_plain_number(text):
        raise ValueError("is not a number: write it in the digits 0 to 9")


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
            raise ValueError(f"there is none of that name.{nearest_or_known(name, self.registry)}")
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
    fields = kind.model_fields
    for key in values:
        if key not in fields:
            hint = nearest_setting_or_known(str(key), fields)
            raise error(f"{where}: unknown key '{key}'.{hint}")
    try:
        return kind(**values)
    except SettingsError as problem:
        assert isinstance(problem.__cause__, ValidationError)
        raise error(f"{where}: {explain(problem.__cause__)}") from None


def require_whole(name: str, value: object, where: str, *, least: int, most: int) -> None:
    """Raise `SettingsError`, which begins with `where`, unless a value is a whole number in bounds.

    For arguments of functions, which no `Settings` class has.
    """
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or not least <= int(cast(int, value)) <= most:
        raise SettingsError(
            f"{where}: {name} {shown(value)}: give a whole number from {least} to {most:,}"
        )


def require_seed(seed: object, where: str) -> None:
    """Raise `SettingsError`, which begins with `where`, for what is no seed."""
    require_whole("seed", seed, where, least=0, most=GREATEST_SEED)


def _in_words(kind: type[Settings], invalid: ValidationError) -> str:
    """The first error that pydantic found among the arguments of a settings class."""
    first = _first(invalid.errors(include_url=False))
    name = _place(first)
    if first["type"] == "extra_forbidden":
        hint = nearest_setting_or_known(name, kind.model_fields)
        return f"{kind.__name__} has no setting '{name}'.{hint}"
    if not name:
        return _reason(first)
    if first["type"] == "missing":
        return f"{kind.__name__}: '{name}' is missing"
    return f"{setting(name)}: {_with_value(first)}"


def explain(invalid: ValidationError) -> str:
    """The first error that pydantic found, as one line with its place and its value."""
    first = _first(invalid.errors(include_url=False))
    place = _place(first)
    if first["type"] == "missing":
        return f"'{place}' is missing"
    if not place:
        return _reason(first)
    return f"'{place}': {_with_value(first)}"


_KEY = "[key]"
"""What pydantic adds to the place of a key that is wrong itself."""


def _place(mistake: ErrorDetails) -> str:
    """Where a mistake is; of a wrong key, where the key stands."""
    place = mistake["loc"]
    return ".".join(map(str, place[:-2] if _KEY in place[-1:] else place))


_KINDS = {
    "string_type": "text",
    "int_type": "a whole number",
    "float_type": "a number",
    "list_type": "a list",
    "dict_type": "`key: value` lines",
}
"""What pydantic asks for, by the type of its error."""

_UNION = re.compile(r"str|int|float|(list|dict|literal)\[.*")
"""How pydantic calls a type of several, behind the place of the value that is of none."""


def _first(errors: list[ErrorDetails]) -> ErrorDetails:
    """The first error; where a value is of none of several types, one error that names them.

    A value whose parts are wrong is of the one type that has parts, and one that is out of a type's
    bounds is of that type.
    """
    first = errors[0]
    place = [*first["loc"][:-1]]
    alike = [error for error in errors if [*error["loc"][: len(place)]] == place]
    of_none = [error for error in alike if len(error["loc"]) == len(place) + 1]
    kinds = [error.get("ctx", {}).get("expected") or _KINDS.get(error["type"]) for error in of_none]
    if len(alike) < 2 or not all(_UNION.fullmatch(str(error["loc"][-1])) for error in of_none):
        return first
    if inside := [error for error in alike if len(error["loc"]) > len(place) + 1]:
        shorter = [(*place, *error["loc"][len(place) + 1 :]) for error in inside]
        return _first([{**e, "loc": loc} for e, loc in zip(inside, shorter, strict=True)])
    if None in kinds:
        return {**of_none[kinds.index(None)], "loc": (*place,)}
    wanted = " or ".join(str(each) for each in kinds)
    return {**first, "loc": (*place,), "type": "value_error", "msg": f"must be {wanted}"}


def _with_value(mistake: ErrorDetails) -> str:
    """What is wrong, and the value where that does not say it already."""
    reason, given = _reason(mistake), shown(mistake["input"])
    reason = f"a key {reason}" if _KEY in mistake["loc"][-1:] else reason
    said = isinstance(mistake["input"], str) and given in reason
    return reason if said else f"{reason} (given: {given})"


def _reason(mistake: ErrorDetails) -> str:
    if mistake["type"] in ("tuple_type", "list_type"):
        given = str(mistake["input"])[:60]
        pair = re.fullmatch(r"\s*(\d+)\s*(?:-|to|,)\s*(\d+)\s*", given)
        written = f"[{pair[1]}, {pair[2]}]" if pair else "it as in [2, 20]"
        if re.fullmatch(r"[^\W\d][\w-]*", given) and isinstance(mistake["input"], str):
            written = f"[{given}]"
        return f"must be a list in square brackets: write {written}"
    if mistake["type"] in ("dict_type", "mapping_type"):
        return "must be `key: value` lines, each on a line of its own and indented"
    if mistake["type"] in ("too_short", "too_long"):
        bound, most = ("min", "least") if mistake["type"] == "too_short" else ("max", "most")
        number = mistake["ctx"][f"{bound}_length"]
        return f"must have at {most} {number} part{'' if number == 1 else 's'}"
    return mistake["msg"].removeprefix("Value error, ")


def shown(value: Any) -> str:
    """A value as a message quotes it: its beginning, where it is long; a tuple as it is typed."""
    try:
        text = ",".join(f"{part}" for part in value) if isinstance(value, tuple) else repr(value)
    except (ValueError, RecursionError):  # Python writes no number of more than 4,300 digits
        return "a value too long to write"
    return text if len(text) <= 60 else text[:57] + "..."


def read_yaml(path: Path, error: type[StatetrackError] = SettingsError) -> dict[str, Any]:
    """The mapping that a YAML file contains.

    Raises `error` where the file cannot be read, is not YAML, is not a mapping, is larger or
    deeper than `statetrack.yaml_text` allows, repeats a key, has a key that is not text (`no`,
    `1`), a date, a tag, or a number that YAML takes for text (`1e-3`).
    """
    try:
        if path.is_fifo():  # reading it would wait for a writer, who may never come
            raise error(f"{path}: cannot be read: it is a pipe, not a file")
        with path.open("rb") as file:  # of a device that never ends, no more than the bound is read
            written = file.read(yaml_text.MOST_BYTES + 1)
        text = written.decode("utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        reason = getattr(problem, "strerror", None) or "it is not UTF-8 text"
        raise error(f"{path}: cannot be read: {reason}") from None
    try:
        content = yaml_text.load(text)
    except yaml_text.YamlProblem as problem:
        line = "" if problem.line is None else f", line {problem.line}"
        raise error(f"{path}{line}: {problem}") from None
    if not isinstance(content, dict):
        raise error(f"{path}: holds no `key: value` lines")
    return content
