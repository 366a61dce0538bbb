"""`MODELS`, the registry of models, and `MODEL_FACTS`, what their files say without torch.

    MODELS["bilinear-cp"]                                     the class, which imports torch
    MODEL_FACTS["bilinear-cp"].settings_class().recurrence    settings, source, family, description

A file's name is the model's name. Every such file imports torch, which takes seconds. So, unless
torch is loaded already, a file of this package is executed with a stand-in for torch and for
`statetrack.ops`: settings classes are then complete, and networks have their names, docstrings and
plain attributes. Therefore a file of this package may refer to torch while it is imported (base
classes, decorators, annotations), but not compute with it; a test checks this for all files. A
model from a user's file or from another package is imported as usual.

It stays so, and is not a list that is generated, because a settings class is code: validators,
properties and recurrences, which a list would have to repeat and could differ from. A list would
also need a second file for each model, or a step that a user's own model does not have.

A settings class read in this way is not the one that a later import of the file defines. It is
for reading defaults, help and recurrences; a model is built with an instance of
`MODELS[name].settings_class`.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.abc
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

from statetrack.algebra import Recurrence
from statetrack.errors import SettingsError, setting
from statetrack.models import _hf_names
from statetrack.models._settings import recurrence_of
from statetrack.registry import Registry, modules_in
from statetrack.settings import Settings

if TYPE_CHECKING:
    from statetrack.models._base import SequenceModel

HOME = "statetrack.models"
REPLACED = ("torch", "statetrack.ops")
"""The packages that a stand-in replaces."""


def _of_transformers(name: str) -> object:
    from statetrack.models._hf import make_class  # torch, and transformers

    return make_class(name)


MODELS: Registry[type[SequenceModel]] = Registry(
    "model",
    find=lambda: modules_in(HOME),
    entry_points=HOME,
    listing="statetrack list models",
    hint=f" A model of your own is registered by the file of {setting('plugin', 'FILE.py')}.",
    open_sets={_hf_names.PREFIX: _of_transformers},
)


@dataclass(frozen=True)
class ModelFacts:
    """The facts about a model that its file states."""

    name: str
    settings_class: type[Settings]
    family: str | None
    """None where the class names no family (a user's class may not); likewise `source`."""
    source: str | None
    training_defaults: Mapping[str, Any]
    summary: str
    """The first line of the class's docstring."""
    description: str
    """The docstring of the module."""

    @property
    def recurrence(self) -> Recurrence | None:
        """The class of recurrence at default settings; None where the settings name none."""
        return recurrence_of(self.settings_class())


class _AllFacts(Mapping[str, ModelFacts]):
    """The facts of every model in `MODELS`, each read on first access.

    Raises `UnknownNameError` for a name that no model has, and `SettingsError` for what is
    registered and is no model.
    """

    def __init__(self) -> None:
        self._executed = _Executed()
        self._shipped = frozenset(modules_in(HOME))

    def __getitem__(self, name: str) -> ModelFacts:
        if name.startswith(f"{_hf_names.PREFIX}:"):
            return _facts_of_transformers(name)
        if "torch" in sys.modules or name not in self._shipped:
            model = MODELS[name]
            return _facts_of(name, model, sys.modules[model.__module__].__doc__)
        module = self._executed.module(f"{HOME}.{name.replace('-', '_')}")
        return _facts_of(name, self._executed.registered[name], module.__doc__)

    def __iter__(self) -> Iterator[str]:
        return iter(MODELS)

    def __len__(self) -> int:
        return len(MODELS)


def _facts_of_transformers(name: str) -> ModelFacts:
    """The facts about `hf:...`; a type that no rule here knows is looked up in transformers."""
    kind = _hf_names.settings_class(name)
    if issubclass(kind, _hf_names.HFSettings) and not _hf_names.is_known(kind.model_type):
        _of_transformers(name)
    return ModelFacts(
        name=name,
        settings_class=kind,
        family=_hf_names.FAMILY,
        source=_hf_names.SOURCE,
        training_defaults=dict(_hf_names.TRAINING_DEFAULTS),
        summary=f"{name.partition(':')[2]}, a causal language model of transformers.",
        description=inspect.cleandoc(_hf_names.__doc__ or ""),
    )


@lru_cache(maxsize=256)
def _facts_of(name: str, model: type, description: str | None) -> ModelFacts:
    bases = reversed(model.__mro__) if isinstance(model, type) else ()
    said = {key: value for base in bases for key, value in vars(base).items()}
    if "training_defaults" not in said:
        raise SettingsError(
            f"model '{name}': {model.__name__} is no SequenceModel: write it as "
            f"`class {model.__name__}(SequenceModel)`"
        )
    if "settings_class" not in said:
        raise SettingsError(
            f"model '{name}': {model.__name__} has no `settings_class`, the class of its settings"
        )
    return ModelFacts(
        name=name,
        settings_class=said["settings_class"],
        family=said.get("family") or None,
        source=said.get("source") or None,
        training_defaults=dict(said["training_defaults"]),
        summary=(inspect.getdoc(model) or "").partition("\n")[0],
        description=inspect.cleandoc(description or ""),
    )


class _StandIn:
    """Replaces every object of torch that a file refers to while it is executed.

    Its attributes, results and items are itself, and as a base class it is left out. It has no
    attributes with double underscores, by which `typing` would take it for a type variable.
    """

    def __getattr__(self, name: str) -> _StandIn:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *args: object, **kwargs: object) -> _StandIn:
        return self

    def __getitem__(self, key: object) -> _StandIn:
        return self

    def __mro_entries__(self, bases: object) -> tuple[type, ...]:
        return ()


