"""Warnings, on standard error, about results that are no evidence of state tracking.

A shortcut is as accurate as the model, the training words are too short to identify the machine,
words hide its groups, the test words may have been trained on, logits are not finite, or a replica
diverged. `of` names the run, where there are several. All are printed by `say_warnings`, which
counts what is said of several runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from statetrack import algebra, audit, report, runs, sources, spec
from statetrack.cli._terminal import warn
from statetrack.errors import RunError

if TYPE_CHECKING:
    from statetrack.scoring import Score


def warn_of_shortcuts(rows: Iterable[runs.EvaluationRow], of: str = "", on: str = "") -> None:
    """One line for each shortcut that reaches the selected replica, with the lengths.

    `on` begins it, and names the words where there are several kinds.

    It does at a length where its accuracy is not below the 95 % interval of the replica's. Where
    the best constant answer is not either, one line says so of all such lengths: that is decided by
    the floor, which is exact, and not by how often a constant is right on these words.
    """
    lengths: dict[tuple[str, str], list[runs.EvaluationRow]] = {}
    for row in rows:
        name, found = row.shortcut, row.shortcut_accuracy
        if row.selected and name is not None and found is not None and found >= row.low:
            standing = _standing(row, found)
            if name == "constant" and standing not in ("solves", "floor"):
                continue
            key = ("constant" if standing == "floor" else name, standing)
            lengths.setdefault(key, []).append(row)
    for (name, standing), reached in lengths.items():
        last = reached[-1]
        assert last.shortcut_accuracy is not None
        told = _told(last, audit.VIEWS[name].shortcut, last.shortcut_accuracy)
        warn(f"{on}{_where(reached)} {told}{DETAILS}", of, f"{on}{ALIKE[standing]}{DETAILS}")


def warn_of_split_shortcuts(scores: Iterable[audit.SplitScore]) -> None:
    """One line for each split on which a shortcut reaches the answers that were scored."""
    for each in scores:
        name, found = each.shortcut, each.shortcut_accuracy
        if name is not None and found is not None and found >= each.low:
            told = _told(each, audit.VIEWS[name].shortcut, found, more="")
            warn(f"on {each.split} {told}{DETAILS}")


DETAILS = "; `statetrack audit` gives details"

ALIKE = {
    "solves": "a shortcut is right wherever the model is: this is no evidence of state tracking",
    "floor": "the model is not above the best constant answer",
    **dict.fromkeys(("above", "equal", "within"), "the model is not above a shortcut"),
}
"""What a shortcut shows of several models."""


def _standing(row: Score, found: float) -> str:
    """How the accuracy of a shortcut stands to that of a model that it is not clearly below."""
    if found >= audit.SOLVED:
        return "solves"
    if row.low <= row.floor:  # then what shortcuts reach tells nothing of the model
        return "floor"
    return "above" if found > row.high else "equal" if found == row.accuracy else "within"


def _told(row: Score, shortcut: str, found: float, more: str = " (more: --samples)") -> str:
    reached, interval = report.share(found), report.interval(row.low, row.high)
    right = f"right on {report.share(row.accuracy)}"
    words = "1 word does" if row.sequences == 1 else f"{row.sequences:,} words do"
    return {
        "solves": f"{shortcut} is right on {reached}, the model on {report.share(row.accuracy)}: "
        "this is no evidence of state tracking",
        "floor": f"the model is {right} (95 % interval {interval}), not above the best constant "
        f"answer ({report.share(row.floor)})",
        "above": f"the model is {right}, and {shortcut} on more ({reached})",
        "equal": f"the model is {right}, no more than {shortcut}",
        "within": f"the model is {right} (95 % interval {interval}), and {shortcut} on {reached}: "
        f"{words} not tell them apart{more}",
    }[_standing(row, found)]


def validation_remark(
    accuracy: float | None,
    strongest: tuple[str, float] | None,
    *,
    lengths: object,
    task: str,
    run: str,
    test_length: int,
    predicted: str = "",
) -> str:
    """What the accuracy of validation does not show, where a shortcut has it too; or empty.

    Both are shares of the labels. Validation words have the training `lengths`; `test_length` is
    one that may be tested, and `run` and `task` are what the commands that are named take, as
    `predicted` is of `predict`, where it says something of the model.
    """
    if accuracy is None or strongest is None or strongest[1] < accuracy:
        return ""
    view, found = audit.VIEWS[strongest[0]], strongest[1]
    of = f"validation words, which have the training lengths ({lengths}),"
    if accuracy < audit.SOLVED:
        more = "no fewer" if report.share(found) == report.share(accuracy) else "more"
        return (
            f"warning: the model is right on {report.share(accuracy)} of the labels of {of} and "
            f"{view.shortcut} on {more} ({report.share(found)}): it has not learned the task; "
            + (
                f"`statetrack predict {predicted}` says whether it can: if so, "
                if predicted
                else ""
            )
            + "train it for more --steps, or with other --lrs or --seeds"
        )
    evaluate = f"`statetrack eval {run} --length {test_length}`"
    both = f"right on {report.share(found)} of their labels, the model on {report.share(accuracy)}"
    if view.counts_all:  # longer words have keys that it has never met
        return (
            f"note: accuracy on {of} is not yet state tracking: a table of {view.sees}, made from "
            f"training words, is {both}. It has no answer for longer words: {evaluate} tells the "
            "two apart"
        )
    return (
        f"warning: accuracy on {of} is no evidence of state tracking: {view.shortcut} is {both}. "
        f"`statetrack audit {task}` says whether longer words ask for more, and {evaluate} what "
        "the model does there"
    )


def warn_of_divergence(summary: runs.Summary, of: str = "") -> None:
    """One line that names the replicas that diverged, if any did."""
    diverged = summary.diverged
    names = [
        f"replica {each.replica} (seed {each.seed}, lr {each.lr:g}{_since(each)})"
        for each in diverged
    ]
    has = "it has no trained weights" if len(names) == 1 else "they have no trained weights"
    if names:
        warn(
            f"{_several(names, 'replicas')} diverged: no validation loss is finite, so {has}",
            of,
            "replicas diverged: no validation loss is finite, so they have no trained weights",
        )


def _since(outcome: runs.Outcome) -> str:
    at = outcome.diverged_at
    return "" if at is None else f", training loss not finite from step {at:,}"


def warn_of_nonfinite_logits(rows: Iterable[runs.EvaluationRow], of: str = "") -> None:
    """One line where a logit is NaN or infinite: of which replicas, and the first position."""
    first: dict[str, int] = {}
    for row in rows:
        if (found := row.nonfinite_from) is not None:
            name = f"seed {row.seed}, lr {row.lr:g}"
            first[name] = min(found, first.get(name, found))
    if first:
        warn(
            f"{_several(list(first), 'replicas', '; ')}: logits are NaN or infinite from length "
            f"{min(first.values()):,}: such answers count as wrong",
            of,
            "logits are NaN or infinite: such answers count as wrong",
        )


MOST_NAMED = 3
"""The most replicas that a line names."""


def _several(names: list[str], plural: str, between: str = ", ") -> str:
    """Names with commas between; of many the first, and how many there are."""
    if len(names) <= MOST_NAMED:
        return between.join(names)
    return f"{len(names)} {plural} ({names[0]}{between}...)"


def warn_of_trained_lengths(
    rows: Iterable[runs.EvaluationRow], trained: sources.LengthDistribution, of: str = ""
) -> None:
    """One line where test words are not longer than those of training."""
    lengths = sorted({row.length for row in rows if row.length <= trained.longest})
    if lengths:
        where = f"at length {lengths[0]:,}"
        if len(lengths) > 1:
            where = f"at {len(lengths)} lengths from {lengths[0]:,} to {lengths[-1]:,}"
        warn(
            f"{where} the test words may have been trained on: training has words of "
            f"up to {trained.longest:,} symbols",
            of,
            "some test words may have been trained on, since they are not longer",
        )


def warn_of_unreadable(runs: Mapping[str, str], number: int) -> None:
    """One line where some of so many runs could not be read; `runs` has why, by path.

    Raises `RunError` where none could be.
    """
    if not runs:
        return
    path, why = next(iter(runs.items()))
    told = why if path in why else f"{path}: {why}"
    if len(runs) == number:
        others = f" (and {number - 1:,} more cannot be read)" if number > 1 else ""
        raise RunError(told + others)
    warn(f"{len(runs):,} of {number:,} runs cannot be read: {told}{', ...' * (len(runs) > 1)}")


def warn_of_short_training_words(task: spec.Task, words: spec.WordSpec) -> None:
    """One line where words of the training lengths cannot identify the task's machine."""
    if not task.has_automaton:
        return
    machine = algebra.needed_machine(task.automaton)
    from statetrack.predicting import identification_by

    found = identification_by(words, machine)
    if found.by_words_up_to(words.lengths.longest) is False and found.replaced is not None:
        state, symbol, target = found.replaced
        names = machine.automaton.states
        warn(
            f"training words of {words.lengths} symbols do not identify {task.name}: the "
            f"machine in which {machine.automaton.symbols[symbol]} leads from {names[state]} to "
            f"{names[target]} gives them the same labels, and others to words of {found.needed} "
            "symbols; train on longer ones (--train-length)"
        )


