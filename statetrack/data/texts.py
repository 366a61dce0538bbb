"""Words as texts that a language model reads, and labels as what it is to write next.

Two forms. `tokens`: the names of the symbols in a prompt. `repl`: the session of a Python
interpreter that does what the symbols do, in which some states are *revealed* by `print`, after
Siems, Grazzi, Kalinin, Ballani & Rahmani (2026), arXiv:2602.14814; the layout of the session is our
own. A session runs in Python as it stands and prints what it shows.

Letters: T time, V symbols, S states, C labels.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal, Protocol

import numpy as np

from statetrack.errors import SettingsError, setting
from statetrack.sources import (
    Arrangements,
    Automaton,
    Booleans,
    RandomBits,
    Rearranged,
    Replaced,
    Source,
    arrangements_of,
)

TextForm = Literal["tokens", "repl"]

PLACE_OF_WORD: Final = "{word}"
"""Stands in a prompt for the names of the symbols."""

DEFAULT_PROMPT: Final = "{word} =>"

MOST_PROMPT: Final = 10_000
"""The most characters of a prompt."""

MOST_TRANSITIONS_SHOWN: Final = 2_000
"""The most transitions that are written out as a dictionary in front of a session."""


@dataclass(frozen=True)
class TextRequest:
    """How words are written: the form, the prompt of `tokens`, and the share of reveals in `repl`.

    Raises `SettingsError` for a prompt without `{word}`, and for an option of the other form.
    """

    form: TextForm = "tokens"
    prompt: str = DEFAULT_PROMPT
    reveal: float = 0.0

    def __post_init__(self) -> None:
        if self.prompt.count(PLACE_OF_WORD) != 1 or len(self.prompt) > MOST_PROMPT:
            raise SettingsError(
                f"{setting('prompt')}: must hold {PLACE_OF_WORD} once, where the word stands, and "
                f"have at most {MOST_PROMPT:,} characters (given: {self.prompt[:40]!r})"
            )
        if self.form == "repl" and self.prompt != DEFAULT_PROMPT:
            raise SettingsError(
                f"{setting('prompt')} is for {setting('text', 'tokens')}: "
                "a session has no prompt but Python's"
            )
        if self.form == "tokens" and self.reveal:
            raise SettingsError(
                f"{setting('reveal', self.reveal)} is for {setting('text', 'repl')}: "
                "only a session shows states on the way"
            )


AS_TOKENS: Final = TextRequest()


class Texts(Protocol):
    """How the words of one source are written.

    A whole prompt is `definitions`, then answered examples, then `text_of` a word, `delimiter` and
    one of the `choices`; `separator` stands between examples.
    """

    choices: tuple[str, ...]  # [C]
    delimiter: str
    separator: str

    @property
    def definitions(self) -> str:
        """What stands once in front of all words."""
        ...

    @property
    def bytes_per_symbol(self) -> float:
        """About how long a text is for each symbol."""
        ...

    def text_of(self, symbols: Sequence[int], labels: Sequence[int], shown: Sequence[bool]) -> str:
        """The text [T] up to the question; labels are revealed where `shown` says so."""
        ...


class TokenTexts:
    """The symbols' names with spaces between them, inside a prompt."""

    definitions = ""
    delimiter = " "
    separator = "\n"

    def __init__(self, source: Source, prompt: str) -> None:
        self._names, self._prompt = source.symbols, prompt
        self.choices = source.labels

    @property
    def bytes_per_symbol(self) -> float:
        """The mean length of a name, and a space."""
        return 1.0 + sum(map(len, self._names)) / len(self._names)

    def text_of(self, symbols: Sequence[int], labels: Sequence[int], shown: Sequence[bool]) -> str:
        """The prompt with the word in it; nothing is revealed."""
        return self._prompt.replace(PLACE_OF_WORD, " ".join(self._names[x] for x in symbols))


class _Session:
    """A session: a first statement, one for each symbol, and a `print` that asks."""

    delimiter = ""
    separator = "\n"
    choices: tuple[str, ...]

    def __init__(self, first: str, statements: Sequence[str], question: str) -> None:
        self._first, self._statements, self._question = first, tuple(statements), question

    @property
    def bytes_per_symbol(self) -> float:
        """The mean length of a line; a reveal is counted with each."""
        lines = sum(len(line) + 5 for line in self._statements) / len(self._statements)
        return lines + len(self._question) + 5 + len(self.choices[0])

    def text_of(self, symbols: Sequence[int], labels: Sequence[int], shown: Sequence[bool]) -> str:
        """The session, up to the line behind the last question."""
        lines = [self._first]
        last = len(symbols) - 1
        for time, symbol in enumerate(symbols):
            lines.append(f">>> {self._statements[symbol]}")
            if shown[time] and time < last:
                lines += [f">>> {self._question}", self.choices[labels[time]]]
        return "\n".join([*lines, f">>> {self._question}", ""])


