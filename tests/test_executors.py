"""Executors for other machines: Ray and SLURM, the latter through submitit's local modes."""

from __future__ import annotations

import importlib.util
import json
import logging
import multiprocessing
import os
import pickle
import signal
import stat
import subprocess
import sys
import threading
import time
import warnings
from collections import Counter
from multiprocessing import forkserver, resource_tracker
from pathlib import Path

import pytest

from statetrack.errors import RunError, SettingsError
from statetrack.sweep import EXECUTORS, Failed
from statetrack.sweep.executors import slurm as slurm_module
from statetrack.sweep.executors._shared import Shared, Watched
from statetrack.sweep.executors.local import Local, SaidOnce, _deaf_to_signals
from statetrack.sweep.executors.ray import Ray
from statetrack.sweep.executors.slurm import Slurm, _Task
from tests.scripted_work import Scripted, points_named

ROOT = Path(__file__).parents[1]


def never() -> bool:
    return False


@pytest.fixture
def workers(monkeypatch):
    """Workers of other processes find the package and the tests."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def errors_of(done: list) -> dict[str, str]:
    assert all(isinstance(one, Failed) for one in done)
    return {one.row: one.error for one in done}


def test_of_what_all_workers_would_say_one_is_heard():
    told = multiprocessing.get_context("spawn").Value("b", 0)
    workers = [SaidOnce(told), SaidOnce(told)]
    once = logging.makeLogRecord({"msg": "compiling", "once": True})
    assert [each.filter(once) for each in (*workers, *workers)] == [True, False, False, False]
    assert all(each.filter(logging.makeLogRecord({"msg": "another"})) for each in workers)


@pytest.mark.skipif(sys.platform != "linux", reason="workers are not forked")
def test_workers_of_this_machine_are_forked_from_one_process_that_has_imported_torch(tmp_path):
    server = forkserver._forkserver
    server._stop()  # that of another test, which may have imported less
    Local(jobs=1).prepare()
    assert server._forkserver_pid is None
    Local(jobs=2).prepare()
    begun = server._forkserver_pid
    points = points_named(tmp_path, "says one", "says another")
    one, another = Local(jobs=2).map(Scripted(tmp_path), points, never)
    assert one.error == another.error == f"{begun} True 1"


def test_signals_are_held_back_where_python_begins_its_tracker_of_resources(monkeypatch):
    tracker = resource_tracker.ResourceTracker()
    monkeypatch.setattr(resource_tracker, "ensure_running", tracker.ensure_running)
    with _deaf_to_signals():
        tracker.ensure_running()  # as the server of workers does when it begins
        held = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    tracker._stop()
    assert {signal.SIGINT, signal.SIGTERM} <= held
    assert not {signal.SIGINT, signal.SIGTERM} & signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_every_executor_is_found_by_its_name():
    assert {"local", "ray", "slurm"} <= set(EXECUTORS)


@pytest.mark.parametrize(
    ("name", "package", "extra"), [("ray", "ray", "ray"), ("slurm", "submitit", "slurm")]
)
def test_an_executor_without_its_package_says_what_installs_it(
    name, package, extra, monkeypatch, tmp_path
):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda given, *rest: None if given == package else find(given)
    )
    executor = EXECUTORS[name]()
    with pytest.raises(SettingsError) as problem:
        list(executor.map(Scripted(tmp_path), points_named(tmp_path, "ends"), never))
    assert f"pip install '.[{extra}]'" in str(problem.value)
    assert len(str(problem.value).splitlines()) == 1


def test_ray_without_a_cluster_at_the_address_is_one_line(tmp_path):
    pytest.importorskip("ray")
    executor = Ray(address="nonsense://here")
    with pytest.raises(SettingsError, match="no cluster at 'nonsense://here'") as problem:
        list(executor.map(Scripted(tmp_path), points_named(tmp_path, "ends"), never))
    assert len(str(problem.value).splitlines()) == 1


# --- the folder that workers share ---


def test_a_worker_that_does_not_see_the_folder_refuses_and_says_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shared = Shared.begin(points_named(tmp_path, "ends"))
    shared.enter()
    (shared.folder / "here").write_text("another folder of that name")
    with pytest.raises(RunError, match="not visible from the worker on"):
        shared.enter()


def test_a_worker_with_another_version_refuses_and_names_both(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shared = Shared.begin(points_named(tmp_path, "ends"))
    monkeypatch.setattr("statetrack.__version__", "9.9")
    with pytest.raises(RunError, match=r"has statetrack 9\.9, and the sweep was begun with "):
        shared.enter()


def test_a_second_worker_waits_for_the_first_and_then_has_its_turn(tmp_path):
    (point,) = points_named(tmp_path, "waits")
    shared, work, done = Shared.begin([point]), Scripted(tmp_path), []
    first_stops = threading.Event()
    threads = [
        threading.Thread(target=lambda: done.append(shared.run(work, point, first_stops.is_set)))
    ]
    threads[0].start()
    while not (tmp_path / "calls.txt").exists():
        time.sleep(0.01)
    threads.append(threading.Thread(target=lambda: done.append(shared.run(work, point, never))))
    threads[1].start()
    time.sleep(0.2)
    assert work.calls("waits") == 1
    first_stops.set()
    for thread in threads:
        thread.join()
    assert work.calls("waits") == 2 and done[0] is None and done[1].error == "ended"


def test_the_stop_file_stops_a_worker_once_it_is_there(tmp_path):
    stopping = Watched(tmp_path / "stop", never)
    assert not stopping()
    (tmp_path / "stop").touch()
    stopping.looked -= 1000
    assert stopping() and stopping()


# --- SLURM ---


def test_jobs_that_die_are_submitted_again_and_those_that_always_die_fail(
    tmp_path, workers, monkeypatch
):
    pytest.importorskip("submitit")
    monkeypatch.setattr(slurm_module, "POLL", 0.05)
    work = Scripted(tmp_path)
    points = points_named(tmp_path, "ends", "dies once", "dies always", "raises")
    executor = Slurm(cluster="local", retries=1)
    done = list(executor.map(work, points, never))
    errors = errors_of(done)
    assert sorted(errors) == sorted(point.row for point in points) and len(done) == 4
    assert errors["ends"] == errors["dies once"] == "ended"
    assert errors["raises"] == "RunError: its job failed: LookupError: no such thing"
    assert "its job died 2 times" in errors["dies always"]
    calls = {row: work.calls(row) for row in errors}
    assert calls == {"ends": 1, "dies once": 2, "dies always": 2, "raises": 1}
    assert list((tmp_path / "runs" / "column" / ".workers" / "jobs").glob("*_log.err"))


def test_a_stop_reaches_the_jobs_which_write_checkpoints(tmp_path, workers, monkeypatch):
    pytest.importorskip("submitit")
    monkeypatch.setattr(slurm_module, "POLL", 0.05)
    work, points = Scripted(tmp_path), points_named(tmp_path, "waits", "waits too")

    def both_run() -> bool:
        calls = tmp_path / "calls.txt"
        return calls.exists() and len(calls.read_text().splitlines()) >= 2

    assert list(Slurm(cluster="local").map(work, points, both_run)) == []
    assert {path.stem for path in tmp_path.glob("*.checkpoint")} == {"waits", "waits too"}
    assert not (tmp_path / "runs" / "column" / ".workers").exists()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of submitit's logs
def test_jobs_are_tried_out_in_this_process_one_after_the_other(tmp_path):
    pytest.importorskip("submitit")
    work, points = Scripted(tmp_path), points_named(tmp_path, "one", "two")
    assert errors_of(list(Slurm(cluster="debug").map(work, points, never))) == {
        "one": "ended",
        "two": "ended",
    }


def told_once_it_works(folder: Path, number: int) -> threading.Thread:
    """A thread that sends this process a signal once a point has begun."""

    def tell() -> None:
        end = time.monotonic() + 20
        while not (folder / "calls.txt").exists() and time.monotonic() < end:
            time.sleep(0.005)
        os.kill(os.getpid(), number)

    return threading.Thread(target=tell)


def test_a_preempted_job_writes_a_checkpoint_before_submitit_requeues_it(tmp_path):
    (point,) = points_named(tmp_path, "waits")
    order: list[str] = []

    def requeue(number: int, frame: object) -> None:
        order.append("requeued" if (tmp_path / "waits.checkpoint").exists() else "too early")
        raise SystemExit(144)

    before = signal.signal(signal.SIGUSR2, requeue)
    told = told_once_it_works(tmp_path, signal.SIGUSR2)
    try:
        told.start()
        with pytest.raises(SystemExit):
            _Task(Scripted(tmp_path), Shared.begin([point]), 1)(point)
        assert order == ["requeued"]
        assert signal.getsignal(signal.SIGUSR2) is requeue
    finally:
        told.join()
        signal.signal(signal.SIGUSR2, before)


def test_a_job_that_is_only_told_to_end_is_not_requeued(tmp_path, monkeypatch):
    monkeypatch.setattr(slurm_module, "LAST_WORDS", 0.1)
    (point,) = points_named(tmp_path, "waits")
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    told = told_once_it_works(tmp_path, signal.SIGTERM)
    try:
        told.start()
        assert _Task(Scripted(tmp_path), Shared.begin([point]), 1)(point) is None
        assert (tmp_path / "waits.checkpoint").exists()
    finally:
        told.join()
        signal.signal(signal.SIGTERM, before)


SBATCH = r"""#!/bin/bash
# stands in for SLURM: every element of an array is a process of this machine
cp "$1" "$(dirname "$0")/script-$$.sh"
last=$(sed -n 's/^#SBATCH --array=0-\([0-9]*\).*/\1/p' "$1")
for task in $(seq 0 "$last"); do
    SLURM_JOB_ID=$(($$ + 1 + task)) SLURM_ARRAY_JOB_ID=$$ SLURM_ARRAY_TASK_ID=$task \
        setsid bash "$1" >/dev/null 2>&1 &
