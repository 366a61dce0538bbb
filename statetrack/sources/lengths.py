"""How long words are: a distribution to draw from, or a list to evaluate at."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from statetrack.errors import SettingsError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LONGEST_ALLOWED: Final = 1_000_000
MOST_LENGTHS: Final = 10_000
LEAST_FACTOR: Final = Fraction(101, 100)

# ASCII digits alone, and too few for Python to refuse to convert them
_NUMBER = "([0-9]{1,18})"
_ONE = re.compile(_NUMBER)
_DISTRIBUTION = re.compile(f"{_NUMBER}(?:-{_NUMBER})?")
_RANGE = re.compile(f"{_NUMBER}-{_NUMBER}:([0-9]{{1,18}}|x[0-9]{{1,7}}(?:[.][0-9]{{1,3}})?)")


@dataclass(frozen=True)
class LengthDistribution:
    """Lengths drawn uniformly from `shortest .. longest`, both included.

    With `curriculum = f > 0` the upper end grows during training: at progress p in 0..1 it is
    `shortest + floor((longest - shortest) * min(1, p / f))`, so training starts with the
    shortest words alone and sees all lengths after the fraction f of its steps.

    Raises `SettingsError` where the lengths are out of order or out of bounds.
    """

    shortest: int
    longest: int
    curriculum: float = 0.0

    def __post_init__(self) -> None:
        if self.shortest > self.longest:
            raise SettingsError(
                f"length {self}: lengths are out of order: write {self.longest}-{self.shortest}"
            )
        _check_bounds(str(self), (self.shortest, self.longest))
        if not 0.0 <= self.curriculum <= 1.0:
            raise SettingsError(
                f"curriculum {self.curriculum}: must be a fraction of training from 0 to 1"
            )

    @classmethod
    def parse(cls, text: str, curriculum: float = 0.0) -> LengthDistribution:
        """The distribution that `2-10` (uniform) or `500` (always the same) writes.

        Raises `SettingsError` for anything else.
        """
        match = _DISTRIBUTION.fullmatch(text.strip())
        if match is None:
            raise SettingsError(
                f"length '{text}': not a length: write 500 for one, or 2-10 for a range"
            )
        shortest = int(match[1])
        return cls(shortest, int(match[2] or shortest), curriculum)

    def __str__(self) -> str:
        if self.shortest == self.longest:
            return str(self.shortest)
        return f"{self.shortest}-{self.longest}"

    @property
    def num_lengths(self) -> int:
        """How many different lengths there are when training has seen them all."""
        return self.longest - self.shortest + 1

    def longest_at(self, progress: float | NDArray[np.float64]) -> NDArray[np.int64]:
        """The greatest length that may be drawn at a progress from 0 to 1; same shape."""
        import numpy as np  # which lengths alone do not need

        progress = np.asarray(progress, dtype=np.float64)
        if self.curriculum == 0.0:
            return np.full(progress.shape, self.longest, dtype=np.int64)
        grown = np.minimum(progress / self.curriculum, 1.0) * (self.longest - self.shortest)
        return self.shortest + grown.astype(np.int64)

    def draw(
        self, bits: NDArray[np.uint32], progress: float | NDArray[np.float64] = 1.0
    ) -> NDArray[np.int64]:
        """One length from each of the uniform 32-bit integers; same shape as `bits`.

        `progress` is one number, or an array that broadcasts against `bits`.
        """
        from statetrack.sources.randomness import one_of  # numpy

        return one_of(self.longest_at(progress) - self.shortest + 1, bits) + self.shortest


def parse_lengths(texts: Sequence[str]) -> list[int]:
    """The lengths that texts name, in rising order and each once.

    A text is a length (`500`), a range with a step (`10-1000:10`) or with a factor
    (`10-100000:x10`, `10-1000:x1.5`, whose lengths are rounded to whole numbers), or several of
    these with commas between them. Raises `SettingsError` for anything else, for lengths outside
    `1 .. LONGEST_ALLOWED`, and for more than `MOST_LENGTHS` lengths.
    """
    lengths: set[int] = set()
    for text in texts:
        for part in text.split(","):
            lengths.update(_named_by(part.strip()))
    if len(lengths) > MOST_LENGTHS:
        raise SettingsError(f"{len(lengths)} lengths are named, the most is {MOST_LENGTHS}")
    return sorted(lengths)


def _named_by(text: str) -> Iterable[int]:
    if match := _ONE.fullmatch(text):
        first = last = int(match[1])
        step = ""
    elif match := _RANGE.fullmatch(text):
        first, last, step = int(match[1]), int(match[2]), match[3]
    else:
        raise SettingsError(
            f"length '{text}': not a length: write 500 for one, 10,50,200 for several, "
            "10-1000:10 for every tenth from 10 to 1000, or 10-100000:x10 for 10, 100 and so on"
        )
    if first > last:
        raise SettingsError(
            f"length '{text}': lengths are out of order: write {last}-{first}:{step}"
        )
    _check_bounds(text, (first, last))
    if step.startswith("x"):
        return _powers(text, first, last, Fraction(step[1:]))
    return _steps(text, first, last, int(step or 1))


def _steps(text: str, first: int, last: int, step: int) -> range:
    if step == 0:
        raise SettingsError(f"length '{text}': the step is 0: write {first}-{last}:1 or greater")
    lengths = range(first, last + 1, step)
    if len(lengths) > MOST_LENGTHS:
        raise SettingsError(
            f"length '{text}': names {len(lengths)} lengths, the most is {MOST_LENGTHS}: "
            "take a greater step"
        )
    return lengths


def _powers(text: str, first: int, last: int, factor: Fraction) -> list[int]:
    """The first length times the powers of a factor, each rounded, halves upwards."""
    if factor < LEAST_FACTOR:
        raise SettingsError(
            f"length '{text}': the factor must be at least {float(LEAST_FACTOR):g}: write "
            f"{first}-{last}:x2, or a step as {first}-{last}:{max(1, (last - first) // 10)}"
        )
    lengths, reached = [], Fraction(first)
    while (length := int(reached + Fraction(1, 2))) <= last:
        lengths.append(length)
        reached *= factor
    return lengths


def _check_bounds(text: str, lengths: Iterable[int]) -> None:
    for length in lengths:
        if not 1 <= length <= LONGEST_ALLOWED:
            raise SettingsError(f"length '{text}': {length} is not from 1 to {LONGEST_ALLOWED}")
