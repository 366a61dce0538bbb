"""Tasks: an automaton or a sampler with its meaning, read from a YAML file or a name.

A task's name is one of

    s5                              a file of the `tasks` folder
    modular-addition:m=25           the same, with arguments of its automaton replaced
    product(parity,cyclic:n=3)      tasks side by side, over all tuples of their symbols
    path/to/mine.yaml               a file of one's own; takes arguments in the same way
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import yaml
from pydantic import model_validator

from statetrack.errors import StatetrackError, TaskError, nearest_or_known
from statetrack.registry import Load, Registry, files_in
from statetrack.settings import Settings, build, option, read_yaml
from statetrack.sources import (
    Automaton,
    LengthDistribution,
    Source,
    Supervision,
    arguments_of,
    build_source,
)

NOT_SCORED = "-"
"""Stands in an example for a label that is not asked for."""


class TaskSpec(Settings):
    """What a task file says."""

    title: str = option(..., "One line that says what is to be computed.")
    version: int = option(..., "Raised by one whenever the task's data changes.", min=1)
    reference: str = option(..., "Where the task comes from: authors, year, arXiv id.")
    automaton: dict[str, Any] = option(
        ..., "The automaton, or the sampler: its kind and the kind's arguments."
    )
    examples: dict[str, str] = option({}, "Words and the labels after each of their symbols.")
    description: str = option("", "What a reader should know beyond the title.")
    train_length: tuple[int, int] = option((2, 10), "Shortest and longest word to train on.")
    test_lengths: tuple[int, ...] = option((500,), "Lengths to test on.")
    supervision: Literal["every", "last"] = option(
        "every", "Whether a label is given after every symbol, or after the last one only."
    )
    name: str = option("", "What the task is called; left out, it is its file that names it.")

    @model_validator(mode="after")
    def _lengths_make_sense(self) -> Self:
        shortest, longest = self.train_length
        if not 1 <= shortest <= longest:
            raise ValueError(
                f"'train_length' must be the shortest and the longest length, "
                f"in this order and from 1 (given: {list(self.train_length)})"
            )
        if not self.test_lengths or min(self.test_lengths) < 1:
            raise ValueError(
                f"'test_lengths' must be lengths from 1 (given: {list(self.test_lengths)})"
            )
        return self


@dataclass(frozen=True, eq=False)
class Task:
    """An automaton, or a sampler, with its name and meaning.

    `name` is the text, written in one way, by which it was first loaded; a task read back from a
    document keeps the name that it had there.
    """

    name: str
    spec: TaskSpec
    source: Source

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

    def document(self) -> str:
        """The task as the text of a task file that is complete in itself."""
        content = self.spec.model_dump(mode="json") | {"name": self.name}
        return yaml.dump(content, Dumper=_QuotingDumper, sort_keys=False, allow_unicode=True)


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
        train_length: str | int = "task",
        supervision: Literal["task", "every", "last"] = "task",
        curriculum: float = 0.0,
    ) -> WordSpec:
        """What was asked for, and the task's own for whatever is `task`.

        `train_length` is one length or a text such as `2-10`; `curriculum` is the share of
        training over which the longest length grows. Raises `SettingsError` for lengths that
        cannot be read or are out of bounds.
        """
        if train_length == "task":
            lengths = LengthDistribution(*task.spec.train_length, curriculum)
        else:
            lengths = LengthDistribution.parse(str(train_length), curriculum)
        return cls(lengths, task.spec.supervision if supervision == "task" else supervision)


def folder_name(text: str) -> str:
    """A task's name, or another text, as the name of a folder: only letters, digits, `-=.`."""
    plain = "".join(letter if letter.isalnum() or letter in "-=." else "-" for letter in text)
    return plain.strip("-")


def load_task(text: str) -> Task:
    """The task of a name (see the module's own text for what names there are).

    Raises `UnknownNameError` for a name that no file of the `tasks` folder has, and `TaskError`
    for a name that cannot be read, an argument that cannot be, and a file that holds no task.
    """
    text = text.strip()
    if text.startswith("product(") or text.startswith("product ("):
        return _product_of([load_task(part) for part in _factors(text)])
    name, values = _name_and_arguments(text)
    task = _task_file(Path(name)) if _is_path(name) else TASKS[name]
    return _with_arguments(task, name, values) if values else task


def task_names() -> tuple[str, ...]:
    """The names of the tasks that come along, whether or not their files can be read."""
    return tuple(TASKS)


def list_tasks() -> Iterator[tuple[str, Task | StatetrackError]]:
    """Every task that comes along, or the reason why its file holds none."""
    for name in TASKS:
        try:
            yield name, TASKS[name]
        except StatetrackError as error:
            yield name, error


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


def tasks_folder() -> Path:
    """Where the tasks that come along lie: inside an installed package, or beside a checkout's."""
    package = Path(__file__).parent
    installed = package / "tasks"
    return installed if installed.is_dir() else package.parent / "tasks"


def _find_tasks() -> Mapping[str, Load]:
    return files_in(tasks_folder(), _shipped_task)


TASKS: Registry[Task] = Registry("task", _find_tasks, listing="statetrack list tasks")


def _shipped_task(path: Path) -> Task:
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", path.stem):
        raise TaskError(
            f"{path}: a task's file is named in lower case with hyphens, such as `s5-swaps.yaml`"
        )
    task = _task_file(path)
    return Task(path.stem, task.spec, task.source)


