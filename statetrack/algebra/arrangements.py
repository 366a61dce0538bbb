"""Arrangements: some states in an order, and where words take all of them at once.

A word that leads an arrangement back to the same states in another order permutes them. Words that
take two of the states to one are left out, for no word tells them apart again.

Letters: N arrangements, K symbols.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from statetrack.algebra.short_words import word_to
from statetrack.algebra.witness import Word
from statetrack.sources import Booleans, Integers

MOST_ARRANGEMENTS = 60_000
"""Most arrangements that a search goes through."""

MOST_LENGTHS = 4_000
"""The longest words of one length that are looked for."""

MOST_HISTORY = 2**26
"""Most entries of a table of what words of each length reach."""

Arrangement = tuple[int, ...]
"""States in an order."""


@dataclass(frozen=True, eq=False)
class Arrangements:
    """Searches from one arrangement on, by symbols with actions `[K, states]`."""

    symbols: Sequence[int]
    actions: Integers

    def ways(
        self, begin: Arrangement, wanted: Callable[[Arrangement], bool], enough: int
    ) -> list[tuple[Arrangement, Word]]:
        """Shortest words to arrangements that are wanted, other than the first; shortest first.

        As many as are enough, at least where the search is not too large.
        """
        before: dict[Arrangement, tuple[Arrangement, int]] = {}
        rows = [row.tolist() for row in self.actions]
        found: list[tuple[Arrangement, Word]] = []
        queue = [begin]
        for node in queue:
            for symbol, row in zip(self.symbols, rows, strict=True):
                reached = tuple([row[state] for state in node])
                if reached == begin or reached in before or len(set(reached)) < len(reached):
                    continue
                before[reached] = (node, symbol)
                queue.append(reached)
                if wanted(reached):
                    found.append((reached, word_to(before, reached)))
            if len(found) >= enough or len(queue) > MOST_ARRANGEMENTS:
                break
        return found

    def shortest(self, begin: Arrangement, ends: Sequence[Arrangement]) -> Word | None:
        """A shortest word to one of some arrangements; None where it is too far to find."""
        found = self.ways(begin, set(ends).__contains__, 1)
        return found[0][1] if found else None

    def words_of_one_length(
        self, begin: Arrangement, ends: Sequence[Arrangement]
    ) -> tuple[Word, Word] | None:
        """Shortest words of one length: to one of some arrangements, and back to the first.

        None where there are none, or they are too long to find.
        """
        numbers, step = self._all(begin)
        targets = [numbers[end] for end in ends if end in numbers]
        if step is None or not targets:
            return None
        found = of_one_length(step, lambda made: bool(made[0] and made[targets].any()))
        if found is None:
            return None
        target = next(each for each in targets if found[-1][each])
        word, idle = (
            tuple(self.symbols[action] for action in way_back(found, step, end))
            for end in (target, 0)
        )
        return word, idle

    def _all(self, begin: Arrangement) -> tuple[dict[Arrangement, int], Integers | None]:
        """All arrangements that words make of the first: `[N, K]`, -1 where two states become one.

        None where there are too many.
        """
        numbers = {begin: 0}
        rows = [row.tolist() for row in self.actions]
        table: list[list[int]] = []
        queue = [begin]
        for node in queue:
            targets = []
            for row in rows:
                reached = tuple([row[state] for state in node])
                if len(set(reached)) < len(reached):
                    targets.append(-1)
                    continue
                if reached not in numbers:
                    numbers[reached] = len(queue)
                    queue.append(reached)
                targets.append(numbers[reached])
            table.append(targets)
            if len(queue) > MOST_ARRANGEMENTS:
                return numbers, None
        return numbers, np.array(table)


def of_one_length(step: Integers, wanted: Callable[[Booleans], bool]) -> list[Booleans] | None:
    """What words of each length reach from point 0, up to the first length that is wanted.

    `step [N, K]` is where K symbols lead, -1 nowhere. None where there is no such length among
    those that are looked at: they begin to repeat, or become too many.
    """
    reached = np.zeros(len(step), bool)
    reached[0] = True
    history = [reached]
    seen: set[bytes] = set()
    while len(history) <= MOST_LENGTHS and len(history) * len(step) < MOST_HISTORY:
        following = np.zeros(len(step) + 1, bool)
        following[step[history[-1]].ravel()] = True
        history.append(following[:-1])
        if wanted(history[-1]):
            return history
        key = np.packbits(history[-1]).tobytes()
        if key in seen:
            return None
        seen.add(key)
    return None


def way_back(history: Sequence[Booleans], step: Integers, end: int) -> list[int]:
    """A word, in the columns of `step`, that leads from point 0 to a point in so many steps."""
    word = []
    for reached in reversed(history[:-1]):
        sources, actions = np.nonzero((step == end) & reached[:, None])
        word.append(int(actions[0]))
        end = int(sources[0])
    return word[::-1]
