"""Audit a task or a dataset: how accurate are predictors that follow no state?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.text import Text

from statetrack import algebra, data, report, sources, spec
from statetrack import audit as audits
from statetrack.cli import options
from statetrack.cli._terminal import print_json
from statetrack.errors import DatasetError, SettingsError, UnknownNameError
from statetrack.scoring import Accuracies
from statetrack.settings import Settings, option
from statetrack.text import GREATEST_SEED, visible

PLACE = 8
"""Its place among the commands that `statetrack --help` lists."""


class AuditSettings(Settings):
    """The words of a task that are drawn for an audit, apart from the test lengths."""

    words: str = option(
        "task", "How words are drawn: task, uniform, group, group:NAME or weighted:FILE."
    )
    samples: int = option(2000, "Test words at every length, and held-out words.", min=1, max=10**7)
    train_length: str = option("task", "Training lengths, as 2-10 or 10; `task`: the task's own.")
    train_samples: int = option(10_000, "Training words to fit the shortcuts on.", min=1, max=10**7)
    supervision: Literal["task", "every", "last"] = option(
        "task", "A label after every symbol, or after the last only; `task`: the task's own."
    )
    seed: int = option(0, "The seed that all words come from.", min=0, max=GREATEST_SEED)


def build(argv: list[str]) -> Callable[..., None]:
    """The command `statetrack audit`."""
    flags = [options.flag(name) for name in ("length", *AuditSettings.model_fields)]
    given = [flag for flag in flags if options.peek(argv, flag) is not None]

    def audit(
        what: Annotated[
            str, typer.Argument(metavar="TASK|DATASET", help="A task, or a folder that gen wrote.")
        ],
        length: options.TestLengths = None,
        as_json: options.PrintJson = False,
        **values: Any,
    ) -> None:
        """Audit a task or a dataset: how accurate are predictors that follow no state?

        Predictors that see only the last symbols, the position, the length of the word or the set
        of its symbols are fitted on training words and measured on others. Where one of them is
        right, the accuracy of a model is no evidence that it tracks a state.

        The words of a task are those that `train` and `eval` draw with that seed. For a dataset,
        shortcuts are fitted on the split `train` and measured on all others. A name is first taken
        as that of a task: write ./NAME for a folder of the same name.

        Examples:
            statetrack audit s3
            statetrack audit parity --length 100 --words group

        """
        settings = options.collect(AuditSettings, values)
        if what not in spec.TASKS and Path(what).is_dir():
            if given:
                raise SettingsError(f"{given[0]}: {what} is a dataset, whose words are given")
            name, title, about = what, what, {"type": "dataset"}
            found, merging = _of_dataset(Path(what))
        else:
            task = _load(what).with_words(settings.words)
            name, about = task.name, {"type": "task", "words": task.words}
            found, merging = _of_task(task, settings, length or ())
            own = task.words == spec.OWN
            title = name if own else f"{name}, {visible(task.words)} words"
        if as_json:
            print_json({"name": name} | about | found.to_json() | {"merging": merging})
        else:
            _draw(title, found, merging, report.console())

    return options.with_settings(audit, options.parameters(AuditSettings, "Words of a task"))


Merges = Mapping[str, Any] | None
"""How soon words merge the states of a machine, as `Merging.to_json` has it; None: not known."""

MOST_SPLITS_SHOWN = 4
"""With more splits than this, only the strongest shortcut of each is shown."""
MOST_LENGTHS_SHOWN = 12
"""A split with more lengths than this is shown in one line."""


def _load(name: str) -> spec.Task:
    try:
        return spec.load_task(name)
    except UnknownNameError as error:
        told = str(error.args[0]).rstrip(".")
        raise UnknownNameError(f"{told}. Nor is there a folder of that name.") from None


def _of_dataset(folder: Path) -> tuple[audits.Audit, Merges]:
    """The audit of the words in a folder, and what its card says of the states that merge."""
    dataset = data.read_dataset(folder)
    train = dataset.splits.pop("train", None)
    if train is None or not dataset.splits:
        raise DatasetError(f"{folder}: an audit needs the split train and at least one more")
    parts = [
        audits.AuditedWords(batch, {batch.symbols.shape[1]: name})
        for name, batch in dataset.splits.items()
    ]
    return audits.audit(train, parts, dataset.card["labels"]), dataset.card.get("merging")


def _of_task(
    task: spec.Task, settings: AuditSettings, test_lengths: Sequence[str]
) -> tuple[audits.Audit, Merges]:
    """The audit of words drawn for it, and how soon the longest of them merge its states."""
    tests = sources.parse_lengths(test_lengths) or sorted(task.spec.test_lengths)
    words = spec.WordSpec.of(
        task, train_length=settings.train_length, supervision=settings.supervision
    )
    longest, seed = words.lengths.longest, settings.seed
    _check_size("--length", tests[-1], settings.samples)
    _check_size("--train-length", longest, max(settings.train_samples, settings.samples))
    parts = [
        audits.draw_held_out(task, words, settings.samples, seed),
        *audits.draw_tests(task, tests, settings.samples, seed, longest),
    ]
    merging = algebra.merging_in(task.source, tests[-1])
    train = audits.draw_train(task, words, settings.train_samples, seed)
    found = audits.audit(train, parts, task.source.labels)
    return found, None if merging is None else merging.to_json()


def _check_size(flag: str, length: int, num_words: int) -> None:
    if length * num_words > audits.MOST_SYMBOLS:
        raise SettingsError(
            f"{flag} {length}: {num_words} words of that length have {length * num_words} symbols, "
            f"the most is {audits.MOST_SYMBOLS}: take shorter or fewer words"
        )


def _draw(name: str, found: audits.Audit, merging: Merges, to: Console) -> None:
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
    longest = max((split.longest for split in found.test_splits), default=0)
    window = algebra.window_line(merging, longest) if merging else ""
    for line in [*verdict(found), *filter(None, [window])]:
        to.print(Text(line))


def _word_table(splits: Sequence[audits.SplitAudit]) -> report.Table:
    """The number of words, their lengths, those among training words, and the label shares."""
    headings = ("split", "length", "words", "in training", "labels", "floor", "its label")
    columns = report.plain_columns(*headings, right=headings[1:-1])
    share, rows = report.share, []
    for split in splits:
        if len(split.lengths) > MOST_LENGTHS_SHOWN or not split.lengths:
            lengths = f"{split.shortest:,}-{split.longest:,}"
            shares = (share(split.in_training), "", share(split.floor))
            rows.append((split.split, lengths, split.words, *shares, ""))
            continue
        for index, facts in enumerate(split.lengths):
            shares = (share(facts.in_training), str(facts.labels), share(facts.floor))
            named = "" if index else split.split
            rows.append((named, f"{facts.length:,}", facts.words, *shares, facts.most_frequent))
    return report.Table(columns, rows, left_out=("its label", "labels"))


NUMBERS = ("accuracy", "95 % interval", "symbols", "words")
"""The columns of a shortcut: as in the table of `eval`, and whole words."""


def _numbers(counted: Accuracies) -> list[Text | str]:
    values = counted.accuracy, counted.symbol_accuracy, counted.prefix_accuracy
    first, *others = (
        Text(report.share(each), "bold red" if each >= audits.SOLVED else "") for each in values
    )
    return [first, report.interval(counted.low, counted.high), *others]


def _shortcut_table(split: audits.SplitAudit) -> report.Table:
    columns = report.plain_columns("shortcut", "sees", *NUMBERS, right=NUMBERS)
    rows = [[name, _sees(name), *_numbers(each)] for name, each in split.shortcuts.items()]
    return report.Table(columns, rows, left_out=("symbols", "words"))


def _strongest_table(splits: Sequence[audits.SplitAudit]) -> report.Table:
    headings = ("split", "floor", "shortcut", *NUMBERS)
    columns = report.plain_columns(*headings, right=("floor", *NUMBERS))
    rows = [
        (
            each.split,
            report.share(each.floor),
            each.strongest,
            *_numbers(each.shortcuts[each.strongest]),
        )
        for each in splits
    ]
    return report.Table(columns, rows, left_out=("symbols", "words", "95 % interval"))


def verdict(found: audits.Audit) -> list[str]:
    """The result of an audit, as sentences."""
    tests = "the held-out words" if _only_held_out(found) else "the test words"
    if not found.test_splits:
        return [f"no position of {tests} is scored: there is no result"]
    if found.solved_by:
        others = f" (so do {', '.join(found.solved_by[1:])})" if found.solved_by[1:] else ""
        lines = [
            f"SOLVED: '{found.solved_by[0]}', which sees {_sees(found.solved_by[0])}, is right on "
            f"{audits.SOLVED:.0%} or more of {tests}{others}: accuracy there is no evidence of "
            "state tracking"
        ]
    elif found.helped_by:
        name, split = max(
            ((name, split) for name in found.helped_by for split in found.test_splits),
            key=lambda pair: pair[1].shortcuts[pair[0]].accuracy - pair[1].floor,
        )
        lines = [
            f"HELPED: '{name}', which sees {_sees(name)}, is right on "
            f"{report.share(split.shortcuts[name].accuracy)} of {split.split}, where the best "
            f"constant answer is right on {report.share(split.floor)}: compare accuracies with that"
        ]
    else:
        lines = [
            f"no shortcut is more than {audits.CLEARLY} above the best constant answer on {tests}"
        ]
    for split in found.test_splits:
        if split.floor >= audits.SOLVED:
            lines.append(
                f"a constant answer is right on {report.share(split.floor)} of {split.split}"
            )
    held_out = [name for name in found.held_out_solved_by if name not in found.solved_by]
    if held_out and not _only_held_out(found):
        lines.append(
            f"'{held_out[0]}', which sees {_sees(held_out[0])}, is right on {audits.SOLVED:.0%} or "
            f"more of {audits.HELD_OUT}: accuracy at training lengths is no evidence"
        )
    for split in found.splits:
        if split.in_training:
            lines.append(
                f"{report.share(split.in_training)} of the words of {split.split} are also "
                "training words"
            )
    return lines


def _only_held_out(found: audits.Audit) -> bool:
    return all(split.split == audits.HELD_OUT for split in found.test_splits)


def _sees(name: str) -> str:
    return audits.VIEWS[name].sees
