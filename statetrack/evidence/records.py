"""What a kind of evidence is, the words that fail, and the plain values in which it is said.

Evidence is typed values that a run's folder keeps as JSON and that are read again without torch.
Positions count from 1: the position of the first symbol is 1.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, Self

from statetrack.registry import Registry, modules_in

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from statetrack.evidence.subject import Subject

Verdict = Literal["all lengths", "to length", "not proven"]
"""What is proven of all words: of every length, of those up to a length, or nothing."""

SYMBOLS_SHOWN = 24
"""The most symbols of a word that are shown on one line."""


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


class SearchBudget:
    """A number of seconds from now on, and a function that is told what is being done.

    A search looks at `spent` between two pieces of work, none of which takes long, and returns
    what it has found so far; its result says that the search is not complete. Where there is a
    function `stop`, no time is left once it returns True.
    """

    def __init__(
        self,
        seconds: float,
        report: Callable[[str], None] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> None:
        self.seconds = seconds
        self._report = report
        self._stop = stop
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """The seconds that are left, at least 0."""
        if self._stop is not None and self._stop():
            return 0.0
        return max(0.0, self._end - time.monotonic())

    @property
    def spent(self) -> bool:
        """Whether no time is left."""
        return self.left == 0.0

    def say(self, what: str) -> None:
        """Report what is being done, in a few words."""
        if self._report is not None:
            self._report(what)

    def part(self, share: float) -> SearchBudget:
        """A budget of a share of the seconds that are left, with the same reports."""
        return SearchBudget(self.left * share, self._report, self._stop)


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """One kind of evidence about one trained model; `kind` is its name in evidence.jsonl.

    It is `complete` unless the time of the search was spent before its end. A kind is one file of
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

    @classmethod
    def search(cls, subject: Subject, *, budget: SearchBudget, seed: int = 0, **given: Any) -> Self:
        """What is found of a model within a budget; `given` has further arguments of the search.

        Raises `SettingsError` for a model or a task that does not allow it.
        """
        module, _, name = cls.found_by.partition(":")
        function: Callable[..., Self] = getattr(importlib.import_module(module), name)
        return function(subject, budget=budget, seed=seed, **given)

    @property
    def failures(self) -> tuple[Failure, ...]:
        """The words in it that are answered wrongly."""
        values = (getattr(self, each.name) for each in fields(self))
        return tuple(value for value in values if isinstance(value, Failure))

    @property
    def proves(self) -> float:
        """The length up to which it proves every word right: infinity for all, 0 for none."""
        return 0

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
