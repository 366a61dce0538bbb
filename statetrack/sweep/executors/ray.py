"""Points on a Ray cluster, one task a point: of many machines, or of this one.

A task whose machine dies is begun again on another one, and goes on from the checkpoint in the
run's folder, which all machines share. Ray is an optional dependency, which `pip install
'.[ray]'` installs.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from statetrack.errors import RunError, SettingsError
from statetrack.registry import import_extra
from statetrack.settings import LineOrEmpty, option
from statetrack.sweep.executors import (
    EXECUTORS,
    D,
    Executor,
    P,
    PointWork,
    Stop,
    available_cores,
)
from statetrack.sweep.executors._shared import Shared, threads

POLL = 0.2
"""Seconds between two questions whether to stop."""

GRACE = 60.0
"""Seconds in which tasks can finish their step and write a checkpoint, before they are killed."""

LOOK = 60.0
"""Seconds in which every machine must have shown that it sees the folder of the sweep."""

QUIET: Mapping[str, str] = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is sent anywhere
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
"""The environment of Ray, where the user has not set these variables."""


@EXECUTORS.register("ray")
class Ray(Executor):
    """A Ray cluster: of many machines, or of this one."""

    jobs: int = option(
        0,
        "Where Ray is started on this machine alone, the processors that it is given; 0: one for "
        "each core that the process may use.",
        min=0,
    )
    address: LineOrEmpty = option(
        "",
        "The cluster's address; by default that of RAY_ADDRESS, or else Ray is started on this "
        "machine alone.",
    )
    cpus: float = option(1.0, "Processors of a point; it computes with so many threads.", above=0)
    gpus: float = option(0.0, "GPUs of a point, such as 0.25 for four points on each.", min=0)
    retries: int = option(
        3, "How often a point is begun again whose machine or process died.", min=0, max=1000
    )

    @property
    def num_at_once(self) -> int:
        """As many as this machine has room for: what a cluster has is known once it is reached."""
        return max(1, int((self.jobs or available_cores()) / self.cpus))

    def map(self, work: PointWork[P, D], points: Sequence[P], stop: Stop) -> Iterator[D]:
        """What became of each point, in the order in which they end: see `Executor`.

        Raises `SettingsError` without Ray, without a cluster at the address, and where no machine
        of it has what a point takes; `RunError` where one does not show the folder of the sweep,
        or has another version of statetrack.
        """
        ray = import_extra("ray", "ray", "the executor 'ray'")
        with _connected(ray, self.address, self.jobs or available_cores()):
            shared = Shared.begin(points)
            try:
                self._require_room(ray)
                self._require_visible(ray, shared)
                yield from self._results(ray, shared, work, points, stop)
            finally:
                shared.end()

    def _require_room(self, ray: Any) -> None:
        """Raise `SettingsError` where no machine could ever run a point: it would wait forever."""
        wanted = {"CPU": self.cpus, "GPU": self.gpus}
        if not any(_has(node, wanted) for node in _alive(ray)):
            there = "; ".join(
                ", ".join(f"{node['Resources'].get(kind, 0):g} {kind}" for kind in wanted)
                for node in _alive(ray)
            )
            raise SettingsError(
                f"the executor 'ray': a point takes {wanted['CPU']:g} CPU and {wanted['GPU']:g} "
                f"GPU, and no machine of the cluster has them (there are: {there}): ask for less, "
                "by cpus and gpus, or start a larger machine first"
            )

    def _require_visible(self, ray: Any, shared: Shared) -> None:
        """Raise `RunError` where a machine of the cluster does not show the folder of the sweep."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        look = ray.remote(_look)
        looks = {
            look.options(
                num_cpus=0,
                max_retries=0,
                scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False),
            ).remote(shared): node["NodeManagerAddress"]
            for node in _alive(ray)
            if _has(node, {"CPU": self.cpus, "GPU": self.gpus})
        }
        done, waiting = ray.wait([*looks], num_returns=len(looks), timeout=LOOK)
        if waiting:
            silent = ", ".join(sorted({looks[one] for one in waiting}))
            raise RunError(f"the Ray cluster: no worker begins on {silent} within {LOOK:g} s")
        for one in done:
            try:
                wrong = ray.get(one)
            except ray.exceptions.RayError as problem:
                raise RunError(
                    f"the Ray worker on {looks[one]} cannot begin ({_last_line(problem)}): install "
                    "statetrack on every machine, in the same version"
                ) from None
            if wrong:
                raise RunError(wrong)

    def _results(
        self, ray: Any, shared: Shared, work: PointWork[P, D], points: Sequence[P], stop: Stop
    ) -> Iterator[D]:
        task = ray.remote(
            num_cpus=self.cpus,
            num_gpus=self.gpus,
            max_retries=self.retries,
            retry_exceptions=False,
            scheduling_strategy="SPREAD",
        )(_run)
        sent = ray.put((shared, work, max(1, int(self.cpus))))
        pending = {task.options(name=point.name).remote(sent, point): point for point in points}
        try:
            while pending and not stop():
                ready, _ = ray.wait([*pending], num_returns=1, timeout=POLL)
                for one in ready:
                    done = self._outcome(ray, work, one, pending.pop(one))
                    if done is not None:
                        yield done
        finally:
            shared.ask_to_stop()
            _end(ray, [*pending])

    def _outcome(self, ray: Any, work: PointWork[P, D], task: Any, point: P) -> D | None:
        """What a task returned, or how it ended."""
        try:
            done: D | None = ray.get(task)
        except ray.exceptions.RayTaskError as problem:
            return work.failed(point, problem.cause or problem)
        except ray.exceptions.RayError as problem:
            return work.lost(
                point,
                f"its worker died {self.retries + 1} times ({_first_line(problem)}); the same "
                "command tries it again",
            )
        return done


