"""The law is judged: its Brier score on machines that were trained after it was written down."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from statetrack.report.recorded import RecordedCell
from statetrack.text import markdown, markdown_code, markdown_table

HERE = Path(__file__).parent
PREDICTED, RECORDED = HERE / "predicted.json", HERE / "recorded.json"

What = Literal["cell", "replica"]
"""Whether some of a cell's replicas is right, which the criterion is about, or each of them."""

MOST_OF_BASE = 0.5
"""The share of the base rate's Brier score that the law's may be at most."""
RESAMPLED, RESAMPLED_SEED = 10_000, 0
"""How often machines are drawn with replacement for the intervals of scores."""
BINS = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0)
"""The ends of the ranges of chances in the table of calibration."""

Floats = npt.NDArray[np.float64]


def read_predicted() -> dict[str, Any]:
    """The law and what it said."""
    return dict(json.loads(PREDICTED.read_text("utf-8")))


def read_recorded() -> dict[tuple[str, str], RecordedCell]:
    """What was trained, by model and task; empty before anything was."""
    if not RECORDED.is_file():
        return {}
    cells = json.loads(RECORDED.read_text("utf-8"))["cells"]
    return {(cell["row"], cell["column"]): RecordedCell(**cell) for cell in cells}


def num_right(cell: RecordedCell, longest: int) -> int:
    """How many replicas are right on every word of every length beyond the longest of training."""
    right = 0
    for replica in range(len(cell.outcomes)):
        own = [row for row in cell.rows if row[0] == replica and row[1] > longest]
        right += bool(own) and all(words == whole for _, _, words, _, whole, _, _ in own)
    return right


@dataclass(frozen=True, eq=False)
class Judged:
    """The cells whose machine was trained with all its models, as arrays of N cells."""

    models: Sequence[str]
    tasks: Sequence[str]
    right: Floats
    """The share of right replicas."""
    replicas: Floats
    said: Mapping[tuple[What, str], Floats]
    """By what is said: the chances of the `law`, those of the `base` rate, those of the `model`."""

    @classmethod
    def of(
        cls, predicted: Mapping[str, Any], recorded: Mapping[tuple[str, str], RecordedCell]
    ) -> Judged:
        """What was said beside what was found."""
        every = predicted["said"]
        waiting = {row["task"] for row in every if (row["model"], row["task"]) not in recorded}
        rows = [row for row in every if row["task"] not in waiting]
        found = [recorded[row["model"], row["task"]] for row in rows]
        replicas = np.array([len(cell.outcomes) for cell in found], float)
        right = [num_right(cell, row["longest"]) for cell, row in zip(found, rows, strict=True)]
        said: dict[tuple[What, str], Floats] = {}
        whats: tuple[What, ...] = ("cell", "replica")
        for what in whats:
            said[what, "law"] = np.array([row[what][0] for row in rows])
            said[what, "base"] = np.full(len(rows), predicted[what]["base"])
            said[what, "model"] = np.array([row[f"{what} of model"] for row in rows])
        models, tasks = [row["model"] for row in rows], [row["task"] for row in rows]
        return cls(models, tasks, np.array(right) / np.maximum(replicas, 1), replicas, said)

    def outcome(self, what: What) -> Floats:
        """Of each cell, 1 where some replica is right; or the share of them."""
        return (self.right > 0).astype(float) if what == "cell" else self.right

    def losses(self, what: What, by: str) -> Floats:
        """Of each cell, the mean squared difference of a chance from what its replicas, or it, did.

        Of a share r of right replicas and a chance p it is r (1 - p)^2 + (1 - r) p^2. Beside the
        predictors of `said`, `hindsight` says the share of all judged cells.
        """
        outcome = self.outcome(what)
        if by == "hindsight":
            chances = np.full(len(outcome), outcome.mean())
        else:
            chances = self.said[what, by]
        losses: Floats = outcome * (1 - chances) ** 2 + (1 - outcome) * chances**2
        return losses

    def score(self, what: What, by: str) -> float:
        """The Brier score."""
        return float(self.losses(what, by).mean())

    def ratio(self, what: What, against: str) -> tuple[float, float, float]:
        """The law's score over another's, with its 95 % interval over machines."""
        law, other = self.losses(what, "law"), self.losses(what, against)
        machines = list(dict.fromkeys(self.tasks))
        place = np.array([machines.index(task) for task in self.tasks])
        sums = [np.bincount(place, each, len(machines)) for each in (law, other)]
        generator = np.random.default_rng(RESAMPLED_SEED)
        drawn = generator.integers(len(machines), size=(RESAMPLED, len(machines)))
        ratios = sums[0][drawn].sum(1) / sums[1][drawn].sum(1)
        low, high = np.quantile(ratios, (0.025, 0.975))
        return float(law.sum() / other.sum()), float(low), float(high)

    @property
    def passes(self) -> bool:
        """Whether the law is good enough: against the base rate of the map, and in hindsight."""
        return all(self.ratio("cell", by)[0] <= MOST_OF_BASE for by in ("base", "hindsight"))


