"""The machine that a network computes, as learned from its answers: a hypothesis."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from statetrack.evidence.records import (
    EVIDENCE,
    Evidence,
    Facts,
    Failure,
    Named,
    failure_text,
    number_of,
)

ALGORITHMS = {"lstar": "L*", "kv": "KV"}
"""The algorithms as they are written."""


@EVIDENCE.register("extraction")
@dataclass(frozen=True, kw_only=True)
class Extraction(Evidence):
    """The machine that a network computes, as L* or KV learn it from its answers: a hypothesis.

    The machine is as small as possible: it has `states`, where the task needs `needed` (None
    without a task), not counted the sink that words with forbidden symbols lead to. `delta`
    has for each state where each symbol leads, `output` its label, which is None where none is
    asked for, and the number of labels where logits are not finite. Without any state, nothing was
    extracted.

    `equivalent` says whether machine and task agree on every word; False where the network was seen
    to answer some word wrongly; None where there is no task, and where learning was ended before
    either was known. `difference` is the shortest word that the network was seen to answer wrongly:
    where `reason` is "tested", the shortest on which machine and task differ. It is None too where
    only another evaluation saw the network fail.

    The network has read `words` words, of up to `longest` symbols, and all that are drawn of up to
    `all_to`. Where `reason` is "tested", the machine agrees with all of them, the last of which
    were `random_words` of up to `random_length` symbols; and if the network is a machine with at
    most `extra_states` more states, it is this one (None: not even that is known). Where it is
    "length", the same holds but for longer words, one of which is known to be answered otherwise by
    the network than by the machine. Other reasons are in `EXTRACTION_ENDINGS`; then the machine is
    the last hypothesis, which may be wrong.
    """

    kind = "extraction"
    commands = ("extract",)
    place = 3.0
    share = 0.8
    found_by = "statetrack.evidence.extraction:find_extraction"

    algorithm: str
    states: int
    needed: int | None
    equivalent: bool | None
    difference: Failure | None
    words: int
    longest: int
    all_to: int
    random_words: int
    random_length: int
    extra_states: int | None
    delta: tuple[tuple[int, ...], ...]
    output: tuple[int | None, ...]
    start: int
    reason: str

    @property
    def verdict(self) -> str:
        """What was found, in a few words."""
        if self.equivalent is False and self.difference is not None:
            return f"differs at length {self.difference.position}"
        if self.equivalent is False:
            return "differs"
        if self.equivalent:
            return "equivalent"
        return "not decided" if self.needed is not None else f"{self.states} states"

    @property
    def refuted(self) -> bool:
        """Whether the machine answers the word that the network fails otherwise than the network.

        It is then a hypothesis that this word refutes, such as where the word is too long to learn
        from.
        """
        if self.difference is None or not self.states:
            return False
        state = self.start
        for symbol in self.difference.word:
            state = self.delta[state][symbol]
        return self.output[state] != self.difference.answer

    def merged(self, later: Self) -> Self:
        """The later machine, with the shorter word of the two that the network answers wrongly."""
        mine, new = self.difference, later.difference
        if mine is None or (new is not None and new.position <= mine.position):
            return later
        reason = "length" if later.reason == "tested" else later.reason
        return replace(later, difference=mine, equivalent=False, reason=reason)

    @property
    def tried(self) -> bool:
        """Whether any word was read."""
        return self.words > 0

    @property
    def summary(self) -> str:
        """What was found, in one line."""
        what = f"a machine of {self.states:,} states" if self.states else "no machine was learned"
        if self.difference is not None:
            position = self.difference.position
            what = f"{what}; the network differs from the task at symbol {position:,}"
        elif self.equivalent:
            what = f"{what}, equivalent to the task"
        longest = number_of(self.longest, "symbol")
        return f"{what}; {self.words:,} words were read, of up to {longest}"

    def cell(self, fails_at: int | None = None) -> str:
        """The machine in a cell of a table: `equivalent (6)`, `differs (9)`.

        Where the network is known to fail on some word all the same: `equivalent (6), fails at 29`.
        """
        known = {True: "equivalent", False: "differs", None: "not decided"}[self.equivalent]
        fails = f", fails at {fails_at:,}" if self.equivalent and fails_at is not None else ""
        return f"{known} ({self.states:,}){fails}"

    def lines(self, names: Named) -> list[Facts]:
        """What was found, and how far it was tested."""
        told = [("machine", self._size()), ("compared", self._comparison(names))]
        read = f"{self.words:,} words, of up to {number_of(self.longest, 'symbol')}"
        if self.all_to:
            read += f"; all that are drawn of up to {self.all_to}"
        told.append(("read", read))
        if self.states:
            told.append(("tested", self._tests()))
        return [Facts(told)]

    def _size(self) -> str:
        if not self.states:
            return f"none was learned: {EXTRACTION_ENDINGS[self.reason]}"
        needs = "" if self.needed is None else f"; the task needs {self.needed:,}"
        return f"{number_of(self.states, 'state')}, by {ALGORITHMS[self.algorithm]}{needs}"

    def _comparison(self, names: Named) -> str:
        if self.difference is not None:
            shortest = self.reason == "tested" or self.difference.position <= self.all_to + 1
            which = "the shortest word" if shortest else "the shortest word that was met"
            who = "the network is " if self.reason == "length" else ""
            refuted = (
                "; it refutes the machine, which is a hypothesis about shorter words"
                if self.refuted
                else ""
            )
            return (
                f"{who}not equivalent to the task; {which}: "
                f"{failure_text(self.difference, names.symbols, names.labels)}{refuted}"
            )
        if self.equivalent:
            return "equivalent to the task: the machine answers every word as the task does"
        if self.equivalent is False:
            return (
                "the network is not equivalent to the task; the machine, which answers every word "
                "as the task does, is what it computes on the words that were read"
            )
        return "not decided"

    def _tests(self) -> str:
        length = number_of(self.random_length, "symbol")
        random = f"{self.random_words:,} random words of up to {length}"
        if self.reason == "length":
            return (
                f"{random} among them: machine and network agree on all but a longer word that was "
                "known to fail, so the machine is what the network computes on short words at most "
                "(--length)"
            )
        if self.reason != "tested":
            ended = EXTRACTION_ENDINGS[self.reason]
            return f"not to the end: {ended}; the machine is the last hypothesis"
        more = ""
        if self.extra_states is not None:
            states = number_of(self.extra_states, "more state")
            more = f"; if the network is a machine with at most {states}, it is this one"
        return f"{random} among them: machine and network agree on all{more}"


EXTRACTION_ENDINGS: dict[str, str] = {
    "tested": "no word was found on which machine and network differ",
    "length": "machine and network differ on a word that is too long to learn from",
    "states": "the machine has more states than the cap",
    "words": "as many words were read as the cap allows",
    "time": "the budget was spent",
}
"""What ends an extraction: `Extraction.reason`, and what it says."""
