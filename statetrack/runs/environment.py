"""The environment of a run: threads, versions and machine."""

from __future__ import annotations

import datetime
import platform
import re
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

import statetrack

SMALL = 1_000_000
"""Weights of a population below which one thread is faster than several."""


def prepare_cpu(threads: int, num_weights: int) -> None:
    """Set torch's number of threads; 0: one for a small number of weights."""
    if threads or num_weights < SMALL:
        torch.set_num_threads(threads or 1)


def environment(
    device: torch.device, kernel: Literal["torch", "fla"], command: str | None
) -> dict[str, Any]:
    """The versions and the machine of a run: the content of environment.json.

    `command` is the command line that made the run, or None where it was made from Python.
    """
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else processor_name()
    return {
        "statetrack": statetrack.__version__,
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "platform": platform.platform(),
        "device": str(device),
        "device_name": name,
        "kernel": f"fla {version('fla-core')}" if kernel == "fla" else kernel,
        "threads": torch.get_num_threads(),
        "started": timestamp(),
        "command": command,
    }


def timestamp() -> str:
    """The time, UTC, ISO 8601, to the second."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def processor_name() -> str:
    """The name of the processor's model or, where the system does not tell, its architecture."""
    return _name_from_system() or platform.processor() or platform.machine()


def _name_from_system() -> str:
    """The name that Linux or macOS gives; empty where neither does."""
    try:
        if platform.system() == "Darwin":
            command = ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]
            said = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True)
            return said.stdout.strip()
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except (OSError, subprocess.SubprocessError):
        return ""
    named = re.search(r"^model name\s*:\s*(\S.*?)\s*$", text, re.MULTILINE)
    return named[1] if named else ""
