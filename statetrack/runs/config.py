"""The settings of a run, and their precedence. torch is not imported here.

A setting has the first of these values that is given:

    command line, or the caller  >  file or suite row  >  protocol  >  the model's training
    defaults  >  default of the settings class
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from statetrack.errors import SettingsError, nearest
from statetrack.models import MODEL_FACTS, MODELS
from statetrack.runs.origin import ORIGINS, ByConstruction, StartedFrom
from statetrack.settings import Settings, build
from statetrack.training import DataSettings, Replica, TrainSettings, replicas_of, settings_for

if TYPE_CHECKING:
    from statetrack.spec import Task, WordSpec


def preset(model: str, *layers: Mapping[str, Any], protocol: str = "") -> dict[str, Any]:
    """The settings that are given in any layer, flat: of several layers the last counts.

    The first layers are the model's training defaults, and then those of a protocol.
    """
    filled = dict(MODEL_FACTS[model].training_defaults)
    for layer in (settings_for(protocol, model) if protocol else {}, *layers):
        filled |= layer
    return filled


COMMAND_OPTIONS = frozenset(
    {"model", "config", "protocol", "from", "start_from", "out", "force", "resume", "plugin"}
    | {"log", "json", "as_json", "context", "extended_at", *ORIGINS}
)
"""Names that a run's settings cannot have, beside those of its words and training."""


def taken_names(kind: type[Settings]) -> dict[str, str]:
    """The fields of a model's settings whose names mean something else, each with what."""
    others = {name: "the words" for name in DataSettings.model_fields}
    others |= {name: "training" for name in TrainSettings.model_fields}
    others |= dict.fromkeys(COMMAND_OPTIONS, "a run")
    return {name: others[name] for name in kind.model_fields if name in others}


def require_own_names(model: str, kind: type[Settings]) -> None:
    """Raise `SettingsError` for a model with a setting that means something else."""
    for name, of in taken_names(kind).items():
        raise SettingsError(
            f"model {model}: {kind.__name__} has a setting '{name}', and one of that name belongs "
            f"to {of}: rename the field"
        )


def settings_classes(
    model: str, *, to_build: bool = True
) -> tuple[type[Settings], type[DataSettings], type[TrainSettings]]:
    """The classes of a run's settings: the model's own, the words', the training's.

    With `to_build`, the model's own is the one that it is built with, which imports torch. Raises
    `SettingsError` where one of the model's own has a name that means something else.
    """
    own = MODELS[model].settings_class if to_build else MODEL_FACTS[model].settings_class
    require_own_names(model, own)
    return own, DataSettings, TrainSettings


@dataclass(frozen=True)
class Experiment:
    """A model, its settings, the words and the training: all settings of a run.

    `built` says how its weights were set by construction, and `started_from` which weights training
    begins with; both are None where these are random.
    """

    model: str
    model_settings: Settings
    data: DataSettings
    training: TrainSettings
    built: ByConstruction | None = None
    started_from: StartedFrom | None = None

    @classmethod
    def from_values(
        cls,
        values: Mapping[str, Any],
        where: str,
        *,
        protocol: str = "",
        to_build: bool = True,
    ) -> Experiment:
        """An experiment from flat values, as in config.yaml; what is left out has its default.

        Without `to_build` torch is not imported, and the experiment is to be read only: no model
        can be built of it.

        Raises `SettingsError`, whose message begins with `where`, for an unknown key or a value
        that its field refuses, and `UnknownNameError` for an unknown model or protocol.
        """
        if "model" not in values:
            raise SettingsError(f"{where}: 'model' is missing")
        model = str(values["model"])
        classes = settings_classes(model, to_build=to_build)
        known = {"model", *ORIGINS, *(name for kind in classes for name in kind.model_fields)}
        filled = preset(model, values, protocol=protocol)
        for key in filled:
            if key not in known:
                raise SettingsError(f"{where}: unknown setting '{key}'.{nearest(key, known)}")
        own, data, training = (
            {key: filled[key] for key in kind.model_fields if key in filled} for kind in classes
        )
        return cls(
            model,
            build(classes[0], own, where),
            build(DataSettings, data, where),
            build(TrainSettings, training, where),
            _origin(ByConstruction, filled.get("built"), f"{where}: 'built'"),
            _origin(StartedFrom, filled.get("started_from"), f"{where}: 'started_from'"),
        )

    def values(self) -> dict[str, Any]:
        """All settings, flat, as plain values: the content of config.yaml.

        `extended_at` is there only where training was extended, `built` and `started_from` only
        where weights are not random.
        """
        flat: dict[str, Any] = {"model": self.model}
        for part in (self.data, self.model_settings, self.training):
            flat |= part.model_dump(mode="json")
        if not self.training.extended_at:
            del flat["extended_at"]
        for name in ORIGINS:
            if (origin := getattr(self, name)) is not None:
                flat[name] = origin.model_dump(mode="json")
        return flat

    def extended(self, steps: int) -> Experiment:
        """The same with more steps, which are as in a training of so many: see `extended_at`."""
        at = (*self.training.extended_at, self.training.steps)
        values = self.values() | {"steps": steps, "extended_at": list(at)}
        return Experiment.from_values(values, "the extended run")

    @property
    def defaults(self) -> dict[str, Any]:
        """The default of every setting of these classes but the model, as `values` has them."""
        parts = (self.data, self.model_settings, self.training)
        kinds = [type(part)().model_dump(mode="json").items() for part in parts]
        flat = {name: value for values in kinds for name, value in values}
        del flat["extended_at"]
        return flat

    def words_of(self, task: Task | None = None) -> WordSpec:
        """The lengths of the training words, and which of their symbols have labels.

        They are those of the settings' own task, or of another version of it.
        """
        from statetrack.spec import WordSpec, load_task  # NumPy

        return WordSpec.of(
            load_task(self.data.task if task is None else task),
            train_length=self.data.train_length,
            supervision=self.data.supervision,
        )

    @property
    def replicas(self) -> tuple[Replica, ...]:
        """Every seed at every learning rate."""
        training = self.training
        return replicas_of(range(training.seed, training.seed + training.seeds), training.lrs)


