"""Warnings, on standard error, about results that are no evidence of state tracking.

A shortcut is as accurate as the model, the training words are too short to identify the machine,
words hide its groups, the test words may have been trained on, logits are not finite, or a replica
diverged. `of` names the run, where there are several.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import typer

from statetrack.algebra.hidden_groups import hides_groups
from statetrack.algebra.machine import needed_machine
from statetrack.algebra.merging import merging_in
from statetrack.audit import SOLVED, VIEWS
from statetrack.predicting import identification_by
from statetrack.report.drawing import share

if TYPE_CHECKING:
    from statetrack.audit.answers import SplitScore
    from statetrack.runs.rows import EvaluationRow, Summary
    from statetrack.sources import LengthDistribution
    from statetrack.spec import Task, WordSpec


def warn_of_shortcuts(rows: Iterable[EvaluationRow], of: str = "") -> None:
    """One line for each shortcut that reaches the selected replica, with the lengths.

    It does at a length where its accuracy is not below the 95 % interval of the replica's.
    """
    lengths: dict[tuple[str, bool], list[EvaluationRow]] = {}
    for row in rows:
        name, found = row.shortcut, row.shortcut_accuracy
        if row.selected and name is not None and found is not None and found >= row.low:
            lengths.setdefault((name, found >= SOLVED), []).append(row)
    for (name, _), reached in lengths.items():
        last = reached[-1]
        assert last.shortcut_accuracy is not None
        _warn(of + _where(reached), last.accuracy, name, last.shortcut_accuracy)


def warn_of_split_shortcuts(scores: Iterable[SplitScore]) -> None:
    """One line for each split on which a shortcut reaches the answers that were scored."""
    for each in scores:
        name, found = each.shortcut, each.shortcut_accuracy
        if name is not None and found is not None and found >= each.low:
            _warn(f"on {each.split}", each.accuracy, name, found)


def warn_of_shortcut_in_validation(
    accuracy: float | None, strongest: tuple[str, float] | None
) -> None:
    """One line where a shortcut is as accurate on the validation words as the replica."""
    if accuracy is not None and strongest is not None and strongest[1] >= accuracy:
        _warn("on the validation words", accuracy, *strongest)


def warn_of_divergence(summary: Summary, of: str = "") -> None:
    """One line for each replica that diverged."""
    for outcome in summary.diverged:
        typer.echo(
            f"warning: {of}replica {outcome.replica} (seed {outcome.seed}, lr {outcome.lr:g}) "
            "diverged: no validation loss of it is finite, so it has no trained weights",
            err=True,
        )


def warn_of_nonfinite_logits(rows: Iterable[EvaluationRow], of: str = "") -> None:
    """One line for each replica with a logit that is NaN or infinite, with its first position."""
    first: dict[int, tuple[int, EvaluationRow]] = {}
    for row in rows:
        found = row.nonfinite_from
        if found is not None and (row.replica not in first or found < first[row.replica][0]):
            first[row.replica] = found, row
    for position, row in first.values():
        typer.echo(
            f"warning: {of}seed {row.seed}, lr {row.lr:g}: logits are NaN or infinite from length "
            f"{position:,}: such answers count as wrong",
            err=True,
        )


def warn_of_trained_lengths(
    rows: Iterable[EvaluationRow], trained: LengthDistribution, of: str = ""
) -> None:
    """One line where test words are not longer than those of training."""
    lengths = sorted({row.length for row in rows if row.length <= trained.longest})
    if lengths:
        where = f"at length {lengths[0]}"
        if len(lengths) > 1:
            where = f"at {len(lengths)} lengths from {lengths[0]} to {lengths[-1]}"
        typer.echo(
            f"warning: {of}{where} the test words may have been trained on: training has words of "
            f"up to {trained.longest} symbols",
            err=True,
        )


def warn_of_short_training_words(task: Task, words: WordSpec) -> None:
    """One line where words of the training lengths cannot identify the task's machine."""
    if not task.has_automaton:
        return
    machine = needed_machine(task.automaton)
    found = identification_by(words, machine)
    if found.by_words_up_to(words.lengths.longest) is False and found.replaced is not None:
        state, symbol, target = found.replaced
        names = machine.automaton.states
        typer.echo(
            f"warning: training words of {words.lengths} symbols do not identify {task.name}: the "
            f"machine in which {machine.automaton.symbols[symbol]} leads from {names[state]} to "
            f"{names[target]} gives them the same labels, and others to words of {found.needed} "
            "symbols; train on longer ones (--train-length)",
            err=True,
        )


def warn_of_hidden_groups_in_training(task: Task) -> None:
    """One line where random words of the test lengths hide groups of the task's machine."""
    length = max(task.spec.test_lengths)
    merging = merging_in(task.source, length)
    if merging is not None and hides_groups(task.source, length):
        typer.echo(
            f"warning: words of {task.name} hide its groups: {merging.summary}, so that a test at "
            f"length {length:,} asks for no more than these; {INSIDE}",
            err=True,
        )


def warn_of_hidden_groups(rows: Iterable[EvaluationRow], task: Task, of: str = "") -> None:
    """One line where test words, drawn as the task's, hide groups of its machine."""
    length = max((row.length for row in rows if row.words == task.words), default=0)
    merging = merging_in(task.source, length) if length else None
    if merging is not None and hides_groups(task.source, length):
        typer.echo(
            f"warning: {of}these words hide the groups of {task.name}: "
            f"{merging.limit_of(length)}; {INSIDE}",
            err=True,
        )


INSIDE = "train and test on words that stay inside a group as well (--words group)"
"""What is to be done about words that hide groups."""


def _where(rows: list[EvaluationRow]) -> str:
    first, last = rows[0].length, rows[-1].length
    if len(rows) == 1:
        return f"at length {last}"
    return f"at {len(rows)} lengths from {first} to {last}, at the last of them"


def _warn(where: str, accuracy: float, name: str, reached: float) -> None:
    sees = VIEWS[name].sees
    if reached >= SOLVED:
        told = (
            f"a shortcut that sees {sees} is right on {share(reached)}, the model on "
            f"{share(accuracy)}: this is no evidence of state tracking"
        )
    else:
        told = (
            f"the model is right on {share(accuracy)}, no better than a shortcut that sees {sees} "
            f"({share(reached)})"
        )
    typer.echo(f"warning: {where} {told}; `statetrack audit` gives details", err=True)
