"""Causal language models of the transformers library, by their configuration.

    hf:gpt2                              the type of a configuration, at the sizes of the settings
    hf:llama:num_key_value_heads=2       the same with more keys of that configuration
    hf:folder/config.json                the configuration in a file, with its own sizes

No weights are loaded and nothing is downloaded. A model is the decoder of the library as it is, in
float32, with weights drawn as the library draws them; symbols are its tokens, and a linear readout
of its last hidden states gives the labels. Words are read as a whole, without a cache.

Source: Wolf et al. (2020), arXiv:1910.03771; the papers of the types are those that the library
names.

Checked: transformers (MambaForCausalLM, GPT2LMHeadModel), to 1e-6 in tests/test_hf.py; hidden
states.

Departures: a linear readout with a bias takes the place of the head over the vocabulary. There is
one token more than symbols, which the library calls padding and no word has. At the sizes of the
settings, an MLP has four times the width, a head width / heads numbers, and of four experts two are
chosen; dropout is 0. Keys of the name override each of these.
"""

# Neither torch nor transformers is imported here; `statetrack.models._hf` builds the models.

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Final

from pydantic import model_validator

from statetrack.algebra import Attention, FixedPositiveLayers, PositiveLayers, Recurrence, Size
from statetrack.errors import SettingsError, TaskError
from statetrack.models._settings import MOST_LAYERS, ModelSettings
from statetrack.settings import option

PREFIX: Final = "hf"

MOST_BYTES: Final = 2**16
"""The largest configuration file."""

FAMILY: Final = "transformers"
SOURCE: Final = "Wolf et al. 2020, arXiv:1910.03771"
TRAINING_DEFAULTS: Final[Mapping[str, Any]] = {
    "lrs": (1e-3,),
    "steps": 2000,
    "warmup": 0.1,
    "clip": 1.0,
}

DIAGONAL: Final[Mapping[str, str]] = {
    "mamba": "diagonal",
    "falcon_mamba": "diagonal",
    "mamba2": "one scalar per head",
}
"""Types all of whose layers are recurrences with gains in (0, 1), and what multiplies the state."""

ATTENTION: Final[Mapping[str, str]] = {
    "gpt2": "learned",
    "gpt_bigcode": "learned",
    "gpt_neo": "learned",
    "openai-gpt": "learned",
    "opt": "learned",
    "biogpt": "learned",
    "bloom": "alibi",
    **dict.fromkeys(
        (
            "arcee codegen cohere gemma gemma2 glm glm4 gpt_neox gptj granite helium llama "
            "ministral mistral nemotron olmo olmo2 olmo3 persimmon phi phi3 qwen2 qwen3 smollm3 "
            "stablelm starcoder2"
        ).split(),
        "rotary",
    ),
}
"""Types all of whose layers are softmax attention and a dense MLP, and their positions."""


class HFSettings(ModelSettings):
    """Settings of a model that is named by the type of its configuration."""

    model_type: ClassVar[str] = ""
    keys: ClassVar[Mapping[str, Any]] = {}
    """More keys of the configuration, as the model's name gives them."""

    hidden: int = option(64, "Width of the hidden states.", min=1)
    layers: int = option(2, "Number of layers.", min=1, max=MOST_LAYERS)
    heads: int = option(4, "Number of heads, where the type has heads.", min=1)
    max_positions: int = option(
        512, "Longest word that can be read, where positions are learned.", min=1
    )

    @property
    def recurrence(self) -> Recurrence | None:
        """The class of every layer's recurrence, for types of which it is known."""
        return recurrence_of_type(self.model_type, self.layers, self.max_positions)


class FileSettings(ModelSettings):
    """Settings of a model that is named by a file with its configuration."""

    file: ClassVar[str] = ""
    keys: ClassVar[Mapping[str, Any]] = {}

    configuration: str = option(
        "", "The configuration as JSON; left out, it is read from the file that the name gives."
    )

    @model_validator(mode="before")
    @classmethod
    def _is_read(cls, values: Any) -> Any:
        if isinstance(values, dict) and not values.get("configuration"):
            try:
                return values | {"configuration": read_configuration(Path(cls.file))}
            except SettingsError:
                return values  # a run has it of its own; `content` says what is wrong
        return values

    def content(self) -> dict[str, Any]:
        """What the configuration says, with the keys of the model's name over it.

        Raises `SettingsError` where there is none.
        """
        text = self.configuration or read_configuration(Path(self.file))
        return parse_configuration(text, self.file) | dict(self.keys)

    @property
    def recurrence(self) -> Recurrence | None:
        """The class of every layer's recurrence, for types of which it is known."""
        if not self.configuration:
            return None
        content = self.content()
        layers = content.get("num_hidden_layers", content.get("n_layer"))
        longest = content.get("max_position_embeddings", content.get("n_positions"))
        if not isinstance(layers, int):
            return None
        return recurrence_of_type(
            content["model_type"], layers, longest if isinstance(longest, int) else None
        )