done
echo "Submitted batch job $$"
"""
SRUN = """#!/bin/bash
while [[ "$1" != *python* ]]; do shift; done
exec "$@"
"""


@pytest.fixture
def a_stand_in_for_slurm(tmp_path, monkeypatch, workers):
    """`sbatch`, `srun` and `sacct` of this machine."""
    pytest.importorskip("submitit")
    folder = tmp_path / "slurm"
    folder.mkdir()
    sacct = "#!/bin/bash\necho 'JobID|State|NodeList'\n"
    for name, text in {"sbatch": SBATCH, "srun": SRUN, "sacct": sacct, "scancel": sacct}.items():
        (folder / name).write_text(text)
        (folder / name).chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setattr(slurm_module, "POLL", 0.05)
    return folder


def test_points_are_submitted_as_one_array_with_what_was_asked_for(tmp_path, a_stand_in_for_slurm):
    work, points = Scripted(tmp_path), points_named(tmp_path, "one", "two", "three")
    executor = Slurm(
        partition="short",
        minutes=30,
        cpus=2,
        gpus=1,
        jobs=2,
        further=("account=ours", "exclude=node7"),
    )
    done = list(executor.map(work, points, never))
    assert errors_of(done) == {"one": "ended", "two": "ended", "three": "ended"}
    (script,) = a_stand_in_for_slurm.glob("script-*.sh")
    said = {line.removeprefix("#SBATCH --") for line in script.read_text().splitlines()}
    assert {
        *("partition=short", "time=30", "cpus-per-task=2", "gpus-per-node=1", "account=ours"),
        *("array=0-2%2", "signal=USR2@90", "mem=4096MB", "exclude=node7", "job-name=statetrack"),
    } <= said
    assert Counter((tmp_path / "ended.txt").read_text().split()) == {"one": 1, "two": 1, "three": 1}


def test_an_unknown_parameter_of_slurm_is_refused_with_the_nearest(tmp_path, a_stand_in_for_slurm):
    executor = Slurm(further=("acount=ours",))
    with pytest.raises(SettingsError, match="Did you mean 'account'"):
        list(executor.map(Scripted(tmp_path), points_named(tmp_path, "one"), never))
    assert not list(a_stand_in_for_slurm.glob("script-*.sh"))


def test_without_slurm_the_executor_says_so(tmp_path, monkeypatch):
    pytest.importorskip("submitit")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SettingsError, match="there is no SLURM here"):
        list(Slurm().map(Scripted(tmp_path), points_named(tmp_path, "one"), never))


MAIN = """
import sys
from pathlib import Path
from statetrack.sweep.executors.slurm import Slurm
from tests.scripted_work import Scripted, points_named

