"""The images of a machine's states under all words, and the holonomy groups of words.

The image of a word is the set of states that it leads to from any state. A symbol maps images to
images. Between images of one strong component, which all have the same size, symbols are
bijections; the words that lead from an image I back to itself permute its states, and these
permutations are the *holonomy group* of the image, G(I), here `HolonomyGroup`. A monoid of maps has
few images where it has too many elements to list, so its groups are found from images (Linton,
Pfeiffer, Robertson and Ruskuc 1998; for the theorems on groups that are used Rhodes and Steinberg
2009, ch. 4 and app. A). Let M be the monoid, e and f idempotents of it, and Q all states; words act
from the right. The proofs are in docs/proofs.md.

1. G(Qe) is the maximal subgroup at e, as a group of permutations of Qe.
2. The components with the image of an idempotent are the J-classes with one.
3. G(I) is a maximal subgroup for all images of a component, or for none. It is for the image I = Qu
   exactly where, for every state q, some word that keeps I in its component leads q to a state of
   what it makes of I.
4. Every G(I) is a quotient of a subgroup of M. So M is aperiodic exactly where all G(I) are
   trivial, its groups are solvable exactly where all G(I) are, and the G(I) that are no maximal
   subgroups have no further composition factors.
5. Words of one length make a group (M is not quasi-aperiodic; Barrington, Compton, Straubing and
   Therien 1992) exactly where two words of one length from some I to itself permute it in two ways.

Letters: I images, S states, V actions, P states of one image, G groups, E steps inside components.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from statetrack.algebra.maps import power
from statetrack.algebra.prediction import Word
from statetrack.algebra.stabilizer_chain import StabilizerChain, TooMuchWorkError, WorkLeft
from statetrack.sources import Booleans, ByPoint, Integers, places_of, shortest_ways

MOST_IMAGES = 500_000
"""Most images that are looked for."""
MOST_WORK = 2**31
"""Most entries of a table of images, actions and states that images are found in."""
MOST_INSIDE = 2**30
"""Most entries of a table of steps inside components and states that groups are found in."""
BLOCK = 2**23
"""Entries of a table that are worked on at once."""
FEW_LOOPS = 16
"""So many loops are not looked through for equal ones: that takes longer."""
FIRST_LOOPS = 256
"""How many loops are looked at first for those that generate a group, the shortest ones."""
NUM_BITS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(axis=1)
"""How many bits of a byte are set."""


@dataclass(frozen=True, eq=False)
class Images:
    """All images of the states, the set of all states first, in the order of shortest words."""

    actions: Integers  # [V, S]
    packed: npt.NDArray[np.uint8]  # [I, S / 8, up to a multiple of 8]: a bit for every state
    step: Integers  # [I, V]: the image that each action leads to
    found_from: Integers  # [I]: an image that leads here in one step, on a shortest way; -1 first
    found_by: Integers  # [I]: the action of that step; -1 first

    def __len__(self) -> int:
        return len(self.packed)

    @cached_property
    def members(self) -> Booleans:
        """The states of every image: `[I, S]`."""
        return self.members_of(slice(None))

    def members_of(self, images: Integers | slice) -> Booleans:
        """The states of some images: `[number of them, S]`."""
        bits = np.unpackbits(self.packed[images], axis=1, count=self.actions.shape[1])
        return bits.view(bool)

    @cached_property
    def sizes(self) -> Integers:
        """The number of states in every image: `[I]`."""
        return np.asarray(NUM_BITS[self.packed].sum(axis=1, dtype=np.int64))

    @cached_property
    def components(self) -> Integers:
        """The strong component of every image, `[I]`: by steps between images of one size."""
        from scipy import sparse

        same = self.sizes[self.step] == self.sizes[:, None]
        ends = np.concatenate([[0], np.cumsum(same.sum(axis=1))])
        steps = (np.ones(int(ends[-1]), bool), self.step[same], ends)
        graph = sparse.csr_array(steps, shape=(len(self), len(self)))
        found: Integers = sparse.csgraph.connected_components(graph, connection="strong")[1]
        return found

    def word_to(self, image: int) -> Word:
        """A shortest word whose image this is, in actions."""
        word: list[int] = []
        while self.found_from[image] >= 0:
            word.append(int(self.found_by[image]))
            image = int(self.found_from[image])
        return tuple(reversed(word))


@dataclass(frozen=True, eq=False)
class HolonomyGroup:
    """The holonomy group, that words make on one image: one for every strong component."""

    image: int
    points: Integers  # [P]: the states of the image
    permutations: Integers  # [K, P]: of places in `points`; none is in the group of those before
    words: tuple[Word, ...]  # [K]: a word for each, in actions, the shortest word first
    order: int
    is_maximal: bool
    """Whether it is a maximal subgroup of the monoid; else it is a quotient of a subgroup."""
    by_length: bool
    """Whether words of one length from the image to itself permute it in one way."""


@dataclass(frozen=True, eq=False)
class Settled:
    """A machine without the differences between states that end after some symbols."""

    classes: Integers  # [states of the machine]: the class of every state, numbered from 0
    actions: Integers  # [V, S]: what every symbol does with the S classes


def settled(delta: Integers) -> Settled:
    """The machine `[states, V]` with states as one that lead to the same after some symbols.

    Two states are in one class where, for some k, all words of k symbols or more lead from both to
    the same state: such as one state of a Mealy machine that is entered with different outputs.

    The monoid of the classes has the groups of that of the machine, and of one length the same. It
    is a quotient of that, so a subgroup H at an idempotent e is mapped onto one, and all of them
    come so. Let H have more than one element; then e is the action of a word that is not empty, and
    so of one of k symbols or more. Where p e and q e are in one class, p e = p e e = q e e = q e:
    elements of H that move classes alike are equal. In the same way, where e = x f y holds among
    classes, e = e x f y e holds among states, so two such J-classes stay two.
    """
    classes, number = np.arange(len(delta)), len(delta)
    while True:
        rows, merged = np.unique(classes[delta], axis=0, return_inverse=True)
        if len(rows) == number:
            first = np.unique(classes, return_index=True)[1]
            return Settled(classes, np.ascontiguousarray(classes[delta[first]].T))
        classes, number = merged.ravel(), len(rows)


def images_of(
    actions: Integers, most: int = MOST_IMAGES, *, and_states: bool = False
) -> Images | None:
    """The images under maps `[V, S]`; None where there are more than `most`, or too large ones.

    With `and_states`, every set of a single state is among them, whether a word leads to it or not.
    """
    num_actions, num_states = actions.shape
    width = -(-num_states // 64) * 8
    begin_with = np.ones((1, num_states), bool)
    if and_states and num_states > 1:
        begin_with = np.concatenate([begin_with, np.eye(num_states, dtype=bool)])
    first = np.zeros((len(begin_with), width), np.uint8)
    first[:, : -(-num_states // 8)] = np.packbits(begin_with, axis=1)
    number: dict[bytes | int, int] = {key: place for place, key in enumerate(_keys(first))}
    packed, steps = [first], []
    found_from, found_by = [np.full(len(first), -1)], [np.full(len(first), -1)]
    block, begin = first, 0  # images whose steps are to be taken, and the number of the first
    at_once = max(BLOCK // (num_states * num_actions), 1)
    while len(block):
        fresh = []
        for place in range(0, len(block), at_once):
            here, known = block[place : place + at_once], len(number)
            rows, states = np.nonzero(np.unpackbits(here, axis=1, count=num_states).view(bool))
            bits = np.zeros(len(here) * num_actions * width * 8, np.uint8)
            rows *= num_actions * width * 8
            for each, action in enumerate(actions):
                bits[rows + (each * width * 8 + action)[states]] = 1
            moved = np.packbits(bits.reshape(-1, width * 8), axis=1)  # image by image
            targets = np.array([number.setdefault(key, len(number)) for key in _keys(moved)])
            # the steps of every image found are taken
            if len(number) > most or len(number) * num_actions * num_states > MOST_WORK:
                return None
            steps.append(targets.astype(np.int32).reshape(-1, num_actions))
            new = np.flatnonzero(targets >= known)
            new = new[np.unique(targets[new], return_index=True)[1]]
            fresh.append(moved[new])
            found_from.append(begin + place + new // num_actions)
            found_by.append(new % num_actions)
        begin += len(block)
        block = np.concatenate(fresh)
        packed.append(block)
    return Images(
        actions,
        np.concatenate(packed),
        np.concatenate(steps),
        np.concatenate(found_from),
        np.concatenate(found_by),
    )


def _keys(rows: npt.NDArray[np.uint8]) -> list[bytes | int]:
    """A hashable value for every row: equal where rows are."""
    kind = np.dtype(np.uint64 if rows.shape[1] == 8 else f"V{rows.shape[1]}")
    keys: list[bytes | int] = rows.view(kind)[:, 0].tolist()
    return keys


@dataclass(frozen=True, eq=False)
class StateImages:
    """The images of the states of a machine, and their groups, worked out when asked for."""

    delta: Integers  # [states, V]
    most: int = MOST_IMAGES

    @cached_property
    def settled(self) -> Settled:
        """The machine without the differences between states that end after some symbols."""
        return settled(self.delta)

    @cached_property
    def images(self) -> Images | None:
        """The images of the settled machine, whose actions are the symbols; None for too many."""
        return images_of(self.settled.actions, self.most)

    @cached_property
    def groups(self) -> tuple[HolonomyGroup, ...] | None:
        """The groups of these images, largest first; None where that is too much work."""
        if self.images is None:
            return None
        try:
            groups = holonomy_groups(self.images)
        except TooMuchWorkError:
            return None
        return tuple(sorted(groups, key=lambda group: -group.order))


@dataclass(frozen=True, eq=False)
class Loops:
    """Loops through steps inside components: a shortest way to its source, the step, a way back.

    They begin and end at the component's root. All words that lead from a root back to it make the
    permutations of its points that these loops generate: with f(J) and b(J) what the ways to J and
    back make of the points, the loop of a step x from J to K is f(J) x b(K) =
    (f(J) x f(K)^-1) (f(K) b(K)); the first factors are Schreier's generators (1927), and the second
    ones are products of loops, for f(K) b(K) is the loop of the last step of the way to K.
    """

    source: Integers  # [E]
    target: Integers  # [E]
    map_of: Integers  # [E]: the number of what the step does with points
    maps: Integers  # [number, P]
    way_out: Integers  # [N]: the last step on a shortest way from the root; -1 at the root
    way_back: Integers  # [N]: the first step on a shortest way to the root; -1 at the root
    out: Integers  # [N, P]: where that way from the root takes the root's points
    back: Integers  # [N, P]: where that way to the root takes them from here
    depths: Integers  # [2, N]: the lengths of these ways

    @classmethod
    def of(
        cls, roots: Integers, source: Integers, target: Integers, map_of: Integers, maps: Integers
    ) -> Loops:
        """Of steps among points 0 .. N - 1, of which some step leads to the last one."""
        size = int(max(source.max(initial=-1), target.max(initial=-1))) + 1
        way_out, out_depth, out_levels = shortest_ways(roots, source, target, size)
        way_back, back_depth, back_levels = shortest_ways(roots, target, source, size)
        out = np.tile(np.arange(maps.shape[1], dtype=maps.dtype), (size, 1))
        back = out.copy()
        for level in out_levels:
            edges = way_out[level]
            out[level] = maps[map_of[edges][:, None], out[source[edges]]]
        for level in back_levels:
            edges = way_back[level]
            back[level] = np.take_along_axis(back[target[edges]], maps[map_of[edges]], axis=1)
        depths = np.array([out_depth, back_depth])
        return cls(source, target, map_of, maps, way_out, way_back, out, back, depths)

    def done_by(self, edges: Integers) -> Integers:
        """Where the loop through each step takes the points of its root: `[number, P]`."""
        moved = self.maps[self.map_of[edges][:, None], self.out[self.source[edges]]]
        return np.take_along_axis(self.back[self.target[edges]], moved, axis=1)

    def lengths(self, edges: Integers) -> Integers:
        """The number of steps of the loops through some steps."""
        out, back = self.depths[0, self.source[edges]], self.depths[1, self.target[edges]]
        return np.asarray(out + 1 + back)

    def edges(self, edge: int) -> list[int]:
        """All steps of the loop through a step, in their order."""
        found, place = [edge], int(self.source[edge])
        while (step := int(self.way_out[place])) >= 0:
            found.append(step)
            place = int(self.source[step])
        found.reverse()
        place = int(self.target[edge])
        while (step := int(self.way_back[place])) >= 0:
            found.append(step)
            place = int(self.target[step])
        return found


def holonomy_groups(images: Images) -> list[HolonomyGroup]:
    """The group of one image of every strong component that has a group of more than one element.

    The image is the first one of the component, from which `Loops` go out.

    Raises `TooMuchWorkError` for groups that are too large.
    """
    inside = _Inside.of(images)
    loops_of = inside.loops
    moves = inside.moving()
    root_of = inside.root[loops_of.source]
    roots = np.unique(root_of[moves])
    wanted = np.zeros(len(inside.images), bool)
    wanted[roots] = True
    steps = np.flatnonzero(wanted[root_of])
    lengths = loops_of.lengths(steps)
    # by component; there, steps whose loops move states first, the shortest loops first
    order = np.lexsort([lengths, ~moves[steps], root_of[steps]])
    steps, lengths = steps[order], lengths[order]
    begins = np.searchsorted(root_of[steps], roots).tolist()
    maximal = inside.maximal(wanted)
    groups, work = [], WorkLeft()
    ends = [*begins, len(steps)][1:]
    for root, begin, end in zip(roots.tolist(), begins, ends, strict=True):
        middle = begin + int(moves[steps[begin:end]].sum())
        points = np.flatnonzero(inside.members[root])
        loops = np.searchsorted(points, loops_of.done_by(steps[begin:middle])[:, points])
        chain, needed = _generators(loops, work)
        groups.append(
            HolonomyGroup(
                int(inside.images[root]),
                points,
                loops[needed],
                tuple(
                    tuple(loops_of.map_of[loops_of.edges(int(steps[begin + place]))].tolist())
                    for place in needed
                ),
                chain.order,
                bool(maximal[root]),
                _by_length(loops, lengths[begin:middle], lengths[middle:end], chain.order),
            )
        )
    return sorted(groups, key=lambda group: group.image)


def _generators(permutations: Integers, work: WorkLeft) -> tuple[StabilizerChain, list[int]]:
    """The group that permutations `[K, P]` generate, and which are not in that of those before."""
    num_points = permutations.shape[1]
    chain, needed = StabilizerChain(num_points, work=work), []
    everything = math.factorial(num_points)
    begin, size = 0, FIRST_LOOPS
    while begin < len(permutations) and chain.order < everything:
        left = np.arange(begin, min(begin + size, len(permutations)))
        left = left[~chain.contains(permutations[left])]
        if len(left) > FEW_LOOPS:
            left = left[np.sort(np.unique(permutations[left], axis=0, return_index=True)[1])]
        while len(left):
            needed.append(int(left[0]))
            chain.add(permutations[left[0]])
            left = left[~chain.contains(permutations[left])]
        begin, size = begin + size, min(2 * size, max(BLOCK // num_points, FIRST_LOOPS))
    return chain, needed


def _by_length(
    permutations: Integers, lengths: Integers, still: Integers, group_order: int
) -> bool:
    """Whether permutations `[K, P]` and lengths `[K]`, of loops that generate, allow `by_length`.

    `still` are the lengths of loops that do not move any state.

    Pairs of a permutation and a length generate a subgroup H of G x Z. All words from the image to
    itself give pairs in H, and each of H is such a pair divided by (1, n) for some n: the inverse
    of (g, n) is a power of it divided by some (1, m). So words of one length permute in one way
    exactly where H contains no (g, 0) but that of g = 1: where H is cyclic, and its generator is
    the pair (c, d) with d the greatest common divisor of all lengths.
    """
    each, first, which = np.unique(lengths, return_index=True, return_inverse=True)
    for begin in range(0, len(lengths), FIRST_LOOPS):  # most often the first ones tell
        some = slice(begin, begin + FIRST_LOOPS)
        if not (permutations[some] == permutations[first][which[some]]).all():
            return False
    points = np.arange(permutations.shape[1])
    known = dict.fromkeys(np.unique(still).tolist(), points)
    if not known.keys().isdisjoint(each.tolist()):
        return False
    known.update(zip(each.tolist(), permutations[first], strict=True))
    length, root = 0, points  # root has this length, the greatest common divisor so far
    for other, permutation in known.items():
        divisor = math.gcd(length, other)
        times = pow(length // divisor, -1, other // divisor)
        rest = (divisor - times * length) // other
        root = power(permutation, rest % group_order)[power(root, times % group_order)]
        length = divisor
    return all(
        bool((power(root, other // length % group_order) == permutation).all())
        for other, permutation in known.items()
    )


@dataclass(frozen=True, eq=False)
class _Inside:
    """The steps inside components, and loops of them, on images of at least two states.

    Images are numbered anew, as are their components' first ones, the roots.
    """

    images: Integers  # [N]: the number of each in all images
    root: Integers  # [N]
    members: Booleans  # [N, S]
    loops: Loops  # over actions [V, S]

    @classmethod
    def of(cls, images: Images) -> _Inside:
        """Inside the components of some images."""
        components, num_states = images.components, images.actions.shape[1]
        staying = components[images.step] == components[:, None]
        kept = np.flatnonzero(staying.any(axis=1) & (images.sizes > 1))
        place = places_of(kept, len(images))
        source, action = np.nonzero(staying[kept])
        target = place[images.step[kept[source], action]]
        if len(target) * num_states > MOST_INSIDE:
            raise TooMuchWorkError
        _, first, which = np.unique(components[kept], return_index=True, return_inverse=True)
        actions = images.actions.astype(np.min_scalar_type(num_states))
        loops = Loops.of(first, source, target, action, actions)
        return cls(kept, first[which], images.members_of(kept), loops)

    def moving(self) -> Booleans:
        """Whether the loop through each step moves some state of the root: `[E]`."""
        num_states, source = self.members.shape[1], self.loops.source
        at_once = max(BLOCK // num_states, 1)
        moving = np.zeros(len(source), bool)
        for begin in range(0, len(source), at_once):
            edges = np.arange(begin, min(begin + at_once, len(source)))
            moved = self.loops.done_by(edges) != np.arange(num_states)
            moving[edges] = (moved & self.members[self.root[source[edges]]]).any(axis=1)
        return moving

    def maximal(self, roots: Booleans) -> Booleans:
        """Whether the group of each image is a maximal subgroup of the monoid: `[N]`.

        `roots [N]` says in which components that is asked. It is where for every state q some word
        leads from the image I to an image of I's component, and from q to a state of that. Searched
        backwards from pairs of an image and a state of it.
        """
        loops, merging = self.loops, self.members.copy()
        source, target = loops.source, loops.target
        arriving = ByPoint.of(target, len(self.images))
        changed = np.flatnonzero(roots[self.root])
        at_once = max(BLOCK // merging.shape[1], 1)
        while len(changed):
            edges = arriving.at(changed)
            edges = edges[~merging[source[edges]].all(axis=1)]
            edges = edges[np.argsort(source[edges], kind="stable")]
            changed_now = []
            for begin in range(0, len(edges), at_once):
                some = edges[begin : begin + at_once]
                actions = loops.maps[loops.map_of[some]]
                reached = np.take_along_axis(merging[target[some]], actions, axis=1)
                sources, first = np.unique(source[some], return_index=True)
                further = np.logical_or.reduceat(reached, first, axis=0) & ~merging[sources]
                merging[sources] |= further
                changed_now.append(sources[further.any(axis=1)])
            changed = np.unique(np.concatenate(changed_now)) if changed_now else changed[:0]
        return np.asarray(merging.all(axis=1))
