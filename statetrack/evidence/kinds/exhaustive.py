"""All words up to some length: evidence that none of them is answered wrongly."""

from __future__ import annotations

import math
from dataclasses import dataclass

from statetrack.evidence.records import EVIDENCE, Evidence, Failure, number_of


@EVIDENCE.register("exhaustive")
@dataclass(frozen=True, kw_only=True)
class Exhaustive(Evidence):
    """All words up to some length, through the tree of the states that a model can reach.

    Every word of at most `length` symbols is answered rightly, of those that the task draws where
    it forbids symbols (`forbids`); these are `words` in number, None where they are too many to
    count. `failure` is the shortest word with a wrong answer, the first of these in the order of
    the symbols. `states` different states were met, of the model and the automaton together; two
    are one where the automaton's are equal and no number of the model's differs, or, with a
    `tolerance`, where the model's are at most so far apart, as a share of their size.

    `closed` says that no word leads out of these states. With tolerance 0 that proves that words of
    every length are answered rightly, in the arithmetic of this model reading one word at a time,
    symbol by symbol, on this machine. With a tolerance it is a heuristic that may miss wrong words,
    and proves nothing.

    What is proven is proven of words as they were `read`, in a floating-point type on a device,
    symbol by symbol: in batches, or `one_by_one`. Of those in batches, `alone` had so narrow a
    margin that they were also read alone, symbol by symbol and at once. Rows of earlier versions do
    not say how they were read. `reason` is what ended the search: see `ENDINGS`.
    """

    kind = "exhaustive"
    commands = ("certify",)
    place = 1.0
    found_by = "statetrack.evidence.word_tree:find_exhaustive"

    length: int
    words: int | None
    forbids: bool
    closed: bool
    states: int
    tolerance: float
    failure: Failure | None
    reason: str
    alone: int = 0
    read: str = ""
    one_by_one: bool = False

    @property
    def verdict(self) -> str:
        """What was found, in a few words."""
        if self.failure is not None:
            return f"fails at length {self.failure.position}"
        if self.closed:
            return "closed" if self.tolerance == 0 else "closed within tolerance"
        return f"right to length {self.length}"

    @property
    def proves(self) -> float:
        """The length of a proof, infinity for all words."""
        if self.tolerance:
            return 0
        return math.inf if self.closed else self.length

    @property
    def condition(self) -> str:
        """How words were read."""
        if not self.read:
            return ""
        how = "one at a time" if self.one_by_one else "in batches"
        return f"read {how}, by steps, {self.read}"

    @property
    def tried(self) -> bool:
        """Whether any word was read."""
        return self.length > 0

    @property
    def summary(self) -> str:
        """What was found, in one line."""
        which = "all words that the task draws" if self.forbids else "all words"
        if self.closed:
            what = f"{which} of every length are right: {self.states:,} states lead to no others"
            proof = "" if not self.condition else f", {self.condition}"
            return f"{what} (to {self.tolerance:g}: no proof)" if self.tolerance else what + proof
        words = "" if self.words is None else f" ({self.words:,})"
        ended = "" if self.failure is not None else f"; ended: {ENDINGS[self.reason]}"
        read = f", {self.condition}" if self.condition else ""
        read += f", {self.alone:,} of narrow margins also alone" if self.alone else ""
        return f"{which} of up to {number_of(self.length, 'symbol')}{words} are right{read}{ended}"


ENDINGS: dict[str, str] = {
    "failure": "a word is answered wrongly",
    "closed": "no word leads to a state that was not met",
    "alone": "closed, but not confirmed for words that are read one at a time",
    "length": "the greatest length was reached",
    "states": "the most states were met, or as many of one length as there is memory for",
    "time": "the budget was spent",
}
"""What ends an exhaustive search: `Exhaustive.reason`, and what it says."""
