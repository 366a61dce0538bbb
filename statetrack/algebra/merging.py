"""Merging: how many of a word's last symbols the state depends on, and which groups that hides.

A word *merges* the states of the smallest machine, as a synchronising word does (Cerny 1964), when
all states in which it can be drawn lead to one and the same state (`needed_machine`: symbols that
are never drawn in a state lead to the sink, which does not count here; drawn ones lead there
too, where no label is asked for any more). Let u be the last n symbols of a drawn word. If u
merges, the label after the word, and those of all that follows, depend on the last n symbols alone;
if it does not, they are not enough (docs/proofs.md). If u merges, so does every longer end of the
word: the share of words whose last n symbols merge rises with n.

`share(n)` is that share, of words of `length` symbols as they are drawn. Where symbols are drawn
alike in every state and at every position, n symbols in a row have one law wherever they stand: the
share is that of words of n symbols, at any length, and it either is 0 for every n or tends to 1.
Else the chances follow the state, and the n symbols are drawn from the state that the symbols
before them lead to: by weights and slips, at the positions that they have.

So a model that knows nothing but the last n symbols can be right at the end of at least that share
of the words: accuracy on them tests, but for the rest, at most the last n symbols. It is no
evidence about groups of the machine, for such a model forgets them: words *hide* these.

Letters: I images, S states, K classes of states that every symbol leads alike, V symbols, A actions
on classes, W states that symbols are drawn in, N nodes: pairs of an image and such a state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from statetrack.algebra.images import Images, holonomy_groups, images_of, settled
from statetrack.algebra.machine import Machine, needed_machine
from statetrack.algebra.maps import settled_power
from statetrack.scoring import rounded_down, wilson
from statetrack.sources import (
    Automaton,
    Booleans,
    Floats,
    Integers,
    Source,
    all_leading_to,
    closed,
    minimise,
    reachable,
    strong_components,
)

MERGED: Final = 0.99
"""The share of words that defines the merging horizon."""
LEVELS: Final = (0.5, 0.9, MERGED, 0.999)
"""The shares whose numbers of symbols are shown."""
FAR_BELOW: Final = 5
"""A merging horizon is far below a length that is at least so many times as long."""
LONGEST: Final = 2**12
"""The longest words that are looked at; those of longer tests are taken to be as long."""
MOST_TRANSITIONS: Final = 2**20
"""Most transitions of an automaton whose merging is worked out."""
MOST_IMAGES: Final = 2**14
"""Most images, and nodes, that a distribution is pushed over: a second; 2**18 take ten."""
MOST_STEPS: Final = 2**27
"""Most moves between nodes in all steps together."""
MOST_WORDS: Final = 10_000
"""Words that are sampled, where they are short and the states are few."""
LEAST_WORDS: Final = 100
"""Where fewer words than these could be sampled, nothing is said."""
FIRST_CLASSES = 16
"""Classes that are looked at before all others, where states seldom are one."""
MOST_SAMPLED: Final = 2**22
"""Most symbols in the words that are sampled."""
MOST_FOLLOWED: Final = 2**27
"""Most states that sampled words are followed from, in all steps together."""
ALL: Final = 1 - 1e-12
"""A share that is not told from 1."""
MOST_STATES: Final = 2**12
"""Most states of a machine in which groups are looked for."""
LONGEST_TRIED: Final = 12
"""Where a machine has more than `MOST_IMAGES` images, words of up to so many symbols are tried."""
MOST_MOVED: Final = 2**21
"""Most states that the words tried are followed from, in one step."""


@dataclass(frozen=True, eq=False)
class Merging:
    """The share of drawn words whose last n symbols merge all states, n = 0 .. `length` - 1.

    `shares` [n] are exact to rounding where `words` is None; else they are counted on so many
    words. They end where all words have merged, or where the work is bounded. `never` says why no
    word merges the states; empty where some word does, or where that is not known.
    """

    length: int
    shares: Floats
    words: int | None = None
    never: str = ""

    @property
    def longest(self) -> int:
        """The largest n for which the share is known; all n symbols have one before them."""
        return self.length - 1 if self.never or self.shares[-1] >= ALL else len(self.shares) - 1

    def share(self, n: int) -> float:
        """The share of words whose last n symbols merge all states, 0 <= n <= `longest`."""
        assert 0 <= n <= self.longest, n
        return float(self.shares[min(n, len(self.shares) - 1)])

    def interval(self, n: int) -> tuple[float, float]:
        """The 95 % Wilson interval of `share(n)`; the share itself twice where it is exact."""
        share = self.share(n)
        if self.words is None:
            return share, share
        return wilson(round(share * self.words), self.words)

    def symbols_for(self, level: float) -> int | None:
        """The least n whose share is at least `level`; None where no known one is."""
        reached = np.flatnonzero(self.shares >= level)
        return int(reached[0]) if len(reached) else None

    @cached_property
    def horizon(self) -> int | None:
        """The merging horizon: the least n with a share of at least `MERGED`."""
        return self.symbols_for(MERGED)

    @cached_property
    def between(self) -> tuple[int | None, int | None]:
        """The 95 % interval of the horizon; None for an end that is not known.

        From the least n whose share's interval reaches `MERGED` to the least n that it lies above.
        With n the horizon, its own interval holds the share at n, which is `MERGED` or more, and
        one symbol earlier a share below.
        """
        ends = [self.interval(n) for n in range(len(self.shares))]
        reached = (n for n, (_, high) in enumerate(ends) if high >= MERGED)
        surely = (n for n, (low, _) in enumerate(ends) if low >= MERGED)
        return next(reached, None), next(surely, None)

    def far_below(self, length: int) -> bool:
        """Whether words of a length test much less than all of their symbols."""
        return self.horizon is not None and self.horizon * FAR_BELOW <= length

    @property
    def summary(self) -> str:
        """The merging horizon in words, without the name of it."""
        if self.never:
            return f"none: {self.never}"
        if self.horizon is None:
            share, most = rounded_down(self.share(self.longest), 4), _symbols(self.longest)
            return f"none: the last {most} merge all states in {share} of words{self._sampled}"
        if self.horizon == 0:
            return "0 symbols: there is one state"
        others = [(level, self.symbols_for(level)) for level in LEVELS]
        told = [(level, n) for level, n in others if n not in (None, self.horizon)]
        also = ", ".join(f"{n} in {_percent(level)}" for level, n in told)
        return (
            f"{_symbols(self.horizon)} merge{'s' * (self.horizon == 1)} all states in "
            f"{_percent(MERGED)} of words{f' ({also})' if also else ''}{self._sampled}"
        )

    def limit_of(self, length: int) -> str:
        """What accuracy at a length tests at most; empty where that is not far below the length."""
        if not self.far_below(length):
            return ""
        return (
            f"accuracy at {length:,} tests at most {_last(self.horizon or 0)}: "
            f"{_percent(MERGED)} of words have merged all states by then{self._sampled}"
        )

    @property
    def _sampled(self) -> str:
        """On how many words it was counted, and what the horizon lies between."""
        if self.words is None:
            return ""
        low, high = self.between
        between = "" if low is None else f", between {low} and {'more' if high is None else high}"
        return f", counted on {self.words:,} words{between}"

    def to_json(self) -> dict[str, Any]:
        """As plain values: what `--json` prints, and what a data card has."""
        shares = []
        for n in (1, 2, 5, 10, 20, 50, 100, 200, 500):
            if n > self.longest or self.never:
                break
            low, high = self.interval(n)
            shares.append({"symbols": n, "share": self.share(n), "low": low, "high": high})
        return {
            "length": self.length,
            "exact": self.words is None,
            "words": self.words,
            "horizon": self.horizon,
            "between": list(self.between),
            "symbols_for": {str(level): self.symbols_for(level) for level in LEVELS},
            "shares": shares,
            "never": self.never or None,
            "summary": self.summary,
        }


def merging_of(automaton: Automaton, length: int, most_images: int = MOST_IMAGES) -> Merging | None:
    """How soon the words of an automaton, of `length` symbols, merge its states.

    Exact where there are at most `most_images` images, else on sampled words, the same at every
    call. None where the automaton is too large.
    """
    if automaton.delta.size > MOST_TRANSITIONS:
        return None
    length = min(length, LONGEST)
    machine = needed_machine(automaton)
    if machine.live.sum() == 1:
        return Merging(length, np.ones(1))
    law = _Law.of(automaton)
    if law.independent and (never := _never_at_once(machine, law)):
        return Merging(length, np.zeros(1), never=never)
    classes = _StateClasses.of(machine, law)
    images = images_of(classes.actions, most_images)
    nodes = None if images is None else _Nodes.of(images, classes, law, most_images)
    if images is None or nodes is None:
        return _sampled(automaton, machine, classes, law, length)
    if law.independent:
        never = _never_by_images(images, classes)
    else:
        never = "" if nodes.merged.any() else "no word that is drawn leads all states to one"
    return Merging(length, np.zeros(1) if never else _pushed(nodes, law, length), never=never)


def _symbols(number: int) -> str:
    return f"{number:,} symbol{'s' * (number != 1)}"


def _last(number: int) -> str:
    return "the last symbol" if number == 1 else f"the last {number:,} symbols"


def _percent(level: float) -> str:
    return f"{100 * level:g} %"


def window_line(merging: Mapping[str, Any], length: int) -> str:
    """What a window that sees the last symbols alone can answer at a length, of plain values.

    Empty where it would have to see more than a small part of the words.
    """
    if merging["horizon"] is None or merging["horizon"] * FAR_BELOW > length:
        return ""
    number, also = merging["horizon"], ""
    for level, symbols in merging["symbols_for"].items():
        if float(level) > MERGED and symbols is not None and symbols > number:
            also += f", the last {symbols:,} in {_percent(float(level))}"
    return (
        f"WINDOW: {_last(number)} decide{'s' * (number == 1)} the label in {_percent(MERGED)} of "
        f"words of {length:,}{also}: all states have merged by then, and what came before is not "
        "tested"
    )


def merging_in(source: Source, length: int) -> Merging | None:
    """How soon the words of a source merge its states; None also for one without an automaton."""
    automaton = source.automaton
    return None if automaton is None else _remembered(automaton, length)


_remembered = lru_cache(maxsize=16)(merging_of)


@dataclass(frozen=True, eq=False)
class _Law:
    """How symbols are drawn: in W states that drawn words lead to; in one, where all are alike."""

    drawing: Automaton
    start: int
    delta: Integers  # [W, V]
    weights: Floats  # [W, V]
    shift: Floats  # [W, V]: what a slip changes in them

    @classmethod
    def of(cls, automaton: Automaton) -> _Law:
        """The law of an automaton's words."""
        drawing = minimise(automaton)
        kept = np.flatnonzero(reachable(drawing.delta, drawing.start, drawing.drawable))
        weights = drawing.weights[kept]
        if not drawing.can_slip and (weights == weights[0]).all():
            loops = np.zeros((1, drawing.num_symbols), np.int64)
            return cls(drawing, 0, loops, weights[:1], np.zeros_like(weights[:1]))
        number = np.zeros(drawing.num_states, np.int64)  # also of what is never drawn
        number[kept] = np.arange(len(kept))
        start, delta = int(number[drawing.start]), number[drawing.delta[kept]]
        return cls(drawing, start, delta, weights, drawing.shift_at_slip[kept])

    @property
    def independent(self) -> bool:
        """Whether symbols are drawn alike in every state: no state tells of the symbols to come."""
        return len(self.delta) == 1

    @cached_property
    def drawable(self) -> Booleans:
        """Which symbols are ever drawn in a state: `[W, V]`."""
        return (self.weights > 0) | (self.shift > 0)

    @property
    def used(self) -> Integers:
        """The symbols that are ever drawn: at most `[V]`."""
        return np.flatnonzero(self.drawable.any(axis=0))

    def slip_chance(self, position: int) -> float:
        """How likely a slip is at a position, counted from 0."""
        return self.drawing.slip_chance(position) if self.drawing.can_slip else 0.0


