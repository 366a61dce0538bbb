"""Words that show a *cannot*: every one has some, replaying confirms them, and refutes others.

S states, V symbols, C labels.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from sympy.combinatorics import Permutation, PermutationGroup

import statetrack.algebra.witnesses as finding
from statetrack.algebra import (
    Algebra,
    Attention,
    Diagonal,
    DiagonalMinusRankOne,
    FixedPositiveLayers,
    MonoidBudget,
    PositiveLayers,
    Recurrence,
    SignedLayers,
    Size,
    TimeInvariantLayers,
    UnitLayers,
    Witness,
    analyse,
    replay,
    replay_on,
)
from statetrack.errors import TaskError
from statetrack.sources import Automaton
from tests.claims.cells import algebra_of, automaton_of, tasks_with_automata
from tests.references.reading import read_machine
from tests.simulating import Simulated, recurrences, refused

ONE = Size("layers", 1)

QUICK = (
    "parity",
    "s3",
    "s3-two-tokens",
    "a5",
    "dyck-1-depth-4",
    "tomita-6",
    "even-pairs",
    "flip-flop-cascade",
    "register",
    "adder",
    "zero-then-twos",
    "turnstile",
    "word-problem",
    "modular-arithmetic-left-to-right",
)
"""Tasks with groups of each sort and without, with forbidden symbols, and unscored states."""


@cache
def every_recurrence() -> dict[str, Recurrence]:
    return recurrences()


def complaints(task: str) -> list[str]:
    """What is wrong with the witnesses of a task's predictions."""
    automaton, found = automaton_of(task), []
    known: dict[Witness, str] = {}
    for name, prediction in refused(algebra_of(task), every_recurrence()):
        if prediction.witness is None:
            if "cannot be read" not in prediction.theorem:  # that rests on a longest word
                found.append(f"{task}, {name}: no words: {prediction.theorem}")
        elif prediction.witness not in known:
            replayed = replay(prediction.witness, automaton)
            known[prediction.witness] = replayed.says
            if not replayed.confirmed:
                found.append(f"{task}, {name}: {replayed.says}")
    return found


@pytest.mark.parametrize("task", QUICK)
def test_every_cannot_has_words_that_replaying_confirms(task: str) -> None:
    assert complaints(task) == []


@pytest.mark.slow
@pytest.mark.parametrize("task", [task for task in tasks_with_automata() if task not in QUICK])
def test_every_cannot_of_the_other_tasks_has_words_that_replaying_confirms(task: str) -> None:
    assert complaints(task) == []


def random_automaton(draw: np.random.Generator) -> Automaton:
    """A machine, not always a smallest one, at times with forbidden symbols or unscored states."""
    while True:
        size, symbols, labels = draw.integers([2, 1, 2], [6, 4, 4]).tolist()
        delta = draw.integers(size, size=(size, symbols))
        for symbol in np.flatnonzero(draw.random(symbols) < draw.choice([0.0, 0.7])):
            delta[:, symbol] = draw.permutation(size)
        weights = (draw.random((size, symbols)) > draw.choice([0.0, 0.2])).astype(float)
        weights[~weights.any(axis=1)] = 1
        try:
            return Automaton(
                delta,
                draw.integers(labels, size=size),
                labels=[str(label) for label in range(labels)],
                weights=weights,
                scored=draw.random(size) >= draw.choice([0.0, 0.3]),
            )
        except TaskError:  # a state that cannot be reached, or no label that is asked for
            continue


RULES: tuple[Recurrence, ...] = (
    PositiveLayers(layers=ONE),
    SignedLayers(layers=ONE),
    UnitLayers(layers=ONE),
    TimeInvariantLayers(layers=ONE),
    FixedPositiveLayers(layers=ONE, decays=False, sees_one=True),
    DiagonalMinusRankOne(layers=ONE),
    Diagonal(gains="real", size=Size("state", 8)),
    Diagonal(gains="unit", size=Size("state", 8)),
    Diagonal(gains="complex", size=Size("state", 8), additive="input"),
    Attention(layers=ONE, positions="none", bos=True),
)


