"""Signals that ask a command to stop, so that it can write a checkpoint first."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED = 130
"""The exit code of a command that was asked to stop."""


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Turn the first SIGINT, SIGTERM or SIGHUP into a request to stop; a second stops at once.

    SIGHUP, which a closed terminal sends, stays ignored under `nohup`.
    """
    asked = False

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True

    heard = [signal.SIGINT, signal.SIGTERM]
    hangup = getattr(signal, "SIGHUP", None)  # Windows has none
    if hangup is not None and signal.getsignal(hangup) is not signal.SIG_IGN:
        heard.append(hangup)
    before = {number: signal.signal(number, ask) for number in heard}
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
