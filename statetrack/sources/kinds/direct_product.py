"""The direct product: automata side by side."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from statetrack.sources.automaton import Automaton
from statetrack.sources.derived import interleave, product
from statetrack.sources.kinds import KINDS, argument, build_automaton


@KINDS.register("direct-product")
def direct_product(
    *,
    factors: Annotated[
        list[dict[str, Any]],
        argument("two or more automata, each with its kind and arguments"),
        Field(min_length=2),
    ],
    inputs: Annotated[
        Literal["together", "in-turn"],
        argument("together: a symbol is a tuple, one part for each; in-turn: it is meant for one"),
    ] = "together",
) -> Automaton:
    """Automata side by side; the label is the tuple of their labels. For groups, their product."""
    automata = [build_automaton(factor, f"factors.{place}") for place, factor in enumerate(factors)]
    return {"together": product, "in-turn": interleave}[inputs](*automata)
