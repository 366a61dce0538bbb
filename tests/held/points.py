"""The points of the record: a model with exact weights on a task, trained on under a condition.

Weights are set by construction (`build`), at the model's default settings or at the sizes that the
construction needs. The readout is then scaled to where the squared error is least, so that training
does not begin with a readout of the wrong size. Training goes on from them for `STEPS` steps at the
model's own learning rates, with its own schedule, without what solves for operators at the end. It
is validated after the last step alone, so that what is evaluated is what training ended with, of
`SEEDS` seeds, which differ in their words. A point is *kept* where a seed has every answer right at
all `LENGTHS`.
"""

from __future__ import annotations

import contextlib
import io
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.nn.functional import one_hot

from statetrack.constructions import NotBuilt, build
from statetrack.errors import StatetrackError
from statetrack.runs import Run, write_built
from statetrack.scoring import horizon
from statetrack.spec import Task, load_task
from tests.claims.cells import Variant, variants

STEPS, SEEDS = 200, 2
LENGTHS, WORDS = (20, 50, 100, 200, 500), 200
NOISE = 0.03
"""The deviation of what is added to exact weights where training is to sharpen them."""

TASKS = ("parity", "s3", "flip-flop")
"""One whose states are signs, a group that is not abelian, and states that are reset."""

CONDITIONS: Mapping[str, Mapping[str, Any]] = {
    "squared error": {"loss": "squared-error"},
    "cross-entropy": {"loss": "cross-entropy"},
    "weight decay": {"loss": "squared-error", "optimizer": "adamw", "weight_decay": 0.1},
    "bfloat16": {"loss": "squared-error", "precision": "bfloat16"},
    "from noise": {"loss": "squared-error"},
}
"""The settings of training; before the last, noise is added to the weights."""


@dataclass(frozen=True)
class HeldPoint:
    """A model on a task under a condition."""

    variant: Variant
    task: str
    condition: str

    @property
    def place(self) -> tuple[str, str, str]:
        """The name of the model with its options, the task and the condition."""
        return self.variant.name, self.task, self.condition

    def measure(self) -> dict[str, Any]:
        """The row of the record: horizons before and after, and how many seeds are right.

        `before` and `after` are the longest lengths of `LENGTHS` up to which every word is right,
        of the weights that training begins with and of the best seed, and `learned` is its share of
        right words of the training lengths; where there is no construction, or the weights cannot
        be trained on, `refused` says why.
        """
        started = time.process_time()
        row: dict[str, Any] = dict(zip(("model", "task", "condition"), self.place, strict=True))
        try:
            with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
                row |= self._measure(Path(folder))
        except (NotBuilt, StatetrackError) as why:
            row["refused"] = " ".join(str(why).split())
        return row | {"seconds": round(time.process_time() - started, 1)}

    def _measure(self, folder: Path) -> dict[str, Any]:
        task = load_task(self.task)
        noise = NOISE if self.condition == "from noise" else 0.0
        model = self.variant.model
        found = build(task, model, noise=noise, **dict(self.variant.options))
        _scale_readout(found.model, task)
        exact = write_built(found, task, model, folder / "exact")
        begun = exact.evaluate(LENGTHS, num_words=WORDS).rows
        held = Run.start(
            start_from=exact,
            out=folder / "held",
            steps=STEPS,
            validate_every=STEPS,
            seeds=SEEDS,
            finish="none",
            **CONDITIONS[self.condition],
        )
        for _ in held.train():
            pass
        trained = held.summary.replicas
        ends = {outcome.best_step for outcome in trained if not outcome.diverged}
        assert ends <= {STEPS}, "what is evaluated is what training ended with"
        rows = held.evaluate(LENGTHS, num_words=WORDS, everyone=True).rows
        own = [[row for row in rows if row.replica == replica] for replica in range(len(trained))]
        return {
            "replicas": len(trained),
            "lrs": list(held.experiment.training.lrs),
            "learned": max(one.validation_prefix_accuracy or 0.0 for one in trained),
            "before": horizon(begun),
            "after": max((horizon(each) for each in own if each), default=0),
            "kept": sum(bool(each) and all(row.all_right for row in each) for each in own),
        }


@torch.no_grad()
def _scale_readout(model: Any, task: Task) -> None:
    """Multiply the readout by the number with which the squared error on some words is least."""
    batch = task.sample(64, length=10, seed=0)
    scored = torch.from_numpy(batch.scored)
    logits = model(torch.from_numpy(batch.symbols).long()).double()[scored]
    labels = torch.from_numpy(batch.labels).long()[scored]
    targets = one_hot(labels, task.source.num_labels).double()
    logits, targets = (each - each.mean(-1, keepdim=True) for each in (logits, targets))
    for part in model.readout.parameters():
        part *= (logits * targets).sum() / logits.square().sum()


def all_points() -> Iterator[HeldPoint]:
    """Every model and variant on every task under every condition, model by model.

    Additive terms of linear models are left out: what they change is no question of learning.
    """
    for variant in variants():
        if "additive" not in dict(variant.options):
            for task in TASKS:
                for condition in CONDITIONS:
                    yield HeldPoint(variant, task, condition)