def refused_by_rules(algebra: Algebra) -> Iterator[tuple[Recurrence, Witness | None]]:
    for rule in RULES:
        prediction = rule.predict(algebra)
        if prediction.can == "no":
            yield rule, prediction.witness


@pytest.mark.parametrize("listed", [True, False])
def test_words_of_random_machines_are_confirmed(
    listed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With and without a list of the monoid's elements, and of words that are tried one by one."""
    if not listed:
        monkeypatch.setattr(finding, "MOST_WORDS", 2)
    draw, kinds = np.random.default_rng(7), set()
    for _ in range(40):
        automaton = random_automaton(draw)
        algebra = analyse(automaton, MonoidBudget() if listed else MonoidBudget(most_elements=2))
        for rule, witness in refused_by_rules(algebra):
            assert witness is not None, (rule, automaton.delta.tolist())
            replayed = replay(witness, automaton)
            assert replayed.confirmed, (rule, witness, replayed.says, automaton.delta.tolist())
            kinds.add(witness.kind)
    assert kinds >= {"powers", "group", "count", "order", "return"}


def test_what_comes_back_is_found_wherever_a_further_symbol_shows_it() -> None:
    draw, found = np.random.default_rng(3), set()
    for _ in range(60):
        algebra = analyse(random_automaton(draw))
        machine, witness = algebra.machine, algebra.witnesses.comes_back
        delta, answers = machine.delta, machine.automaton
        reach = np.eye(len(delta), dtype=bool)
        told = answers.scored[:, None] & answers.scored
        told &= answers.output[:, None] != answers.output
        later = np.zeros_like(told)
        for _ in range(len(delta) ** 2):  # words of one more symbol
            reach |= reach[delta].any(axis=1)
            told = np.any([told[np.ix_(action, action)] for action in delta.T], axis=0)
            later |= told
        assert (witness is not None) == bool((reach & reach.T & later).any())
        found.add(witness and len(witness.words[0]))
    assert found == {None, 1, 2}


def test_a_symbol_that_goes_round_is_shown_where_no_two_labels_in_a_row_are_asked_for() -> None:
    asked = [False, False, True, True]
    every_other = Automaton([[2], [3], [1], [0]], [0, 2, 2, 1], scored=asked)
    prediction = DiagonalMinusRankOne(layers=ONE).predict(analyse(every_other))
    assert prediction.can == "no" and prediction.witness is not None
    assert prediction.witness.words == ((0,),) and prediction.witness.order == 4
    assert replay(prediction.witness, every_other).confirmed


def test_words_bear_out_what_each_rule_says() -> None:
    algebra = algebra_of("s4")
    real = Diagonal(gains="real", size=Size("state", 8)).predict(algebra_of("z60")).witness
    assert real is not None and real.kind == "powers" and 2 % real.order
    signed = SignedLayers(layers=ONE).predict(algebra).witness
    assert signed is not None and signed.order == 3
    single = DiagonalMinusRankOne(layers=ONE).predict(algebra).witness
    assert single is not None and [len(word) for word in single.words] == [1]
    commuting = Diagonal(gains="complex", size=Size("state", 8)).predict(algebra).witness
    assert commuting is not None and commuting.abelian is False and commuting.group == "S4"
    unit = UnitLayers(layers=ONE).predict(algebra_of("a5")).witness
    assert unit is not None and unit.solvable is False and unit.order == 60
    assert len(unit.words) == 2


def wrong(witness: Witness) -> Iterator[Witness]:
    """Witnesses that say more than is so, made from one that is right."""
    first = witness.words[0]
    yield replace(witness, words=((), *witness.words[1:]))
    yield replace(witness, words=((99, *first), *witness.words[1:]))
    match witness.kind:
        case "powers" | "count":
            yield replace(witness, order=witness.order + 1)
            yield replace(witness, words=(first * len(witness.states), *witness.words[1:]))
            yield replace(witness, states=witness.states[1:])
        case "group":
            yield replace(witness, order=2 * witness.order)
            yield replace(witness, suffixes=())
            yield replace(witness, words=(first * witness.order,))
            yield replace(witness, solvable=not witness.solvable)
            yield replace(witness, abelian=not witness.abelian)
            yield replace(witness, states=witness.states[1:])
        case "order":
            yield replace(witness, words=(first, first))
        case "far order":
            yield replace(witness, words=(first, first, first))
        case "merge":
            yield replace(witness, states=witness.states[::-1])
            yield replace(witness, accesses=witness.accesses[:1] * 2)
        case "return":
            yield replace(witness, words=(first, (*witness.words[1], *first)))
            yield replace(witness, suffixes=((),))
    if witness.kind == "count":
        yield replace(witness, words=(first, first))
        yield replace(witness, words=(first, witness.words[1] * 2))


def test_replaying_refutes_words_that_do_not_do_what_is_said() -> None:
    kinds = set()
    for task in ("parity", "s3", "a5", "zero-then-twos", "register", "tomita-6", "turnstile"):
        automaton, finder = automaton_of(task), algebra_of(task).witnesses
        found = {prediction.witness for _, prediction in refused(algebra_of(task), rules_by_name())}
        for witness in {*found, finder.merge, finder.comes_back, finder.far_order} - {None}:
            assert witness is not None
            assert replay(witness, automaton).confirmed
            kinds.add(witness.kind)
            for each in wrong(witness):
                assert not replay(each, automaton).confirmed, (task, each)
    assert kinds == {"powers", "group", "count", "order", "far order", "merge", "return"}


def rules_by_name() -> dict[str, Recurrence]:
    return {repr(rule): rule for rule in RULES}


def test_a_word_with_a_symbol_that_is_never_drawn_is_refuted() -> None:
    free = Automaton([[1, 0], [0, 1]])
    witness = analyse(free).witnesses.powers()
    assert witness is not None and replay(witness, free).confirmed
    forbidding = Automaton([[1, 0], [0, 1]], weights=[[1, 1], [0, 1]])
    replayed = replay(witness, forbidding)
    assert not replayed.confirmed
    assert "cannot be drawn" in replayed.says


def permuting(*rows: tuple[int, ...]) -> Automaton:
    """A machine whose symbols lead from every state where a row says; a state is its own label."""
    delta = np.array(rows).T
    return Automaton(delta, range(len(delta)))


MADE = {
    "S6 on 6 states": (permuting((1, 0, 2, 3, 4, 5), (1, 2, 3, 4, 5, 0)), 720),
    "A6 on 6 states": (permuting((1, 2, 0, 3, 4, 5), (0, 2, 3, 4, 5, 1)), 360),
    "S3 wr Z2": (permuting((1, 0, 2, 3, 4, 5), (1, 2, 0, 3, 4, 5), (3, 4, 5, 0, 1, 2)), 72),
    "Z6 in two orbits": (permuting((1, 0, 3, 4, 2, 5), (2, 2, 0, 0, 0, 5), (5,) * 6), 6),
    "S3 beside a reset": (permuting((1, 0, 2, 3), (1, 2, 0, 3), (3, 3, 3, 0)), 6),
}
"""Machines, and the order of the largest group of each."""


@pytest.mark.parametrize("task", ["z60", "s3-two-tokens", "s4", "a5", *MADE])
def test_the_group_of_a_witness_is_the_one_that_sympy_finds(task: str) -> None:
    """Replaying counts permutations by the chain that found them: here another library does."""
    automaton = MADE[task][0] if task in MADE else automaton_of(task)
    algebra = analyse(automaton) if task in MADE else algebra_of(task)
    assert algebra.monoid is not None
    like = max(algebra.monoid.subgroups, key=lambda group: group.order)
    if task in MADE:
        assert like.order == MADE[task][1]
    witness = algebra.witnesses.group(like)
    assert witness is not None
    assert_as_sympy_says(witness, automaton)


def assert_as_sympy_says(witness: Witness, automaton: Automaton) -> None:
    """What a witness says of its group is so: of a machine in which no two states go on alike."""
    places = {state: place for place, state in enumerate(witness.states)}
    permutations = []
    for word in witness.words:
        row = list(witness.states)
        for symbol in word:
            row = automaton.delta[row, symbol].tolist()
        permutations.append(Permutation([places[state] for state in row]))
    group = PermutationGroup(permutations)
    assert witness.order == group.order()
    assert (witness.abelian, witness.solvable) == (group.is_abelian, group.is_solvable)


@pytest.mark.parametrize("seed", range(6))
def test_witnesses_of_random_groups_are_what_sympy_says(seed: int) -> None:
    draw = np.random.default_rng(seed)
    size = int(draw.integers(5, 10))
    rows = [np.roll(np.arange(size), -1).tolist()]  # so that every state is reached
    for _ in range(int(draw.integers(1, 3))):
        moved = draw.choice(size, int(draw.integers(2, 5)), replace=False)
        row = np.arange(size)
        row[moved] = np.roll(moved, -1)
        rows.append(row.tolist())
    automaton = permuting(*map(tuple, rows))
    algebra = analyse(
        automaton, MonoidBudget(most_elements=2)
    )  # the groups of images are listed alone
    assert algebra.monoid is not None
    for like in algebra.monoid.subgroups:
        witness = algebra.witnesses.group(like)
        assert witness is not None
        assert_as_sympy_says(witness, automaton)


def test_states_are_those_of_the_tasks_own_automaton() -> None:
    """Parity, with every state twice, and a start that is never entered again."""
    automaton = Automaton(
        [[1, 3], [2, 3], [1, 4], [4, 1], [3, 2]], [0, 0, 0, 1, 1], start=0, labels=["a", "b"]
    )
    witness = analyse(automaton).witnesses.powers()
    assert witness is not None
    assert set(witness.states) <= {1, 2, 3, 4}
    assert automaton.states_after([*witness.access]).tolist()[-1:] == [witness.states[0]]
    assert witness.order == 2
    assert replay(witness, automaton).confirmed


def test_a_long_word_is_found_where_short_ones_do_nothing() -> None:
    """Nine symbols in order lead from the one half of the states to the other; others are wrong."""
    length = 9
    lost = 2 * length
    delta = np.full((lost + 1, 2), lost)
    for half in (0, 1):
        for place in range(length):
            last = place == length - 1
            following = (1 - half) * length if last else half * length + place + 1
            delta[half * length + place, place % 2] = following
    automaton = Automaton(delta, [*[0] * length, *[1] * length, 0])
    witness = analyse(automaton).witnesses.powers()
    assert witness is not None
    assert witness.words == ((0, 1, 0, 1, 0, 1, 0, 1, 0),)
    assert replay(witness, automaton).confirmed


def test_the_order_of_words_far_apart_is_shown_where_the_monoid_is_too_large_to_list() -> None:
    automaton = automaton_of("zero-then-twos")
    algebra = analyse(automaton, MonoidBudget(most_elements=2))
    assert algebra.elements is None
    witness = TimeInvariantLayers(layers=ONE).predict(algebra).witness
    assert witness is not None and witness.kind == "far order"
    assert replay(witness, automaton).confirmed


@pytest.mark.parametrize("task", ["s3", "s3-two-tokens", "register", "zero-then-twos"])
def test_the_simulator_of_aalpy_confirms_the_words(task: str) -> None:
    steps = Simulated(automaton_of(task))
    for name, prediction in refused(algebra_of(task), every_recurrence()):
        if prediction.witness is not None:
            replayed = replay_on(prediction.witness, steps)
            assert replayed.confirmed, (name, replayed.says)


MACHINES = os.environ.get("STATETRACK_MACHINES")


@pytest.mark.slow
@pytest.mark.skipif(not MACHINES, reason="STATETRACK_MACHINES names no folder of machines")
def test_the_simulator_of_aalpy_confirms_the_words_of_a_folder_of_machines() -> None:
    for file in sorted(Path(MACHINES or "").glob("*.dot")):
        automaton = read_machine(file)
        steps = Simulated(automaton)
        for name, prediction in refused(analyse(automaton), every_recurrence()):
            if "cannot be read" not in prediction.theorem:
                assert prediction.witness is not None, (file.name, name)
                replayed = replay_on(prediction.witness, steps)
                assert replayed.confirmed, (file.name, name, replayed.says)
