"""The cyclic group Z_n."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from statetrack.errors import TaskError
from statetrack.sources.automaton import Automaton
from statetrack.sources.kinds import KINDS, argument


@KINDS.register("cyclic")
def cyclic(
    *,
    n: Annotated[int, argument("how many elements the group has", min=2, max=4096)],
    generators: Annotated[
        Literal["all"] | Annotated[list[int], Field(min_length=1)],
        argument("the symbols: all elements, or the exponents of some"),
    ] = "all",
) -> Automaton:
    """The word problem of Z_n, with elements e, a, a^2, ...: exponents add up modulo n."""
    exponents = list(range(n)) if generators == "all" else [each % n for each in generators]
    if np.gcd.reduce([n, *exponents]) != 1:
        raise TaskError(f"generators: their powers are not all of the {n} elements")
    names = ["e", "a", *(f"a^{exponent}" for exponent in range(2, n))]
    return Automaton(
        (np.arange(n)[:, None] + exponents) % n,
        symbols=[names[exponent] for exponent in exponents],
        states=names,
    )
