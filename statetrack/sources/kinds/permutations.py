"""A group given by generators: permutations with names."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from statetrack.errors import TaskError
from statetrack.sources.automaton import Automaton
from statetrack.sources.groups import (
    Permutation,
    cycle_name,
    generated,
    product_table,
    read_permutation,
)
from statetrack.sources.kinds import KINDS, argument

MOST_POINTS: Final = 64
"""Points that are permuted."""


@KINDS.register("permutations")
def permutations(
    *,
    points: Annotated[int, argument("how many points are permuted", min=2, max=MOST_POINTS)],
    generators: Annotated[
        dict[str, str | list[int]],
        argument("the symbols: a name and a permutation for each, as cycles or as all images"),
        Field(min_length=1),
    ],
    image_of: Annotated[
        int | None,
        argument("the label is where this point goes; left out, it is the whole element", min=1),
    ] = None,
) -> Automaton:
    """The product of the permutations so far, in the group that they generate.

    y_t = y_(t-1) * x_t with (p * q)(i) = p(q(i)); elements in the order of their images. With
    `image_of: i` the label is y_t(i) while the states stay the elements: the newest permutation
    moves first, so that the place of one point alone does not say where it goes next. Without a
    file: `permutations:(1 2 3),(1 2)`.
    """
    inputs = [_read(name, written, points) for name, written in generators.items()]
    elements = generated(inputs)
    names = [cycle_name(element) for element in elements]
    table = product_table(elements, inputs)
    if image_of is None:
        return Automaton(table, symbols=list(generators), states=names)
    if image_of > points:
        raise TaskError(f"image_of: {image_of} is not one of the points 1 to {points}")
    return Automaton(
        table,
        [element[image_of - 1] for element in elements],
        symbols=list(generators),
        states=names,
        labels=[str(point + 1) for point in range(points)],
    )


def _read(name: str, written: str | list[int], points: int) -> Permutation:
    try:
        return read_permutation(written, points)
    except TaskError as wrong:
        raise TaskError(f"generators.{name}: {wrong}") from None
