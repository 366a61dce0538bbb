"""The settings of the commands that draw words, `gen` and `audit`: they give options and docs.

Neither torch nor numpy is imported here.
"""

from __future__ import annotations

from typing import Literal

from statetrack.settings import GREATEST_SEED, Settings, option

MOST_WORDS = 10**15
"""The most words that can be asked for: whether the disk holds them is another question."""


class GenSettings(Settings):
    """The words of a dataset, apart from its task and its test lengths."""

    length: str = option("task", "Training lengths, as 2-10 or 500; `task`: the task's own.")
    samples: int = option(10_000, "Training words.", min=1, max=MOST_WORDS)
    validation_samples: int = option(
        1_000,
        "Validation words, of the training lengths but never among those.",
        min=0,
        max=MOST_WORDS,
    )
    test_samples: int = option(1_000, "Words at every test length.", min=0, max=MOST_WORDS)
    supervision: Literal["task", "every", "last"] = option(
        "task", "A label after every symbol, or after the last only; `task`: the task's own."
    )
    words: str = option(
        "task", "How words are drawn: task, uniform, group, group:NAME or weighted:FILE."
    )
    format: Literal["parquet", "jsonl", "npz", "csv", "lm-eval"] = option(
        "parquet", "The format of the files; `lm-eval`: tasks for lm-evaluation-harness."
    )
    text: Literal["tokens", "repl"] = option(
        "tokens",
        "With `lm-eval`, words as the names of symbols, or as a session of a Python interpreter.",
    )
    prompt: str = option(
        "{word} =>", "With `tokens`, what a model reads; {word} stands for the symbols' names."
    )
    reveal: float = option(
        0.0, "With `repl`, the share of states that are printed on the way.", min=0, max=1
    )
    seed: int = option(0, "The seed that all words come from.", min=0, max=GREATEST_SEED)


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
