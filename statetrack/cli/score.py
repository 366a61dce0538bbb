"""Score the answers of a model from elsewhere to a dataset that gen wrote."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from statetrack import algebra, audit, report
from statetrack import data as datasets
from statetrack.cli import options
from statetrack.cli._terminal import print_json
from statetrack.cli._warnings import warn_of_split_shortcuts

PLACE = 8.5
"""Its place among the commands that `statetrack --help` lists."""


TRAINED = ("train", "validation")
"""The splits whose words have the training lengths."""


def command(
    answers: Annotated[
        list[Path],
        typer.Argument(
            metavar="ANSWERS ...",
            help="Files SPLIT.npy or SPLIT.jsonl, or folders of them.",
        ),
    ],
    *,
    data: Annotated[
        Path, typer.Option(metavar="DATASET", help="The folder that gen wrote.", show_default=False)
    ],
    as_json: options.PrintJson = False,
) -> None:
    """Score the answers of a model from elsewhere to a dataset that gen wrote.

    A file has the answers to the words of the split that it is named after, in their order, as
    labels numbered from 0; -1 stands for no answer, which is wrong. SPLIT.npy is an array of whole
    numbers, words x positions. SPLIT.jsonl has {"answers": [0, 1, ...]} on each line. One number
    for each word, in place of one for each position, answers its last label alone.

    The table is that of eval, with the accuracy of the best shortcut on the same words, or of the
    most frequent training label where they tell none from it. The floor is the most frequent label
    of these words.

    Examples:
        statetrack score answers --data data/s3
        statetrack score test_len500.npy --data data/s3 --json

    """
    dataset = datasets.read_dataset(data)
    files = datasets.answer_files(answers, dataset.splits)
    read = {name: datasets.read_answers(path, dataset.splits[name]) for name, path in files.items()}
    scores = audit.score(read, dataset)
    merging = dataset.card.get("merging")
    if as_json:
        rows = [each.to_json() for each in scores]
        task = dataset.card["task"]
        print_json({"data": str(data), "task": task, "rows": rows, "merging": merging})
    else:
        _draw(f"answers on {dataset.card['task']}, {data}", scores)
        tested = [each.length for each in scores if each.split not in TRAINED]
        line = algebra.window_line(merging, max(tested)) if merging and tested else ""
        if line:
            report.console().print(Text(line))
    warn_of_split_shortcuts(scores)


def _draw(title: str, scores: Sequence[audit.SplitScore]) -> None:
    columns = [
        report.Column("split", "name"),
        report.Column("length", "number", _span),
        report.Column("words", "number", key="sequences"),
        report.Column("accuracy", "number", write=report.share),
        report.Column("95 % interval", "number", lambda each: report.interval(each.low, each.high)),
    ]
    if not all(each.last_only for each in scores):
        columns += [
            report.Column("symbols", "number", lambda each: _beyond_last(each, "symbol_accuracy")),
            report.Column("prefixes", "number", lambda each: _beyond_last(each, "prefix_accuracy")),
        ]
    columns += [
        report.Column("floor", "number", write=report.share),
        report.Column("shortcut", "number", lambda each: _share(each.shortcut_accuracy)),
    ]
    out = report.console()
    left_out = ("words", "symbols", "prefixes", "95 % interval", "shortcut", "floor")
    out.print(report.Table.of(columns, scores, title=title, look="framed", left_out=left_out))
    whole = [each for each in scores if not each.last_only]
    for about, some in (
        ("training lengths", [each for each in whole if each.split in TRAINED]),
        ("test lengths", [each for each in whole if each.split not in TRAINED]),
    ):
        if some:
            out.print(f"{about}: {report.closing_sentence(some)}")
    if len(whole) < len(scores):
        out.print(
            "one answer for a word is that at its last label: nothing is said of the others",
        )


def _share(accuracy: float | None) -> str:
    return "" if accuracy is None else report.share(accuracy)


def _beyond_last(of: audit.SplitScore, accuracy: str) -> str:
    """An accuracy over more than the last label, where more is answered."""
    return "" if of.last_only else report.share(getattr(of, accuracy))


def _span(of: audit.SplitScore) -> str:
    if of.shortest == of.length:
        return f"{of.length:,}"
    return f"{of.shortest:,}-{of.length:,}"
