"""A Cayley graph: a node for every element of a group, a colour for every generator."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from statetrack.pictures._bezier import FINE, Bezier
from statetrack.pictures._canvas import PALETTE, Canvas
from statetrack.pictures.drawn import Drawn, group_of
from statetrack.pictures.layouts import layout
from statetrack.sources.arrays import Floats, Integers

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_GENERATORS = len(PALETTE)
NAME, LEGEND = 8.0, 9.0
GAP = 24.0
"""The free length between two neighbouring nodes."""


def cayley_graph(drawn: Drawn, most: int) -> Figure:
    """The graph of the group that the symbols generate, of at most `most` elements."""
    elements = group_of(drawn.delta, most)
    assert elements is not None, "the group is too large"
    table = np.stack([_numbers(elements, action) for action in drawn.delta.T], axis=1)  # [N, V]
    names = _names(drawn, elements, table)
    generators = _generators(table, drawn.symbols)
    canvas = Canvas()
    radius = max(9.0, max(canvas.size(name, NAME)[0] for name in names) / 2 + 4)
    edges = np.zeros((len(elements),) * 2, bool)
    for action, _ in generators:
        edges[np.arange(len(elements)), action] = True
    places = (2 * radius + GAP) * layout(edges, 0, _rims([action for action, _ in generators]))
    for (action, _), colour in zip(generators, PALETTE, strict=False):
        _draw_generator(canvas, action, places, radius, colour)
    for place, name in zip(places, names, strict=True):
        canvas.circle(place, radius)
        canvas.text(name, place, NAME)
    canvas.circle(places[0], radius - 2.5)
    canvas.text(names[0], places[0], NAME)
    _draw_legend(canvas, [text for _, text in generators], places, radius)
    idle = [drawn.symbols[place] for place in np.flatnonzero(table[0] == 0)]
    caption = [drawn.title, "double ring: the start, which is the identity"]
    if idle:
        caption.append(f"the identity: {', '.join(idle)}")
    canvas.write_caption(caption)
    return canvas.figure()


def num_generators(drawn: Drawn) -> int:
    """The number of colours: symbols with equal or inverse actions share one."""
    return len(_generators(drawn.delta, drawn.symbols))


def degree(drawn: Drawn) -> int:
    """The number of lines at a node: one for each generator of order 2, two for any other."""
    twice = [action[action] for action, _ in _generators(drawn.delta, drawn.symbols)]
    return sum(1 if (each == np.arange(len(each))).all() else 2 for each in twice)


def _numbers(elements: Integers, action: Integers) -> Integers:
    """The index of every element times an action, `[N]`."""
    known = {tuple(element): number for number, element in enumerate(elements.tolist())}
    return np.array([known[tuple(action[element].tolist())] for element in elements])


def _names(drawn: Drawn, elements: Integers, table: Integers) -> list[str]:
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


def _generators(table: Integers, symbols: Sequence[str]) -> list[tuple[Integers, str]]:
    """The distinct actions, with the symbols of each and of its inverse; not the identity."""
    found: list[tuple[Integers, list[str], list[str]]] = []
    stays = np.arange(len(table))
    for action, symbol in zip(table.T, symbols, strict=True):
        if (action == stays).all():
            continue
        for known, same, back in found:
            if (action == known).all():
                same.append(symbol)
                break
            if (known[action] == stays).all():
                back.append(symbol)
                break
        else:
            found.append((action, [symbol], []))
    return [
        (action, ", ".join(same) + (f" (back: {', '.join(back)})" if back else ""))
        for action, same, back in found
    ]


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


def _draw_generator(
    canvas: Canvas, action: Integers, places: Floats, radius: float, colour: str
) -> None:
    """Arrows, or plain lines for a generator of order 2."""
    twice_back = bool((action[action] == np.arange(len(action))).all())
    for source, target in enumerate(action):
        if twice_back and source > target:
            continue
        a, b = places[source], places[target]
        others = np.delete(places, [source, target], axis=0)
        right = np.array([b[1] - a[1], a[0] - b[0]])
        choices = [
            Bezier(np.array([a, (a + b) / 2 + bend * right, b]))
            for bend in (0.0, 0.15, -0.15, 0.3, -0.3)
        ]
        curve = max(choices, key=lambda one: _clearance(one, others, radius))
        kept = curve.outside(a, b, radius)
        if twice_back:
            canvas.line(kept, colour)
        else:
            canvas.arrow(kept, colour)


def _clearance(curve: Bezier, others: Floats, radius: float) -> float:
    gaps = np.linalg.norm(curve.at(FINE[::8])[:, None] - others[None], axis=-1)
    return min(round(float(gaps.min(initial=np.inf)) - radius, 6), 2.0)


def _draw_legend(canvas: Canvas, texts: Sequence[str], places: Floats, radius: float) -> None:
    """A line of each colour with its symbols, to the right of the graph."""
    left = float(places[:, 0].max()) + radius + 20
    middle = float(places[:, 1].max() + places[:, 1].min()) / 2
    for number, (text, colour) in enumerate(zip(texts, PALETTE, strict=False)):
        height = middle + 16 * ((len(texts) - 1) / 2 - number)
        ends = np.array([[left, height], [left + 22, height]])
        canvas.line(Bezier(ends), colour)
        canvas.text(text, np.array([left + 28 + canvas.size(text, LEGEND)[0] / 2, height]), LEGEND)
