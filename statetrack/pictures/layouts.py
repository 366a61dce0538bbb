"""Positions of the nodes of a graph, found by a deterministic search.

Distances between nodes in the plane are fitted to distances along edges (stress majorisation,
Gansner, Koren and North 2004, doi:10.1007/978-3-540-31843-9_25), from several initial layouts.
For each given cycle, further layouts have the cycle on the outside and each other node at the mean
of its neighbours (Tutte 1963, doi:10.1112/plms/s3-13.1.743). The layout with the fewest crossings
is taken.

Of a Cayley graph there are layouts in which the cosets of a subgroup are alike: each, such as a
cycle of one generator, is drawn in the same shape; cycles are around each other, and cosets beside
each other, where the other generators lead from one to another.

Letters: S nodes, E edges; of a group N elements, C cosets, H elements of each.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from scipy.sparse.csgraph import shortest_path

from statetrack.sources import Booleans, BreadthFirst, Floats, Integers

ROUNDS, SETTLED = 400, 1e-5
"""The most steps of the fit, and the move below which it has converged."""

BEGINNINGS, FEW, LARGE = 12, 16, 40
"""The number of random initial layouts; the most nodes for which orders on a circle are tried; and
the nodes from which on few initial layouts are tried."""

CLOSEST, SAME_PLACE = 0.9, 0.05
"""The least distance of two nodes, in steps, and the distance at which they coincide.

Where two nodes are the mean of the same neighbours, Tutte's layout has both at one place: that has
few crossings, and cannot be drawn.
"""

EVENNESS = (0.0, 0.3, 0.6, 1.0)
"""How far nodes inside a rim are moved outwards, so that they are not crowded in the middle."""

ENOUGH, SPREAD = 4.0, 7.0
"""The area for each node that a layout may have, and to how many crossings twice as much is equal.

