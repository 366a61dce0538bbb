"""Parts of a set under maps: orbits of permutations, and strong components of any maps.

Letters: N points, K maps.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from statetrack.sources import Integers


def orbits(permutations: Iterable[Integers], num_points: int) -> Integers:
    """The orbit of every point under permutations `[N]`, as its smallest member: `[N]`."""
    lowest = np.arange(num_points)
    maps = list(permutations)
    while True:
        lower = lowest
        for permutation in maps:
            lower = _lowest_on_cycles(lower, permutation)
        if (lower == lowest).all():
            return lowest
        lowest = lower


def _lowest_on_cycles(values: Integers, permutation: Integers) -> Integers:
    """The lowest value on every point's cycle, by doubling the distance looked ahead."""
    jump = permutation
    while True:
        lower = np.minimum(values, values[jump])
        if (lower[permutation] == lower).all():
            return lower
        values, jump = lower, jump[jump]


def strong_components(successors: Integers) -> Integers:
    """The strong component of every point, `[N]`, by Tarjan's algorithm (1972).

    `successors [N, K]` are the points that K maps take each point to. Components are numbered
    from 0, each after all that it leads to.
    """
    edges = successors.tolist()
    num_points = len(edges)
    component = [-1] * num_points
    found = [-1] * num_points  # when a point was found first
    lowest = [0] * num_points  # the earliest point still open that it leads to
    opened: list[int] = []
    num_found = num_components = 0
    for root in range(num_points):
        if found[root] >= 0:
            continue
        path = [(root, iter(edges[root]))]
        found[root] = lowest[root] = num_found
        num_found += 1
        opened.append(root)
        while path:
            point, targets = path[-1]
            for target in targets:
                if found[target] < 0:
                    found[target] = lowest[target] = num_found
                    num_found += 1
                    opened.append(target)
                    path.append((target, iter(edges[target])))
                    break
                if component[target] < 0 and found[target] < lowest[point]:
                    lowest[point] = found[target]
            else:
                path.pop()
                if path:
                    parent = path[-1][0]
                    lowest[parent] = min(lowest[parent], lowest[point])
                if lowest[point] == found[point]:
                    while component[point] < 0:
                        component[opened.pop()] = num_components
                    num_components += 1
    return np.array(component, np.int64)
