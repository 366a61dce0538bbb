"""The environment of a run: threads, versions and machine; torch is imported where it is asked."""

from __future__ import annotations

import datetime
import platform
import re
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import statetrack

if TYPE_CHECKING:
    import torch

    from statetrack.models import SequenceModel

PACKAGES = {"fla": "fla-core", "native": "numba"}
"""The package that an implementation of the recurrences comes with."""


def environment(device: torch.device, model: SequenceModel, command: str | None) -> dict[str, Any]:
    """The versions and the machine of a run, and its model's size: what environment.json holds.

    `model` is one replica on the device; `command` is the command line that made the run, or None
    where it was made from Python.
    """
    import numpy as np
    import torch

    from statetrack.models import num_parameters, state_size

    kernel = model.kernel_on(device)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else processor_name()
    return {
        "statetrack": statetrack.__version__,
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "platform": platform.platform(),
        "device": str(device),
        "device_name": name,
        "kernel": f"{kernel} {version(PACKAGES[kernel])}" if kernel in PACKAGES else kernel,
        "threads": torch.get_num_threads(),
        "parameters": num_parameters(model),
        "dimensions": state_size(model),
        "started": timestamp(),
        "command": command,
    }


def timestamp() -> str:
    """The time, UTC, ISO 8601, to the second."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


CPUINFO = Path("/proc/cpuinfo")

VECTORS = re.compile(r"(avx|sse4|fma$|f16c$|amx|asimd$|sve|neon)")
"""The instruction sets that decide which kernels numerical libraries choose."""


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
        text = CPUINFO.read_text(encoding="utf-8", errors="replace")
    except (OSError, subprocess.SubprocessError):
        return ""
    named = re.search(r"^model name\s*:\s*(\S.*?)\s*$", text, re.MULTILINE)
    return named[1] if named else ""


def instruction_sets() -> list[str]:
    """The vector instructions that the processor has; empty where the system does not tell."""
    try:
        text = CPUINFO.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    told = re.search(r"^(?:flags|Features)\s*:\s*(.*)$", text, re.MULTILINE)
    return sorted(filter(VECTORS.match, told[1].split())) if told else []
