"""Where training is logged besides the run's own files: each is one file, found by its name.

The file `tensorboard.py` registers the log `tensorboard`. What a log needs, such as wandb, is
imported when it is opened. A log is no setting of a run: it changes nothing of what is computed.
"""

from __future__ import annotations

from statetrack.registry import Registry, modules_in
from statetrack.runs.loggers._base import Log

LOGS: Registry[type[Log]] = Registry(
    "log",
    find=lambda: modules_in("statetrack.runs.loggers"),
    listing="statetrack train --help",
)
"""Every kind of log by its name, which is also that of its folder in the run folder."""
