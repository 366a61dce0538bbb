"""Rounding models: in which types a recurrence is kept and computed, and where casts happen.

A rounding model is data. `FloatFormat` is a binary floating-point type by its exponent and mantissa
bits; `Rounding` says which type the state, the gates, the keys, the products, the sums and the
logits have. `statetrack.ops` rounds numbers, and `statetrack.models` applies a rounding model to a
model's layers.

Rounding is to the nearest number, ties to the even one, with gradual underflow. What is too large
becomes an infinity (in float8 e4m3, which has none, NaN); with `saturate`, the largest number.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, model_validator

from statetrack.errors import SettingsError
from statetrack.registry import Registry, files_in, tasks_folder
from statetrack.settings import LineOrEmpty, Settings, build, option, read_yaml

SAME = "same"
"""The type of what is not cast."""


@dataclass(frozen=True)
class FloatFormat:
    """A binary floating-point type: sign, exponent bits and mantissa bits (the leading 1 apart).

    As in IEEE 754, the greatest exponent is that of infinities and NaN. With `no_infinity` it is
    that of numbers too, but for the greatest mantissa, which is NaN (float8 e4m3: Micikevicius et
    al. 2022, arXiv:2209.05433, table 1).
    """

    exponent: int
    mantissa: int
    no_infinity: bool = False

    @property
    def unit(self) -> float:
        """The unit roundoff u: half the distance from 1 to the next number."""
        return 2.0 ** -(self.mantissa + 1)

    @property
    def lowest(self) -> int:
        """The exponent of the smallest normal number."""
        return 2 - (1 << (self.exponent - 1))

    @property
    def smallest(self) -> float:
        """The smallest positive number, which is the distance between numbers below the normal."""
        return 2.0 ** (self.lowest - self.mantissa)

    @property
    def largest(self) -> float:
        """The largest finite number."""
        steps = 2.0 ** (1 - self.mantissa) if self.no_infinity else 2.0**-self.mantissa
        greatest = (1 << (self.exponent - 1)) - (not self.no_infinity)
        return float((2.0 - steps) * 2.0**greatest)


FORMATS = {
    "float64": FloatFormat(11, 52),
    "float32": FloatFormat(8, 23),
    "tf32": FloatFormat(8, 10),
    "bfloat16": FloatFormat(8, 7),
    "float16": FloatFormat(5, 10),
    "float8-e4m3": FloatFormat(4, 3, no_infinity=True),
    "float8-e5m2": FloatFormat(5, 2),
}
"""Types that have a name; any other is written e8m12: exponent bits and mantissa bits."""

LONGEST_ROUNDED_ONCE = 25
"""The most significant bits for which float64 and then a cast is one rounding."""

_WRITTEN = re.compile("e([2-8])m([1-9][0-9]?)")


def format_of(name: str) -> FloatFormat:
    """The type of a name, or of the form e8m12. Raises `SettingsError` for any other text."""
    if name in FORMATS:
        return FORMATS[name]
    written = _WRITTEN.fullmatch(name)
    if written is None or int(written[2]) > FORMATS["float64"].mantissa:
        raise SettingsError(
            f"there is no type '{name}': take one of {', '.join(FORMATS)}, or e8m12 for 8 exponent "
            "bits (2 to 8) and 12 mantissa bits (1 to 52)"
        )
    return FloatFormat(int(written[1]), int(written[2]))


def _known(name: str) -> str:
    try:
        format_of(name)
    except SettingsError as unknown:
        raise ValueError(str(unknown)) from None
    return name


def _known_or_same(name: str) -> str:
    return name if name == SAME else _known(name)


def _known_of_sums(name: str) -> str:
    sums = format_of(_known(name))
    if sums != FORMATS["float64"] and sums.mantissa >= LONGEST_ROUNDED_ONCE:
        raise ValueError(
            f"sums are not rounded to {sums.mantissa} mantissa bits: take "
            f"{LONGEST_ROUNDED_ONCE - 1} or fewer, or float64"
        )
    return name


TypeOfSums = Annotated[str, AfterValidator(_known_of_sums)]
TypeOrSame = Annotated[str, AfterValidator(_known_or_same)]


class Rounding(Settings):
    """In which types a recurrence is kept and computed, and where casts happen.

    Types are float64, float32, tf32, bfloat16, float16, float8-e4m3, float8-e5m2, or e8m12 for any
    exponent and mantissa bits; `same` is no cast.
    """

    title: LineOrEmpty = option("", "What rounds like this.")
    reference: LineOrEmpty = option(
        "", "Where that is written: repository, file, commit or number."
    )
    state: TypeOrSame = option(SAME, "Type in which the state is kept.")
    kept: Literal["step", "chunk", "call"] = option(
        "step", "When the state is cast to it: after each step, each chunk, or each call."
    )
    chunk: int = option(
        1, "Symbols C of a chunk, computed at once; 1 is the recurrent form.", min=1, max=4096
    )
    call: int = option(1, "Symbols that one call reads.", min=1, max=10**6)
    weights: TypeOrSame = option(SAME, "Type of all weights.")
    gates: TypeOrSame = option(
        SAME, "Type of gates, decays and betas; of a linear model, of its operators."
    )
    keys: TypeOrSame = option(
        SAME, "Type of keys, queries and values; of a linear model, of additive terms."
    )
    keys_cast: Literal["normalised", "loaded"] = option(
        "normalised",
        "Where a layer divides keys and queries by their length: whether they are cast after that, "
        "or loaded in their type before it, with the values, and then computed with.",
    )
    products: TypeOrSame = option(
        SAME, "Type of the factors of matrix products inside the recurrence."
    )
    accumulation: TypeOfSums = option(
        "float32",
        "Type in which the recurrence is computed: of its products, sums and functions; "
        "float64, or of 24 mantissa bits at most.",
    )
    readout: TypeOrSame = option(SAME, "Type of the logits.")
    renormalise: int = option(
        0,
        "Symbols after which a linear state gets back its first norm; 0: never.",
        min=0,
        max=10**6,
    )
    saturate: bool = option(False, "Whether what is too large becomes the largest number.")

    @model_validator(mode="after")
    def _chunks_fill_calls(self) -> Self:
        if self.kept == "step" and self.chunk > 1 and self.state != SAME:
            raise ValueError(
                "in chunks there is no state after each step: take kept: chunk, or chunk: 1"
            )
        if self.kept == "call" and self.call % self.chunk:
            raise ValueError(f"call {self.call} is not a multiple of chunk {self.chunk}")
        return self

    @property
    def every(self) -> int:
        """After how many symbols the state is cast to its type."""
        return {"step": 1, "chunk": self.chunk, "call": self.call}[self.kept]

    def format(self, part: str) -> FloatFormat | None:
        """The type of a part, such as `state`; None where it is not cast."""
        name = getattr(self, part)
        return None if name == SAME else format_of(name)


ROUNDINGS: Registry[Rounding] = Registry(
    "rounding model",
    find=lambda: files_in(tasks_folder() / "rounding", read_rounding),
    listing="statetrack list roundings",
)
"""The rounding models that are shipped, `tasks/rounding/NAME.yaml`."""


def read_rounding(path: Path) -> Rounding:
    """The rounding model that a file holds; `SettingsError` where it is not one."""
    return build(Rounding, read_yaml(path), str(path))


def load_rounding(name: Rounding | str | Path) -> Rounding:
    """A rounding model, that of a name, or that of a file whose name ends in .yaml.

    The name of a type stands for a state that is cast to it after each step, all else in float64.
    """
    if isinstance(name, Rounding):
        return name
    text = str(name)
    if isinstance(name, Path) or text.endswith((".yaml", ".yml")):
        return read_rounding(Path(name))
    if text not in ROUNDINGS and (text in FORMATS or _WRITTEN.fullmatch(text)):
        return Rounding(title=f"a state in {text}", state=text, accumulation="float64")
    return ROUNDINGS[text]