@dataclass(frozen=True, eq=False)
class _StateClasses:
    """States that every symbol leads to the same states, as one.

    Images are taken of classes: they are fewer, and the last symbol tells the state.
    """

    actions: Integers  # [A, K]
    action_of: Integers  # [V]: the action of a symbol; -1 for one that is never drawn
    live: Booleans  # [K]: all but the class of the sink
    target: Integers  # [K, V]: the machine's state that a symbol leads a class to
    first: Integers  # [K]: a state of each class
    sink: int | None

    @classmethod
    def of(cls, machine: Machine, law: _Law) -> _StateClasses:
        """The classes of a machine under the symbols that are drawn."""
        used = law.used
        _, first, number = np.unique(
            machine.delta[:, used], axis=0, return_index=True, return_inverse=True
        )
        number = number.reshape(-1)
        maps = number[machine.delta[first][:, used]].T  # [used symbols, K]
        actions, action = np.unique(maps, axis=0, return_inverse=True)
        action_of = np.full(machine.delta.shape[1], -1)
        action_of[used] = action.reshape(-1)
        live = np.ones(len(first), bool)
        if machine.sink is not None:
            live[number[machine.sink]] = False
        return cls(actions, action_of, live, machine.delta[first], first, machine.sink)

    def are_one(self, states: npt.NDArray[np.signedinteger]) -> Booleans:
        """Whether states `[I, K]` of live classes are one, -1 and the sink aside: `[I]`."""
        one = np.ones(len(states), bool)
        for classes in (slice(FIRST_CLASSES), slice(None)):  # few rows are left for all classes
            some = states[one, classes]
            counted = self.live[classes] & (some >= 0)
            if self.sink is not None:
                counted &= some != self.sink
            lowest = np.where(counted, some, np.iinfo(some.dtype).max).min(axis=1)
            one[one] = lowest >= np.where(counted, some, -1).max(axis=1)
        return one


