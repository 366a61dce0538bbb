"""Quantities of a task that `show` prints, each against its definition on random machines."""

import itertools
from functools import cache

import numpy as np
import pytest

from statetrack.algebra import (
    FewestStates,
    MonoidBudget,
    analyse,
    fewest_states,
    identification,
    needed_machine,
    transition_monoid,
)
from statetrack.algebra.krohn_rhodes import cascade_of, holonomy_levels
from statetrack.errors import TaskError
from statetrack.sources import Automaton
from tests.claims.cells import algebra_of


def random_maps(number, most_states=4, most_actions=3):
    """Some maps of a few states for every seed, `[K, S]`; every third time they only go up."""
    for seed in range(number):
        draw = np.random.default_rng(seed)
        num_states = int(draw.integers(1, most_states + 1))
        maps = draw.integers(num_states, size=(int(draw.integers(1, most_actions + 1)), num_states))
        if seed % 3 == 1:
            maps = np.maximum(maps, np.arange(num_states))
        if seed % 3 == 2:
            maps[0] = draw.permutation(num_states)
        yield maps


def elements_of(maps):
    """All products of some maps, as tuples, by definition."""
    found = {tuple(range(maps.shape[1]))}
    open_ = list(found)
    while open_:
        one = open_.pop()
        for each in maps.tolist():
            product = tuple(each[state] for state in one)
            if product not in found:
                found.add(product)
                open_.append(product)
    return found


def times(first, second):
    return tuple([second[state] for state in first])


# --- how elements divide each other ---


def test_r_l_and_j_trivial_monoids_are_those_without_two_elements_that_divide_each_other():
    seen = set()
    for maps in random_maps(150):
        algebra = analyse(Automaton(*reached(maps)))
        elements = elements_of(algebra.machine.actions)
        right = {one: frozenset(times(one, each) for each in elements) for one in elements}
        left = {one: frozenset(times(each, one) for each in elements) for one in elements}
        both = {one: frozenset().union(*(left[each] for each in right[one])) for one in elements}
        expected = tuple(len(set(of.values())) == len(elements) for of in (right, left, both))
        facts = algebra.monoid
        assert (facts.r_trivial, facts.l_trivial, facts.j_trivial) == expected
        assert facts.aperiodic or not (facts.r_trivial or facts.l_trivial)
        seen.add(expected)
    assert len(seen) == 4


def reached(maps):
    """The part of maps that can be reached from state 0, as a table with the states as labels."""
    kept = [0]
    for state in kept:
        kept.extend(sorted({int(each[state]) for each in maps} - set(kept)))
    number = {state: place for place, state in enumerate(kept)}
    return [[[number[int(each[state])] for each in maps] for state in kept]]


# --- cascades ---


def holonomy_by_definition(maps):
    """The height of the set of all states, and the heights with a group, from all elements."""
    elements, states = elements_of(maps), range(maps.shape[1])
    sets = {frozenset(one) for one in elements} | {frozenset([state]) for state in states}

    def image(part, one):
        return frozenset(one[state] for state in part)

    def below(part, other):
        return any(part <= image(other, one) for one in elements)

    heights: dict[frozenset, int] = {}

    def height(part):
        if len(part) == 1:
            return 0
        if part not in heights:
            lower = [each for each in sets if below(each, part) and not below(part, each)]
            heights[part] = 1 + max(map(height, lower))
        return heights[part]

    with_groups = set()
    for part in sets:
        inside = [each for each in sets if each < part]
        tiles = [each for each in inside if not any(each < other for other in inside)]
        kept = [one for one in elements if image(part, one) == part]
        if any(image(tile, one) != tile for one in kept for tile in tiles):
            with_groups.add(height(part))
    return height(frozenset(states)), len(with_groups)


