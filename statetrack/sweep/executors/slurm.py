"""Points as jobs of a SLURM cluster, through submitit: job arrays, one element a point.

A job that is preempted, or that comes near the end of its time, writes a checkpoint and is put
back into the queue. Where the process that submitted the jobs is killed, they go on; begun again,
it waits for those that still run, and submits the others. submitit is an optional dependency, which
`pip install 'statetrack[slurm]'` installs.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from statetrack.errors import RunError, SettingsError, nearest_or_known
from statetrack.extras import import_extra
from statetrack.runs.files import write_file
from statetrack.settings import LineOrEmpty, Settings, option
from statetrack.sweep.executors._base import Done, Executor, Stop, Work
from statetrack.sweep.executors._shared import Shared, failed
from statetrack.sweep.points import Point

POLL = 0.5
"""Seconds between two looks at the jobs; submitit itself asks SLURM less and less often."""

GRACE = 60.0
"""Seconds in which jobs can finish their step and write a checkpoint, before they are cancelled."""

LONGEST_ARRAY = 1000
"""The most jobs of an array: SLURM's own default is 1,001."""


class SlurmSettings(Settings):
    """What a job asks the cluster for."""

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
    at_once: int = option(64, "The most points that run at the same time.", min=1)
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


class Slurm(Executor):
    """Runs points as jobs of a SLURM cluster.

    `further` are other parameters of submitit, by its names: `account`, `qos`, `constraint`.
    """

    settings_class = SlurmSettings

    def __init__(self, settings: SlurmSettings, further: Mapping[str, Any] | None = None) -> None:
        self.settings = settings
        self.further = dict(further or {})

    def map(self, work: Work, points: Sequence[Point], stop: Stop) -> Iterator[Done]:
        """What became of each point, in the order in which they end: see `Executor`.

        Raises `SettingsError` without submitit or SLURM, and for a parameter that submitit does
        not know.
        """
        submitit = import_extra("submitit", "slurm", "the executor 'slurm'")
        shared = Shared.begin(points)
        jobs = _Jobs(submitit, self._executor(submitit, shared.folder / "jobs"), shared)
        task = _Task(work, shared, self.settings.cpus)
        running = jobs.still_running(points)
        waiting = [point for point in points if shared.key(point) not in running]
        died: Counter[str] = Counter()
        clean = False
        try:
            while (waiting or running) and not stop():
                batch = waiting[: self._room(len(running))]
                del waiting[: len(batch)]
                running |= jobs.submit(task, batch)
                for key, (point, job) in list(running.items()):
                    if stop() or not jobs.is_over(job):
                        continue
                    del running[key]
                    done = jobs.outcome(point, job)
                    if done is None:
                        died[key] += 1
                        if died[key] <= self.settings.retries:
                            waiting.append(point)
                            continue
                        done = failed(point, jobs.how_it_died(job, died[key]))
                    yield done
                if running:
                    time.sleep(POLL)
            clean = not running and not waiting
        finally:
            if running:
                shared.ask_to_stop()
                jobs.end([job for _, job in running.values()])
            if clean:
                shared.end()

    def _room(self, running: int) -> int:
        """How many further points may be submitted: SLURM itself runs only so many at once."""
        return LONGEST_ARRAY if self.settings.cluster == "slurm" else max(0, self._most() - running)

    def _most(self) -> int:
        return 1 if self.settings.cluster == "debug" else self.settings.at_once

    def _executor(self, submitit: Any, folder: Path) -> Any:
        """submitit's executor, with its parameters set."""
        chosen = self.settings
        if chosen.cluster == "debug":
            self._refuse_further()
            return submitit.DebugExecutor(folder)
        if chosen.cluster == "local":
            self._refuse_further()
            executor = submitit.LocalExecutor(folder, max_num_timeout=chosen.requeues)
            executor.update_parameters(
                timeout_min=chosen.minutes, signal_delay_s=chosen.notice, gpus_per_node=chosen.gpus
            )
            return executor
        try:
            executor = submitit.SlurmExecutor(folder, max_num_timeout=chosen.requeues)
        except RuntimeError:
            raise SettingsError(
                "the executor 'slurm': there is no SLURM here (no `srun`): run the command on a "
                "machine of the cluster, or try it out with cluster=local"
            ) from None
        known = submitit.SlurmExecutor._valid_parameters()
        for name in self.further:
            if name not in known:
                names = {*known, *SlurmSettings.model_fields}
                raise SettingsError(
                    f"the executor 'slurm' has no option '{name}'.{nearest_or_known(name, names)}"
                )
        asked: dict[str, Any] = {
            "job_name": "statetrack",
            "time": chosen.minutes,
            "cpus_per_task": chosen.cpus,
            "mem": f"{round(chosen.memory * 1024)}MB",
            "array_parallelism": chosen.at_once,
            "signal_delay_s": chosen.notice,
        }
        if chosen.gpus:
            asked["gpus_per_node"] = chosen.gpus
        if chosen.partition:
            asked["partition"] = chosen.partition
        executor.update_parameters(**asked | self.further)
        return executor

    def _refuse_further(self) -> None:
        if self.further:
            raise SettingsError(
                f"the executor 'slurm', cluster={self.settings.cluster}: has no option "
                f"'{next(iter(self.further))}', which is SLURM's"
            )