def _task_file(path: Path) -> Task:
    spec = build(TaskSpec, read_yaml(path, TaskError), str(path), TaskError)
    return _task(spec.name or path.as_posix(), spec, str(path))


def _task(name: str, spec: TaskSpec, where: str) -> Task:
    """Build the automaton or sampler and hold it against the examples."""
    task = Task(name, spec, build_source(spec.automaton, f"{where}: automaton"))
    for word, labels in spec.examples.items():
        _check_example(task, word, labels, f"{where}: examples: '{word}'")
    return task


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


def _place(name: str, names: tuple[str, ...], what: str, where: str) -> int:
    if name not in names:
        raise TaskError(f"{where}: there is no {what} '{name}'.{nearest_or_known(name, names)}")
    return names.index(name)


def _with_arguments(task: Task, base: str, values: Mapping[str, Any]) -> Task:
    """The task named `base` with arguments replaced; its examples no longer apply."""
    current = arguments_that_can_be_set(task)
    for key in values:
        if key not in current:
            hint = nearest_or_known(key, current) if current else " It takes none."
            raise TaskError(f"task '{base}' has no argument '{key}'.{hint}")
    changed = {key: values[key] for key in current if key in values and values[key] != current[key]}
    if not changed:
        return task
    name = f"{base}:" + ",".join(f"{key}={_flow(value)}" for key, value in changed.items())
    spec = task.spec.model_copy(
        update={"automaton": task.spec.automaton | changed, "examples": {}, "name": ""}
    )
    return _task(name, spec, f"task '{name}'")


def _product_of(tasks: Sequence[Task]) -> Task:
    """Tasks side by side; trained and tested on the lengths of all of them."""
    name = f"product({','.join(task.name for task in tasks)})"
    specs = [task.spec for task in tasks]
    last = any(spec.supervision == "last" for spec in specs)
    spec = TaskSpec(
        title="Side by side: " + "; ".join(spec.title for spec in specs),
        version=1 + sum(spec.version - 1 for spec in specs),
        reference="; ".join(dict.fromkeys(spec.reference for spec in specs)),
        automaton={"kind": "direct-product", "factors": [spec.automaton for spec in specs]},
        train_length=(
            max(spec.train_length[0] for spec in specs),
            max(spec.train_length[1] for spec in specs),
        ),
        test_lengths=tuple(sorted({length for spec in specs for length in spec.test_lengths})),
        supervision="last" if last else "every",
    )
    return _task(name, spec, f"task '{name}'")


def _is_path(name: str) -> bool:
    return name.endswith(".yaml")


def _factors(text: str) -> list[str]:
    """The task names inside `product(...)`; `key=value` belongs to the name before it."""
    if not text.endswith(")"):
        raise TaskError(f"task '{text}': the bracket after 'product' is not closed at the end")
    inside = text[text.index("(") + 1 : -1]
    factors: list[str] = []
    for part in _split(inside, text):
        if factors and re.match(r"\s*\w+\s*=", part):
            factors[-1] += f",{part}"
        else:
            factors.append(part)
    if len(factors) < 2 or not all(factor.strip() for factor in factors):
        raise TaskError(f"task '{text}': a product takes two tasks or more, separated by commas")
    return factors


def _name_and_arguments(text: str) -> tuple[str, dict[str, Any]]:
    matched = re.fullmatch(r"(?P<name>.*?\.yaml|[^:]*)(?P<colon>:(?P<arguments>.*))?", text)
    name = matched["name"].strip() if matched else ""
    if matched is None or not name:
        raise TaskError(f"task '{text}': write NAME, NAME:key=value,key=value or FILE.yaml")
    return name, _arguments(matched["arguments"], text) if matched["colon"] else {}


def _arguments(text: str, task: str) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for part in _split(text, task):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not (key and equals and value):
            raise TaskError(f"task '{task}': '{part}' is not key=value")
        if key in values:
            raise TaskError(f"task '{task}': '{key}' is given twice")
        try:
            values[key] = yaml.safe_load(value)
        except yaml.YAMLError:
            raise TaskError(f"task '{task}': the value '{value}' cannot be read") from None
    return values


def _split(text: str, task: str) -> list[str]:
    """Split at commas that stand outside brackets and quotes."""
    parts, open_brackets, quote = [""], [], ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in "([{":
            open_brackets.append({"(": ")", "[": "]", "{": "}"}[letter])
        elif letter in ")]}" and (not open_brackets or open_brackets.pop() != letter):
            raise TaskError(f"task '{task}': '{letter}' closes no bracket")
        if letter == "," and not open_brackets and not quote:
            parts.append("")
        else:
            parts[-1] += letter
    if open_brackets or quote:
        raise TaskError(f"task '{task}': '{quote or open_brackets[-1]}' is missing")
    return parts


def _flow(value: Any) -> str:
    """A value as a task's name writes it: YAML on one line."""
    plain = isinstance(value, str) and re.fullmatch(r"[A-Za-z][\w-]*", value)
    if plain and yaml.safe_load(value) == value:
        return str(value)
    return json.dumps(value, separators=(",", ":"))


class _QuotingDumper(yaml.SafeDumper):
    """Writes text so that it is read as text again: digits and such stand in quotes."""


def _quoted(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    safe = re.fullmatch(r"[A-Za-z][A-Za-z_ -]*", text) and yaml.safe_load(text) == text
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if safe else '"')


_QuotingDumper.add_representer(str, _quoted)
