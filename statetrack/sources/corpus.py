"""A corpus: words that were recorded, as a source.

A word of n symbols is the beginning of a recorded trace of at least n symbols, each as likely as it
was recorded often among those. Labels are those of a machine that reads the word, or the outputs
that were recorded with it: then no other word has labels.

The traces are dealt to training, validation and test, eight, one and one of ten, so that no trace
is in two of them: from the longest to the shortest, so that each has long ones. Short beginnings of
different traces may still be equal words.

Letters: K different traces, N words, T time, V symbols, C labels, S states.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import ClassVar, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from statetrack.errors import SettingsError, TaskError, nearest_or_known
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
from statetrack.sources.automaton import LONGEST_WHOLE, Automaton, Purpose, Source
from statetrack.sources.formats._automata import in_order
from statetrack.sources.lengths import LengthDistribution
from statetrack.sources.randomness import one_of
from statetrack.text import shortened

MOST_TRACES: Final = 100_000
"""The most different traces of a corpus."""

MOST_SYMBOLS: Final = 1_000_000
"""The most symbols of all different traces together."""

MOST_RECORDED: Final = 2**31
"""How often all traces together may have been recorded, at most."""

_TRAIN: Final[Purpose] = "train"
DEALT: Final[tuple[Purpose, ...]] = ("test", _TRAIN, "validation", *(_TRAIN for _ in range(7)))
"""What the longest trace is for, the next one, and so on; then again."""

_CELLS_AT_ONCE: Final = 2**22


class Trace(NamedTuple):
    """A recorded word, with what was said after each symbol where that was recorded too."""

    symbols: tuple[str, ...]
    outputs: tuple[str, ...] | None
    times: int = 1
    line: int = 0


class WrongTrace(TaskError):
    """What is wrong with a trace, by its place among them, and by that of another one."""

    def __init__(self, index: int, reason: str, other: int | None = None) -> None:
        super().__init__(f"trace {index + 1}: {reason}{self.beside(other, 'trace', 1)}")
        self.index, self.reason, self.other = index, reason, other

    @staticmethod
    def beside(other: int | None, noun: str, first: int) -> str:
        """The other trace in words: `, unlike trace 7, which begins alike`."""
        return "" if other is None else f", unlike {noun} {other + first}, which begins alike"


class Corpus(Source):
    """Recorded traces, read by a machine or by what was recorded."""

    noun: ClassVar[str] = "recorded traces"

    def __init__(
        self,
        words: TraceWords,
        tree: PrefixTree | None,
        machine: Automaton | None,
        parts: Mapping[Purpose, TraceWords] | None = None,
        longest: int | None = None,
    ) -> None:
        self._words, self._tree, self._machine = words, tree, machine
        reader = machine or tree
        assert reader is not None
        self.symbols, self.labels = reader.symbols, reader.labels
        every = [words] if parts is None else list(parts.values())
        self._longest = longest or min(part.longest for part in every)
        self._parts = {
            purpose: Corpus(part, tree, machine, longest=self._longest)
            for purpose, part in (parts or {}).items()
        }

    @classmethod
    def of(cls, traces: Sequence[Trace], machine: Automaton | None) -> Corpus:
        """The corpus of some traces, whose symbols are a machine's where there is one.

        Raises `TaskError` for fewer than three different traces, and for too many or too large
        ones; `WrongTrace` for a symbol that the machine does not have, for an output that is not
        the machine's and, without a machine, for a trace without outputs and for one that says
        something else than another after the same symbols.
        """
        if machine is None:
            symbols, labels = _names(traces)
        else:
            symbols, labels = machine.symbols, ()
            _check_outputs(traces, machine)
        words = TraceWords.of(traces, symbols)
        if words.num_traces < len(set(DEALT)):
            raise TaskError(
                f"{words.num_traces} different traces: at least {len(set(DEALT))} are needed, one "
                "each for training, validation and test"
            )
        tree = None if machine is not None else PrefixTree(traces, symbols, labels)
        return cls(words, tree, machine, words.dealt())

    def part(self, purpose: Purpose) -> Source:
        """The traces for training, validation or test; of a part, itself."""
        return self._parts.get(purpose, self)

    @property
    def longest_word(self) -> int:
        """The greatest length that a trace of every part reaches."""
        return self._longest

    @property
    def usual_length(self) -> int:
        """The median length of the different traces."""
        return int(self._words.lengths[self._words.num_traces // 2])

    def check_length(self, length: int) -> None:
        """Raises `SettingsError` for a length that no trace reaches."""
        if length > self.longest_word:
            raise SettingsError(
                f"length {length}: words are beginnings of recorded traces, and those for "
                f"training, validation and test all reach {self.longest_word} symbols at most"
            )

    def num_bits(self, longest: int) -> int:
        """One, which chooses the trace."""
        return 1

    def draw(self, bits: Bits, lengths: Integers, longest: int) -> Unsigned:
        """Beginnings of traces, drawn as often as they were recorded."""
        return self._words.beginnings(self._words.drawn(bits[:, 0], lengths), longest)

    def read(self, words: npt.ArrayLike) -> tuple[Unsigned, Booleans]:
        """What the machine says; without one, what was recorded.

        Raises `TaskError` for a word that does not begin a recorded trace, where there is no
        machine.
        """
        symbols = np.asarray(words)
        if self._machine is not None:
            return self._machine.read(symbols)
        return self._read_recorded(symbols, np.full(symbols.shape[:-1], symbols.shape[-1]))

    def label_words(
        self, symbols: Unsigned, lengths: Integers, supervision: Supervision = "every"
    ) -> Batch:
        """The batch of the words; what stands behind a word's end is not looked at."""
        if self._machine is not None:
            return super().label_words(symbols, lengths, supervision)
        labels, _ = self._read_recorded(symbols, lengths)
        inside = np.arange(symbols.shape[-1]) < lengths[..., None]
        last = np.arange(symbols.shape[-1]) == lengths[..., None] - 1
        scored = last if supervision == "last" else inside
        return Batch(symbols * inside, labels * inside, scored, lengths)

    def _read_recorded(
        self, symbols: npt.NDArray[np.integer], lengths: Integers
    ) -> tuple[Unsigned, Booleans]:
        assert self._tree is not None
        flat = symbols.reshape(-1, symbols.shape[-1])
        labels = self._tree.read(flat, lengths.reshape(-1)).reshape(symbols.shape)
        return labels, np.ones(symbols.shape, bool)

    def count_words(self, lengths: LengthDistribution) -> int:
        """How many different beginnings of these lengths the traces have."""
        return sum(
            len(np.unique(self._words.nodes[length - 1]))
            for length in range(lengths.shortest, min(lengths.longest, self._words.longest) + 1)
        )

    def list_words(self, lengths: LengthDistribution) -> tuple[UnlabelledWords, Floats]:
        """All beginnings of these lengths, in order of length, then of the traces."""
        words = self._words
        found, sizes, chances = [], [], []
        for length in range(lengths.shortest, lengths.longest + 1):
            nodes = words.nodes[length - 1]
            _, first, inverse = np.unique(nodes, return_index=True, return_inverse=True)
            weight = np.bincount(inverse.reshape(-1), words.counts[: len(nodes)])
            found.append(first)
            sizes.append(np.full(len(first), length))
            chances.append(weight / weight.sum() / lengths.num_lengths)
        all_lengths = np.concatenate(sizes)
        symbols = words.beginnings(np.concatenate(found), lengths.longest)
        symbols[np.arange(lengths.longest) >= all_lengths[:, None]] = PADDING
        return UnlabelledWords(symbols, all_lengths), np.concatenate(chances)

    def floors(self, lengths: Iterable[int]) -> dict[int, float] | None:
        """The share of the commonest label after n symbols; None where not all are asked for."""
        if self._machine is not None and not self._machine.all_scored:
            return None
        floors = {}
        for length in lengths:
            reach = int(self._words.reaching(np.array([length]))[0])
            votes = np.zeros(self.num_labels)
            size = max(1, _CELLS_AT_ONCE // length)
            for begin in range(0, reach, size):
                chosen = np.arange(begin, min(begin + size, reach))
                labels, _ = self.read(self._words.beginnings(chosen, length))
                np.add.at(votes, labels[:, -1], self._words.counts[chosen])
            floors[length] = float(votes.max() / votes.sum())
        return floors

    def fingerprint(self) -> str:
        """SHA-256 over traces, how often each was recorded, labels and names."""
        digest = hashlib.sha256()
        for array in (self._words.flat, self._words.lengths, self._words.counts):
            digest.update(np.array(array.shape, "<i8").tobytes() + array.astype("<i8").tobytes())
        if self._machine is not None:
            digest.update(self._machine.fingerprint().encode())
        else:
            assert self._tree is not None
            for labels in self._tree.labels_by_depth:
                digest.update(labels.astype("<i8").tobytes())
        digest.update(json.dumps([self.symbols, self.labels]).encode())
        return digest.hexdigest()


class TraceWords:
    """The symbols of different traces, the longest first, and how often each was recorded."""

    def __init__(
        self, flat: Unsigned, lengths: Integers, counts: Integers, num_symbols: int
    ) -> None:
        self.flat = flat  # all traces one behind the other
        self.lengths = lengths  # [K], falling
        self.counts = counts  # [K]
        self._num_symbols = num_symbols
        self._begin = np.concatenate([[0], lengths.cumsum()[:-1]]).astype(np.int64)
        self._upper_ends = counts.cumsum()

    @classmethod
    def of(cls, traces: Sequence[Trace], symbols: tuple[str, ...]) -> TraceWords:
        """The different traces, in an order that is that of the traces alone.

        Raises `TaskError` for an empty trace, an unknown symbol, and too much.
        """
        place = {name: index for index, name in enumerate(symbols)}
        counts: Counter[tuple[int, ...]] = Counter()
        for index, trace in enumerate(traces):
            if not trace.symbols:
                raise WrongTrace(index, "it has no symbols")
            if len(trace.symbols) > LONGEST_WHOLE:
                raise WrongTrace(
                    index,
                    f"it has {len(trace.symbols):,} symbols, the most is {LONGEST_WHOLE:,}",
                )
            for name in trace.symbols:
                if name not in place:
                    hint = nearest_or_known(name, symbols)
                    raise WrongTrace(index, f"the machine has no symbol '{shortened(name)}'.{hint}")
            counts[tuple(place[name] for name in trace.symbols)] += trace.times

        def order(word: tuple[int, ...]) -> tuple[int, bytes]:
            names = " ".join(symbols[symbol] for symbol in word)
            # words of one length are in an order that has nothing to do with them
            return -len(word), hashlib.sha256(names.encode()).digest()

        ordered = sorted(counts, key=order)
        total = sum(map(len, ordered))
        if len(ordered) > MOST_TRACES or total > MOST_SYMBOLS:
            raise TaskError(
                f"{len(ordered):,} different traces of {total:,} symbols are too many: the most is "
                f"{MOST_TRACES:,} traces and {MOST_SYMBOLS:,} symbols"
            )
        if counts.total() > MOST_RECORDED:
            raise TaskError(
                f"{counts.total():,} recordings are too many: {MOST_RECORDED:,} are most"
            )
        flat = np.array([symbol for word in ordered for symbol in word], np.int64)
        return cls(
            flat.astype(smallest_type(len(symbols))),
            np.array([len(word) for word in ordered], np.int64),
            np.array([counts[word] for word in ordered], np.int64),
            len(symbols),
        )

    @property
    def num_traces(self) -> int:
        """K."""
        return len(self.lengths)

    @property
    def longest(self) -> int:
        """The length of the longest trace."""
        return int(self.lengths[0])

    def dealt(self) -> dict[Purpose, TraceWords]:
        """The traces for each purpose."""
        given = np.array(DEALT)[np.arange(self.num_traces) % len(DEALT)]
        return {
            purpose: self.take(np.flatnonzero(given == purpose)) for purpose in dict.fromkeys(DEALT)
        }

    def take(self, chosen: Integers) -> TraceWords:
        """The traces at some places, in rising order."""
        parts = [self.flat[self._begin[i] : self._begin[i] + self.lengths[i]] for i in chosen]
        flat = np.concatenate(parts) if parts else self.flat[:0]
        return TraceWords(flat, self.lengths[chosen], self.counts[chosen], self._num_symbols)

    def reaching(self, lengths: Integers) -> Integers:
        """How many traces have at least so many symbols, `[N]`: they are the first ones."""
        return np.searchsorted(-self.lengths, -lengths, side="right")

    def drawn(self, bits: npt.NDArray[np.uint32], lengths: Integers) -> Integers:
        """The place of a trace that is long enough, for each length `[N]` by an integer `[N]`."""
        totals = self._upper_ends[self.reaching(lengths) - 1]
        return np.searchsorted(self._upper_ends, one_of(totals, bits), side="right")

    def beginnings(self, chosen: Integers, longest: int) -> Unsigned:
        """The first symbols of traces `[N, longest]`; behind a trace's end its last one."""
        last = self.lengths[chosen][:, None] - 1
        symbols: Unsigned = self.flat[
            self._begin[chosen][:, None] + np.minimum(np.arange(longest), last)
        ]
        return symbols

    @cached_property
    def nodes(self) -> list[Integers]:
        """After t + 1 symbols, for each trace that has them, a number of what it has read."""
        levels = _levels(self.flat.astype(np.int64), self.lengths, self._num_symbols)
        return [node for _, _, _, node in levels]


class PrefixTree:
    """What was recorded after every beginning of a trace."""

    def __init__(
        self,
        traces: Sequence[Trace],
        symbols: tuple[str, ...],
        labels: tuple[str, ...],
    ) -> None:
        self.symbols, self.labels = symbols, labels
        self._type = smallest_type(len(labels))
        symbol_place = {name: index for index, name in enumerate(symbols)}
        label_place = {name: index for index, name in enumerate(labels)}
        order = sorted(range(len(traces)), key=lambda index: -len(traces[index].symbols))
        lengths = np.array([len(traces[index].symbols) for index in order])
        read = [symbol_place[name] for index in order for name in traces[index].symbols]
        said = [label_place[name] for index in order for name in traces[index].outputs or ()]
        labels_said = np.array(said, np.int64)
        self._keys: list[Integers] = []
        self.labels_by_depth: list[Integers] = []
        levels = _levels(np.array(read), lengths, len(symbols))
        for place, (here, keys, first, node) in enumerate(levels):
            label = labels_said[here]
            wrong = np.flatnonzero(label != label[first][node])
            if len(wrong):
                pair = sorted((order[int(first[node[wrong[0]]])], order[int(wrong[0])]))
                early, late = ((traces[index].outputs or ())[place] for index in pair)
                raise WrongTrace(
                    pair[1],
                    f"after its first {place + 1} symbols it says '{shortened(late)}' and not "
                    f"'{shortened(early)}'",
                    other=pair[0],
                )
            self._keys.append(keys)
            self.labels_by_depth.append(label[first])

    def read(self, words: npt.NDArray[np.integer], lengths: Integers) -> Unsigned:
        """The labels `[N, T]` of words of some lengths, 0 behind their ends.

        Raises `TaskError` for a word that begins no recorded trace.
        """
        labels = np.zeros(words.shape, self._type)
        node = np.zeros(len(words), np.int64)
        for place in range(words.shape[1]):
            live = np.flatnonzero(lengths > place)
            if not len(live):
                break
            known = self._keys[place] if place < len(self._keys) else np.zeros(0, np.int64)
            keys = node[live] * len(self.symbols) + words[live, place]
            found = np.searchsorted(known, keys)
            lost = np.flatnonzero(
                np.concatenate([known, [-1]])[np.minimum(found, len(known))] != keys
            )
            if len(lost):
                word = words[live[lost[0]], : place + 1]
                names = " ".join(self.symbols[symbol] for symbol in word)
                raise TaskError(
                    f"the word '{shortened(names)}' begins no recorded trace: without a machine "
                    "there are labels for recorded words alone"
                )
            node[live] = found
            labels[live, place] = self.labels_by_depth[place][found]
        return labels


def _levels(
    flat: Integers, lengths: Integers, num_symbols: int
) -> Iterator[tuple[Integers, Integers, Integers, Integers]]:
    """The beginnings of 1, 2, ... symbols that words have, whose lengths `[K]` fall.

    `flat` are all words one behind the other. For each number of symbols: where in `flat` the last
    one stands in each word that has it; the different beginnings, as the number of the one before
    and that symbol in one; the first word of each; and the number of each word's.
    """
    begin = lengths.cumsum() - lengths
    before = np.zeros(len(lengths), np.int64)
    for place in range(int(lengths[0])):
        here = begin[: int(np.searchsorted(-lengths, -(place + 1), side="right"))] + place
        keys, first, before = np.unique(
            before[: len(here)] * num_symbols + flat[here], return_index=True, return_inverse=True
        )
        before = before.reshape(-1)
        yield here, keys, first, before


def weights_of(traces: Sequence[Trace], automaton: Automaton) -> Floats:
    """How often each symbol was recorded in each state of a machine: `[S, V]`, rows with sum 1.

    The traces are read by the machine. In a state in which none goes on, the row is how often each
    symbol was recorded in all states together. Raises `TaskError`, with the number of the trace,
    for a symbol that the machine does not have.
    """
    words = TraceWords.of(traces, automaton.symbols)
    counts = np.zeros((automaton.num_states, automaton.num_symbols))
    begin = 0
    while begin < words.num_traces:
        size = max(1, _CELLS_AT_ONCE // int(words.lengths[begin]))
        chosen = np.arange(begin, min(begin + size, words.num_traces))
        begin += size
        longest = int(words.lengths[chosen[0]])
        symbols = words.beginnings(chosen, longest)
        states = automaton.states_after(symbols)
        before = np.column_stack([np.full(len(chosen), automaton.start), states[:, :-1]])
        weight = words.counts[chosen][:, None] * (
            np.arange(longest) < words.lengths[chosen][:, None]
        )
        np.add.at(counts, (before, symbols), weight)
    overall = counts.sum(axis=0)
    counts[~counts.any(axis=1)] = overall
    chances: Floats = counts / counts.sum(axis=1, keepdims=True)
    return chances


def _check_outputs(traces: Sequence[Trace], machine: Automaton) -> None:
    """Raises `WrongTrace` for the first trace whose outputs are not those of a machine."""
    place = {name: index for index, name in enumerate(machine.symbols)}
    delta, output = machine.delta.tolist(), machine.output.tolist()
    for index, trace in enumerate(traces):
        if trace.outputs is None:
            continue
        _check_number(index, trace)
        state = machine.start
        for position, (name, said) in enumerate(zip(trace.symbols, trace.outputs, strict=True)):
            if name not in place:
                break  # is refused with all symbols
            state = delta[state][place[name]]
            if machine.labels[output[state]] != said:
                raise WrongTrace(
                    index,
                    f"at position {position + 1}, after '{shortened(name)}', it says "
                    f"'{shortened(said)}', but the machine says "
                    f"'{shortened(machine.labels[output[state]])}'",
                )


def _check_number(index: int, trace: Trace) -> None:
    if len(trace.outputs or ()) != len(trace.symbols):
        raise WrongTrace(
            index, f"{len(trace.outputs or ())} outputs for {len(trace.symbols)} symbols"
        )


def _names(traces: Sequence[Trace]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The symbols and labels of traces that stand alone, in order."""
    for index, trace in enumerate(traces):
        if trace.outputs is None:
            raise WrongTrace(index, "it says no outputs: without a machine they are the labels")
        _check_number(index, trace)
    symbols = {name for trace in traces for name in trace.symbols}
    labels = {name for trace in traces for name in trace.outputs or ()}
    return tuple(in_order(symbols)), tuple(in_order(labels))
