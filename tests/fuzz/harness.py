"""Runs cases of a fuzzer in forked processes, and judges each.

A case is good when what it calls either works or raises a `StatetrackError` of one line. It fails
where anything else is raised, where it takes more than `CPU_SECONDS` of the processor or
`WALL_SECONDS` in all, where it needs more than `MOST_MEMORY`, where it writes outside its folder or
starts a process, where a planted file of Python is executed, and where its process dies.

A process takes `CASES_PER_PROCESS` cases one after another, or as many as the target says. Every
case has a random generator of its own, made from the target's name, the seed and the number of the
case, and an empty folder as its working directory, so a case can be repeated alone.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
import unicodedata
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from typing import Any, NoReturn, Protocol, TypeVar

from statetrack.errors import StatetrackError, StatetrackWarning

T = TypeVar("T")

CPU_SECONDS = 5.0
WALL_SECONDS = 10.0
"""After this a case is stopped that waits: on a busy machine the wall clock runs for others too."""
LEAST_WORK = 0.03
"""The share of the wall time that a case which does not wait gets of the processor."""
GONE_SECONDS = 60.0
"""The time after which a process that no signal interrupts is killed."""
MOST_MEMORY = 2**30
"""Bytes that a case may need beyond what the process has before its first."""
CASES_PER_PROCESS = 50
TAIL = 6
"""The lines of a traceback that a report has."""

EXECUTED = "statetrack_fuzz_executed"
"""The attribute of `sys` that a planted file of Python sets."""
PLANTED = f"import sys\nsys.{EXECUTED} = True\n"
"""A file of Python that nothing may execute."""


class Target(Protocol):
    """What is fuzzed: how its cases begin, and what one does."""

    name: str

    def prepare(self, folder: Path) -> None:
        """Make what all cases start from, in a folder that is kept; called once."""

    def attempt(self, case: Case) -> None:
        """One case, in an empty working directory."""


class Wrong(Exception):
    """A property does not hold."""


class OutOfTime(BaseException):
    """Raised by a signal in a case that takes too long."""


@dataclass
class Case:
    """One case while it runs: its random generator, its folder, what it did and what was refused.

    `inputs` is a folder with a copy of what the target has prepared.
    """

    number: int
    random: Random
    folder: Path
    done: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def note(self, what: str) -> None:
        """Record what is done, for the report."""
        self.done.append(what)

    def call(self, what: str, action: Callable[[], T]) -> T | None:
        """The result of an action, or None where it is refused with a clear error."""
        self.note(what)
        try:
            return action()
        except StatetrackError as error:
            self.refused.append(f"{what}: {error}")
            require_clear(str(error))
            return None


@dataclass(frozen=True)
class Verdict:
    """What became of a case: `failure` is empty where it is good."""

    case: int
    refused: bool
    failure: str = ""
    signature: str = ""
    done: Sequence[str] = ()
    seconds: float = 0.0


@dataclass
class Report:
    """The counts of all cases, and the first failures of every sort."""

    target: str
    seed: int
    cases: int = 0
    refused: int = 0
    failures: dict[str, list[Verdict]] = field(default_factory=dict)
    slowest: Verdict | None = None
    seconds: float = 0.0

    def add(self, verdict: Verdict) -> None:
        """Count one case."""
        self.cases += 1
        self.seconds += verdict.seconds
        self.refused += verdict.refused and not verdict.failure
        if verdict.failure:
            self.failures.setdefault(verdict.signature, []).append(verdict)
        if self.slowest is None or verdict.seconds > self.slowest.seconds:
            self.slowest = verdict

    @property
    def num_failed(self) -> int:
        """The number of cases that failed."""
        return sum(map(len, self.failures.values()))

    def lines(self) -> Iterator[str]:
        """The counts, and of every sort of failure the first case."""
        good = self.cases - self.num_failed
        yield (
            f"{self.target}: {self.cases:,} cases with seed {self.seed}: {good - self.refused:,} "
            f"accepted, {self.refused:,} refused with a clear error, {self.num_failed:,} failed"
        )
        if self.slowest is not None:
            yield (
                f"  {1e3 * self.seconds / self.cases:.0f} ms of processor time a case, "
                f"{self.slowest.seconds:.1f} s for the slowest, case {self.slowest.case}"
            )
        by_count = sorted(self.failures.items(), key=lambda pair: -len(pair[1]))
        for signature, verdicts in by_count:
            first = verdicts[0]
            yield f"\n  {len(verdicts)} x {signature}"
            yield f"  {how_to_repeat(self.target, self.seed, first.case)}"
            for step in first.done:
                yield f"    {step[:300]}"
            for line in first.failure.splitlines():
                yield f"      {line}"


def how_to_repeat(target: str, seed: int, case: int) -> str:
    """The command line that runs one case alone."""
    return f"python -m tests.fuzz --target {target} --seed {seed} --case {case}"


def run_cases(
    target: Target,
    cases: Sequence[int],
    seed: int,
    *,
    keep: Path | None = None,
    tick: Callable[[Verdict], None] = lambda verdict: None,
) -> Report:
    """Run cases of a target in forked processes; `keep` gets the folders of those that failed."""
    report = Report(target.name, seed)
    with tempfile.TemporaryDirectory(prefix="statetrack-fuzz-", dir=_in_memory()) as made:
        place = Path(made).resolve()
        (place / "prepared").mkdir()
        _silently(lambda: target.prepare(place / "prepared"))
        waiting = list(cases)
        while waiting:
            batch = waiting[: getattr(target, "cases_per_process", CASES_PER_PROCESS)]
            for verdict in _in_child(target, batch, seed, place, keep):
                report.add(verdict)
                tick(verdict)
                waiting.remove(verdict.case)
    return report


def _in_memory() -> str | None:
    """The folder for files that need no disk, where there is one: thousands are made."""
    place = "/dev/shm"
    return place if os.access(place, os.W_OK | os.X_OK) else None


def _silently(action: Callable[[], None]) -> None:
    """Without the lines that training prints on standard error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        action()


