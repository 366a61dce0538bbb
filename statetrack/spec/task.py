"""A task: a source of words and labels with its meaning, and the file that says both."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from pydantic import field_validator, model_validator

from statetrack import yaml_text
from statetrack.errors import TaskError, nearest_or_known
from statetrack.settings import (
    LineOrEmpty,
    Lines,
    Settings,
    build,
    option,
    require_seed,
    require_whole,
)
from statetrack.sources import (
    LONGEST_ALLOWED,
    MOST_LENGTHS,
    Automaton,
    Batch,
    LengthDistribution,
    Source,
    Supervision,
    WordStream,
    arguments_of,
    build_source,
    written_out,
)
from statetrack.spec.lengths import Lengths
from statetrack.spec.words import OWN, automaton_drawing, check_words
from statetrack.text import LONGEST_NAME, flaw_in, flaw_in_lines, shortened

NOT_SCORED = "-"
"""What an example has for a label that is not asked for."""


class TaskSpec(Settings):
    """What a task file says."""

    title: LineOrEmpty = option(..., "One line that says what is to be computed.")
    version: int = option(..., "Raised by one whenever the task's data changes.", min=1)
    reference: LineOrEmpty = option(..., "Where the task comes from: authors, year, arXiv id.")
    automaton: dict[str, Any] = option(
        ..., "The automaton, or the sampler: its kind and the kind's arguments."
    )
    examples: dict[Lines, Lines] = option({}, "Words and the labels after each of their symbols.")
    description: Lines = option("", "What a reader should know beyond the title.")
    train_length: tuple[int, int] = option((2, 10), "Shortest and longest word to train on.")
    test_lengths: Lengths = option((500,), "Lengths to test on.")
    supervision: Literal["every", "last"] = option(
        "every", "Whether a label is given after every symbol, or after the last one only."
    )
    name: LineOrEmpty = option("", "What the task is called; left out, its file names it.")

    @field_validator("automaton")
    @classmethod
    def _its_text_is_printable(cls, automaton: dict[str, Any]) -> dict[str, Any]:
        for text in _texts(automaton):
            if flaw := flaw_in_lines(text):
                raise ValueError(f"the text '{shortened(text)}' {flaw}")
        return automaton

    @model_validator(mode="after")
    def _lengths_make_sense(self) -> Self:
        shortest, longest = self.train_length
        if not 1 <= shortest <= longest <= LONGEST_ALLOWED:
            raise ValueError(
                f"'train_length' must be the shortest and the longest length, "
                f"in this order and from 1 to {LONGEST_ALLOWED} (given: {list(self.train_length)})"
            )
        lengths = self.test_lengths
        if not lengths or min(lengths) < 1 or max(lengths) > LONGEST_ALLOWED:
            raise ValueError(
                f"'test_lengths' must be lengths from 1 to {LONGEST_ALLOWED} "
                f"(given: {list(lengths[:5])})"
            )
        if len(lengths) > MOST_LENGTHS:
            raise ValueError(
                f"'test_lengths' are {len(lengths)} lengths, the most is {MOST_LENGTHS}"
            )
        return self


@dataclass(frozen=True, eq=False)
class Task:
    """A source of words and labels, with its name and meaning.

    `name` is the text, written in one way, by which it was first loaded; a task read back from a
    document keeps the name that it had there. `words` says how `source` draws words
    (`statetrack.spec.words`); it is `task` where the task's own source does.
    """

    name: str
    spec: TaskSpec
    source: Source
    words: str = OWN
    own_source: Source | None = None
    """The task's own source, where `source` draws other words."""

    @classmethod
    def from_spec(cls, name: str, spec: TaskSpec, where: str) -> Task:
        """The task that a specification describes, once its examples were checked.

        Raises `TaskError`, opened by `where`, for a source that cannot be built and for an
        example whose labels are not those that the source reads.
        """
        if flaw := flaw_in(name, most=LONGEST_NAME):
            raise TaskError(f"{where}: the task's name {flaw}; `name` in a task file gives one")
        task = cls(name, spec, build_source(spec.automaton, f"{where}: automaton"))
        for word, labels in spec.examples.items():
            _check_example(task, word, labels, f"{where}: examples: '{word}'")
        return task

    @classmethod
    def from_automaton(
        cls,
        automaton: Automaton,
        *,
        name: str = "automaton",
        title: str = "An automaton made in Python",
        train_length: tuple[int, int] = (2, 10),
        test_lengths: Sequence[int] = (500,),
        supervision: Supervision = "every",
    ) -> Task:
        """The task of tracking an automaton: its `document` holds the automaton written out.

        `train_length` is the shortest and the longest length to train on. Raises `TaskError` for
        lengths or a supervision that cannot be used.
        """
        values = {
            "title": title,
            "version": 1,
            "reference": "own",
            "automaton": {"kind": "transitions", **written_out(automaton)},
            "train_length": tuple(train_length),
            "test_lengths": tuple(test_lengths),
            "supervision": supervision,
            "name": name,
        }
        return cls(name, build(TaskSpec, values, f"task '{name}'", TaskError), automaton)

    def with_words(self, words: str, copy: Path | str | None = None) -> Task:
        """The task whose words are drawn in another way: `uniform`, `group`, `group:S3`, `task`.

        Symbols, labels, and the label of any word stay. `statetrack.spec.words` lists the ways.
        `copy` is read in place of the file that `words` names, if it names one.
        Raises `TaskError` for a text that says none of them, for a machine without such words, and
        for other words than its own of a task without an automaton.
        """
        words = check_words(words)
        if words == self.words:
            return self
        own = self.own_source or self.source
        if words == OWN:
            return replace(self, source=own, words=OWN, own_source=None)
        automaton = replace(self, source=own).automaton
        try:
            source = automaton_drawing(automaton, words, None if copy is None else Path(copy))
        except TaskError as problem:
            raise TaskError(f"task '{self.name}', words '{words}': {problem}") from None
        return replace(self, source=source, words=words, own_source=own)

    @property
    def automaton(self) -> Automaton:
        """The automaton of a task whose source is one; `TaskError` for any other source."""
        automaton = self.source.automaton
        if automaton is None:
            raise TaskError(
                f"task '{self.name}' comes from {self.source.noun} and has no automaton: no "
                "transitions, no algebra, no predictions; its words can be written, trained on "
                "and tested on"
            )
        return automaton

    @property
    def has_automaton(self) -> bool:
        """Whether the source of the words is an automaton."""
        return self.source.automaton is not None

    def parse_word(self, text: str) -> list[int]:
        """The symbols of a word written as names with spaces between them.

        Raises `TaskError` for a name that is no symbol of the task.
        """
        return [_place(name, self.source.symbols, "symbol", self.name) for name in text.split()]

    def format_word(self, symbols: Sequence[int]) -> str:
        """A word as names with spaces between them: what `parse_word` reads."""
        return " ".join(self.source.symbols[symbol] for symbol in symbols)

    def format_labels(self, symbols: Sequence[int]) -> str:
        """The labels after each symbol of a word, as an example shows them."""
        labels, scored = self.source.read(np.array(symbols, np.int64))
        return " ".join(
            self.source.labels[label] if asked else NOT_SCORED
            for label, asked in zip(labels, scored, strict=True)
        )

    def sample(
        self,
        num_words: int,
        *,
        length: int | str | None = None,
        seed: int = 0,
        supervision: Supervision | None = None,
    ) -> Batch:
        """Fresh words `[num_words, T]` with their labels: the first that training draws.

        `length` is one length for all, a text such as `2-10` for lengths drawn uniformly, or None
        for the task's own; `supervision` likewise. Words of different seeds are independent.

        Raises `SettingsError` for a length that cannot be read, is out of bounds or is too long
        for the source, where there is no word to draw, and for what is no seed.
        """
        require_whole("num_words", num_words, "sample", least=1, most=10**9)
        require_seed(seed, "sample")
        words = WordSpec.of(self, train_length=length, supervision=supervision)
        stream = WordStream(self.source, words.lengths, words.supervision, seed, "train")
        return stream.block(0, 1, num_words)[0]

    def document(self) -> str:
        """The task as the text of a task file that is complete in itself."""
        content = self.spec.model_dump(mode="json") | {"name": self.name}
        return yaml_text.dump(content, _QuotingDumper)