@dataclass(frozen=True, eq=False)
class _Nodes:
    """Images with the states that symbols are drawn in; the first W have the image of no symbols.

    M moves: one for each node and symbol that is ever drawn in it.
    """

    count: int  # N
    source: Integers  # [M]
    target: Integers  # [M]
    weight: Floats  # [M]
    shift: Floats  # [M]: what a slip changes in the weight
    merged: Booleans  # [M]: whether the state is known after this move, whatever came before

    @classmethod
    def of(cls, images: Images, classes: _StateClasses, law: _Law, most: int) -> _Nodes | None:
        """The nodes that drawn words lead to; None where there are more than `most`."""
        num_states = len(law.delta)
        moves: list[tuple[Integers, Integers, Integers]] = []

        def further(nodes: Integers) -> Integers:  # nodes are numbers image * W + state
            image, state = np.divmod(nodes, num_states)
            place, symbol = np.nonzero(law.drawable[state])
            there = images.step[image[place], classes.action_of[symbol]]
            moves.append(
                (nodes[place], symbol, there * num_states + law.delta[state[place], symbol])
            )
            return moves[-1][-1]

        order = closed(np.arange(num_states), further, most)
        if order is None:
            return None
        source, symbol, target = (np.concatenate(each) for each in zip(*moves, strict=True))
        image, state = np.divmod(source, num_states)
        merged = np.empty(len(source), bool)
        for each in np.unique(symbol).tolist():
            here = symbol == each
            reached = np.where(images.members, classes.target[:, each], -1)
            merged[here] = classes.are_one(reached)[image[here]]
        ranks = np.argsort(order)

        source, target = (
            ranks[np.searchsorted(order, nodes, sorter=ranks)] for nodes in (source, target)
        )
        weight, shift = law.weights[state, symbol], law.shift[state, symbol]
        return cls(len(order), source, target, weight, shift, merged)

    def before(self, share: Floats | None, slip: float) -> Floats:
        """The share `[N]` of words that merge with one more symbol in front of them.

        `share` None is for words of no symbols; `slip` is the chance of one at that symbol.
        """
        weight = self.weight + slip * self.shift if slip else self.weight
        flow = weight * (self.merged if share is None else share[self.target])
        summed = np.bincount(self.source, weights=flow, minlength=self.count)
        return summed.astype(np.float64)


