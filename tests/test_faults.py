"""Runs, evaluations and datasets on a disk that fails, in processes that are killed.

Each test strikes at one point after another: a quick run takes some of them, `-m slow` all.
"""

from __future__ import annotations

import json
import shutil
import signal
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import pytest

from statetrack.cli import app
from statetrack.data import FORMATS, Splits, draw_splits, read_dataset, write_dataset
from statetrack.errors import DatasetError, RunError, StatetrackError, StatetrackWarning
from statetrack.runs import Run, newest_run
from statetrack.runs import run as runs
from statetrack.spec import WordSpec, load_task
from statetrack.training import Trainer
from tests.faults.disk import Fault, Faults, Kind, files_no_longer_than
from tests.faults.processes import run_at_once, run_in_child
from tests.setups import certificate_of, exhaustive_of

STEPS = 12
SETTINGS = {
    **{"model": "bilinear-cp", "task": "parity", "hidden": 4, "rank": 2, "batch_size": 4},
    **{
        "train_length": "2-4",
        "steps": STEPS,
        "seeds": 2,
        "validate_every": 3,
        "checkpoint_every": 3,
    },
    **{"validation_words": 8, "threads": 1, "device": "cpu"},
}
COMMAND = ["train", *(f"--{name.replace('_', '-')}={value}" for name, value in SETTINGS.items())]
QUICK = 3
"""How many points a quick run strikes at."""


def begin(path: Path) -> None:
    """Train a new run to its end."""
    list(Run.start(out=path, **SETTINGS).train())


def go_on(path: Path) -> None:
    """What a user does next: resume what is an unfinished run, and begin where there is none."""
    if not path.exists():
        begin(path)
    elif not Run.open(path).finished:
        list(Run.resume(path).train())


@pytest.fixture
def place() -> Iterator[Path]:
    """An empty folder, in memory where there is such a place: thousands of files are made."""
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as made:
        yield Path(made)


Outcome = tuple[bytes, bytes, dict]


def outcome(path: Path) -> Outcome:
    """All that a finished run has learned, without the time that it took."""
    summary = json.loads((path / "summary.json").read_text())
    del summary["seconds"]
    weights = (path / "weights.safetensors").read_bytes()
    return weights, (path / "metrics.jsonl").read_bytes(), summary


def left_in(path: Path) -> set[str]:
    """The names of all files of a folder, but for empty ones that are locks."""
    return {each.name for each in path.iterdir() if not each.name.endswith(".lock")}


def chosen(points: int, request: pytest.FixtureRequest) -> Iterator[int]:
    """The points to strike at: all with `-m slow`, otherwise some that are evenly spread."""
    if "slow" in request.node.keywords:
        return iter(range(points))
    quick = min(points, QUICK)
    return iter(sorted({round(n * (points - 1) / max(1, quick - 1)) for n in range(quick)}))


