"""Shortcuts: predictors that track no state, fitted by counting labels on training words.

A *view* reduces a prefix to what a shortcut sees of it: its last symbols, its length, which
symbols it holds and how often. A shortcut answers with the label that was most frequent in
training after prefixes that look the same to it. Where it met none, a coarser shortcut answers:
the lookup of one symbol fewer, or the constant.

N words, T time, E ends per word (a prefix ends with the symbol at its end), V symbols, C labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from statetrack.scoring import Accuracies, Tally
from statetrack.sources import Batch, Integers

Keys = NDArray[np.uint64]

LONGEST_LOOKUP: Final = 6
"""The most symbols that a lookup sees."""

_SYMBOLS_AT_ONCE: Final = 2**18
"""Words are read a few at a time: keys take eight bytes a symbol, in several copies."""


@dataclass(frozen=True)
class View:
    """What a shortcut sees of a prefix: prefixes with one key look the same to it.

    `keys` takes words, the ends `[N, E]` of prefixes and the keys of the fallback, and gives keys
    `[N, E]`. `fallback` names the shortcut that answers for a key that never occurred in training.
    A view that `counts_all` has another key for every length of a prefix.
    """

    name: str
    sees: str
    keys: Callable[[Batch, Integers, Keys], Keys]
    fallback: str = "constant"
    counts_all: bool = False

    @property
    def shortcut(self) -> str:
        """What to call its shortcut in a sentence."""
        blind = self.keys is _nothing
        return "the best constant answer" if blind else f"a shortcut that sees {self.sees}"


def _constant(shape: tuple[int, ...]) -> Keys:
    """One key for all."""
    return np.broadcast_to(np.zeros((), np.uint64), shape)


def _nothing(batch: Batch, ends: Integers, coarser: Keys) -> Keys:
    return coarser


def _position(batch: Batch, ends: Integers, coarser: Keys) -> Keys:
    return ends.astype(np.uint64)


def _length(batch: Batch, ends: Integers, coarser: Keys) -> Keys:
    return np.broadcast_to(batch.lengths[:, None], ends.shape).astype(np.uint64)


def _counts(batch: Batch, ends: Integers, coarser: Keys) -> Keys:
    """The sum of a random number for every symbol, the same in every order."""
    sums = _numbers(batch)[batch.symbols].cumsum(axis=1)
    return np.take_along_axis(sums, ends, axis=1)


def _symbols_met(batch: Batch, ends: Integers, coarser: Keys) -> Keys:
    """The same sum, over the first occurrence of every symbol alone."""
    numbers = _numbers(batch)
    places = np.arange(len(batch))[:, None] * len(numbers) + batch.symbols  # word, symbol in it
    times = _all_ends(batch)
    earliest = np.empty(len(batch) * len(numbers), np.int64)
    backwards = slice(None, None, -1)  # of several times for a place, numpy keeps the last
    earliest[places.ravel()[backwards].copy()] = times.ravel()[backwards].copy()
    is_first = earliest[places] == times
    sums = np.where(is_first, numbers[batch.symbols], np.uint64(0)).cumsum(axis=1)
    return np.take_along_axis(sums, ends, axis=1)


def _one_more(back: int) -> Callable[[Batch, Integers, Keys], Keys]:
    """To the symbols after it, the symbol so many before the last; 0 stands for one before all."""
    factor = _random_numbers(back + 1)[back]

    def keys(batch: Batch, ends: Integers, coarser: Keys) -> Keys:
        places = ends - back
        symbols = np.take_along_axis(batch.symbols, places.clip(min=0), axis=1)
        seen: Keys = np.where(places >= 0, symbols + np.uint64(1), np.uint64(0)) * factor
        return coarser + seen

    return keys


def _numbers(batch: Batch) -> Keys:
    return _random_numbers(int(batch.symbols.max()) + 1)


def _random_numbers(count: int) -> Keys:
    """The first of an endless row of fixed numbers.

    Keys are sums of such numbers modulo 2**64. Two prefixes that a view distinguishes have the same
    key with probability about 2**-60.
    """
    return np.random.PCG64(0).random_raw(count)


VIEWS: Final[Mapping[str, View]] = {
    view.name: view
    for view in (
        View("constant", "nothing", _nothing),
        *(
            View(
                f"last-{count}",
                "the last symbol" if count == 1 else f"the last {count} symbols",
                _one_more(count - 1),
                f"last-{count - 1}" if count > 1 else "constant",
            )
            for count in range(1, LONGEST_LOOKUP + 1)
        ),
        View("position", "how many symbols came", _position, counts_all=True),
        View("length", "the length of the word", _length),
        View("counts", "how often each symbol came", _counts, counts_all=True),
        View("symbols", "which symbols came", _symbols_met),
    )
}
"""Every view by its shortcut's name, the simplest first; fallbacks come before their users."""


