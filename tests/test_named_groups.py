"""Groups by name: that the permutations generate what the name says, and what is predicted."""

import math

import numpy as np
import pytest
from sympy.combinatorics import Permutation, PermutationGroup

from statetrack.algebra import analyse
from statetrack.algebra.groups import name_of_simple
from statetrack.errors import TaskError
from statetrack.predicting import predict
from statetrack.sources.named_groups import alphabet_of, field_of, named_group
from statetrack.spec import load_task
from tests.minimal_state import COLLECTION

SIMPLE = ("A5", "A6", "A7", "A8", "A9", "M11", "M12", *(f"PSL(2,{q})" for q in (4, 5, 7, 8, 9, 11)))
PROJECTIVE = tuple(f"PSL(3,{q})" for q in (2, 3, 4, 5))


def sympy_group(name: str, points: int | None = None) -> PermutationGroup:
    generators = named_group(name, points).generators.values()
    return PermutationGroup([Permutation(list(each)) for each in generators])


def known_order(name: str) -> int:
    """By formulas of the books, not by those of the code."""
    orders = {"M11": 11 * 10 * 9 * 8, "M12": 12 * 11 * 10 * 9 * 8, "V4": 4, "F20": 20, "F21": 21}
    if name in orders:
        return orders[name]
    if "^" in name:
        base, power = name[1:].split("^")
        return int(base) ** int(power)
    if name.startswith("PSL(2,"):
        q = int(name[6:-1])
        return q * (q * q - 1) // (1 if q % 2 == 0 else 2)
    if name.startswith("PSL(3,"):
        return {"2": 168, "3": 5616, "4": 20160, "5": 372000}[name[6:-1]]
    n = int(name[1:])
    family = {"C": n, "D": 2 * n, "Q": n, "S": math.factorial(n), "A": math.factorial(n) // 2}
    return family[name[0]]


def test_the_collection_has_58_solvable_groups_and_36_others() -> None:
    assert len(COLLECTION) == len(set(COLLECTION)) == 94
    small = [name for name in COLLECTION if named_group(name).points <= 32]
    assert sum(not sympy_group(name).is_solvable for name in small if name[0] not in "SA") == 12


@pytest.mark.parametrize("name", COLLECTION)
def test_generators_generate_a_transitive_group_of_the_order_that_the_name_has(name: str) -> None:
    named, order = named_group(name), known_order(name)
    assert named.order == order
    if named.points <= 128:
        group = sympy_group(name)
        assert group.order() == order
        assert group.is_transitive()
    else:  # C5^4: it has as many points as elements, and its generators commute
        moved = np.array(list(named.generators.values()))
        assert all((a[b] == b[a]).all() for a in moved for b in moved)
        assert load_task(f"point:group={name}").automaton.num_states == order == named.points


def test_elements_of_more_than_256_points_are_multiplied_or_their_names_refused() -> None:
    turns = load_task("word-problem:group=C257").automaton
    assert sorted(turns.delta[:, 0].tolist()) == list(range(257))
    assert turns.states[turns.delta[0, 0]].startswith("(1,2,3")
    point = load_task("point:group=C257").automaton
    assert (turns.delta == point.delta).all() and turns.symbols == point.symbols
    for name, mend in (("C5^4", "is the same machine"), ("D257", "follows one point instead")):
        with pytest.raises(TaskError, match=f"1,000 are the most: `point:.*` {mend}$") as refused:
            load_task(f"word-problem:group={name}")
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", [*SIMPLE, *PROJECTIVE])
def test_a_simple_group_gets_its_name_back(name: str) -> None:
    same = {"PSL(2,4)": "A5", "PSL(2,5)": "A5", "PSL(2,9)": "A6", "PSL(3,2)": "PSL(2,7)"}
    (group,) = analyse(load_task(f"point:group={name}").automaton).monoid.subgroups
    assert (group.name, group.order, group.solvable) == (
        same.get(name, name),
        known_order(name),
        False,
    )


@pytest.mark.parametrize(
    ("name", "order", "dimension"),
    [
        ("Rubik-corners", math.factorial(8) * 3**7, 16),
        ("Rubik-edges", math.factorial(12) * 2**11, 12),
    ],
)
def test_stickers_of_the_cube_are_told_apart_by_a_part_of_their_space(
    name: str, order: int, dimension: int
) -> None:
    group = sympy_group(name)
    assert (group.order(), group.degree, group.is_transitive()) == (order, 24, True)
    assert predict(f"point:group={name}", "bilinear").needs[0].value == dimension


@pytest.mark.parametrize("points", [11, 12])
def test_m11_is_transitive_on_4_of_11_points_and_on_3_of_12(points: int) -> None:
    group = sympy_group("M11", points)
    stabiliser, fixed = group, 0
    for fixed in range(points):
        if len(stabiliser.orbit(fixed)) < points - fixed:
            break
        stabiliser = stabiliser.stabilizer(fixed)
    assert group.order() == 7920
    assert fixed == {11: 4, 12: 3}[points]


@pytest.mark.parametrize(
    ("name", "dimension"),
    [
        ("C2", 1),
        ("C7", 2),  # one turn
        ("D6", 2),
        ("V4", 2),
        ("Q16", 4),  # the quaternions
        ("C2^5", 5),
        ("C3^4", 8),  # four turns
        ("F21", 6),  # the 3 complex dimensions, twice
        ("S9", 8),  # 2-transitive: all but the constant
        ("A9", 8),
        ("PSL(3,5)", 30),
        ("M11", 10),
        ("M11,points=12", 11),
        ("M12", 11),
        ("S3xC4", 4),
    ],
)
def test_the_smallest_width_comes_from_the_parts_of_the_points_space(
    name: str, dimension: int
) -> None:
    prediction = predict(f"point:group={name}", "bilinear")
    assert prediction.can == "yes"
    assert prediction.needs[0].value == dimension
    if dimension > 1:
        assert prediction.needs[0].least == dimension


def test_a_group_of_many_parts_is_decided_in_time() -> None:
    # 156 subgroups of index 5 in C5^4: found after one set of states for each of its subgroups
    automaton = load_task("point:group=C5^3").automaton
    assert analyse(automaton).representation.cost == 6


def test_a_point_is_moved_by_the_oldest_permutation_first() -> None:
    task = load_task("point:group=S4").automaton
    assert task.symbols == ("swap", "turn")
    assert task.labels_of(np.array([[0, 1, 1]]))[0].tolist() == [1, 2, 3]
    started = load_task("point:group=S4,start=4").automaton
    assert started.labels_of(np.array([[0, 1]]))[0].tolist() == [3, 0]


def test_the_word_problem_has_all_elements_as_states() -> None:
    assert load_task("word-problem:group=Q16").automaton.num_states == 16
    assert load_task("word-problem:group=PSL(2,8),generators=all").automaton.num_symbols == 504
    (group,) = analyse(load_task("word-problem:group=PSL(2,11)").automaton).monoid.subgroups
    assert group.name == "PSL(2,11)"


def test_alphabets_are_closed_as_they_say() -> None:
    group = named_group("M11", 12)
    few, more = alphabet_of(group, "few"), alphabet_of(group, "with-inverses")
    assert list(more) == ["a", "b", "b^-1"] and list(few) == ["a", "b"]
    assert tuple(more["b"][each] for each in more["b^-1"]) == tuple(range(12))
    assert len(alphabet_of(named_group("D5"), "all")) == 10


@pytest.mark.parametrize(("prime", "exponent"), [(2, 1), (7, 1), (2, 2), (2, 3), (3, 2), (5, 2)])
def test_a_field_is_one(prime: int, exponent: int) -> None:
    field = field_of(prime, exponent)
    sums, products, size = field.sums, field.products, prime**exponent
    a, b, c = np.meshgrid(*[np.arange(size)] * 3, indexing="ij")
    assert (products[a, sums[b, c]] == sums[products[a, b], products[a, c]]).all()
    assert (products[products[a, b], c] == products[a, products[b, c]]).all()
    assert all(products[each, field.inverse(each)] == 1 for each in range(1, size))
    assert all(sums[each, field.negative(each)] == 0 for each in range(size))


def test_orders_name_simple_groups_and_nothing_else() -> None:
    assert name_of_simple(2448) == "PSL(2,17)"
    assert name_of_simple(20160) == ""  # A8 or PSL(3,4)
    assert name_of_simple(6048) == ""  # PSU(3,3)
    assert name_of_simple(244_823_040) == "M24"


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ("point:group=G7", "there is no group 'G7'"),
        ("point:group=C1", "C1: n is 2 to"),
        ("point:group=D2", "D2 is V4"),
        ("point:group=Q6", "Q6: n is a multiple of 4"),
        ("point:group=F15", "F15: n is p k"),
        ("point:group=PSL(2,6)", "q a power of a prime"),
        ("point:group=PSL(9,9)", "the points at most"),
        ("point:group=S30xS40", "would move 1200 points"),
        ("point:group=M11,points=13", "'M11' moves 11, 12 points here, not 13"),
        ("point:group=S4,start=5", "start: 5 is not one of the points 1 to 4"),
        ("point:group=S9,generators=all", "more than 5040 elements"),
        ("word-problem:group=S9", "more than 5040 elements"),
    ],
)
def test_what_is_no_group_is_refused_in_one_line(task: str, message: str) -> None:
    with pytest.raises(TaskError) as caught:
        load_task(task)
    assert message in str(caught.value)