folder = Path(sys.argv[1])
points = points_named(folder, "sleeps one", "sleeps two")
done = list(Slurm(cluster="local").map(Scripted(folder), points, lambda: False))
print(sorted(one.row for one in done))
"""


@pytest.mark.slow
def test_jobs_outlive_a_killed_process_and_are_not_submitted_twice(tmp_path, workers):
    pytest.importorskip("submitit")
    given = [sys.executable, "-c", MAIN, str(tmp_path)]
    first = subprocess.Popen(given, cwd=ROOT)
    ids = tmp_path / "runs" / "column" / ".workers" / "jobs.json"
    calls = tmp_path / "calls.txt"
    while not (calls.exists() and len(calls.read_text().splitlines()) == 2):
        assert first.poll() is None
        time.sleep(0.05)
    first.kill()
    first.wait()
    assert len(json.loads(ids.read_text())) == 2
    second = subprocess.run(given, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert second.stdout.strip() == "['sleeps one', 'sleeps two']", second.stderr
    assert len(calls.read_text().splitlines()) == 2
    assert len((tmp_path / "ended.txt").read_text().splitlines()) == 2


@pytest.mark.slow
def test_a_job_near_the_end_of_its_time_is_requeued_and_goes_on(tmp_path, workers):
    pytest.importorskip("submitit")
    work, points = Scripted(tmp_path), points_named(tmp_path, "waits")
    done = list(Slurm(cluster="local", minutes=1, notice=45, retries=0).map(work, points, never))
    assert errors_of(done) == {"waits": "ended"}
    assert work.calls("waits") == 2 and (tmp_path / "waits.checkpoint").exists()


@pytest.mark.slow
def test_an_interruption_of_a_terminal_reaches_the_tasks_of_ray(tmp_path, workers):
    pytest.importorskip("ray")
    given = [sys.executable, "-c", INTERRUPTED, str(tmp_path)]
    process = subprocess.Popen(
        given, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    calls = tmp_path / "calls.txt"
    while not (calls.exists() and len(calls.read_text().splitlines()) == 2):
        assert process.poll() is None
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)
    printed, _ = process.communicate(timeout=120)
    assert printed.splitlines()[-1] == "[]"
    assert {path.stem for path in tmp_path.glob("*.checkpoint")} == {"waits one", "waits two"}
    assert not (tmp_path / "runs" / "column" / ".workers").exists()


INTERRUPTED = """
import sys
from pathlib import Path
from statetrack.cli._terminal import interruptible
from statetrack.sweep.executors.ray import Ray
from tests.scripted_work import Scripted, points_named