EXTENT = pytest.mark.parametrize("extent", ["some", pytest.param("all", marks=pytest.mark.slow)])
"""Runs a test twice: at some points, and as a slow test at all."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Outcome, list[str], set[str]]:
    """A run that nothing disturbs: its outcome, the points it passes, the names of its files."""
    place = tmp_path_factory.mktemp("whole")
    for command in ("train", "eval"):  # what a command imports is not imported in each process
        assert app.run([command, "--help"]) == 0
    with Faults(place) as disk:
        begin(place / "run")
    return outcome(place / "run"), disk.points, left_in(place / "run")


def test_every_sort_of_change_is_a_point(whole: tuple[Outcome, list[str], set[str]]) -> None:
    _, points, _ = whole
    sorts = {point.partition(" ")[0] for point in points}
    assert {"open", "write", "mkdir"} <= sorts and sorts & {"rename", "replace"}
    for name in ("config.yaml", "metrics.jsonl", "checkpoint.pt", "weights", "summary.json"):
        assert any(name in point for point in points), name


# --- a process that is killed ---


@EXTENT
@pytest.mark.parametrize("kind", ["kill", "kill half-way"])
def test_a_training_that_is_killed_ends_as_if_nothing_had_happened(
    place: Path,
    whole: tuple[Outcome, list[str], set[str]],
    kind: str,
    extent: str,
    request: pytest.FixtureRequest,
) -> None:
    right, points, names = whole
    for at in chosen(len(points), request):
        path = place / str(at) / "run"
        path.parent.mkdir()

        def die(path: Path = path, at: int = at) -> None:
            with Faults(path.parent, Fault(kind), at):  # type: ignore[arg-type]
                begin(path)

        assert run_in_child(die).was_killed, points[at]
        go_on(path)
        assert outcome(path) == right, f"killed before point {at}: {points[at]}"
        assert left_in(path) - {"checkpoint.pt"} <= names, points[at]


@EXTENT
def test_a_run_that_is_killed_while_it_resumes_can_be_resumed(
    place: Path,
    whole: tuple[Outcome, list[str], set[str]],
    extent: str,
    request: pytest.FixtureRequest,
) -> None:
    right, _, names = whole

    def interrupted(path: Path) -> None:
        seen = 0

        def stop() -> bool:
            nonlocal seen
            seen += 1
            return seen == 5

        list(Run.start(out=path, **SETTINGS).train(stop))

    def resumed_at(path: Path, at: int) -> None:
        with Faults(path.parent, Fault("kill"), at):
            go_on(path)

    interrupted(place / "count" / "run")
    with Faults(place / "count") as disk:
        go_on(place / "count" / "run")
    for at in chosen(len(disk.points), request):
        path = place / str(at) / "run"
        interrupted(path)
        ended = run_in_child(lambda path=path, at=at: resumed_at(path, at))
        assert ended.was_killed, disk.points[at]
        go_on(path)
        assert outcome(path) == right, f"killed before point {at}: {disk.points[at]}"
        assert left_in(path) - {"checkpoint.pt"} <= names


# --- a disk that fails ---


def refusal(
    action: Callable[[], object], error_kind: type[StatetrackError] = StatetrackError
) -> str | None:
    """The message of the error or warning of an action, one line; None where there is none."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", StatetrackWarning)
        try:
            action()
            messages = [str(each.message) for each in told]
        except error_kind as error:
            messages = [str(error)]
    assert all(len(message.splitlines()) == 1 for message in messages)
    return messages[0] if messages else None


def struck(
    action: Callable[[], object],
    folder: Path,
    kind: Kind,
    at: int,
    error_kind: type[StatetrackError] = StatetrackError,
) -> str:
    """Let a fault strike an action at a point in a folder; what the action says of it.

    What kills does so in a process of its own.
    """

    def meet() -> str:
        with Faults(folder, Fault(kind), at) as disk:
            said = refusal(action, error_kind) or ""
        assert len(disk.points) > at
        return said

    if not kind.startswith("kill"):
        return meet()
    ended = run_in_child(lambda: meet() and 0)
    assert ended.was_killed, ended
    return ""


@EXTENT
@pytest.mark.parametrize("kind", ["full", "full half-way", "broken", "read-only"])
def test_a_disk_that_fails_is_one_line_and_the_run_can_be_resumed(
    place: Path,
    whole: tuple[Outcome, list[str], set[str]],
    kind: str,
    extent: str,
    request: pytest.FixtureRequest,
) -> None:
    right, points, names = whole
    reasons = {"full": "No space left", "broken": "Input/output error", "read-only": "Read-only"}
    for at in chosen(len(points), request):
        path = place / str(at) / "run"
        path.parent.mkdir()
        with Faults(path.parent, Fault(kind), at):  # type: ignore[arg-type]
            message = refusal(lambda path=path: begin(path))
        if message is None:  # what failed was only tidying up
            assert outcome(path) == right
        else:
            assert reasons[kind.split()[0]] in message, (points[at], message)
            assert str(path) in message
        go_on(path)
        assert outcome(path) == right, f"failed at point {at}: {points[at]}"
        assert left_in(path) - {"checkpoint.pt"} <= names, points[at]


def test_a_disk_that_fails_once_at_the_end_loses_no_step(
    place: Path, whole: tuple[Outcome, list[str], set[str]]
) -> None:
    right, points, _ = whole
    last = max(number for number, point in enumerate(points) if "summary.json" in point)
    with Faults(place, Fault("full"), last):
        message = refusal(lambda: begin(place / "run"))
    assert message is not None and "summary.json: cannot be written" in message
    assert Run.open(place / "run").records[-1].step == STEPS
    go_on(place / "run")
    assert outcome(place / "run") == right


