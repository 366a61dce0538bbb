"""Answers of a model from elsewhere, scored as an evaluation scores a model.

N words, T time, C labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from statetrack.audit.auditing import MOST_SYMBOLS, Part, best_by_length
from statetrack.audit.shortcuts import Shortcuts
from statetrack.data import NO_ANSWER, Dataset, fitted, read_dataset
from statetrack.errors import DatasetError, nearest_or_known
from statetrack.scoring import Score, Tally, plain, ratio, score_of
from statetrack.sources import Batch


@dataclass(frozen=True, kw_only=True)
class SplitScore(Score):
    """The score of answers to one split of a dataset; `length` is that of its longest word.

    `floor` is the share of the most frequent label at the last scored positions of these words.
    `last_only` says that there is one answer for each word, to its last scored position: then
    all accuracies are about that one. `shortcut` is the shortcut, fitted on the split `train`, that
    is right most often on these words; None without that split, and where the words are too many.
    """

    split: str
    shortest: int
    last_only: bool
    shortcut: str | None = None
    shortcut_accuracy: float | None = None

    def to_json(self) -> dict[str, Any]:
        """The score as `statetrack score --json` prints it."""
        names = ["split", "shortest", *(field.name for field in fields(Score)), "last_only"]
        content = {name: getattr(self, name) for name in names if name != "nonfinite_from"}
        found = {"shortcut": self.shortcut, "shortcut_accuracy": self.shortcut_accuracy}
        return dict(plain(content | found))


def score(answers: Mapping[str, ArrayLike], data: Dataset | Path | str) -> list[SplitScore]:
    """Score answers to the splits of a dataset, in the order of its splits.

    `answers` has for each split the labels that a model gives, whole numbers `[N, T]` in the order
    of its words; -1 stands for no answer, and what stands where no label is asked for is not read.
    `[N]` are answers to the last scored position of each word alone. `data` is a folder that `gen`
    wrote, or what `read_dataset` made of it.

    Raises `DatasetError` where there is no such split, or the answers do not fit its words.
    """
    dataset = data if isinstance(data, Dataset) else read_dataset(data)
    for name in answers:
        if name not in dataset.splits:
            raise DatasetError(
                f"the dataset has no split '{name}'.{nearest_or_known(name, dataset.splits)}"
            )
    labels = dataset.card["labels"]
    shortcuts = _shortcuts(dataset)
    return [
        _score(name, fitted(answers[name], words, f"answers to {name}"), words, labels, shortcuts)
        for name, words in dataset.splits.items()
        if name in answers
    ]


def _score(
    name: str,
    answers: NDArray[np.int64],
    words: Batch,
    labels: list[str],
    shortcuts: Shortcuts | None,
) -> SplitScore:
    last_only = answers.ndim == 1
    if last_only:
        words = Batch(words.symbols, words.labels, _last_only(words.scored), words.lengths)
        answers = np.where(words.scored, answers[:, None], NO_ANSWER)
    width = answers.shape[1]
    words = words.cut(0, width)
    _check_labels(answers, words, labels, name)
    tally = Tally(len(words))
    tally.add(answers == words.labels, words.scored)
    asked = np.bincount(words.last_labels(), minlength=len(labels))
    floor = ratio(int(asked.max()), int(asked.sum()))
    longest = int(words.lengths.max())
    found = score_of(longest, tally.accuracies(), floor, 1 / len(labels))
    best: tuple[str | None, float | None] = (None, None)
    if shortcuts is not None and words.symbols.size <= MOST_SYMBOLS:
        best = best_by_length(shortcuts, [Part(words, {longest: name})]).get(longest, best)
    return SplitScore(
        **{field.name: getattr(found, field.name) for field in fields(Score)},
        split=name,
        shortest=int(words.lengths.min()),
        last_only=last_only,
        shortcut=best[0],
        shortcut_accuracy=best[1],
    )


def _check_labels(answers: NDArray[np.int64], words: Batch, labels: list[str], name: str) -> None:
    """Raises `DatasetError` where an answer that is asked for is no label of the task."""
    wrong = words.scored & ((answers < NO_ANSWER) | (answers >= len(labels)))
    if wrong.any():
        word, time = np.argwhere(wrong)[0].tolist()
        raise DatasetError(
            f"answers to {name}: word {word + 1}, position {time + 1}: {answers[word, time]} is no "
            f"label: the task has {len(labels)}, numbered from 0, and -1 stands for no answer"
        )


def _last_only(scored: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether a position is the last scored one of its word."""
    to_come = np.flip(np.cumsum(np.flip(scored, 1), axis=1), 1)
    return np.asarray(scored & (to_come == 1))


def _shortcuts(dataset: Dataset) -> Shortcuts | None:
    train = dataset.splits.get("train")
    if train is None:
        return None
    train = train[: max(1, MOST_SYMBOLS // train.longest)]
    return Shortcuts(train) if train.scored.any() else None
