"""What a search is doing, on standard error while it goes on."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from statetrack import evidence, report
from statetrack.cli._verbosity import is_quiet

BETWEEN_LINES = 10.0
"""The least seconds between two lines of progress where there is no terminal."""


@contextmanager
def searching(what: str, seconds: float) -> Iterator[evidence.Budget]:
    """A budget of so many seconds from now on, whose reports are shown behind `what`.

    A terminal has one line, which changes and is removed at the end. Without a terminal a line is
    printed at most every ten seconds, so that short searches print none.
    """
    if is_quiet():
        yield evidence.Budget(seconds)
        return
    console = report.error_console()
    if sys.stderr.isatty():
        with console.status(what) as status:
            yield evidence.Budget(seconds, lambda doing: status.update(f"{what}: {doing}"))
        return
    printed = time.monotonic()

    def say(doing: str) -> None:
        nonlocal printed
        if time.monotonic() - printed >= BETWEEN_LINES:
            printed = time.monotonic()
            console.print(f"{what}: {doing}")

    yield evidence.Budget(seconds, say)
