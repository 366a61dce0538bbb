"""Tasks: sources of words with their meaning, read from YAML files or from names."""

from statetrack.spec.lengths import Lengths
from statetrack.spec.loading import TASKS, list_tasks, load_task, task_names
from statetrack.spec.names import current_name, folder_name
from statetrack.spec.task import (
    Task,
    TaskSpec,
    WordSpec,
    arguments_that_can_be_set,
    golden_hash,
)

__all__ = [
    "TASKS",
    "Lengths",
    "Task",
    "TaskSpec",
    "WordSpec",
    "arguments_that_can_be_set",
    "current_name",
    "folder_name",
    "golden_hash",
    "list_tasks",
    "load_task",
    "task_names",
]