def warn_of_hidden_groups_in_training(task: spec.Task) -> None:
    """One line where random words of the test lengths hide groups of the task's machine."""
    length = max(task.spec.test_lengths)
    merging = algebra.merging_in(task.source, length)
    if merging is not None and algebra.hides_groups(task.source, length):
        warn(
            f"words of {task.name} hide its groups: {merging.summary}, so that a test at "
            f"length {length:,} asks for no more than these; {INSIDE}"
        )


def warn_of_hidden_groups(
    rows: Iterable[runs.EvaluationRow], task: spec.Task, of: str = "", *, told: bool = False
) -> None:
    """One line where test words, drawn as the task's, hide groups of its machine.

    How soon they merge states is left out where that is `told` elsewhere.
    """
    length = max((row.length for row in rows if row.words == task.words), default=0)
    merging = algebra.merging_in(task.source, length) if length else None
    if merging is not None and algebra.hides_groups(task.source, length):
        how = "" if told else f": {merging.limit_of(length)}"
        warn(f"these words hide the groups of {task.name}{how}; {INSIDE}", of)


INSIDE = "train and test on words that stay inside a group as well (--words group)"
"""What is to be done about words that hide groups."""


def _where(rows: list[runs.EvaluationRow]) -> str:
    first, last = rows[0].length, rows[-1].length
    if len(rows) == 1:
        return f"at length {last:,}"
    return f"at {len(rows)} lengths from {first:,} to {last:,}, at the last of them"
