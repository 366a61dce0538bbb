"""Where the points of a sweep are run: each executor is one file, found by its name.

The file `local.py` registers the executor `local`; torch is not imported here, and what an executor
needs besides, such as ray, is imported when it runs points.
"""

from __future__ import annotations

from statetrack.registry import Registry, modules_in
from statetrack.sweep.executors._base import Executor

EXECUTORS: Registry[type[Executor]] = Registry(
    "executor",
    find=lambda: modules_in("statetrack.sweep.executors"),
    listing="statetrack sweep --help",
)
"""Every executor by its name."""
