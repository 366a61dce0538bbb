"""The work of `statetrack audit`: audit words, and print the result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from statetrack.algebra import merging_in, window_line
from statetrack.audit import (
    CLEARLY,
    HELD_OUT,
    MOST_SYMBOLS,
    SOLVED,
    VIEWS,
    Audit,
    Part,
    SplitAudit,
    audit,
    draw_held_out,
    draw_tests,
    draw_train,
)
from statetrack.catalogue import AuditSettings
from statetrack.cli._json import print_json
from statetrack.data import read_dataset
from statetrack.errors import DatasetError, SettingsError, UnknownNameError
from statetrack.report import FittedTable, console, interval, plain_table, share
from statetrack.scoring import Accuracies
from statetrack.sources import parse_lengths
from statetrack.spec import OWN, TASKS, Task, WordSpec, load_task
from statetrack.text import visible

Merges = Mapping[str, Any] | None
"""How soon words merge the states of a machine, as `Merging.to_json` has it; None: not known."""

MOST_SPLITS_SHOWN = 4
"""With more splits than this, only the strongest shortcut of each is shown."""
MOST_LENGTHS_SHOWN = 12
"""A split with more lengths than this is shown in one line."""


def show_audit(
    what: str,
    settings: AuditSettings,
    lengths: Sequence[str],
    given: Sequence[str],
    as_json: bool,
) -> None:
    """Audit a task or a dataset and print the result; `given` are options about words."""
    is_dataset = _is_folder(what)
    if is_dataset:
        if given:
            raise SettingsError(f"{given[0]}: {what} is a dataset, whose words are given")
        name, (found, merging) = what, _of_dataset(Path(what))
    else:
        task = _load(what).with_words(settings.words)
        name, (found, merging) = task.name, _of_task(task, settings, lengths)
    if as_json:
        kind = "dataset" if is_dataset else "task"
        drawn = {} if is_dataset else {"words": task.words}
        print_json({"name": name, "type": kind} | drawn | found.to_json() | {"merging": merging})
    else:
        other = not is_dataset and task.words != OWN
        title = f"{name}, {visible(task.words)} words" if other else name
        _draw(title, found, merging, console())


def _is_folder(text: str) -> bool:
    return text not in TASKS and Path(text).is_dir()


def _load(name: str) -> Task:
    try:
        return load_task(name)
    except UnknownNameError as error:
        raise UnknownNameError(f"{error} Nor is there a folder of that name.") from None


def _of_dataset(folder: Path) -> tuple[Audit, Merges]:
    """The audit of the words in a folder, and what its card says of the states that merge."""
    dataset = read_dataset(folder)
    train = dataset.splits.pop("train", None)
    if train is None or not dataset.splits:
        raise DatasetError(f"{folder}: an audit needs the split train and at least one more")
    parts = [Part(batch, {batch.symbols.shape[1]: name}) for name, batch in dataset.splits.items()]
    return audit(train, parts, dataset.card["labels"]), dataset.card.get("merging")


def _of_task(
    task: Task, settings: AuditSettings, test_lengths: Sequence[str]
) -> tuple[Audit, Merges]:
    """The audit of words drawn for it, and how soon the longest of them merge its states."""
    tests = parse_lengths(test_lengths) or sorted(task.spec.test_lengths)
    words = WordSpec.of(task, train_length=settings.train_length, supervision=settings.supervision)
    longest, seed = words.lengths.longest, settings.seed
    _check_size("--length", tests[-1], settings.samples)
    _check_size("--train-length", longest, max(settings.train_samples, settings.samples))
    parts = [
        draw_held_out(task, words, settings.samples, seed),
        *draw_tests(task, tests, settings.samples, seed, longest),
    ]
    merging = merging_in(task.source, tests[-1])
    train = draw_train(task, words, settings.train_samples, seed)
    found = audit(train, parts, task.source.labels)
    return found, None if merging is None else merging.to_json()


def _check_size(flag: str, length: int, num_words: int) -> None:
    if length * num_words > MOST_SYMBOLS:
        raise SettingsError(
            f"{flag} {length}: {num_words} words of that length have {length * num_words} symbols, "
            f"the most is {MOST_SYMBOLS}: take shorter or fewer words"
        )


def _draw(name: str, found: Audit, merging: Merges, to: Console) -> None:
    of = f" of {found.num_train:,}" if found.num_fitted < found.num_train else ""
    about = f"  shortcuts fitted on {found.num_fitted:,}{of} training words\n"
    to.print(Text.assemble((name, "bold"), about))
    to.print(_word_table(found.splits))
    if len(found.splits) <= MOST_SPLITS_SHOWN:
        for split in found.splits:
            to.print(Text(f"\n{split.split}", "bold"))
            to.print(_shortcut_table(split))
    else:
        to.print(Text("\nthe strongest shortcut of each split; --json has all\n"))
        to.print(_strongest_table(found.splits))
    to.print()
    for line in [*verdict(found), *_windows(found, merging)]:
        to.print(Text(line))


def _word_table(splits: Sequence[SplitAudit]) -> FittedTable:
    """The number of words, their lengths, those among training words, and the label shares."""
    headings = ("split", "length", "words", "in training", "labels", "floor", "its label")
    table = plain_table(*headings, right=headings[1:-1], left_out=("its label", "labels"))
    for split in splits:
        some = split.lengths if len(split.lengths) <= MOST_LENGTHS_SHOWN else ()
        for index, facts in enumerate(some):
            table.add_row(
                "" if index else split.split,
                f"{facts.length:,}",
                f"{facts.words:,}",
                share(facts.in_training),
                str(facts.labels),
                share(facts.floor),
                Text(facts.most_frequent),
            )
        if not some:
            table.add_row(
                split.split,
                f"{split.shortest:,}-{split.longest:,}",
                f"{split.words:,}",
                share(split.in_training),
                "",
                share(split.floor),
                "",
            )
    return table


NUMBERS = ("accuracy", "95 % interval", "symbols", "words")
"""The columns of a shortcut: as in the table of `eval`, and whole words."""


def _numbers(counted: Accuracies) -> list[Text]:
    between = interval(counted.low, counted.high)
    values = counted.accuracy, counted.symbol_accuracy, counted.prefix_accuracy
    first, *others = (Text(share(each), _look(each)) for each in values)
    return [first, Text(between), *others]


def _look(value: float) -> str:
    return "bold red" if value >= SOLVED else ""


def _shortcut_table(split: SplitAudit) -> FittedTable:
    left_out = ("symbols", "words")
    table = plain_table("shortcut", "sees", *NUMBERS, right=NUMBERS, left_out=left_out)
    for name, counted in split.shortcuts.items():
        table.add_row(name, VIEWS[name].sees, *_numbers(counted))
    return table


def _strongest_table(splits: Sequence[SplitAudit]) -> FittedTable:
    left_out = ("symbols", "words", "95 % interval")
    headings = ("split", "floor", "shortcut", *NUMBERS)
    table = plain_table(*headings, right=("floor", *NUMBERS), left_out=left_out)
    for split in splits:
        name = split.strongest
        table.add_row(split.split, share(split.floor), name, *_numbers(split.shortcuts[name]))
    return table


def verdict(found: Audit) -> list[str]:
    """The result of an audit, as sentences."""
    tests = "the held-out words" if _only_held_out(found) else "the test words"
    if not found.test_splits:
        return [f"no position of {tests} is scored: there is no result"]
    if found.solved_by:
        others = f" (so do {', '.join(found.solved_by[1:])})" if found.solved_by[1:] else ""
        lines = [
            f"SOLVED: '{found.solved_by[0]}', which sees {_sees(found.solved_by[0])}, is right on "
            f"{SOLVED:.0%} or more of {tests}{others}: accuracy there is no evidence of state "
            "tracking"
        ]
    elif found.helped_by:
        name, split = max(
            ((name, split) for name in found.helped_by for split in found.test_splits),
            key=lambda pair: pair[1].shortcuts[pair[0]].accuracy - pair[1].floor,
        )
        lines = [
            f"HELPED: '{name}', which sees {_sees(name)}, is right on "
            f"{share(split.shortcuts[name].accuracy)} of {split.split}, where the best constant "
            f"answer is right on {share(split.floor)}: compare accuracies with that"
        ]
    else:
        lines = [f"no shortcut is more than {CLEARLY} above the best constant answer on {tests}"]
    for split in found.test_splits:
        if split.floor >= SOLVED:
            lines.append(f"a constant answer is right on {share(split.floor)} of {split.split}")
    held_out = [name for name in found.held_out_solved_by if name not in found.solved_by]
    if held_out and not _only_held_out(found):
        lines.append(
            f"'{held_out[0]}', which sees {_sees(held_out[0])}, is right on {SOLVED:.0%} or more "
            f"of {HELD_OUT}: accuracy at training lengths is no evidence"
        )
    for split in found.splits:
        if split.in_training:
            lines.append(
                f"{share(split.in_training)} of the words of {split.split} are also training words"
            )
    return lines


def _windows(found: Audit, merging: Merges) -> list[str]:
    """How many symbols a window must have to be right on most words, where these are few."""
    longest = max((split.longest for split in found.test_splits), default=0)
    line = window_line(merging, longest) if merging else ""
    return [line] if line else []


def _only_held_out(found: Audit) -> bool:
    return all(split.split == HELD_OUT for split in found.test_splits)


def _sees(name: str) -> str:
    return VIEWS[name].sees
