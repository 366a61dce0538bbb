"""The images of a machine's states under all words, and the groups that words make on them.

The image of a word is the set of states that it leads to from any state. A symbol maps images to
images. Between images of one strong component, which all have the same size, symbols are
bijections; the words that lead from an image back to itself permute its states, and these
permutations are a group: the image of a subgroup of the transition monoid, in which every group of
the monoid occurs. So a machine is aperiodic exactly where all these groups are trivial, and no
list of the monoid's elements is needed.

Letters: I images, S states, V actions, P states of one image.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from statetrack.algebra.components import strong_components
from statetrack.sources.arrays import Booleans, Integers

Word = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Images:
    """All images of the states, the set of all states first, in the order of shortest words."""

    actions: Integers  # [V, S]
    members: Booleans  # [I, S]
    step: Integers  # [I, V]: the image that each action leads to
    found_from: Integers  # [I]: an image that leads here in one step, on a shortest way; -1 first
    found_by: Integers  # [I]: the action of that step; -1 first

    def __len__(self) -> int:
        return len(self.members)

    @cached_property
    def sizes(self) -> Integers:
        """The number of states in every image: `[I]`."""
        sizes: Integers = self.members.sum(axis=1)
        return sizes

    @cached_property
    def components(self) -> Integers:
        """The strong component of every image: `[I]`."""
        return strong_components(self.step)

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
    permutations: Integers  # [K, P]: generators, of places in `points`; none is the identity
    words: tuple[Word, ...]  # [K]: a word for each, in actions


def images_of(actions: Integers, most: int = 2_000_000) -> Images | None:
    """The images under maps `[V, S]`; None where there are more than `most`."""
    num_states = actions.shape[1]
    rows = [[1 << target for target in action] for action in actions.tolist()]
    first = (1 << num_states) - 1
    number = {first: 0}
    sets = [first]
    step: list[list[int]] = []
    found_from, found_by = [-1], [-1]
    for place, image in enumerate(sets):
        targets = []
        states = [state for state in range(num_states) if image >> state & 1]
        for action, row in enumerate(rows):
            reached = 0
            for state in states:
                reached |= row[state]
            if reached not in number:
                number[reached] = len(sets)
                sets.append(reached)
                found_from.append(place)
                found_by.append(action)
            targets.append(number[reached])
        step.append(targets)
        if len(sets) > most:
            return None
    members = np.array(
        [[image >> state & 1 for state in range(num_states)] for image in sets], bool
    )
    return Images(actions, members, np.array(step), np.array(found_from), np.array(found_by))


def image_groups(images: Images) -> list[ImageGroup]:
    """The group of one image of every strong component that has a group of more than one element.

    The generators are those of Schreier (1927): along a spanning tree of the component from its
    first image, one for every step that the tree does not have.
    """
    groups = []
    order = np.argsort(images.components, kind="stable")
    begins = np.flatnonzero(np.diff(images.components[order], prepend=-1))
    for members in np.split(order, begins[1:]):
        root = int(members.min())
        if images.sizes[root] < 2:
            continue
        points = np.flatnonzero(images.members[root])
        component = images.components[root]
        reached: dict[int, Integers] = {root: points}  # where the points are, along the tree
        words: dict[int, Word] = {root: ()}
        queue = [root]
        closing = []
        for image in queue:
            for action, target in enumerate(images.step[image].tolist()):
                if images.components[target] != component:
                    continue
                if target in reached:
                    closing.append((image, action, target))
                else:
                    reached[target] = images.actions[action][reached[image]]
                    words[target] = (*words[image], action)
                    queue.append(target)
        found: dict[bytes, tuple[Integers, tuple[int, int, int]]] = {}
        for image, action, target in closing:
            place = np.argsort(reached[target])  # state -> place, by rank of the state
            moved = images.actions[action][reached[image]]
            there = place[np.searchsorted(np.sort(reached[target]), moved)]
            if (there != np.arange(len(points))).any():
                found.setdefault(there.tobytes(), (there, (image, action, target)))
        if found:
            generators = [there for there, _ in found.values()]
            loops = [_loop(images, words, root, closed) for _, closed in found.values()]
            groups.append(ImageGroup(root, points, np.array(generators), tuple(loops)))
    return groups


def _loop(images: Images, words: dict[int, Word], root: int, closed: tuple[int, int, int]) -> Word:
    """A word that leads from the root's points as the closing step does, and back to the root.

    The way back from the step's target undoes the tree: a power of a cycle through the target that
    acts as the inverse of the tree's word.
    """
    image, action, target = closed
    back = _way(images, target, root)
    points = np.flatnonzero(images.members[root])
    cycle = (*words[target], *back)  # permutes the root's points
    there = _after(images, points, cycle)
    order, power = 1, there
    while (power != points).any():
        power = _after(images, power, cycle)
        order += 1
    # words[image] action back cycle^(order - 1): the tree to the target is taken back
    return (*words[image], action, *back, *(cycle * (order - 1)))


def _after(images: Images, states: Integers, word: Word) -> Integers:
    for action in word:
        states = images.actions[action][states]
    return states


def _way(images: Images, begin: int, end: int) -> Word:
    """A shortest word of actions between two images of a component."""
    before: dict[int, tuple[int, int]] = {}
    queue = [begin]
    for image in queue:
        if image == end:
            break
        for action, target in enumerate(images.step[image].tolist()):
            if target not in before and target != begin:
                before[target] = (image, action)
                queue.append(target)
    word: list[int] = []
    while end != begin:
        end, action = before[end]
        word.append(action)
    return tuple(reversed(word))
