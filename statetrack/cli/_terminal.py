"""What a command does around its work: what it says and prints, its files, and signals to stop.

How much is said on standard error is `--quiet`, as usual, or `--verbose`: the levels WARNING, INFO
and DEBUG of the logger `statetrack`.

    quiet    warnings and errors only
    usual    progress and notes as well
    verbose  also what happens: versions, files read and written, times, tracebacks

Standard output never depends on it. The level is set once for a command line, by `saying`;
everything that shows progress asks `is_quiet`. A table goes to the terminal, or into a file of any
report format.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import sysconfig
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer

from statetrack import __version__, evidence, report, runs, sources
from statetrack.errors import RunError, SettingsError, StatetrackError
from statetrack.registry import tasks_folder
from statetrack.text import visible

LOG = logging.getLogger("statetrack")

QUIET, VERBOSE = ("-q", "--quiet"), ("-v", "--verbose")

LIBRARIES = {"torch": "torch", "numpy": "NumPy"}
"""The libraries whose versions are told, where they are imported."""

BETWEEN_LINES = 10.0
"""The least seconds between two lines of progress where there is no terminal."""

INTERRUPTED = 130
"""The exit code of a command that was asked to stop."""


class _StandardError(logging.Handler):
    """Prints lines; those that `--verbose` adds, with the seconds since the command began."""

    begun = 0.0

    def emit(self, record: logging.LogRecord) -> None:
        """Called by logging."""
        since = time.perf_counter() - self.begun
        before = f"[{since:.2f} s] " if record.levelno == logging.DEBUG else ""
        _say(before + visible(record.getMessage()))


_PRINTS = _StandardError()
LOG.addHandler(_PRINTS)
LOG.setLevel(logging.INFO)
LOG.propagate = False


def is_quiet() -> bool:
    """Whether no progress and no notes are to be shown."""
    return not LOG.isEnabledFor(logging.INFO)


def is_verbose() -> bool:
    """Whether what happens is to be told."""
    return LOG.isEnabledFor(logging.DEBUG)


def note(line: str) -> None:
    """Say something on standard error that is no warning, unless it is to be quiet."""
    LOG.info("%s", line)


_WARNINGS: dict[str, list[tuple[str, str]]] = {}
"""What was warned of and not said yet, by what warnings have in common: of what, and the line."""

MOST_WARNED = 3
"""The most things that one line of warning names."""


def warn(line: str, of: str = "", alike: str = "") -> None:
    """Warn in one line, which `say_warnings` prints; `of` names what it is about, such as a run.

    A warning of several things is one line, which counts them. `alike` is what it then says, for
    lines that differ in their numbers alone.
    """
    _WARNINGS.setdefault(alike or line, []).append((of, line))


def _say(line: str) -> None:
    """A line on standard error; a terminal's is broken between words, and goes on further in."""
    if sys.stderr.isatty():
        line = report.hanging(line, report.error_console().width).plain
    typer.echo(line, err=True)


def say_warnings() -> None:
    """Print on standard error what was warned of since the last call, each warning once.

    What is said again of the same thing counts once: a file may be read several times.
    """
    for common, every in _WARNINGS.items():
        found = [*dict.fromkeys(each for each in every if each[0])]
        found += [each for each in every if not each[0]]
        names = dict.fromkeys(of for of, _ in found if of)
        if len(names) > 1:
            some = ", ".join([*names][:MOST_WARNED]) + (", ..." if len(names) > MOST_WARNED else "")
            lines = [f"{common} (x{len(found)}: {some})"]
        else:
            same = Counter(line for _, line in found)
            before = "".join(f"{name}: " for name in names)
            lines = [
                before + line + (f" (x{times})" if times > 1 else "")
                for line, times in same.items()
            ]
        for line in lines:
            _say(f"warning: {visible(' '.join(line.splitlines()))}")
    _WARNINGS.clear()


def asked_for(argv: Sequence[str]) -> int:
    """The level that a command line asks for; that of `--verbose` where it asks for both."""
    if any(word in VERBOSE for word in argv):
        return logging.DEBUG
    return logging.WARNING if any(word in QUIET for word in argv) else logging.INFO


@contextmanager
def saying(level: int) -> Iterator[None]:
    """Let commands say as much as a level has, until the block ends."""
    before = LOG.level
    _set_level(level)
    try:
        if level == logging.DEBUG:
            with _telling():
                yield
        else:
            yield
    finally:
        _set_level(before)


def _set_level(level: int) -> None:
    """Set the level where it is another one: Python then looks at every logger that there is."""
    if level != LOG.level:
        LOG.setLevel(level)