def test_the_levels_of_the_holonomy_decomposition_are_those_of_its_definition():
    found = [(holonomy_levels(maps), holonomy_by_definition(maps)) for maps in random_maps(200)]
    assert all(ours == expected for ours, expected in found)
    assert {levels for (levels, _), _ in found} == {0, 1, 2, 3, 4}


def test_bounds_of_the_group_complexity_agree_with_each_other_and_with_what_is_known():
    for maps in random_maps(150):
        monoid = transition_monoid(maps, MonoidBudget())
        cascade, facts = cascade_of(maps, monoid), analyse(Automaton(*reached(maps))).monoid
        assert 0 <= cascade.fewest_groups <= cascade.most_groups <= maps.shape[1] - 1
        assert cascade.levels <= maps.shape[1] * (maps.shape[1] - 1)
        if not facts.aperiodic:
            assert cascade.fewest_groups >= 1
        without = cascade_of(maps, None)
        assert without.fewest_groups <= cascade.fewest_groups
        assert cascade.most_groups <= without.most_groups


@pytest.mark.parametrize("num_states", [2, 3, 4, 5])
def test_all_maps_of_n_states_have_group_complexity_n_less_1(num_states):
    turn = np.roll(np.arange(num_states), -1)
    swap = np.array([1, 0, *range(2, num_states)])
    merge = np.array([0, 0, *range(2, num_states)])
    maps = np.array([turn, swap, merge])
    monoid = transition_monoid(maps, MonoidBudget())
    assert len(monoid) == num_states**num_states
    cascade = cascade_of(maps, monoid)
    assert (cascade.fewest_groups, cascade.most_groups) == (num_states - 1, num_states - 1)
    assert cascade.levels == num_states - 1


def test_partial_permutations_have_group_complexity_1_at_most():
    turn, cut = np.array([1, 2, 0, 3]), np.array([0, 1, 3, 3])  # the last state is that of no state
    cascade = cascade_of(
        np.array([turn, cut]), transition_monoid(np.array([turn, cut]), MonoidBudget())
    )
    assert (cascade.fewest_groups, cascade.most_groups) == (1, 1)


@pytest.mark.parametrize(
    ("task", "levels", "groups"),
    [("s5", 1, (1, 1)), ("ends-with-ab", 2, (0, 0)), ("random-fsm", 4, (2, 3))],
)
def test_tasks_have_these_cascades(task, levels, groups):
    cascade = algebra_of(task).cascade
    assert (cascade.levels, (cascade.fewest_groups, cascade.most_groups)) == (levels, groups)


# --- words that identify a machine ---


@cache
def all_machines(num_states, num_symbols, num_labels):
    """Every machine of this many states, as tables `[M, S, V]` and outputs `[M, S]`."""
    tables = list(itertools.product(range(num_states), repeat=num_states * num_symbols))
    outputs = list(itertools.product(range(num_labels), repeat=num_states))
    delta = np.array(tables).reshape(-1, 1, num_states, num_symbols)
    output = np.array(outputs)[None]
    shape = (len(tables), len(outputs))
    return (
        np.broadcast_to(delta, (*shape, num_states, num_symbols)).reshape(-1, *delta.shape[2:]),
        np.broadcast_to(output, (*shape, num_states)).reshape(-1, num_states),
    )


def first_differences(machine, tables, outputs, shortest=1):
    """The first length at which each of some machines gives a wrong label; 0 where none does.

    Of pairs of states, those that words of each length lead to: `[M, live states, S]`.
    """
    live = np.flatnonzero(machine.live)
    asked, label = machine.automaton.scored[live], machine.automaton.output[live]
    wrong = asked[:, None] & (label[:, None] != outputs[:, None, :])  # [M, live, S]
    onto = np.eye(tables.shape[1], dtype=int)[tables]  # [M, S, V, S]
    pairs = np.zeros(wrong.shape, int)
    pairs[:, live == machine.automaton.start, 0] = 1
    first = np.zeros(len(tables), int)
    right = np.arange(len(tables))  # those that have given no wrong label
    for length in range(1, len(live) * tables.shape[1] + shortest + 1):
        before, pairs = pairs, np.zeros_like(pairs)
        for symbol, targets in enumerate(machine.delta[live].T):
            after = (before @ onto[:, :, symbol]) > 0
            for state, target in enumerate(targets):
                pairs[:, live == target] |= after[:, state : state + 1]
        if length >= shortest:
            fails = (pairs.astype(bool) & wrong).any(axis=(1, 2))
            first[right[fails]] = length
            right, onto, pairs, wrong = (each[~fails] for each in (right, onto, pairs, wrong))
    return first