OriginT = TypeVar("OriginT", ByConstruction, StartedFrom)


def _origin(kind: type[OriginT], values: Any, where: str) -> OriginT | None:
    """Where weights come from; None where nothing is said. Raises `SettingsError` for the rest."""
    if values is None:
        return None
    if not isinstance(values, Mapping):
        raise SettingsError(f"{where}: must be `key: value` lines")
    return build(kind, values, where)


# --- the command that repeats a run, which names the settings that are not defaults: the line that
# it was started with may name a file that has changed since, and other versions have others ---


def train_command(config: Mapping[str, Any], plugins: Sequence[Path] = ()) -> str:
    """The `statetrack` line that makes such a run: `train`, or `build` of one that was built.

    `config` is the content of a config.yaml; `plugins` are files that define what the run needs.
    Raises `UnknownNameError` for a model that is not registered.
    """
    built, start = config.get("built"), config.get("started_from")
    words = ["statetrack", "build", str(config["task"])] if built else ["statetrack", "train"]
    words += ["--model", str(config["model"])]
    for plugin in plugins:
        words += ["--plugin", str(plugin)]
    if start:
        words += ["--from", str(start["run"])]
    named = own_settings(config)
    if built:
        own = MODEL_FACTS[str(config["model"])].settings_class.model_fields
        named = {name: value for name, value in named.items() if name in own}
        asked = {"precision": "float32", "integers": False, "noise": 0.0, "seed": 0}
        named |= {name: built[name] for name, usual in asked.items() if built[name] != usual}
    for name, value in named.items():
        words += _option(name, value)
    return shlex.join(words)


def own_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """The settings in a config.yaml, but the model, that are not the defaults of its model.

    Raises `UnknownNameError` for a model that is not registered.
    """
    facts = MODEL_FACTS[str(config["model"])]
    defaults: dict[str, Any] = {}
    for part in (DataSettings, facts.settings_class, TrainSettings):
        own = {key: facts.training_defaults[key] for key in _shared(part, facts.training_defaults)}
        defaults |= part(**own).model_dump(mode="json")
    return {
        name: value
        for name, value in config.items()
        if name not in ("model", *ORIGINS) and (name not in defaults or value != defaults[name])
    }


def _shared(kind: type[Any], values: Mapping[str, Any]) -> list[str]:
    return [key for key in values if key in kind.model_fields]


def _option(name: str, value: Any) -> list[str]:
    flag = "--" + name.replace("_", "-")
    if isinstance(value, bool):
        return [flag if value else f"--no-{flag[2:]}"]
    text = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return [f"{flag}={text}"] if text.startswith("-") or not text else [flag, text]
