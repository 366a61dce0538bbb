"""The kinds of sources that a task file can name, one file each.

A kind is a function with keyword-only, typed arguments that returns an `Automaton` or, where the
language is not regular, another `Source`; the arguments are the keys beside `kind:` in a task
file. `build_source` checks them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, get_args, get_type_hints

from pydantic import ConfigDict, Field, ValidationError, validate_call
from pydantic.fields import FieldInfo

from statetrack.errors import TaskError, nearest, nearest_or_known
from statetrack.registry import Registry, modules_in
from statetrack.settings import explain
from statetrack.sources.automaton import Automaton, Source, check_names

KINDS: Registry[Callable[..., Source]] = Registry(
    "automaton kind",
    lambda: modules_in("statetrack.sources.kinds"),
    listing="statetrack list kinds",
)


Names = Annotated[list[str], Field(min_length=1)]
"""The type of an argument that is one name or more."""


def argument(help: str, *, min: float | None = None, max: float | None = None) -> Any:
    """Help and bounds of a kind's argument, to stand in its `Annotated` type."""
    return Field(description=help, ge=min, le=max)


@dataclass(frozen=True)
class Argument:
    """One argument of a kind, as a person sees it; a required one has no default.

    `least` and `most` are the bounds of a number, None where it has none.
    """

    name: str
    help: str
    required: bool
    default: Any
    least: float | None = None
    most: float | None = None


def arguments_of(kind: str) -> tuple[Argument, ...]:
    """What can be set for a kind, in the order of its signature.

    Raises `UnknownNameError` for a kind that does not exist.
    """
    return _arguments_of(KINDS[kind])


@cache
def _arguments_of(function: Callable[..., Source]) -> tuple[Argument, ...]:
    hints = get_type_hints(function, include_extras=True)
    found = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        told = _told(hints.get(name))
        has_default = parameter.default is not inspect.Parameter.empty
        found.append(
            Argument(
                name=name,
                help=told.description or "not described",
                required=not has_default,
                default=parameter.default if has_default else None,
                least=next((each.ge for each in told.metadata if hasattr(each, "ge")), None),
                most=next((each.le for each in told.metadata if hasattr(each, "le")), None),
            )
        )
    return tuple(found)


def build_automaton(description: Mapping[str, Any], where: str) -> Automaton:
    """The automaton that `{kind: ..., argument: value, ...}` describes.

    Raises `TaskError` as `build_source` does, and for a kind whose source is no automaton.
    """
    source = build_source(description, where)
    if source.automaton is None:
        raise TaskError(
            f"{where}: '{description['kind']}' comes from {source.noun} and has no automaton: it "
            "cannot be a part of another automaton"
        )
    return source.automaton


def build_source(description: Mapping[str, Any], where: str) -> Source:
    """The source that `{kind: ..., argument: value, ...}` describes.

    Raises `TaskError`, opened by `where`, for a kind or an argument that does not exist, is
    missing or has a wrong value, and for arguments that describe no source.
    """
    given = dict(description)
    kind = given.pop("kind", None)
    if not isinstance(kind, str):
        raise TaskError(f"{where}: 'kind' is missing: name one of {', '.join(KINDS)}")
    if kind not in KINDS:
        hint = nearest(kind, KINDS) or f" Known are: {', '.join(KINDS)}."
        raise TaskError(f"{where}: there is no kind '{kind}'.{hint}")
    _check_arguments(kind, given, where)
    try:
        source = _checked(KINDS[kind])(**given)
        if not isinstance(source, Source):
            raise TaskError(
                f"the kind '{kind}' gives a {type(source).__name__}, and not an Automaton or "
                "another Source"
            )
        check_names(source.symbols, "symbol")
        check_names(source.labels, "label")
        return source
    except ValidationError as invalid:
        raise TaskError(f"{where}: {explain(invalid)}") from None
    except TaskError as wrong:
        raise TaskError(f"{where}: {wrong}") from None


@cache
def _checked(function: Callable[..., Source]) -> Callable[..., Source]:
    """A kind's function, which refuses arguments that are not of the types of its signature."""
    return validate_call(config=ConfigDict(strict=True, allow_inf_nan=False))(function)


def build_inner(description: Mapping[str, Any], where: str) -> Automaton:
    """The automaton inside another one, which draws its words in a way of its own.

    Raises `TaskError` as `build_automaton` does, and for an automaton whose words slip: the chance
    of a slip depends on the position, which inside another automaton is no longer its own.
    """
    automaton = build_automaton(description, where)
    if automaton.can_slip:
        raise TaskError(
            f"{where}: words of an automaton inside another one cannot slip: use other words"
        )
    return automaton


def _check_arguments(kind: str, given: Mapping[str, Any], where: str) -> None:
    arguments = arguments_of(kind)
    known = [argument.name for argument in arguments]
    for name in given:
        if name not in known:
            raise TaskError(f"{where}: '{kind}' has no '{name}'.{nearest_or_known(name, known)}")
    for argument in arguments:
        if argument.required and argument.name not in given:
            raise TaskError(f"{where}: '{kind}' needs '{argument.name}': {argument.help}")


def _told(hint: Any) -> FieldInfo:
    """What `argument` says of an argument, by the type in its signature: maybe nothing."""
    return next((note for note in get_args(hint) if isinstance(note, FieldInfo)), FieldInfo())
