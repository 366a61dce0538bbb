"""Bezier curves: points on them, parts of them, and where they leave a circle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from statetrack.sources import Floats

FINE = np.linspace(0, 1, 201)
"""Parameters at which a curve is evaluated."""


@dataclass(frozen=True, eq=False)
class Bezier:
    """A curve with control points `[n, 2]`: 2 of them make a line, 3 and 4 a bend."""

    points: Floats

    def at(self, where: Floats) -> Floats:
        """Points `[N, 2]` at parameters `[N]` from 0 to 1 (de Casteljau)."""
        points = np.broadcast_to(self.points, (len(where), *self.points.shape))
        while points.shape[1] > 1:
            ahead = where[:, None, None]
            points = (1 - ahead) * points[:, :-1] + ahead * points[:, 1:]
        found: Floats = points[:, 0]
        return found

    def between(self, start: float, end: float) -> Bezier:
        """The part between two parameters."""
        return self._up_to(end)._from(start / end)

    def outside(self, gaps: Callable[[Floats], Floats]) -> Bezier:
        """The part outside two outlines: `gaps` tells how far points `[N, 2]` are from them."""
        kept = np.flatnonzero(gaps(self.at(FINE)) > 0)
        assert len(kept) > 1, "the curve lies within its ends"
        return self.between(float(FINE[kept[0]]), float(FINE[kept[-1]]))

    def _up_to(self, end: float) -> Bezier:
        points, kept = self.points, [self.points[0]]
        while len(points) > 1:
            points = (1 - end) * points[:-1] + end * points[1:]
            kept.append(points[0])
        return Bezier(np.array(kept))

    def _from(self, start: float) -> Bezier:
        return Bezier(Bezier(self.points[::-1])._up_to(1 - start).points[::-1])
