"""Gated DeltaNet-2: as the other delta rules."""

from __future__ import annotations

from statetrack.constructions.layers.delta import register, take_reflections

__all__ = ["register", "take_reflections"]
