"""Sources of words with their labels, and the automaton, which is what most of them are.

A `Source` says where the words of a task, and the labels of their prefixes, come from. An
`Automaton` is one: a Moore machine in integer tables, with the weights that words are drawn by. So
is anything else that draws words and labels them: a sampler of a language that is not regular, a
corpus of recorded words. A new one is a subclass of `Source` that says how words are drawn and
read; whatever else it leaves out has a default that is right for every source.

Letters: N words, T time, S states, V symbols, C labels, W random integers for a word.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import ClassVar, Final, Literal

import numpy as np
import numpy.typing as npt

from statetrack.errors import SettingsError, TaskError
from statetrack.sources.arrays import (
    PADDING,
    Batch,
    Bits,
    Booleans,
    Floats,
    Integers,
    Supervision,
    UnlabelledWords,
    Unsigned,
    smallest_type,
)
from statetrack.sources.floors import DrawnWords, best_constant
from statetrack.sources.graphs import after_each_length, reachable
from statetrack.sources.lengths import LONGEST_ALLOWED, LengthDistribution
from statetrack.sources.randomness import RandomBits
from statetrack.sources.tables import Runner, SymbolSampler, uniform_symbols
from statetrack.text import LONGEST_NAME, flaw_in, shortened

Purpose = Literal["train", "validation", "test"]
"""What words are for."""

LONGEST_WHOLE: Final = 100_000
"""The longest word of a source that draws whole words."""

_HASHED_LENGTHS, _HASHED_WORDS = (1, 2, 5, 12, 37), 64
"""The words that a source without tables is told apart by: so many of each length."""

UNCOUNTABLE: Final = 2**53
"""Where counting words stops: `count_words` returns this for any number as large or larger."""

ROUNDING = 1e-12
"""Weights whose sum is this close to 1 are taken as they are."""

MOST_TRANSITIONS = 2**24
"""Most transitions of an automaton that is made from others, or from a group: a larger one would
not fit into the memory of a small computer."""


class Source(ABC):
    """A distribution over words of each length, and a label after each prefix of any word.

    A drawn word is a function of the random integers given for it: the same integers give the
    same word on every machine, whichever words are drawn beside it.
    """

    noun: ClassVar[str] = "a source without states"
    """What messages call it."""

    prefixes_are_words: ClassVar[bool] = False
    """Whether the first n symbols of a longer word are distributed like a word of length n."""

    symbols: tuple[str, ...]
    labels: tuple[str, ...]

    @property
    def longest_word(self) -> int:
        """The greatest length that words can have."""
        return LONGEST_WHOLE

    @property
    def usual_length(self) -> int:
        """A length that words often have, where they come from elsewhere."""
        return self.longest_word

    @property
    def num_symbols(self) -> int:
        """V."""
        return len(self.symbols)

    @property
    def num_labels(self) -> int:
        """C, including labels that no drawn word has."""
        return len(self.labels)

    @abstractmethod
    def read(self, words: npt.ArrayLike) -> tuple[Unsigned, Booleans]:
        """The label after every symbol of words `[..., T]`, and whether it is asked for.

        Any word can be read, also one that is never drawn. A label depends on the symbols up to
        its own position alone. Labels have the smallest unsigned type that holds C.
        """

    @abstractmethod
    def num_bits(self, longest: int) -> int:
        """W: how many 32-bit integers a word takes, when no word is longer than `longest`."""

    @abstractmethod
    def draw(self, bits: Bits, lengths: Integers, longest: int) -> Unsigned:
        """Words `[N, longest]` of the given lengths `[N]`, from uniform integers `[N, W]`.

        What stands behind a word's end means nothing. The result has the smallest unsigned type
        that holds V symbols.
        """

    def stream(self, bits: RandomBits, num_words: int, length: int, chunk: int) -> Iterator[Batch]:
        """Words of one length, labelled after every symbol: consecutive pieces `[N, <=T]`.

        Joined along T the pieces are whole words, the same whatever the `chunk` (how many symbols
        a piece may hold). A source that can continue a word draws piece by piece, in constant
        memory; by default the words are drawn whole and then cut.
        """
        width = self.num_bits(length)
        lengths = np.full(num_words, length)
        drawn = bits.read(0, num_words * width).reshape(num_words, width)
        words = self.label_words(self.draw(drawn, lengths, length), lengths)
        size = max(1, chunk // num_words)
        for first in range(0, length, size):
            yield words.cut(first, min(first + size, length))

    def label_words(
        self, symbols: Unsigned, lengths: Integers, supervision: Supervision = "every"
    ) -> Batch:
        """The batch of the words `symbols[..., :lengths]`: labelled, masked and padded with zeros.

        `every` asks for the label of each prefix, `last` for that of the last prefix only; a
        prefix whose label the source does not ask for is left out, so `last` then means the last
        that is asked for.
        """
        inside = np.arange(symbols.shape[-1]) < lengths[..., None]  # [..., N, T]
        labels, asked = self.read(symbols)
        scored = asked & inside
        if supervision == "last":
            scored = _last_of_each(scored)
        return Batch(symbols * inside, labels * inside, scored, lengths)

    def check_length(self, length: int) -> None:
        """Raises `SettingsError` for a length that words cannot have."""
        if length > self.longest_word:
            reason = "" if self.prefixes_are_words else ", for they are drawn whole"
            raise SettingsError(
                f"length {length}: words that come from {self.noun} have at most "
                f"{self.longest_word} symbols{reason}"
            )

    def part(self, purpose: Purpose) -> Source:
        """Where the words for a purpose come from: by default the source itself.

        A source of few words, such as a corpus, keeps those for tests apart.
        """
        return self

    @property
    def automaton(self) -> Automaton | None:
        """The automaton that the source is, if it is one."""
        return None

    def count_words(self, lengths: LengthDistribution) -> int | None:
        """How many words of these lengths can be drawn; None where that is not known.

        A source that counts returns `UNCOUNTABLE` for any number as large or larger.
        """
        return None

    def list_words(self, lengths: LengthDistribution) -> tuple[UnlabelledWords, Floats] | None:
        """All words of these lengths that can be drawn, and how likely each is: `[N]`, sum 1.

        None where they are not known. Asked for only where `count_words` says that they are few.
        """
        return None

    def floors(self, lengths: Iterable[int]) -> dict[int, float] | None:
        """The accuracy of the best constant answer at the last scored position, by length.

        Exact to rounding, for words as they are drawn; None where it is not known and has to be
        measured on words.
        """
        return None

    def has_one_answer(self, length: int) -> bool:
        """Whether it is known that one label is right everywhere in drawn words of up to a length.

        Such words test nothing: a constant answer is right on all of them.
        """
        return False

    def fingerprint(self) -> str:
        """SHA-256 over all that words and labels depend on.

        By default over the first words of several lengths, their labels and all names.
        """
        digest = hashlib.sha256()
        for length in sorted({min(length, self.longest_word) for length in _HASHED_LENGTHS}):
            raw = np.random.PCG64(np.random.SeedSequence(length))
            width = self.num_bits(length)
            bits = (raw.random_raw(_HASHED_WORDS * width) >> np.uint64(32)).astype(np.uint32)
            symbols = self.draw(bits.reshape(-1, width), np.full(_HASHED_WORDS, length), length)
            for array in (symbols, *self.read(symbols)):
                digest.update(np.asarray(array, "<i8").tobytes())
        digest.update(json.dumps([self.symbols, self.labels]).encode())
        return digest.hexdigest()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(V={self.num_symbols}, C={self.num_labels})"


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Automaton(Source):
    """A Moore machine in integer tables: immutable, and validated when it is built.

    Reading symbol x in state s leads to state `delta[s, x]`, whose label is `output[s']`.
    `weights[s, x]` is how likely a sampler draws x in state s (a zero forbids it there), and
    `scored[s]` says whether the label is asked for in state s.

    A sampler may *slip*: with slip rate r, the symbol at position t (from 0) is drawn by
    `slips[s]` with chance r / (t + 1 + r), and by `weights[s]` otherwise. In a state whose row of
    slips is all zeros nothing slips. The chance of a slip falls along a word but stays above 0:
    where every state can slip, the share of words of n symbols without one is
    Gamma(n + 1) Gamma(1 + r) / Gamma(n + 1 + r), close to Gamma(1 + r) n^-r.

    Left out, the output of every state is the state itself, the start is state 0, names are
    numbers, weights are uniform, every state is scored and nothing slips. Weights and slips are
    normalised row by row.

    Raises `TaskError` for a transition that is missing or out of range, a state that no word
    reaches (words with forbidden symbols count as words), a label out of range, a state in which
    nothing can be drawn, slips without a rate or a rate without slips, and where no label is asked
    for in any word.
    """

    noun: ClassVar[str] = "an automaton"
    prefixes_are_words: ClassVar[bool] = True

    delta: Integers  # [S, V]
    output: Integers  # [S]
    start: int
    symbols: tuple[str, ...]
    states: tuple[str, ...]
    labels: tuple[str, ...]
    weights: Floats  # [S, V]
    scored: Booleans  # [S]
    slips: Floats  # [S, V]
    slip_rate: float

    def __init__(
        self,
        delta: npt.ArrayLike,
        output: npt.ArrayLike | None = None,
        *,
        start: int = 0,
        symbols: Sequence[str] | None = None,
        states: Sequence[str] | None = None,
        labels: Sequence[str] | None = None,
        weights: npt.ArrayLike | None = None,
        scored: npt.ArrayLike | None = None,
        slips: npt.ArrayLike | None = None,
        slip_rate: float = 0.0,
    ) -> None:
        table = _integer_table(delta)
        num_states, num_symbols = table.shape
        state_names = _names(states, num_states, "state")
        symbol_names = _names(symbols, num_symbols, "symbol")
        _check_targets(table, state_names, symbol_names)
        outputs, label_names = _outputs(output, labels, state_names)
        if not 0 <= start < num_states:
            raise TaskError(f"start: {start} is no state: there are {num_states}, counted from 0")
        _check_reachable(table, start, state_names)
        chances = _chances(weights, num_symbols, state_names)
        asked = np.ones(num_states, bool) if scored is None else np.array(scored, bool)
        if asked.shape != (num_states,):
            raise TaskError(f"scored: {asked.size} entries for {num_states} states")
        slipping = _slips(slips, slip_rate, num_symbols, state_names)
        _check_asked(table, start, (chances > 0) | (slipping > 0), asked)
        values = {
            "delta": table,
            "output": outputs,
            "start": int(start),
            "symbols": symbol_names,
            "states": state_names,
            "labels": label_names,
            "weights": chances,
            "scored": asked,
            "slips": slipping,
            "slip_rate": float(slip_rate),
        }
        for name, value in values.items():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"Automaton(S={self.num_states}, V={self.num_symbols}, C={self.num_labels})"

    @property
    def longest_word(self) -> int:
        """The greatest length that a task file or a command can ask for."""
        return LONGEST_ALLOWED

    @property
    def num_states(self) -> int:
        """S."""
        return len(self.states)

    @cached_property
    def uniform_weights(self) -> bool:
        """Whether every symbol is equally likely in every state, at every position."""
        return not self.can_slip and bool((self.weights == 1.0 / self.num_symbols).all())

    @property
    def can_slip(self) -> bool:
        """Whether there is a state in which a sampler may slip."""
        return self.slip_rate > 0

    @cached_property
    def drawable(self) -> Booleans:
        """Which symbols a sampler ever draws in a state, by slip or not: `[S, V]`."""
        return (self.weights > 0) | (self.slips > 0)

    @cached_property
    def shift_at_slip(self) -> Floats:
        """What a slip changes in the chance of a symbol: `[S, V]`, rows of zeros where none is."""
        slips = self.slips.any(axis=1, keepdims=True)
        return np.where(slips, self.slips - self.weights, 0.0)

    def slip_chance(self, position: int) -> float:
        """How likely a slip is at a position, counted from 0, in a state that can slip."""
        return self.slip_rate / (position + 1 + self.slip_rate)

    def chances_at(self, position: int) -> Floats:
        """How likely each symbol is drawn in each state at a position, counted from 0: `[S, V]`."""
        if not self.can_slip:
            return self.weights
        chances: Floats = self.weights + self.slip_chance(position) * self.shift_at_slip
        return chances

    @cached_property
    def all_scored(self) -> bool:
        """Whether the label is asked for after every symbol."""
        return bool(self.scored.all())

    def states_after(self, words: npt.ArrayLike, state: npt.ArrayLike | None = None) -> Unsigned:
        """The state after every symbol: `[..., T]` from words `[..., T]`.

        Every word starts in `state` (one for all, or `[...]`), by default in `start`. The result
        has the smallest unsigned type that holds S states.
        """
        return self._state_runner(np.asarray(words), self.start if state is None else state)

    def labels_of(self, words: npt.ArrayLike, state: npt.ArrayLike | None = None) -> Unsigned:
        """The label after every symbol, scored or not: `[..., T]` from words `[..., T]`.

        Starts as `states_after` does; the result has the smallest unsigned type that holds C.
        """
        return self._label_runner(np.asarray(words), self.start if state is None else state)

    def read(self, words: npt.ArrayLike) -> tuple[Unsigned, Booleans]:
        """The label of the state after every symbol, and whether that state is scored."""
        if self.all_scored:
            return self.labels_of(words), np.ones(np.shape(words), bool)
        states = self.states_after(words)
        return self._outputs[states], self.scored[states]

    def num_bits(self, longest: int) -> int:
        """One for each symbol."""
        return longest

    def draw(self, bits: Bits, lengths: Integers, longest: int) -> Unsigned:
        """Words drawn by weights and slips; zeros stand behind the longest of them."""
        reached = int(lengths.max())
        drawn = self._drawn(bits[:, :reached], self.start)
        return np.pad(drawn, ((0, 0), (0, longest - reached))) if reached < longest else drawn

    def stream(self, bits: RandomBits, num_words: int, length: int, chunk: int) -> Iterator[Batch]:
        """Words in constant memory: a piece begins in the states that the one before ended in."""
        state = np.full(num_words, self.start, np.int64)
        piece_length = max(1, chunk // num_words)
        for begin in range(0, length, piece_length):
            size = min(piece_length, length - begin)
            drawn = bits.read(begin * num_words, size * num_words).reshape(size, num_words)
            symbols = np.ascontiguousarray(self._drawn(drawn.T, state, begin))
            states = self.states_after(symbols, state)
            state = states[:, -1].astype(np.int64)
            lengths = np.full(num_words, size)
            yield Batch(symbols, self._outputs[states], self.scored[states], lengths)

    @property
    def automaton(self) -> Automaton:
        """Itself."""
        return self

    def count_words(self, lengths: LengthDistribution) -> int:
        """How many words of these lengths can be drawn; `UNCOUNTABLE` for as many or more."""
        targets = self.delta[self.drawable]
        ends_in = np.zeros(self.num_states)  # words of the present length that end there: [S]
        ends_in[self.start] = 1
        total = 0.0
        for length in range(1, lengths.longest + 1):
            continued = np.broadcast_to(ends_in[:, None], self.drawable.shape)[self.drawable]
            ends_in = np.zeros(self.num_states)
            np.add.at(ends_in, targets, continued)
            if ends_in.sum() >= UNCOUNTABLE:
                return UNCOUNTABLE  # every word can be continued: longer ones are no fewer
            if length >= lengths.shortest:
                total += float(ends_in.sum())
        return int(min(total, UNCOUNTABLE))

    def list_words(self, lengths: LengthDistribution) -> tuple[UnlabelledWords, Floats]:
        """All words of these lengths that can be drawn, and how likely each is: `[N]`, sum 1.

        In order of length, then of symbols. The caller makes sure by `count_words` that they fit.
        """
        words = np.zeros((1, 0), smallest_type(self.num_symbols))
        states = np.array([self.start])
        chances = np.array([1.0 / lengths.num_lengths])
        found: list[Unsigned] = []
        likely: list[Floats] = []
        for length in range(1, lengths.longest + 1):
            parents, drawn = np.nonzero(self.drawable[states])
            chances = chances[parents] * self.chances_at(length - 1)[states[parents], drawn]
            words = np.column_stack([words[parents], drawn.astype(words.dtype)])
            states = self.delta[states[parents], drawn]
            if length >= lengths.shortest:
                behind = ((0, 0), (0, lengths.longest - length))
                found.append(np.pad(words, behind, constant_values=PADDING))
                likely.append(chances)
        counts = [len(each) for each in found]
        all_lengths = np.repeat(np.arange(lengths.shortest, lengths.longest + 1), counts)
        return UnlabelledWords(np.concatenate(found), all_lengths), np.concatenate(likely)

    def floors(self, lengths: Iterable[int]) -> dict[int, float] | None:
        """The accuracy of the best constant answer by length, from the distribution of states.

        None where that would take too long (`floors.MOST_WORK`).
        """
        words = DrawnWords(
            self.delta,
            self.start,
            np.where(self.scored, self.output, -1),
            self.drawable,
            self.weights,
            self.shift_at_slip,
            self.slip_chance if self.can_slip else None,
        )
        return best_constant(words, lengths)

    def has_one_answer(self, length: int) -> bool:
        """Whether one label is right wherever one is asked for in drawn words of up to a length."""
        ways = after_each_length(np.where(self.drawable, self.delta, -1), self.start)
        passed = np.zeros(self.num_states, bool)
        for reached in islice(ways, 1, length + 1):
            if not (reached & ~passed).any():
                break
            passed |= reached
        return len(np.unique(self.output[passed & self.scored])) <= 1

    def fingerprint(self) -> str:
        """SHA-256 over tables and names."""
        digest = hashlib.sha256()
        for table in (self.delta, self.output, np.array([self.start])):
            digest.update(np.array(table.shape, "<i8").tobytes() + table.astype("<i8").tobytes())
        digest.update(np.ascontiguousarray(self.weights, "<f8").tobytes())
        digest.update(np.ascontiguousarray(self.scored, "u1").tobytes())
        if self.can_slip:
            digest.update(np.ascontiguousarray(self.slips, "<f8").tobytes())
            digest.update(np.array([self.slip_rate], "<f8").tobytes())
        digest.update(json.dumps([self.symbols, self.labels]).encode())
        return digest.hexdigest()

    def with_uniform_weights(self) -> Automaton:
        """The same automaton, every symbol equally likely everywhere: none forbidden, no slips."""
        return self.with_weights(None)

    def with_weights(self, weights: npt.ArrayLike | None) -> Automaton:
        """The same automaton with other weights `[S, V]`, without slips; uniform ones for None.

        Raises `TaskError` for weights that an automaton cannot have.
        """
        return Automaton(
            self.delta,
            self.output,
            start=self.start,
            symbols=self.symbols,
            states=self.states,
            labels=self.labels,
            weights=weights,
            scored=self.scored,
        )

    @cached_property
    def _state_runner(self) -> Runner:
        return Runner(self.delta, np.arange(self.num_states), self.num_states)

    @cached_property
    def _label_runner(self) -> Runner:
        return Runner(self.delta, self.output, self.num_labels)

    @cached_property
    def _outputs(self) -> Unsigned:
        """The label of every state in the smallest type: `[S]`."""
        return self.output.astype(smallest_type(self.num_labels))

    def _drawn(self, bits: Bits, state: npt.ArrayLike, position: int = 0) -> Unsigned:
        """Symbols `[..., T]` from bits `[..., T]`; `position` symbols led to `state`."""
        if self.uniform_weights:
            return uniform_symbols(self.num_symbols, bits)
        return self._symbol_sampler.draw(bits, state, position)

    @cached_property
    def _symbol_sampler(self) -> SymbolSampler:
        slips = self.slip_chance if self.can_slip else None
        return SymbolSampler(self.delta, self.weights, self.drawable, self.shift_at_slip, slips)


def _last_of_each(scored: Booleans) -> Booleans:
    """`scored` with only the last True of every row left; a row without one stays empty."""
    from_the_end = scored[..., ::-1]
    last = scored.shape[-1] - 1 - from_the_end.argmax(axis=-1)
    only_last = np.zeros_like(scored)
    np.put_along_axis(only_last, last[..., None], scored.any(axis=-1, keepdims=True), axis=-1)
    return only_last


def check_names(names: Iterable[str], what: str) -> None:
    """Raise `TaskError` for a name that is not one printable word of at most `LONGEST_NAME`.

    `what` says whose name it is: a state, a symbol or a label.
    """
    for name in names:
        if not isinstance(name, str):
            raise TaskError(f"{what}s: {name!r} is no name: it must be text, '{name}'")
        if name.split() != [name]:
            raise TaskError(
                f"{what}s: '{shortened(name)}' is no name: it must be text without spaces"
            )
        if flaw := flaw_in(name, most=LONGEST_NAME):
            raise TaskError(f"{what}s: the name '{shortened(name)}' {flaw}")


def _integer_table(delta: npt.ArrayLike) -> Integers:
    try:
        table = np.array(delta)
    except ValueError:
        raise TaskError("delta: the states have different numbers of transitions") from None
    if table.ndim != 2 or table.size == 0 or not np.issubdtype(table.dtype, np.integer):
        raise TaskError("delta: must be a table of whole numbers, one row per state")
    return table.astype(np.int64)


def _names(given: Sequence[str] | None, count: int, what: str) -> tuple[str, ...]:
    names = tuple(map(str, range(count))) if given is None else tuple(given)
    if len(names) != count:
        raise TaskError(f"{what}s: {len(names)} names for {count} {what}s")
    check_names(names, what)
    if len(set(names)) < count:
        twice = Counter(names).most_common(1)[0][0]
        raise TaskError(f"{what}s: the name '{twice}' appears twice")
    return names


def _check_targets(table: Integers, states: tuple[str, ...], symbols: tuple[str, ...]) -> None:
    if table.min() < 0 or table.max() >= len(states):
        state, symbol = np.argwhere((table < 0) | (table >= len(states)))[0]
        raise TaskError(
            f"state '{states[state]}': symbol '{symbols[symbol]}' leads to state "
            f"{table[state, symbol]}, but there are {len(states)}, counted from 0"
        )


def _outputs(
    output: npt.ArrayLike | None, labels: Sequence[str] | None, states: tuple[str, ...]
) -> tuple[Integers, tuple[str, ...]]:
    if output is None:
        return np.arange(len(states)), _names(labels or states, len(states), "label")
    outputs = np.array(output)
    if outputs.shape != (len(states),) or not np.issubdtype(outputs.dtype, np.integer):
        raise TaskError(f"output: must be one whole number for each of the {len(states)} states")
    count = max(int(outputs.max()) + 1, 1) if labels is None else len(labels)
    names = _names(labels, count, "label")
    wrong = np.flatnonzero((outputs < 0) | (outputs >= count))
    if len(wrong):
        raise TaskError(
            f"state '{states[wrong[0]]}': its label {outputs[wrong[0]]} is out of range: "
            f"there are {count} labels, counted from 0"
        )
    return outputs.astype(np.int64), names


def _check_reachable(table: Integers, start: int, states: tuple[str, ...]) -> None:
    lost = np.flatnonzero(~reachable(table, start))
    if len(lost):
        shown = ", ".join(f"'{states[index]}'" for index in lost[:5])
        more = f" and {len(lost) - 5} more" if len(lost) > 5 else ""
        raise TaskError(
            f"no word leads from the start '{states[start]}' to {shown}{more}: "
            "remove what cannot be reached"
        )


def _chances(weights: npt.ArrayLike | None, num_symbols: int, states: tuple[str, ...]) -> Floats:
    if weights is None:
        return np.broadcast_to(np.float64(1.0 / num_symbols), (len(states), num_symbols))
    chances = _normalised(weights, "weights", num_symbols, states)
    empty = np.flatnonzero(~chances.any(axis=1))
    if len(empty):
        raise TaskError(f"weights of state '{states[empty[0]]}': all are 0: nothing can be drawn")
    return chances


def _slips(
    slips: npt.ArrayLike | None, rate: float, num_symbols: int, states: tuple[str, ...]
) -> Floats:
    if not (np.isfinite(rate) and rate >= 0):
        raise TaskError(f"slip_rate: {rate}: must be a number of 0 or more")
    if slips is None:
        if rate > 0:
            raise TaskError(f"slip_rate: {rate}, but no slips are given to draw")
        return np.broadcast_to(np.float64(0.0), (len(states), num_symbols))
    chances = _normalised(slips, "slips", num_symbols, states)
    if not (chances.any() and rate > 0):
        raise TaskError("slips: need a symbol to slip on, and a slip_rate above 0")
    return chances


def _normalised(
    table: npt.ArrayLike, what: str, num_symbols: int, states: tuple[str, ...]
) -> Floats:
    """Rows of numbers of 0 or more, divided by their sums; a row of zeros stays one."""
    given = np.array(table, np.float64)
    if given.shape != (len(states), num_symbols):
        raise TaskError(f"{what}: must be {len(states)} rows of {num_symbols} numbers")
    bad = np.flatnonzero(~np.isfinite(given).all(1) | (given < 0).any(1))
    if len(bad):
        raise TaskError(f"{what} of state '{states[bad[0]]}': must be numbers of 0 or more")
    totals = given.sum(1, keepdims=True)
    # sums near 1 are taken as 1, so that normalising again changes nothing
    totals[(np.abs(totals - 1) < ROUNDING) | (totals == 0)] = 1
    chances: Floats = given / totals
    return chances


def _check_asked(table: Integers, start: int, allowed: Booleans, scored: Booleans) -> None:
    entered = np.zeros(len(table), bool)
    if allowed.all():
        entered[table.ravel()] = True  # words reach every state
    else:
        drawn = reachable(table, start, allowed)
        entered[table[drawn][allowed[drawn]]] = True
    if not (entered & scored).any():
        raise TaskError("scored: no word that can be drawn leads to a state whose label is asked")
