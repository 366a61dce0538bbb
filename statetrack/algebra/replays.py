"""Replaying the words of a witness on an automaton, step by step.

Nothing here knows how the words were found: only where each symbol leads, and which label is asked
for there. So a witness can be replayed on anything that takes steps, such as the simulator of
another library. How many permutations some generate is left to a chain of stabilizers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from statetrack.algebra.counters import Counters, counters_of_labels
from statetrack.algebra.prediction import Kind, Witness, Word, period_of
from statetrack.algebra.stabilizer_chain import StabilizerChain
from statetrack.sources import Automaton, BreadthFirst, orbits

MOST_STEPS = 2**20
"""Most repetitions of a word until the states repeat."""


class Steps(Protocol):
    """A machine that takes steps; states and symbols have the numbers of the task's automaton."""

    @property
    def start(self) -> int:
        """The state before the first symbol."""

    @property
    def num_symbols(self) -> int:
        """The number of symbols, from 0."""

    def step(self, state: int, symbol: int) -> int | None:
        """The state that a symbol leads to; None where the symbol cannot be drawn."""

    def label(self, state: int) -> Hashable | None:
        """The label of a state; None where it is not asked for."""


@dataclass(frozen=True)
class AutomatonSteps:
    """The steps of an automaton: its transitions, outputs, and what is drawn and asked for."""

    automaton: Automaton

    @property
    def start(self) -> int:
        """The start."""
        return self.automaton.start

    @property
    def num_symbols(self) -> int:
        """V."""
        return self.automaton.num_symbols

    def step(self, state: int, symbol: int) -> int | None:
        """The next state; None where the symbol is never drawn."""
        drawn = self.automaton.drawable[state, symbol]
        return int(self.automaton.delta[state, symbol]) if drawn else None

    def label(self, state: int) -> int | None:
        """The state's label; None where it is not asked for."""
        return int(self.automaton.output[state]) if self.automaton.scored[state] else None


class Replayed(NamedTuple):
    """What came of replaying a witness."""

    confirmed: bool
    says: str
    """What was seen; where it is not confirmed, what was not as the witness says."""


_Pair = tuple[int | None, int | None]


class _Refuted(Exception):
    """What a witness says is not so."""


def replay(witness: Witness, automaton: Automaton) -> Replayed:
    """Whether the words of a witness do on an automaton all that it says."""
    return replay_on(witness, AutomatonSteps(automaton))


def replay_on(witness: Witness, steps: Steps) -> Replayed:
    """Whether they do on any machine that takes steps, such as another program's simulator."""
    try:
        return Replayed(True, _CHECKS[witness.kind](witness, _Walker(steps)))
    except _Refuted as refuted:
        return Replayed(False, str(refuted))


class _Walker:
    """Steps word by word, and comparisons of states by what follows them."""

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self._alike: dict[tuple[int, int], bool] = {}

    def after(self, state: int, *words: Word) -> int:
        for word in words:
            for symbol in word:
                if not 0 <= symbol < self.steps.num_symbols:
                    raise _Refuted(f"there is no symbol {symbol}")
                reached = self.steps.step(state, symbol)
                if reached is None:
                    raise _Refuted(f"symbol {symbol} cannot be drawn where a word reads it")
                state = reached
        return state

    def from_start(self, *words: Word) -> int:
        return self.after(self.steps.start, *words)

    def label(self, state: int, *words: Word) -> Hashable:
        label = self.steps.label(self.after(state, *words))
        if label is None:
            raise _Refuted("a label that counts is not asked for")
        return label

    def asked(self, state: int, word: Word) -> Hashable | None:
        """The label after a word; None where it is not asked for, or the word not drawn."""
        try:
            return self.label(state, word)
        except _Refuted:
            return None

    def told_apart(self, first: int, second: int, suffix: Word) -> bool:
        """Whether both labels after a suffix are asked for, and different."""
        labels = self.asked(first, suffix), self.asked(second, suffix)
        return None not in labels and labels[0] != labels[1]

    def alike(self, first: int, second: int) -> bool:
        """Whether two states behave alike from the next symbol on: by all pairs that follow."""
        if (first, second) not in self._alike:
            self._alike[first, second] = first == second or self._follow(first, second)
        return self._alike[first, second]

    def _follow(self, first: int, second: int) -> bool:
        step, label = self.steps.step, self.steps.label

        def steps(pair: _Pair) -> Iterator[tuple[int, _Pair]]:
            one, other = pair
            if one is not None and other is not None and one != other:
                for symbol in range(self.steps.num_symbols):
                    yield symbol, (step(one, symbol), step(other, symbol))

        for _, taken in BreadthFirst[_Pair]([(first, second)], steps):
            for _, (left, right), _ in taken:
                if left is None or right is None:
                    if left is not right:
                        return False
                elif label(left) != label(right):
                    return False
        return True


