"""A range of eigenvalues, and whether it is within what a recurrence claims. No torch, no numpy."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class StepEigenvalues:
    """The range of the eigenvalues of some steps: real parts, moduli, largest imaginary part.

    `steps` were measured, each one symbol behind one word.
    """

    lowest: float
    highest: float
    smallest: float
    largest: float
    imaginary: float
    steps: int

    def __str__(self) -> str:
        if self.imaginary <= 1e-3:
            return f"{self.lowest:.2f} to {self.highest:.2f}"
        moduli = f"moduli {self.smallest:.2f} to {self.largest:.2f}"
        return f"{moduli}, real parts {self.lowest:.2f} to {self.highest:.2f}"

    def beyond(self, claimed: str, tolerance: float = 1e-2) -> bool:
        """Whether some eigenvalue is certainly none of those that are claimed.

        Ends of intervals count as theirs, and 0 as an eigenvalue that a step may always have.
        """
        if found := re.fullmatch(r"modulus (<= )?(\d+)", claimed):
            least = 0.0 if found[1] else float(found[2])
            return self.largest > float(found[2]) + tolerance or self.smallest < least - tolerance
        ends = _ends(claimed)
        return ends is not None and (
            min(self.lowest, 0.0) < min(ends[0], 0.0) - tolerance
            or self.highest > ends[1] + tolerance
            or self.imaginary > tolerance
        )

    def lacks_negative(self, claimed: str) -> bool:
        """Whether negative eigenvalues are claimed, and none was found."""
        ends = _ends(claimed)
        return ends is not None and ends[0] < 0 and self.lowest > -1e-3


def _ends(claimed: str) -> tuple[float, float] | None:
    """The ends of an interval such as `(-1, 1]`; None of what is no interval."""
    found = re.fullmatch(r"[\[(](\S+), (\S+)[\])]", claimed)
    return (float(found[1]), float(found[2])) if found else None
