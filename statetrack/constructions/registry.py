"""What is known to be built: constructions by class of recurrence, and what layers take, by file.

A construction says, for a class of recurrence, which matrices, gains or units track a task. Its
function stands in `classes/`, under the decorator `construction`. It hands what it has found to the
model's layer, `case.take("matrices", ...)`: the function `take_matrices` of the file in `layers/`
that has the name of the model's own file, or of that of a class that the model inherits from.

A plugin brings a construction in its own file: `@construction(MyModel, ...)` for a model of it, or
for a class of recurrence of its own; `register_layer(MyModel, take_matrices=...)` says how a layer
of its own takes what the constructions of statetrack find.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar

from statetrack.algebra import Recurrence
from statetrack.constructions.case import Case, NotBuilt
from statetrack.constructions.stacks import Layer
from statetrack.models import SequenceModel
from statetrack.registry import modules_in

CLASSES = "statetrack.constructions.classes"
LAYERS = "statetrack.constructions.layers"

Make = Callable[[Case], SequenceModel]
MakeT = TypeVar("MakeT", bound=Make)


def always(case: Case) -> bool:
    """Every case."""
    return True


@dataclass(frozen=True)
class Construction:
    """How models of a class of recurrence, or one model, are given weights that track a task."""

    name: str
    equation: str
    """What the recurrence computes with these weights, in one line."""
    source: str
    """The paper, by its id in references.yaml (`arXiv:2505.21749`), or `own`."""
    margin: str
    """What the least lead of the right label is promised to be, in words."""
    make: Make = field(repr=False)
    where: Callable[[Case], bool] = field(default=always, repr=False)
    """The cases that it is for, among those of its classes."""
    integers: bool = False
    """Whether it gives a linear model weights that are integers, where these are asked for."""


_KNOWN: dict[type, list[Construction]] = {}
_LAYERS: dict[type, dict[str, Any]] = {}

EVERY_STATE = "the least lead over the states of the machine, which the first symbols reach"


def construction(
    *kinds: type[Recurrence] | type[SequenceModel],
    name: str,
    equation: str,
    source: str,
    margin: str = EVERY_STATE,
    where: Callable[[Case], bool] = always,
    integers: bool = False,
) -> Callable[[MakeT], MakeT]:
    """A decorator that registers a function as the construction of classes of recurrence.

    Of several for one class, the first whose `where` is true of a case is used; those of a model's
    own class come before those of its recurrence. The function gives the model of a `Case`, made by
    `case.blank`, in float64, with all weights set; it raises `NotBuilt` where it knows none.
    """

    def enter(make: MakeT) -> MakeT:
        for kind in kinds:
            found = Construction(name, equation, source, margin, make, where, integers)
            _KNOWN.setdefault(kind, []).append(found)
        return make

    return enter


def register_layer(kind: type[SequenceModel], **takes: Any) -> None:
    """Say how models of a class take what constructions find: `take_matrices`, `register`, ..."""
    _LAYERS.setdefault(kind, {}).update(takes)


def construction_for(case: Case) -> Construction:
    """The construction for a case.

    Raises `NotBuilt` where there is none for the model's class of recurrence.
    """
    _load_classes()
    recurrence = case.recurrence
    for kind in (*case.kind.__mro__, *type(recurrence).__mro__):
        for each in _KNOWN.get(kind, []):
            if each.where(case):
                return each
    named = "no class of recurrence" if recurrence is None else type(recurrence).__name__
    raise NotBuilt(f"there is no construction for its class of recurrence ({named})")


def take(case: Case, what: str, *found: Any) -> SequenceModel:
    """The model of a case whose layer takes what was found, such as `matrices`.

    Raises `NotBuilt` where it is not known how.
    """
    taking = taken_by(case.kind, f"take_{what}")
    if taking is None:
        raise NotBuilt(f"how its layers take {what} is not known")
    model: SequenceModel = taking(case, *found)
    return model


def layer_for(case: Case, what: str) -> Layer:
    """How the gates of the model's layers are set for a component: `register`, `signs`, `turns`.

    Raises `NotBuilt` where it is not known.
    """
    layer = taken_by(case.kind, what)
    if layer is None:
        raise NotBuilt(f"how the gates of its layers are set is not known ({what})")
    assert isinstance(layer, Layer)
    return layer


def taken_by(kind: type[SequenceModel], what: str) -> Any:
    """What a model's layer has under a name, such as `take_matrices`; None where it has nothing."""
    for base in kind.__mro__:
        if what in _LAYERS.get(base, {}):
            return _LAYERS[base][what]
        module = base.__module__.rpartition(".")
        if module[0] == "statetrack.models":
            name = module[2].strip("_").replace("_", "-")
            if name in _layers() and (found := getattr(_layers()[name](), what, None)):
                return found
    return None


@cache
def _load_classes() -> None:
    for load in modules_in(CLASSES).values():
        load()


@cache
def _layers() -> Mapping[str, Callable[[], object]]:
    """A loader for each file of layers, by the name of the model's own file."""
    return modules_in(LAYERS)
