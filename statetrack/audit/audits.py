"""An audit: how accurate are answers to a task or a dataset that track no state?

Shortcuts are fitted on the training words and measured on all others. Also reported: how many of
those words are training words too, and how their labels are distributed. Answers of a model from
elsewhere are scored as an evaluation scores a model, beside the best shortcut.

N words, T time, C labels.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from statetrack.audit.shortcuts import VIEWS, Shortcuts, last_scored
from statetrack.data import (
    NO_ANSWER,
    Dataset,
    fitted,
    name_of_test,
    read_dataset,
    stream_words,
)
from statetrack.errors import DatasetError, nearest_or_known
from statetrack.scoring import Accuracies, Score, Tally, plain, ratio, score_of, tells_apart
from statetrack.sources import Batch, UnlabelledWords, WordStream
from statetrack.spec import Task, WordSpec

SOLVED: Final = 0.99
"""A shortcut that is right on this share of the words solves them."""
CLEARLY: Final = 0.05
"""A shortcut helps where its interval lies this far above the floor."""
HELD_OUT: Final = "validation"
"""The split whose words have training lengths; all others are test words."""
MOST_SYMBOLS: Final = 2**24
"""The most symbols, words times length, that shortcuts are measured on at once."""


@dataclass(frozen=True, eq=False)
class AuditedWords:
    """Words `[N, T]` to measure shortcuts on, and at which of their prefixes.

    `splits` names a split for each length, in rising order: the words cut to that length.
    """

    batch: Batch
    splits: Mapping[int, str]


@dataclass(frozen=True)
class LengthFacts:
    """The words of one length in a split.

    `in_training` is the share of words that are also training words. `floor` is the share of
    `most_frequent`, the label that the last scored positions have most often; `labels` says how
    many labels occur there. Without a scored position `floor` is not a number.
    """

    length: int
    words: int
    in_training: float
    labels: int
    most_frequent: str
    floor: float


@dataclass(frozen=True)
class SplitAudit:
    """The words of a split: the facts of all and by length, and how right each shortcut is."""

    split: str
    words: int
    shortest: int
    longest: int
    in_training: float
    floor: float
    lengths: tuple[LengthFacts, ...]
    shortcuts: Mapping[str, Accuracies]

    @property
    def strongest(self) -> str:
        """The shortcut with the highest accuracy at the last scored position."""
        return max(VIEWS, key=lambda name: self.shortcuts[name].accuracy)

    def solved_by(self, name: str) -> bool:
        """Whether the shortcut is right on nearly all words, at their last scored position."""
        return self.shortcuts[name].accuracy >= SOLVED

    def helped_by(self, name: str) -> bool:
        """Whether the shortcut is clearly better than the best constant answer here."""
        return self.shortcuts[name].low > self.floor + CLEARLY


@dataclass(frozen=True)
class Audit:
    """What an audit found.

    `solved_by` names the shortcuts that solve every test split, `helped_by` the others that are
    clearly above the floor of one, and `held_out_solved_by` those that solve the held-out words
    of the training lengths. Where there are no test words, the held-out ones stand for them.
    """

    num_train: int
    num_fitted: int
    splits: tuple[SplitAudit, ...]

    @property
    def test_splits(self) -> tuple[SplitAudit, ...]:
        """The splits that the verdict is about: those in which anything is scored."""
        scored = [split for split in self.splits if not math.isnan(split.floor)]
        return tuple(split for split in scored if split.split != HELD_OUT) or tuple(scored)

    @property
    def solved_by(self) -> tuple[str, ...]:
        """The shortcuts that solve every test split."""
        splits = self.test_splits
        return _names(splits and all(s.solved_by(name) for s in splits) for name in VIEWS)

    @property
    def helped_by(self) -> tuple[str, ...]:
        """The other shortcuts that are clearly above the floor of a test split."""
        helpful = _names(any(s.helped_by(name) for s in self.test_splits) for name in VIEWS)
        return tuple(name for name in helpful if name not in self.solved_by)

    @property
    def held_out_solved_by(self) -> tuple[str, ...]:
        """The shortcuts that solve the held-out words of the training lengths."""
        held_out = [split for split in self.splits if split.split == HELD_OUT]
        return _names(any(s.solved_by(name) for s in held_out) for name in VIEWS)

    def to_json(self) -> dict[str, Any]:
        """The audit as plain values, the same as `statetrack audit --json` prints."""
        facts = [plain(asdict(split)) for split in self.splits]
        rows = [
            {"split": split["split"], "shortcut": name} | accuracies
            for split in facts
            for name, accuracies in split.pop("shortcuts").items()
        ]
        return {
            "training_words": self.num_train,
            "fitted_words": self.num_fitted,
            "solved_by": list(self.solved_by),
            "helped_by": list(self.helped_by),
            "held_out_solved_by": list(self.held_out_solved_by),
            "splits": facts,
            "rows": rows,
        }


def audit(train: Batch, parts: Iterable[AuditedWords], labels: Sequence[str]) -> Audit:
    """Fit every shortcut on `train` `[N, T]` and measure it on the words of all parts.

    `labels` are the labels' names. Of more than `MOST_SYMBOLS` symbols the first words stand for
    all, but for what is repeated from training, which is looked for among all words.

    Raises `DatasetError` where the training words ask for no label at all.
    """
    fitted_on = _at_most(train)
    if not fitted_on.scored.any():
        raise DatasetError("no label is asked for in any training word: take more or longer words")
    shortcuts = Shortcuts(fitted_on)
    known = set(_word_keys(train))
    splits: list[SplitAudit] = []
    for part in parts:
        measured = shortcuts.measure(_at_most(part.batch), list(part.splits))
        for length, name in part.splits.items():
            words = part.batch.cut(0, length)
            repeated = np.array([key in known for key in _word_keys(words)])
            splits.append(_split_audit(name, words, repeated, labels, measured[length]))
    return Audit(len(train), len(fitted_on), tuple(splits))


def draw_train(task: Task, words: WordSpec, num_words: int, seed: int) -> Batch:
    """Words `[N, T]` drawn as training draws them."""
    stream = WordStream(task.source, words.lengths, words.supervision, seed, "train")
    return stream.block(0, 1, num_words)[0]


def draw_held_out(task: Task, words: WordSpec, num_words: int, seed: int) -> AuditedWords:
    """Words of the training lengths from a stream of their own, as training validates on."""
    stream = WordStream(task.source, words.lengths, words.supervision, seed, HELD_OUT)
    return AuditedWords(stream.block(0, 1, num_words)[0], {words.lengths.longest: HELD_OUT})


def draw_tests(
    task: Task, lengths: Sequence[int], num_words: int, seed: int, longest_in_training: int
) -> Iterator[AuditedWords]:
    """The very words that an evaluation at these lengths (in rising order) reads at this seed.

    Lengths at which they are more than `MOST_SYMBOLS` symbols are left out.
    """
    fitting = [length for length in lengths if num_words * length <= MOST_SYMBOLS]
    groups = [[length] for length in fitting]
    if task.source.prefixes_are_words:  # where no word in training was as long, one draw is enough:
        # then a word's whole length tells a shortcut nothing
        groups = [[length] for length in fitting if length <= longest_in_training]
        groups.append([length for length in fitting if length > longest_in_training])
    for group in filter(None, groups):
        longest = lengths[-1] if task.source.prefixes_are_words else group[-1]
        chunk = num_words * group[-1]
        words = next(stream_words(task.source, num_words, longest, seed, chunk))
        yield AuditedWords(words, {length: name_of_test(length) for length in group})


def best_by_length(
    shortcuts: Shortcuts, parts: Iterable[AuditedWords]
) -> dict[int, tuple[str, float]]:
    """The shortcut that is most often right at the last scored position, and how often.

    Of equals the simplest; `constant`, the most frequent label of the words it is fitted on, where
    so many words do not tell the shortcut from it, at 95 %. A length at which nothing is scored is
    left out.
    """
    best: dict[int, tuple[str, float]] = {}
    for part in parts:
        lengths = list(part.splits)
        found, totals = shortcuts.last_hits(part.batch, lengths)
        for index, (length, total) in enumerate(zip(lengths, map(int, totals), strict=True)):
            hits = {name: int(counts[index]) for name, counts in found.items()}
            name = max(VIEWS, key=hits.__getitem__)
            if total and not tells_apart((hits[name], total), (hits["constant"], total)):
                name = "constant"
            if total:
                best[length] = name, ratio(hits[name], total)
    return best


def _split_audit(
    name: str,
    words: Batch,
    repeated: NDArray[np.bool_],
    labels: Sequence[str],
    shortcuts: Mapping[str, Accuracies],
) -> SplitAudit:
    """The facts of a split, of whose words `[N]` some are training words too."""
    last = last_scored(words.scored)[:, -1]
    there = words.labels[np.arange(len(words)), last].astype(np.int64)
    answers = np.where(last >= 0, there, -1)
    by_length = []
    for length in np.unique(words.lengths).tolist():
        here = words.lengths == length
        label, floor = _most_frequent(answers[here])
        by_length.append(
            LengthFacts(
                length=length,
                words=int(here.sum()),
                in_training=float(repeated[here].mean()),
                labels=len(np.unique(answers[here & (answers >= 0)])),
                most_frequent=labels[label] if label >= 0 else "",
                floor=floor,
            )
        )
    return SplitAudit(
        split=name,
        words=len(words),
        shortest=by_length[0].length,
        longest=by_length[-1].length,
        in_training=float(repeated.mean()),
        floor=_most_frequent(answers)[1],
        lengths=tuple(by_length),
        shortcuts=shortcuts,
    )


def _most_frequent(answers: NDArray[np.int64]) -> tuple[int, float]:
    """The label that occurs most often, and its share; -1 stands for no label and is left out."""
    counts = np.bincount(answers[answers >= 0])
    if not len(counts):
        return -1, ratio(0, 0)
    return int(counts.argmax()), ratio(int(counts.max()), int(counts.sum()))


def _at_most(batch: Batch) -> Batch:
    """The first words, of `MOST_SYMBOLS` symbols or fewer."""
    return batch[: max(1, MOST_SYMBOLS // batch.symbols.shape[1])]


def _word_keys(batch: Batch) -> list[bytes]:
    """A name for every word, whichever type its symbols have."""
    return UnlabelledWords(batch.symbols.astype("<u4"), batch.lengths).keys()


def _names(chosen: Iterable[object]) -> tuple[str, ...]:
    return tuple(name for name, is_chosen in zip(VIEWS, chosen, strict=True) if is_chosen)


# --- answers from elsewhere ---


@dataclass(frozen=True, kw_only=True)
class SplitScore(Score):
    """The score of answers to one split of a dataset; `length` is that of its longest word.

    `floor` is the share of the most frequent label at the last scored positions of these words.
    `last_only` says that there is one answer for each word, to its last scored position: then
    all accuracies are about that one. `shortcut` is the shortcut, fitted on the split `train`, that
    is right most often on these words, or `constant` where they tell none from it; None without
    that split, and where the words are too many. `constant` is the most frequent label of `train`,
    so that it may be right less often than `floor`.
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
    labels, train = dataset.card["labels"], dataset.splits.get("train")
    train = None if train is None else _at_most(train)
    shortcuts = None if train is None or not train.scored.any() else Shortcuts(train)
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
        to_come = np.flip(np.cumsum(np.flip(words.scored, 1), axis=1), 1)
        last = np.asarray(words.scored & (to_come == 1))
        words = Batch(words.symbols, words.labels, last, words.lengths)
        answers = np.where(words.scored, answers[:, None], NO_ANSWER)
    width = answers.shape[1]
    words = words.cut(0, width)
    wrong = words.scored & ((answers < NO_ANSWER) | (answers >= len(labels)))
    if wrong.any():
        word, time = np.argwhere(wrong)[0].tolist()
        raise DatasetError(
            f"answers to {name}: word {word + 1}, position {time + 1}: {answers[word, time]} is no "
            f"label: the task has {len(labels)}, numbered from 0, and -1 stands for no answer"
        )
    tally = Tally(len(words))
    tally.add(answers == words.labels, words.scored)
    asked = np.bincount(words.last_labels(), minlength=len(labels))
    floor = ratio(int(asked.max()), int(asked.sum()))
    longest = int(words.lengths.max())
    found = score_of(longest, tally.accuracies(), floor, 1 / len(labels))
    best: tuple[str | None, float | None] = (None, None)
    if shortcuts is not None and words.symbols.size <= MOST_SYMBOLS:
        best = best_by_length(shortcuts, [AuditedWords(words, {longest: name})]).get(longest, best)
    return SplitScore(
        **{field.name: getattr(found, field.name) for field in fields(Score)},
        split=name,
        shortest=int(words.lengths.min()),
        last_only=last_only,
        shortcut=best[0],
        shortcut_accuracy=best[1],
    )
