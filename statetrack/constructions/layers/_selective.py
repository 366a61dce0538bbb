"""What the layers of selective state spaces share: a projection to channels and gates.

N inputs (one for every context), E channels, J numbers of a component.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from statetrack.constructions.weights import ONE, aim, identity_convolution, silu_preimage
from statetrack.sources import Floats


def channels_of(terms: Floats, num_channels: int) -> Floats:
    """The activations of a selective layer's channels: the terms, and a unit vector each."""
    num_contexts, size = terms.shape
    channels = np.zeros((num_contexts, num_channels))
    channels[:, :size] = terms
    channels[:, size : size + num_contexts] = np.eye(num_contexts)
    return channels


def open_channels(mixer: Any, inputs: Floats, terms: Floats) -> None:
    """Solve a selective layer's projection for its channels, and open the gates of the terms."""
    num_channels = mixer.inward.out_features // 2
    channels = channels_of(terms, num_channels)
    gates = np.zeros_like(channels)
    gates[:, : terms.shape[1]] = ONE
    aim(mixer.inward, inputs, np.column_stack([silu_preimage(channels), gates]))
    identity_convolution(mixer.convolution.filters)
