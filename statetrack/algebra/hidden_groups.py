"""Groups that words hide: a machine has them, and its words merge all states before they are seen.

Accuracy on such words is no evidence about the groups: a model that forgets all but the last
symbols is right on nearly all of them.

Letters: N words, S states, A actions.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np

from statetrack.algebra.images import image_groups, images_of, settled
from statetrack.algebra.machine import needed_machine
from statetrack.algebra.merging import MOST_IMAGES, merging_in
from statetrack.sources import Automaton, Integers, Source

MOST_STATES: Final = 2**12
"""Most states of a machine in which groups are looked for."""
LONGEST_TRIED: Final = 12
"""Where a machine has more than `MOST_IMAGES` images, words of up to so many symbols are tried."""
MOST_MOVED: Final = 2**21
"""Most states that the words tried are followed from, in one step."""


def hides_groups(source: Source, length: int) -> bool:
    """Whether words of a length hide groups of the machine that they are drawn from.

    They do where their merging horizon is far below the length, and the machine has a group.
    False also where nothing is known: without an automaton, and where no group was found in a
    machine with many images.
    """
    merging, automaton = merging_in(source, length), source.automaton
    if merging is None or automaton is None or not merging.far_below(length):
        return False
    return has_a_group(automaton)


@lru_cache(maxsize=16)
def has_a_group(automaton: Automaton) -> bool:
    """Whether some drawn words permute states of the smallest machine, and move one.

    Exact where the machine has at most `MOST_IMAGES` images. Where it has more, True is proven by
    a word, and False says that none of some thousand short words permutes states.
    """
    machine = needed_machine(automaton)
    actions = settled(machine.delta).actions
    if actions.shape[1] > MOST_STATES:
        return False
    images = images_of(np.unique(actions, axis=0), MOST_IMAGES)
    return _a_word_cycles(actions) if images is None else bool(image_groups(images))


def _a_word_cycles(actions: Integers) -> bool:
    """Whether the powers of one of some random words, or of a symbol, move a state in a circle."""
    num_actions, num_states = actions.shape
    random = np.random.Generator(np.random.PCG64(0))
    words = actions[random.integers(num_actions, size=max(MOST_MOVED // num_states, 1))]
    cycles = _cycle(actions)
    for _ in range(LONGEST_TRIED):
        if cycles:
            return True
        more = actions[random.integers(num_actions, size=len(words))]
        words = np.take_along_axis(more, words, axis=1)
        cycles = _cycle(words)
    return cycles


def _cycle(maps: Integers) -> bool:
    """Whether some map `[N, S]` moves a state that its high powers lead to."""
    power = maps
    for _ in range(maps.shape[1].bit_length()):  # to a power of S or more: all of it recurs
        power = np.take_along_axis(power, power, axis=1)
    moved = np.take_along_axis(maps, power, axis=1)
    return bool((moved != power).any())
