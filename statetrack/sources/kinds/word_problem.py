"""The word problem of a group by name: the product of the elements so far."""

from __future__ import annotations

from typing import Annotated

from statetrack.errors import TaskError
from statetrack.sources.automaton import Automaton
from statetrack.sources.groups import cycle_name, generated, product_table
from statetrack.sources.kinds import KINDS, argument
from statetrack.sources.named_groups import ALPHABETS, FAMILIES, Alphabet, alphabet_of, named_group
from statetrack.text import LONGEST_NAME


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

    The states are all elements, in the order of their images; at most 5,040. They are named by
    their cycles: a group is refused where one of these names has more than 1,000 characters.
    """
    named = named_group(group, points)
    symbols = alphabet_of(named, generators)
    elements = generated(list(named.generators.values()))
    names = [cycle_name(element) for element in elements]
    longest = max(map(len, names))
    if longest > LONGEST_NAME:
        same = named.order == named.points  # each element takes point 1 to a point of its own
        raise TaskError(
            f"group: names of elements of {group}, by their cycles, have up to {longest:,} "
            f"characters, and {LONGEST_NAME:,} are the most: `point:group={group}` "
            f"{'is the same machine' if same else 'follows one point instead'}"
        )
    return Automaton(
        product_table(elements, list(symbols.values())), symbols=list(symbols), states=names
    )
