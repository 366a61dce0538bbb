"""The processor of this machine, by what the system tells; no torch."""

from __future__ import annotations

import platform
import re
import subprocess
from pathlib import Path

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
