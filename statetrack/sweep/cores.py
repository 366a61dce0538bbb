"""How many processor cores this process may use."""

from __future__ import annotations

import math
import os
from pathlib import Path

CONTROL_GROUPS = Path("/sys/fs/cgroup")
"""Where Linux shows the limits of groups of processes, such as those of a container."""


def available_cores() -> int:
    """The cores that this process may run on, or fewer where a quota gives it less time."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, math.ceil(min(cores or 1, _quota(CONTROL_GROUPS))))


def _quota(groups: Path) -> float:
    """The processor time per time that the control group has; infinite without a limit."""
    for files in (["cpu.max"], ["cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us"]):
        try:
            limit, period = " ".join((groups / file).read_text() for file in files).split()
            if float(limit) > 0:
                return float(limit) / float(period)
        except (OSError, ValueError, ZeroDivisionError):  # no such file, or `max`: no limit
            continue
    return math.inf
