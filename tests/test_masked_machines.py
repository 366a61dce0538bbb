"""The algebra of machines with labels that are not asked for and symbols that are not drawn.

Every part is compared with what follows from its definition by trying all states, pairs and maps,
on random machines with masks of asked-for states, symbols that are never drawn in a state, weights
and slips.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import pytest

from statetrack.algebra import (
    Algebra,
    Machine,
    MonoidBudget,
    analyse,
    chosen_walk,
    merging_of,
    needed_machine,
    replay,
)
from statetrack.algebra.merging import has_a_group
from statetrack.errors import TaskError
from statetrack.sources import Automaton
from tests.simulating import recurrences

NUM_MACHINES = 60


def random_machine(seed: int, most: int = 4) -> Automaton:
    """1 to `most` states, 1 to 3 symbols and labels; few, some or all labels are asked for."""
    draw = np.random.default_rng(seed)
    while True:
        states, symbols, labels = (
            draw.integers(1, most + 1),
            draw.integers(1, 4),
            draw.integers(1, 4),
        )
        delta = draw.integers(states, size=(states, symbols))
        for symbol in np.flatnonzero(draw.random(symbols) < draw.choice([0.0, 0.6])):
            delta[:, symbol] = draw.permutation(states)
        weights = (draw.random(delta.shape) >= draw.choice([0.0, 0.3])).astype(float)
        if draw.random() < 0.3:  # the same symbols are drawn in every state
            weights[:] = weights[0]
        if draw.random() < 0.4:
            weights *= draw.integers(1, 4, size=weights.shape)
        weights[~weights.any(axis=1)] = 1
        scored = draw.random(states) >= draw.choice([0.0, 0.4, 0.8])
        if draw.random() < 0.3:  # words end where no label is asked for any more
            delta[-1], scored[-1] = states - 1, False
        slips = (draw.random(delta.shape) < 0.3).astype(float)
        slips[0, 0] = 1
        can_slip = draw.random() < 0.2
        try:
            return Automaton(
                delta,
                draw.integers(labels, size=states),
                labels=[str(label) for label in range(labels)],
                weights=weights,
                scored=scored,
                slips=slips if can_slip else None,
                slip_rate=0.5 if can_slip else 0.0,
            )
        except TaskError:  # a state that cannot be reached, or no label that is asked for
            continue


def all_machines(number: int = NUM_MACHINES) -> Iterator[Automaton]:
    return map(random_machine, range(number))


@pytest.fixture(autouse=True)
def _memory_is_never_read_before_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """New arrays hold the largest number of their type, and not what happened to be there."""
    real = np.empty

    def filled(*args: object, **kwargs: object) -> np.ndarray:
        array = real(*args, **kwargs)
        if array.dtype.kind in "iu":
            array.fill(np.iinfo(array.dtype).max)
        return array

    monkeypatch.setattr(np, "empty", filled)


# --- by the definitions, one state, pair and map after another ---


class ByHand:
    """What words tell of an automaton: its states split until nothing tells two of a part apart."""

    def __init__(self, automaton: Automaton) -> None:
        self.automaton = automaton
        delta, drawable = automaton.delta.tolist(), automaton.drawable.tolist()
        self.steps = [
            {symbol: target for symbol, target in enumerate(row) if drawable[state][symbol]}
            for state, row in enumerate(delta)
        ]
        entered: set[int] = set()
        waiting = [automaton.start]
        while waiting:
            new = set(self.steps[waiting.pop()].values()) - entered
            entered |= new
            waiting += new
        self.entered = sorted(entered)
        self.label = {
            state: int(automaton.output[state]) if automaton.scored[state] else None
            for state in range(automaton.num_states)
        }
        # a state from which no label is asked for is none: like a symbol that is not drawn
        asked = {state for state in range(automaton.num_states) if self.label[state] is not None}
        for _ in range(automaton.num_states):
            asked |= {s for s, row in enumerate(self.steps) if asked & set(row.values())}
        self.live = asked
        part: dict[int, object] = {s: self.label[s] for s in asked}
        while True:
            keys = {s: (part[s], self.after(s, part)) for s in asked}
            numbers = {key: n for n, key in enumerate(dict.fromkeys(keys.values()))}
            finer: dict[int, object] = {s: numbers[keys[s]] for s in asked}
            if len(numbers) == len(set(part.values())):
                break
            part = finer
        self.part = part

    def after(self, state: int, part: dict[int, object]) -> tuple[tuple[int, object], ...]:
        """The parts that symbols drawn in a state lead to."""
        row = self.steps[state].items()
        return tuple((symbol, part[target]) for symbol, target in row if target in part)

    @property
    def num_states(self) -> int:
        """How many states a machine needs that also refuses what is not drawn."""
        entered = [state for state in self.entered if state in self.live]
        rows = {self.after(state, self.part) for state in entered}
        begin = self.after(self.automaton.start, self.part)
        return len({self.part[state] for state in entered}) + (begin not in rows)


def live_pairs(machine: Machine) -> Iterator[tuple[int, int]]:
    live = np.flatnonzero(machine.live).tolist()
    return itertools.product(live, live)


def told_apart(machine: Machine) -> set[tuple[int, int]]:
    """Pairs of states with a word, or none, after which both have labels, and different ones."""
    automaton, delta = machine.automaton, machine.delta.tolist()
    found = set()
    for pair in live_pairs(machine):
        seen, waiting = {pair}, [pair]
        for one, two in waiting:
            both = automaton.scored[one] and automaton.scored[two]
            if both and automaton.output[one] != automaton.output[two]:
                found.add(pair)
                break
            new = set(zip(delta[one], delta[two], strict=True)) - seen
            seen |= new
            waiting += new
    return found


Map = tuple[int, ...]
"""Where a word leads from each state."""


def then(first: Map, second: Map) -> Map:
    return tuple([second[state] for state in first])


def power_of(action: Map, times: int) -> Map:
    reached = tuple(range(len(action)))
    for _ in range(times):
        reached = then(reached, action)
    return reached


def symbols_of(machine: Machine) -> list[Map]:
    return list(map(tuple, machine.delta.T.tolist()))


def all_words(machine: Machine) -> list[Map]:
    """Every map that words of one symbol or more make, those of shorter words first."""
    symbols = symbols_of(machine)
    found = list(dict.fromkeys(symbols))
    known = set(found)
    for each in found:
        for symbol in symbols:
            if (longer := then(each, symbol)) not in known:
                known.add(longer)
                found.append(longer)
    return found


def of_one_length(machine: Machine) -> set[Map]:
    """The stable semigroup: words of length s, for the first s whose words are those of 2 s."""
    symbols, made = symbols_of(machine), [{tuple(range(len(machine.delta)))}]
    while True:
        made += [{then(each, symbol) for each in made[-1] for symbol in symbols}]
        made += [{then(each, symbol) for each in made[-1] for symbol in symbols}]
        if made[-1] == made[len(made) // 2]:
            return made[-1]


def shows(pairs: set[tuple[int, int]], first: Map, second: Map) -> bool:
    return any(pair in pairs for pair in zip(first, second, strict=True))


def orders_of(words: list[Map], pairs: set[tuple[int, int]]) -> tuple[bool, bool]:
    """Whether all words commute, and whether pairs of states tell two orders of two of them."""
    maps = np.array(words)
    apart = np.zeros((maps.shape[1],) * 2, bool)
    for one, two in pairs:
        apart[one, two] = True
    commute, shown = True, False
    for each in maps:
        one, two = maps[:, each], each[maps]  # each word behind this one, and before it
        commute = commute and bool((one == two).all())
        shown = shown or bool(apart[one, two].any())
    return commute, shown


def ideals(words: list[Map], *, before: bool, behind: bool) -> int:
    """How many sets of products words make of elements, with others before or behind them."""

    def products(each: Map) -> frozenset[Map]:
        made = {then(each, word) for word in words} if behind else {each}
        return frozenset(then(word, one) for word in words for one in made) if before else made

    return len({frozenset(products(each)) for each in words})


# --- the smallest machine, and its pairs of states ---


def test_the_machine_has_a_state_for_each_that_words_and_labels_tell_apart() -> None:
    sizes = set()
    for automaton in all_machines(300):
        machine = needed_machine(automaton)
        assert machine.live.sum() == ByHand(automaton).num_states, automaton.delta.tolist()
        sizes.add((automaton.num_states, int(machine.live.sum()), machine.sink is None))
    assert len(sizes) > 15


def test_pairs_of_states_are_those_that_words_tell_apart_hold_or_cycle() -> None:
    seen = set()
    for automaton in all_machines(60):
        machine = needed_machine(automaton)
        pairs, words = told_apart(machine), all_words(machine)
        assert machine.apart is not None
        assert {(int(one), int(two)) for one, two in np.argwhere(machine.apart)} == pairs
        held = any(word[one] == one and word[two] == two for one, two in pairs for word in words)
        assert machine.holds_two_states == held
        cycling = False
        for symbol in symbols_of(machine):
            first = later = power_of(symbol, 60)
            for _ in range(60):
                cycling = cycling or shows(pairs, first, later)
                later = then(later, symbol)
        assert machine.a_symbol_cycles == cycling
        seen.add((held, cycling))
    assert len(seen) == 3  # what cycles is held


# --- elements of the monoid ---


def test_the_monoid_is_what_all_words_make() -> None:
    seen: dict[str, set[object]] = defaultdict(set)
    for automaton in all_machines():
        algebra = analyse(automaton)
        facts, machine = algebra.monoid, algebra.machine
        assert facts is not None
        pairs = told_apart(machine)
        words = list(dict.fromkeys([tuple(range(len(machine.delta))), *all_words(machine)]))
        assert facts.size == len(words)
        assert facts.idempotents == sum(then(each, each) == each for each in words)
        commutes, order = orders_of(words, pairs)
        assert facts.commutative == commutes
        aperiodic = all(power_of(each, 60) == power_of(each, 61) for each in words)
        assert facts.aperiodic == aperiodic
        stable = of_one_length(machine)
        quasi = all(power_of(each, 60) == power_of(each, 61) for each in stable)
        assert facts.quasi_aperiodic == quasi
        counting = any(shows(pairs, power_of(each, 60), power_of(each, 61)) for each in stable)
        assert facts.counting_seen == counting
        assert algebra.order_matters == order
        if len(words) <= 60:
            assert facts.r_trivial == (ideals(words, before=False, behind=True) == len(words))
            assert facts.l_trivial == (ideals(words, before=True, behind=False) == len(words))
            assert facts.j_classes == ideals(words, before=True, behind=True)
            assert facts.j_trivial == (facts.j_classes == len(words))
        for name in ("commutative", "aperiodic", "quasi_aperiodic", "counting_seen", "l_trivial"):
            seen[name].add(getattr(facts, name))
        seen["order"].add(order)
    assert all(values == {True, False} for values in seen.values()), seen


def test_orders_of_words_are_shown_where_labels_tell_them() -> None:
    seen = set()
    for automaton in all_machines():
        algebra = analyse(automaton)
        machine, pairs = algebra.machine, told_apart(algebra.machine)
        symbols, stable = symbols_of(machine), of_one_length(machine)
        last_but_one = any(
            shows(pairs, then(then(one, two), last), then(then(two, one), last))
            for one in symbols
            for two in symbols
            for last in symbols
        )
        assert algebra.last_but_one_matters == last_but_one
        local = False
        for idle in (each for each in stable if then(each, each) == each):
            among = {then(then(idle, each), idle) for each in stable}
            local |= orders_of(sorted(among), pairs)[1]
        assert algebra.local_order_matters in (local, None)
        seen.add((last_but_one, local))
    assert len(seen) >= 3


# --- images ---


def test_images_groups_and_bounds_on_cascades_are_those_of_the_monoid() -> None:
    for automaton in all_machines():
        listed = analyse(automaton)
        few = analyse(automaton, MonoidBudget(most_elements=1))
        settled, images = listed.settled, listed.images
        assert images is not None
        words = all_words(listed.machine)
        expected = {frozenset(settled.classes[list(each)].tolist()) for each in words}
        expected.add(frozenset(settled.classes.tolist()))
        found = [frozenset(np.flatnonzero(each).tolist()) for each in images.members]
        assert set(found) == expected and len(found) == len(expected)
        for algebra in (listed, few):
            cascade = algebra.cascade
            assert algebra.monoid is not None and cascade.most_groups is not None
            assert cascade.fewest_groups <= cascade.most_groups <= (cascade.levels or 99)
            assert (cascade.most_groups == 0) == (cascade.fewest_groups == 0)
            assert (cascade.most_groups == 0) == listed.monoid.aperiodic
        assert has_a_group(automaton) == (not listed.monoid.aperiodic)


# --- linear spaces ---


def hankel_rank(machine: Machine) -> int:
    """The rank of: which label is asked for behind a word and an end, all of up to S symbols."""
    states = np.flatnonzero(machine.live)
    automaton = machine.automaton
    columns = []
    for label in range(automaton.num_labels):
        asked = automaton.scored & (automaton.output == label) & machine.live
        waiting = [tuple(asked.tolist())]
        known = set(waiting)
        for each in waiting:
            for symbol in symbols_of(machine):
                before = tuple(each[target] for target in symbol)
                if before not in known:
                    known.add(before)
                    waiting.append(before)
        columns += waiting
    return int(np.linalg.matrix_rank(np.array(columns, float).T[states]))


def test_the_linear_dimension_is_the_rank_of_what_is_asked_and_bounds_lie_below_it() -> None:
    for automaton in all_machines():
        algebra = analyse(automaton)
        assert algebra.linear_dimension == hankel_rank(algebra.machine)
        bounds = algebra.width_bounds
        assert bounds.width <= algebra.linear_dimension
        for found in (algebra.narrowest, algebra.smallest_blocks):
            if found is None:
                continue
            for part in found.parts:
                moved = np.einsum("vij,sj->vsi", part.matrices(found.actions), part.points)
                np.testing.assert_allclose(moved, part.points[found.actions], atol=1e-7)


# --- words ---


def merges(machine: Machine, word: Map) -> bool:
    """Whether a word leads all states in which a label is still to come to one, or to none."""
    states = set(np.flatnonzero(machine.live).tolist())
    for symbol in word:
        states = {int(machine.delta[state, symbol]) for state in states} - {machine.sink}
    return len(states) <= 1


def shares_by_hand(automaton: Automaton, length: int) -> list[float]:
    machine = needed_machine(automaton)
    symbols, shares = range(automaton.num_symbols), [0.0] * length
    ends = itertools.chain(*(itertools.product(symbols, repeat=n) for n in range(length)))
    merging = {word: merges(machine, word) for word in ends}
    for word in itertools.product(symbols, repeat=length):
        state, chance = automaton.start, 1.0
        for position, symbol in enumerate(word):
            chance *= automaton.chances_at(position)[state, symbol]
            state = int(automaton.delta[state, symbol])
        if chance:
            for n in range(length):
                shares[n] += chance * merging[word[length - n :]]
    return shares


def test_shares_of_words_that_merge_states_are_those_of_all_words() -> None:
    never = set()
    for automaton in all_machines(200):
        found = merging_of(automaton, 5)
        assert found is not None and found.words is None
        expected = shares_by_hand(automaton, 5)
        shares = [found.share(n) for n in range(5)]
        assert shares == pytest.approx(expected, abs=1e-9), automaton.delta.tolist()
        if found.never:
            machine = needed_machine(automaton)
            never.add(found.never)
            drawn = automaton.uniform_weights
            assert not drawn or not any(
                len({word[state] for state in np.flatnonzero(machine.live)} - {machine.sink}) <= 1
                for word in all_words(machine)
            )
    assert len(never) >= 3


def test_shares_are_counted_on_words_where_images_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("statetrack.algebra.merging.MOST_WORDS", 400)
    for automaton in all_machines():
        exact, counted = merging_of(automaton, 6), merging_of(automaton, 6, most_images=1)
        assert exact is not None and counted is not None
        assert not counted.never or exact.never
        for n in range(min(exact.longest, counted.longest) + 1):
            assert counted.share(n) == pytest.approx(exact.share(n), abs=0.12)


def test_walks_in_a_group_are_words_of_the_machine_with_its_labels() -> None:
    walked = 0
    for automaton in all_machines():
        try:
            walk = chosen_walk(automaton).automaton
        except TaskError:
            continue  # no words permute states
        walked += 1
        draw = np.random.default_rng(0)
        states = walk.start, automaton.start
        for position in range(60):
            symbol = draw.choice(walk.num_symbols, p=walk.chances_at(position)[states[0]])
            assert automaton.drawable[states[1], symbol]
            states = int(walk.delta[states[0], symbol]), int(automaton.delta[states[1], symbol])
            asked, label = walk.scored[states[0]], walk.output[states[0]]
            assert asked == automaton.scored[states[1]]
            assert not asked or label == automaton.output[states[1]]
    assert walked > 15


def test_words_of_every_cannot_are_confirmed() -> None:
    among = recurrences()
    kinds = set()
    for automaton in all_machines(24):
        algebra: Algebra = analyse(automaton)
        for name, recurrence in among.items():
            prediction = recurrence.predict(algebra)
            if prediction.can != "no" or "cannot be read" in prediction.theorem:
                continue
            assert prediction.witness is not None, (name, automaton.delta.tolist())
            replayed = replay(prediction.witness, automaton)
            assert replayed.confirmed, (name, automaton.delta.tolist(), replayed.says)
            kinds.add(prediction.witness.kind)
    assert len(kinds) >= 3
