"""Shortcuts of a run: the accuracy of predictors that follow no state on the same words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from statetrack.audit import Shortcuts, best_by_length, draw_tests
from statetrack.data import BatchStream
from statetrack.sources import Batch
from statetrack.spec import Task
from statetrack.training import TaskWords

FITTED_WORDS, FITTED_SYMBOLS = 2048, 2**16
"""The most training words of a run, and symbols in them, that shortcuts are fitted on."""

Found = tuple[str, float]
"""A shortcut's name, and its accuracy."""


def strongest_in_validation(words: TaskWords, seed: int) -> Found | None:
    """The shortcut that is right most often on the validation words of a seed.

    Counted over all scored positions, as the validation accuracy of a replica is; None where
    nothing is scored.
    """
    stream, held_out = words.of_seed(seed)
    shortcuts = _fitted(words, stream)
    if shortcuts is None or not held_out.scored.any():
        return None
    measured = shortcuts.measure(held_out, [held_out.longest])[held_out.longest]
    name = max(measured, key=lambda name: measured[name].symbol_accuracy)
    return name, measured[name].symbol_accuracy


def strongest_by_length(
    words: TaskWords, tested: Task, lengths: Sequence[int], num_words: int, seed: int
) -> dict[int, Found]:
    """The shortcut that is right most often at the last scored position of the test words.

    Shortcuts are fitted on training words of the run, and measured on test words of the task that
    it is tested on. Lengths without scored positions, or with too many symbols, are left out.
    """
    parts = list(draw_tests(tested, lengths, num_words, seed, words.lengths.longest))
    if not parts:
        return {}
    stream, _ = words.of_seed(words.training.seed)
    shortcuts = _fitted(words, stream)
    return {} if shortcuts is None else best_by_length(shortcuts, parts)


def _fitted(words: TaskWords, stream: BatchStream) -> Shortcuts | None:
    """The shortcuts of a run's training words; None where no position of them is scored."""
    num_words = max(1, min(FITTED_WORDS, FITTED_SYMBOLS // words.lengths.longest))
    drawn = stream.block(0, 1, num_words)[0]
    arrays = drawn.symbols, drawn.labels, drawn.scored, drawn.lengths
    content = tuple((array.dtype.str, array.shape, array.tobytes()) for array in arrays)
    return _fitted_on(_Drawn(content, drawn)) if drawn.scored.any() else None


@dataclass(frozen=True)
class _Drawn:
    """Words, equal to all that hold the same symbols and labels."""

    content: tuple[tuple[str, tuple[int, ...], bytes], ...]
    words: Batch = field(compare=False)


@lru_cache(maxsize=4)
def _fitted_on(drawn: _Drawn) -> Shortcuts:
    """Runs of several models, and a run and its test, are trained on the same words."""
    return Shortcuts(drawn.words)
