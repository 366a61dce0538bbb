"""Points as jobs of a SLURM cluster, through submitit: job arrays, one element a point.

A job that is preempted, or that comes near the end of its time, writes a checkpoint and is put
back into the queue. Where the process that submitted the jobs is killed, they go on; begun again,
it waits for those that still run, and submits the others. submitit is an optional dependency, which
`pip install '.[slurm]'` installs.
"""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from statetrack.errors import RunError, SettingsError, nearest_or_known
from statetrack.registry import import_extra
from statetrack.runs import write_file
from statetrack.settings import LineOrEmpty, option
from statetrack.sweep.executors import EXECUTORS, D, Executor, P, PointWork, Stop
from statetrack.sweep.executors._shared import Shared, threads

POLL = 0.5
"""Seconds between two looks at the jobs; submitit itself asks SLURM less and less often."""

GRACE = 60.0
"""Seconds in which jobs can finish their step and write a checkpoint, before they are cancelled."""

LONGEST_ARRAY = 1000
"""The most jobs of an array: SLURM's own default is 1,001."""


@EXECUTORS.register("slurm")
class Slurm(Executor):
    """Jobs of a SLURM cluster, one a point."""

    jobs: int = option(64, "The most points that run at the same time.", min=1)
    cluster: Literal["slurm", "local", "debug"] = option(
        "slurm",
        "`slurm`, or, to try jobs out, `local`: processes of this machine, or `debug`: this "
        "process, one point after the other, each to its end.",
    )
    partition: LineOrEmpty = option("", "The partition; by default the cluster's own.")
    minutes: int = option(
        60,
        "Minutes of a job; a point that takes longer is put back into the queue and goes on.",
        min=1,
        max=10**6,
    )
    cpus: int = option(1, "Processors of a point; it computes with so many threads.", min=1)
    gpus: int = option(0, "GPUs of a point.", min=0)
    memory: float = option(4.0, "Gigabytes of memory of a point.", above=0)
    notice: int = option(
        90,
        "Seconds before the end of its time at which a job begins to write its checkpoint.",
        min=1,
        max=3600,
    )
    requeues: int = option(
        50, "How often a point may be put back into the queue for want of time.", min=0
    )
    retries: int = option(3, "How often a point is submitted again whose job died.", min=0)

    further: tuple[str, ...] = option(
        (),
        "Other parameters of submitit's SlurmExecutor, separated by commas, such as "
        "`account=ours,qos=long`.",
    )

    @property
    def num_at_once(self) -> int:
        """As many as are asked for, where the cluster has room for them."""
        return self.jobs

    def map(self, work: PointWork[P, D], points: Sequence[P], stop: Stop) -> Iterator[D]:
        """What became of each point, in the order in which they end: see `Executor`.

        Raises `SettingsError` without submitit or SLURM, and for a parameter that submitit does
        not know.
        """
        submitit = import_extra("submitit", "slurm", "the executor 'slurm'")
        shared = Shared.begin(points)
        running: Running = {}
        died: Counter[str] = Counter()
        lost = False
        try:
            jobs = _Jobs(submitit, self._executor(submitit, shared.folder / "jobs"), shared)
            task = _Task(work, shared, self.cpus)
            running = jobs.still_running(points)
            waiting = [point for point in points if shared.key(point) not in running]
            while (waiting or running) and not stop():
                batch = waiting[: self._room(len(running))]
                del waiting[: len(batch)]
                running |= jobs.submit(task, batch)
                for key, (point, job) in list(running.items()):
                    if stop() or not jobs.is_over(job):
                        continue
                    del running[key]
                    done = jobs.outcome(work, point, job)
                    if done is None:
                        died[key] += 1
                        if died[key] <= self.retries:
                            waiting.append(point)
                            continue
                        done, lost = work.lost(point, jobs.how_it_died(job, died[key])), True
                    yield done
                if running:
                    time.sleep(POLL)
        finally:
            if running:
                shared.ask_to_stop()
                jobs.end([job for _, job in running.values()])
            if not lost:
                shared.end()
            else:  # the files of jobs that died say why; the next process tries them again
                jobs.forget()

    def _room(self, running: int) -> int:
        """How many further points may be submitted: SLURM itself runs only so many at once."""
        return LONGEST_ARRAY if self.cluster == "slurm" else max(0, self._most() - running)

    def _most(self) -> int:
        return 1 if self.cluster == "debug" else self.jobs

    def _executor(self, submitit: Any, folder: Path) -> Any:
        """Submitit's executor, with its parameters set."""
        if self.cluster == "debug":
            self._refuse_further()
            return submitit.DebugExecutor(folder)
        if self.cluster == "local":
            self._refuse_further()
            executor = submitit.LocalExecutor(folder, max_num_timeout=self.requeues)
            executor.update_parameters(
                timeout_min=self.minutes, signal_delay_s=self.notice, gpus_per_node=self.gpus
            )
            return executor
        try:
            executor = submitit.SlurmExecutor(folder, max_num_timeout=self.requeues)
        except RuntimeError:
            raise SettingsError(
                "the executor 'slurm': there is no SLURM here (no `srun`): run the command on a "
                "machine of the cluster, or try it out with cluster=local"
            ) from None
        further = self._further(submitit.SlurmExecutor._valid_parameters())
        asked: dict[str, Any] = {
            "job_name": "statetrack",
            "time": self.minutes,
            "cpus_per_task": self.cpus,
            "mem": f"{round(self.memory * 1024)}MB",
            "array_parallelism": self.jobs,
            "signal_delay_s": self.notice,
        }
        if self.gpus:
            asked["gpus_per_node"] = self.gpus
        if self.partition:
            asked["partition"] = self.partition
        executor.update_parameters(**asked | further)
        return executor

    def _further(self, known: Collection[str]) -> dict[str, Any]:
        """The further parameters, by name; those that are whole numbers are taken as such."""
        found: dict[str, Any] = {}
        for one in self.further:
            name, equals, value = one.partition("=")
            if name not in known or not equals:
                raise SettingsError(
                    f"the executor 'slurm': further={one}: is no NAME=VALUE of submitit's."
                    f"{nearest_or_known(name, known)}"
                )
            found[name] = int(value) if value.isdecimal() else value
        return found

    def _refuse_further(self) -> None:
        if self.further:
            raise SettingsError(
                f"the executor 'slurm': further={self.further[0]}: is SLURM's, and not for "
                f"cluster={self.cluster}"
            )