def _need(holds: bool, otherwise: str) -> None:
    if not holds:
        raise _Refuted(otherwise)


def _powers(witness: Witness, walk: _Walker) -> str:
    """The labels after u w^n v for all n: the states repeat, so they are known from finitely many.

    Their period is exact: the least p with which they repeat from some n on.
    """
    word, suffix = witness.words[0], witness.suffixes[0]
    _need(bool(word), "the word is empty")
    seen = {walk.from_start(witness.access): 0}
    while (reached := walk.after(next(reversed(seen)), word)) not in seen:
        seen[reached] = len(seen)
        _need(len(seen) <= MOST_STEPS, "the states do not repeat soon enough")
    cycle = list(seen)[seen[reached] :]
    around = "the word does not take the first state round through the others"
    _need(cycle == list(witness.states), around)
    labels = [walk.asked(state, suffix) for state in cycle]
    period = period_of(labels)
    _need(period == witness.order, f"the period of the labels is {period}, not {witness.order}")
    _need(period > 1, "the labels settle")
    shown = ", ".join("-" if label is None else str(label) for label in labels[:period][:12])
    return f"labels after u w^n v, for n = 0, 1, ...: {shown}{', ...'}, of period {period}"


def _count(witness: Witness, walk: _Walker) -> str:
    counted, idle = witness.words
    _need(len(counted) == len(idle), "the two words are not of one length")
    says = _powers(witness, walk)
    for state in witness.states:
        _need(walk.alike(walk.after(state, idle), state), "the second word changes a state")
    return f"{says}; and the other word, of the same length, changes nothing"


def _group(witness: Witness, walk: _Walker) -> str:
    states = list(witness.states)
    _need(bool(witness.words) and all(witness.words), "a word is empty")
    permutations = [
        [_place(walk, states, walk.after(state, word)) for state in states]
        for word in witness.words
    ]
    for each in permutations:
        _need(sorted(each) == list(range(len(states))), "a word does not permute the states")
    orbit = orbits(map(np.array, permutations), len(states)).tolist()
    entered = {_place(walk, states, walk.from_start(word)) for word in witness.accesses}
    _need(walk.from_start(witness.access) == states[0], "the access does not lead to the first")
    _need(set(orbit) == {orbit[place] for place in entered}, "a state is not reached")
    _need(all(witness.suffixes), "a suffix is empty")
    for place, first in enumerate(states):
        for other, second in enumerate(states[:place]):
            _need(
                orbit[place] != orbit[other]
                or any(walk.told_apart(first, second, suffix) for suffix in witness.suffixes),
                f"no suffix tells states {witness.states[other]} and {witness.states[place]} apart",
            )
    group = StabilizerChain(len(states), np.array(permutations))
    _need(group.order == witness.order, f"the words generate {group.order:,} permutations")
    _need(group.is_abelian() == witness.abelian, "abelian or not is not as it says")
    is_solvable = group.derived_length() is not None
    _need(is_solvable == witness.solvable, "solvable or not is not as it says")
    solvable = "solvable" if witness.solvable else "not solvable"
    return f"{group.order:,} permutations of {len(states)} states, {solvable}"


def _place(walk: _Walker, states: list[int], reached: int) -> int:
    if reached in states:
        return states.index(reached)
    for place, state in enumerate(states):
        if walk.alike(state, reached):
            return place
    raise _Refuted("a word leads out of the states")


def _order(witness: Witness, walk: _Walker) -> str:
    first, second = witness.words
    (suffix,) = witness.suffixes
    labels = [
        walk.label(walk.from_start(witness.access, *both), suffix)
        for both in ((first, second), (second, first))
    ]
    _need(labels[0] != labels[1], "the order of the words makes no difference")
    return f"labels {labels[0]} and {labels[1]} in the two orders"


def _far_order(witness: Witness, walk: _Walker) -> str:
    idle, first, second = witness.words
    (suffix,) = witness.suffixes
    _need(len(idle) == len(first) == len(second), "the words are not of one length")
    begin = walk.from_start(witness.access)
    ends = []
    for one, other in ((first, second), (second, first)):
        middle = walk.after(begin, one, idle)
        end = walk.after(middle, other, idle)
        for state in (begin, middle, end):
            again = walk.after(state, idle)
            same = walk.alike(again, state) and walk.steps.label(again) == walk.steps.label(state)
            _need(same, "the first word changes a state")
        ends.append(end)
    labels = [walk.label(end, suffix) for end in ends]
    _need(labels[0] != labels[1], "the order of the words makes no difference")
    return f"labels {labels[0]} and {labels[1]} in the two orders, with any distance between them"


