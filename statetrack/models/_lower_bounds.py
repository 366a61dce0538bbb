"""Least forget gates that rise with the layer, of the hierarchically gated recurrent networks.

    gamma_k = sum of the first k - 1 of L softmax weights, by coordinate

so lower layers may forget and upper ones remember (Qin, Yang & Zhong 2023, arXiv:2311.04823).

D width, L layers.
"""

from __future__ import annotations

from typing import TypeVar

import torch
from torch import Tensor, nn

from statetrack.models._blocks import BlockModel
from statetrack.models._settings import BlockSettings

SettingsT = TypeVar("SettingsT", bound=BlockSettings)


class BoundedModel(BlockModel[SettingsT]):
    """A model that holds the lower bounds of the forget gates of all its layers."""

    def __init__(self, settings: SettingsT, *, num_symbols: int, num_labels: int) -> None:
        super().__init__(settings, num_symbols=num_symbols, num_labels=num_labels)
        self.bounds: nn.Parameter | None = None
        if settings.layers > 1:
            self.bounds = nn.Parameter(torch.zeros(settings.layers, settings.width))

    def lower_bound(self, layer: int) -> Tensor:
        """The least forget gate of a layer, [D]: 0 in the first, rising from layer to layer."""
        if self.bounds is None:
            return self.readout.weight.new_zeros(())
        return self.bounds.softmax(0)[:layer].sum(0)
