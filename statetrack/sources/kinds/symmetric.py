"""The symmetric group S_n: all permutations of n points."""

from __future__ import annotations

from typing import Annotated

from statetrack.sources.automaton import Automaton
from statetrack.sources.groups import all_permutations, chosen_generators, word_problem
from statetrack.sources.kinds import KINDS, Names, argument


@KINDS.register("symmetric")
def symmetric(
    *,
    n: Annotated[int, argument("how many points are permuted", min=2, max=7)],
    generators: Annotated[
        str | Names,
        argument(
            "the symbols: `all` elements; the identity and the `swaps`; `swaps-and-3-cycles`; "
            "`at-most-4-moved`, or another number: the elements that move so few points; "
            "or a list of permutations"
        ),
    ] = "all",
) -> Automaton:
    """The word problem of S_n: the product of the permutations so far.

    y_t = y_(t-1) * x_t with (p * q)(i) = p(q(i)); elements in the order of their images, the
    identity first (Merrill, Petty and Sabharwal 2024, arXiv 2404.08819). Alphabets of the elements
    that move few points are those of Siems et al. 2025, arXiv 2502.10297: `swaps` are those that
    move at most 2, `swaps-and-3-cycles` at most 3.
    """
    elements = all_permutations(n)
    most_moved = {"all": n, "swaps": 2, "swaps-and-3-cycles": min(n, 3)}
    return word_problem(elements, chosen_generators(elements, generators, most_moved))
