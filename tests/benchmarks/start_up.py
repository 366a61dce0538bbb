"""CPU seconds, user and system, that short commands take from start to end.

    python tests/benchmarks/start_up.py [REPEATS]

The least of several repeats is printed: other programs on the machine only add to it.
"""

from __future__ import annotations

import resource
import subprocess
import sys

from statetrack.cli.app import find_commands

SHORT = (
    "--help",
    "list",
    "list suites",
    "list runs",
    "list tasks",
    "cite",
    "cite lstm",
    "predict s3",
    *(f"{command} --help" for command in find_commands()),
)


def cpu_seconds(words: list[str]) -> float:
    """The CPU time of one `statetrack` command line, its children included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-m", "statetrack", *words], stdout=subprocess.DEVNULL, check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print one row for each command."""
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    for line in SHORT:
        seconds = min(cpu_seconds(line.split()) for _ in range(repeats))
        print(f"{seconds:6.2f}  statetrack {line}", flush=True)


if __name__ == "__main__":
    main()