@dataclass(frozen=True)
class WordSpec:
    """Which words a task is trained on: their lengths, and where a label is given."""

    lengths: LengthDistribution
    supervision: Supervision

    @classmethod
    def of(
        cls,
        task: Task,
        *,
        train_length: str | int | None = "task",
        supervision: Literal["task", "every", "last"] | None = "task",
        curriculum: float = 0.0,
    ) -> WordSpec:
        """What was asked for, and the task's own for whatever is `task` or None.

        `train_length` is one length or a text such as `2-10`; `curriculum` is the share of
        training over which the longest length grows. Raises `SettingsError` for lengths that
        cannot be read or are out of bounds.
        """
        if train_length is None or train_length == "task":
            lengths = LengthDistribution(*task.spec.train_length, curriculum)
        else:
            lengths = LengthDistribution.parse(str(train_length), curriculum)
        if supervision is None or supervision == "task":
            supervision = task.spec.supervision
        return cls(lengths, supervision)


def arguments_that_can_be_set(task: Task) -> dict[str, Any]:
    """The arguments that the task's name can replace, with the values they have."""
    given = task.spec.automaton
    return {
        argument.name: given.get(argument.name, argument.default)
        for argument in arguments_of(given["kind"])
    }


def golden_hash(task: Task) -> str:
    """A fingerprint of all that the task's words and labels depend on: SHA-256, in hexadecimal."""
    return task.source.fingerprint()


def _check_example(task: Task, word: str, labels: str, where: str) -> None:
    symbols = [_place(name, task.source.symbols, "symbol", where) for name in word.split()]
    if not symbols:
        raise TaskError(f"{where}: the word has no symbols")
    for label in labels.split():
        if label != NOT_SCORED:
            _place(label, task.source.labels, "label", where)
    right = task.format_labels(symbols)
    if labels.split() != right.split():
        raise TaskError(f"{where}: the labels are '{right}', not '{labels}'")


def _texts(content: Any) -> Iterator[str]:
    """Every text in plain values, those of keys included."""
    waiting = [content]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            waiting += [*value, *value.values()]
        elif isinstance(value, list | tuple):
            waiting += value


def _place(name: str, names: tuple[str, ...], what: str, where: str) -> int:
    if name not in names:
        raise TaskError(f"{where}: there is no {what} '{name}'.{nearest_or_known(name, names)}")
    return names.index(name)


class _QuotingDumper(yaml_text.Dumper):
    """Writes text so that it is read as text again: digits and the like in quotes."""


def _quoted(dumper: yaml_text.Dumper, text: str) -> Any:
    words = re.fullmatch(r"[A-Za-z](?:[A-Za-z_ -]*[A-Za-z_-])?", text)
    style = None if words and yaml_text.is_plain(text) else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_QuotingDumper.add_representer(str, _quoted)
