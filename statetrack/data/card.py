"""The data card of a dataset: for programs `card.json`, and for people the README of its folder.

It is held against what a card must be before anything in a dataset is read.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

import numpy as np
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from statetrack import __version__
from statetrack.algebra import merging_in
from statetrack.data.formats import FORMATS, FormatName
from statetrack.data.formats.filling import (
    MOST_BYTES,
    Declared,
    Format,
    file_size,
    flaw,
    one_line,
    reason,
)
from statetrack.data.parts import Part, words_at_once
from statetrack.data.splits import Splits
from statetrack.errors import DatasetError, SettingsError
from statetrack.scoring import rounded_down
from statetrack.settings import Line, LineOrEmpty, Lines, Name
from statetrack.sources import LONGEST_ALLOWED, LengthDistribution, Supervision
from statetrack.spec import Task
from statetrack.text import markdown, markdown_block, markdown_code, markdown_table

CARD_VERSION: Final = 1

MOST_CARD_BYTES: Final = 2**25
"""The largest `card.json`."""

_MOST_LABELS_SHOWN = 12

_Count = Annotated[int, Field(ge=0, lt=2**53)]
_Share = Annotated[float, Field(ge=0, le=1)]
_SplitName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_-]{0,63}$")]
"""The name of a split, which names its files: no path, and nothing that a shell would read."""


class _Schema(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)


class ConstantAnswer(_Schema):
    """The most frequent label of a split."""

    label: Name
    share: _Share


class SplitFacts(_Schema):
    """What a card says of a split."""

    words: Annotated[_Count, Field(ge=1)]
    shortest: Annotated[int, Field(ge=1)]
    longest: Annotated[int, Field(le=LONGEST_ALLOWED)]
    symbols: _Count
    labels_asked: _Count
    label_balance: dict[str, _Share]
    constant_answer: ConstantAnswer

    @model_validator(mode="after")
    def _fit_each_other(self) -> Self:
        least, most = self.words * self.shortest, self.words * self.longest
        if not self.shortest <= self.longest or not least <= self.symbols <= most:
            raise ValueError("words, lengths and symbols do not fit each other")
        if self.labels_asked > self.symbols:
            raise ValueError("there are more labels than symbols")
        return self


class MergingShare(_Schema):
    """The share of words whose last symbols, so many, merge all states; with its interval."""

    symbols: _Count
    share: _Share
    low: _Share
    high: _Share


class MergingFacts(_Schema):
    """What a card says of how soon words merge all states of the task's machine."""

    length: _Count
    exact: bool
    words: _Count | None
    horizon: _Count | None
    between: tuple[_Count | None, _Count | None]
    symbols_for: dict[Line, _Count | None]
    shares: tuple[MergingShare, ...]
    never: Line | None
    summary: Line


class Card(_Schema):
    """A data card; docs/file-formats.md says what its keys mean."""

    card_version: Literal[1]
    made_by: Line
    task: Name
    title: LineOrEmpty
    reference: LineOrEmpty
    version: int
    seed: int
    supervision: Supervision
    words: Line = "task"
    train_length: str
    distinct: bool
    format: FormatName
    command: LineOrEmpty
    symbols: Annotated[tuple[Name, ...], Field(min_length=1)]
    labels: Annotated[tuple[Name, ...], Field(min_length=1)]
    merging: MergingFacts | None = None
    splits: Annotated[dict[_SplitName, SplitFacts], Field(min_length=1)]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    document: Lines

    @field_validator("train_length")
    @classmethod
    def _is_a_length(cls, text: str) -> str:
        try:
            LengthDistribution.parse(text)
        except SettingsError as problem:
            raise ValueError(str(problem)) from None
        return text

    def declared(self) -> dict[str, Declared]:
        """What the readers hold each split against."""
        widest = LengthDistribution.parse(self.train_length).longest
        return {
            name: Declared(
                facts.words,
                facts.shortest,
                facts.longest,
                max(facts.longest, widest),
                facts.symbols,
                facts.labels_asked,
                len(self.symbols),
                len(self.labels),
            )
            for name, facts in self.splits.items()
        }


class _Version(BaseModel):
    """What is read first of a card: the version of its format."""

    card_version: Any = None
    made_by: Any = None


def read_card(folder: Path) -> Card:
    """The card of a dataset's folder.

    Raises `DatasetError` where there is none, it is not a card, or the words that it declares take
    more memory than `MOST_BYTES`.
    """
    path = folder / "card.json"
    try:
        missing = not path.exists()
    except (OSError, ValueError):
        missing = True
    if missing:
        raise DatasetError(
            f"{one_line(folder)}: is no dataset, for it has no card.json: give a folder that "
            "`statetrack gen` wrote"
        )
    size = file_size(path)
    if size > MOST_CARD_BYTES:
        raise DatasetError(f"{path}: has {size:,} bytes, a card at most {MOST_CARD_BYTES:,}")
    try:
        text = path.read_bytes()
    except OSError as problem:
        raise DatasetError(f"{path}: cannot be read: {reason(problem)}") from None
    card = parse_card(text, path)
    total = sum(declared.bytes_held for declared in card.declared().values())
    if total > MOST_BYTES:
        raise DatasetError(
            f"{folder}: its words take {total / 1e9:,.1f} GB of memory, more than the "
            f"{MOST_BYTES / 1e9:,.1f} GB that are read at most: read the files in its folder "
            "`data` piece by piece"
        )
    return card