def test_a_checkpoint_that_cannot_be_deleted_does_not_fail_a_run_that_has_finished(
    place: Path, whole: tuple[Outcome, list[str], set[str]]
) -> None:
    right, points, _ = whole
    at = next(number for number, point in enumerate(points) if point.startswith("unlink"))
    assert points[at].endswith("checkpoint.pt")
    with Faults(place, Fault("broken"), at):
        begin(place / "run")
    assert outcome(place / "run") == right


@pytest.mark.parametrize("size", [200, 2_000, 6_000])
def test_a_limit_of_the_system_on_files_is_one_line(
    place: Path, whole: tuple[Outcome, list[str], set[str]], size: int
) -> None:
    path = place / "run"

    def full() -> int:
        with files_no_longer_than(size):
            message = refusal(lambda: begin(path))
        print(message)
        return int(message is None or "File too large" not in message)

    ended = run_in_child(full)
    assert ended.code == 0, ended.output
    go_on(path)
    assert outcome(path) == whole[0]


# --- signals ---


def run_with_signal(path: Path, at: int, number: int) -> int:
    """`statetrack train`, which sends itself a signal at a point of writing."""
    with Faults(path.parent, Fault("signal", number), at):
        return app.run([*COMMAND, "--out", str(path)])


@EXTENT
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["INT", "TERM"])
def test_a_signal_at_any_write_of_a_training_loses_nothing(
    place: Path,
    whole: tuple[Outcome, list[str], set[str]],
    number: int,
    extent: str,
    request: pytest.FixtureRequest,
) -> None:
    right, points, names = whole
    for at in chosen(len(points), request):
        path = place / str(at) / "run"
        path.parent.mkdir()
        ended = run_in_child(lambda path=path, at=at: run_with_signal(path, at, number))
        assert ended.code in (0, app.INTERRUPTED, -number), (points[at], ended)
        assert "error:" not in ended.output, (points[at], ended)
        go_on(path)
        weights, metrics, summary = outcome(path)
        assert (weights, metrics, summary) == right, f"signal at point {at}: {points[at]}"
        assert left_in(path) - {"checkpoint.pt"} <= names, points[at]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["INT", "TERM"])
@pytest.mark.parametrize("step", [0, 4, STEPS - 1])
def test_a_signal_within_a_step_ends_the_training_with_a_checkpoint(
    place: Path,
    whole: tuple[Outcome, list[str], set[str]],
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    step: int,
) -> None:
    real, path = Trainer._train_step, place / "run"

    def interrupted(self: Trainer, words: object) -> object:
        if self.step == step:
            signal.raise_signal(number)
        return real(self, words)  # type: ignore[arg-type]

    monkeypatch.setattr(Trainer, "_train_step", interrupted)
    ended = run_in_child(lambda: app.run([*COMMAND, "--out", str(path)]))
    monkeypatch.undo()
    # after the last step too: the end of training, at which operators are made exact, is to come
    assert ended.code == app.INTERRUPTED and "--resume" in ended.output, ended
    assert (path / "checkpoint.pt").is_file()
    go_on(path)
    assert outcome(path) == whole[0]


