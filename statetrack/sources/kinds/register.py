"""A register: it keeps the value that was last written."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from statetrack.sources.automaton import Automaton
from statetrack.sources.kinds import KINDS, argument


@KINDS.register("register")
def register(
    *,
    values: Annotated[
        list[str],
        argument("what can be written; the first is there at the start"),
        Field(min_length=2),
    ],
    keep: Annotated[
        float,
        argument("the chance of `keep`; writing the values shares what is left", min=0, max=0.999),
    ] = 0.5,
) -> Automaton:
    """The value last written: `=x` writes x, `keep` changes nothing.

    With two values this is the flip-flop of Krohn and Rhodes 1965,
    doi:10.1090/S0002-9947-1965-0188316-1, and with any number that of Liu et al. 2022,
    arXiv 2210.10749. The kind `flip-flop` is the same memory inside a language of instructions.
    """
    count = len(values)
    writing = (1 - keep) / count
    return Automaton(
        [[state, *range(count)] for state in range(count)],
        symbols=["keep", *(f"={value}" for value in values)],
        states=values,
        weights=[[keep, *[writing] * count]] * count,
    )