class _Executed:
    """Executes the files of this package's models with a stand-in for torch, each once.

    `registered` holds the classes that they register, by name.
    """

    def __init__(self) -> None:
        self.registered: dict[str, type] = {}
        self._modules: dict[str, ModuleType] = {}
        self._builtins = vars(builtins) | {"__import__": self._import}

    def module(self, name: str) -> ModuleType:
        """A module of `statetrack.models`; one that is already loaded is not executed again."""
        if name in sys.modules:
            return sys.modules[name]
        if name not in self._modules:
            spec = importlib.util.find_spec(name)
            assert spec is not None and isinstance(spec.loader, importlib.abc.InspectLoader), name
            code = spec.loader.get_code(name)
            assert code is not None, name
            module = self._modules[name] = importlib.util.module_from_spec(spec)
            vars(module)["__builtins__"] = self._builtins
            sys.modules[name] = module  # where pydantic looks up the names in annotations
            try:
                exec(code, vars(module))
            finally:
                del sys.modules[name]
        return self._modules[name]

    def register(self, name: str) -> Callable[[type], type]:
        """Replaces `MODELS.register` for a class that is not to be built."""

        def enter(model: type) -> type:
            self.registered[name] = model
            return model

        return enter

    def _import(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        """The module that an `import` statement in an executed file gets; replaces `__import__`."""
        if _is_replaced(name):
            return STAND_IN
        if name in ("statetrack", HOME, f"{HOME}._registry") and fromlist:
            return SimpleNamespace(**{each: self._member(name, each) for each in fromlist})
        if name.startswith(f"{HOME}.") and fromlist:
            return self.module(name)
        return builtins.__import__(name, globals, locals, fromlist, level)

    def _member(self, package: str, name: str) -> Any:
        """The object that `from package import name` gets, for a package of statetrack."""
        whole = f"{package}.{name}"
        if name == "MODELS":
            return self
        if _is_replaced(whole):
            return STAND_IN
        if package == HOME:
            return self.module(whole)
        return getattr(builtins.__import__(package, fromlist=(name,)), name)


def _is_replaced(module: str) -> bool:
    return any(module == each or module.startswith(f"{each}.") for each in REPLACED)


STAND_IN = _StandIn()
MODEL_FACTS = _AllFacts()
"""The facts about each model, by its name."""
