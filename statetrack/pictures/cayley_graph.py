"""A Cayley graph: a node for every element of a group, a kind of line for every generator."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from statetrack.figures import PALETTE
from statetrack.pictures.canvas import (
    DASHES,
    Canvas,
    Names,
    Room,
    Sample,
    fitting_step,
    line_between,
    ways_to_name,
    write_key,
    write_legend,
)
from statetrack.pictures.layouts import circle, coset_layouts, layout
from statetrack.pictures.machine import (
    DrawnMachine,
    Generator,
    few_generators,
    generators_of,
    group_of,
)
from statetrack.sources import Floats, Integers

MOST_GENERATORS = len(PALETTE)
"""The most kinds of lines that can be told apart."""

NAME = 8.0

LEAST_GAP, GAP, MOST_GAP = 8.0, 24.0, 60.0
"""The free length between two neighbouring nodes: the least, the usual, and the greatest."""


def cayley_graph(drawn: DrawnMachine, room: Room, most: int) -> Canvas:
    """The graph of the group that the symbols generate, of at most `most` elements."""
    group = elements_of(drawn, most)
    generators = few_generators(group.generators)
    places = _places([each.action for each in generators])
    canvas = Canvas()
    ways = list(ways_to_name(canvas, group.names, NAME))
    for named in ways:  # the first for which there is room, else the smallest
        steps = [named.shape.step(places, gap) for gap in (LEAST_GAP, GAP, MOST_GAP)]
        step, fits = fitting_step(places, named.shape, steps, room)
        if fits:
            break
    _draw_graph(canvas, generators, step * places, named)
    write_legend(canvas, [_sample(each, place) for place, each in enumerate(generators)], room)
    if named.key:
        write_key(canvas, list(zip(named.texts, _on_one_line(group.names), strict=True)), room)
    canvas.write_caption(
        ["double ring: the start, which is the identity", *group.said_of_symbols(generators)]
    )
    return canvas


class Elements:
    """The elements of a group with their names, and its generators."""

    def __init__(self, drawn: DrawnMachine, elements: Integers) -> None:
        table = np.stack([_numbers(elements, action) for action in drawn.delta.T], axis=1)
        self.table = table  # [N, V]
        self.symbols = drawn.symbols
        self.names = _names(drawn, elements, table)
        self.generators = generators_of(table, drawn.symbols)

    def said_of_symbols(self, shown: Sequence[Generator]) -> list[str]:
        """Which symbols have no lines of their own, and what they do."""
        said = []
        idle = [self.symbols[place] for place in np.flatnonzero(self.table[0] == 0)]
        if idle:
            said.append(f"no move: {', '.join(idle)}")
        drawn = {symbol for each in shown for symbol in (*each.symbols, *each.back)}
        left = [symbol for symbol in self.symbols if symbol not in drawn and symbol not in idle]
        if not left:
            return said
        said.append(
            f"lines: {len(drawn)} of {len(self.symbols)} symbols, which generate the group; "
            "the others are products of them"
        )
        reached = {symbol: self.names[self.table[0, x]] for x, symbol in enumerate(self.symbols)}
        if all(reached[symbol] == symbol for symbol in left):
            said.append("from the identity, every symbol leads to the node of its name")
        return said


def elements_of(drawn: DrawnMachine, most: int) -> Elements:
    """The elements of the group of a machine, of at most `most`."""
    elements = group_of(drawn.delta, most)
    assert elements is not None, "the group is too large"
    return Elements(drawn, elements)


def _numbers(elements: Integers, action: Integers) -> Integers:
    """The index of every element times an action, `[N]`."""
    known = {tuple(element): number for number, element in enumerate(elements.tolist())}
    return np.array([known[tuple(action[element].tolist())] for element in elements])


def _names(drawn: DrawnMachine, elements: Integers, table: Integers) -> list[str]:
    """The state reached from the start, with its label; a shortest word where states repeat."""
    reached = elements[:, drawn.start]
    if len(set(reached.tolist())) == len(elements):
        labels = drawn.notes
        named = [
            name if labels is None else f"{name}\n{labels[state]}"
            for state, name in enumerate(drawn.states)
        ]
        return [named[state] for state in reached]
    names = ["e"] + [""] * (len(elements) - 1)
    for number, row in enumerate(table):
        for symbol, after in enumerate(row):
            if after and not names[after]:
                names[after] = f"{names[number]} {drawn.symbols[symbol]}".removeprefix("e ")
    return names


def _on_one_line(names: Sequence[str]) -> list[str]:
    """Names with their labels in brackets."""
    parts = (name.partition("\n") for name in names)
    return [f"{first} [{label}]" if label else first for first, _, label in parts]


def _places(actions: Sequence[Integers]) -> Floats:
    """Positions of the elements: a ring for one generator, else the best of many layouts."""
    num_elements = len(actions[0])
    if len(actions) == 1:
        order = [0]
        while len(order) < num_elements:
            order.append(int(actions[0][order[-1]]))
        return circle(np.array(order))
    edges = np.zeros((num_elements, num_elements), bool)
    for action in actions:
        edges[np.arange(num_elements), action] = True
    return layout(edges, 0, _rims(actions), coset_layouts(actions))


def _rims(actions: Sequence[Integers]) -> list[list[int]]:
    """Cycles through the identity: powers of one generator, and of two in alternation."""
    ways = [*actions, *(np.argsort(action) for action in actions)]
    rims: dict[frozenset[int], list[int]] = {}
    for first, second in itertools.product(ways, ways):
        rim = [0]
        for action in itertools.cycle((first, second)):
            after = int(action[rim[-1]])
            if after in rim:
                break
            rim.append(after)
        if after == 0 and len(rim) > 2:
            rims.setdefault(frozenset(rim), rim)
    return list(rims.values())


def _sample(generator: Generator, place: int) -> Sample:
    return Sample(generator.text, PALETTE[place], DASHES[place], generator.heads)


def _draw_graph(
    canvas: Canvas, generators: Sequence[Generator], places: Floats, named: Names
) -> None:
    """Arrows in the direction of a generator; plain lines for one of order 2."""
    bends = (0.0, 0.15, -0.15, 0.3, -0.3)
    for number, generator in enumerate(generators):
        for source, target in enumerate(generator.action.tolist()):
            if generator.order > 2 or source <= target:
                line = line_between(places, source, target, named.shape, bends, 3.0)
                canvas.line(line, PALETTE[number], DASHES[number], generator.heads)
    for number, (place, name) in enumerate(zip(places, named.texts, strict=True)):
        canvas.node(place, named.shape)
        if number == 0:
            canvas.node(place, named.shape, inset=2.0)
        canvas.text(name, place, NAME)
