"""Images of a machine's states, and the groups that words make on them."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from statetrack.algebra.analysing import analyse
from statetrack.algebra.images import ImageGroup, Images, image_groups, images_of, settled
from statetrack.algebra.monoid_facts import facts_of_images
from statetrack.algebra.subgroups import MOST_LISTED, Subgroup
from statetrack.sources import Automaton
from statetrack.sources.formats import read_machine
from statetrack.spec import TASKS, load_task


def random_actions(seed: int, most: int = 5) -> np.ndarray:
    """Two or three maps of three states or more, most of them with few images."""
    draw = np.random.default_rng(seed)
    num_states = int(draw.integers(3, most + 1))
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


def random_automaton(seed: int, most: int = 5) -> Automaton:
    """A few states; some with symbols that are not drawn, and labels not asked for."""
    draw = np.random.default_rng(seed)
    delta = random_actions(seed, most).T
    drawn = draw.random(delta.shape) < (0.8 if seed % 4 == 1 else 1)
    drawn[:, 0] = True
    states = [0]
    for state in states:
        states += sorted(set(delta[state, drawn[state]].tolist()) - set(states))
    place = np.zeros(len(delta), int)
    place[states] = np.arange(len(states))
    delta, drawn = np.where(drawn, place[delta], 0)[states], drawn[states]
    output = draw.integers(0, 2, len(delta)) if seed % 3 else np.arange(len(delta))
    scored = draw.random(len(delta)) < (0.8 if seed % 4 == 2 else 1)
    scored[delta[0, 0]] = True
    return Automaton(delta, output, weights=drawn.astype(float), scored=scored)


def told(group: Subgroup) -> str:
    """What is known of a group whether its elements were listed or not."""
    if group.order > MOST_LISTED:
        group = replace(group, exponent=None, squares_length=None)
    return str(group)


def assert_images_agree_with_elements(automaton: Automaton) -> bool:
    """Whether there were few enough elements to list; then all that both tell is the same."""
    listed = analyse(automaton)
    if listed.elements is None:
        return False
    by_images = facts_of_images(listed.machine, listed.state_images)
    assert by_images is not None
    known = listed.monoid
    expected = [group for group in known.subgroups if group.order > 1]
    assert sorted(map(told, by_images.subgroups)) == sorted(map(told, expected))
    for what in ("aperiodic", "solvable", "nilpotent", "derived_length", "commutative"):
        assert getattr(by_images, what) == getattr(known, what), what
    assert by_images.l_trivial in (None, known.l_trivial)
    if known.quasi_aperiodic is not None:
        assert by_images.quasi_aperiodic == known.quasi_aperiodic
    assert known.counting_seen or not by_images.counting_seen
    if listed.machine.complete:
        assert by_images.counting_seen == known.counting_seen
    return True


@pytest.mark.parametrize("begin", range(0, 60, 10))
def test_what_images_tell_is_what_the_monoid_tells(begin: int) -> None:
    for seed in range(begin, begin + 10):
        assert assert_images_agree_with_elements(random_automaton(seed))


@pytest.mark.slow
@pytest.mark.parametrize("begin", range(60, 360, 50))
def test_what_images_tell_of_many_machines_is_what_the_monoid_tells(begin: int) -> None:
    for seed in range(begin, begin + 50):
        assert_images_agree_with_elements(random_automaton(seed, most=7))


@pytest.mark.slow
@pytest.mark.parametrize("task", [name for name in TASKS if load_task(name).has_automaton])
def test_what_images_tell_of_a_task_is_what_its_monoid_tells(task: str) -> None:
    assert_images_agree_with_elements(load_task(task).automaton)


MACHINES = os.environ.get("STATETRACK_MACHINES")


@pytest.mark.skipif(MACHINES is None, reason="STATETRACK_MACHINES names no folder of machines")
def test_what_images_tell_of_machine_files_is_what_their_monoids_tell() -> None:
    files = sorted(Path(MACHINES or "").glob("*.dot"))
    assert files
    compared = [assert_images_agree_with_elements(read_machine(file)) for file in files]
    assert any(compared)


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
