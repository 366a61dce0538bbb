"""The word problem of a group by name: the product of the elements so far."""

from __future__ import annotations

from typing import Annotated

from statetrack.sources.automaton import Automaton
from statetrack.sources.groups import cycle_name, generated, product_table
from statetrack.sources.kinds import KINDS, argument
from statetrack.sources.named_groups import ALPHABETS, FAMILIES, Alphabet, alphabet_of, named_group


@KINDS.register("word-problem")
def word_problem(
    *,
    group: Annotated[str, argument(f"the group: {FAMILIES}")],
    generators: Annotated[Alphabet, argument(ALPHABETS)] = "few",
    points: Annotated[
        int | None,
        argument("how many points it moves, for a group with several actions", min=2),
    ] = None,
) -> Automaton:
    """The product of the permutations so far: y_t = y_(t-1) * x_t with (p * q)(i) = p(q(i)).

    The states are all elements, in the order of their images; at most 5,040.
    """
    named = named_group(group, points)
    symbols = alphabet_of(named, generators)
    elements = generated(list(named.generators.values()))
    return Automaton(
        product_table(elements, list(symbols.values())),
        symbols=list(symbols),
        states=[cycle_name(element) for element in elements],
    )