def is_known(model_type: str) -> bool:
    """Whether a rule is known for a type, which is then one of transformers."""
    return model_type in DIAGONAL or model_type in ATTENTION or model_type == "rwkv"


def recurrence_of_type(model_type: str, layers: int, longest: int | None) -> Recurrence | None:
    """The class of the recurrence of a type; None where no rule is known to fit it."""
    size = Size("layers", layers)
    if model_type in DIAGONAL:
        return PositiveLayers(layers=size, structure=DIAGONAL[model_type])
    if model_type == "rwkv":
        return FixedPositiveLayers(layers=size, decays=True)
    positions = ATTENTION.get(model_type)
    if positions is None or (positions == "learned" and longest is None):
        return None
    return Attention(
        layers=size,
        positions=positions,
        longest=longest if positions == "learned" else None,
        has_mlp=True,
    )


@cache
def settings_class(name: str) -> type[HFSettings] | type[FileSettings]:
    """The class of the settings of the model `hf:...`.

    Raises `SettingsError` for a name that cannot be read.
    """
    matched = re.fullmatch(
        rf"{PREFIX}:(?P<base>.*?\.json|[^:]*)(?P<colon>:(?P<keys>.*))?", name, re.DOTALL
    )
    base = matched["base"].strip() if matched else ""
    if matched is None or not base:
        raise SettingsError(
            f"model '{name}': write {PREFIX}:TYPE, {PREFIX}:TYPE:key=value,key=value or "
            f"{PREFIX}:FILE.json; a type is, for example, gpt2, llama or mamba2"
        )
    keys = _keys(matched["keys"], name) if matched["colon"] else {}
    namespace = {"__module__": __name__, "__doc__": HFSettings.__doc__, "keys": keys}
    if base.endswith(".json"):
        return type("FileSettings", (FileSettings,), {**namespace, "file": base})
    if not re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", base):
        raise SettingsError(
            f"model '{name}': '{base}' is no type of a configuration; nothing is downloaded: name "
            f"a type, as {PREFIX}:gpt2, or a file, as {PREFIX}:folder/config.json"
        )
    return type("HFSettings", (HFSettings,), {**namespace, "model_type": base})


def read_configuration(path: Path) -> str:
    """The configuration in a file, as JSON on one line.

    Raises `SettingsError` where it cannot be read or is none.
    """
    try:
        with path.open("rb") as file:
            written = file.read(MOST_BYTES + 1)
        text = written.decode("utf-8")
    except (OSError, UnicodeDecodeError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or "it is not UTF-8 text"
        raise SettingsError(f"{path}: cannot be read: {reason}") from None
    if len(written) > MOST_BYTES:
        raise SettingsError(f"{path}: has more than {MOST_BYTES:,} bytes: it is no configuration")
    return json.dumps(parse_configuration(text, str(path)), separators=(",", ":"))


def parse_configuration(text: str, where: str) -> dict[str, Any]:
    """What a configuration says, from JSON; `where` opens the message.

    Raises `SettingsError` where it is none, or asks for code or data from elsewhere.
    """
    try:
        content = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise SettingsError(f"{where}: is not a configuration in JSON") from None
    if not isinstance(content, dict) or not isinstance(content.get("model_type"), str):
        raise SettingsError(
            f"{where}: is no configuration of transformers: it has no text under 'model_type'"
        )
    for key in ("auto_map", "quantization_config", "custom_pipelines"):
        if content.get(key) is not None:
            raise SettingsError(
                f"{where}: '{key}' asks for code or weights from elsewhere, which are never loaded"
            )
    return content


def _refuse_constant(name: str) -> float:
    raise ValueError(name)


def _keys(text: str, name: str) -> dict[str, Any]:
    """The keys and values behind a model's name, as behind a task's."""
    from statetrack.spec import arguments  # NumPy, which names do not need

    where = f"model '{name}'"
    try:
        values = arguments(text, where)
    except TaskError as problem:
        raise SettingsError(str(problem)) from None
    for key in values:
        if not key.isidentifier():
            raise SettingsError(f"{where}: '{key}' is no key of a configuration")
    return values
