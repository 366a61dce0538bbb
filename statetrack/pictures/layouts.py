"""Positions of the nodes of a graph, found by a deterministic search.

Distances between nodes in the plane are fitted to distances along edges (stress majorisation,
Gansner, Koren and North 2004, doi:10.1007/978-3-540-31843-9_25), from several initial layouts.
For each given cycle, further layouts have the cycle on the outside and each other node at the mean
of its neighbours (Tutte 1963, doi:10.1112/plms/s3-13.1.743). The layout with the fewest crossings
is taken.

Letters: S nodes, E edges.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from statetrack.sources import Booleans, Floats, Integers

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
    wanted = _distances(joined)
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
    """Those of which no two nodes are at one place, scaled."""
    return (_spaced(each) for each in candidates if _closest(each) > SAME_PLACE)


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


def _spaced(places: Floats) -> Floats:
    """The layout scaled up until no two nodes are closer than `CLOSEST`."""
    spaced: Floats = places * max(1.0, CLOSEST / _closest(places))
    return spaced


def _closest(places: Floats) -> float:
    """The least distance of two nodes."""
    apart = np.linalg.norm(places[:, None] - places[None], axis=-1)
    np.fill_diagonal(apart, np.inf)
    return float(apart.min())


def _distances(joined: Booleans) -> Floats:
    """The number of edges on a shortest path between every two nodes, `[S, S]`."""
    num_nodes = len(joined)
    distances = np.full((num_nodes, num_nodes), np.inf)
    reached = np.eye(num_nodes, dtype=bool)
    for step in range(num_nodes):
        distances[reached & np.isinf(distances)] = step
        reached = (reached.astype(np.float64) @ (joined | np.eye(num_nodes, dtype=bool))) > 0
    assert np.isfinite(distances).all(), "the graph is not connected"
    return distances


def _fitted(places: Floats, wanted: Floats) -> Floats:
    """Positions moved until their distances are close to the wanted ones, near pairs first."""
    num_nodes = len(places)
    weights = 1 / np.maximum(wanted, 1) ** 2
    np.fill_diagonal(weights, 0)
    laplacian = np.diag(weights.sum(axis=1)) - weights
    inverse = np.linalg.inv(laplacian + np.ones((num_nodes, num_nodes)) / num_nodes)
    for _ in range(ROUNDS):
        apart = np.linalg.norm(places[:, None] - places[None], axis=-1)
        pull = -weights * wanted / np.maximum(apart, 1e-9)
        np.fill_diagonal(pull, 0)
        np.fill_diagonal(pull, -pull.sum(axis=1))
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
    crossings = _tangles(places, pairs)
    spread = float(np.prod(np.ptp(places, axis=0) + 1)) / len(places)
    excess = SPREAD * max(0.0, np.log2(spread / ENOUGH))
    return round(float(crossings + excess), 6), round(float(lengths.sum() + lengths.std()), 6)


def _tangles(places: Floats, pairs: Integers) -> int:
    """Crossings, and edges over nodes."""
    return _crossings(places, pairs) + 2 * _edges_over_nodes(places, pairs)


def _crossings(places: Floats, pairs: Integers) -> int:
    """The number of crossing pairs of edges without a common end."""
    return int(_crossing(places, pairs, pairs).sum()) // 2


def _crossing(places: Floats, pairs: Integers, others: Integers) -> Booleans:
    """Which edges cross which others, without a common end."""
    a, b = places[pairs[:, 0], None], places[pairs[:, 1], None]
    c, d = places[None, others[:, 0]], places[None, others[:, 1]]

    def side(start: Floats, end: Floats, point: Floats) -> Floats:
        ahead, beside = end - start, point - start
        turned: Floats = ahead[..., 0] * beside[..., 1] - ahead[..., 1] * beside[..., 0]
        return turned

    apart = (side(a, b, c) * side(a, b, d) < -1e-9) & (side(c, d, a) * side(c, d, b) < -1e-9)
    first, second = pairs[:, None, :], others[None]
    common = (first == second).any(axis=2) | (first == second[..., ::-1]).any(axis=2)
    found: Booleans = apart & ~common
    return found


def _edges_over_nodes(places: Floats, pairs: Integers) -> int:
    """How many times an edge passes too near a node that is not its end."""
    return int(_near(places, pairs).sum())


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
