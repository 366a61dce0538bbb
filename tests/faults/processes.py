"""Actions in forked processes, which may be killed there."""

from __future__ import annotations

import gc
import os
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn

LONGEST = 60.0
"""Seconds after which a process is killed, and the test fails."""


@dataclass(frozen=True)
class Ended:
    """How a process ended: its exit code, negative for the signal that killed it; its output."""

    code: int
    output: str

    @property
    def was_killed(self) -> bool:
        """Whether SIGKILL ended it."""
        return self.code == -signal.SIGKILL


def run_in_child(action: Callable[[], int | None]) -> Ended:
    """Run an action in a forked process; its result, None being 0, is the exit code.

    An exception is printed, and gives the code 70. Torch must use one thread.
    """
    return run_at_once([action])[0]


def run_at_once(actions: Sequence[Callable[[], int | None]]) -> list[Ended]:
    """Run several actions at the same time, each in a process of its own."""
    children = []
    for action in actions:
        output = tempfile.TemporaryFile()
        sys.stdout.flush()
        sys.stderr.flush()
        with warnings.catch_warnings():
            # threads that exist already (of pytest-xdist) hold nothing that an action needs
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            _be_the_child(action, output.fileno())
        children.append((child, output))
    ended = []
    for child, output in children:
        code = _wait_for(child)
        output.seek(0)
        ended.append(Ended(code, output.read().decode("utf-8", "replace")))
        output.close()
    return ended


def _be_the_child(action: Callable[[], int | None], output: int) -> NoReturn:
    code = 70
    gc.freeze()  # a collection would copy all memory that is shared with the tests
    try:
        os.dup2(output, 1)
        os.dup2(output, 2)
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False, buffering=1)
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False, buffering=1)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        code = action() or 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


def _wait_for(child: int) -> int:
    until = time.monotonic() + LONGEST
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise AssertionError(f"a process did not end within {LONGEST:.0f} s")
