"""Weights & Biases: a run in `RUN/wandb`, offline unless WANDB_MODE says otherwise.

Offline, nothing is sent anywhere; `wandb sync RUN/wandb/offline-run-*` sends it when you want.
`pip install '.[wandb]'` installs wandb.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path

from statetrack.runs.loggers import LOGS, Log, Logged, Scalars, name_of
from statetrack.runs.rows import EvaluationRow, Summary

OFFLINE: Mapping[str, str] = {"WANDB_MODE": "offline", "WANDB_ERROR_REPORTING": "false"}
"""The environment of wandb, where the user has not set these variables."""

MODE = "WANDB_MODE"


@LOGS.register("wandb")
class Wandb(Log):
    """One run of wandb, with the numbers of every replica under its name."""

    needs, extra = "wandb", "wandb"

    def __init__(self, run: Logged, folder: Path) -> None:
        super().__init__(run, folder)
        wandb = self.require()
        for name, value in OFFLINE.items():
            os.environ.setdefault(name, value)
        place = hashlib.sha256(str(run.path.resolve()).encode()).hexdigest()[:16]
        self._run = wandb.init(
            dir=str(folder.parent),
            id=place,
            name=run.name,
            config=dict(run.settings),
            resume="allow" if os.environ[MODE] == "online" else None,
            reinit="create_new",
            mode=os.environ[MODE],
            settings=wandb.Settings(
                silent=True, console="off", save_code=False, disable_git=True, x_disable_stats=True
            ),
        )

    @classmethod
    def keeps(cls) -> bool:
        """What was sent stays there, and a session that goes on sends only what is new."""
        return os.environ.get(MODE, OFFLINE[MODE]) == "online"

    def _name(self, name: str, replica: int) -> str:
        return f"{name}/{name_of(self.run.replicas[replica])}"

    def write(self, scalars: Sequence[Scalars]) -> None:
        """The numbers of all replicas at a step together."""
        for step, ones in groupby(scalars, key=lambda one: one.step):
            values = {
                self._name(name, one.replica): value
                for one in ones
                for name, value in one.values.items()
            }
            self._run.log(values, step=step)

    def end(self, summary: Summary) -> None:
        """The best validation of each replica, in wandb's summary."""
        for one in summary.replicas:
            for name in ("validation_accuracy", "validation_loss", "best_step"):
                self._run.summary[self._name(f"outcome/{name}", one.replica)] = getattr(one, name)

    def test(self, rows: Sequence[EvaluationRow]) -> None:
        """The accuracy at each length, in wandb's summary."""
        for row in rows:
            name = f"test/{row.task}/length-{row.length}/accuracy"
            self._run.summary[self._name(name, row.replica)] = row.accuracy

    def close(self) -> None:
        """End the run of wandb."""
        self._run.finish()
