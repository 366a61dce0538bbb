"""Groups of permutations, and the word problem as an automaton.

A permutation of n points is the tuple of their images, counted from 0. The product is
(p * q)(i) = p(q(i)): the right factor moves first. The word problem asks for the product of the
symbols so far, y_t = y_(t-1) * x_t, and begins with the identity. Elements are ordered as tuples,
so the identity comes first (Merrill, Petty and Sabharwal 2024, arXiv 2404.08819, number the
elements of S_n and A_n in the same way).

The word problem of a group of permutations names each label by its cycles. Written as the images
p(1) ... p(n), a label is an arrangement of n points in n places; after a symbol that multiplies by
x from the right, place i holds what was in place x(i). So a program with one variable for each
place, and an assignment for each symbol, keeps the state.

Letters: S states, V symbols, n points.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from statetrack.errors import TaskError, nearest_or_known
from statetrack.sources.arrays import Integers
from statetrack.sources.automaton import MOST_TRANSITIONS, Automaton
from statetrack.sources.graphs import reachable

Permutation = tuple[int, ...]

MOST_ELEMENTS = 5040


def multiply(left: Permutation, right: Permutation) -> Permutation:
    """The product: first `right`, then `left`."""
    return tuple(left[image] for image in right)


def all_permutations(points: int) -> list[Permutation]:
    """S_n in order."""
    return list(itertools.permutations(range(points)))


def is_even(permutation: Permutation) -> bool:
    """Whether it is a product of an even number of swaps."""
    return sum(len(cycle) - 1 for cycle in cycles(permutation)) % 2 == 0


def cycles(permutation: Permutation) -> list[list[int]]:
    """The cycles of two points or more, each from its smallest point on."""
    seen: set[int] = set()
    found: list[list[int]] = []
    for first in range(len(permutation)):
        cycle: list[int] = []
        point = first
        while point not in seen:
            seen.add(point)
            cycle.append(point)
            point = permutation[point]
        if len(cycle) > 1:
            found.append(cycle)
    return found


def cycle_name(permutation: Permutation) -> str:
    """The element in cycle notation, points counted from 1: `(1,2)(3,4)`; the identity is `e`."""
    written = [f"({','.join(str(point + 1) for point in cycle)})" for cycle in cycles(permutation)]
    return "".join(written) or "e"


def as_swaps(name: str) -> list[str]:
    """The fewest swaps whose product a permutation in cycle notation is, as they are written.

    They are as many as its points less its cycles: (1,2,3) = (1,2) (2,3). A swap of i and j is the
    reflection I - 2 v v^T of the points, v = (e_i - e_j) / sqrt 2 (Grazzi et al. 2024,
    arXiv:2411.12537, Figure 3). Raises `TaskError` for what is not in cycle notation.
    """
    points = max((int(number) for number in re.findall("[0-9]+", name)), default=0)
    if not name.startswith(("(", "e")):
        raise TaskError(f"'{name}' is not in cycle notation")
    permutation = read_permutation(name, points)
    pairs = (sorted(pair) for cycle in cycles(permutation) for pair in itertools.pairwise(cycle))
    return [f"({first + 1},{second + 1})" for first, second in pairs]


def generated(generators: Sequence[Permutation]) -> list[Permutation]:
    """The group that permutations generate, in order.

    Raises `TaskError` where it has more than `MOST_ELEMENTS` elements.
    """
    identity = tuple(range(len(generators[0])))
    found = {identity}
    frontier = [identity]
    while frontier:
        products = {multiply(left, right) for left in frontier for right in generators}
        frontier = list(products - found)
        found |= products
        if len(found) > MOST_ELEMENTS:
            raise TaskError(f"the group has more than {MOST_ELEMENTS} elements: too many")
    return sorted(found)


def read_permutation(written: str | list[int], points: int) -> Permutation:
    """A permutation of `points` points, counted from 1.

    `(1 2 3)(4 5)` or `(1,2,3)(4,5)` are cycles, `e` and `()` the identity, `2 3 1 5 4` and the
    list `[2, 3, 1, 5, 4]` the images of all points in order.

    Raises `TaskError` for anything else.
    """
    text = written if isinstance(written, str) else " ".join(map(str, written))
    body = text.strip()
    if body in ("e", "()"):
        return tuple(range(points))
    numbers = r"\s*[0-9]{1,9}(?:[\s,]+[0-9]{1,9})*\s*"
    if re.fullmatch(numbers, body):
        images = [int(number) - 1 for number in re.findall("[0-9]+", body)]
        if sorted(images) != list(range(points)):
            raise TaskError(f"'{text}' does not give each of the points 1 to {points} one image")
        return tuple(images)
    if not re.fullmatch(rf"(?:\({numbers}\)\s*)+", body):
        raise TaskError(f"'{text}' is no permutation: write (1 2)(3 4), or all images: 2 1 4 3")
    permutation = list(range(points))
    used: set[int] = set()
    for inside in re.findall(r"\(([^)]*)\)", body):
        cycle = [int(number) - 1 for number in re.findall("[0-9]+", inside)]
        if len(set(cycle)) < len(cycle) or used & set(cycle):
            raise TaskError(
                f"'{text}' names a point twice: its cycles must be disjoint; commas "
                "stand between permutations"
            )
        if min(cycle) < 0 or max(cycle) >= points:
            hint = ": points are counted from 1" if min(cycle) < 0 else ""
            raise TaskError(f"'{text}' moves a point that is not one of 1 to {points}{hint}")
        used.update(cycle)
        for point, image in zip(cycle, cycle[1:] + cycle[:1], strict=True):
            permutation[point] = image
    return tuple(permutation)


def word_problem(elements: Sequence[Permutation], inputs: Sequence[Permutation]) -> Automaton:
    """The product so far, for all elements of a group in order and those that are symbols.

    Raises `TaskError` where products of the inputs are not all elements.
    """
    return _group_automaton(
        product_table(elements, inputs),
        [cycle_name(element) for element in elements],
        [cycle_name(element) for element in inputs],
    )


def named_word_problem(
    names: Sequence[str],
    times: Callable[[int, int], int],
    generators: Literal["all"] | Sequence[str],
) -> Automaton:
    """The product so far, for a group of named elements: number 0 is the identity.

    Raises `TaskError` for a generator that is no element, and where products of the generators
    are not all elements.
    """
    inputs = list(names) if isinstance(generators, str) else list(generators)
    for name in inputs:
        if name not in names:
            hint = nearest_or_known(name, names)
            raise TaskError(f"generators: there is no element '{name}'.{hint}")
    columns = [names.index(name) for name in inputs]
    table = [[times(element, column) for column in columns] for element in range(len(names))]
    return _group_automaton(np.array(table), names, inputs)


def product_table(elements: Sequence[Permutation], inputs: Sequence[Permutation]) -> Integers:
    """The number of `element * input` among the elements, which are in order: `[S, V]`.

    Raises `TaskError` where the table has more than `MOST_TRANSITIONS` entries.
    """
    if len(elements) * len(inputs) > MOST_TRANSITIONS:
        raise TaskError(
            f"{len(elements)} elements and {len(inputs)} symbols make more than "
            f"{MOST_TRANSITIONS} transitions: choose fewer generators"
        )
    images = np.array(elements, np.uint8 if len(elements[0]) <= 256 else ">u2")  # [S, points]
    keys = _keys(images)
    columns = [np.searchsorted(keys, _keys(images[:, list(element)])) for element in inputs]
    return np.stack(columns, axis=1)


def _keys(images: npt.NDArray[np.unsignedinteger]) -> npt.NDArray[np.uint64 | np.bytes_]:
    """A key for each row, ordered as the rows are: `[S]` from `[S, points]`.

    A number for up to 8 points, which is found faster, and a text of bytes for more.
    """
    num_points = images.shape[1]
    if num_points > 8:
        width = num_points * images.itemsize
        return np.ascontiguousarray(images).view(f"S{width}").ravel()
    padded = np.zeros((len(images), 8), np.uint8)
    padded[:, :num_points] = images + 1
    return padded.view(">u8").ravel().astype(np.uint64)


def _group_automaton(table: Integers, names: Sequence[str], inputs: Sequence[str]) -> Automaton:
    reached = int(reachable(table, 0).sum())
    if reached < len(names):
        raise TaskError(
            f"generators: their products are only {reached} of the group's {len(names)} elements"
        )
    return Automaton(table, symbols=inputs, states=names)


def chosen_generators(
    elements: Sequence[Permutation], chosen: str | Sequence[str], most_moved: Mapping[str, int]
) -> list[Permutation]:
    """Generators of a group, written one by one, or by the name of an alphabet.

    An alphabet has the elements that move few points, the identity among them: `most_moved` says
    how few for names of their own, `at-most-4-moved` says it for any number.

    Raises `TaskError` for what is no permutation, for an unknown name, and for an alphabet that
    would move more points than there are.
    """
    points = len(elements[0])
    if not isinstance(chosen, str):
        try:
            return [read_permutation(each, points) for each in chosen]
        except TaskError as wrong:
            raise TaskError(f"generators: {wrong}") from None
    written = re.fullmatch("at-most-([0-9]{1,9})-moved", chosen)
    if chosen not in most_moved and not written:
        hint = nearest_or_known(chosen, most_moved)
        raise TaskError(
            f"generators: there is no alphabet '{chosen}'.{hint} `at-most-3-moved`, or another "
            "number, stands for the elements that move at most so many points"
        )
    most = int(written[1]) if written else most_moved[chosen]
    if most > points:
        raise TaskError(f"generators: '{chosen}', but there are only {points} points to move")
    return [each for each in elements if sum(map(len, cycles(each))) <= most]


@dataclass(frozen=True)
class Rearranged:
    """A symbol after which place i holds what was in place `places[i]`."""

    places: Permutation


@dataclass(frozen=True)
class Replaced:
    """A symbol after which the places hold `points`, whatever they held before."""

    points: Permutation


@dataclass(frozen=True)
class Arrangements:
    """The labels of an automaton as arrangements of points 0 .. n-1, and what each symbol does."""

    first: Permutation  # before the first symbol
    labels: tuple[Permutation, ...]  # [C]
    symbols: tuple[Rearranged | Replaced, ...]  # [V]


def arrangements_of(automaton: Automaton) -> Arrangements | None:
    """The arrangements that the labels name, or None where they are none.

    None too where a symbol does something else to them in one of the S states: every row of
    `delta` is checked.
    """
    numbers = [int(number) for name in automaton.labels for number in re.findall("[0-9]+", name)]
    num_points = max(numbers, default=0)
    if not 2 <= num_points <= len(automaton.labels) or num_points > 26:
        return None
    try:
        labels = tuple(
            read_permutation(name, num_points) if name.startswith("(") or name == "e" else ()
            for name in automaton.labels
        )
    except TaskError:
        return None
    if () in labels:
        return None
    held = [labels[label] for label in automaton.output.tolist()]  # [S]
    symbols: list[Rearranged | Replaced] = []
    for targets in automaton.delta.T.tolist():
        after = [held[target] for target in targets]
        places = tuple(held[0].index(point) for point in after[0])
        if all(multiply(old, places) == new for old, new in zip(held, after, strict=True)):
            symbols.append(Rearranged(places))
        elif len(set(after)) == 1:
            symbols.append(Replaced(after[0]))
        else:
            return None
    return Arrangements(held[automaton.start], labels, tuple(symbols))
