r"""Regular expressions: patterns that match whole words, and the smallest automata of them.

    a  \.         a symbol; after a backslash any sign is the symbol itself
    ab  a|b       one after the other; either. An empty side is the empty word, as is `()`
    a* a+ a?      any number, one or more, at most one
    a{2} a{2,} a{,3} a{2,3}
    .  [abc] [a-c] [^ab]  \d \D \w \W \s \S     any symbol; one of some symbols of the alphabet
    (...)  (?:...)  (?P<name>...)               a group; all three are alike
    ^  $  \A  \Z  \z                            nothing, at the beginning and the end of the pattern
    a&b           both at once: words that each side matches
    (?shuffle:a|b)  the words of all sides, one symbol of one and then one of another, in any order

All but the last two mean what they mean in Python's `re.fullmatch`. What else that has is refused
by its name, with its position and what to write in place of it.

Where an alphabet has a symbol longer than one letter, and where a pattern without a given alphabet
has a space, symbols are separated by spaces: `(open close)*`. Otherwise each letter is a symbol and
spaces mean nothing.

`pattern_tokens` makes tokens of a text. From these a nondeterministic automaton is built as they
are read. What is finished is a part: some of the states, one after the other, with a first and a
last one. No transition leads to the first or away from the last, so that parts can be joined and
copied without looking into them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from statetrack.errors import TaskError
from statetrack.sources.automaton import check_names
from statetrack.sources.graphs import TooManyStates, coarsest_partition, explore, renumbered
from statetrack.sources.pattern_tokens import MOST_SYMBOLS, Token, alphabet_of, read
from statetrack.text import shortened

MOST_BUILT: Final = 50_000
"""States of the nondeterministic automaton: two or so for every symbol of the pattern, and their
copies."""

MOST_STATES: Final = 4096
"""States of the smallest automaton of a language."""

MOST_SETS: Final = 2 * MOST_STATES
"""States before states that are alike are merged: sets of states of the nondeterministic one."""

MOST_STEPS: Final = 1_000_000
"""States that are looked at while sets of them are formed."""


class Acceptor(NamedTuple):
    """The smallest automaton of a language: transitions `[S, V]`, which states are accepting."""

    delta: list[list[int]]
    accepting: list[bool]
    symbols: tuple[str, ...]


@lru_cache(maxsize=4)  # a pattern is looked at before its task is made
def acceptor(pattern: str, alphabet: tuple[str, ...] | None) -> Acceptor:
    """The smallest automaton of a pattern, which starts in state 0.

    Raises `TaskError` for what is no pattern or no alphabet, and where it is too large.
    """
    symbols = None if alphabet is None else _symbols(alphabet)
    tokens = read(pattern, symbols)
    if symbols is None:
        if not any(token.kind == "symbol" for token in tokens):
            _Builder(()).built(tokens)  # which refuses what is no pattern whatever the symbols
        symbols = _symbols(alphabet_of(tokens))
    delta, accepting = _smallest(*_determined(_Builder(symbols).built(tokens), len(symbols)))
    return Acceptor(delta, accepting, symbols)


def _symbols(symbols: tuple[str, ...]) -> tuple[str, ...]:
    """The symbols of an alphabet; `TaskError` for none, too many, and no names."""
    if not 1 <= len(symbols) <= MOST_SYMBOLS:
        raise TaskError(f"alphabet: it has {len(symbols)} symbols: give 1 to {MOST_SYMBOLS}")
    check_names(symbols, "alphabet: symbol")
    for symbol in symbols:
        if symbols.count(symbol) > 1:
            raise TaskError(f"alphabet: '{shortened(symbol)}' appears twice")
    return symbols


def _determined(machine: _Nondeterministic, num_symbols: int) -> tuple[list[list[int]], list[bool]]:
    """The transitions `[S, V]` between sets of states, state 0 first, and which are accepting.

    Raises `TaskError` once they are more than `MOST_SETS`, or take more than `MOST_STEPS`.
    """
    closures: dict[int, frozenset[int]] = {}
    steps = 0

    def count(number: int) -> None:
        nonlocal steps
        steps += number
        if steps > MOST_STEPS:
            raise TaskError(
                f"pattern: its automaton takes more than {MOST_STEPS:,} steps to find: "
                "write it in a simpler way"
            )

    def closure(state: int) -> frozenset[int]:
        """The states that a state leads to without a symbol, itself included."""
        if state not in closures:
            found, waiting = {state}, [state]
            while waiting:
                further = set(machine.free[waiting.pop()]) - found
                count(1 + len(further))
                found |= further
                waiting += further
            # only what reads a symbol or accepts tells sets apart
            closures[state] = frozenset(
                each for each in found if each == machine.accepting or machine.reads[each]
            )
        return closures[state]

    def step(states: frozenset[int], symbol: int) -> frozenset[int]:
        count(1 + len(states))
        reached = [
            closure(target)
            for target in {
                target
                for state in states
                for bits, target in machine.reads[state]
                if bits >> symbol & 1
            }
        ]
        count(sum(map(len, reached)))
        return frozenset().union(*reached)

    try:
        sets, delta = explore(closure(machine.start), range(num_symbols), step, MOST_SETS)
    except TooManyStates:
        raise TaskError(
            f"pattern: its automaton needs more than {MOST_SETS:,} states before those that are "
            "alike are merged: write it in a simpler way"
        ) from None
    return delta, [machine.accepting in states for states in sets]


def _smallest(delta: list[list[int]], accepting: list[bool]) -> tuple[list[list[int]], list[bool]]:
    """The same language with the fewest states, numbered breadth first."""
    table, members = np.array(delta), np.array(accepting)
    blocks = coarsest_partition(table, members.astype(np.int64))
    _, firsts = np.unique(blocks, return_index=True)
    if len(firsts) > MOST_STATES:
        raise TaskError(f"pattern: its automaton has more than {MOST_STATES:,} states")
    order, rows = renumbered(blocks[table[firsts]], int(blocks[0]))
    return rows, members[firsts][order].tolist()


@dataclass
class _Nondeterministic:
    """An automaton that may be in several states at once; it accepts in one of them."""

    reads: list[list[tuple[int, int]]] = field(default_factory=list)
    """For each state what it reads, as bits of the symbols, and where that leads."""

    free: list[list[int]] = field(default_factory=list)
    """For each state where it leads without reading."""

    start: int = 0
    accepting: int = 0

    def add(self, count: int = 1) -> int:
        """The number of the first of so many new states.

        Raises `TaskError` where there are too many.
        """
        first = len(self.reads)
        if first + count > MOST_BUILT:
            raise TaskError(
                f"pattern: it needs more than {MOST_BUILT:,} states before they are merged: "
                "write it in a simpler way"
            )
        self.reads += [[] for _ in range(count)]
        self.free += [[] for _ in range(count)]
        return first


@dataclass(frozen=True)
class _Part:
    """The states from `low` on, up to the next part's; words lead from `first` to `last`."""

    low: int
    first: int
    last: int
    begins: Token | None = None
    """The anchor at its beginning, if it has one, and `ends` one at its end."""
    ends: Token | None = None


