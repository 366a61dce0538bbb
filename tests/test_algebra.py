"""The algebra of a task: against libsemigroups, published facts, and groups known by hand."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable

import numpy as np
import pytest
from libsemigroups_pybind11 import Konieczny, ReportGuard, Transf

from statetrack.algebra import (
    Group,
    MonoidBudget,
    analyse,
    name_of,
    needed_machine,
    transition_monoid,
)
from statetrack.algebra.groups import factorise, invariant_factors
from statetrack.algebra.maps import Numbers
from statetrack.models import MODEL_FACTS
from statetrack.predicting import predict
from statetrack.sources import Automaton, orbits, strong_components
from statetrack.spec import TASKS, load_task

# --- against an independent implementation ---

NUM_RANDOM = 320


def random_machine(seed: int) -> Automaton:
    """A machine of 2 to 5 states (now and then 6) and 1 to 4 symbols; some permute the states."""
    draw = np.random.default_rng(seed)
    num_states, num_symbols = draw.integers(2, 7 if seed % 40 == 0 else 6), draw.integers(1, 5)
    columns = [
        draw.permutation(num_states)
        if draw.random() < 0.4
        else draw.integers(0, num_states, num_states)
        for _ in range(num_symbols)
    ]
    delta = np.stack(columns, axis=1)
    reached = sorted({0} | set(np.flatnonzero(_reached(delta)).tolist()))
    renumbered = {state: place for place, state in enumerate(reached)}
    return Automaton([[renumbered[target] for target in delta[state]] for state in reached])


def _reached(delta: np.ndarray) -> np.ndarray:
    reached = np.zeros(len(delta), bool)
    reached[0] = True
    for _ in range(len(delta)):
        reached[delta[reached].ravel()] = True
    return reached


def test_monoids_of_random_machines_are_those_that_libsemigroups_finds() -> None:
    ReportGuard(False)
    seen = {"groups": 0, "aperiodic": 0, "neither": 0}
    for seed in range(NUM_RANDOM):
        automaton = random_machine(seed)
        facts = analyse(automaton).monoid
        assert facts is not None
        smallest = needed_machine(automaton).automaton
        maps = [list(range(smallest.num_states)), *smallest.delta.T.tolist()]
        oracle = Konieczny(*[Transf(each) for each in maps])
        classes = list(oracle.D_classes())
        regular = [each for each in classes if each.is_regular_D_class()]
        group_orders = sorted(each.size_H_class() for each in regular)
        assert facts.size == oracle.size(), seed
        assert facts.idempotents == oracle.number_of_idempotents(), seed
        assert facts.j_classes == oracle.number_of_D_classes(), seed
        assert facts.regular_j_classes == oracle.number_of_regular_D_classes(), seed
        assert sorted(group.order for group in facts.subgroups) == group_orders, seed
        assert facts.aperiodic == (max(group_orders) == 1), seed
        kind = "groups" if oracle.number_of_idempotents() == 1 else "neither"
        seen["aperiodic" if facts.aperiodic else kind] += 1
    assert min(seen.values()) > 20, seen


@pytest.mark.parametrize("num_points", [3, 4, 5])
def test_all_maps_of_n_points_are_n_to_the_n_and_have_each_symmetric_group_once(
    num_points: int,
) -> None:
    points = list(range(num_points))
    swap, turn, merge = [1, 0, *points[2:]], [*points[1:], 0], [0, 0, *points[2:]]
    facts = analyse(Automaton(np.transpose([swap, turn, merge]))).monoid
    assert facts is not None
    assert facts.size == num_points**num_points
    names = ["trivial", "Z2", "S3", "S4", "S5"][:num_points]
    assert [group.name for group in facts.subgroups] == names[::-1]
    assert facts.solvable == (num_points < 5)


# --- the regular languages of Bhattamishra et al. 2020, as Sarrof et al. 2024 use them ---


LANGUAGES = {
    "tomita-1": (2, 2, []),
    "tomita-2": (3, 6, []),
    "tomita-3": (5, 26, ["Z2"]),
    "tomita-4": (4, 12, []),
    "tomita-5": (4, 4, ["Z2xZ2"]),
    "tomita-6": (3, 3, ["Z3"]),
    "tomita-7": (5, 9, []),
    "parity": (2, 2, ["Z2"]),
    "aa-star": (2, 2, ["Z2"]),
    "aaaa-star": (4, 4, ["Z4"]),
    "abab-star": (5, 10, ["Z2"]),
    "dyck-1-depth-2": (4, 15, []),
    "dyck-1-depth-3": (5, 31, []),
    "dyck-1-depth-4": (6, 56, []),
    "dyck-1-depth-12": (14, 820, []),
    "five-blocks": (7, 17, []),
    "ab-d-bc": (3, 5, []),
    "zero-then-twos": (2, 3, []),
}
"""States of the smallest complete automaton, elements of its monoid, and groups in that."""


@pytest.mark.parametrize("name", LANGUAGES)
def test_regular_languages_have_their_published_sizes_and_groups(name: str) -> None:
    num_states, size, groups = LANGUAGES[name]
    algebra = analyse(load_task(name).automaton)
    facts = algebra.monoid
    assert facts is not None
    assert (algebra.num_states, facts.size) == (num_states, size)
    assert sorted({group.name for group in facts.subgroups} - {"trivial"}) == groups
    assert facts.aperiodic == (not groups)
    assert facts.solvable
    if facts.aperiodic:
        assert facts.quasi_aperiodic


def test_eleven_of_the_eighteen_languages_are_star_free() -> None:
    aperiodic = [analyse(load_task(name).automaton).monoid.aperiodic for name in LANGUAGES]
    assert (sum(aperiodic), len(aperiodic)) == (11, 18)


# --- complexity ---


@pytest.mark.parametrize(
    ("automaton", "expected"),
    [
        (load_task("aa-star").automaton, "AC0"),  # not star-free, but the length is known
        (load_task("abab-star").automaton, "AC0"),
        (load_task("tomita-1").automaton, "AC0"),
        (load_task("parity").automaton, "ACC0"),
        (load_task("tomita-3").automaton, "AC0"),  # its group is that of 1^n, as in (aa)*
        (load_task("tomita-6").automaton, "ACC0"),
        (load_task("flip-flop").automaton, "AC0"),
        (load_task("even-pairs").automaton, "AC0"),
        (load_task("s4").automaton, "ACC0"),
        (load_task("a5").automaton, "NC1-complete"),
        (load_task("s5-swaps").automaton, "NC1-complete"),
    ],
)
def test_complexity_classes_of_known_tasks(automaton: Automaton, expected: str) -> None:
    algebra = analyse(automaton)
    assert algebra.complexity.name == expected
    assert algebra.monoid.quasi_aperiodic == (expected == "AC0")


def hidden(automaton: Automaton) -> Automaton:
    """The same machine with one label, which is asked for in the start alone."""
    scored = np.arange(automaton.num_states) == automaton.start
    return Automaton(automaton.delta, np.zeros(automaton.num_states, int), scored=scored)


def all_permutations_of(num_points: int) -> Automaton:
    turned = np.roll(np.arange(num_points), -1)
    return Automaton(np.column_stack([turned, [1, 0, *range(2, num_points)]]))


@pytest.mark.parametrize(
    ("machine", "shown", "not_shown"),
    [
        (load_task("s5-swaps").automaton, "NC1-complete", "unknown"),
        (all_permutations_of(12), "NC1-complete", "unknown"),  # too large a group to be listed
        (load_task("s4").automaton, "ACC0", "ACC0"),
    ],
)
def test_a_group_that_labels_never_show_makes_them_no_harder(
    machine: Automaton, shown: str, not_shown: str
) -> None:
    seen, unseen = analyse(machine), analyse(hidden(machine))
    assert [group.seen for group in seen.monoid.subgroups] == [True]
    assert [group.seen for group in unseen.monoid.subgroups] == [False]
    assert (seen.complexity.name, unseen.complexity.name) == (shown, not_shown)
    assert (seen.order_matters, unseen.order_matters) == (True, False)
    assert "not AC0" not in unseen.complexity.theorem
    for model in ("mamba", "mamba3", "transformer", "diagonal-positive", "diagonal-complex"):
        assert predict(unseen, model).can != "no", model


@pytest.mark.parametrize("name", ["s3-two-tokens", "s4-fused-swaps", "modular-arithmetic"])
def test_counting_that_labels_show_is_beyond_constant_depth_in_words_of_blocks_too(
    name: str,
) -> None:
    complexity = analyse(load_task(name).automaton).complexity
    assert complexity.name == "ACC0" and "not AC0" in complexity.theorem


def words_of_one_length_make_a_group(automaton: Automaton, most: int) -> bool:
    """The definition of not quasi-aperiodic, by brute force over lengths up to `most`."""
    actions = [tuple(column) for column in automaton.delta.T.tolist()]
    made = {tuple(range(automaton.num_states))}
    for _ in range(most):
        made = {tuple(action[state] for state in each) for each in made for action in actions}
        powers = {each: [each] for each in made}
        for each in made:
            for _ in range(automaton.num_states**2):
                last = powers[each][-1]
                powers[each].append(tuple(each[state] for state in last))
        going_round = {each for each in made if powers[each][-1] != powers[each][-2]}
        if any(set(powers[each][-13:]) <= made for each in going_round):
            return True
    return False


def test_quasi_aperiodic_is_what_the_definition_says() -> None:
    found = {True: 0, False: 0}
    for seed in range(400, 480):
        draw = np.random.default_rng(seed)
        delta = draw.integers(0, 3, (3, 2))
        if not _reached(delta).all():
            continue
        facts = analyse(Automaton(delta)).monoid
        by_definition = not words_of_one_length_make_a_group(Automaton(delta), 24)
        assert facts.quasi_aperiodic == by_definition, seed
        found[by_definition] += 1
    assert min(found.values()) > 5, found


# --- groups ---

GROUPS = {
    "cyclic:n=4": ("Z4", 4, 1),
    "product(cyclic:n=2,cyclic:n=2)": ("Z2xZ2", 4, 1),
    "product(cyclic:n=4,cyclic:n=6)": ("Z2xZ12", 24, 1),
    "s3": ("S3", 6, 2),
    "dihedral:n=4": ("D4", 8, 2),
    "dihedral:n=5": ("D5", 10, 2),
    "dihedral:n=12": ("D12", 24, 2),
    "quaternion": ("Q8", 8, 2),
    "a4": ("A4", 12, 2),
    "s4": ("S4", 24, 3),
    "a5": ("A5", 60, None),
    "s5": ("S5", 120, None),
    "alternating:n=6": ("A6", 360, None),
    "symmetric:n=6": ("S6", 720, None),
    "a4xz5": ("A4xZ5", 60, 2),
    "product(quaternion,cyclic:n=3)": ("Z3xQ8", 24, 2),
    "product(a5,cyclic:n=2)": ("A5xZ2", 120, None),
    "product(s3,s3)": ("order 36, solvable, not abelian", 36, 2),
}


@pytest.mark.parametrize("task", GROUPS)
def test_word_problems_of_groups_give_the_group_back(task: str) -> None:
    name, order, derived_length = GROUPS[task]
    algebra = analyse(load_task(task).automaton)
    facts = algebra.monoid
    (group,) = facts.subgroups
    assert (group.name, group.order, group.derived_length) == (name, order, derived_length)
    assert algebra.is_group and facts.size == order and facts.idempotents == facts.j_classes == 1
    assert facts.solvable == (derived_length is not None)
    assert facts.commutative == group.abelian == (derived_length == 1)
    nilpotent = {"D4", "Q8", "Z3xQ8"}
    assert facts.nilpotent == group.nilpotent == (group.abelian or name in nilpotent)


def affine_group(prime: int, factor: int) -> Group:
    """The maps x -> a x + b modulo a prime, a a power of `factor`."""
    factors = sorted({pow(factor, power, prime) for power in range(prime)})
    maps = [[(a * x + b) % prime for x in range(prime)] for a in factors for b in range(prime)]
    return Group(np.array(maps))


def matrix_group(generators: list[list[list[int]]], prime: int) -> Group:
    """Matrices modulo a prime as permutations of all vectors."""
    size = len(generators[0])
    vectors = list(itertools.product(range(prime), repeat=size))
    maps = [
        [vectors.index(tuple(np.array(vector) @ np.array(matrix) % prime)) for vector in vectors]
        for matrix in generators
    ]
    monoid = transition_monoid(np.array(maps), MonoidBudget())
    return Group(monoid.elements.astype(np.int64))


def heisenberg(prime: int) -> Group:
    one, two = np.eye(3, dtype=int), np.eye(3, dtype=int)
    one[0, 1] = two[1, 2] = 1
    return matrix_group([one.tolist(), two.tolist()], prime)


def dicyclic(n: int) -> Group:
    """r of order 2n and s with s^2 = r^n, acting on themselves: r^i s^j is number i + 2n j."""
    turns = 2 * n
    by_r = [(i + 1) % turns for i in range(turns)] + [turns + (i - 1) % turns for i in range(turns)]
    by_s = [turns + i for i in range(turns)] + [(i + n) % turns for i in range(turns)]
    monoid = transition_monoid(np.array([by_r, by_s]), MonoidBudget())
    return Group(monoid.elements.astype(np.int64))


@pytest.mark.parametrize(
    ("group", "name"),
    [
        (affine_group(5, 2), "F20"),
        (affine_group(7, 3), "F42"),
        (affine_group(7, 2), "Z7:Z3"),
        (affine_group(7, 6), "D7"),
        (heisenberg(3), "H3"),
        (heisenberg(5), "H5"),
        (heisenberg(2), "D4"),
        (dicyclic(2), "Q8"),
        (dicyclic(3), "Dic3"),
        (dicyclic(4), "Q16"),
        (matrix_group([[[1, 1], [0, 1]], [[1, 0], [1, 1]]], 3), "SL(2,3)"),
        (matrix_group([[[1, 1], [0, 1]], [[1, 0], [1, 1]]], 5), "SL(2,5)"),
        (matrix_group([[[1, 1], [0, 1]], [[0, 1], [1, 0]]], 3), "order 48, solvable, not abelian"),
    ],
)
def test_groups_made_by_hand_are_named(group: Group, name: str) -> None:
    assert name_of(group) == name


def test_a_group_without_a_sure_name_is_described() -> None:
    special_linear = matrix_group([[[1, 1], [0, 1]], [[1, 0], [1, 1]]], 7)
    assert len(special_linear) == 336
    assert name_of(special_linear) == "order 336, not solvable, not abelian"


def test_a_simple_group_is_named_by_its_order() -> None:
    line = np.arange(11)
    shifted = np.append((line + 1) % 11, 11)
    inverted = np.append([-pow(int(x), -1, 11) % 11 if x else 11 for x in line], 0)
    monoid = transition_monoid(np.array([shifted, inverted]), MonoidBudget())
    assert monoid is not None and monoid.is_group
    projective = Group(monoid.elements.astype(np.int64))
    assert len(projective) == len(projective.derived) == 660
    assert name_of(projective) == "PSL(2,11)"


def test_a_perfect_group_that_is_not_simple_is_described() -> None:
    (group,) = analyse(load_task("point:group=A5xA5").automaton).monoid.subgroups
    assert group.order == 3600
    assert group.name == "order 3600, not solvable, not abelian"


@pytest.mark.parametrize("factors", [("quaternion", "parity"), ("heisenberg", "cyclic:n=3")])
def test_a_product_of_groups_of_one_prime_is_described(factors: tuple[str, str]) -> None:
    automaton = load_task(f"product({','.join(factors)})").automaton
    (group,) = analyse(automaton).monoid.subgroups
    assert group.name == f"order {automaton.num_states}, solvable, not abelian"


@pytest.mark.parametrize(
    ("moduli", "factors"),
    [((2, 2), [2, 2]), ((4, 6), [2, 12]), ((6, 10, 15), [30, 30]), ((8, 2, 4, 9), [2, 4, 72])],
)
def test_invariant_factors_of_products_of_cyclic_groups(
    moduli: tuple[int, ...], factors: list[int]
) -> None:
    offsets = np.cumsum([0, *moduli[:-1]])
    elements = [
        np.concatenate(
            [
                offset + (np.arange(modulus) + shift) % modulus
                for offset, modulus, shift in zip(offsets, moduli, shifts, strict=True)
            ]
        )
        for shifts in itertools.product(*map(range, moduli))
    ]
    assert invariant_factors(Group(np.array(elements))) == factors


def test_products_inverses_orders_and_classes_are_those_of_permutations() -> None:
    draw = np.random.default_rng(3)
    group = Group(np.array(list(itertools.permutations(range(5)))))
    left, right = draw.integers(0, 120, (2, 300))
    products = group.permutations[group.times(left, right)]
    expected = np.take_along_axis(group.permutations[right], group.permutations[left], axis=1)
    assert (products == expected).all()
    assert (group.times(left, group.inverses[left]) == 0).all()
    assert np.bincount(group.orders).tolist() == [0, 1, 25, 20, 30, 24, 20]
    assert sorted(np.bincount(group.classes).tolist()) == [1, 10, 15, 20, 20, 24, 30]
    assert int(group.center.sum()) == 1 and len(group.derived) == 60
    assert group.exponent == 60 and not group.is_nilpotent


@pytest.mark.parametrize("task", ["cyclic:n=12", "symmetric:n=4", "dihedral:n=10"])
def test_elements_are_alike_that_are_conjugates_of_powers_of_each_other(task: str) -> None:
    monoid = transition_monoid(needed_machine(load_task(task).automaton).actions, MonoidBudget())
    assert monoid is not None
    group = Group(monoid.elements)
    classes = [{*group.classes[group.powers(element)].tolist()} for element in range(len(group))]
    alike = group.alike(range(len(group)))
    for first, second in itertools.product(range(len(group)), repeat=2):
        both = group.classes[first] in classes[second] and group.classes[second] in classes[first]
        assert both == (alike[first] == alike[second])


@pytest.mark.parametrize("num_states", [3, 80])
def test_maps_are_found_by_where_they_take_few_states(num_states: int) -> None:
    maps = np.tile(np.arange(num_states, dtype=np.uint8), (num_states, 1))
    maps[np.arange(num_states), np.arange(num_states)] = num_states - 1  # each moves one state
    numbers = Numbers.of_maps(maps)
    order = np.random.default_rng(0).permutation(num_states)
    assert (numbers.of(maps[order][:, numbers.base]) == order).all()


def test_a_number_is_the_product_of_its_factors() -> None:
    for number in range(1, 500):
        factors = factorise(number)
        assert int(np.prod([prime**power for prime, power in factors.items()])) == number
        assert all(all(prime % d for d in range(2, prime)) for prime in factors)


# --- parts of sets ---


def test_strong_components_are_points_that_reach_each_other() -> None:
    draw = np.random.default_rng(8)
    for _ in range(50):
        successors = draw.integers(0, 12, (12, 2))
        reach = np.eye(12, dtype=bool)
        for _ in range(12):
            reach = reach | reach[successors].any(axis=1)
        component = strong_components(successors)
        assert ((component[:, None] == component[None, :]) == (reach & reach.T)).all()
        assert (component[successors] <= component[:, None]).all()


def test_orbits_are_what_permutations_join() -> None:
    draw = np.random.default_rng(9)
    for _ in range(50):
        blocks = np.arange(30) // 5
        maps = [np.argsort(blocks * 1.0 + draw.random(30)) for _ in range(2)]
        closure = np.eye(30, dtype=bool)
        for _ in range(30):
            for each in maps:
                closure |= closure[each] | closure[:, each]
        expected = closure.argmax(axis=1)
        assert (orbits(maps, 30)[expected] == orbits(maps, 30)).all()
        assert (orbits(maps, 30) <= np.arange(30)).all()
        assert len(set(orbits(maps, 30).tolist())) >= 6


# --- what counts is what is asked for ---


def test_labels_decide_how_large_the_group_is() -> None:
    s4 = load_task("s4").automaton
    odd = [int(name.count("(") == 1 and len(name) in (5, 9)) for name in s4.states]
    sign = Automaton(s4.delta, odd)
    assert analyse(sign).monoid.subgroups[0].name == "Z2"
    image_of_1 = [int(word_image(name, "1")) - 1 for name in s4.states]
    assert analyse(Automaton(s4.delta, image_of_1)).monoid.size == 24


def word_image(cycles: str, point: str) -> str:
    """The image of a point under a permutation written in cycles."""
    for cycle in cycles.strip("()").split(")("):
        points = cycle.split(",")
        if point in points:
            return points[(points.index(point) + 1) % len(points)]
    return point


def test_what_is_never_drawn_leads_to_a_void_that_does_not_count_as_a_state() -> None:
    algebra = analyse(load_task("flip-flop").automaton)
    assert (algebra.num_states, algebra.machine.sink is None) == (8, False)
    forbidden = Automaton([[1, 0], [0, 1]], weights=[[1, 0], [1, 1]])
    allowed = Automaton([[1, 0], [0, 1]])
    assert analyse(allowed).monoid.size == 2
    assert analyse(forbidden).monoid.size > 2
    assert analyse(forbidden).num_states == 2


def test_a_start_that_only_the_empty_word_sees_does_not_count() -> None:
    group = load_task("s3").automaton
    spare = Automaton(
        np.vstack([group.delta[group.start], group.delta]) + 1, [6, *group.output.tolist()]
    )
    assert analyse(spare).is_group
    assert analyse(spare).to_json() == analyse(group).to_json()


def test_a_group_that_only_unasked_labels_show_is_not_seen() -> None:
    """Labels are asked for in one of two phases, and are the same there."""
    phases = Automaton([[1], [0]], [0, 1], scored=[True, False])
    (group,) = analyse(phases).monoid.subgroups
    assert (group.name, group.seen) == ("Z2", False)
    (asked,) = analyse(Automaton([[1], [0]], [0, 1])).monoid.subgroups
    assert asked.seen


def test_order_matters_only_where_words_that_are_drawn_show_it() -> None:
    assert analyse(load_task("flip-flop").automaton).order_matters
    assert not analyse(load_task("z60").automaton).order_matters
    only_alternating = Automaton(
        [[1, 3], [3, 2], [1, 3], [3, 3]], [0, 0, 1, 0], weights=[[1, 0], [0, 1], [1, 0], [1, 1]]
    )
    algebra = analyse(only_alternating)
    assert (algebra.monoid.commutative, algebra.order_matters) == (False, False)


def test_too_many_words_leave_open_only_whether_their_order_never_matters() -> None:
    draw = np.random.default_rng(0)
    many = Automaton(
        draw.integers(8, size=(8, 3_500)), np.arange(8) % 3, scored=np.arange(8) < 7
    )  # maps drawn at random do not commute
    assert analyse(many).order_matters is True
    of_one_label = Automaton(
        [[(place + 1) % 7, [1, 0, 2, 3, 4, 5, 6][place]] for place in range(7)],
        np.zeros(7, int),
        scored=np.arange(7) > 0,
    )
    assert analyse(of_one_label).order_matters is False
    hidden = needed_machine(of_one_label)
    assert hidden.order_matters(np.tile(hidden.actions, (2_000, 1))) is None


def test_two_states_are_held_by_all_but_definite_machines() -> None:
    last_two = Automaton([[0, 1], [2, 3], [0, 1], [2, 3]])
    assert not analyse(last_two).machine.holds_two_states
    for task in ("parity", "flip-flop", "turnstile", "ends-with-ab", "even-pairs"):
        held = analyse(load_task(task).automaton).machine.holds_two_states
        assert held == (task not in ("turnstile", "ends-with-ab")), task


# --- budgets ---


def test_a_monoid_and_images_beyond_the_budget_are_said_to_be_too_large() -> None:
    large, few_images = load_task("random-fsm:states=25,symbols=10").automaton, 1_000
    begun = time.process_time()
    algebra = analyse(large, MonoidBudget(most_images=few_images))
    assert time.process_time() - begun < 5
    assert algebra.monoid is None and "50,000 elements" in algebra.too_large
    assert "1,000 images" in algebra.too_large
    facts = algebra.to_json()
    assert facts["monoid_size"] is None and facts["complexity"]["class"] == "unknown"
    assert facts["order_matters"] is True
    small = analyse(load_task("random-fsm").automaton, MonoidBudget(100, most_images=10))
    assert small.monoid is None and "100" in small.too_large


def test_a_large_group_is_known_by_its_generators() -> None:
    algebra = analyse(load_task("random-permutations:states=10").automaton)
    assert algebra.too_large is None and algebra.is_group
    assert algebra.monoid.subgroups[0].name in ("S10", "A10")
    assert algebra.complexity.name == "NC1-complete"
    fewer = analyse(load_task("s5-swaps").automaton, MonoidBudget(most_elements=100))
    assert fewer.monoid.subgroups[0].name == "S5"
    small = analyse(load_task("random-permutations").automaton, MonoidBudget(most_elements=100))
    listed = analyse(load_task("random-permutations").automaton)
    unknown = {"irreducible_dimensions": None, "r_g": None}
    assert small.to_json() == {**listed.to_json(), **unknown}


def test_the_budget_of_products_is_every_element_times_every_generator() -> None:
    actions = needed_machine(load_task("s4").automaton).actions
    monoid = transition_monoid(actions, MonoidBudget())
    assert monoid is not None
    products = len(monoid) * len(monoid.generators)
    assert transition_monoid(actions, MonoidBudget(most_products=products)) is not None
    assert transition_monoid(actions, MonoidBudget(most_products=products - 1)) is None


def calls_in(work: Callable[[], object]) -> int:
    """How many Python functions are called: what is done for single states, symbols or pairs."""
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return calls


@pytest.mark.parametrize(
    ("task", "sizes"),
    [
        ("cyclic:n={}", (30, 120)),
        ("dihedral:n={}", (10, 40)),
        ("symmetric:n={},generators=swaps", (4, 5)),
    ],
)
def test_predictions_take_work_in_proportion_to_the_states(
    task: str, sizes: tuple[int, int]
) -> None:
    def predict_all(automaton: Automaton) -> None:
        algebra = analyse(automaton)
        algebra.to_json()
        for model in MODEL_FACTS:
            predict(algebra, model)

    predict_all(load_task("parity").automaton)  # what is done once, such as imports
    small, large = (load_task(task.format(size)).automaton for size in sizes)
    calls = [calls_in(lambda each=each: predict_all(each)) for each in (small, large)]
    assert calls[1] / calls[0] < 2 * large.num_states / small.num_states


@pytest.mark.parametrize("task", [name for name in TASKS if load_task(name).has_automaton])
def test_every_shipped_task_is_analysed_in_two_seconds(task: str) -> None:
    automaton = load_task(task).automaton
    begun = time.process_time()
    algebra = analyse(automaton)
    assert time.process_time() - begun < 2
    assert (algebra.monoid is None) == (algebra.too_large is not None)
    facts = algebra.to_json()
    assert facts["group"] == (facts["idempotents"] == 1)
    if facts["monoid_size"] is not None:
        assert facts["aperiodic"] == all(each["order"] == 1 for each in facts["subgroups"])
        assert facts["monoid_size"] >= facts["states"] - 1