@contextmanager
def _telling() -> Iterator[None]:
    """Tell versions, files and times, until the block ends."""
    _PRINTS.begun, used = time.perf_counter(), time.process_time()
    LOG.debug("statetrack %s, Python %s", __version__, ".".join(map(str, sys.version_info[:3])))
    _FILES.append(_Files())
    _start_watching()
    try:
        yield
    finally:
        _FILES.pop().end()
        found = [(name, shown) for name, shown in LIBRARIES.items() if name in sys.modules]
        if found:
            from importlib import metadata

            LOG.debug(", ".join(f"{shown} {metadata.version(name)}" for name, shown in found))
        LOG.debug("CPU time %.2f s%s", time.process_time() - used, _memory())


def _memory() -> str:
    """What memory the process took at most; empty where the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows has none
        return ""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    unit = 2**20 if sys.platform == "darwin" else 2**10  # bytes there, kibibytes elsewhere
    return f", memory at most {peak / unit:,.0f} MiB"


class _Files:
    """The user's files that are opened; each is told once as read, and once as written."""

    def __init__(self) -> None:
        self._told: set[tuple[str, str]] = set()
        self._writing: dict[str, None] = {}

    def opened(self, path: str, writes: bool) -> None:
        """A file is opened; one that is written is told when it is complete."""
        if writes:
            self._writing[path] = None
        else:
            self._tell("read", path)

    def renamed(self, path: str, to: str) -> None:
        """A file gets its name: files of runs are written beside their place."""
        if os.path.isdir(path):  # a folder that is complete only now
            for folder, _, files in os.walk(path):
                for file in sorted(files):
                    inside = os.path.join(folder, file)
                    self._writing.pop(inside, None)
                    self._tell("wrote", os.path.join(to, os.path.relpath(inside, path)))
        elif path in self._writing:
            del self._writing[path]
            if any(part.startswith(".") for part in Path(to).parts if part != ".."):
                self._writing[to] = None  # in a folder that is not complete
            else:
                self._tell("wrote", to)

    def end(self) -> None:
        """Tell what was written without a change of name."""
        for path in filter(os.path.exists, self._writing):
            self._tell("wrote", path)

    def _tell(self, did: str, path: str) -> None:
        place = os.path.abspath(path)
        of_system = (
            (place.startswith(_SYSTEM) and not place.startswith(_IN_MEMORY))
            or place.endswith((".pyc", ".lock"))
            or (place.startswith(_PACKAGE) and place.endswith(".py"))
            or os.path.isdir(place)
        )
        if not of_system and (did, path) not in self._told:
            self._told.add((did, path))
            LOG.debug("%s %s", did, path)


_FILES: list[_Files] = []
"""The last of these is told of files."""

_PACKAGE = f"{Path(__file__).parents[1]}{os.sep}"
_SYSTEM = tuple(
    {
        *(f"{Path(each)}{os.sep}" for each in ("/proc", "/sys", "/dev", "/etc", "/usr")),
        *(f"{Path(each).resolve()}{os.sep}" for each in (sys.base_prefix, sys.prefix)),
        *(f"{each}{os.sep}" for each in (sys.base_prefix, sys.prefix, tasks_folder())),
        *(f"{each}{os.sep}" for each in sysconfig.get_paths().values()),
    }
)
"""Where files are that are not the user's: those of Python, of libraries and of the system."""

_IN_MEMORY = f"{Path('/dev/shm')}{os.sep}"
"""Where Linux keeps a user's files in memory, among the system's devices."""


@cache
def _start_watching() -> None:
    """Let Python say what is opened, once: it cannot be stopped again."""

    def watch(event: str, given: tuple[Any, ...]) -> None:
        if not _FILES or event not in ("open", "os.rename"):
            return
        is_path = [isinstance(each, str | bytes | os.PathLike) for each in given[:2]]
        if event == "os.rename" and all(is_path):
            _FILES[-1].renamed(*map(os.fsdecode, given[:2]))
        elif event == "open" and is_path[0]:
            flags = given[2] if isinstance(given[2], int) else 0
            _FILES[-1].opened(os.fsdecode(given[0]), bool(flags & (os.O_WRONLY | os.O_RDWR)))

    sys.addaudithook(watch)


def progress_bar(*given: Any, **named: Any) -> Any:
    """A bar of tqdm on standard error, on a terminal only; none where it is to be quiet."""
    from tqdm import tqdm

    usual: dict[str, Any] = {
        **{"file": sys.stderr, "disable": is_quiet() or None, "mininterval": 0.5},
        "bar_format": "{desc}: {percentage:3.0f} %, {n_fmt} of {total_fmt}, {remaining} left",
    }
    return tqdm(*given, **usual | named)