Running: TypeAlias = "dict[str, tuple[Any, Any]]"
"""The points whose jobs run or wait, by their keys, each with its job."""


@dataclass
class _Jobs:
    """The jobs of a sweep; their ids are kept beside their files, for a process begun again."""

    submitit: Any
    executor: Any
    shared: Shared
    ids: dict[str, str] = field(default_factory=dict)

    @property
    def _file(self) -> Path:
        return self.shared.folder / "jobs.json"

    def submit(self, task: _Task, points: Sequence[P]) -> Running:
        """Submit a job for each point, as one array, and keep their ids.

        Raises `RunError` where that fails.
        """
        if not points:
            return {}
        jobs = []
        try:
            with self.executor.batch():
                jobs = [self.executor.submit(task, point) for point in points]
        except Exception as problem:  # of `sbatch`, and of submitit
            raise RunError(
                f"the executor 'slurm': jobs cannot be submitted: {' '.join(str(problem).split())}"
            ) from None
        sent = {
            self.shared.key(point): (point, job) for point, job in zip(points, jobs, strict=True)
        }
        self.ids |= {key: job.job_id for key, (_, job) in sent.items()}
        write_file(self._file, json.dumps(self.ids, indent=0).encode())
        return sent

    def still_running(self, points: Sequence[P]) -> Running:
        """The jobs of an earlier process, which was killed, that run, wait or have a result."""
        try:
            self.ids = dict(json.loads(self._file.read_text(encoding="utf-8")))
        except (OSError, ValueError):
            return {}
        found: Running = {}
        for point in points:
            key = self.shared.key(point)
            if key in self.ids and self.executor.job_class is not self.submitit.DebugJob:
                job = self.executor.job_class(folder=self.executor.folder, job_id=self.ids[key])
                if job.paths.result_pickle.exists() or not self.is_over(job):
                    found[key] = (point, job)
        return found

    def forget(self) -> None:
        """Remove the ids, so that no later process waits for these jobs."""
        self._file.unlink(missing_ok=True)

    def is_over(self, job: Any) -> bool:
        """Whether a job has ended, in whatever way."""
        if isinstance(job, self.submitit.LocalJob) and job._process is None:
            # of an earlier process: submitit knows only those that it began itself
            return job.paths.result_pickle.exists() or not _is_submitits(int(job.job_id))
        return bool(job.done())

    def outcome(self, work: PointWork[P, D], point: P, job: Any) -> D | None:
        """What a job returned, or how it failed; None where it died, or ended before its work."""
        if isinstance(job, self.submitit.LocalJob) and not job.paths.result_pickle.exists():
            return None  # of a job on another machine, submitit waits for the file to be seen here
        try:
            done: D | None = job.result()
        except self.submitit.core.utils.FailedJobError as problem:
            return work.failed(point, RunError(f"its job failed: {_error_in(str(problem))}"))
        except self.submitit.core.utils.UncompletedJobError:
            return None
        return done

    def how_it_died(self, job: Any, times: int) -> str:
        """Why a point is given up, in one line."""
        return (
            f"its job died {times} times, the last one ({job.job_id}) in the state "
            f"{job.state}: {job.paths.stderr} says more; the checkpoint is kept, so run the "
            "command again"
        )

    def end(self, jobs: Sequence[Any]) -> None:
        """Wait for jobs that were told to stop; cancel those that wait or take too long."""
        jobs = [job for job in jobs if not isinstance(job, self.submitit.DebugJob)]
        for job in jobs:
            if isinstance(job, self.submitit.SlurmJob) and job.state.upper() == "PENDING":
                job.cancel(check=False)
        deadline = time.monotonic() + GRACE
        try:
            while any(not self.is_over(job) for job in jobs) and time.monotonic() < deadline:
                time.sleep(POLL)
        finally:
            for job in jobs:
                if not self.is_over(job):
                    with suppress(Exception):
                        job.cancel(check=False)


