"""The targets, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.fuzz.command_lines import CommandLines
from tests.fuzz.datasets import Datasets
from tests.fuzz.dry_runs import DryRuns
from tests.fuzz.harness import Target
from tests.fuzz.machine_files import MachineFiles
from tests.fuzz.run_folders import RunFolders
from tests.fuzz.task_files import TaskFiles

TARGETS: Mapping[str, Callable[[], Target]] = {
    each.name: each
    for each in (TaskFiles, MachineFiles, RunFolders, Datasets, CommandLines, DryRuns)
}
"""Makes each target; a new format is one module with such a class, and one entry here."""
