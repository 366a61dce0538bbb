"""What a kind of evidence is, the words that fail, and the plain values in which it is said.

Evidence is typed values that a run's folder keeps as JSON and that are read again without torch.
Positions count from 1: the position of the first symbol is 1.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, Self

from statetrack.evidence.budget import SearchBudget as SearchBudget
from statetrack.registry import Registry, modules_in

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from statetrack.evidence.subject import Subject

Verdict = Literal["all lengths", "to length", "not proven"]
"""What is proven of all words: of every length, of those up to a length, or nothing."""

SYMBOLS_SHOWN = 24
"""The most symbols of a word that are shown on one line."""

LONGEST_IN_RUNS, LONGEST_RUN, RUNS_SHOWN = 10_000, 6, 48
"""Longer words are shown whole as powers of words of so many symbols, where these are few."""


class Named(Protocol):
    """What has the names of symbols and labels: a task's source."""

    @property
    def symbols(self) -> Sequence[str]:
        """The names of the symbols."""

    @property
    def labels(self) -> Sequence[str]:
        """The names of the labels."""


@dataclass(frozen=True)
class Facts:
    """Names and values, which are drawn as two columns."""

    rows: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Grid:
    """A table, as texts; the columns named in `right` hold numbers."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: Sequence[str] = ()


Line = str | Facts | Grid
"""What evidence says of itself, in a report: a line of text, facts, or a table."""

Drawing = tuple[str, Callable[[], "Figure"]]
"""The name of a figure, and what draws it."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """One kind of evidence about one trained model; `kind` is its name in evidence.jsonl.

    It is `complete` unless the budget of the search was spent before its end. A kind is one file of
    `statetrack.evidence.kinds`: its fields are plain values, and everything else below may stay as
    it is but for `search`, or the `found_by` that names it.
    """

    kind: ClassVar[str]
    commands: ClassVar[tuple[str, ...]] = ()
    """The commands that search for it, such as `certify` and `probe`."""
    place: ClassVar[float] = 100.0
    """Its place among the kinds: in this order they are searched for and printed."""
    share: ClassVar[float | None] = None
    """The share of the time that is left which its search gets; None: as much as those after it.

    The last kind of a command has all that is left.
    """
    found_by: ClassVar[str] = ""
    """Its search, `module:function`, which is imported once it is searched for."""
    complete: bool
    seconds: float
    budget: float | None = None
    """The seconds of work that the search was given, None where that is not known."""
    work: float | None = None
    """The seconds of work that it did: see `statetrack.evidence.budget`."""
    limited: bool = False
    """Whether CPU time ended it, so that a faster machine may find more."""

    @classmethod
    def search(cls, subject: Subject, *, budget: SearchBudget, seed: int = 0, **given: Any) -> Self:
        """What is found of a model within a budget; `given` has further arguments of the search.

        Raises `SettingsError` for a model or a task that does not allow it.
        """
        module, _, name = cls.found_by.partition(":")
        function: Callable[..., Self] = getattr(importlib.import_module(module), name)
        given_to_it, before = budget.left, budget.work
        found = function(subject, budget=budget, seed=seed, **given)
        return replace(
            found,
            budget=round(given_to_it, 3),
            work=round(budget.work - before, 3),
            limited=budget.limited and not found.complete,
        )

    @property
    def cut_by(self) -> str:
        """What ended the search before its end, behind what was found; empty where nothing did."""
        if self.limited:
            return "; ended by CPU time: a faster machine may find more"
        return "" if self.complete else "; the budget was spent before its end"

    @property
    def failures(self) -> tuple[Failure, ...]:
        """The words in it that are answered wrongly."""
        values = (getattr(self, each.name) for each in fields(self))
        return tuple(value for value in values if isinstance(value, Failure))

    @property
    def proves(self) -> float:
        """The length up to which it proves every word right: infinity for all, 0 for none."""
        return 0

    def merged(self, later: Self) -> Self:
        """What this and a later search of the same weights say together.

        The one with the earlier failure, which nothing takes back; without any, the one that proves
        more; else the later one.
        """
        mine, new = (
            min((failure.position for failure in each.failures), default=math.inf)
            for each in (self, later)
        )
        if mine != new:
            return self if mine < new else later
        return self if self.proves > later.proves else later

    @property
    def condition(self) -> str:
        """What its proof holds for, where that is not every way to read a word; else empty."""
        return ""

    @property
    def tried(self) -> bool:
        """Whether the model was asked words that may fail, so that having none says something."""
        return False

    @property
    def summary(self) -> str:
        """What was found, in one line; empty where only `lines` say it."""
        return ""

    def lines(self, names: Named) -> Sequence[Line]:
        """What was found, in full."""
        return [self.summary]

    def figures(self, of: str) -> Iterator[Drawing]:
        """What can be drawn of it; `of` ends the titles. Matplotlib is imported when one is."""
        yield from ()


EVIDENCE: Registry[type[Evidence]] = Registry(
    "kind of evidence",
    lambda: modules_in("statetrack.evidence.kinds"),
    listing="statetrack probe --help",
)
"""The kinds of evidence by name."""


def kinds_of(command: str) -> list[type[Evidence]]:
    """The kinds of evidence that a command searches for, in their order."""
    kinds = (kind for kind in EVIDENCE.values() if command in kind.commands)
    return sorted(kinds, key=lambda kind: kind.place)


@dataclass(frozen=True)
class Failure:
    """A word that a model answers wrongly: `prefix`, then `period` again and again.

    `position` is that of the first wrong answer, after which the word may end; there the task asks
    for `label` and the model gives `answer` (None where its logits are not all finite). A `suffix`
    takes the place of the last symbols up to `position`.
    """

    prefix: tuple[int, ...]
    period: tuple[int, ...]
    position: int
    label: int
    answer: int | None
    suffix: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not 1 <= self.position or not (self.period or self.position <= len(self.prefix)):
            raise ValueError(f"'position': the word has no symbol {self.position}")

    @property
    def word(self) -> tuple[int, ...]:
        """The symbols up to the wrong answer."""
        length = self.position - len(self.suffix)
        missing = length - len(self.prefix)
        repeats = -(-missing // len(self.period)) if missing > 0 else 0
        return (self.prefix + self.period * repeats)[:length] + self.suffix


def word_text(failure: Failure, symbols: Sequence[str]) -> str:
    """The word of a failure by the names of its symbols, shortened where it is long."""

    def named(word: Sequence[int]) -> str:
        if SYMBOLS_SHOWN < len(word) <= LONGEST_IN_RUNS and len(runs := _runs(word)) <= RUNS_SHOWN:
            return " ".join(_run_text([symbols[each] for each in run], n) for run, n in runs)
        shown = " ".join(symbols[symbol] for symbol in word[:SYMBOLS_SHOWN])
        return shown if len(word) <= SYMBOLS_SHOWN else f"{shown} ... ({len(word):,} symbols)"

    turns = failure.position - len(failure.prefix) - len(failure.suffix)
    if turns <= len(failure.period):
        return named(failure.word)
    again = named(failure.period) + (
        f" for {turns:,} symbols" if failure.suffix else " again and again"
    )
    parts = (named(failure.prefix), again, named(failure.suffix))
    return ", then ".join(filter(None, parts))


def _runs(word: Sequence[int]) -> list[tuple[Sequence[int], int]]:
    """A word as short words and how often each is repeated, at each place as far as possible."""
    runs: list[tuple[Sequence[int], int]] = []
    place = 0
    while place < len(word):
        best, times = 1, 1
        for size in range(1, LONGEST_RUN + 1):
            end = place + size
            while end < len(word) and word[end] == word[end - size]:
                end += 1
            if (end - place) // size > 2 and (end - place) // size * size > best * times:
                best, times = size, (end - place) // size
        runs.append((word[place : place + best], times))
        place += best * times
    return runs


def _run_text(names: Sequence[str], times: int) -> str:
    """`0`, `0^12` or `(0 1)^12`."""
    text = " ".join(names)
    return text if times == 1 else f"{text if len(names) == 1 else f'({text})'}^{times:,}"


def failure_text(failure: Failure, symbols: Sequence[str], labels: Sequence[str]) -> str:
    """`symbol 1,702 of 0 3 2 again and again: 4, and right is 1`."""
    given = "no answer" if failure.answer is None else labels[failure.answer]
    return (
        f"symbol {failure.position:,} of {word_text(failure, symbols)}: the answer is {given}, "
        f"and {labels[failure.label]} is right"
    )


def number_of(count: int, noun: str) -> str:
    """`1 symbol`, `2,000 symbols`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
