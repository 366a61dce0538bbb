"""The README of a dataset's folder: its card, for people."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from statetrack.data.formats import FORMATS
from statetrack.data.formats.filling import Format
from statetrack.markup import markdown, markdown_block, markdown_code, markdown_table
from statetrack.scoring import rounded_down

_MOST_LABELS_SHOWN = 12


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
        [markdown(name), *(f"{facts['label_balance'][name]:.4f}" for facts in splits.values())]
        for name in shown
    ]
    table = markdown_table(["label", *splits], rows)
    left_out = len(names) - len(shown)
    return table + (f"\nand {left_out} more, in `card.json`.\n" if left_out else "")


def _named(names: Sequence[str]) -> str:
    return ", ".join(map(markdown_code, names))
