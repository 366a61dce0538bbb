"""The data card: all that is to be known about a dataset, for programs and for people."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import yaml

from statetrack import __version__
from statetrack.algebra import merging_in
from statetrack.data.card_schema import CARD_VERSION
from statetrack.data.formats import FORMATS, FormatName, lm_eval
from statetrack.data.large import LargeSplits
from statetrack.data.parts import Part, words_at_once
from statetrack.data.splits import Splits
from statetrack.markup import markdown, markdown_block, markdown_code, markdown_table
from statetrack.scoring import rounded_down
from statetrack.spec import Task

_MOST_LABELS_SHOWN = 12


def card_of(
    task: Task,
    splits: Splits | LargeSplits,
    parts: Mapping[str, Part],
    format: FormatName,
    command: str,
) -> dict[str, Any]:
    """The card as plain values, as `card.json` holds it; its keys are a public interface."""
    spec, source = task.spec, task.source
    facts = {name: _split_facts(part, source.labels) for name, part in parts.items()}
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
        "sha256": fingerprint(parts),
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


def readme_of(card: Mapping[str, Any], folder: str) -> str:
    """The card as the README of the dataset's folder, which `datasets.load_dataset` reads too.

    `folder` is the path by which the code that it prints finds the dataset.
    """
    files = FORMATS[card["format"]].files
    front: dict[str, Any] = {"pretty_name": card["title"]}
    if files:
        data_files = [
            {"split": name, "path": f"data/{files.format(split=name)}"} for name in card["splits"]
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
        _columns(card["format"]),
        "## Alphabet and labels\n",
        f"Symbols, numbered from 0: {_named(card['symbols'])}\n",
        f"Labels, numbered from 0: {_named(card['labels'])}\n",
        "## Label balance\n",
        "Shares of the labels that are asked for.\n",
        _balance_table(card),
        "## Using it\n",
        *_usage(card, folder),
        *([lm_eval.usage(card, folder)] if card["format"] == "lm-eval" else []),
        *([f"To make it again:\n\n{markdown_block(card['command'])}"] if card["command"] else []),
        "## The task, complete\n",
        markdown_block(card["document"].rstrip(), "yaml"),
    ]
    return "\n".join(sections)


def _usage(card: Mapping[str, Any], folder: str) -> Iterator[str]:
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
    if FORMATS[card["format"]].files:
        programs.append(
            f"import datasets\n\nwords = datasets.load_dataset({path})\nprint(words[{split!r}][0])"
        )
    if card["format"] == "parquet":
        programs.append(
            "from glob import glob\n\nimport pyarrow.parquet\n\n"
            f"files = sorted(glob({json.dumps(f'{data}-*.parquet')}))\n"
            "words = pyarrow.parquet.ParquetDataset(files).read()\n"
            "print(words.slice(0, 1).to_pylist())"
        )
    if card["format"] == "npz":
        programs.append(
            f"import numpy as np\n\nwords = np.load({json.dumps(f'{data}.npz')})\n"
            'print(words["symbols"][0], words["labels"][0], words["lengths"][0])'
        )
    yield from (markdown_block(program, "python") for program in programs)
    command = f"statetrack score ANSWERS --data {shlex.quote(folder)}"
    yield f"What a model answers to these words is scored by {markdown_code(command)}.\n"


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
            name: round(float(share), 6) for name, share in zip(labels, shares, strict=True)
        },
        "constant_answer": {
            "label": labels[most_common],
            "share": float(rounded_down(float(shares[most_common]), 6)),
        },
    }


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


def _columns(format: FormatName) -> str:
    if format == "csv":
        return (
            "A file `GROUP=k.csv` has the words of length k: `seed`, `input` (the symbols) and "
            "`target` (the label after each).\n"
        )
    if format == "npz":
        return (
            "Arrays, padded with 0 at the end: `symbols`, `labels` and `scored` (whether the "
            "label is asked for), `[words, longest]`, and `lengths`, `[words]`.\n"
        )
    columns = (
        "`input` (the symbols), `target` (the label after each), `scored` (whether that label is "
        "asked for) and `length`"
    )
    if format == "lm-eval":
        columns += (
            "; `text` (the word as a model reads it, up to the last label that is asked for), "
            "`choice` (that label's number) and `answer` (what the model is to write), null where "
            "no label of the word is asked for"
        )
    return f"{columns}.\n"


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