def random_machines(number, num_states=3):
    """Machines with labels that are not always asked for, or symbols that are not always drawn."""
    for seed in range(number):
        draw = np.random.default_rng(seed)
        table = np.array(reached(draw.integers(num_states, size=(2, num_states)))[0])
        output = draw.integers(2, size=len(table))
        scored = draw.random(len(table)) < (0.7 if seed % 3 == 1 else 2)
        weights = (draw.random(table.shape) < (0.7 if seed % 3 == 2 else 2)) * 1.0
        weights[:, 0] += weights.sum(axis=1) == 0
        try:
            yield needed_machine(Automaton(table, output, scored=scored, weights=weights))
        except TaskError:
            continue  # no label is asked for


@pytest.mark.parametrize("shortest", [1, 2, 3])
def test_words_that_identify_a_machine_do_so_among_all_machines_of_its_size(shortest):
    of_size = {size: all_machines(size, 2, 2) for size in (1, 2, 3)}
    found = []
    for machine in random_machines(60):
        ours = identification(machine, shortest)
        others = of_size[int(machine.live.sum())]
        true = max(shortest, first_differences(machine, *others, shortest).max())
        assert ours.needed <= true <= ours.enough
        if machine.complete and shortest == 1:
            assert ours.enough < 2 * machine.live.sum()
        found.append((ours.needed == true, ours.enough == true))
    exact_below, exact_above = np.sum(found, axis=0)
    assert len(found) > 50 and exact_below > 30 and exact_above > 20


def test_the_machine_with_a_transition_replaced_is_told_apart_by_words_of_the_length_needed_alone():
    shown = 0
    for machine in random_machines(100, num_states=5):
        found = identification(machine)
        if found.replaced is None:
            assert found.needed == 1
            continue
        state, symbol, target = found.replaced
        stay = np.arange(len(machine.delta))[:, None]
        other = np.where(machine.live[machine.delta], machine.delta, stay)
        other[state, symbol] = target
        ends = {((machine.automaton.start,) * 2)}
        for length in range(1, found.needed + 1):
            ends = {
                (ours, other[theirs, each])
                for before, theirs in ends
                for each, ours in enumerate(machine.delta[before].tolist())
                if machine.live[ours]
            }
            output, scored = machine.automaton.output, machine.automaton.scored
            differ = any(scored[ours] and output[ours] != output[theirs] for ours, theirs in ends)
            assert differ == (length == found.needed)
        shown += 1
    assert shown > 50


def test_words_of_2_to_10_symbols_do_not_identify_a_ring_of_20_states_with_one_label_of_its_own():
    ring = Automaton(np.roll(np.arange(20), -1)[:, None], [1] + [0] * 19)
    found = identification(needed_machine(ring))
    assert found.by_words_up_to(10) is False and found.by_words_up_to(39) is True
    assert 20 <= found.needed <= found.enough <= 39


def test_a_line_of_thousands_of_states_is_done_within_its_budget():
    size = 1000
    ahead = np.minimum(np.arange(size) + 1, size - 1)
    back = np.zeros(size, int)
    line = Automaton(np.column_stack([ahead, back]), np.arange(size) % 7)
    found = identification(needed_machine(line))
    assert found.by_words_up_to(10) is False


# --- the smallest machine ---


