"""The images of a machine's states under all words, and the groups that words make on them.

The image of a word is the set of states that it leads to from any state. A symbol maps images to
images. Between images of one strong component, which all have the same size, symbols are
bijections; the words that lead from an image I back to itself permute its states, and these
permutations are the *group of the image*, G(I). A monoid of maps has few images where it has too
many elements to list, so its groups are found from images (Linton, Pfeiffer, Robertson and Ruskuc
1998; for the theorems on groups that are used Rhodes and Steinberg 2009, ch. 4 and app. A). Let M
be the monoid, e and f idempotents of it, and Q all states; words act from the right.

1. *G(Qe) is the maximal subgroup at e*, as a group of permutations of Qe. Its elements permute Qe.
   And if a word w permutes Qe, then (e w)^n acts on Qe as the identity for some n > 0; so
   (e w)^n = e, and e w is in a subgroup whose identity is e.
2. *The components with the image of an idempotent are the J-classes with one.* If e J f, then in a
   finite monoid some m is in the R-class of e and the L-class of f: e m = m, and m leads on to e,
   so Qe and Qm = Qf are in one component. Conversely, if words w and v lead from Qe to Qf and back,
   then e (w v)^n = e for some n > 0, so e R e w; e w is regular, as e is, and so is f, and regular
   elements with one image are L-related: e w L f.
3. By the same argument every image in the component of Qe is the image of a regular element, hence
   of an idempotent. So G(I) is a maximal subgroup for all images of a component, or for none. It is
   for the image I = Qu exactly where, for every state q, *some word that keeps I in its component
   leads q to a state of what it makes of I*. If I is the image of e, then e is such a word. And if
   there are such words, then one after another they lead all states to states of an image I v of
   the component (with ways back to I between them); with a word t from there back to I,
   Q v t = I v t = I, and a power of v t is an idempotent with the image I.
4. *Every G(I) is a quotient of a subgroup of M.* Words with I w = I make a submonoid N that is
   mapped onto G(I). For an idempotent e of the least ideal of N, e N e is a group; e is mapped to
   1, so the group is mapped onto G(I) as well. Every subgroup of M is inside a maximal one. So M is
   aperiodic exactly where all G(I) are trivial, its groups are solvable exactly where all G(I) are,
   and the G(I) that are no maximal subgroups have no further composition factors.
5. *Words of one length make a group* (M is not quasi-aperiodic; Barrington, Compton, Straubing and
   Therien 1992) *exactly where two words of one length from some I to itself permute it in two
   ways.* If words of length s make a group with the identity e, take I = Qe. Conversely, let u and
   v be such words. With v^n for an n that makes it the identity on I, w = u v^(n-1) is as long and
   acts on I as another element than 1; then all powers of w are made on I by words of one length,
   for all large multiples of n |v|. Of these take the length s of the stable semigroup: it has a
   subsemigroup that is mapped onto a group which is not trivial, so by 4 it has such a subgroup.

Letters: I images, S states, V actions, P states of one image, G groups, E steps inside components.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from statetrack.algebra.stabilizer_chain import StabilizerChain, TooMuchWorkError, Work
from statetrack.sources import Booleans, Integers

Word = tuple[int, ...]

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
        sizes: Integers = NUM_BITS[self.packed].sum(axis=1, dtype=np.int64)
        return sizes

    @cached_property
    def components(self) -> Integers:
        """The strong component of every image: `[I]`."""
        return _strong(self.step, self.sizes)

    def word_to(self, image: int) -> Word:
        """A shortest word whose image this is, in actions."""
        word: list[int] = []
        while self.found_from[image] >= 0:
            word.append(int(self.found_by[image]))
            image = int(self.found_from[image])
        return tuple(reversed(word))


@dataclass(frozen=True, eq=False)
class ImageGroup:
    """The group that words make on one image: one for every strong component of images."""

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


def images_of(actions: Integers, most: int = MOST_IMAGES) -> Images | None:
    """The images under maps `[V, S]`; None where there are more than `most`, or too large ones."""
    num_actions, num_states = actions.shape
    width = -(-num_states // 64) * 8
    first = np.zeros((1, width), np.uint8)
    first[0, : -(-num_states // 8)] = np.packbits(np.ones(num_states, bool))
    number: dict[bytes | int, int] = {_keys(first)[0]: 0}
    packed, steps = [first], []
    found_from, found_by = [np.array([-1])], [np.array([-1])]
    block, begin = first, 0  # images whose steps are to be taken, and the number of the first
    at_once = max(BLOCK // (num_states * num_actions), 1)
    while len(block):
        fresh = []
        for place in range(0, len(block), at_once):
            moved = _moved(block[place : place + at_once], actions, width)
            known = len(number)
            done = begin + place + len(moved) // num_actions
            targets = np.array([number.setdefault(key, len(number)) for key in _keys(moved)])
            if len(number) > most or done * num_actions * num_states > MOST_WORK:
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


def _moved(packed: npt.NDArray[np.uint8], actions: Integers, width: int) -> npt.NDArray[np.uint8]:
    """The images that all actions lead to, image by image: `[I * V, width]`."""
    num_actions, num_states = actions.shape
    rows, states = np.nonzero(np.unpackbits(packed, axis=1, count=num_states))
    moved = np.zeros((len(packed), num_actions, width * 8), np.uint8)
    for place, action in enumerate(actions):
        moved[rows, place, action[states]] = 1
    return np.packbits(moved.reshape(-1, width * 8), axis=1)


def _keys(rows: npt.NDArray[np.uint8]) -> list[bytes | int]:
    """A hashable value for every row: equal where rows are."""
    kind = np.dtype(np.uint64 if rows.shape[1] == 8 else f"V{rows.shape[1]}")
    keys: list[bytes | int] = rows.view(kind)[:, 0].tolist()
    return keys


def _strong(step: Integers, sizes: Integers) -> Integers:
    """The strong component of every image, `[I]`: only steps between images of one size count."""
    from scipy import sparse

    same = sizes[step] == sizes[:, None]
    ends = np.concatenate([[0], np.cumsum(same.sum(axis=1))])
    size = (len(step), len(step))
    graph = sparse.csr_array((np.ones(int(ends[-1]), bool), step[same], ends), shape=size)
    found: Integers = sparse.csgraph.connected_components(graph, connection="strong")[1]
    return found


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
    def groups(self) -> tuple[ImageGroup, ...] | None:
        """The groups of these images, largest first; None where that is too much work."""
        if self.images is None:
            return None
        try:
            groups = image_groups(self.images)
        except TooMuchWorkError:
            return None
        return tuple(sorted(groups, key=lambda group: -group.order))


def image_groups(images: Images) -> list[ImageGroup]:
    """The group of one image of every strong component that has a group of more than one element.

    The image is the first one of the component. A tree of shortest ways leads from it to all
    others, and another one from all others back to it. The loops that go out along the one, take a
    step inside the component and come back along the other generate its group: Schreier's (1927)
    generators are such a loop and the inverse, which is a power, of another one.

    Raises `TooMuchWorkError` for groups that are too large.
    """
    inside = _Inside.of(images)
    moves = inside.moving()
    root_of = inside.root[inside.source]
    roots = np.unique(root_of[moves])
    wanted = np.zeros(len(inside.images), bool)
    wanted[roots] = True
    steps = np.flatnonzero(wanted[root_of])
    lengths = inside.lengths(steps)
    # by component; there, steps whose loops move states first, the shortest loops first
    order = np.lexsort([lengths, ~moves[steps], root_of[steps]])
    steps, lengths = steps[order], lengths[order]
    begins = np.searchsorted(root_of[steps], roots).tolist()
    maximal = inside.maximal(wanted)
    groups, work = [], Work()
    ends = [*begins, len(steps)][1:]
    for root, begin, end in zip(roots.tolist(), begins, ends, strict=True):
        middle = begin + int(moves[steps[begin:end]].sum())
        points = np.flatnonzero(inside.members[root])
        moved = inside.loops(steps[begin:middle])[:, points]
        loops = np.searchsorted(points, moved)
        chain, needed = _generators(loops, work)
        groups.append(
            ImageGroup(
                int(inside.images[root]),
                points,
                loops[needed],
                tuple(inside.word(int(steps[begin + place])) for place in needed),
                chain.order,
                bool(maximal[root]),
                _by_length(loops, lengths[begin:middle], lengths[middle:end], chain.order),
            )
        )
    return sorted(groups, key=lambda group: group.image)


def _generators(permutations: Integers, work: Work) -> tuple[StabilizerChain, list[int]]:
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
        root = _power(permutation, rest % group_order)[_power(root, times % group_order)]
        length = divisor
    return all(
        bool((_power(root, other // length % group_order) == permutation).all())
        for other, permutation in known.items()
    )


def _power(permutation: Integers, exponent: int) -> Integers:
    power = np.arange(len(permutation))
    while exponent:
        if exponent & 1:
            power = permutation[power]
        permutation, exponent = permutation[permutation], exponent >> 1
    return power


@dataclass(frozen=True, eq=False)
class _Inside:
    """The steps inside components, and trees of them, on images of at least two states.

    Images are numbered anew, as are their components' first ones, the roots.
    """

    images: Integers  # [N]: the number of each in all images
    root: Integers  # [N]
    members: Booleans  # [N, S]
    actions: Integers  # [V, S]
    source: Integers  # [E]
    action: Integers  # [E]
    target: Integers  # [E]
    way_out: Integers  # [N]: the last step on a shortest way from the root; -1 at the root
    way_back: Integers  # [N]: the first step on a shortest way to the root; -1 at the root
    out: Integers  # [N, S]: where that way from the root takes the root's states
    back: Integers  # [N, S]: where that way to the root takes the states of the image
    depths: Integers  # [2, N]: the lengths of these ways

    @classmethod
    def of(cls, images: Images) -> _Inside:
        """Inside the components of some images."""
        components, sizes = images.components, images.sizes
        staying = components[images.step] == components[:, None]
        kept = np.flatnonzero(staying.any(axis=1) & (sizes > 1))
        place = np.full(len(images), -1)
        place[kept] = np.arange(len(kept))
        source, action = np.nonzero(staying[kept])
        target = place[images.step[kept[source], action]]
        if len(target) * images.actions.shape[1] > MOST_INSIDE:
            raise TooMuchWorkError
        _, first, which = np.unique(components[kept], return_index=True, return_inverse=True)
        root = first[which]
        actions = images.actions.astype(np.min_scalar_type(images.actions.shape[1]))
        everything = np.arange(actions.shape[1], dtype=actions.dtype)
        way_out, out_depth, out_levels = shortest_ways(first, source, target, len(kept))
        way_back, back_depth, back_levels = shortest_ways(first, target, source, len(kept))
        out = np.tile(everything, (len(kept), 1))
        for level in out_levels:
            edges = way_out[level]
            out[level] = actions[action[edges][:, None], out[source[edges]]]
        back = np.tile(everything, (len(kept), 1))
        for level in back_levels:
            edges = way_back[level]
            back[level] = np.take_along_axis(back[target[edges]], actions[action[edges]], axis=1)
        return cls(
            kept,
            root,
            images.members_of(kept),
            actions,
            source,
            action,
            target,
            way_out,
            way_back,
            out,
            back,
            np.array([out_depth, back_depth]),
        )

    def loops(self, edges: Integers) -> Integers:
        """Where the loop through each step takes the states of its root: `[number, S]`."""
        moved = self.actions[self.action[edges][:, None], self.out[self.source[edges]]]
        loops: Integers = np.take_along_axis(self.back[self.target[edges]], moved, axis=1)
        return loops

    def moving(self) -> Booleans:
        """Whether the loop through each step moves some state of the root: `[E]`."""
        at_once = max(BLOCK // self.actions.shape[1], 1)
        states = np.arange(self.actions.shape[1])
        moving = np.zeros(len(self.source), bool)
        for begin in range(0, len(self.source), at_once):
            edges = np.arange(begin, min(begin + at_once, len(self.source)))
            moved = self.loops(edges) != states
            moved &= self.members[self.root[self.source[edges]]]
            moving[edges] = moved.any(axis=1)
        return moving

    def lengths(self, edges: Integers) -> Integers:
        """The number of steps of the loops through some steps."""
        lengths: Integers = (
            self.depths[0, self.source[edges]] + 1 + self.depths[1, self.target[edges]]
        )
        return lengths

    def word(self, edge: int) -> Word:
        """The loop through a step, in actions."""
        there, back = [], []
        image = int(self.source[edge])
        while (step := int(self.way_out[image])) >= 0:
            there.append(int(self.action[step]))
            image = int(self.source[step])
        image = int(self.target[edge])
        while (step := int(self.way_back[image])) >= 0:
            back.append(int(self.action[step]))
            image = int(self.target[step])
        return (*reversed(there), int(self.action[edge]), *back)

    def maximal(self, roots: Booleans) -> Booleans:
        """Whether the group of each image is a maximal subgroup of the monoid: `[N]`.

        `roots [N]` says in which components that is asked. It is where for every state q some word
        leads from the image I to an image of I's component, and from q to a state of that. Searched
        backwards from pairs of an image and a state of it.
        """
        merging = self.members.copy()
        arriving = _ByPoint.of(self.target, len(self.images))
        changed = np.flatnonzero(roots[self.root])
        at_once = max(BLOCK // self.actions.shape[1], 1)
        while len(changed):
            edges = arriving.at(changed)
            edges = edges[~merging[self.source[edges]].all(axis=1)]
            edges = edges[np.argsort(self.source[edges], kind="stable")]
            changed_now = []
            for begin in range(0, len(edges), at_once):
                some = edges[begin : begin + at_once]
                reached = np.take_along_axis(
                    merging[self.target[some]], self.actions[self.action[some]], axis=1
                )
                sources, first = np.unique(self.source[some], return_index=True)
                further = np.logical_or.reduceat(reached, first, axis=0) & ~merging[sources]
                merging[sources] |= further
                changed_now.append(sources[further.any(axis=1)])
            changed = np.unique(np.concatenate(changed_now)) if changed_now else changed[:0]
        maximal: Booleans = np.logical_and.reduce(merging, axis=1)
        return maximal


@dataclass(frozen=True, eq=False)
class _ByPoint:
    """Steps in the order of the point at one of their ends."""

    order: Integers  # [E]
    ends: Integers  # [N + 1]

    @classmethod
    def of(cls, points: Integers, size: int) -> _ByPoint:
        """Steps by their points `[E]`, of which there are `size`."""
        order = np.argsort(points, kind="stable")
        return cls(order, np.searchsorted(points[order], np.arange(size + 1)))

    def at(self, points: Integers) -> Integers:
        """The steps at some points, point by point."""
        counts = self.ends[points + 1] - self.ends[points]
        first = np.repeat(self.ends[points] - np.cumsum(counts) + counts, counts)
        steps: Integers = self.order[first + np.arange(counts.sum())]
        return steps


def shortest_ways(
    roots: Integers, source: Integers, target: Integers, size: int
) -> tuple[Integers, Integers, list[Integers]]:
    """Shortest ways from roots along steps, found level by level.

    The step that leads to every point, -1 at a root, `[N]`; its distance, `[N]`; the points of
    every level.
    """
    leaving = _ByPoint.of(source, size)
    way, depth = np.full(size, -1), np.zeros(size, np.int64)
    found = np.zeros(size, bool)
    found[roots] = True
    level, levels = roots, []
    while len(level):
        edges = leaving.at(level)
        edges = edges[~found[target[edges]]]
        level, first = np.unique(target[edges], return_index=True)
        way[level] = edges[first]
        found[level] = True
        if len(level):
            levels.append(level)
            depth[level] = len(levels)
    return way, depth, levels