# --- evaluations ---


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run with the rows of one evaluation."""
    path = tmp_path_factory.mktemp("finished") / "run"
    begin(path)
    Run.open(path).evaluate([3], num_words=4)
    return path


def copied(run: Path, to: Path) -> Path:
    """A copy of a run."""
    to.mkdir(parents=True)
    for each in run.iterdir():
        (to / each.name).write_bytes(each.read_bytes())
    return to


def evaluate(path: Path) -> None:
    """Two lengths of every replica: two rows at a time are appended."""
    Run.open(path).evaluate([3, 5], num_words=4, everyone=True)


def certify(path: Path) -> None:
    """Two rows of evidence, one after the other."""
    run = Run.open(path)
    for evidence in (exhaustive_of(failure=None), certificate_of(3)):
        run.add_evidence(evidence, run.selected)


@EXTENT
@pytest.mark.parametrize("kind", ["kill half-way", "full half-way"])
def test_evidence_that_cannot_be_kept_leaves_whole_rows(
    place: Path, finished: Path, kind: Kind, extent: str, request: pytest.FixtureRequest
) -> None:
    counted = copied(finished, place / "counted")
    with Faults(counted) as disk:
        certify(counted)
    kinds = [row.kind for row in Run.open(counted).evidence()]
    assert kinds == ["exhaustive", "certificate"]
    for at in chosen(len(disk.points), request):
        path = copied(finished, place / f"{at}")
        struck(lambda path=path: certify(path), path, kind, at)
        kept = [row.kind for row in Run.open(path).evidence()]
        assert kept in ([], kinds[:1], kinds[1:], kinds), disk.points[at]
        certify(path)
        assert [row.kind for row in Run.open(path).folder.evidence()] == [*kept, *kinds]


@EXTENT
@pytest.mark.parametrize("kind", ["kill", "kill half-way", "full", "full half-way", "broken"])
def test_an_evaluation_that_fails_leaves_whole_rows_and_the_rows_before(
    place: Path, finished: Path, kind: Kind, extent: str, request: pytest.FixtureRequest
) -> None:
    counted = copied(finished, place / "counted")
    with Faults(counted) as disk:
        evaluate(counted)
    before, after = Run.open(finished).rows, Run.open(counted).rows
    assert len(after) == len(before) + 4 and any("eval.jsonl" in point for point in disk.points)
    for at in chosen(len(disk.points), request):
        point, path = disk.points[at], copied(finished, place / f"{at}")
        said = struck(lambda path=path: evaluate(path), path, kind, at)
        rows = Run.open(path).rows
        assert rows == after[: len(rows)] and len(rows) >= len(before), point
        assert rows == after or kind.startswith("kill") or "cannot be" in said, point
        evaluate(path)
        assert Run.open(path).rows == [*rows, *after[1:]], point


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["INT", "TERM"])
def test_a_signal_in_an_evaluation_leaves_rows_that_can_be_read(
    place: Path, finished: Path, number: int
) -> None:
    path = copied(finished, place / "run")
    before = Run.open(path).rows

    def interrupted() -> int:
        with Faults(path, Fault("signal", number), 0):
            return app.run(["eval", str(path), "--length", "4", "--samples", "2"])

    ended = run_in_child(interrupted)
    assert ended.code in (0, app.INTERRUPTED, -number), ended
    assert "Traceback" not in ended.output
    assert Run.open(path).rows[: len(before)] == before


# --- several processes at once ---


def test_of_two_processes_that_resume_a_run_one_is_refused(
    place: Path, whole: tuple[Outcome, list[str], set[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = place / "run"
    list(Run.start(out=path, **SETTINGS).train(lambda: True))
    real = Trainer._train_step

    def slowly(self: Trainer, words: object) -> object:
        time.sleep(0.05)
        return real(self, words)  # type: ignore[arg-type]

    monkeypatch.setattr(Trainer, "_train_step", slowly)
    both = run_at_once([lambda: app.run(["train", "--resume", str(path)])] * 2)
    assert sorted(ended.code for ended in both) == [0, app.FAILED], both
    refused = next(ended for ended in both if ended.code)
    assert refused.output.startswith("error: ") and str(path) in refused.output
    assert outcome(path) == whole[0]


def test_processes_that_evaluate_a_run_at_once_lose_no_row(place: Path, finished: Path) -> None:
    path = copied(finished, place / "run")
    before = len(Run.open(path).rows)

    def often() -> None:
        run = Run.open(path)
        for _ in range(10):
            run.evaluate([3], num_words=1)

    assert all(ended.code == 0 for ended in run_at_once([often] * 3))
    assert len(Run.open(path).rows) == before + 30


def test_runs_that_are_started_at_once_have_folders_of_their_own(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    ended = run_at_once([lambda: (Run.start(**SETTINGS), 0)[1]] * 4)
    made = sorted((place / "runs").iterdir())
    refused = [each for each in ended if each.code]
    assert len([path for path in made if not path.name.startswith(".")]) == 4 - len(refused)
    assert not refused, refused


# --- clocks ---


class Clock(datetime):
    """A clock that goes back by an hour at each look."""

    looks = 0

    @classmethod
    def now(cls, tz: object = None) -> datetime:
        cls.looks += 1
        return datetime(2030, 1, 1, 23 - cls.looks)


def test_a_clock_that_goes_back_overwrites_no_run(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    monkeypatch.setattr(runs, "datetime", Clock)
    paths = [Run.start(**SETTINGS).path for _ in range(3)]
    Clock.looks = 0
    paths += [Run.start(**SETTINGS).path for _ in range(3)]  # the same three times once more
    assert len(set(paths)) == 6
    assert newest_run(place / "runs").path.name == paths[-1].name


def test_a_clock_that_jumps_changes_no_time_of_a_run(
    place: Path, whole: tuple[Outcome, list[str], set[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter([4e9, 1e9, 3e9, 0.0] * 10_000)
    monkeypatch.setattr(time, "time", lambda: next(times))
    begin(place / "run")
    assert 0 <= Run.open(place / "run").summary.seconds < 60
    assert outcome(place / "run") == whole[0]


# --- datasets ---


@pytest.fixture(scope="module")
def splits() -> Splits:
    """A few words of parity."""
    task = load_task("parity")
    words = WordSpec.of(task)
    return draw_splits(task.source, words.lengths, 12, 4, [14], 5, words.supervision, seed=0)


@EXTENT
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("kind", ["kill", "full half-way", "broken"])
def test_a_dataset_is_written_whole_or_not_at_all(
    place: Path,
    splits: Splits,
    kind: Kind,
    format: str,
    extent: str,
    request: pytest.FixtureRequest,
) -> None:
    def write(folder: Path) -> None:
        write_dataset(folder, load_task("parity"), splits, format=format)  # type: ignore[arg-type]

    with Faults(place / "count") as disk:
        write(place / "count" / "data")
    for at in chosen(len(disk.points), request):
        inside = place / str(at)
        inside.mkdir()
        struck(lambda inside=inside: write(inside / "data"), inside, kind, at, DatasetError)
        if kind != "kill":
            assert left_in(inside) <= {"data"}, disk.points[at]
        if not (inside / "data").exists():
            write(inside / "data")
        read_dataset(inside / "data")


@pytest.mark.parametrize("format", FORMATS)
def test_a_dataset_that_is_replaced_is_there_wherever_the_program_is_killed(
    place: Path, splits: Splits, format: str
) -> None:
    task = load_task("parity")
    folder = place / "data"

    def write(name: str, force: bool = True) -> None:
        write_dataset(
            folder,
            task,
            splits,
            format=format,  # type: ignore[arg-type]
            command=name,
            force=force,
        )

    write("old", force=False)
    with Faults(place) as disk:
        write("old")
    renamed = next(at for at, what in enumerate(disk.points) if what.endswith(".replaced"))
    for at in range(renamed - 1, len(disk.points)):
        write("old")

        def struck(at: int = at) -> None:
            with Faults(place, Fault("kill"), at):
                write("new")

        assert run_in_child(struck).was_killed
        assert read_dataset(folder).card["command"] in ("old", "new")
        write("new")
        assert read_dataset(folder).card["command"] == "new"
        assert "new" in (folder / "README.md").read_text(encoding="utf-8")
        for path in left_in(place) - {"data"}:
            shutil.rmtree(place / path)


@pytest.mark.parametrize("format", FORMATS)
def test_a_limit_of_the_system_on_files_leaves_no_dataset(
    place: Path, splits: Splits, format: str
) -> None:
    """Parquet is written by C++, which only the system can stop."""

    def full() -> int:
        with files_no_longer_than(60):
            message = refusal(
                lambda: write_dataset(
                    place / "data",
                    load_task("parity"),
                    splits,
                    format=format,  # type: ignore[arg-type]
                )
            )
        print(message)
        return int(message is None)

    ended = run_in_child(full)
    assert ended.code == 0, ended.output
    assert list(place.iterdir()) == []


def test_errors_of_the_kit_are_those_of_a_disk(place: Path) -> None:
    for kind, number in (("full", 28), ("broken", 5), ("read-only", 30)):
        with Faults(place, Fault(kind), 0), pytest.raises(OSError) as caught:
            (place / "file").write_text("x")
        assert caught.value.errno == number
    with Faults(place, Fault("full half-way"), 1) as disk, pytest.raises(OSError):
        (place / "file").write_text("abcdef")
    assert (place / "file").read_text() == "abc" and disk.points[1] == "write file"
    with Faults(place / "elsewhere", Fault("full"), 0):
        (place / "file").write_text("what is not in the folder is left alone")
    assert issubclass(RunError, StatetrackError)