# --- in a worker ---


def _look(shared: Shared) -> str:
    """What keeps a worker from running points, in words; empty where nothing does."""
    try:
        shared.enter()
    except RunError as problem:
        return str(problem)
    return ""


def _run(sent: tuple[Shared, PointWork[P, D], int], point: P) -> D | None:
    """Run one point; None where the workers were told to stop."""
    shared, work, number = sent
    try:
        shared.enter()
    except RunError as problem:  # a machine that has joined the cluster since
        return work.failed(point, problem)
    with threads(number):
        return shared.run(work, point, lambda: False)


# --- Ray itself ---


@contextmanager
def _connected(ray: Any, address: str, num_local: int) -> Iterator[None]:
    """A connection to a cluster, or to a new one of this machine; one that exists is left as is."""
    if ray.is_initialized():
        yield
        return
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    where = address or os.environ.get("RAY_ADDRESS", "") or "local"
    given: dict[str, Any] = {"address": where}
    if where == "local":
        given |= {"num_cpus": num_local, "include_dashboard": False}
    try:
        with _own_signals():
            ray.init(**given, logging_level=logging.ERROR, log_to_driver=False)
    except Exception as problem:  # Ray raises errors of many kinds here
        raise SettingsError(
            f"the executor 'ray': no cluster at '{where}' ({_first_line(problem)}): start one "
            "with `ray start --head`, or leave the address out"
        ) from None
    try:
        yield
    finally:
        ray.shutdown()


@contextmanager
def _own_signals() -> Iterator[None]:
    """What signals do stays as it was: Ray installs a handler of SIGTERM that ends the process."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(ray: Any, tasks: list[Any]) -> None:
    """Wait for tasks that were told to stop, and kill those that take too long."""
    if not tasks:
        return
    deadline = time.monotonic() + GRACE
    try:
        waiting = tasks
        while waiting and (left := deadline - time.monotonic()) > 0:
            _, waiting = ray.wait(waiting, num_returns=len(waiting), timeout=min(left, POLL))
    finally:
        for one in tasks:
            with contextlib.suppress(Exception):
                ray.cancel(one, force=True)


def _alive(ray: Any) -> list[Mapping[str, Any]]:
    """The machines of the cluster that are there now."""
    return [node for node in ray.nodes() if node["Alive"]]


def _has(node: Mapping[str, Any], wanted: Mapping[str, float]) -> bool:
    return all(node["Resources"].get(kind, 0) >= amount for kind, amount in wanted.items())


def _first_line(problem: BaseException) -> str:
    return next(iter(str(problem).strip().splitlines()), type(problem).__name__)


def _last_line(problem: BaseException) -> str:
    return next(iter(str(problem).strip().splitlines()[::-1]), type(problem).__name__)
