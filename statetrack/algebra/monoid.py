"""The transition monoid: all maps of the states that words make.

Every word maps each state of a machine to a state. These maps, composed in the order in which
words are read, form the transition monoid. That of a smallest machine is the syntactic monoid of
its labels, which determines nearly all that is known of a task's complexity.

A map is a row of S small integers. The product `a b` reads a first: `(a b)[s] = b[a[s]]`.

Letters: N elements, S states, K generators.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from statetrack.algebra.machine import Machine
from statetrack.algebra.maps import Numbers, Permutations, settled_power
from statetrack.algebra.words import ShortestWords
from statetrack.sources import Booleans, Integers, after_each_length, strong_components

MOST_LOCAL = 400
"""Most elements e t e whose orders are compared."""
MOST_WORDS = 2_000
"""Most words that are tried where the monoid is too large to list."""
MOST_STEPS = 2**24
"""Most products that the search for words of one length takes there."""
MOST_ENTRIES = 2**27
"""Most entries of tables that are gone through in all: the running time follows them."""
FIRST_STATES = 8
"""States on which elements are looked at before all others."""

Maps = npt.NDArray[np.unsignedinteger]


@dataclass(frozen=True)
class MonoidBudget:
    """How large a monoid may become before the answer is "too large"."""

    most_elements: int = 50_000
    most_products: int = 400_000
    """Products of an element and a generator, to which the running time is proportional."""
    most_entries: int = 2**26
    """Elements times states, to which the memory is proportional."""
    most_images: int = 500_000
    """Images of the set of all states, where the elements are too many to list."""


@dataclass(frozen=True, eq=False)
class Monoid:
    """All products of some maps, the identity first."""

    elements: Maps  # [N, S]
    generators: Maps  # [K, S]: none of them is a product of those before it

    def __len__(self) -> int:
        return len(self.elements)

    def times(self, actions: Maps) -> Integers:
        """The number of every element followed by every action: `[N, number of actions]`.

        The actions are elements too.
        """
        reached = self.elements[:, self._numbers.base]
        products = [self._numbers.of(action[reached]) for action in actions]
        return np.stack(products, axis=1) if products else np.zeros((len(self), 0), np.int64)

    @cached_property
    def _numbers(self) -> Numbers:
        return Numbers.of_maps(self.elements)

    @cached_property
    def idempotents(self) -> Integers:
        """The elements e with e e = e, as numbers."""
        found = np.arange(len(self))
        for states in (slice(FIRST_STATES), slice(None)):  # few elements are left for all states
            maps = self.elements[found]
            reached = maps[:, states].astype(np.int64)
            found = found[(np.take_along_axis(maps, reached, axis=1) == reached).all(axis=1)]
        return found

    @cached_property
    def is_group(self) -> bool:
        """Whether every element has an inverse."""
        return len(self.idempotents) == 1

    @cached_property
    def j_classes(self) -> Integers:
        """The J-class of every element, `[N]`: those that reach each other by products.

        In a finite monoid these are the D-classes.
        """
        if self.is_group:
            return np.zeros(len(self), np.int64)
        return strong_components(self.neighbours)

    @cached_property
    def neighbours(self) -> Integers:
        """Every element with every generator behind it, and with every one before it: `[N, 2K]`."""
        return np.column_stack([self.times(self.generators), *self._before()])

    @cached_property
    def l_trivial(self) -> bool:
        """Whether no two elements reach each other by products with something before them."""
        if self.is_group:
            return len(self) == 1
        classes = strong_components(np.column_stack(self._before()))
        return int(classes.max()) + 1 == len(self)

    def _before(self) -> list[Integers]:
        """Every element with every generator before it, generator by generator."""
        return [
            self._numbers.of(self.elements[:, generator[self._numbers.base]])
            for generator in self.generators
        ]

    @cached_property
    def frames(self) -> Integers:
        """A number for every element, `[N]`, equal where image and kernel are.

        Among the elements with the image and the kernel of an idempotent e, this is e's H-class:
        the largest group that has e as its identity.
        """
        maps = self.elements.astype(np.int64)
        images = np.zeros(maps.shape, bool)
        np.put_along_axis(images, maps, True, axis=1)
        first = np.zeros_like(self.elements)  # the first state that goes to each place
        for state in reversed(range(maps.shape[1])):
            first[np.arange(len(maps)), maps[:, state]] = state
        kernels = np.take_along_axis(first, maps, axis=1)
        both = np.column_stack([np.packbits(images, axis=1), kernels.view(np.uint8)])
        seen: dict[bytes, int] = {}
        return np.array([seen.setdefault(key, len(seen)) for key in _keys(both)])

    def maximal_subgroups(self) -> list[tuple[Integers, Permutations]]:
        """One maximal subgroup for each regular J-class: the states it permutes, and how.

        The group at an idempotent e permutes the states that e leaves where they are, `[P]`. Its
        elements are permutations of these, numbered from 0: `[order, P]`, the identity first.
        """
        if self.is_group:
            return [(np.arange(self.elements.shape[1], dtype=np.int64), self.elements)]
        found: list[tuple[Integers, Permutations]] = []
        for idempotent in self.regular_idempotents.tolist():
            points = np.unique(self.elements[idempotent]).astype(np.int64)
            members = np.flatnonzero(self.frames == self.frames[idempotent])
            members = np.concatenate([[idempotent], members[members != idempotent]])
            found.append((points, np.searchsorted(points, self.elements[np.ix_(members, points)])))
        return found

    @cached_property
    def regular_idempotents(self) -> Integers:
        """One idempotent of each J-class that has some."""
        _, first = np.unique(self.j_classes[self.idempotents], return_index=True)
        return self.idempotents[first]

    def order_at(self, idempotent: int) -> int:
        """The order of the largest group that has this idempotent as its identity."""
        return int((self.frames == self.frames[idempotent]).sum())


def transition_monoid(actions: Integers, budget: MonoidBudget) -> Monoid | None:
    """The monoid that maps `[K, S]` generate; None where it does not fit into the budget."""
    num_states = actions.shape[1]
    maps = actions.astype(np.min_scalar_type(num_states - 1))
    closure = _Closure(maps.dtype, num_states, budget)
    for action in maps:
        if not closure.add(action):
            return None
    generators = np.array(closure.generators, maps.dtype).reshape(-1, num_states)
    return Monoid(np.concatenate(closure.blocks), generators)


class _Closure:
    """Maps closed under products with generators, which are added one by one."""

    def __init__(self, dtype: np.dtype, num_states: int, budget: MonoidBudget) -> None:
        identity = np.arange(num_states, dtype=dtype)[None]
        self.number = {identity.tobytes(): 0}
        self.blocks = [identity]
        self.generators: list[Maps] = []
        self._most = min(budget.most_elements, budget.most_entries // num_states)
        self._most_products = budget.most_products

    def add(self, generator: Maps) -> bool:
        """Close under one more generator; False where that is too much."""
        if generator.tobytes() in self.number:
            return True
        self.generators.append(generator)
        fresh = self._fresh(np.concatenate(self.blocks), [generator])
        while fresh is not None and len(fresh):
            self.blocks.append(fresh)
            fresh = self._fresh(fresh, self.generators)
        return fresh is not None

    def _fresh(self, block: Maps, generators: Sequence[Maps]) -> Maps | None:
        """The products of a block and generators that were not there yet."""
        found: list[Maps] = []
        for generator in generators:
            products = generator[block]
            places = []
            for place, key in enumerate(_keys(products)):
                if key not in self.number:
                    self.number[key] = len(self.number)
                    places.append(place)
            # every element found is multiplied by every generator
            num_products = len(self.number) * len(self.generators)
            if len(self.number) > self._most or num_products > self._most_products:
                return None
            found.append(products[places])
        return np.concatenate(found)


def stable_elements(monoid: Monoid, actions: Integers, most_steps: int) -> Booleans | None:
    """The stable semigroup: the elements that words of length s make, `[N]`, once s is stable.

    Let M_n be the elements that words of length n make. The sets M_n repeat from some n on; s is
    the first length with M_s = M_2s. None where they do not repeat within `most_steps` products.
    """
    table = monoid.times(actions.astype(monoid.elements.dtype))
    lengths: dict[bytes, int] = {}
    history: list[Booleans] = []
    for made in after_each_length(table, 0):
        key = np.packbits(made).tobytes()
        if key in lengths:
            break
        if (len(history) + 1) * table.size > most_steps:
            return None
        lengths[key] = len(history)
        history.append(made)
    begin = lengths[key]
    period = len(history) - begin
    stable = max(begin, 1)
    stable += -stable % period
    return history[begin + (stable - begin) % period]


class LocalOrder(NamedTuple):
    """Elements or words e, a and b, by number, and a state, from which labels tell orders.

    Let T be the stable semigroup, and e one of its elements with e e = e. The elements e t e with t
    in T are the words that can be read among words e on the states that e keeps. For a and b in T,
    labels tell e a e b e from e b e a e.
    """

    idle: int
    first: int
    second: int
    state: int


def local_order(machine: Machine, monoid: Monoid) -> tuple[bool | None, LocalOrder | None]:
    """Whether labels tell such an order, and one that they tell.

    None where it was not worked out: too many elements, or none found among those looked at.
    """
    apart = machine.apart
    stable = stable_elements(monoid, machine.actions, MOST_STEPS)
    if apart is None or stable is None:
        return None, None
    numbers = np.flatnonzero(stable)
    maps = monoid.elements[numbers].astype(np.int64)
    squares = np.take_along_axis(maps, maps, axis=1)
    entries = MOST_ENTRIES
    complete = True
    for idle in np.flatnonzero((squares == maps).all(axis=1)).tolist():
        kept = maps[idle]
        local, places = np.unique(kept[maps[:, kept]], axis=0, return_index=True)
        complete = complete and len(local) <= MOST_LOCAL
        local = local[:MOST_LOCAL]
        entries -= maps.size + len(local) * local.size
        if entries < 0:
            return None, None
        if (found := _told_order(local, apart)) is not None:
            first, second = numbers[places[[found[0], found[1]]]].tolist()
            return True, LocalOrder(int(numbers[idle]), first, second, found[2])
    return (False if complete else None), None


def order_of_short_words(machine: Machine) -> tuple[LocalOrder, ShortestWords] | None:
    """An order that labels tell, of a monoid that is not listed: e is an action, a and b are words.

    With the words, whose symbols are numbers of actions.

    The monoid has to be aperiodic. Then all high powers of a symbol x are one idempotent e, so
    words of any length, each between powers of x that fill them up to one and the same length of
    the stable semigroup, act as e a e and e b e. None where none was found.
    """
    if (apart := machine.apart) is None:
        return None
    words = ShortestWords.of(machine.actions, range(len(machine.actions)), MOST_WORDS)
    tried, entries = words.maps[:MOST_WORDS], MOST_ENTRIES
    for number, kept in enumerate(settled_power(machine.actions)):
        points = np.unique(kept)
        if len(points) < 2:
            continue
        maps = kept[tried[:, points]]  # what each word does among the states that e keeps
        place = np.zeros(len(kept), np.int64)
        place[points] = np.arange(len(points))
        local, places = np.unique(maps, axis=0, return_index=True)
        local = place[local[:MOST_LOCAL]]
        entries -= maps.size + len(local) * local.size
        if entries < 0:
            return None
        if (found := _told_order(local, apart[np.ix_(points, points)])) is not None:
            first, second = places[[found[0], found[1]]].tolist()
            return LocalOrder(number, first, second, int(points[found[2]])), words
    return None


def _told_order(local: Integers, apart: Booleans) -> tuple[int, int, int] | None:
    """Two of some maps `[N, P]`, and a point from which labels tell their two orders."""
    for place, first in enumerate(local):
        told = apart[local[:, first], first[local]]  # local[:, first] reads `first` first
        if told.any():
            second, point = np.argwhere(told)[0].tolist()
            return place, second, point
    return None


def _keys(rows: npt.NDArray[np.unsignedinteger]) -> list[bytes]:
    """The bytes of every row."""
    width = rows.shape[1] * rows.itemsize
    data = np.ascontiguousarray(rows).tobytes()
    return [data[begin : begin + width] for begin in range(0, len(data), width)]
