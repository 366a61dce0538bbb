"""The representation by integers that learned operators are equivalent to, or a part of.

Learned operators A(x) move centres as symbols move states, up to a small defect. A representation
by integers M(x) holds theirs where some matrix T of full rank has T M(x) = A(x) T for all symbols:
each function that is read from learned states is read from those of M, all characters of A are part
of those of M, and of equal dimensions both are the same. Over the integers a rotation by 1/5 of a
turn takes 4 dimensions, since all of its conjugates come along: what such a representation takes is
searched for, small ones first (`statetrack.algebra.rational_spaces`).

V symbols, r dimensions of the learned operators, n of others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from statetrack.algebra import Machine
from statetrack.constructions import (
    LinearRepresentation,
    NotBuilt,
    integer_readout,
    integer_representations,
)
from statetrack.errors import SettingsError
from statetrack.sources import Floats

TOLERANCE = 20.0
"""How far T may be from exact, as a multiple of the defect of the learned operators."""

SMALLEST = 1e-7
"""The least that T may be off: rounding."""

FULL = 0.02
"""The least singular value of T of full rank, as a part of the largest."""


@dataclass
class WholeNumbers:
    """Representations by integers for learned operators on the states of a machine."""

    machine: Machine
    defect: float
    """By how much learned operators miss their centres, as a part of their size."""
    _found: list[LinearRepresentation] = field(default_factory=list)

    def for_operators(
        self,
        learned: Floats,
        fits: Callable[[LinearRepresentation], str | None],
        *,
        reads: bool,
    ) -> LinearRepresentation:
        """The smallest representation that is found, with room for it, of operators `[V, r, r]`.

        `fits` says what a model needs for it and has not, or None. With `reads`, labels can be read
        from its points by integers. Raises `SettingsError` where none is found, with what is needed
        for the first that has no room.
        """
        lacking = ""
        for each in self._representations():
            if not self._holds(each, learned) or (reads and self.readout([each]) is None):
                continue
            missing = fits(each)
            if missing is None:
                return each
            lacking = lacking or missing
        raise SettingsError(
            f"snap: the learned representation of dimension {learned.shape[1]} has no form in "
            f"integers in this model: {lacking or 'none was found that holds it'}"
        )

    def readout(self, parts: list[LinearRepresentation]) -> Floats | None:
        """Integers `[C, n]` that read all labels from points side by side; None where none do."""
        automaton = self.machine.automaton
        asked = automaton.scored & self.machine.live
        points = np.column_stack([part.points for part in parts])
        try:
            return integer_readout(points[asked], automaton.output[asked], automaton.num_labels)
        except NotBuilt:
            return None

    def _representations(self) -> list[LinearRepresentation]:
        if not self._found:
            self._found = sorted(integer_representations(self.machine), key=lambda each: each.size)
        return self._found

    def _holds(self, whole: LinearRepresentation, learned: Floats) -> bool:
        """Whether learned operators are equivalent to a part of others, up to their defect."""
        size, rank = whole.size, learned.shape[1]
        if size < rank:
            return False
        left, right = np.eye(rank), np.eye(size)
        equations = np.concatenate(
            [
                np.kron(left, matrix.T) - np.kron(own, right)
                for matrix, own in zip(whole.matrices, learned, strict=True)
            ]
        )  # of T [r, n], row by row
        scale = max(1.0, float(np.abs(whole.matrices).max()))
        _, sizes, rows = np.linalg.svd(equations, full_matrices=False)
        off = max(TOLERANCE * self.defect, SMALLEST) * scale * len(learned) ** 0.5
        kept = rows[sizes <= off]
        if not len(kept):
            return False
        draw = np.random.default_rng(0)
        combined = (draw.normal(size=len(kept)) @ kept).reshape(rank, size)
        values = np.linalg.svd(combined, compute_uv=False)
        return bool(values[-1] > FULL * values[0])
