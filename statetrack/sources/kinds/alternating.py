"""The alternating group A_n: the even permutations of n points."""

from __future__ import annotations

from typing import Annotated

from statetrack.errors import TaskError
from statetrack.sources.automaton import Automaton
from statetrack.sources.groups import (
    all_permutations,
    chosen_generators,
    cycle_name,
    is_even,
    word_problem,
)
from statetrack.sources.kinds import KINDS, Names, argument


@KINDS.register("alternating")
def alternating(
    *,
    n: Annotated[int, argument("how many points are permuted", min=3, max=7)],
    generators: Annotated[
        str | Names,
        argument(
            "the symbols: `all` elements; the identity and the `3-cycles`; `at-most-4-moved`, or "
            "another number: the elements that move so few points; or a list of permutations"
        ),
    ] = "all",
) -> Automaton:
    """The word problem of A_n: the product of the even permutations so far.

    Products and order are those of S_n (Merrill, Petty and Sabharwal 2024, arXiv 2404.08819).
    """
    elements = [each for each in all_permutations(n) if is_even(each)]
    inputs = chosen_generators(elements, generators, {"all": n, "3-cycles": 3})
    for each in inputs:
        if not is_even(each):
            raise TaskError(f"generators: {cycle_name(each)} is odd: it is not in A_{n}")
    return word_problem(elements, inputs)