def test_the_fewest_states_are_those_of_the_smallest_of_all_machines():
    of_size = {size: all_machines(size, 2, 2) for size in (1, 2, 3)}
    seen, exact = set(), 0
    for machine in random_machines(110, num_states=4):
        found, size = fewest_states(machine), int(machine.live.sum())
        smaller = range(1, min(size, 4))
        fitting = (n for n in smaller if (first_differences(machine, *of_size[n]) == 0).any())
        true = next(fitting, size)
        assert found.low <= true <= found.high <= size
        exact += found.known
        seen.add((size, true))
    assert exact > 100 and {(4, 4), (4, 3), (4, 2), (3, 2), (2, 1)} <= seen


@pytest.mark.parametrize(
    ("task", "states", "fewest"),
    [("flip-flop", 8, 3), ("s3-two-tokens", 42, 12), ("s4-fused-swaps", 72, 24), ("s3", 6, 6)],
)
def test_states_that_no_drawn_word_shows_need_not_be_kept(task, states, fewest):
    algebra = algebra_of(task)
    assert algebra.num_states == states and algebra.fewest_states == FewestStates(fewest, fewest)


def test_beyond_the_budget_of_the_search_there_are_bounds(monkeypatch):
    machines = list(random_machines(100, num_states=5))
    exact = [fewest_states(machine) for machine in machines]
    monkeypatch.setattr("statetrack.algebra.closed_covers.MOST_STEPS", 3)
    rough = [fewest_states(machine) for machine in machines]
    assert all(
        few.low <= one.low <= one.high <= few.high for few, one in zip(rough, exact, strict=True)
    )
    assert any(few.low < few.high for few in rough)


# --- the margin, and how far it reaches ---


@pytest.mark.parametrize("task", ["s3", "cyclic", "a4"])
def test_a_state_of_the_smallest_representation_is_right_up_to_the_horizon_of_its_margin(task):
    algebra = algebra_of(task)
    chosen, step = algebra.representation, 2.0**-7
    points, rows = chosen.points, chosen.readout.rows
    labels = algebra.machine.automaton.output
    norm = np.linalg.norm(points, axis=1).max()
    away = rows[None, :, :] - rows[labels][:, None, :]  # from every state to every other label
    away /= np.maximum(np.linalg.norm(away, axis=2, keepdims=True), 1e-12)

    def wrong_after(steps):
        moved = points[:, None, :] + steps * step * norm * away
        logits = np.einsum("slh,ch->slc", moved, rows)
        others = np.arange(len(rows))[None, :] != labels[:, None]
        return (logits.argmax(axis=2) != labels[:, None])[others].any()

    horizon = algebra.horizons["bfloat16"]
    assert not wrong_after(0.999 * horizon) and wrong_after(1.001 * horizon)
    assert algebra.horizons["float32"] == 2**16 * horizon
    assert algebra.to_json()["representation"]["dimension"] == points.shape[1]


def test_noise_is_within_the_margin_up_to_its_horizon_and_beyond_it_much_later():
    algebra = algebra_of("modular-addition")
    chosen, draw = algebra.representation, np.random.default_rng(0)
    points, rows = chosen.points, chosen.readout.rows
    labels, horizon = algebra.machine.automaton.output, int(algebra.horizons["noise"])
    norm = np.linalg.norm(points, axis=1).max()

    def share_of_wrong(steps):
        noise = 0.01 * norm * np.sqrt(steps) * draw.standard_normal((2000, *points.shape))
        return (((points + noise) @ rows.T).argmax(axis=2) != labels).mean()

    assert share_of_wrong(horizon) < 0.006 and share_of_wrong(20 * horizon) > 0.3


def test_a_machine_that_is_no_group_has_no_margin_of_this_kind():
    algebra = algebra_of("ends-with-ab")
    assert algebra.representation is None and algebra.horizons is None
    assert algebra.to_json()["representation"] is None
