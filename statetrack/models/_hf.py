"""Models built from configurations of the transformers library: `hf:gpt2`, `hf:mamba2`.

`statetrack.models._hf_names` has the grammar of their names, the source and the departures.

B batch, T time, V symbols, C labels, D hidden.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

import torch
from torch import Tensor, nn

from statetrack.errors import SettingsError, UnknownNameError, nearest, setting
from statetrack.models._base import SequenceModel, through
from statetrack.models._hf_names import (
    FAMILY,
    PREFIX,
    SOURCE,
    TRAINING_DEFAULTS,
    FileSettings,
    HFSettings,
    settings_class,
)
from statetrack.models._settings import MOST_LAYERS
from statetrack.registry import import_extra
from statetrack.settings import Settings

SYMBOLS_AT_ONCE: Final = 2**13
"""Where no gradient is asked for, so many symbols of a batch are read at once."""

MOST: Final = 2**20
"""The greatest whole number in a configuration that is a size."""

NOT_CAUSAL: Final = frozenset({"cpmant", "xlm"})
"""Types with a head for language models whose outputs depend on later tokens."""


class HFModel(SequenceModel):
    """A causal language model of transformers from its configuration, with a readout of labels."""

    family = FAMILY
    source = SOURCE
    training_defaults = TRAINING_DEFAULTS
    vectorises = False  # the library branches on values of tensors
    computes_in_float32 = True

    def __init__(self, settings: Settings, *, num_symbols: int, num_labels: int) -> None:
        super().__init__(settings, num_symbols=num_symbols, num_labels=num_labels)
        assert isinstance(settings, HFSettings | FileSettings)
        self.configuration = configuration(settings, num_symbols)
        self.network = _network(self.configuration)
        width = self.configuration.get_text_config().hidden_size
        self.readout = nn.Linear(width, num_labels)
        self._bounded: bool | None = None

    def forward(self, symbols: Tensor) -> Tensor:
        """Logits [B, T, C] of int64 symbols [B, T].

        Raises `SettingsError` for words longer than the number of learned positions.
        """
        num_words, length = symbols.shape
        self._check_length(length)
        at_once = max(1, SYMBOLS_AT_ONCE // length)
        if torch.is_grad_enabled() or num_words <= at_once:
            return self._read(symbols)
        return torch.cat([self._read(part) for part in symbols.split(at_once)])

    def _read(self, symbols: Tensor) -> Tensor:
        with _quiet():
            states: Tensor = self.network(input_ids=symbols, use_cache=False).last_hidden_state
        return through(self.readout, states)

    def _check_length(self, length: int) -> None:
        longest = getattr(self.configuration, "max_position_embeddings", None)
        if not isinstance(longest, int) or length <= longest:
            return
        if self._bounded is None:
            self._bounded = _depends_on_positions(self.configuration)
        if self._bounded:
            raise SettingsError(
                f"a word of {length:,} symbols is longer than "
                f"{setting('max_positions', longest)}, the number of positions that "
                f"{PREFIX}:{self.configuration.model_type} learns: train with as many"
            )


@cache
def make_class(name: str) -> type[HFModel]:
    """The class of the model `hf:...`.

    Raises `SettingsError` where transformers is not installed or the name cannot be read, and
    `UnknownNameError` for a type that transformers does not have.
    """
    kind = settings_class(name)
    import_extra("transformers", "hf", f"model '{name}'")
    if issubclass(kind, HFSettings):
        check_type(kind.model_type, f"model '{name}'")
    return type("HFModel", (HFModel,), {"__doc__": HFModel.__doc__, "settings_class": kind})


def check_type(model_type: str, where: str) -> None:
    """Raises `UnknownNameError` unless a type is one of causal language models."""
    auto = import_extra("transformers.models.auto.modeling_auto", "hf", where)
    causal = auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    if model_type in NOT_CAUSAL:
        raise UnknownNameError(
            f"{where}: the outputs of '{model_type}' depend on later tokens: it is not causal; "
            "take a type as gpt2, llama or mamba2"
        )
    if model_type not in causal and model_type in auto.MODEL_MAPPING_NAMES:
        raise UnknownNameError(
            f"{where}: '{model_type}' is a type of transformers, but no causal language model: "
            "take one as gpt2, llama or mamba2"
        )
    if model_type not in causal:
        raise UnknownNameError(
            f"{where}: transformers has no causal language model of the type '{model_type}'."
            f"{nearest(model_type, causal)} Types are, for example, gpt2, llama and mamba2."
        )


def configuration(settings: HFSettings | FileSettings, num_symbols: int) -> Any:
    """The library's configuration of a model, for V symbols.

    Raises `SettingsError` for a key that it does not have or refuses.
    """
    if isinstance(settings, FileSettings):
        content = settings.content()
        model_type, where = content.pop("model_type"), settings.file
        check_type(model_type, where)
        plain = _plain(model_type, where)
        given = content
    else:
        model_type, where = settings.model_type, f"{PREFIX}:{settings.model_type}"
        plain = _plain(model_type, where)
        _check_keys(settings.keys, plain, where)
        given = sizes(settings, plain) | dict(settings.keys)
    _check_values(given, where)
    tokens = dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id"), num_symbols)
    own: dict[str, Any] = {
        "vocab_size": num_symbols + 1,
        "tie_word_embeddings": False,
        "use_cache": False,
    }
    if hasattr(plain, "is_decoder"):
        own["is_decoder"] = True
    for key in ("architectures", "dtype", "torch_dtype", "transformers_version", "_name_or_path"):
        given.pop(key, None)
    try:
        with _quiet():
            return type(plain)(**{**given, **tokens, **own})
    except Exception as problem:  # the library raises any class of exception
        raise SettingsError(f"{where}: transformers refuses it: {_in_one_line(problem)}") from None


def sizes(settings: HFSettings, plain: Any) -> dict[str, Any]:
    """The keys of a configuration that settings determine, of those that the type has."""
    width, heads = settings.hidden, settings.heads
    inner = width * int(getattr(plain, "expand", 0) or getattr(plain, "mamba_expand", 0) or 2)
    wanted: dict[str, Any] = {
        "hidden_size": width,
        "num_hidden_layers": settings.layers,
        "num_attention_heads": heads,
        "num_key_value_heads": heads,
        "head_dim": width // heads,
        "intermediate_size": 4 * width,
        "ffn_dim": 4 * width,
        "decoder_ffn_dim": 4 * width,
        "word_embed_proj_dim": width,
        "max_position_embeddings": settings.max_positions,
        "rotary_dim": max(2, width // heads // 2 * 2),
        "attention_hidden_size": width,
        "lru_width": width,
        "embedding_size": width,
        # experts
        "num_local_experts": 4,
        "num_experts": 4,
        "n_routed_experts": 4,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 2 * width,
        "shared_expert_intermediate_size": 2 * width,
        # linear attention
        "linear_num_key_heads": heads,
        "linear_num_value_heads": heads,
        "linear_key_head_dim": width // heads,
        "linear_value_head_dim": width // heads,
        # gated recurrences inside attention models
        "mamba_n_heads": heads,
        "mamba_d_head": inner // heads,
        "mamba_n_groups": 1,
        "mamba_dt_rank": math.ceil(width / 16),
        "mamba_num_heads": heads,
        "mamba_head_dim": inner // heads,
        "rescale_every": 0,
    }
    if plain.model_type == "mamba2":
        wanted |= {"num_heads": heads, "head_dim": inner // heads, "n_groups": 1}
    if hasattr(plain, "expand"):
        del wanted["intermediate_size"]  # it is expand times the width
    if plain.model_type == "gpt_neo":
        wanted["attention_types"] = [[["global"], settings.layers]]
    found = {key: value for key, value in wanted.items() if _can_be_set(plain, key)}
    for key, value in plain.to_dict().items():
        if isinstance(value, float) and key.endswith(("dropout", "pdrop", "dropout_prob")):
            found[key] = 0.0
    return found


def _can_be_set(plain: Any, key: str) -> bool:
    """Whether a configuration has a key that is neither computed nor different for each layer."""
    kind = getattr(type(plain), plain.attribute_map.get(key, key), None)
    if isinstance(kind, property) and kind.fset is None:
        return False
    try:
        return hasattr(plain, key)
    except Exception:  # the library has errors of its own here
        return False


def _plain(model_type: str, where: str) -> Any:
    """The configuration of a type with nothing said about it."""
    auto = import_extra("transformers.models.auto.configuration_auto", "hf", where)
    try:
        with _quiet():
            plain = auto.CONFIG_MAPPING[model_type]()
    except Exception as problem:  # the library raises any class of exception
        raise SettingsError(
            f"{where}: transformers has no default configuration of it: {_in_one_line(problem)}"
        ) from None
    if getattr(plain, "sub_configs", None):
        parts = ", ".join(sorted(plain.sub_configs))
        text = f"{model_type}_text"
        advice = f"take {PREFIX}:{text}" if text in auto.CONFIG_MAPPING else "take another type"
        raise SettingsError(f"{where}: is made of several parts ({parts}): {advice}")
    return plain


def _check_keys(keys: Mapping[str, Any], plain: Any, where: str) -> None:
    known = {*plain.to_dict(), *plain.attribute_map}
    for key in keys:
        if key not in known or key.startswith("_") or key == "model_type":
            raise SettingsError(
                f"{where}: its configuration has no key '{key}'.{nearest(key, known)}"
            )


def _check_values(given: Mapping[str, Any], where: str) -> None:
    """Raises `SettingsError` for sizes that no model has."""
    for key, value in given.items():
        counts = any(part in key for part in ("layer", "expert", "block", "head"))
        most = MOST_LAYERS * 4 if counts else MOST
        if isinstance(value, int) and not key.endswith("token_id") and abs(value) > most:
            raise SettingsError(f"{where}: '{key}' is {value:,}, the most is {most:,}")


def _network(config: Any) -> nn.Module:
    """The decoder of a configuration, without its head, with weights drawn by torch's seed."""
    auto = import_extra("transformers", "hf", config.model_type)
    try:
        with _quiet():
            whole = auto.AutoModelForCausalLM.from_config(
                config, dtype=torch.float32, trust_remote_code=False
            )
    except (
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
        IndexError,
        ZeroDivisionError,
    ) as problem:
        raise SettingsError(
            f"{PREFIX}:{config.model_type}: transformers cannot build it: {_in_one_line(problem)}"
        ) from None
    network: nn.Module = whole.base_model
    if network is whole:
        raise SettingsError(
            f"{PREFIX}:{config.model_type}: has no decoder apart from its head: not supported"
        )
    return network


def _depends_on_positions(config: Any) -> bool:
    """Whether a model has weights or buffers for so many positions."""
    longer = type(config)(
        **{**config.to_dict(), "max_position_embeddings": 1 + config.max_position_embeddings}
    )
    numbers = []
    for each in (config, longer):
        with torch.random.fork_rng(devices=[]), torch.device("meta"):
            network = _network(each)
        numbers.append(sum(part.numel() for part in (*network.parameters(), *network.buffers())))
    return numbers[0] != numbers[1]


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the library's remarks about kernels and defaults."""
    logging = import_extra("transformers.utils.logging", "hf", PREFIX)
    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(before)


def _in_one_line(problem: Exception) -> str:
    """A message of the library, of whatever length, as one short line."""
    return f"{type(problem).__name__}: {' '.join(str(problem).split())[:200]}"