@dataclass
class _Group:
    """A group that is open: the sides that are finished, and what stands in the newest."""

    token: Token | None
    at_beginning: bool
    in_shuffle: bool = False
    sign: Token | None = None
    """The `|` or `&` between its sides."""
    sides: list[_Part] = field(default_factory=list)
    items: list[_Part] = field(default_factory=list)
    begins: Token | None = None
    ends: Token | None = None
    """The anchor at the end of the newest side; nothing may follow it there."""
    repeatable: bool = False

    @property
    def shuffles(self) -> bool:
        return self.token is not None and self.token.text.startswith("(?s")


class _Builder:
    """Builds the automaton of a pattern; raises `TaskError` for tokens that make none."""

    def __init__(self, alphabet: Sequence[str]) -> None:
        self._alphabet = alphabet
        self._all = _Nondeterministic()

    def built(self, tokens: Sequence[Token]) -> _Nondeterministic:
        open_groups = [_Group(None, at_beginning=True)]
        for token in tokens:
            group = open_groups[-1]
            if token.kind == "open":
                self._check_end(group, token)
                shuffles = token.text.startswith("(?s")
                beginning = group.at_beginning and not group.items and not shuffles
                open_groups.append(_Group(token, beginning, shuffles or group.in_shuffle))
            elif token.kind == "close":
                if len(open_groups) == 1:
                    token.refuse(r"it closes no bracket; the symbol is written \)")
                open_groups.pop()
                self._add(open_groups[-1], self._closed(group), token)
            elif token.kind in ("or", "and"):
                self._check_sign(group, token)
                self._end_side(group)
            elif token.kind == "anchor":
                self._anchor(group, token)
            elif token.kind == "repeat":
                self._repeat(group, token)
            else:
                self._add(group, self._symbol(token), token)
        last = open_groups.pop()
        if last.token is not None:
            last.token.refuse(r"the bracket is not closed; the symbol is written \(")
        whole = self._closed(last)
        self._all.start, self._all.accepting = whole.first, whole.last
        return self._all

    def _add(self, group: _Group, part: _Part, token: Token) -> None:
        self._check_end(group, token)
        group.begins, group.ends = group.begins or part.begins, part.ends
        group.items.append(part)
        group.repeatable = True

    def _check_end(self, group: _Group, token: Token) -> None:
        """Refuses what follows an anchor at the end."""
        if group.ends is not None:
            group.ends.refuse(
                f"more follows it at position {token.position}: it can stand at the end alone; "
                r"the symbol is written \$"
            )

    def _anchor(self, group: _Group, token: Token) -> None:
        if token.text in ("^", r"\A"):
            if group.items or not group.at_beginning:
                symbol = r"; the symbol is written \^" if token.text == "^" else ""
                token.refuse(
                    "it can stand at the beginning alone, where it changes nothing"
                    f"{symbol}; to shuffle two languages write (?shuffle:A|B)"
                )
            group.begins = token
        else:
            if group.in_shuffle:
                token.refuse("it can stand at the end of the pattern alone")
            group.ends = token
        group.repeatable = False

    def _check_sign(self, group: _Group, token: Token) -> None:
        if group.sign is not None and group.sign.kind != token.kind:
            token.refuse(
                f"beside '{group.sign.text}' at position {group.sign.position} brackets must say "
                "which belongs together: (a|b)&c or a|(b&c)"
            )
        if group.shuffles and token.kind == "and":
            token.refuse("the sides of (?shuffle:...) stand between '|': write (a&b) in brackets")
        group.sign = token

    def _end_side(self, group: _Group) -> None:
        """The items of the newest side as one part."""
        items = group.items
        if items:
            for left, right in pairwise(items):
                self._all.free[left.last].append(right.first)
            low, first, last = items[0].low, items[0].first, items[-1].last
        else:
            low = first = self._all.add(2)
            last = low + 1
            self._all.free[first].append(last)
        group.sides.append(_Part(low, first, last, group.begins, group.ends))
        group.items, group.begins, group.ends, group.repeatable = [], None, None, False

    def _closed(self, group: _Group) -> _Part:
        """A group that ends here as one part."""
        self._end_side(group)
        part, *others = group.sides
        begins = next((side.begins for side in group.sides if side.begins), None)
        ends = next((side.ends for side in group.sides if side.ends), None)
        if not others:
            return part
        if group.shuffles or (group.sign is not None and group.sign.kind == "and"):
            # the newest sides first: they are the last states, and make room for their product
            sides = [part, *others]
            while len(sides) > 1:
                right, left = sides.pop(), sides.pop()
                sides.append(self._product(left, right, shuffled=group.shuffles))
            part = sides[0]
        else:
            first = self._all.add(2)
            for side in group.sides:
                self._all.free[first].append(side.first)
                self._all.free[side.last].append(first + 1)
            part = _Part(part.low, first, first + 1)
        return _Part(part.low, part.first, part.last, begins, ends)

    def _symbol(self, token: Token) -> _Part:
        bits = token.choice.among(self._alphabet)
        if not bits:
            token.refuse("it stands for no symbol of the alphabet")
        first = self._all.add(2)
        self._all.reads[first].append((bits, first + 1))
        return _Part(first, first, first + 1)

    def _repeat(self, group: _Group, token: Token) -> None:
        if not group.repeatable:
            token.refuse(
                "there is nothing before it that it could repeat; the symbol is written "
                f"\\{token.text[0]}"
                if not group.items or group.ends
                else "it repeats what is repeated already: put brackets between, as in (a*)*"
            )
        part = group.items[-1]
        if (anchor := part.begins or part.ends) and token.most not in (0, 1):
            anchor.refuse(
                f"it cannot stand in what '{token.text}' at position {token.position} repeats"
            )
        group.items[-1] = self._repeated(part, token.least, token.most)
        group.repeatable = False

    def _repeated(self, part: _Part, least: int, most: int | None) -> _Part:
        """A part so many times; its states are the last ones."""
        copies = max(least, 1) if most is None else most
        parts = [part, *self._copies(part, copies - 1)]
        if most is None:
            parts[-1] = self._any_number(parts[-1], may_be_none=least == 0)
        elif most == 0:
            first = self._all.add(2)
            self._all.free[first].append(first + 1)
            return _Part(part.low, first, first + 1, part.begins, part.ends)
        else:
            for optional in parts[least:]:
                self._all.free[optional.first].append(parts[-1].last)
        for left, right in pairwise(parts):
            self._all.free[left.last].append(right.first)
        return _Part(part.low, parts[0].first, parts[-1].last, part.begins, part.ends)

    def _any_number(self, part: _Part, *, may_be_none: bool) -> _Part:
        """A part once or more, or any number of times."""
        first = self._all.add(2)
        last = first + 1
        self._all.free[first].append(part.first)
        self._all.free[part.last] += [part.first, last]
        if may_be_none:
            self._all.free[first].append(last)
        return _Part(part.low, first, last)

    def _copies(self, part: _Part, count: int) -> list[_Part]:
        """Copies of a part whose states are the last ones."""
        high = len(self._all.reads)
        size = high - part.low
        if count <= 0:
            return []
        begin = self._all.add(size * count)
        copies = []
        for copy in range(count):
            shift = begin + size * copy - part.low
            for state in range(part.low, high):
                self._all.reads[state + shift] = [
                    (bits, target + shift) for bits, target in self._all.reads[state]
                ]
                self._all.free[state + shift] = [target + shift for target in self._all.free[state]]
            copies.append(_Part(part.low + shift, part.first + shift, part.last + shift))
        return copies

    def _product(self, left: _Part, right: _Part, *, shuffled: bool) -> _Part:
        """Two parts side by side, in place of them; they are the last states.

        Both read each symbol, or else, `shuffled`, one of them does.
        """
        reads, free = self._all.reads[left.low :], self._all.free[left.low :]
        low = left.low
        del self._all.reads[low:], self._all.free[low:]
        start = (left.first, right.first)
        number = {start: self._all.add()}
        waiting = [start]

        def numbered(pair: tuple[int, int]) -> int:
            if pair not in number:
                number[pair] = self._all.add()
                waiting.append(pair)
            return number[pair]

        for pair in waiting:  # grows while pairs are found
            here = number[pair]
            one, other = (state - low for state in pair)
            self._all.free[here] = [
                *(numbered((target, pair[1])) for target in free[one]),
                *(numbered((pair[0], target)) for target in free[other]),
            ]
            if shuffled:
                self._all.reads[here] = [
                    *((bits, numbered((target, pair[1]))) for bits, target in reads[one]),
                    *((bits, numbered((pair[0], target))) for bits, target in reads[other]),
                ]
            else:
                self._all.reads[here] = [
                    (bits & others, numbered((target, beyond)))
                    for bits, target in reads[one]
                    for others, beyond in reads[other]
                    if bits & others
                ]
        return _Part(low, number[start], numbered((left.last, right.last)))