def _in_child(
    target: Target, cases: Sequence[int], seed: int, place: Path, keep: Path | None
) -> Iterator[Verdict]:
    """The verdicts of cases that one forked process runs; fewer where it dies or hangs."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        # threads that exist already (of pytest-xdist) hold nothing that a case needs
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        os.close(reading)
        _be_the_child(target, cases, seed, place, keep, writing)
    os.close(writing)
    current, text = cases[0], b""
    try:
        while True:
            ready, _, _ = select.select([reading], [], [], GONE_SECONDS)
            if not ready:
                yield _gone(current, f"did not come back within {GONE_SECONDS:.0f} s")
                return
            piece = os.read(reading, 1 << 16)
            if not piece:
                break
            *lines, text = (text + piece).split(b"\n")
            for line in filter(None, lines):
                message = json.loads(line)
                if isinstance(message, int):
                    current = message
                elif "harness" in message:
                    raise RuntimeError(f"case {current}: {message['harness']}")
                else:
                    verdict = Verdict(**message)
                    current = -1
                    yield verdict
        _, status = os.waitpid(child, 0)
        child = 0
        if current >= 0 or status:
            code = os.waitstatus_to_exitcode(status)
            yield _gone(max(current, 0), f"its process ended with {code}")
    finally:
        os.close(reading)
        if child:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def _gone(case: int, what: str) -> Verdict:
    return Verdict(case, False, what, what, seconds=GONE_SECONDS)


def _be_the_child(
    target: Target,
    cases: Sequence[int],
    seed: int,
    place: Path,
    keep: Path | None,
    writing: int,
) -> NoReturn:
    """Run cases and write their verdicts; never returns into the program that forked."""
    try:
        _limit_memory()
        _send_output_to_files()
        sandbox = Sandbox(place)
        sys.dont_write_bytecode = True
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.environ["MPLCONFIGDIR"] = str(sandbox.caches)  # fonts are found once for all cases
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(sandbox.caches)  # torch makes it unasked
        sys.addaudithook(sandbox.hear)
        for number in cases:
            os.write(writing, f"{number}\n".encode())
            verdict = _run_one(target, number, seed, sandbox)
            if verdict.failure and keep is not None:
                with sandbox.paused():
                    _keep(verdict, target.name, seed, sandbox.folder, keep)
            os.write(writing, json.dumps(asdict(verdict)).encode() + b"\n")
        os._exit(0)
    except BaseException:  # a mistake in the harness itself
        message = {"harness": traceback.format_exc()}
        os.write(writing, b"\n" + json.dumps(message).encode() + b"\n")
        os._exit(70)


def _run_one(target: Target, number: int, seed: int, sandbox: Sandbox) -> Verdict:
    sandbox.clear()
    random = Random(f"{target.name} {seed} {number}")
    case = Case(number, random, sandbox.folder)
    vars(sys).pop(EXECUTED, None)
    started = time.process_time()
    failure = signature = ""
    try:
        with _limited_time() as overdue, warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", StatetrackWarning)
            target.attempt(case)
    except BaseException as error:  # whatever it is, it is what the fuzzer looks for
        failure, signature = _described(error)
    if overdue:
        failure = signature = signature or overdue[0]
    sandbox.pause()
    for complaint in sandbox.complaints():
        failure, signature = failure or complaint, signature or complaint.partition(": ")[0]
    if hasattr(sys, EXECUTED):
        failure = signature = "a planted file of Python was executed"
    seconds = time.process_time() - started
    return Verdict(number, bool(case.refused), failure, signature, case.done, seconds)


def _described(error: BaseException) -> tuple[str, str]:
    """The end of an error's traceback, and what makes it the same as another."""
    if isinstance(error, Wrong):
        text = str(error)
        return text, text.partition(":")[0]
    frames = traceback.extract_tb(error.__traceback__)
    inside = [frame for frame in frames if f"{os.sep}statetrack{os.sep}" in frame.filename]
    where = ""
    if inside:
        place = inside[-1]
        file = place.filename.rpartition(f"{os.sep}statetrack{os.sep}")[2]
        where = f" in statetrack/{file}, {place.name}, line {place.lineno}"
    lines = traceback.format_exception(error)
    tail = "".join(lines[-TAIL:])[-2000:]
    return tail, f"{type(error).__name__}{where}"


