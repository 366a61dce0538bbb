"""A recorder: command lines are run in this process, and what they print is written into files."""

from __future__ import annotations

import io
import os
import re
import shlex
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import statetrack as st
from statetrack.cli.app import main

from .normalising import normalised

LONGEST_NAME = 180


@dataclass(frozen=True)
class Printed:
    """What one command line gave."""

    code: int
    output: str
    error: str

    @property
    def warnings(self) -> int:
        return sum(line.startswith("warning: ") for line in self.error.splitlines())


class Recorder:
    """Writes the outputs of one section; while it is open, `work` is the current folder."""

    def __init__(self, folder: Path, work: Path) -> None:
        self.folder, self.work = folder, work
        self.count = 0
        self._before = Path.cwd()

    def __enter__(self) -> Recorder:
        self.folder.mkdir(parents=True)
        self.work.mkdir(parents=True, exist_ok=True)
        os.chdir(self.work)
        return self

    def __exit__(self, *_: object) -> None:
        os.chdir(self._before)

    def commands(self, text: str) -> None:
        """Record every line of a text, as one command line without the program's name."""
        for line in text.strip().splitlines():
            if line.strip():
                self.command(*shlex.split(line))

    def command(
        self,
        *words: str,
        name: str = "",
        environment: Mapping[str, str] | None = None,
        change: Callable[[str], str] = lambda text: text,
    ) -> Printed:
        """Record one command line; `change` is applied to both streams."""
        printed = call(words, environment)
        self.printed(words, printed, name=name, change=change)
        return printed

    def printed(
        self,
        words: Sequence[str],
        printed: Printed,
        *,
        name: str = "",
        change: Callable[[str], str] = lambda text: text,
    ) -> None:
        """Record what a command line gave earlier."""
        self.text(
            name or " ".join(words) or "nothing",
            f"$ statetrack {shlex.join(words)}\n"
            f"exit code {printed.code}, {printed.warnings} warnings\n"
            f"--- standard output\n{change(printed.output)}"
            f"--- standard error\n{change(printed.error)}",
        )

    def text(self, name: str, text: str) -> None:
        """Record a text under a name that no other output of the section has."""
        short = re.sub(r"[^A-Za-z0-9.=_+-]+", "-", name.replace("--", "")).strip("-.")
        file = self.folder / f"{short[:LONGEST_NAME]}.txt"
        for number in range(2, 100):
            if not file.exists():
                break
            file = self.folder / f"{short[:LONGEST_NAME]}.{number}.txt"
        file.write_text(normalised(text, self._paths()), encoding="utf-8")
        self.count += 1

    def library(self, name: str, of: Callable[[], object]) -> None:
        """Record what a call of the library gives, or the error that it raises, and warnings."""
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                told = str(of())
            except st.StatetrackError as error:
                told = f"{type(error).__name__}: {error}"
        lines = [f"{each.category.__name__}: {each.message}" for each in warned]
        self.text(name, "\n".join([told, f"{len(warned)} warnings", *lines, ""]))

    def _paths(self) -> dict[str, str]:
        return {
            str(self.work): "WORK",
            str(self.work.parent): "SCRATCH",
            str(Path(st.__file__).resolve().parent.parent): "PROGRAM",
            str(Path(__file__).resolve().parent): "FROZEN",
        }


def call(words: Sequence[str], environment: Mapping[str, str] | None = None) -> Printed:
    """Run one command line of `statetrack` in this process."""
    before = sys.argv
    sys.argv = ["statetrack", *words]
    try:
        with _environment(environment or {}), _streams() as (output, error):
            try:
                main()
                code: object = 0
            except SystemExit as end:
                code = end.code
            except BrokenPipeError:
                code = 1
    finally:
        sys.argv = before
    told = code if isinstance(code, int) else int(code is not None)
    return Printed(told, _written(output), _written(error))


def _written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    held = stream.buffer
    assert isinstance(held, io.BytesIO)
    text = held.getvalue().decode("utf-8", errors="backslashreplace")
    return text if not text or text.endswith("\n") else f"{text}\n(no end of line)\n"


@contextmanager
def _streams() -> Iterator[tuple[io.TextIOWrapper, io.TextIOWrapper]]:
    """Standard input without anything, and standard output and error into memory."""
    before = sys.stdin, sys.stdout, sys.stderr
    output, error = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    sys.stdin, sys.stdout, sys.stderr = io.StringIO(), output, error
    try:
        yield output, error
    finally:
        sys.stdin, sys.stdout, sys.stderr = before


@contextmanager
def _environment(given: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
