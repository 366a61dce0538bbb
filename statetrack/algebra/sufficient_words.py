"""Whether labelled words up to some length determine the machine that labels them.

A machine of S states is *identified* by words up to a length where every machine of at most S
states that gives these words the same labels gives the same labels to all longer ones.

*Enough* is the sufficient set of the W-method (Chow 1978, IEEE Trans. Softw. Eng. 4; Vasilevskii
1973): words a(s) to every state s, a(s) x for every symbol x, each followed by words that tell the
state reached from every other; and, to begin in the right state, all words u of some length r, so
followed. `enough` is the length of the longest of these words: with a shortest a(s), or a shortest
one of r symbols or more where there is one, and the shortest end for every pair, for the best of a
few r. Where no word tells some two states apart, or there are too many, it is S * S.

*Needed.* Let delta(s, x) be replaced by another state, for one state s and one symbol x. `needed`
is 1 more than the greatest length, of those that were found, up to which labels of such a machine
agree with those of the old one, and not beyond. docs/proofs.md has the argument.

With a label after every symbol, the words of training show the labels of all words up to the
longest one, but for that of no symbols. With a label after the last symbol only, they show those of
the lengths of training, and *all words* means all that are not shorter.

Letters: S states, V symbols.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from statetrack.algebra.machine import Machine
from statetrack.sources import Booleans, Integers, after_each_length, distances, leading_to

MOST_PAIR_STEPS = 2**25
"""Most pairs of states, times symbols and lengths, that the search for `enough` goes through."""
MOST_PAIRED = 2_000
"""Most states of which all pairs are looked at."""
MOST_REPLACED = 200
"""Most machines with one transition replaced that are compared with the machine."""
MOST_COMPARED = 2**17
"""Most pairs of states, times symbols, that these comparisons go through."""
UNREACHED = -1


@dataclass(frozen=True)
class Identification:
    """How long the words are that identify a machine among all that have as many states at most."""

    enough: int
    """Words up to this length do."""
    needed: int
    """Words that are all shorter do not."""
    replaced: tuple[int, int, int] | None = None
    """A state, a symbol, and the state that it leads to in a machine for which they do not."""

    def by_words_up_to(self, longest: int) -> bool | None:
        """Whether words up to this length do; None where that is not known."""
        if longest < self.needed:
            return False
        return True if longest >= self.enough else None


def identification(machine: Machine, shortest: int = 1) -> Identification:
    """How long the words are that identify a machine, from labels of words of `shortest` or more.

    With a label after every symbol, `shortest` is 1.
    """
    table = _DrawnStates.of(machine)
    enough, told = len(table) ** 2 + shortest - 1, None
    if len(table) <= MOST_PAIRED:
        sets = [_SufficientSet(table, root, shortest) for root in sorted({0, 1, shortest})]
        told = _tell_apart(table, sets, shortest)
        enough = min([enough, *(each.longest for each in sets if each.complete)])
    # what is needed: by the machine that agrees longest of those tried
    lengths, live = table.shortest_words(), np.flatnonzero(machine.live)
    needed, replaced, budget = shortest, None, MOST_COMPARED
    seen = np.zeros(len(table) ** 2, bool)
    for fault in _promising(table, lengths, told):
        if budget <= 0 or needed == enough:
            break
        differ, work = _first_difference(table, lengths, fault, shortest, seen)
        budget -= work
        if differ > needed:
            state, symbol, target = fault
            needed, replaced = differ, (int(live[state]), symbol, int(live[target]))
    return Identification(enough, needed, replaced)


@dataclass(frozen=True, eq=False)
class _DrawnStates:
    """The states that words lead to, from 0: S of them, and one more in which nothing is drawn."""

    delta: Integers  # [S, V]; S where a symbol is not drawn
    labels: Integers  # [S]; -1 where no label is asked for
    output: Integers  # [S]
    start: int

    @classmethod
    def of(cls, machine: Machine) -> _DrawnStates:
        live = np.flatnonzero(machine.live)
        number = np.full(len(machine.live), len(live))
        number[live] = np.arange(len(live))
        automaton = machine.automaton
        output = automaton.output[live]
        labels = np.where(automaton.scored[live], output, -1)
        return cls(number[machine.delta[live]], labels, output, int(number[automaton.start]))

    def __len__(self) -> int:
        return len(self.delta)

    @property
    def closed(self) -> Integers:
        """`delta` with the state in which nothing is drawn, which is never left: `[S + 1, V]`."""
        return np.vstack([self.delta, np.full(self.delta.shape[1], len(self))])

    def reached_after(self, length: int) -> Integers:
        """The states that words of this length lead to."""
        made = next(itertools.islice(after_each_length(self.closed, self.start), length, None))
        return np.flatnonzero(made[:-1])

    def shortest_words(self, least: int = 0) -> Integers:
        """The length of a shortest word of `least` symbols or more to every state, `[S]`."""
        lengths = distances(self.closed, self.reached_after(least))[:-1]
        return np.where(lengths == UNREACHED, UNREACHED, lengths + least)


class _SufficientSet:
    """The words of the sufficient set with words u of some length, as far as they were found.

    A state after a word of p symbols is told from one after a word of q by a word of k symbols
    where labels after it differ, and both whole words are of `shortest` symbols at least.
    """

    def __init__(self, table: _DrawnStates, root: int, shortest: int) -> None:
        later = table.shortest_words(root)
        self._lengths = np.where(later == UNREACHED, table.shortest_words(), later)  # of all a(s)
        self._shortest = shortest
        self._steps = _steps(table, later, root, shortest)
        others = ~np.eye(len(table), dtype=bool)
        self._open = [(step != UNREACHED)[:, None] & others for step in self._steps]
        self.longest = shortest
        """The length of the longest word so far."""

    @property
    def complete(self) -> bool:
        """Whether nothing is left to be told apart."""
        return not any(pairs.any() for pairs in self._open)

    def tell(self, told: Booleans, suffix: int) -> None:
        """Take the pairs of states `[S, S]` that words of `suffix` symbols tell apart."""
        for step, pairs in zip(self._steps, self._open, strict=True):
            states, others = np.nonzero(pairs & told)
            far, near = step[states], self._lengths[others]
            right = np.minimum(far, near) + suffix >= self._shortest
            pairs[states[right], others[right]] = False
            if right.any():
                farthest = int(np.maximum(far, near)[right].max())
                self.longest = max(self.longest, farthest + suffix)


def _steps(table: _DrawnStates, later: Integers, root: int, shortest: int) -> list[Integers]:
    """The lengths of the words a(s) x and u that lead to every state, `[S]` each.

    `later [S]` are the lengths of the a(s) of `root` symbols or more. States that no such word
    leads to have only to be told apart after their a(s). Of words that are of `shortest` symbols by
    themselves only the longest counts.
    """
    reached = later != UNREACHED
    states, symbols = np.nonzero((table.delta < len(table)) & reached[:, None])
    first = table.reached_after(root) if root else np.zeros(0, np.int64)
    before = np.flatnonzero(~reached)
    targets = np.concatenate([table.delta[states, symbols], first, before])
    of_word = np.concatenate(
        [later[states] + 1, np.full(len(first), root), table.shortest_words()[before]]
    )
    steps = []
    for length in np.unique(np.minimum(of_word, shortest)):
        chosen = np.minimum(of_word, shortest) == length
        step = np.full(len(table), UNREACHED)
        np.maximum.at(step, targets[chosen], of_word[chosen])
        steps.append(step)
    return steps


def _tell_apart(table: _DrawnStates, sets: Sequence[_SufficientSet], shortest: int) -> Integers:
    """The length of a shortest word that tells two states apart, `[S, S]`; unreached if none does.

    Longer and longer words fill the sufficient sets, until there are too many pairs to go on.
    """
    lengths = np.full((len(table), len(table)), UNREACHED)
    labels = np.append(table.labels, -1)
    asked = labels >= 0
    told = (labels[:, None] != labels[None, :]) & asked[:, None] & asked[None, :]
    work, actions = 0, table.closed.T
    for length in range(2 * len(table) + shortest):
        work += told.size * table.delta.shape[1]
        best = min((each.longest for each in sets if each.complete), default=None)
        done = best is not None and (length >= best or all(each.complete for each in sets))
        if done or work > MOST_PAIR_STEPS or not told.any():
            break
        fresh = told[:-1, :-1] & (lengths == UNREACHED)
        lengths[fresh] = length
        if not fresh.any() and (lengths == UNREACHED).sum() > len(table):
            break  # no word tells the others apart
        for each in sets:
            each.tell(told[:-1, :-1], length)
        told = leading_to(actions, told)
    return lengths


def _promising(
    table: _DrawnStates, lengths: Integers, told: Integers | None
) -> Iterator[tuple[int, int, int]]:
    """Replaced transitions (state, symbol, other target) by how late they may be seen, last first.

    For every target, that at the end of the longest word a(s) x. Where `told [S, S]` is missing,
    those at the end of the longest of all, to a state with another label.
    """
    states, symbols = np.nonzero(table.delta < len(table))
    order = np.argsort(lengths[states], kind="stable")
    states, symbols = states[order], symbols[order]
    if told is None:
        for state, symbol in zip(states[::-1][:MOST_REPLACED], symbols[::-1], strict=False):
            label = table.labels[table.delta[state, symbol]]
            others = np.flatnonzero((table.labels >= 0) & (table.labels != label))
            if label >= 0 and len(others):
                yield int(state), int(symbol), int(others[0])
        return
    last = np.full(len(table), UNREACHED)
    last[table.delta[states, symbols]] = np.arange(len(states))  # of several the last one stays
    entered = np.flatnonzero(last != UNREACHED)
    seen = lengths[states[last[entered]]][:, None] + told[entered]
    seen[told[entered] == UNREACHED] = UNREACHED
    flat = seen.ravel()
    chosen = np.arange(flat.size)
    if flat.size > MOST_REPLACED:
        chosen = np.argpartition(-flat, MOST_REPLACED)[:MOST_REPLACED]
    for place in chosen[np.argsort(-flat[chosen], kind="stable")].tolist():
        row, target = divmod(place, len(table))
        if seen[row, target] == UNREACHED:
            return
        edge = last[entered[row]]
        yield int(states[edge]), int(symbols[edge]), target


def _first_difference(
    table: _DrawnStates,
    lengths: Integers,
    fault: tuple[int, int, int],
    shortest: int,
    seen: Booleans,
) -> tuple[int, int]:
    """The first length from `shortest` on at which labels differ, and the work; 0 where none does.

    A pair is a state of the machine and one of that with a transition replaced. The latter stays
    where it is at a symbol that the former draws and it does not. Lengths below `shortest` are
    gone through one by one; from then on no pair is looked at twice. `seen` is room to mark pairs
    in, none marked before and after.
    """
    num_states, num_symbols = table.delta.shape
    state, symbol, target = fault
    stay = np.arange(num_states)[:, None]
    replaced = np.where(table.delta < num_states, table.delta, stay)
    replaced[state, symbol] = target
    length, work = int(lengths[state]) + 1, num_symbols
    if shortest == 1:  # before the replaced transition, both are in one state
        pairs = np.array([table.delta[state, symbol] * num_states + target])
    else:
        length, pairs = 0, np.array([table.start * num_states + table.start])
    marked, found = [], 0
    while len(pairs):
        ours, theirs = np.divmod(pairs, num_states)
        if length >= shortest:
            asked = table.labels[ours]
            if ((asked >= 0) & (asked != table.output[theirs])).any():
                found = length
                break
            seen[pairs] = True
            marked.append(pairs)
        targets = table.delta[ours]
        drawn = targets < num_states
        pairs = np.unique((targets * num_states + replaced[theirs])[drawn])
        pairs = pairs[~seen[pairs]]
        length, work = length + 1, work + len(pairs) * num_symbols
    for pairs in marked:
        seen[pairs] = False
    return found, work