def _keep(verdict: Verdict, target: str, seed: int, folder: Path, keep: Path) -> None:
    """A copy of what a failed case left, and what it did."""
    to = keep / target / f"seed-{seed}-case-{verdict.case}"
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir(parents=True)
    told = [how_to_repeat(target, seed, verdict.case), *verdict.done, "", verdict.failure, ""]
    (to / "report.txt").write_text("\n".join(told), "utf-8", errors="backslashreplace")
    for path in folder.rglob("*"):
        copy = to / "folder" / path.relative_to(folder)
        if path.is_file() and not path.is_symlink():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)


class Sandbox:
    """The folder of a case, beside a file that nothing may change, and what was written elsewhere.

    It is told of every file that is opened by an audit hook of Python's. Writers in C++ are not
    heard, so what stands beside the folder is looked at as well.
    """

    ALLOWED = ("/dev/null", "/dev/full", "/dev/tty")
    CHANGES = {"os.rename": 2, "os.mkdir": 1, "os.remove": 1, "os.rmdir": 1, "os.truncate": 1}
    STARTS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.spawn")
    SECRET = b"not yours\n"

    def __init__(self, place: Path) -> None:
        self.outside = place / "outside"
        self.folder = self.outside / "work"
        self.secret = self.outside / "secret.txt"
        self.caches = place / "caches"
        self._heard: list[str] = []
        self._listening = False

    def clear(self) -> None:
        """An empty folder as the working directory."""
        self._listening = False
        os.chdir("/")
        shutil.rmtree(self.outside, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.secret.write_bytes(self.SECRET)
        os.chdir(self.folder)
        self._heard.clear()
        self._listening = True

    def pause(self) -> None:
        """Hear nothing until the next case."""
        self._listening = False

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Hear nothing meanwhile."""
        was, self._listening = self._listening, False
        yield
        self._listening = was

    def hear(self, event: str, arguments: Any) -> None:
        """The audit hook: called by Python before it does what the event says."""
        if not self._listening:
            return
        if event == "open":
            path, _, flags = arguments
            if isinstance(path, int) or not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
                return
            self._check(path, "written")
        elif event in self.CHANGES:
            for path in arguments[: self.CHANGES[event]]:
                self._check(path, event)
        elif event in self.STARTS:
            self._heard.append(f"a process was started: {event} {arguments!r}")

    def _check(self, path: Any, what: str) -> None:
        if isinstance(path, int):  # a file that was heard of when it was opened
            return
        text = os.fsdecode(path)
        if text.startswith(self.ALLOWED):
            return
        # an attempt to open a link may be refused by the system: what planted links name is
        # beside the folder, and looked at afterwards
        real = os.path.join(os.path.realpath(os.path.dirname(text)), os.path.basename(text))
        if not any(map(Path(real).is_relative_to, (self.folder, self.caches))):
            self._heard.append(f"a file outside the folder was changed ({what}): {real}")

    def complaints(self) -> list[str]:
        """What was changed outside the folder."""
        left = {path.name for path in self.outside.iterdir()} - {"work", "secret.txt"}
        found = [f"a file outside the folder appeared: {name}" for name in sorted(left)]
        if not self.secret.is_file() or self.secret.read_bytes() != self.SECRET:
            found.append("a file outside the folder was changed: secret.txt")
        return [*self._heard, *found]


@contextmanager
def _limited_time() -> Iterator[list[str]]:
    """Interrupt what takes too long; the list then says which limit was passed."""
    overdue: list[str] = []
    began = time.process_time(), time.monotonic()

    def stop(number: int, frame: object) -> None:
        worked, passed = time.process_time() - began[0], time.monotonic() - began[1]
        if number == signal.SIGALRM and worked > LEAST_WORK * passed:
            return
        kind = "of processor time" if number == signal.SIGPROF else "of wall time, waiting"
        limit = CPU_SECONDS if number == signal.SIGPROF else WALL_SECONDS
        overdue.append(f"took more than {limit:.0f} s {kind}")
        raise OutOfTime(overdue[0])

    signal.signal(signal.SIGPROF, stop)
    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS, 1.0)
    signal.setitimer(signal.ITIMER_REAL, WALL_SECONDS, 5.0)
    try:
        yield overdue
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)


def _limit_memory() -> None:
    """Let the process map `MOST_MEMORY` more private memory than it has."""
    status = Path("/proc/self/status")
    if not status.exists():  # only Linux says how much that is
        return
    gc.freeze()  # what is freed later would be more that a case may need; to look takes long
    sizes = dict(line.split(":", 1) for line in status.read_text().splitlines())
    now = int(sizes["VmData"].split()[0]) * 1024
    resource.setrlimit(resource.RLIMIT_DATA, (now + MOST_MEMORY, now + MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _send_output_to_files() -> None:
    """Standard output and standard error into files in memory, those of C++ included."""
    for descriptor in (1, 2):
        file = tempfile.TemporaryFile()
        os.dup2(file.fileno(), descriptor)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    sys.stdin = open(0, encoding="utf-8", closefd=False)
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False, buffering=1)


def output_since_last() -> tuple[str, str]:
    """What was written on standard output and on standard error since this was last asked for."""
    sys.stdout.flush()
    sys.stderr.flush()
    texts = []
    for descriptor in (1, 2):
        size = os.lseek(descriptor, 0, os.SEEK_END)
        texts.append(os.pread(descriptor, size, 0).decode("utf-8", "surrogateescape"))
        os.ftruncate(descriptor, 0)
        os.lseek(descriptor, 0, os.SEEK_SET)
    return texts[0], texts[1]


def require(holds: bool, what: str) -> None:
    """Raise `Wrong` unless a property holds; what stands before the first colon names its sort."""
    if not holds:
        raise Wrong(what)


def require_clear(message: str) -> None:
    """An error's message is one line of printable text that says something."""
    require(bool(message.strip()), "an error says nothing")
    require(len(message.splitlines()) == 1, f"an error has several lines: {message!r}")
    require_printable(message, "an error")


def require_printable(text: str, what: str) -> None:
    """No control characters but the ends of lines, and no halves of characters."""
    for letter in set(text) - {"\n"}:
        if unicodedata.category(letter) in {"Cc", "Cs"}:
            line = next(line for line in text.split("\n") if letter in line)
            raise Wrong(f"{what} has a control character: {letter!r} in {line[:200]!r}")


def count_signatures(report: Report) -> Counter[str]:
    """How many cases failed in each way."""
    return Counter({signature: len(found) for signature, found in report.failures.items()})