def parse_card(text: bytes | str, path: Path) -> Card:
    """The card that a text is; `path` opens the message.

    Raises `DatasetError` where it is none.
    """
    try:
        found = _Version.model_validate_json(text)
        if found.card_version is None:
            raise DatasetError(f"{path}: is not the card of a dataset: 'card_version' is missing")
        if type(found.card_version) is not int or found.card_version != CARD_VERSION:
            raise DatasetError(
                f"{path}: was written by another version of statetrack ({one_line(found.made_by)})"
            )
        return Card.model_validate_json(text)
    except ValidationError as invalid:
        place, what = flaw(invalid)
        said = f"'{place}': {what}" if place else what
        raise DatasetError(f"{path}: is not the card of a dataset: {said}") from None


def card_of(
    task: Task,
    splits: Splits[Part],
    format: FormatName,
    command: str,
) -> dict[str, Any]:
    """The card as plain values, as `card.json` holds it; its keys are a public interface."""
    spec, source = task.spec, task.source
    facts = {name: _split_facts(part, source.labels) for name, part in splits.parts.items()}
    merging = merging_in(source, max(each["longest"] for each in facts.values()))
    return {
        "card_version": CARD_VERSION,
        "made_by": f"statetrack {__version__}",
        "task": task.name,
        "title": spec.title,
        "reference": spec.reference,
        "version": spec.version,
        "seed": splits.seed,
        "supervision": splits.supervision,
        "words": task.words,
        "train_length": str(splits.lengths),
        "distinct": splits.distinct,
        "format": format,
        "command": command,
        "symbols": list(source.symbols),
        "labels": list(source.labels),
        "merging": None if merging is None else merging.to_json(),
        "splits": facts,
        "sha256": fingerprint(splits.parts),
        "document": task.document(),
    }


def fingerprint(parts: Mapping[str, Part]) -> str:
    """SHA-256 over the words, labels and masks of all splits, in whichever format they lie.

    Words of a split count in order of length, as one format can keep no other.
    """
    digest = hashlib.sha256()
    for name in sorted(parts):
        part = parts[name]
        digest.update(name.encode())
        longest = max(int(batch.lengths.max()) for batch in part.by_length())
        for column in ("symbols", "labels", "scored"):
            for batch in part.by_length():
                array = getattr(batch, column)[:, :longest]
                for first in range(0, len(array), words_at_once(longest)):
                    words = array[first : first + words_at_once(longest)]
                    padded = np.zeros((len(words), longest), "<u2")
                    padded[:, : words.shape[1]] = words
                    digest.update(padded.tobytes())
        for batch in part.by_length():
            digest.update(batch.lengths.astype("<i8").tobytes())
    return digest.hexdigest()


def _split_facts(part: Part, labels: Sequence[str]) -> dict[str, Any]:
    counts = np.zeros(len(labels), np.int64)
    shortest, longest, num_symbols = part.width, 0, 0
    for batch in part.pieces():
        counts += np.bincount(batch.labels[batch.scored], minlength=len(labels))
        shortest = min(shortest, int(batch.lengths.min()))
        longest = max(longest, int(batch.lengths.max()))
        num_symbols += int(batch.lengths.sum())
    num_asked = int(counts.sum())
    shares = counts / max(1, num_asked)
    most_common = int(counts.argmax())
    return {
        "words": part.num_words,
        "shortest": shortest,
        "longest": longest,
        "symbols": num_symbols,
        "labels_asked": num_asked,
        "label_balance": {
            name: float(rounded_down(float(share), 6))
            for name, share in zip(labels, shares, strict=True)
        },
        "constant_answer": {
            "label": labels[most_common],
            "share": float(rounded_down(float(shares[most_common]), 6)),
        },
    }


