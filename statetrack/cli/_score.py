"""The work of `statetrack score`: read answers, score them, and print the result."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.text import Text

from statetrack.algebra import window_line
from statetrack.audit import SplitScore, score
from statetrack.cli._json import print_json
from statetrack.cli._warnings import warn_of_split_shortcuts
from statetrack.data import answer_files, read_answers, read_dataset
from statetrack.report import closing_sentence, console, framed_table, interval, share

TRAINED = ("train", "validation")
"""The splits whose words have the training lengths."""


def show_scores(paths: Sequence[Path], data: Path, as_json: bool) -> None:
    """Score the answers in some files and print the result."""
    dataset = read_dataset(data)
    files = answer_files(paths, dataset.splits)
    answers = {name: read_answers(path, dataset.splits[name]) for name, path in files.items()}
    scores = score(answers, dataset)
    merging = dataset.card.get("merging")
    if as_json:
        rows = [each.to_json() for each in scores]
        task = dataset.card["task"]
        print_json({"data": str(data), "task": task, "rows": rows, "merging": merging})
    else:
        _draw(f"answers on {dataset.card['task']}, {data}", scores)
        tested = [each.length for each in scores if each.split not in TRAINED]
        line = window_line(merging, max(tested)) if merging and tested else ""
        if line:
            console().print(Text(line))
    warn_of_split_shortcuts(scores)


def _draw(title: str, scores: Sequence[SplitScore]) -> None:
    columns = {
        "split": [each.split for each in scores],
        "length": [_span(each) for each in scores],
        "words": [f"{each.sequences:,}" for each in scores],
        "accuracy": [share(each.accuracy) for each in scores],
        "95 % interval": [interval(each.low, each.high) for each in scores],
    }
    if not all(each.last_only for each in scores):
        columns |= {
            "symbols": ["" if each.last_only else share(each.symbol_accuracy) for each in scores],
            "prefixes": ["" if each.last_only else share(each.prefix_accuracy) for each in scores],
        }
    columns |= {
        "floor": [share(each.floor) for each in scores],
        "shortcut": [
            "" if each.shortcut_accuracy is None else share(each.shortcut_accuracy)
            for each in scores
        ],
    }
    out = console()
    first = ("words", "symbols", "prefixes", "95 % interval", "shortcut", "floor")
    out.print(framed_table(title, columns, left_out=first, names=["split"], more="--json has them"))
    whole = [each for each in scores if not each.last_only]
    for about, some in (
        ("training lengths", [each for each in whole if each.split in TRAINED]),
        ("test lengths", [each for each in whole if each.split not in TRAINED]),
    ):
        if some:
            out.print(f"{about}: {closing_sentence(some)}")
    if len(whole) < len(scores):
        out.print(
            "one answer for a word is that at its last label: nothing is said of the others",
        )


def _span(score: SplitScore) -> str:
    if score.shortest == score.length:
        return f"{score.length:,}"
    return f"{score.shortest:,}-{score.length:,}"