def _is_submitits(process: int) -> bool:
    """Whether a process of this machine exists, and is one that submitit began."""
    try:
        command = Path(f"/proc/{process}/cmdline").read_bytes()
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return b"submitit" in command


def _error_in(trace: str) -> str:
    """The line of a traceback that is the error itself."""
    lines = [line for line in trace.splitlines() if re.match(r"[A-Za-z_][\w.]*(: |$)", line)]
    return lines[-1] if lines else trace


# --- in a job ---

LAST_WORDS = 30.0
"""Seconds for which a job that was told to end waits to be told that it is preempted."""

Handler = Callable[[int, Any], Any]


@dataclass(frozen=True)
class _Task:
    """What a job calls: it runs one point, and writes a checkpoint when a signal comes."""

    work: PointWork[Any, Any]
    shared: Shared
    threads: int

    def __call__(self, point: Any) -> Any:
        """What became of the point; None where it was told to stop, or to end."""
        try:
            self.shared.enter()
            with _signals() as heard:
                with threads(self.threads):
                    done = self.shared.run(self.work, point, lambda: bool(heard.numbers))
                if done is None and heard.numbers:
                    heard.requeue()
                return done
        except RunError as problem:
            return self.work.failed(point, problem)

    def checkpoint(self, point: Any) -> Any:
        """What runs once the job is begun again; submitit calls it before it requeues the job."""
        import submitit

        return submitit.helpers.DelayedSubmission(self, point)


@dataclass
class _Heard:
    """The signals that came, and what submitit does at the one of preemption."""

    preemption: int
    handler: Handler | None
    numbers: list[int] = field(default_factory=list)

    def requeue(self) -> None:
        """Have submitit put the job back into the queue, which ends this process.

        Where only an end was asked for, this returns after a while: SLURM asks for an end before
        it says that a job is preempted.
        """
        deadline = time.monotonic() + LAST_WORDS
        while self.preemption not in self.numbers and time.monotonic() < deadline:
            time.sleep(0.1)
        if self.preemption in self.numbers and self.handler is not None:
            self.handler(self.preemption, None)


@contextmanager
def _signals() -> Iterator[_Heard]:
    """Signals ask to stop, so that there is a checkpoint before submitit requeues the job.

    Its own handler would end the process in the middle of a step.
    """
    preemption = getattr(signal, "SIG" + os.environ.get("SUBMITIT_PREEMPT_SIGNAL", "USR2"))
    numbers = (preemption, signal.SIGTERM)
    if threading.current_thread() is not threading.main_thread():
        yield _Heard(preemption, None)
        return
    before = {number: signal.getsignal(number) for number in numbers}
    handler = before[preemption]
    heard = _Heard(preemption, handler if callable(handler) else None)
    for number in numbers:
        signal.signal(number, lambda found, _: heard.numbers.append(found))
    try:
        yield heard
    finally:
        for number, was in before.items():
            signal.signal(number, was)