Running = dict[str, tuple[Point, Any]]
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

    def submit(self, task: _Task, points: Sequence[Point]) -> Running:
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

    def still_running(self, points: Sequence[Point]) -> Running:
        """The jobs of an earlier process, which was killed, that still run or wait."""
        try:
            self.ids = dict(json.loads(self._file.read_text(encoding="utf-8")))
        except (OSError, ValueError):
            return {}
        found: Running = {}
        for point in points:
            key = self.shared.key(point)
            if key in self.ids and self.executor.job_class is not self.submitit.DebugJob:
                job = self.executor.job_class(folder=self.executor.folder, job_id=self.ids[key])
                if not self.is_over(job):
                    found[key] = (point, job)
        return found

    def is_over(self, job: Any) -> bool:
        """Whether a job has ended, in whatever way."""
        if isinstance(job, self.submitit.LocalJob) and job._process is None:
            # of an earlier process: submitit knows only those that it began itself
            return job.paths.result_pickle.exists() or not _is_submitits(int(job.job_id))
        return bool(job.done())

    def outcome(self, point: Point, job: Any) -> Done | None:
        """What a job returned, or how it failed; None where it died, or ended before its work."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                done: Done | None = job.result()
        except self.submitit.core.utils.FailedJobError as problem:
            trace = str(problem)
            raised = [line for line in trace.splitlines() if _is_error(line)]
            return failed(point, raised[-1] if raised else "its job failed", trace)
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


def _is_error(line: str) -> bool:
    """Whether a line of a traceback is that of the error itself."""
    name, colon, _ = line.partition(":")
    return bool(colon) and name.replace(".", "").replace("_", "").isalnum() and name[0] != " "


# --- in a job ---

LAST_WORDS = 30.0
"""Seconds for which a job that was told to end waits to be told that it is preempted."""

Handler = Callable[[int, Any], Any]


@dataclass(frozen=True)
class _Task:
    """What a job calls: it runs one point, and writes a checkpoint when a signal comes."""

    work: Work
    shared: Shared
    threads: int

    def __call__(self, point: Point) -> Done | None:
        """What became of the point; None where it was told to stop, or to end."""
        import torch

        before = torch.get_num_threads()
        try:
            self.shared.enter()
            torch.set_num_threads(self.threads)
            with _signals() as heard:
                done = self.shared.run(self.work, point, lambda: bool(heard.numbers))
                if done is None and heard.numbers:
                    heard.requeue()
                return done
        except RunError as problem:
            return failed(point, str(problem), traceback.format_exc())
        finally:
            torch.set_num_threads(before)

    def checkpoint(self, point: Point) -> Any:
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