folder = Path(sys.argv[1])
points = points_named(folder, "waits one", "waits two", "ends")
with interruptible() as stop:
    print(list(Ray(jobs=2).map(Scripted(folder), points, stop)))
"""


@pytest.mark.slow
def test_a_machine_of_a_ray_cluster_dies_and_every_point_ends_once(tmp_path):
    pytest.importorskip("ray")
    given = [sys.executable, "-m", "tests.faults.cluster", "6", "600", "2"]
    ended = subprocess.run(given, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_what_a_worker_warns_of_is_handed_back_and_not_printed(capsys):
    from statetrack.errors import StatetrackWarning
    from statetrack.sweep.executors import local

    def work(point, stop):
        warnings.warn(StatetrackWarning("its plugin changed", point), stacklevel=1)
        warnings.warn("from elsewhere", UserWarning, stacklevel=1)
        return point

    with warnings.catch_warnings():
        warnings.simplefilter("default")  # not as pytest has it, where each is an error
        done, said = local._work(work, "runs/a")
    assert done == "runs/a" and [str(each) for each in said] == [
        "runs/a: its plugin changed",
        "from elsewhere",
    ]
    again = pickle.loads(pickle.dumps(said[0]))
    assert (again.line, again.of) == ("its plugin changed", "runs/a")
    assert capsys.readouterr().err == ""
