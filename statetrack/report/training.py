"""How the cells of a suite were trained, in words made from the settings of their runs.

Nothing here is typed in a suite's file, so it cannot differ from what was done.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from statetrack.runs import Experiment
from statetrack.text import markdown
from statetrack.training import OPTIMISERS, TrainSettings

USUAL = "nothing more"
"""What is said of rows that do nothing of what others do."""


@dataclass(frozen=True)
class TrainedPoint:
    """A cell of a suite by its row and column, and the settings of its run."""

    row: str
    column: str
    experiment: Experiment


@dataclass(frozen=True)
class Training:
    """What is common to all cells of a suite, and what differs between some."""

    common: str
    differing: Sequence[tuple[str, str]]
    """Names of rows (or columns, or cells), and what is so in these only."""


def training_of(cells: Sequence[TrainedPoint]) -> Training:
    """Loss, optimiser, rates, steps, words and seeds of a suite's cells."""
    facts = [(cell, _facts(cell.experiment)) for cell in cells]
    shared = {key: {of[key] for _, of in facts} for key in facts[0][1]}
    common = "; ".join(
        each for values in shared.values() if len(values) == 1 and (each := next(iter(values)))
    )
    varying = [key for key, values in shared.items() if len(values) > 1]
    said = [(cell, "; ".join(filter(None, (of[key] for key in varying)))) for cell, of in facts]
    return Training(common, _by_name(said) if varying else ())


def training_lines(training: Training) -> list[str]:
    """The lines for a terminal."""
    lines = [f"trained with: {training.common}"]
    return lines + [f"  {names}: {what or USUAL}" for names, what in training.differing]


def training_markdown(training: Training, reference: str, departures: str) -> str:
    """The same in Markdown, and what differs from the paper."""
    text = f"Trained with: {markdown(training.common)}.\n"
    if training.differing:
        text += "\n" + "".join(
            f"- {markdown(names)}: {markdown(what or USUAL)}\n"
            for names, what in training.differing
        )
    if departures:
        text += f"\nOtherwise than in {markdown(reference)}: {markdown(departures)}\n"
    return text


def _by_name(said: Sequence[tuple[TrainedPoint, str]]) -> list[tuple[str, str]]:
    """What is said of each row; of each column, or of each cell, where rows are not enough."""
    names: Sequence[Callable[[TrainedPoint], str]] = (
        lambda cell: cell.row,
        lambda cell: cell.column,
        lambda cell: f"{cell.row} on {cell.column}",
    )
    for name in names:
        found: dict[str, str] = {}
        if all(found.setdefault(name(cell), what) == what for cell, what in said):
            break
    alike: dict[str, list[str]] = {}
    for each, what in found.items():
        alike.setdefault(what, []).append(each)
    return [("; ".join(together), what) for what, together in alike.items()]


def _facts(experiment: Experiment) -> Mapping[str, str]:
    """Each fact of a run's training in words; empty for what is not done."""
    training, data = experiment.training, experiment.data
    words = experiment.words_of()
    rates = ", ".join(f"{rate:g}" for rate in training.lrs)
    last_seed = training.seed + training.seeds - 1
    return {
        "loss": training.loss
        + (f" ({training.label_smoothing:g})" if training.loss == "smoothed-cross-entropy" else ""),
        "optimiser": _optimiser(training),
        "rates": f"learning rate {rates}"
        if len(training.lrs) == 1
        else f"the best of learning rates {rates}",
        "schedule": f"{training.schedule} schedule"
        + (f" after a warm-up of {training.warmup:.0%}" if training.warmup else ""),
        "clip": f"gradients clipped at {training.clip:g}" if training.clip else "",
        "steps": f"{training.steps:,} steps{_extensions(training)}",
        "batch": f"{training.batch_size:,} words a step",
        "lengths": f"words of {words.lengths} symbol{'' if str(words.lengths) == '1' else 's'}",
        "curriculum": f"the longest reached after {data.curriculum:.0%} of the steps"
        if data.curriculum
        else "",
        "samples": f"{data.train_samples:,} words in all" if data.train_samples else "",
        "labels": f"a label after {'the last' if words.supervision == 'last' else 'every'} symbol",
        "robust": _robust(training),
        "finish": "finished exactly" if training.finish == "exact" else "",
        "freeze": "the readout alone" if training.freeze == "recurrence" else "",
        "precision": training.precision if training.precision != "float32" else "",
        "seeds": f"seed {training.seed}"
        if training.seeds == 1
        else f"seeds {training.seed}-{last_seed}",
    }


def _extensions(training: TrainSettings) -> str:
    """That training was extended, and the schedule of each part where it makes a difference."""
    if not training.extended_at:
        return ""
    at = " and ".join(f"{step:,}" for step in training.extended_at)
    if training.schedule == "constant" and not training.warmup:
        return f" (extended at {at})"
    return f" (extended at {at}; the schedule of each part is that of a training to its end)"


def _robust(training: TrainSettings) -> str:
    if training.robust == "none":
        return ""
    size = f" of size {training.robust_size:g}" if training.robust_size else ""
    return f"robust training by {training.robust}{size} after {training.robust_start:.0%}"


def _optimiser(training: TrainSettings) -> str:
    uses = OPTIMISERS[training.optimizer].uses
    about = [
        f"{name} {getattr(training, name):g}"
        for name in ("beta1", "beta2", "epsilon")
        if name in uses
    ]
    if training.weight_decay:
        about.append(f"weight decay {training.weight_decay:g}")
    return training.optimizer + (f" ({', '.join(about)})" if about else "")
