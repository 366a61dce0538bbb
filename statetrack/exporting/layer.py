"""A layout: for each kind of mixer, the authors' layer and what its weights are called there.

An `AuthorsLayer` is mostly data: the class, the arguments it is built with, and a table of names.
The weights that it gives are all of the mixer's, each once, so that the authors' layer takes them
by `load_state_dict(strict=True)`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from torch import Tensor, nn

from statetrack.errors import SettingsError, setting
from statetrack.models import BlockModel
from statetrack.registry import Registry, modules_in

Weights = dict[str, Tensor]

Fits = Callable[[Any], str | None]
"""Why the authors' layer cannot be what a mixer is; None where it can."""


def fits(mixer: Any) -> str | None:
    """Any settings of a mixer are possible in the authors' layer."""


def nothing_more(mixer: Any, weights: Weights) -> Weights:
    """No weights but those of the table of names."""
    return {}


@dataclass(frozen=True)
class AuthorsLayer:
    """A layer of other people's code that computes what a mixer does."""

    home: str
    """The class, as `package.module.Class`."""
    arguments: Callable[[Any, int], Mapping[str, Any]]
    """What it is built with, of a mixer and its width."""
    names: Mapping[str, str]
    """The mixer's weights by the authors' names; those that a mixer lacks are left out."""
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Weights whose rows, in pieces of the mixer's `sizes`, are several of the authors'."""
    others: Callable[[Any, Weights], Weights] = nothing_more
    """Weights of another form, which the function takes out of the mixer's."""
    configuration: str = ""
    """The class of the object that takes the arguments, where the layer is built from one."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the layer beside its configuration."""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    """What is set in the layer once it is built: values that its arguments do not reach."""
    fits: Fits = fits
    call: Callable[[Any], Mapping[str, Tensor]] = lambda mixer: {}
    """Tensors that the layer is given with its inputs."""

    def weights(self, mixer: nn.Module) -> Weights:
        """The authors' state dict, with a mixer's values."""
        own = dict(mixer.state_dict())
        found = self.others(mixer, own)
        for theirs, ours in self.names.items():
            if ours in own:
                found[theirs] = own.pop(ours)
        for ours, names in self.parts.items():
            if ours in own:
                sizes: Any = mixer.sizes
                found |= zip(names, own.pop(ours).split(list(sizes)), strict=True)
        assert not own, f"{type(mixer).__name__} has {sorted(own)}, which {self.home} lacks"
        return {name: value.detach().clone().contiguous() for name, value in found.items()}


@dataclass(frozen=True)
class Layout:
    """The layers of one library, by the mixers that they are."""

    title: str
    """The library and its version, of which this is the layout."""
    layers: Mapping[str, AuthorsLayer | Callable[[Any], AuthorsLayer]]
    """By the name of the mixer's class; a function chooses by a mixer's settings."""
    whole: bool = False
    """Whether the model is exported as it is, under its own names."""

    def layer_of(self, mixer: nn.Module, model: str, layout: str) -> AuthorsLayer:
        """The authors' layer that computes what a mixer does.

        Raises `SettingsError` where the layout has none, or none of these settings.
        """
        chosen = self.layers.get(type(mixer).__name__)
        if chosen is None:
            known = sorted({_plain(name) for name in self.layers})
            raise SettingsError(
                f"{setting('layout', layout)}: {self.title} has no layer for {model}: it has those "
                f"of {', '.join(known)}; take {setting('layout', 'safetensors')}, or another of "
                f"{', '.join(LAYOUTS)}"
            )
        layer = chosen if isinstance(chosen, AuthorsLayer) else chosen(mixer)
        if (why := layer.fits(mixer)) is not None:
            raise SettingsError(
                f"{setting('layout', layout)}: {layer.home} cannot be {model}: {why}"
            )
        return layer


def _plain(name: str) -> str:
    return re.sub("Mixer$", "", name)


LAYOUTS: Final[Registry[Layout]] = Registry(
    "layout",
    partial(modules_in, "statetrack.exporting.layouts"),
    listing="statetrack export --help",
)
"""The layouts of exported weights, by the names of their files."""


def blocks_of(model: nn.Module, layout: str) -> BlockModel[Any]:
    """The model, which must be made of blocks, each around a mixer.

    Raises `SettingsError` for any other.
    """
    if not isinstance(model, BlockModel):
        raise SettingsError(
            f"{setting('layout', layout)}: the model is not made of blocks around recurrent "
            f"layers: take {setting('layout', 'safetensors')}, which any model has"
        )
    return model