def readme_of(card: Mapping[str, Any], folder: str) -> str:
    """The card as the README of the dataset's folder, which `datasets.load_dataset` reads too.

    `folder` is the path by which the code that it prints finds the dataset.
    """
    format = FORMATS[card["format"]]
    front: dict[str, Any] = {"pretty_name": card["title"]}
    if format.files:
        data_files = [
            {"split": name, "path": f"data/{format.files.format(split=name)}"}
            for name in card["splits"]
        ]
        front["configs"] = [{"config_name": "default", "data_files": data_files}]
    sections = [
        f"---\n{yaml.safe_dump(front, sort_keys=False, allow_unicode=True)}---\n",
        f"# {markdown(card['task'])}: {markdown(card['title'])}\n",
        _facts(card),
        "## Splits\n",
        _split_table(card["splits"]),
        _repetition(card),
        "## Columns\n",
        format.columns,
        "## Alphabet and labels\n",
        f"Symbols, numbered from 0: {_named(card['symbols'])}\n",
        f"Labels, numbered from 0: {_named(card['labels'])}\n",
        "## Label balance\n",
        "Shares of the labels that are asked for.\n",
        _balance_table(card),
        "## Using it\n",
        *_usage(card, folder, format),
        *([f"To make it again:\n\n{markdown_block(card['command'])}"] if card["command"] else []),
        "## The task, complete\n",
        markdown_block(card["document"].rstrip(), "yaml"),
    ]
    return "\n".join(sections)


def _usage(card: Mapping[str, Any], folder: str, format: Format) -> Iterator[str]:
    """Python that reads the first split, by each library that can."""
    split = next(iter(card["splits"]))
    path, data = json.dumps(folder), f"{folder}/data/{split}"
    yield (
        f"In Python, from where this folder is {markdown_code(folder)} (elsewhere, write its path "
        "there):\n"
    )
    programs = [
        f"import statetrack as st\n\nwords = st.read_dataset({path}).splits[{split!r}]\n"
        "print(words.symbols[0], words.labels[0], words.scored[0])"
    ]
    if format.files:
        programs.append(
            f"import datasets\n\nwords = datasets.load_dataset({path})\nprint(words[{split!r}][0])"
        )
    if format.example is not None:
        programs.append(format.example(data))
    yield from (markdown_block(program, "python") for program in programs)
    command = f"statetrack score ANSWERS --data {shlex.quote(folder)}"
    yield f"What a model answers to these words is scored by {markdown_code(command)}.\n"
    if format.usage is not None:
        yield format.usage(card, folder)


def _facts(card: Mapping[str, Any]) -> str:
    asked = {
        "every": "all that the task asks for",
        "last": "the last of each word that the task asks for",
    }[card["supervision"]]
    merging = card.get("merging")
    rows = {
        "Task": f"{markdown_code(card['task'])}, version {card['version']}",
        "Reference": markdown(card["reference"]),
        "Training lengths": card["train_length"],
        "Words": _drawn(card["words"]),
        "Labels asked for": asked,
        **({"Merging horizon": merging["summary"]} if merging else {}),
        "Seed": card["seed"],
        "Made by": card["made_by"],
        "SHA-256 of the data": f"`{card['sha256']}`",
    }
    return markdown_table(["", ""], [[key, str(value)] for key, value in rows.items()])


def _drawn(words: str) -> str:
    """How words are drawn, in a sentence."""
    kind, _, what = words.partition(":")
    if kind == "uniform":
        return "every symbol that can follow is equally likely"
    if kind == "weighted":
        return f"by the frequencies of symbols in {markdown_code(what)}"
    if kind == "group":
        group = f"the group {markdown_code(what)}" if what else "the largest group"
        return (
            f"inside {group} of the machine: after a shortest prefix, uniformly among the symbols "
            "that merge none of the group's states"
        )
    return "as the task says"


def _split_table(splits: Mapping[str, Any]) -> str:
    constants = {name: facts["constant_answer"] for name, facts in splits.items()}
    rows = [
        [
            name,
            f"{facts['words']:,}",
            _span(facts),
            f"{facts['symbols']:,}",
            f"{facts['labels_asked']:,}",
            f"{rounded_down(constants[name]['share'], 4)} ({markdown(constants[name]['label'])})",
        ]
        for name, facts in splits.items()
    ]
    head = ["split", "words", "length", "symbols", "labels asked for", "best constant answer"]
    return markdown_table(head, rows)


def _span(facts: Mapping[str, Any]) -> str:
    if facts["shortest"] == facts["longest"]:
        return str(facts["longest"])
    return f"{facts['shortest']}-{facts['longest']}"


def _repetition(card: Mapping[str, Any]) -> str:
    if card["distinct"]:
        return (
            "All words are different: none stands twice, in one split or in two. Lengths of which "
            "there are few words therefore stand less often than others.\n"
        )
    return (
        "No word is in two splits. There are fewer words of the training lengths than were asked "
        "for, so words stand more than once inside `train` and `validation`.\n"
    )


def _balance_table(card: Mapping[str, Any]) -> str:
    names, splits = card["labels"], card["splits"]
    shown = names[:_MOST_LABELS_SHOWN]
    rows = [
        [
            markdown(name),
            *(rounded_down(facts["label_balance"][name], 4) for facts in splits.values()),
        ]
        for name in shown
    ]
    table = markdown_table(["label", *splits], rows)
    left_out = len(names) - len(shown)
    return table + (f"\nand {left_out} more, in `card.json`.\n" if left_out else "")


def _named(names: Sequence[str]) -> str:
    return ", ".join(map(markdown_code, names))