def region() -> str:
    """What the page says of the record: what was said, and what was found."""
    predicted, recorded = read_predicted(), read_recorded()
    judged = Judged.of(predicted, recorded)
    every = len({row["task"] for row in predicted["said"]})
    return "\n".join([*_checked(predicted), *_judged(judged, every), *_said(predicted, judged)])


def _checked(predicted: Mapping[str, Any]) -> Iterator[str]:
    """The check on the map itself."""
    yield (
        f"The law is fitted on {predicted['cells']} cells of the map, {predicted['machines']} "
        f"machines (record {predicted['map']}). Left out machine by machine, its Brier score is:\n"
    )
    yield markdown_table(
        ["chance that", "law", "share of all cells", "share of the model's cells"],
        [
            [says, *(f"{predicted[what]['left out'][by]:.3f}" for by in ("law", "base", "model"))]
            for what, says in SAYS.items()
        ],
    )


SAYS: Mapping[What, str] = {"cell": "some of three seeds is right", "replica": "a seed is right"}


def _judged(judged: Judged, every: int) -> Iterator[str]:
    """The verdict, where some of every machine were trained."""
    yield "## On machines that were held out\n"
    machines = len(set(judged.tasks))
    if not machines:
        yield "None is trained yet.\n"
        return
    learned = int(judged.outcome("cell").sum())
    yield (
        f"Trained are {machines} of {every} machines, {len(judged.tasks)} cells, "
        f"{int(judged.replicas.sum())} replicas; {learned} cells "
        f"({learned / len(judged.tasks):.0%}) are learned. "
        f"**By the criterion the law {'passes' if judged.passes else 'fails'}.**\n"
    )
    lines = []
    for what, says in SAYS.items():
        lines.append([says, f"{judged.score(what, 'law'):.3f}"])
        for by in ("base", "hindsight", "model"):
            ratio, low, high = judged.ratio(what, by)
            lines[-1].append(f"{judged.score(what, by):.3f}: {ratio:.2f} ({low:.2f} to {high:.2f})")
    heads = ["share of the map", "share of these cells", "share of the model on the map"]
    yield markdown_table(["chance that", "law", *heads], lines)
    yield "A Brier score is followed by the law's over it, with the 95 % interval over machines.\n"
    yield from _calibration(judged)
    yield from _by("model", judged, judged.models)
    yield from _by("task", judged, judged.tasks)


def _calibration(judged: Judged) -> Iterator[str]:
    chances, outcome = judged.said["cell", "law"], judged.outcome("cell")
    lines = []
    for low, high in itertools.pairwise(BINS):
        inside = (chances >= low) & ((chances < high) | (high == BINS[-1]))
        if inside.any():
            said, found = chances[inside].mean(), outcome[inside]
            lines.append(
                [f"{low} to {high}", f"{inside.sum()}", f"{said:.2f}", f"{found.mean():.2f}"]
            )
    yield "### Calibration\n"
    yield markdown_table(["chance said", "cells", "mean chance", "share learned"], lines)


def _by(what: str, judged: Judged, names: Sequence[str]) -> Iterator[str]:
    """Where the law is wrong: a line for each model, or task, the worst first."""
    losses = {by: judged.losses("cell", by) for by in ("law", "base")}
    chances, outcome = judged.said["cell", "law"], judged.outcome("cell")
    rows: list[tuple[float, list[str]]] = []
    for name in dict.fromkeys(names):
        own = np.array([each == name for each in names])
        numbers = [losses["law"][own], losses["base"][own], chances[own], outcome[own]]
        share = outcome[~own].mean()
        others = f"{losses['law'][~own].mean():.3f}, {share * (1 - share):.3f}"
        means = [f"{each.mean():.3f}" for each in numbers]
        rows.append((numbers[0].sum(), [markdown(name), str(own.sum()), *means, others]))
    rows.sort(key=lambda row: -row[0])
    yield f"### By {what}\n"
    yield markdown_table(
        [*(what, "cells", "law", "share of the map", "mean chance", "share learned"), "of others"],
        [cells for _, cells in rows],
    )
    yield (
        f"*Of others*: scores of the law and of the share that is learned, without this {what}.\n"
    )


def _said(predicted: Mapping[str, Any], judged: Judged) -> Iterator[str]:
    """Every chance that was said, with its interval, and the right replicas of trained machines."""
    found = {
        (model, task): f"**{round(share * replicas)}/{round(replicas)}**, "
        for model, task, share, replicas in zip(
            judged.models, judged.tasks, judged.right, judged.replicas, strict=True
        )
    }
    models = list(dict.fromkeys(row["model"] for row in predicted["said"]))
    cells = {(row["model"], row["task"]): row["cell"] for row in predicted["said"]}
    lines = []
    for task in dict.fromkeys(row["task"] for row in predicted["said"]):
        lines.append([markdown_code(task)])
        for model in models:
            said = cells.get((model, task))
            told = "" if said is None else f"{said[0]:.2f} ({said[1]:.2f} to {said[2]:.2f})"
            lines[-1].append(found.get((model, task), "") + told)
    yield "## What was said\n"
    yield (
        "The chance that some of three seeds is right, with its interval; before it, of machines "
        "that are trained, how many are. Where there is none, the model cannot.\n"
    )
    yield markdown_table(["machine", *models], lines)
