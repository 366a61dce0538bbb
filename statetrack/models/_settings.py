"""Base classes of the settings of models: of every model, and of the models of one kind.

A model's settings name the class of its layers' recurrence, with its size. This module does not
import torch, so the listing and the predictions of a model do not need it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, Self, TypeAlias, get_args, get_origin

from pydantic import model_validator

from statetrack.algebra import Diagonal, Gains, LinearRecurrence, Recurrence, Size
from statetrack.errors import setting
from statetrack.settings import Settings, option

MOST_LAYERS: Final = 256
"""Blocks, or stacked layers, of a model."""


NormKind: TypeAlias = Literal["rms", "layer", "none"]
MLPKind: TypeAlias = Literal["gelu", "swiglu", "geglu", "reglu"]

ABOUT_NORM: Final = "Normalisation before each mixer, each MLP and the readout."
ABOUT_MLP: Final = "Width M of each block's MLP, as a multiple of D; 0 leaves it out."
ABOUT_MLP_KIND: Final = (
    "The MLP: gelu is W_2 gelu(W_1 x + b_1) + b_2; swiglu, geglu and reglu are "
    "W_2 (f(W_g x) * W_1 x), with f = silu, gelu or relu."
)
ABOUT_CONV: Final = "Positions that a short convolution of q, k and v spans; 0 leaves it out."
ABOUT_HEADS: Final = "Number of heads; must divide the width."
ABOUT_BOS: Final = "Whether a learned token, no symbol of the task, stands before every word."
ABOUT_KERNEL: Final = (
    "What computes recurrences, linear maps, convolutions and norms: torch; native, compiled loops "
    "(CPU only); auto, which is native where that can run."
)
ABOUT_OWN_CONV: Final = "Positions the short convolution sees, its own included."


class ModelSettings(Settings):
    """The settings of a model, which also name its class of recurrence."""

    greatest_integer: ClassVar[int] = 10**6

    @property
    def recurrence(self) -> Recurrence | None:
        """The class of every layer's recurrence; None where the settings name none."""
        return None


class NetworkSettings(ModelSettings):
    """Settings of the networks of saturating units."""

    hidden: int = option(64, "Width H of the hidden state.", min=1, max=10**6)
    kernel: Literal["auto", "torch", "native"] = option("auto", ABOUT_KERNEL)


class LinearSettings(ModelSettings):
    """Settings of every linear model."""

    hidden: int = option(64, "Width H of the hidden state.", min=1, max=10**6)
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
    kernel: Literal["auto", "torch", "native"] = option(
        "auto",
        "What computes the recurrence: torch; native, a compiled loop (CPU only, without additive "
        "terms); auto, which is native where that can run and is faster.",
    )

    @model_validator(mode="after")
    def _kernel_has_the_terms(self) -> Self:
        if self.kernel == "native" and self.additive != "none":
            kernel, additive = setting("kernel", "native"), setting("additive", self.additive)
            auto, torch = setting("kernel", "auto"), setting("kernel", "torch")
            raise ValueError(f"{kernel} has no additive terms ({additive}): take {auto} or {torch}")
        return self


class DiagonalSettings(LinearSettings):
    """Settings of a linear model with free gains of one kind, for every coordinate and symbol."""

    gains: ClassVar[Gains]

    @property
    def recurrence(self) -> Diagonal:
        """The gains, with the additive terms that are asked for."""
        return Diagonal(
            gains=self.gains,
            size=Size("hidden", self.hidden),
            additive=self.additive,
            readout_bias=self.readout_bias,
        )


class BlockSettings(ModelSettings):
    """Settings of every model made of residual blocks."""

    width: int = option(64, "Width D of the residual stream.", min=1)
    layers: int = option(1, "Number of blocks.", min=1, max=MOST_LAYERS)
    norm: NormKind = option("rms", ABOUT_NORM)
    mlp: float = option(0.0, ABOUT_MLP, min=0)
    mlp_kind: MLPKind = option("gelu", ABOUT_MLP_KIND)
    residual: bool = option(True, "Whether blocks are added to their input.")
    kernel: Literal["auto", "torch", "native"] = option("auto", ABOUT_KERNEL)


class KernelSettings(BlockSettings):
    """Settings of the block models for whose recurrence flash-linear-attention has a kernel."""

    kernel: Literal["auto", "torch", "native", "fla"] = option(  # type: ignore[assignment]
        "auto",
        "What computes recurrences, linear maps, convolutions and norms: torch; native, compiled "
        "loops (CPU only); fla, the kernel of flash-linear-attention for the recurrence (CUDA "
        "only); auto, which is fla or native where one can run.",
    )


WITH_KERNEL: Final = (NetworkSettings, LinearSettings, BlockSettings)
"""The settings that have a choice of kernels."""


def recurrence_of(settings: Settings) -> Recurrence | None:
    """The class of recurrence that settings name; None where they name none."""
    return settings.recurrence if isinstance(settings, ModelSettings) else None


@dataclass(frozen=True)
class Variant:
    """A value of a setting, other than the default, that gives different eigenvalues."""

    setting: str
    value: Any
    recurrence: LinearRecurrence


def variants(kind: type[Settings]) -> Iterator[Variant]:
    """The choices of settings whose recurrence has other eigenvalues than the default."""
    default = recurrence_of(kind())
    if not isinstance(default, LinearRecurrence):
        return
    for name, field in kind.model_fields.items():
        choices = get_args(field.annotation) if get_origin(field.annotation) is Literal else ()
        for value in choices:
            other = recurrence_of(kind(**{name: value}))
            if isinstance(other, LinearRecurrence) and other.eigenvalues != default.eigenvalues:
                yield Variant(name, value, other)