def _pushed(nodes: _Nodes, law: _Law, length: int) -> Floats:
    """The shares, exactly: from each node backwards, and of the nodes at every position."""
    num_states, targets = len(law.delta), law.delta.ravel()
    at = np.ones((length, 1))  # how likely each state is to be drawn in, at every position
    if not law.independent:
        at = np.zeros((length, num_states))
        at[0, law.start] = 1.0
        for position in range(1, length):
            chances = law.weights + law.slip_chance(position - 1) * law.shift
            flow = (at[position - 1][:, None] * chances).ravel()
            at[position] = np.bincount(targets, weights=flow, minlength=num_states)
    shares = [0.0]
    share: Floats | None = None
    for n in range(1, min(length - 1, MOST_STEPS // len(nodes.source)) + 1):
        share = nodes.before(share, law.slip_chance(length - n))
        shares.append(min(1.0, float(at[length - n] @ share[:num_states])))
        if shares[-1] >= ALL:
            break
    return np.maximum.accumulate(np.array(shares))  # as they are, but for rounding


def _never_at_once(machine: Machine, law: _Law) -> str:
    """Why no word merges the states, where one look at the symbols tells; else nothing."""
    live = np.flatnonzero(machine.live)
    delta = machine.delta[live][:, law.used]
    if (np.sort(delta, axis=0) == live[:, None]).all():
        return "every symbol permutes the states"
    component = strong_components(machine.delta[:, law.used])
    left = (component[delta] != component[live, None]).any(axis=1)
    parts = len(np.setdiff1d(component[live], component[live][left]))
    return f"{parts} parts of the machine are never left once entered" if parts > 1 else ""


def _never_by_images(images: Images, classes: _StateClasses) -> str:
    """That no word merges two states, where all images are of several classes; else nothing.

    No word merges the states of a smallest image: it would have a smaller one. Where one part of
    the machine is never left, some smallest image I lies in it, and words permute I as a transitive
    group: a word leads any state of I to any other one, and e w e, for an idempotent e with the
    image I, maps I onto I.
    """
    size = (images.members & classes.live).sum(axis=1).min()
    return "" if size <= 1 else f"words permute {size} states, and lead no two of them to one"


def _sampled(
    automaton: Automaton, machine: Machine, classes: _StateClasses, law: _Law, length: int
) -> Merging | None:
    """The shares on sampled words, followed from their last symbol to the front.

    None where the states are too many for `LEAST_WORDS` words.
    """
    num_classes = len(classes.first)
    most = min(MOST_WORDS, MOST_SAMPLED // length, MOST_FOLLOWED // (8 * num_classes))
    if most < LEAST_WORDS:
        return None
    raw = np.random.PCG64(0).random_raw(most * automaton.num_bits(length))
    bits = (raw >> np.uint64(32)).astype(np.uint32).reshape(most, -1)
    words = automaton.draw(bits, np.full(most, length), length)
    # [words, K]: the state after the last n symbols
    after = classes.target.T.astype(np.int32)[words[:, -1]]
    counts = [0]
    left = MOST_FOLLOWED
    for n in range(1, length):
        if n > 1:
            taken = classes.action_of[words[:, length - n]]
            for number, action in enumerate(classes.actions):
                after[taken == number] = after[taken == number][:, action]
        merged = classes.are_one(after)
        counts.append(counts[-1] + int(merged.sum()))
        words, after = words[~merged], after[~merged]
        left -= after.size
        if not len(words) or left < 0:
            break
    never = _never_by_pairs(machine, classes) if law.independent and not counts[-1] else ""
    return Merging(length, np.array(counts) / most, most, never)


def _never_by_pairs(machine: Machine, classes: _StateClasses) -> str:
    """That no word merges two states, by all pairs of them; nothing where they are too many."""
    merge = np.eye(len(classes.first), dtype=bool)
    merge |= ~(classes.live[:, None] & classes.live[None, :])
    most_rounds = MOST_FOLLOWED // (merge.size * len(classes.actions))
    merging = all_leading_to(classes.actions, merge, most_rounds)
    if merging is None or merging.all():
        return ""
    apart = classes.first[np.argwhere(~merging)[0]]
    first, second = (machine.automaton.states[state] for state in apart)
    return f"no word leads the states {first} and {second} to one"


# --- groups that words hide ---


def hides_groups(source: Source, length: int) -> bool:
    """Whether words of a length hide groups of the machine that they are drawn from.

    They do where their merging horizon is far below the length, and the machine has a group.
    False also where nothing is known: without an automaton, and where no group was found in a
    machine with many images.
    """
    merging, automaton = merging_in(source, length), source.automaton
    if merging is None or automaton is None or not merging.far_below(length):
        return False
    return has_a_group(automaton)


@lru_cache(maxsize=16)
def has_a_group(automaton: Automaton) -> bool:
    """Whether some drawn words permute states of the smallest machine, and move one.

    Exact where the machine has at most `MOST_IMAGES` images. Where it has more, True is proven by
    a word, and False says that none of some thousand short words permutes states.
    """
    machine = needed_machine(automaton)
    actions = settled(machine.delta).actions
    if actions.shape[1] > MOST_STATES:
        return False
    images = images_of(np.unique(actions, axis=0), MOST_IMAGES)
    if images is not None:
        return bool(holonomy_groups(images))
    if _some_cycle(actions):
        return True
    num_actions, num_states = actions.shape
    random = np.random.Generator(np.random.PCG64(0))
    words = actions[random.integers(num_actions, size=max(MOST_MOVED // num_states, 1))]
    for _ in range(LONGEST_TRIED):
        more = actions[random.integers(num_actions, size=len(words))]
        words = np.take_along_axis(more, words, axis=1)
        if _some_cycle(words):
            return True
    return False


def _some_cycle(maps: Integers) -> bool:
    """Whether some map `[N, S]` moves a state that its high powers lead to."""
    recurring = settled_power(maps)
    return bool((np.take_along_axis(maps, recurring, axis=1) != recurring).any())