class VariableSession(_Session):
    """Permutations of the values of variables: `a, b = b, a`. The answer is all values in order."""

    definitions = ""

    def __init__(self, arrangements: Arrangements) -> None:
        names = string.ascii_lowercase[: len(arrangements.first)]
        everything = ", ".join(names)

        def statement(symbol: Rearranged | Replaced) -> str:
            if isinstance(symbol, Replaced):
                return f"{everything} = {_values(symbol.points, ', ')}"
            moved = [place for place, source in enumerate(symbol.places) if place != source]
            if not moved:
                return "pass"
            written = ", ".join(names[place] for place in moved)
            return f"{written} = {', '.join(names[symbol.places[place]] for place in moved)}"

        super().__init__(
            f">>> {everything} = {_values(arrangements.first, ', ')}",
            [statement(symbol) for symbol in arrangements.symbols],
            f"print({everything})",
        )
        self.choices = tuple(_values(label, " ") for label in arrangements.labels)


class DictionarySession(_Session):
    """Any automaton: `state = step[state]['a']`, with the transitions as a dictionary before."""

    def __init__(self, automaton: Automaton) -> None:
        self._automaton = automaton
        first = self._states[automaton.start]
        super().__init__(
            f">>> state = {first!r}",
            [f"state = step[state][{name!r}]" for name in automaton.symbols],
            "print(state)" if self._are_labels else "print(label[state])",
        )
        self.choices = automaton.labels

    @cached_property
    def _are_labels(self) -> bool:
        """Whether each state has a label of its own, and is then called by it."""
        outputs = self._automaton.output.tolist()
        return len(set(outputs)) == len(outputs)

    @cached_property
    def _states(self) -> tuple[str, ...]:
        automaton = self._automaton
        if not self._are_labels:
            return automaton.states
        return tuple(automaton.labels[label] for label in automaton.output.tolist())

    @property
    def definitions(self) -> str:
        """The dictionaries `step` and, where states are not called by their labels, `label`."""
        automaton, states = self._automaton, self._states
        step = {
            state: {
                name: states[target]
                for name, target in zip(automaton.symbols, targets, strict=True)
            }
            for state, targets in zip(states, automaton.delta.tolist(), strict=True)
        }
        lines = [f">>> step = {step!r}"]
        if not self._are_labels:
            labels = (automaton.labels[label] for label in automaton.output.tolist())
            lines.append(f">>> label = {dict(zip(states, labels, strict=True))!r}")
        return "\n".join([*lines, ""])


def texts_of(source: Source, request: TextRequest) -> Texts:
    """How the words of a source are written.

    Raises `SettingsError` where a session is asked for, and the source has no automaton or one of
    more than `MOST_TRANSITIONS_SHOWN` transitions that is no group of permutations.
    """
    if request.form == "tokens":
        return TokenTexts(source, request.prompt)
    automaton = source.automaton
    if automaton is None:
        raise SettingsError(
            f"{setting('text', 'repl')}: the words come from {source.noun} and have no automaton "
            f"for a program to follow: choose {setting('text', 'tokens')}"
        )
    arrangements = arrangements_of(automaton)
    if arrangements is not None:
        return VariableSession(arrangements)
    if automaton.delta.size > MOST_TRANSITIONS_SHOWN:
        raise SettingsError(
            f"{setting('text', 'repl')}: {automaton.delta.size:,} transitions are too many to "
            f"write out in front of a session, the most is {MOST_TRANSITIONS_SHOWN:,}: choose "
            f"{setting('text', 'tokens')}"
        )
    return DictionarySession(automaton)


class Reveals:
    """Which labels of one split are revealed: each that is asked for, with one chance.

    The same for a seed, whatever else is written; the words of a split are taken in order.
    """

    def __init__(self, share: float, seed: int, split: int) -> None:
        self._share = share
        self._bits = RandomBits(seed, "reveal", split)
        self._next = 0

    def next(self, labels_to_ask: Booleans) -> Booleans:
        """Which labels `[n, T]` are revealed of the next n words."""
        if not self._share:
            return np.zeros_like(labels_to_ask)
        bits = self._bits.read(self._next, labels_to_ask.size).reshape(labels_to_ask.shape)
        self._next += labels_to_ask.size
        revealed: Booleans = labels_to_ask & (bits < self._share * 2**32)
        return revealed


def _values(points: Sequence[int], between: str) -> str:
    return between.join(str(point + 1) for point in points)


def last_asked(scored: Booleans) -> list[int | None]:
    """The position of the last label of every word `[n, T]` that is asked for, or None."""
    places = scored.shape[1] - 1 - scored[:, ::-1].argmax(axis=1)
    asked: list[bool] = np.any(scored, axis=1).tolist()
    return [place if some else None for place, some in zip(places.tolist(), asked, strict=True)]
