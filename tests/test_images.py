"""Images of a machine's states, and the groups that words make on them."""

import itertools
import math
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from libsemigroups_pybind11 import Konieczny, ReportGuard, Transf
from sympy.combinatorics import Permutation, PermutationGroup

from statetrack.algebra import MonoidBudget, analyse, transition_monoid
from statetrack.algebra.images import (
    HolonomyGroup,
    Images,
    StateImages,
    holonomy_groups,
    images_of,
    settled,
)
from statetrack.algebra.krohn_rhodes import cascade_of
from statetrack.algebra.monoid import order_of_short_words
from statetrack.algebra.monoid_facts import (
    MOST_LISTED,
    Subgroup,
    facts_of_images,
    generated_subgroup,
)
from statetrack.algebra.stabilizer_chain import StabilizerChain, WorkLeft, inverses, is_regular
from statetrack.sources import Automaton
from statetrack.spec import TASKS, load_task
from tests.references.reading import read_machine


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


def groups_of(actions: np.ndarray) -> tuple[Images, list[HolonomyGroup]]:
    images = images_of(actions)
    assert images is not None
    return images, holonomy_groups(images)


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


@pytest.mark.parametrize(
    ("num_states", "seed"), [(8, 0), (8, 2), (8, 3), (8, 4), (8, 5), (9, 1), (9, 3), (9, 4)]
)
def test_images_tell_the_groups_of_monoids_of_millions_of_maps(num_states: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    actions = draw.integers(0, num_states, (3, num_states))
    actions[0] = draw.permutation(num_states)
    assert transition_monoid(actions, MonoidBudget()) is None
    ReportGuard(False)
    oracle = Konieczny(*[Transf(each) for each in [list(range(num_states)), *actions.tolist()]])
    assert oracle.size() > 100_000
    orders = [each.size_H_class() for each in oracle.D_classes() if each.is_regular_D_class()]
    _, groups = groups_of(actions)
    found = [group.order for group in groups if group.is_maximal]
    assert sorted(found) == sorted(order for order in orders if order > 1)


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


def permuting(num_points: int, *cycles: tuple[int, ...]) -> np.ndarray:
    """The permutation of some points with these cycles."""
    permutation = np.arange(num_points)
    for cycle in cycles:
        permutation[list(cycle)] = np.roll(cycle, -1)
    return permutation


@pytest.mark.parametrize("seed", range(30))
def test_a_chain_of_stabilizers_tells_what_sympy_tells(seed: int) -> None:
    draw = np.random.default_rng(seed)
    num_points = int(draw.integers(3, 9))
    generators = []
    for _ in range(int(draw.integers(1, 4))):
        moved = draw.choice(num_points, int(draw.integers(2, num_points + 1)), replace=False)
        generators.append(permuting(num_points, tuple(moved)))
    chain = StabilizerChain(num_points, np.array(generators))
    group = PermutationGroup([Permutation(each.tolist()) for each in generators])
    assert chain.order == group.order()
    assert (chain.is_abelian(), chain.is_nilpotent()) == (group.is_abelian, group.is_nilpotent)
    assert (chain.derived_length() is not None) == group.is_solvable
    others = np.array([draw.permutation(num_points) for _ in range(20)])
    inside = [group.contains(Permutation(each.tolist())) for each in others]
    assert chain.contains(others).tolist() == inside
    if chain.order <= 720:
        elements = chain.elements()
        assert len(np.unique(elements, axis=0)) == chain.order == len(elements)
        assert chain.contains(elements).all()


def test_a_regular_group_takes_each_point_to_each_other_one_once() -> None:
    answers = []
    for seed in range(60):
        draw = np.random.default_rng(seed)
        num_points = int(draw.integers(2, 7))
        generators = draw.permuted(np.tile(np.arange(num_points), (2, 1)), axis=1)
        if seed % 2:  # powers of one turn
            turn = np.roll(np.arange(num_points), int(draw.integers(num_points)))
            generators = np.array([turn, turn[turn]])
        group = PermutationGroup([Permutation(each.tolist()) for each in generators])
        answers.append(is_regular(generators))
        assert answers[-1] == (group.is_transitive() and group.order() == num_points)
    assert {*answers} == {False, True}


@pytest.mark.parametrize("task", ["symmetric:n=5,generators=swaps", "dihedral:n=40", "quaternion"])
def test_the_group_of_a_word_problem_has_a_chain_of_one_point(task: str) -> None:
    actions = analyse(load_task(task).automaton).machine.actions
    assert is_regular(actions)
    chain = StabilizerChain(actions.shape[1], actions)
    assert (chain.order, chain.depth) == (actions.shape[1], 1)
    elements = chain.elements().astype(np.int64)
    assert chain.contains(elements).all()
    others = np.array([np.roll(each, 1) for each in actions])
    known = {each.tobytes() for each in elements}
    assert chain.contains(others).tolist() == [each.tobytes() in known for each in others]
    assert not chain.add(actions[-1])


def test_a_regular_group_takes_in_one_more_generator() -> None:
    actions = analyse(load_task("dihedral:n=4").automaton).machine.actions
    for cycle in itertools.combinations(range(8), 2):
        chain = StabilizerChain(8, actions)
        assert chain.order == 8 and chain.add(permuting(8, cycle))
        both = [Permutation(each.tolist()) for each in chain.generators]
        assert chain.order == PermutationGroup(both).order()


@pytest.mark.parametrize("num_points", [5, 100])
def test_inverses_undo_permutations(num_points: int) -> None:
    draw = np.random.default_rng(1)
    permutations = draw.permuted(np.tile(np.arange(num_points), (20, 1)), axis=1)
    both = np.take_along_axis(inverses(permutations), permutations, axis=1)
    assert (both == np.arange(num_points)).all()


def test_the_budget_of_images_is_every_image_times_every_action(monkeypatch) -> None:
    actions = random_actions(1)
    images = images_of(actions)
    assert images is not None
    monkeypatch.setattr("statetrack.algebra.images.MOST_WORK", len(images) * actions.size)
    assert images_of(actions) is not None
    monkeypatch.setattr("statetrack.algebra.images.MOST_WORK", len(images) * actions.size - 1)
    assert images_of(actions) is None


def test_large_groups_are_named_without_a_list_of_their_elements() -> None:
    turn, swap = permuting(120, tuple(range(120))), permuting(120, (0, 1))
    symmetric = generated_subgroup(np.array([turn, swap]), seen=True)
    assert symmetric is not None
    assert (symmetric.name, symmetric.order) == ("S120", math.factorial(120))
    three = permuting(21, (0, 1, 2))
    alternating = generated_subgroup(np.array([permuting(21, tuple(range(21))), three]), seen=True)
    assert alternating is not None and alternating.name == "A21"
    # swaps inside ten pairs, and a turn of the pairs
    pairs = permuting(20, tuple(range(0, 20, 2)), tuple(range(1, 20, 2)))
    wreath = generated_subgroup(np.array([permuting(20, (0, 1)), pairs]), seen=True)
    assert wreath is not None and wreath.solvable and not wreath.abelian
    assert (wreath.order, wreath.derived_length) == (2**10 * 10, 2)


def test_what_is_too_much_work_for_a_group_is_not_known() -> None:
    blocks = permuting(90, tuple(range(45)), tuple(range(45, 90)))
    swaps = permuting(90, (0, 1), (45, 46))
    assert generated_subgroup(np.array([blocks, swaps]), True, WorkLeft(10_000)) is None


def test_images_bound_the_group_complexity_as_the_monoid_does() -> None:
    turn, swap, merge = np.array([1, 2, 3, 0]), np.array([1, 0, 2, 3]), np.array([0, 0, 2, 3])
    actions = np.array([turn, swap, merge])
    cascade = cascade_of(actions, None, StateImages(actions.T))
    assert (cascade.fewest_groups, cascade.most_groups) == (3, 3)
    for seed in range(25):
        actions = random_actions(seed)
        listed = cascade_of(actions, transition_monoid(actions, MonoidBudget()))
        found = cascade_of(actions, None, StateImages(actions.T))
        assert found.fewest_groups == listed.fewest_groups
        assert found.most_groups is not None and listed.most_groups is not None
        assert found.most_groups >= listed.most_groups


def test_the_order_of_words_is_shown_by_short_ones_only_where_it_matters() -> None:
    flip_flop = [[0, 0, 1], [1, 0, 1]]  # keep, set to 0, set to 1
    both_occurred = [[0, 1, 2], [1, 1, 3], [2, 3, 2], [3, 3, 3]]
    assert order_of_short_words(analyse(Automaton(flip_flop)).machine)
    assert not order_of_short_words(analyse(Automaton(both_occurred)).machine)
    answers = set()
    for seed in range(30):  # maps that keep the order of the states: aperiodic
        draw = np.random.default_rng(seed)
        delta = np.sort(draw.integers(0, 4, (4, 3)), axis=0)
        delta[:, 0] = np.minimum(np.arange(4) + 1, 3)
        algebra = analyse(Automaton(delta))
        by_words = order_of_short_words(algebra.machine) is not None
        answers.add(by_words)
        assert algebra.local_order_matters or not by_words
    assert answers == {False, True}
