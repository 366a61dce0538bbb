"""TensorBoard's event files, by tensorboardX: `tensorboard --logdir RUN/tensorboard`.

Every replica has a folder of its own, so that TensorBoard draws its curves over those of the
others. `pip install '.[tensorboard]'` installs tensorboardX.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from statetrack.runs.loggers import LOGS, Log, Logged, Scalars, name_of
from statetrack.runs.rows import EvaluationRow, Summary


@LOGS.register("tensorboard")
class TensorBoard(Log):
    """Event files, one a replica."""

    needs, extra = "tensorboardX", "tensorboard"

    def __init__(self, run: Logged, folder: Path) -> None:
        super().__init__(run, folder)
        self._package = self.require()
        self._writers: dict[int, Any] = {}

    def _writer(self, index: int) -> Any:
        """The writer of a replica, which begins with its settings."""
        if index not in self._writers:
            replica = self.run.replicas[index]
            writer = self._package.SummaryWriter(str(self.folder / name_of(replica)))
            self._writers[index] = writer
            settings = {**self.run.settings, "seed": replica.seed, "lr": replica.lr}
            known = {
                name: value if isinstance(value, bool | int | float | str) else str(value)
                for name, value in settings.items()
            }
            parts = self._package.summary.hparams(known, {"outcome/validation_accuracy": 0.0})
            for part in parts:
                writer.file_writer.add_summary(part)
        return self._writers[index]

    def write(self, scalars: Sequence[Scalars]) -> None:
        """One scalar for each number: `loss`, `accuracy`, `validation_loss` and so on."""
        for one in scalars:
            writer = self._writer(one.replica)
            for name, value in one.values.items():
                writer.add_scalar(name, value, one.step)

    def end(self, summary: Summary) -> None:
        """The best validation of each replica, at the step that it was found."""
        for one in summary.replicas:
            for name in ("validation_accuracy", "validation_loss"):
                value = getattr(one, name)
                if value is not None:
                    self._writer(one.replica).add_scalar(f"outcome/{name}", value, one.best_step)

    def test(self, rows: Sequence[EvaluationRow]) -> None:
        """The accuracy by length, which stands in place of the step."""
        for row in rows:
            writer = self._writer(row.replica)
            writer.add_scalar(f"test/{row.task}/accuracy", row.accuracy, row.length)

    def close(self) -> None:
        """Write and close all files."""
        for writer in self._writers.values():
            writer.close()
