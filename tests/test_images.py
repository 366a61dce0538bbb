"""Images of a machine's states, and the groups that words make on them."""

from collections import Counter

import numpy as np
import pytest

from statetrack.algebra.images import ImageGroup, Images, image_groups, images_of, settled
from statetrack.algebra.monoid import Budget, transition_monoid


def random_actions(seed: int) -> np.ndarray:
    """Two or three maps of three to seven states, most of them with few images."""
    draw = np.random.default_rng(seed)
    num_states = int(draw.integers(3, 8))
    actions = []
    for _ in range(int(draw.integers(2, 4))):
        action = draw.permutation(num_states)
        if draw.random() < 0.6:
            action = np.where(draw.random(num_states) < 0.3, action[::-1], action)
        actions.append(action)
    return np.array(actions)


def groups_of(actions: np.ndarray) -> tuple[Images, list[ImageGroup]]:
    images = images_of(actions)
    assert images is not None
    return images, image_groups(images)


def after(actions: np.ndarray, word: tuple[int, ...], states: np.ndarray) -> np.ndarray:
    for action in word:
        states = actions[action][states]
    return states


@pytest.mark.parametrize("seed", range(60))
def test_the_maximal_groups_of_images_are_those_of_the_monoid(seed: int) -> None:
    actions = random_actions(seed)
    monoid = transition_monoid(actions, Budget(20_000, 100_000))
    if monoid is None:
        pytest.skip("the monoid is too large to list")
    listed = [len(group) for _, group in monoid.maximal_subgroups()]
    _, groups = groups_of(actions)
    maximal = Counter(group.order for group in groups if group.is_maximal)
    assert maximal == Counter(order for order in listed if order > 1)
    assert all(any(order % group.order == 0 for order in listed) for group in groups)


@pytest.mark.parametrize("seed", range(20))
def test_images_and_words_of_groups_are_what_they_say(seed: int) -> None:
    actions = random_actions(seed)
    images, groups = groups_of(actions)
    everything = np.arange(actions.shape[1])
    for number in range(len(images)):
        states = np.unique(after(actions, images.word_to(number), everything))
        assert states.tolist() == np.flatnonzero(images.members[number]).tolist()
    for group in groups:
        for word, permutation in zip(group.words, group.permutations, strict=True):
            assert (after(actions, word, group.points) == group.points[permutation]).all()


def test_words_that_generate_a_group_are_the_shortest_loops() -> None:
    actions = np.array([[1, 2, 3, 4, 0], [1, 0, 2, 3, 4]])
    _, (group,) = groups_of(actions)
    assert group.order == 120
    assert group.is_maximal
    assert group.words == ((0,), (1,))


def test_too_many_images_are_none() -> None:
    actions = np.array([[1, 2, 3, 4, 0], [1, 1, 2, 3, 4]])
    assert images_of(actions, most=10) is None


def test_states_that_differ_for_a_while_settle_to_one() -> None:
    # 0 and 1 swap under the first symbol; 2 and 3 lead where 0 does, the latter by way of 2
    delta = np.array([[1, 0], [0, 1], [1, 0], [1, 0], [1, 2]])
    machine = settled(delta)
    assert machine.classes.tolist() == [0, 1, 0, 0, 0]
    assert machine.actions.tolist() == [[1, 0], [0, 1]]