class _Status:
    """Lines of a terminal: what was found, and below it what is being done, for how long."""

    def __init__(self, what: str, console: Any) -> None:
        self.what, self.doing, self.found = what, "", list[Any]()
        self._console, self._begun = console, time.monotonic()

    def say(self, doing: str) -> None:
        """What is being done now."""
        self.doing = doing

    def tell(self, found: str) -> None:
        """Something was found."""
        self.found.append(report.hanging(found, self._console.width))

    def __rich__(self) -> Any:
        from rich.console import Group
        from rich.text import Text

        seconds = time.monotonic() - self._begun
        text = f"{self.what}, {clock(seconds)}" + (f": {self.doing}" if self.doing else "")
        line = Text(visible(text), no_wrap=True)
        line.truncate(self._console.width - 1, overflow="ellipsis")
        return Group(*self.found, line)


@contextmanager
def status(what: str) -> Iterator[_Status]:
    """Lines of a terminal on standard error, twice a second, which are removed at the end."""
    from rich.live import Live

    console = report.error_console()
    shown = _Status(what, console)
    if is_quiet() or not sys.stderr.isatty():
        yield shown
        return
    with Live(shown, console=console, refresh_per_second=2, transient=True):
        yield shown


def clock(seconds: float) -> str:
    """`1:05:09`, or `5:09` within an hour."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


@contextmanager
def searching(what: str, seconds: float) -> Iterator[evidence.SearchBudget]:
    """A budget of so many seconds of work, whose reports and findings a terminal shows as it goes.

    Without a terminal a line is printed at most every ten seconds, so that short searches print
    none.
    """
    if is_quiet():
        yield evidence.SearchBudget(seconds)
        return
    if sys.stderr.isatty():
        with status(what) as shown:
            budget = evidence.SearchBudget(seconds, shown.say)
            budget.told = shown.tell
            yield budget
        return
    printed = time.monotonic()

    def say(doing: str) -> None:
        nonlocal printed
        if time.monotonic() - printed >= BETWEEN_LINES:
            printed = time.monotonic()
            report.error_console().print(f"{what}: {doing}")

    yield evidence.SearchBudget(seconds, say)


def ending_signals() -> list[signal.Signals]:
    """SIGTERM, and SIGHUP of a closed terminal, unless it is ignored, as under `nohup`."""
    hangup = getattr(signal, "SIGHUP", None)  # Windows has none
    if hangup is None or signal.getsignal(hangup) is signal.SIG_IGN:
        return [signal.SIGTERM]
    return [signal.SIGTERM, hangup]


@contextmanager
def hearing(
    signals: Sequence[signal.Signals], handle: Callable[[int, FrameType | None], None]
) -> Iterator[None]:
    """Have some signals handled in this way, until the block ends."""
    before = {number: signal.signal(number, handle) for number in signals}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


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

    with hearing([signal.SIGINT, *ending_signals()], ask):
        yield lambda: asked


def require_writable(file: Path, option: str) -> None:
    """Raise `SettingsError`, which names the option, for a file that could not be written.

    A pipe that nobody reads is an error, and not waited for.
    """
    if file.is_dir():
        raise SettingsError(f"{option} {file}: is a folder: name a file")
    if not file.parent.is_dir():
        raise SettingsError(f"{option} {file}: there is no folder {file.parent}: make it first")
    is_new = not os.path.lexists(file)
    try:
        with open(file, "ab", opener=_without_waiting):  # which seeks the end, if there is one
            pass
        if is_new:
            file.unlink()
    except OSError as problem:
        raise SettingsError(
            f"{option} {file}: cannot be written: {problem.strerror}: name another file"
        ) from None


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0), 0o666)


def print_json(content: Any) -> None:
    """One JSON value on standard output, and nothing else.

    Letters of any script are written as they are, and what cannot be printed as an escape.
    """
    import json  # which the help does not need

    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    shown = (
        letter if letter == "\n" or letter.isprintable() else json.dumps(letter)[1:-1]
        for letter in text
    )
    print(text if text.replace("\n", "").isprintable() else "".join(shown))


def evidence_json(value: Any, task: sources.Source) -> Any:
    """Evidence, or a part of it, as plain values; failures by the names of symbols and labels."""
    from statetrack.evidence import Failure

    if isinstance(value, Failure):
        return failure_json(value, task)
    if is_dataclass(value):
        return {each.name: evidence_json(getattr(value, each.name), task) for each in fields(value)}
    if isinstance(value, list | tuple):
        return [evidence_json(each, task) for each in value]
    if isinstance(value, dict):
        return {key: evidence_json(each, task) for key, each in value.items()}
    return value


def replica_json(outcome: runs.Outcome, selected: bool) -> dict[str, Any]:
    """A replica, and whether validation selected it."""
    return {
        "replica": outcome.replica,
        "seed": outcome.seed,
        "lr": outcome.lr,
        "selected": selected,
    }


def failure_json(failure: evidence.Failure | None, task: sources.Source) -> dict[str, Any] | None:
    """A failure by the names of its symbols and labels."""
    if failure is None:
        return None
    return {
        "position": failure.position,
        "prefix": [task.symbols[symbol] for symbol in failure.prefix],
        "period": [task.symbols[symbol] for symbol in failure.period],
        "suffix": [task.symbols[symbol] for symbol in failure.suffix],
        "label": task.labels[failure.label],
        "answer": None if failure.answer is None else task.labels[failure.answer],
    }


Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="FILE",
        help="Write it to a file, whose ending says the format, as in .md, .tex, .csv or .html; "
        "- or none: standard output.",
    ),
]
OR_A_FILE = "; or a file of the table, whose ending says the format, as in .md or .csv; repeatable."
"""What the help of `--out` adds where it names the folder of runs first."""

Force = Annotated[bool, typer.Option("--force", help="Replace the file that --out names.")]


def named_file(out: Path | None, *, force: bool) -> Path | None:
    """The file that `--out` names; None for standard output.

    Raises `SettingsError` for `--force` without one.
    """
    file = None if out is None or str(out) == "-" else out
    if file is None and force:
        raise SettingsError("--force replaces the file that --out names: name one")
    return file


def wanted_file(out: Path | None, *, force: bool, as_json: bool) -> Path | None:
    """The same of a command whose files are of any format; it is looked at before any work.

    Raises `SettingsError` also for an ending that is no format's, for a file that could not be
    written or that is there already, and for `--json` beside one.
    """
    file = named_file(out, force=force)
    if file is None:
        return None
    if as_json:
        raise SettingsError(f"--json: prints JSON: leave it out, or --out {file}")
    report.format_of(file)
    require_replaceable(file, force=force)
    return file


def folder_and_files(
    out: Sequence[Path] | None, *, force: bool
) -> tuple[Path | None, tuple[Path, ...]]:
    """The folder of runs and the files of the table that `--out` names, which are looked at.

    A name with the ending of a format is a file's, unless it is that of a folder. Raises
    `SettingsError` for several folders, and as `wanted_file` does.
    """
    endings = {report.FORMATS[name].ending for name in report.FORMATS}
    files = [each for each in out or () if each.suffix in endings and not each.is_dir()]
    folders = [each for each in out or () if each not in files]
    if len(folders) > 1:
        named = " and ".join(map(str, folders))
        raise SettingsError(f"--out: {named}: runs are kept in one folder")
    if force and not files:
        raise SettingsError("--force replaces the file that --out names: name one")
    for file in files:
        require_replaceable(file, force=force)
    return (folders[0] if folders else None), tuple(files)


def require_replaceable(file: Path, *, force: bool) -> None:
    """Raise `SettingsError` for a file that could not be written, or is there without `--force`."""
    require_writable(file, "--out")
    if file.exists() and not force:
        raise SettingsError(f"--out {file}: is there already: name another file, or give --force")


def write_document(
    document: report.Document,
    file: Path,
    form: str | None = None,
    *,
    called: str = "table",
    quietly: bool = False,
) -> None:
    """Write a document to a file, in the format of its ending or another one, and say so."""
    write_file(file, report.FORMATS[form or report.format_of(file)].draw(document), "--out")
    if not quietly:
        typer.echo(f"{called}: {file}")


def write_file(file: Path, content: str | bytes, option: str, then: str = "") -> None:
    """Write the content of a file; the error names the option, and says what to do then."""
    try:
        content = content.encode() if isinstance(content, str) else content
        runs.write_named_file(file, content)
    except RunError as problem:
        raise StatetrackError(f"{option} {problem}{then}") from None


def show_document(document: report.Document, form: str = "rich") -> None:
    """Print a document to standard output."""
    if form == "rich":
        to = report.console()
        for part in document.parts():
            to.print(part)
        return
    content = report.FORMATS[form].draw(document)
    assert isinstance(content, str), f"{form} is not text"
    sys.stdout.write(content)
