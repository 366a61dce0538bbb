"""What a sweep is doing, on standard error: one display in a terminal, lines of a log elsewhere.

The seconds that are left are computed from what the points that ended have taken: those of the same
model say most about the others. A point counts by its steps, words and lengths.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from statetrack.cli._terminal import is_quiet
from statetrack.report import error_console, share
from statetrack.runs import RunFolder
from statetrack.spec import WordSpec, load_task
from statetrack.sweep import Failed
from statetrack.text import visible

if TYPE_CHECKING:
    from statetrack.sweep import Done, Point

LOOK = 0.5
"""Seconds between two looks at the folders of the points."""

HEARTBEAT = 60.0
"""Seconds between two lines that say what runs, where there is no terminal."""

MOST_SHOWN = 8
"""The most running points that are shown."""


@dataclass
class _Followed:
    """A point, what it costs by its settings, and when this sweep began it."""

    point: Point
    folder: RunFolder
    steps: int
    weight: float
    begun: float | None = None
    step: int = 0

    @classmethod
    def of(cls, point: Point) -> _Followed:
        """A point that has not begun."""
        experiment = point.experiment
        data, training = experiment.data, experiment.training
        length = _longest(data.task, data.train_length, data.supervision)
        weight = float(training.steps * training.batch_size * length * len(experiment.replicas))
        return cls(point, RunFolder(point.path), training.steps, weight)

    @property
    def name(self) -> str:
        """The point in words."""
        return visible(f"{self.point.row} on {self.point.column}")

    @property
    def doing(self) -> str:
        """What it is doing, as far as its folder says."""
        if self.folder.finished:
            return "trained, being measured"
        return f"step {self.step:,} of {self.steps:,}" if self.step else "begun"

    @property
    def share(self) -> float:
        """The share of its training that is done."""
        return 1.0 if self.folder.finished else min(1.0, self.step / max(1, self.steps))


@cache
def _longest(task: str, train_length: Any, supervision: Any) -> int:
    """The longest training words."""
    words = WordSpec.of(load_task(task), train_length=train_length, supervision=supervision)
    return words.lengths.longest


@dataclass
class SweepProgress:
    """Which points run, have ended and failed, and the time that the others may take."""

    points: Sequence[Point]
    log: Callable[[str], None]
    started: float = field(default_factory=time.monotonic)
    num_done: int = 0
    num_failed: int = 0
    first_begun: float | None = None
    stopping: bool = False
    rates: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.waiting = {(each.row, each.column): _Followed.of(each) for each in self.points}
        self.since = time.time()

    @property
    def running(self) -> list[_Followed]:
        """The points that run, by their beginnings."""
        begun = [each for each in self.waiting.values() if each.begun is not None]
        return sorted(begun, key=lambda each: each.begun or 0.0)

    def look(self) -> None:
        """Look which points have begun, and how far the running ones are."""
        with self.lock:
            for each in self.waiting.values():
                if each.begun is None and each.folder.begun() >= self.since - 1:
                    each.begun = time.monotonic()
                    self.first_begun = self.first_begun or each.begun
                    self.log(f"begins: {each.name}")
                if each.begun is not None:
                    each.step = each.folder.newest_step()

    def end(self, done: Done) -> None:
        """Count what became of a point."""
        with self.lock:
            each = self.waiting.pop((done.row, done.column), None)
            self.num_done += 1
            told = visible(f"{done.row} on {done.column}")
            seconds = ""
            if each is not None and each.begun is not None:
                took = time.monotonic() - each.begun
                seconds = f", {took:,.1f} s"
                self.rates.setdefault(each.point.row, []).append((took, each.weight))
            if isinstance(done, Failed):
                self.num_failed += 1
                self.log(f"failed: {told}: {visible(done.error)}{seconds}")
            else:
                chosen = done.selected
                accuracy = "diverged" if chosen is None else f"accuracy {share(chosen.accuracy)}"
                self.log(f"done: {told}: {accuracy}{seconds} ({self.counted})")

    @property
    def counted(self) -> str:
        """`12 of 30 done, 1 failed`."""
        failed = f", {self.num_failed} failed" if self.num_failed else ""
        return f"{self.num_done} of {len(self.points)} done{failed}"

    def seconds_left(self) -> float | None:
        """The seconds that the remaining points may take; None before any has ended."""
        every = [pair for pairs in self.rates.values() for pair in pairs]
        if not every:
            return None
        running, now = self.running, time.monotonic()
        elapsed = now - (self.first_begun or self.started)
        busy = sum(took for took, _ in every) + sum(now - (each.begun or now) for each in running)
        at_once = max(1.0, busy / max(elapsed, 1e-9))
        left = 0.0
        for each in self.waiting.values():
            pairs = self.rates.get(each.point.row, every)
            whole = each.weight * sum(t for t, _ in pairs) / max(1.0, sum(w for _, w in pairs))
            left += whole * (1 - each.share if each.begun is not None else 1.0)
        return left / at_once

    def line(self) -> str:
        """All of it in one line."""
        parts = [self.counted]
        if self.stopping:
            parts.append("stopping: points write their checkpoints")
        left = self.seconds_left()
        parts.append(f"{clock(time.monotonic() - self.started)} elapsed")
        if left is not None and self.waiting:
            parts.append(f"about {clock(left)} left")
        return ", ".join(parts)

    def __rich__(self) -> Group:
        """The display of a terminal: a line for each running point, and a bar.

        Its last line is not filled to the edge: the `^C` that a terminal writes there would begin
        another line, and the first one of the display would stay when it is drawn again.
        """
        with self.lock:
            running = self.running
            rows = Table.grid(padding=(0, 2, 0, 0), expand=True)
            rows.add_column(overflow="ellipsis", no_wrap=True, ratio=1)
            rows.add_column(justify="right", no_wrap=True)
            for each in running[:MOST_SHOWN]:
                rows.add_row(Text(f"  {each.name}"), Text(each.doing, "dim"))
            if len(running) > MOST_SHOWN:
                rows.add_row(Text(f"  and {len(running) - MOST_SHOWN} more"), "")
            done = self.num_done + sum(each.share for each in running)
            head = Table.grid()
            head.add_row(ProgressBar(total=max(1, len(self.points)), completed=done, width=40))
            head.add_row(Text(self.line()))
            return Group(rows, head)


@contextmanager
def following(points: Sequence[Point], stop: Callable[[], bool]) -> Iterator[SweepProgress]:
    """The progress of a sweep, shown until the block ends."""
    console = error_console()
    in_terminal = sys.stderr.isatty()

    def log(line: str) -> None:
        if not in_terminal and not is_quiet():
            console.print(f"{time.strftime('%H:%M:%S')} {line}")

    progress = SweepProgress(points, log)
    ended = threading.Event()

    def watch() -> None:
        told = time.monotonic()
        while not ended.wait(max(LOOK, len(progress.waiting) / 1000)):
            progress.look()
            if stop() and not progress.stopping:
                progress.stopping = True
                log("stopping: points in training write a checkpoint")
            if time.monotonic() - told >= HEARTBEAT:
                told = time.monotonic()
                running = [f"{each.name}: {each.doing}" for each in progress.running[:MOST_SHOWN]]
                log(progress.line() + (f"; {'; '.join(running)}" if running else ""))

    with ExitStack() as stack:
        if in_terminal and not is_quiet():
            display = Live(progress, console=console, refresh_per_second=2, transient=True)
            stack.enter_context(display)
        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        try:
            yield progress
        finally:
            ended.set()
            thread.join()


def clock(seconds: float) -> str:
    """`1:05:09`, or `5:09` within an hour."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