class Shortcuts:
    """One shortcut for every view, fitted on the labels that training words ask for.

    `train` is a batch `[N, T]` in which at least one position is scored.
    """

    def __init__(self, train: Batch) -> None:
        assert train.scored.any()
        self._longest = int(train.lengths.max())
        parts = list(_parts(train))
        labels = np.concatenate([part.labels[part.scored] for part in parts])
        self._tables = {}
        known = {"constant": [_constant(part.symbols.shape) for part in parts]}
        for name, view in VIEWS.items():
            keys = [
                view.keys(part, _all_ends(part), coarser)
                for part, coarser in zip(parts, known[view.fallback], strict=True)
            ]
            scored = [own[part.scored] for part, own in zip(parts, keys, strict=True)]
            self._tables[name] = _ShortcutTable(np.concatenate(scored), labels)
            known = {"constant": known["constant"], name: keys}

    def answers(self, batch: Batch, ends: Integers) -> Iterator[tuple[str, Integers]]:
        """The name of every shortcut, and its labels `[N, E]` after the prefixes."""
        found: dict[str, Integers] = {}
        known = {"constant": _constant(ends.shape)}
        beyond_training = int(ends.min()) >= self._longest
        for name, view in VIEWS.items():
            if view.counts_all and beyond_training:
                found[name] = found[view.fallback]
            else:
                keys = view.keys(batch, ends, known[view.fallback])
                known = {"constant": known["constant"], name: keys}
                labels, met = self._tables[name].look_up(keys)
                fallback = found.get(view.fallback, labels)
                found[name] = np.where(met, labels, fallback)
            yield name, found[name]

    def measure(self, batch: Batch, lengths: Sequence[int]) -> dict[int, dict[str, Accuracies]]:
        """How right every shortcut is on the prefixes of each length of the words, and on them.

        `lengths` rise. A word that is shorter than a length counts there as it is.
        """
        tallies = {name: Tally(len(batch)) for name in VIEWS}
        right = {name: np.empty(batch.symbols.shape, np.bool_) for name in VIEWS}
        first = 0
        for part in _parts(batch):
            for name, labels in self.answers(part, _all_ends(part)):
                right[name][first : first + len(part)] = labels == part.labels
            first += len(part)
        measured: dict[int, dict[str, Accuracies]] = {}
        reached = 0
        for length in lengths:
            time = slice(reached, length)
            for name, tally in tallies.items():
                tally.add(right[name][:, time], batch.scored[:, time])
            measured[length] = {name: tally.accuracies() for name, tally in tallies.items()}
            reached = length
        return measured

    def last_hits(
        self, batch: Batch, lengths: Sequence[int]
    ) -> tuple[dict[str, Integers], Integers]:
        """Only how many words are right at the last scored position up to each length `[L]`.

        Beside it, how many words have one. Many times cheaper than `measure`.
        """
        places = np.array(lengths) - 1
        hits = {name: np.zeros(len(lengths), np.int64) for name in VIEWS}
        total = np.zeros(len(lengths), np.int64)
        for part in _parts(batch):
            ends = last_scored(part.scored)[:, places]  # -1 where there is none yet
            counted, ends = ends >= 0, ends.clip(min=0)
            right = np.take_along_axis(part.labels, ends, axis=1)
            total += counted.sum(axis=0)
            for name, labels in self.answers(part, ends):
                hits[name] += (counted & (labels == right)).sum(axis=0)
        return hits, total


class _ShortcutTable:
    """For every key of training, its most frequent label (of several, the smallest)."""

    def __init__(self, keys: Keys, labels: NDArray[np.unsignedinteger]) -> None:
        order = keys.argsort()
        in_order = keys[order]
        begins = np.diff(in_order, prepend=~in_order[:1]) != 0
        self._keys, rows = in_order[begins], begins.cumsum() - 1
        num_labels = int(labels.max()) + 1
        pairs = rows * num_labels + labels[order].astype(np.int64)
        pairs, counts = np.unique(pairs, return_counts=True)
        most_frequent_first = pairs[np.lexsort((-counts, pairs // num_labels))]
        is_first = np.diff(most_frequent_first // num_labels, prepend=-1) > 0
        self._labels: Integers = most_frequent_first[is_first] % num_labels

    def look_up(self, keys: Keys) -> tuple[Integers, NDArray[np.bool_]]:
        """The label of every key, and whether it occurred in training; both shaped as `keys`."""
        places = np.searchsorted(self._keys, keys).clip(max=len(self._keys) - 1)
        return self._labels[places], self._keys[places] == keys


def _parts(batch: Batch) -> Iterator[Batch]:
    """The words a few at a time, in their order."""
    at_once = max(1, _SYMBOLS_AT_ONCE // batch.longest)
    for first in range(0, len(batch), at_once):
        yield batch[first : first + at_once]


def _all_ends(batch: Batch) -> Integers:
    """The ends of all prefixes: `[N, T]`."""
    return np.broadcast_to(np.arange(batch.longest), batch.symbols.shape)


def last_scored(scored: NDArray[np.bool_]) -> Integers:
    """The last scored position up to each, `[N, T]`; -1 before the first."""
    if scored.all():
        return np.broadcast_to(np.arange(scored.shape[1]), scored.shape)
    times = np.where(scored, np.arange(scored.shape[1]), -1)
    return np.maximum.accumulate(times, axis=1)