A layout without crossings in which some nodes are far from all others has letters that cannot be
read where all of it is to be seen.
"""

MORE, LONGER = 1.15, 1.9
"""How many more crossings a regular layout may have than another, and how much longer lines."""

ON_A_NODE = 0.3
"""An edge that passes a node closer than this, in steps, counts as a crossing."""


def layout(
    edges: Booleans,
    start: int,
    rims: Sequence[Sequence[int]] = (),
    more: Iterable[Floats] = (),
) -> Floats:
    """Positions `[S, 2]` of the nodes of a connected graph; neighbours are about 1 apart.

    `edges [S, S]` may be directed, `rims` are candidates for the outermost cycle, `more` are
    regular layouts, which are preferred where they are not much worse. The
    layout is rotated so that the start is as far left as possible.
    """
    num_nodes = len(edges)
    if num_nodes == 1:
        return np.zeros((1, 2))
    joined = edges | edges.T
    np.fill_diagonal(joined, False)
    wanted = shortest_path(joined, unweighted=True)
    assert np.isfinite(wanted).all(), "the graph is not connected"
    pairs = np.argwhere(np.triu(joined))
    candidates = list(_candidates(joined, wanted, start))
    for rim in rims:
        candidates += [_within(rim, joined, evenness) for evenness in EVENNESS]

    def rated(places: Floats) -> tuple[float, float]:
        return _badness(places, pairs)

    best = min(_drawable(candidates), key=rated)
    if regular := list(_drawable(more)):
        other = min(regular, key=rated)
        (crossings, length), (found, longer) = rated(best), rated(other)
        if found < crossings or (found <= MORE * crossings and longer < LONGER * length):
            best = other
    return _turned(best, start)


def _drawable(candidates: Iterable[Floats]) -> Iterator[Floats]:
    """Those of which no two nodes are at one place, scaled until none are closer than `CLOSEST`."""
    for places in candidates:
        closest = _closest(places)
        if closest > SAME_PLACE:
            yield places * max(1.0, CLOSEST / closest)


def circle(order: Integers) -> Floats:
    """Positions `[S, 2]` on a circle, in an order `[S]`, with neighbours 1 apart."""
    num_nodes = len(order)
    angles = np.empty(num_nodes)
    angles[order] = np.pi - 2 * np.pi * np.arange(num_nodes) / num_nodes
    radius = 0.5 / np.sin(np.pi / max(num_nodes, 2))
    places: Floats = radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return places


def _candidates(joined: Booleans, wanted: Floats, start: int) -> Iterator[Floats]:
    num_nodes = len(joined)
    pairs = np.argwhere(np.triu(joined))
    generator = np.random.default_rng(0)
    for order in (np.arange(num_nodes), _walk(joined, start)):
        best = _improved(order, pairs) if num_nodes <= FEW else order
        yield circle(best)
        yield _fitted(circle(best), wanted)
    for _ in range(BEGINNINGS if num_nodes < LARGE else 2):
        yield _fitted(generator.normal(size=(num_nodes, 2)), wanted)


def _within(rim: Sequence[int], joined: Booleans, evenness: float) -> Floats:
    """The rim on a circle, and every other node at its neighbours' mean, then moved outwards.

    An evenness of 1 spreads the nodes evenly over the disc, 0 leaves them where they are.
    """
    num_nodes = len(joined)
    outer = np.array(rim)
    inner = np.setdiff1d(np.arange(num_nodes), outer)
    places = np.zeros((num_nodes, 2))
    places[outer] = circle(np.arange(len(rim)))
    if len(inner):
        neighbours = joined.astype(np.float64)
        amid = np.diag(neighbours.sum(axis=1)) - neighbours
        pull = neighbours[np.ix_(inner, outer)] @ places[outer]
        places[inner] = np.linalg.solve(amid[np.ix_(inner, inner)], pull)
    radius = np.round(np.linalg.norm(places, axis=1), 6)
    within = (radius[:, None] > radius[None]).sum(axis=1) + (radius[:, None] == radius).sum(axis=1)
    evened = radius.max() * np.sqrt(within / num_nodes) / np.maximum(radius, 1e-9)
    found: Floats = places * evened[:, None] ** evenness
    return found


def _closest(places: Floats) -> float:
    """The least distance of two nodes."""
    apart = _apart(places)
    np.fill_diagonal(apart, np.inf)
    return float(apart.min())


def _apart(places: Floats) -> Floats:
    """The distances of all nodes, `[S, S]`."""
    x, y = places.T
    along, across = x[:, None] - x, y[:, None] - y
    distances: Floats = np.sqrt(along * along + across * across)
    return distances


def _fitted(places: Floats, wanted: Floats) -> Floats:
    """Positions moved until their distances are close to the wanted ones, near pairs first."""
    num_nodes = len(places)
    weights = 1 / np.maximum(wanted, 1) ** 2
    np.fill_diagonal(weights, 0)
    laplacian = np.diag(weights.sum(axis=1)) - weights
    inverse = np.linalg.inv(laplacian + np.ones((num_nodes, num_nodes)) / num_nodes)
    towards = -weights * wanted
    for _ in range(ROUNDS):
        pull = towards / np.maximum(_apart(places), 1e-9)
        pull.ravel()[:: num_nodes + 1] = -pull.sum(axis=1)
        moved = inverse @ (pull @ places)
        settled = float(np.abs(moved - places).max()) < SETTLED
        places = moved
        if settled:
            break
    return places


def _improved(order: Integers, pairs: Integers) -> Integers:
    """The order on a circle, improved by swaps of two nodes until none improves it."""
    best, badness = order, _badness(circle(order), pairs)
    improving = True
    while improving:
        improving = False
        for first in range(1, len(order)):
            for second in range(first + 1, len(order)):
                other = best.copy()
                other[[first, second]] = other[[second, first]]
                found = _badness(circle(other), pairs)
                if found < badness:
                    best, badness, improving = other, found, True
    return best


def _walk(joined: Booleans, start: int) -> Integers:
    """The nodes in the order of a walk that moves to an unvisited neighbour if there is one."""
    order, waiting = [start], [start]
    while len(order) < len(joined):
        unseen = [int(node) for node in np.flatnonzero(joined[waiting[-1]]) if node not in order]
        if unseen:
            order.append(unseen[0])
            waiting.append(unseen[0])
        else:
            waiting.pop()
    return np.array(order)


def _badness(places: Floats, pairs: Integers) -> tuple[float, float]:
    """Crossings plus edges over nodes plus spread, then the length and inequality of edges."""
    lengths = np.linalg.norm(places[pairs[:, 0]] - places[pairs[:, 1]], axis=1)
    crossings = _crossings(places, pairs) + 2 * int(_near(places, pairs).sum())
    spread = float(np.prod(np.ptp(places, axis=0) + 1)) / len(places)
    excess = SPREAD * max(0.0, np.log2(spread / ENOUGH))
    return round(float(crossings + excess), 6), round(float(lengths.sum() + lengths.std()), 6)


def _crossings(places: Floats, pairs: Integers) -> int:
    """The number of crossing pairs of edges without a common end."""
    a, b = places[pairs[:, 0], None], places[pairs[:, 1], None]
    c, d = places[None, pairs[:, 0]], places[None, pairs[:, 1]]

    def side(start: Floats, end: Floats, point: Floats) -> Floats:
        ahead, beside = end - start, point - start
        turned: Floats = ahead[..., 0] * beside[..., 1] - ahead[..., 1] * beside[..., 0]
        return turned

    apart = (side(a, b, c) * side(a, b, d) < -1e-9) & (side(c, d, a) * side(c, d, b) < -1e-9)
    first, second = pairs[:, None, :], pairs[None]
    common = (first == second).any(axis=2) | (first == second[..., ::-1]).any(axis=2)
    return int((apart & ~common).sum()) // 2


def _near(places: Floats, pairs: Integers) -> Booleans:
    """Which edges pass too near which nodes, `[E, S]`."""
    a, b = places[pairs[:, 0], None], places[pairs[:, 1], None]
    along = ((places - a) * (b - a)).sum(-1) / np.maximum(((b - a) ** 2).sum(-1), 1e-9)
    inside = (along > 0) & (along < 1)
    distance = np.linalg.norm(a + along[..., None] * (b - a) - places, axis=-1)
    ends = np.zeros_like(inside)
    ends[np.arange(len(pairs))[:, None], pairs] = True
    found: Booleans = inside & ~ends & (distance < ON_A_NODE)
    return found


def _turned(places: Floats, start: int) -> Floats:
    """Rotated about the centre so that the start is on its left; a long layout is horizontal."""
    places = places - places.mean(axis=0)
    axes = np.linalg.svd(places, full_matrices=False)
    spread = axes[1]
    if len(places) > 2 and spread[1] < 0.6 * spread[0]:
        turned: Floats = places @ axes[2].T
        sign = -1.0 if turned[start, 0] > 0 else 1.0
        return sign * turned
    x, y = -places[start] / max(float(np.linalg.norm(places[start])), 1e-9)
    if np.hypot(x, y) < 0.5:
        return places
    rotated: Floats = places @ np.array([[x, -y], [y, x]])
    return rotated


MOST_AROUND, MOST_BESIDE = 6, 24
"""The most cycles that are drawn around each other, and cosets beside each other."""

APART = 1.15
"""The distance of two cycles around each other, in steps."""

TURNS = 48
"""The directions that are tried for each coset."""


def coset_layouts(actions: Sequence[Integers]) -> Iterator[Floats]:
    """Candidates for positions `[N, 2]`, for each subgroup that one or two generators make.

    Neighbours are about 1 apart.
    """
    joined = _joined(actions)
    for number in (1, 2):
        for some in itertools.combinations(actions, number):
            cosets = _cosets(some)
            if not 1 < len(cosets) < len(joined) // 2:
                continue
            between = joined[cosets[:, :, None, None], cosets[None, None]].any(axis=(1, 3))
            if number == 1 and len(cosets) <= MOST_AROUND:
                yield _around(cosets, np.asarray(between), joined)
            if 2 < len(cosets) <= MOST_BESIDE:
                yield from _beside(cosets, np.asarray(between), joined)


def _joined(actions: Sequence[Integers]) -> Booleans:
    joined = np.zeros((len(actions[0]),) * 2, bool)
    for action in actions:
        joined[np.arange(len(action)), action] = True
    np.fill_diagonal(joined, False)
    return joined | joined.T


def _cosets(actions: Sequence[Integers]) -> Integers:
    """The cosets of a subgroup, `[C, H]`, each in the order of the same words of its generators.

    For one generator this is the order of its cycle.
    """
    ways = [action.tolist() for action in actions]
    search = BreadthFirst([0], lambda place: enumerate(way[place] for way in ways))
    for _ in search:
        pass
    words = [search.word_to(element) for element in search.nodes]
    left = set(range(len(actions[0])))
    found = []
    while left:
        coset = []
        first = min(left)
        for word in words:
            element = first
            for number in word:
                element = ways[number][element]
            coset.append(element)
        left -= set(coset)
        found.append(coset)
    return np.array(found)


def _around(cosets: Integers, between: Booleans, joined: Booleans) -> Floats:
    """Cycles around each other, that of the identity outermost."""
    number, length = cosets.shape
    order = [0]
    while len(order) < number:
        left = [each for each in range(number) if each not in order]
        near = [each for each in left if between[order[-1], each]]
        order.append((near or [each for each in left if between[order, each].any()])[0])
    unit = circle(np.arange(length))
    smallest = max(float(np.linalg.norm(unit[0])), 0.8)
    places = np.zeros((cosets.size, 2))
    placed = np.zeros(cosets.size, bool)
    for level, coset in enumerate(order):
        radius = smallest + APART * (number - 1 - level)
        shape = unit * radius / max(float(np.linalg.norm(unit[0])), 1e-9)
        _turn(cosets[coset], np.zeros(2), shape, places, placed, joined)
    return places


def _beside(cosets: Integers, between: Booleans, joined: Booleans) -> Iterator[Floats]:
    """Cosets beside each other: as the graph of cosets is laid out, and on a circle."""
    first = cosets[0]
    inside = joined[np.ix_(first, first)]
    is_cycle = bool((inside.sum(axis=1) <= 2).all())
    unit = circle(np.arange(len(first))) if is_cycle else layout(inside, 0)
    unit = unit - unit.mean(axis=0)
    wide = 2 * float(np.linalg.norm(unit, axis=1).max()) + 0.9
    number = len(cosets)
    for centres in (layout(between, 0), circle(np.arange(number))):
        yield _placed(cosets, wide * centres, unit, joined)
    if number > 3:
        middle = np.concatenate([np.zeros((1, 2)), circle(np.arange(number - 1))])
        radius = float(np.linalg.norm(middle[1]))
        yield _placed(cosets, wide * max(1.0, 1 / radius) * middle, unit, joined)


def _placed(cosets: Integers, centres: Floats, unit: Floats, joined: Booleans) -> Floats:
    """All cosets at their centres, each turned and mirrored so that lines to others are short."""
    places = np.zeros((cosets.size, 2))
    for coset, centre in zip(cosets, centres, strict=True):
        places[coset] = centre
    everywhere = np.ones(cosets.size, bool)
    for _ in range(5):
        for coset, centre in zip(cosets, centres, strict=True):
            _turn(coset, centre, unit, places, everywhere, joined)
    return places


def _turn(
    coset: Integers,
    centre: Floats,
    unit: Floats,
    places: Floats,
    placed: Booleans,
    joined: Booleans,
) -> None:
    """Place a coset about its centre so that its lines to what is placed are shortest."""
    edges = joined[coset] & placed
    edges[:, coset] = False
    source, target = np.nonzero(edges)
    angles = 2 * np.pi * np.arange(TURNS) / TURNS
    turned = np.stack([np.cos(angles), -np.sin(angles), np.sin(angles), np.cos(angles)], axis=1)
    shapes = np.stack([unit, unit * (1.0, -1.0)])
    found = np.einsum("tij,mhj->mthi", turned.reshape(-1, 2, 2), shapes).reshape(-1, *unit.shape)
    apart = centre + found[:, source] - places[target]
    cost = (np.linalg.norm(apart, axis=2) ** 2).sum(axis=1).round(6)
    places[coset] = centre + found[int(cost.argmin())]
    placed[coset] = True
