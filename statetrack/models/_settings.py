"""The settings of models: what every model, and every model of one kind, can be told.

A model's settings say which class of recurrence its layers are, and of which size. This module
imports no torch: what a model is and what it can track is known without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin

from statetrack.algebra.recurrences import LinearRecurrence, Recurrence
from statetrack.settings import Settings, option


class ModelSettings(Settings):
    """The settings of a model, which give its class of recurrence."""

    @property
    def recurrence(self) -> Recurrence | None:
        """The class that every layer's recurrence belongs to; None where it is not said."""
        return None


class LinearSettings(ModelSettings):
    """What every linear model can be told."""

    hidden: int = option(64, "Width H of the hidden state.", min=1)
    embed_dim: int = option(
        0,
        "Width D of the learned symbol embeddings; 0 means one-hot symbols (D = V).",
        min=0,
    )
    first: Literal["learned", "fixed"] = option(
        "learned", "Whether the first state is trained, or stays as it was drawn from N(0, 1)."
    )
    additive: Literal["none", "constant", "input"] = option(
        "none", "A term added at every step: none, a constant b, or a linear map U x_t."
    )
    readout_bias: bool = option(
        False, "A bias in the readout; without it logits scale with the state."
    )


class BlockSettings(ModelSettings):
    """What every model made of residual blocks can be told."""

    width: int = option(64, "Width D of the residual stream.", min=1)
    layers: int = option(1, "Number of blocks.", min=1)
    norm: Literal["rms", "layer", "none"] = option(
        "rms", "Normalisation before each mixer, each MLP and the readout."
    )
    mlp: float = option(
        0.0, "Width of each block's MLP (GELU), as a multiple of D; 0 leaves it out.", min=0
    )
    residual: bool = option(True, "Whether blocks are added to their input.")


class KernelSettings(BlockSettings):
    """What block models can be told for whose recurrence another library has a kernel."""

    kernel: Literal["auto", "torch", "fla"] = option(
        "auto",
        "What scans words: torch; fla, the kernel of flash-linear-attention (CUDA only); "
        "auto, which is fla where that can run.",
    )


def recurrence_of(settings: Settings) -> Recurrence | None:
    """The class of recurrence that settings give; None where they do not say."""
    return settings.recurrence if isinstance(settings, ModelSettings) else None


@dataclass(frozen=True)
class Variant:
    """One value of a setting that gives other eigenvalues than the default."""

    setting: str
    value: Any
    recurrence: LinearRecurrence


def variants(kind: type[Settings]) -> Iterator[Variant]:
    """The values of settings with a fixed choice whose recurrence has other eigenvalues."""
    default = recurrence_of(kind())
    if not isinstance(default, LinearRecurrence):
        return
    for name, field in kind.model_fields.items():
        choices = get_args(field.annotation) if get_origin(field.annotation) is Literal else ()
        for value in choices:
            other = recurrence_of(kind(**{name: value}))
            if isinstance(other, LinearRecurrence) and other.eigenvalues != default.eigenvalues:
                yield Variant(name, value, other)
