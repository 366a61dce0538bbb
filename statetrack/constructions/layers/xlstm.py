"""xLSTM: its last layer, where that is a scalar LSTM."""

from __future__ import annotations

from statetrack.constructions.layers.slstm import take_units

__all__ = ["take_units"]