def _merge(witness: Witness, walk: _Walker) -> str:
    (word,) = witness.words
    (suffix,) = witness.suffixes
    states = [walk.from_start(access) for access in witness.accesses]
    _need(len(states) == 2 and states == list(witness.states), "the accesses lead elsewhere")
    first, second = states
    _need(all([*access, *suffix] for access in witness.accesses), "no label is read")
    ends = [walk.after(state, word) for state in states]
    merged = walk.alike(*ends) and walk.steps.label(ends[0]) == walk.steps.label(ends[1])
    _need(bool(word) and merged, "the word does not merge the states")
    _need(walk.told_apart(first, second, suffix), "labels do not tell the states apart")
    return "two states, which labels tell apart, become one"


def _return(witness: Witness, walk: _Walker) -> str:
    away, back = witness.words
    (suffix,) = witness.suffixes
    _need(bool(away) and bool(back) and bool(suffix), "a word is empty")
    state = walk.from_start(witness.access)
    _need(state == witness.states[0], "the access leads elsewhere")
    seen = set()
    while state not in seen:
        seen.add(state)
        _need(len(seen) <= MOST_STEPS, "the states do not repeat soon enough")
        other = walk.after(state, away)
        state = walk.after(other, back)
        _need(walk.told_apart(other, state, suffix), "the labels are the same")
    return "labels after u (x y)^n v and u (x y)^n x v differ for all n"


def _balance(witness: Witness, walk: _Walker) -> str:
    way, more, fewer = witness.words
    (suffix,) = witness.suffixes
    begin, end = witness.states
    _need(walk.from_start(witness.access) == begin, "the access leads elsewhere")
    _need(walk.after(begin, way) == end, "the word leads elsewhere")
    _need(bool(suffix) and walk.told_apart(begin, end, suffix), "the labels are the same")
    for loop in (more, fewer):
        back = walk.after(begin, loop)
        _need(walk.alike(back, begin), "a word does not lead back")
    number_of, counters = _counters(walk.steps)
    assert counters.classes is not None

    def letters(word: Word) -> Counter[tuple[int, int]]:
        read: Counter[tuple[int, int]] = Counter()
        state = begin
        for symbol in word:
            assert counters.classes is not None
            read[symbol, int(counters.classes[number_of[state]])] += 1
            state = walk.after(state, (symbol,))
        return read

    once, left, right = letters(way), letters(more), letters(fewer)
    for letter in {*once, *left, *right}:
        same = left[letter] == witness.order * once[letter] + right[letter]
        _need(same, "a counter can tell the words apart")
    return "what balanced counters add on the words is equal, while labels tell the states apart"


def _repeat(witness: Witness, walk: _Walker) -> str:
    (word,) = witness.words
    _need(len(word) == 1 and witness.suffixes == ((),), "the word is not one symbol")
    _need(len(witness.accesses) == len(witness.states) == 2, "there are not two words")
    first, second = witness.states
    for access, state in zip(witness.accesses, (first, second), strict=True):
        _need(bool(access) and {*access} == {*word}, "a word has other symbols, or none")
        _need(walk.from_start(access) == state, "a word leads elsewhere")
    _need(walk.told_apart(first, second, ()), "the labels are the same")
    return "two words of one symbol alone have different labels"


def _counters(steps: Steps) -> tuple[dict[int, int], Counters]:
    """By state, its number where states that answer alike are one; and what counters tell."""
    delta = [[0] * steps.num_symbols]  # what is not drawn leads to state 0, and stays there
    place: dict[int, int] = {}
    answers: list[Hashable | None] = [None]

    def followed(state: int) -> Iterator[tuple[int, int]]:
        for symbol in range(steps.num_symbols):
            if (target := steps.step(state, symbol)) is not None:
                yield symbol, target

    for state, taken in BreadthFirst([steps.start], followed):
        _need(len(place) < MOST_STEPS, "there are too many states")
        for each in (state, *(target for _, target, _ in taken)):
            if each not in place:
                place[each] = len(delta)
                delta.append([0] * steps.num_symbols)
                answers.append(steps.label(each))
        for symbol, target, _ in taken:
            delta[place[state]][symbol] = place[target]
    known = {label: number for number, label in enumerate(dict.fromkeys(answers))}
    numbers, counters = counters_of_labels(
        np.array(delta), np.array([known[label] for label in answers])
    )
    return {state: int(numbers[row]) for state, row in place.items()}, counters


_CHECKS: dict[Kind, Callable[[Witness, _Walker], str]] = {
    "powers": _powers,
    "group": _group,
    "count": _count,
    "order": _order,
    "far order": _far_order,
    "merge": _merge,
    "return": _return,
    "balance": _balance,
    "repeat": _repeat,
}
