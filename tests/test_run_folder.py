"""Run folders under attack: weights of other runs, damage, two processes, full disks, locks."""

from __future__ import annotations

import json
import multiprocessing
import os
import platform
import re
import shutil
import signal
import stat
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from torch import Tensor

import statetrack
from statetrack.catalogue.runs import rows_of_runs
from statetrack.cli.app import run as command
from statetrack.errors import RunError, StatetrackError, StatetrackWarning
from statetrack.models import MODELS
from statetrack.runs import (
    EvaluationRow,
    Run,
    RunFacts,
    RunFolder,
    disk,
    files,
    find_run_folders,
    find_runs,
    locking,
    newest_run,
    processor_name,
    to_json,
)
from tests.run_files import append_rows, json_in, rows_in, write_json, write_weights

SETTINGS: dict[str, Any] = {
    "model": "bilinear",
    "task": "modular-addition:m=3",
    "hidden": 4,
    "steps": 9,
    "batch_size": 4,
    "train_length": "2-4",
    "validate_every": 3,
    "validation_words": 8,
    "checkpoint_every": 0,
    "seeds": 2,
    "lrs": [0.003, 0.01],
    "device": "cpu",
}


def train(run: Run, steps: int | None = None) -> Run:
    """Train to the end, or for some steps."""
    asked = iter(range(1, 1000))
    for _ in run.train(lambda: next(asked) == steps):
        pass
    return run


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run, evaluated at two lengths."""
    run = train(Run.start(**SETTINGS, out=tmp_path_factory.mktemp("runs") / "finished"))
    run.evaluate([5, 9], num_words=10, everyone=True)
    return run.path


@pytest.fixture(scope="module")
def unfinished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 9 steps, stopped after 4."""
    return train(Run.start(**SETTINGS, out=tmp_path_factory.mktemp("runs") / "unfinished"), 4).path


@pytest.fixture
def whole(finished: Path, tmp_path: Path) -> Path:
    """A copy of the finished run."""
    return shutil.copytree(finished, tmp_path / "run")


@pytest.fixture
def half(unfinished: Path, tmp_path: Path) -> Path:
    """A copy of the unfinished run."""
    return shutil.copytree(unfinished, tmp_path / "half")


def the_error_of(action: Callable[[], object], kind: type[StatetrackError] = RunError) -> str:
    """The message of the error that the action raises: one line."""
    with pytest.raises(kind) as caught:
        action()
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    return message


def change_config(folder: Path, **values: Any) -> None:
    RunFolder(folder).write(files.CONFIG, RunFolder(folder).read(files.CONFIG) | values)


# --- weights and checkpoints belong to their run ---


def test_weights_from_which_a_model_now_computes_something_else_are_refused(
    whole: Path, half: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in (whole, half):
        environment = RunFolder(path).read(files.ENVIRONMENT)
        assert environment["statetrack"] == statetrack.__version__
        said = json_in(RunFolder(path), "environment.json") | {"statetrack": "0.1.0"}
        RunFolder(path).write(files.ENVIRONMENT, said)
    model = MODELS[str(SETTINGS["model"])]
    assert model.same_since == "0.1.0" and Run.open(whole).model() is not None
    monkeypatch.setattr(model, "same_since", "0.2.0")
    refused = (lambda: Run.open(whole).model(), lambda: Run.resume(half))
    for path, action in zip((whole, half), refused, strict=True):
        assert the_error_of(action).startswith(
            f"{path}: was trained with statetrack 0.1.0, and since 0.2.0 {SETTINGS['model']} "
            "computes something else from such weights: train it again"
        )
    assert Run.open(whole).summary is not None, "what does not need the weights is still read"


def test_models_say_since_which_version_they_compute_the_same() -> None:
    since = {name: MODELS[name].same_since for name in MODELS}
    assert since["lstm"] == since["bilinear"] == "0.1.0"
    assert since["deltanet"] == since["rwkv7"] == "0.2.0"
    assert since["m2rnn"] == "0.3.0"
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in since.values())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"lrs": [0.003, 0.02]}, r"'lrs' was \[0.003, 0.01\] when .*, and is \[0.003, 0.02\] now"),
        ({"additive": "input"}, "'additive' was '.*' when it was written, and is 'input' now"),
        ({"steps": 7}, "'steps' was 9 when it was written, and is 7 now"),
    ],
    ids=str,
)
def test_weights_of_other_settings_are_refused(
    whole: Path, half: Path, change: dict[str, Any], said: str
) -> None:
    assert Run.open(whole).model() is not None
    change_config(whole, **change)
    message = the_error_of(lambda: RunFolder(whole).read(files.WEIGHTS))
    assert re.fullmatch(
        rf"{whole}: weights.safetensors does not belong to config.yaml: {said}", message
    )
    change_config(half, **change)
    message = the_error_of(lambda: train(Run.resume(half)))
    assert message.startswith(f"{half}: checkpoint.pt does not belong to config.yaml: ")
    assert re.search(said, message) and message.endswith("; delete it to train from the start")


def test_settings_that_do_not_change_the_function_may_change(whole: Path, half: Path) -> None:
    for folder in (whole, half):
        change_config(folder, device="auto", threads=1, checkpoint_every=2)
    assert Run.open(whole).model() is not None
    assert train(Run.resume(half)).finished


def test_weights_of_another_task_are_refused(whole: Path, half: Path) -> None:
    for folder in (whole, half):
        task = folder / "task.yaml"
        task.write_bytes(task.read_bytes().replace(b"\n", b"\r\n"))
    assert Run.open(whole).model() is not None
    for folder in (whole, half):
        task = folder / "task.yaml"
        text = task.read_text(encoding="utf-8")
        assert "m: 3" in text
        task.write_text(text.replace("m: 3", "m: 4"), encoding="utf-8")
    message = the_error_of(lambda: RunFolder(whole).read(files.WEIGHTS))
    assert message.startswith(f"{whole}: weights.safetensors does not belong to task.yaml: ")
    message = the_error_of(lambda: train(Run.resume(half)))
    assert message.startswith(f"{half}: checkpoint.pt does not belong to task.yaml: ")


@pytest.mark.parametrize(
    ("name", "said"), [("config", "'hidden' was"), ("task", "task.yaml: that")]
)
def test_the_facts_of_a_run_are_refused_where_the_weights_are_of_others(
    whole: Path, capsys: pytest.CaptureFixture[str], name: str, said: str
) -> None:
    if name == "config":
        change_config(whole, hidden=5)
    else:
        with (whole / "task.yaml").open("a") as file:
            file.write("# another\n")
    refused = f"{whole}: weights.safetensors does not belong to {name}.yaml: "
    (row,) = rows_of_runs([whole])
    assert row["error"].startswith(refused)
    for name in ("show", "cite", "report", "compare"):
        assert command([name, str(whole)]) == 1, name
        text = " ".join(capsys.readouterr().err.split())
        assert text.count("error: ") == 1 and refused in text and said in text, name


def test_the_outcome_of_other_weights_is_refused(whole: Path) -> None:
    found = json_in(whole, "summary.json")
    assert found["weights"] == files.WEIGHTS.hash_in(whole)
    write_json(whole, "summary.json", found | {"weights": "0" * 64})
    said = f"{whole}: summary.json does not belong to weights.safetensors: "
    for action in (lambda: Run.open(whole).summary, lambda: RunFacts.read(whole).state):
        assert the_error_of(action).startswith(said)
    del found["weights"]  # as an earlier version wrote it
    write_json(whole, "summary.json", found)
    assert Run.open(whole).summary.weights is None


def test_weights_without_a_hash_of_the_task_are_compared_by_their_settings(whole: Path) -> None:
    weights, config = RunFolder(whole).read(files.WEIGHTS), RunFolder(whole).read(files.CONFIG)
    about = {"statetrack": json.dumps({"format": 1, "config": config})}
    safetensors.torch.save_file(weights, whole / "weights.safetensors", about)
    assert Run.open(whole).model() is not None
    about = {"statetrack": json.dumps({"format": 1, "config": config | {"hidden": 5}})}
    safetensors.torch.save_file(weights, whole / "weights.safetensors", about)
    assert "'hidden' was 5" in the_error_of(lambda: RunFolder(whole).read(files.WEIGHTS))


@pytest.mark.parametrize(
    "about", ["[]", "7", "[" * 100_000, '{"format": 1}', '{"format": 1, "config": 3}']
)
def test_weights_that_do_not_say_whose_they_are_are_refused(whole: Path, about: str) -> None:
    weights = RunFolder(whole).read(files.WEIGHTS)
    safetensors.torch.save_file(weights, whole / "weights.safetensors", {"statetrack": about})
    assert "weights.safetensors" in the_error_of(lambda: RunFolder(whole).read(files.WEIGHTS))


def other_shapes(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: value[..., :-1] for name, value in weights.items()}


def other_names(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    return {f"x.{name}": value for name, value in weights.items()}


def one_more(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    return weights | {"x": torch.zeros(4, 1)}


def fewer_replicas(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: value[:1] for name, value in weights.items()}


def integers(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.to(torch.int32) for name, value in weights.items()}


def complex_numbers(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.to(torch.complex64) for name, value in weights.items()}


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        (other_shapes, r"tensor '\S+' has the shape \[.*\] and not \[4, .*\]"),
        (other_names, r"there is no tensor '\S+'"),
        (one_more, "the model has no tensor 'x'"),
        (fewer_replicas, r"tensor '\S+' has the shape \[1, .*\] and not \[4, .*\]"),
        (integers, r"tensor '\S+' is int32 and not float32"),
        (complex_numbers, r"tensor '\S+' is complex64 and not float32"),
    ],
)
def test_weights_of_another_model_are_one_line(
    whole: Path,
    change: Callable[[dict[str, Tensor]], dict[str, Tensor]],
    wrong: str,
) -> None:
    run = Run.open(whole)
    write_weights(run.folder, change(run.folder.read(files.WEIGHTS)))
    message = the_error_of(lambda: run.evaluate([5], num_words=5))
    said = f"{run.path}: weights.safetensors does not belong to config.yaml: "
    assert message.startswith(said) and re.fullmatch(wrong, message.removeprefix(said))


def test_weights_of_a_validated_replica_that_are_not_finite_are_damaged(whole: Path) -> None:
    run = Run.open(whole)
    weights = run.folder.read(files.WEIGHTS)
    name = next(iter(weights))
    weights[name][1].flatten()[0] = torch.nan
    write_weights(run.folder, weights)
    assert run.model(0) is not None
    message = the_error_of(lambda: run.model(1))
    assert f"tensor '{name}' of replica 1 has values that are not finite" in message


def test_a_buffer_of_integers_is_stored_and_read_as_the_model_declares_it(tmp_path: Path) -> None:
    bilinear = MODELS["bilinear"]

    @MODELS.register("with-buffers")
    class WithBuffers(bilinear):  # type: ignore[misc, valid-type]
        def __init__(self, *args: Any, **settings: Any) -> None:
            super().__init__(*args, **settings)
            self.register_buffer("places", torch.arange(3))
            self.register_buffer("mask", torch.full((2,), -torch.inf), persistent=False)

    run = train(Run.start(**SETTINGS | {"model": "with-buffers"}, out=tmp_path / "run"))
    assert run.model().places.dtype == torch.int64
    weights = run.folder.read(files.WEIGHTS)
    write_weights(run.folder, weights | {"places": weights["places"].float()})
    assert "tensor 'places' is float32 and not int64" in the_error_of(run.model)


@pytest.mark.parametrize("name", ["weights.safetensors", "checkpoint.pt"])
def test_one_changed_bit_of_a_tensor_is_found(whole: Path, half: Path, name: str) -> None:
    path = (half if name == "checkpoint.pt" else whole) / name
    content = bytearray(path.read_bytes())
    if name == "weights.safetensors":
        place = len(content) - 4
    else:
        first = torch.load(path, weights_only=True)["trainer"]["best"]["readout.weight"]
        place = content.index(first.numpy().tobytes()) + 2
    content[place] ^= 1
    path.write_bytes(content)
    message = the_error_of(lambda: read_everything(path.parent))
    assert message.startswith(f"{path}: is damaged")


# --- one process at a time ---


def test_a_run_is_trained_by_one_at_a_time(half: Path) -> None:
    first, second = Run.resume(half), Run.resume(half)
    records = first.train()
    next(records)
    message = the_error_of(lambda: next(second.train()))
    assert message.startswith(f"{half}: another process is training this run")
    assert f"process {os.getpid()} on " in message
    said: list[str] = []
    thread = threading.Thread(
        target=lambda: said.append(the_error_of(lambda: next(second.train())))
    )
    thread.start()
    thread.join()
    assert "another process is training this run" in said[0]
    records.close()
    train(Run.resume(half))
    assert first.finished and not (half / locking.TRAINING).exists()
    assert "has finished" in the_error_of(second.train)


def test_an_iterator_from_before_the_end_finds_that_the_run_has_finished(half: Path) -> None:
    late = Run.resume(half).train()
    train(Run.resume(half))
    assert "has finished" in the_error_of(lambda: next(late))


@pytest.mark.parametrize("how", ["closed", "forgotten", "failed"])
def test_training_that_ends_early_lets_others_train(half: Path, how: str) -> None:
    def fail() -> bool:
        raise ZeroDivisionError

    records = Run.resume(half).train(fail if how == "failed" else lambda: False)
    if how == "failed":
        with pytest.raises(ZeroDivisionError):
            list(records)
    else:
        next(records)
        if how == "closed":
            records.close()  # type: ignore[attr-defined]
    del records
    assert train(Run.resume(half)).finished


def test_an_iterator_can_be_closed_by_another_thread(half: Path) -> None:
    records = Run.resume(half).train()
    next(records)
    thread = threading.Thread(target=records.close)  # type: ignore[attr-defined]
    thread.start()
    thread.join()
    assert train(Run.resume(half)).finished


def program(text: str, *arguments: str) -> subprocess.Popen[str]:
    """A Python program that runs beside the test."""
    root = Path(statetrack.__file__).parents[1]
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(text), *arguments],
        env={**os.environ, "PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


HOLDER = """
    import os, sys, time
    from pathlib import Path
    from statetrack.runs.folder import RunFolder
    from statetrack.runs import disk
    folder = RunFolder(Path(sys.argv[1]))
    with folder.training():
        Path(folder.path / disk.temporary_name("checkpoint.pt")).write_bytes(b"half")
        print("holds", flush=True)
        time.sleep(60)
    """


def test_a_killed_process_leaves_no_lock_and_its_temporary_files_are_removed(
    half: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    process = program(HOLDER, str(half))
    assert process.stdout is not None and process.stdout.readline() == "holds\n"
    begun = time.monotonic()
    assert command(["train", "--resume", str(half)]) == 1
    assert time.monotonic() - begun < 10
    message = capsys.readouterr().err
    assert "another process is training this run" in message
    assert f"(process {process.pid} on " in message
    (of_a_living_one,) = half.glob(".checkpoint.pt.*")
    process.send_signal(signal.SIGKILL)
    process.communicate()
    for name in (".checkpoint.pt.123", ".metrics.jsonl.77-abc", ".weights.safetensors.9"):
        (half / name).write_text("half")
    (half / ".notes.txt").write_text("mine")
    train(Run.resume(half))
    assert not of_a_living_one.exists()
    assert {path.name for path in half.iterdir() if path.name.startswith(".")} == {".notes.txt"}


def test_temporary_names_differ_within_a_process_and_tell_the_final_one() -> None:
    names = {disk.temporary_name("checkpoint.pt") for _ in range(100)}
    assert len(names) == 100
    assert {disk.final_name(name) for name in names} == {"checkpoint.pt"}
    assert disk.final_name(".checkpoint.pt.4711") == "checkpoint.pt"
    for name in (".training.lock", "checkpoint.pt", "plugin_2.py", ".append.lock", ".git"):
        assert disk.final_name(name) is None


def row_of(number: int) -> EvaluationRow:
    shares = dict.fromkeys(
        ["accuracy", "low", "high", "symbol_accuracy", "prefix_accuracy", "floor", "chance"], 0.5
    )
    return EvaluationRow(
        length=number, sequences=1, scaled=0.0, scaled_to_floor=0.0, **shares,
        replica=0, seed=0, lr=0.1, selected=True,
    )  # fmt: skip


def append_some(folder: Path, first: int) -> None:
    for begin in range(first, first + 500, 25):
        RunFolder(folder).append(files.EVALUATIONS, [row_of(n) for n in range(begin, begin + 25)])


def test_rows_that_several_processes_append_at_once_are_all_kept(tmp_path: Path) -> None:
    spawned = multiprocessing.get_context("fork")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks in threaded processes
        processes = [
            spawned.Process(target=append_some, args=(tmp_path, first))
            for first in range(1, 2001, 500)
        ]
        for process in processes:
            process.start()
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    rows = rows_in(RunFolder(tmp_path), "eval.jsonl")
    assert sorted(row["length"] for row in rows) == list(range(1, 2001))


def test_rows_that_several_threads_append_at_once_are_all_kept(tmp_path: Path) -> None:
    threads = [
        threading.Thread(target=append_some, args=(tmp_path, first)) for first in (1, 501, 1001)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(rows_in(RunFolder(tmp_path), "eval.jsonl")) == 1500


def test_an_append_waits_and_then_gives_up_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locking, "LONGEST_WAIT", 0.05)
    with locking.appending(tmp_path / "eval.jsonl"):
        message = the_error_of(lambda: append_rows(tmp_path, "eval.jsonl", [{"length": 1}]))
    assert message.startswith(f"{tmp_path / 'eval.jsonl'}: cannot be written: another process")
    append_rows(tmp_path, "eval.jsonl", [{"length": 1}])


def test_files_of_locks_make_no_run(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    with locking.training(folder), locking.appending(folder / "eval.jsonl"):
        assert find_runs(tmp_path) == []
        assert "not a run folder" in the_error_of(lambda: RunFolder.open(folder))


def test_a_lock_never_writes_to_what_a_symbolic_link_names(half: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_text("mine")
    (half / locking.TRAINING).unlink()
    (half / locking.TRAINING).symlink_to(mine)
    message = the_error_of(lambda: train(Run.resume(half)))
    assert message.startswith(f"{half}: cannot be locked: ")
    assert mine.read_text() == "mine"


def test_without_locks_training_goes_on_and_says_so(
    half: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import errno

    import filelock

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(filelock.FileLock, "acquire", refuse)
    with pytest.warns(StatetrackWarning, match="has no locks"):
        assert train(Run.resume(half)).finished


# --- damage ---

DAMAGES: dict[str, Callable[[Path], object]] = {
    "nothing": lambda path: path.write_bytes(b""),
    "no text": lambda path: path.write_bytes(b"\xff\xfe\x00\n" * 3),
    "deep": lambda path: path.write_bytes(b"[" * 50_000 + b"\n"),
    "long line": lambda path: path.write_bytes(b" " * 300_000 + b"\n"),
    "a long number": lambda path: path.write_bytes(b'{"steps": ' + b"1" * 5000 + b"}\n"),
    "nan": lambda path: path.write_bytes(b'{"steps": NaN}\n'),
    "a list": lambda path: path.write_bytes(b"[1]\n"),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "a pipe": lambda path: (path.unlink(), os.mkfifo(path)),
    "a loop": lambda path: (path.unlink(), path.symlink_to(path)),
    "gone": lambda path: (path.unlink(), path.symlink_to(path.parent / "nothing")),
}


OF_JSON = ("deep", "long line", "a long number", "nan")


def read_everything(folder: Path) -> None:
    run = Run.open(folder)
    run.folder.read(files.ENVIRONMENT)
    run.folder.find(files.CELL)
    assert all(record.step for record in run.records)
    assert all(row.length for row in run.rows)
    assert all(row.kind for row in run.evidence())
    if run.finished:
        assert run.summary and run.selected
        assert run.model() is not None
    else:
        train(run, 1)


@pytest.mark.parametrize(
    "name",
    [
        *("config.yaml", "task.yaml", "environment.json", "metrics.jsonl", "eval.jsonl"),
        *("summary.json", "weights.safetensors", "cell.json", "checkpoint.pt", "evidence.jsonl"),
    ],
)
def test_every_damage_of_every_file_is_one_line(whole: Path, half: Path, name: str) -> None:
    folder = half if name == "checkpoint.pt" else whole
    path = folder / name
    if name == "cell.json":
        path.write_text("{}")
    if name == "evidence.jsonl":
        path.write_text('{"evidence": {"kind": "of another version"}}\n')
    before = path.read_bytes()
    for about, damage in DAMAGES.items():
        if name.endswith(".yaml") and about in OF_JSON:
            continue
        if name.endswith(".jsonl") and about == "nothing":
            continue  # there are no rows
        damage(path)
        assert name in the_error_of(lambda: read_everything(folder), StatetrackError), about
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        path.write_bytes(before)
    read_everything(folder)


def altered(folder: Path, change: Callable[[dict[str, Any]], object]) -> str:
    """The error of resuming after a change of the state in checkpoint.pt."""
    state = torch.load(folder / "checkpoint.pt", weights_only=True)
    change(state)
    torch.save(state, folder / "checkpoint.pt")
    return the_error_of(lambda: train(Run.resume(folder)))


CHANGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "no trainer": lambda state: state.pop("trainer"),
    "no seconds": lambda state: state.pop("seconds"),
    "negative seconds": lambda state: state.update(seconds=-1.0),
    "trainer of another type": lambda state: state.update(trainer=[1]),
    "no step": lambda state: state["trainer"].pop("step"),
    "a step of another type": lambda state: state["trainer"].update(step="4"),
    "a step too far": lambda state: state["trainer"].update(step=10),
    "a negative step": lambda state: state["trainer"].update(step=-1),
    "replicas that are not": lambda state: state["trainer"].update(replicas=[0, 9]),
    "replicas of another type": lambda state: state["trainer"].update(replicas="0123"),
    "a replica too few": lambda state: state["trainer"].update(replicas=[0, 1, 2]),
    "no weights": lambda state: state["trainer"].update(weights={}),
    "weights of another type": lambda state: state["trainer"].update(weights=None),
    "integer weights": lambda state: state["trainer"].update(
        weights={name: value.int() for name, value in state["trainer"]["weights"].items()}
    ),
    "best of one replica": lambda state: state["trainer"].update(
        best={name: value[:1] for name, value in state["trainer"]["best"].items()}
    ),
    "no moments": lambda state: state["trainer"].update(moments={}),
    "moments that are empty": lambda state: state["trainer"].update(
        moments={key: {} for key in state["trainer"]["moments"]}
    ),
    "moments of another shape": lambda state: state["trainer"].update(
        moments={
            key: value | {"exp_avg": torch.zeros(1)}
            for key, value in state["trainer"]["moments"].items()
        }
    ),
    "progress of one": lambda state: state["trainer"]["progress"].pop(),
    "progress without a key": lambda state: state["trainer"]["progress"][0].pop("best_step"),
    "progress with text": lambda state: state["trainer"]["progress"][0].update(best_step="2"),
    "progress of the future": lambda state: state["trainer"]["progress"][0].update(best_step=9),
    "stopped": lambda state: state["trainer"]["progress"][0].update(stopped="diverged"),
    "totals of another shape": lambda state: state["trainer"].update(totals=torch.zeros(2, 9)),
    "counted of another type": lambda state: state["trainer"].update(counted=None),
    "random numbers of another type": lambda state: state["trainer"].update(rng=torch.zeros(3)),
    "random numbers that are none": lambda state: state["trainer"].update(
        rng=torch.full_like(state["trainer"]["rng"], 255)
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_checkpoint_that_training_cannot_go_on_from_is_one_line(
    half: Path, change: Callable[[dict[str, Any]], object]
) -> None:
    message = altered(half, change)
    assert message.startswith(f"{half / 'checkpoint.pt'}: is damaged (")
    assert message.endswith("): delete it to train from the start")
    (half / "checkpoint.pt").unlink()
    assert train(Run.resume(half)).finished


def test_a_checkpoint_is_checked_for_every_optimiser(tmp_path: Path) -> None:
    for name in ("sgd", "adamw"):
        run = train(Run.start(**SETTINGS | {"optimizer": name}, out=tmp_path / name), 2)
        assert train(Run.resume(run.path)).finished


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        (lambda found: found.update(selected=0) or found["replicas"].pop(), "it has 3 replicas"),
        (lambda found: found.update(steps=10), "it has 10 steps of 9"),
        (lambda found: found["replicas"][1].update(seed=0), "it has replica 1 with seed 0"),
        (lambda found: found["replicas"][1].update(lr=0.5), "and learning rate 0.5"),
        (lambda found: found.update(steps=-1), "steps and seconds are not negative"),
        (lambda found: found.update(seconds=-1), "steps and seconds are not negative"),
        (lambda found: found["replicas"][1].update(replica=0), "not numbered from 0, each once"),
        (lambda found: found["replicas"][1].update(best_step=99), "the best step of replica 1"),
        (lambda found: found["replicas"][1].update(validation_accuracy=2), "between 0 and 1"),
        (lambda found: found["replicas"][1].pop("lr"), "'replicas.1.lr' is missing"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_summary_that_cannot_be_is_one_line(
    whole: Path, change: Callable[[dict[str, Any]], object], wrong: str
) -> None:
    found = json_in(RunFolder(whole), "summary.json")
    change(found)
    write_json(RunFolder(whole), "summary.json", found)
    message = the_error_of(lambda: Run.open(whole).summary)
    assert wrong in message and "summary.json" in message


def test_rows_of_another_run_are_refused(whole: Path, half: Path) -> None:
    for name, change in (("eval.jsonl", {"lr": 0.5}), ("metrics.jsonl", {"replica": 4})):
        rows = rows_in(whole, name)
        rows[1] |= change
        (whole / name).write_text("".join(to_json(row) + "\n" for row in rows))
    assert "line 2 of eval.jsonl does not belong" in the_error_of(lambda: Run.open(whole).rows)
    assert "line 2 of metrics.jsonl does not" in the_error_of(lambda: Run.open(whole).records)


def test_a_json_file_larger_than_any_is_refused(
    whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("statetrack.runs.files.LARGEST_JSON", 100)
    message = the_error_of(lambda: RunFolder(whole).read(files.SUMMARY))
    assert message == f"{whole / 'summary.json'}: is damaged: it has more than 100 bytes"


def test_a_row_longer_than_any_is_not_written(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    append_rows(folder, "eval.jsonl", [{"length": 1}])
    message = the_error_of(lambda: append_rows(folder, "eval.jsonl", [{"task": "x" * (1 << 16)}]))
    assert "a row has more than 65,536 bytes" in message
    (tmp_path / "eval.jsonl").write_text("x" * 100_000)
    assert "longer than any row" in the_error_of(lambda: append_rows(folder, "eval.jsonl", [{}]))
    assert (tmp_path / "eval.jsonl").stat().st_size == 100_000


def test_folders_that_cannot_be_read_hide_no_others(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        shutil.copytree(finished, tmp_path / "runs" / name)
    (tmp_path / "runs" / ".c.12-ab").mkdir()
    shutil.copy(finished / "config.yaml", tmp_path / "runs" / ".c.12-ab")
    found = os.stat

    def denied(path: Any, *args: Any, **kwargs: Any) -> os.stat_result:
        if "/a" in os.fspath(path):
            raise PermissionError(13, os.strerror(13), path)
        return found(path, *args, **kwargs)

    monkeypatch.setattr(os, "stat", denied)
    assert [run.path.name for run in find_runs(tmp_path / "runs")] == ["a", "b"]
    assert newest_run(tmp_path / "runs").path.name == "b"
    assert [path.name for path in find_run_folders([tmp_path / "runs"])] == ["a", "b"]
    assert "there is no such folder" in the_error_of(lambda: find_run_folders([tmp_path / "a"]))
    monkeypatch.setattr(os, "scandir", denied)
    monkeypatch.setattr(os, "listdir", denied)
    assert find_runs(tmp_path / "a") == []


def test_two_processes_that_were_given_one_empty_folder_do_not_share_it(tmp_path: Path) -> None:
    empty = tmp_path / "run"
    empty.mkdir()
    inside = disk.write_file

    with pytest.MonkeyPatch.context() as patch:

        def first_the_other(path: Path, content: bytes) -> None:
            patch.setattr("statetrack.runs.folder.write_file", inside)
            (empty / "config.yaml").write_text("the other's")
            inside(path, content)

        patch.setattr("statetrack.runs.folder.write_file", first_the_other)
        message = the_error_of(
            lambda: RunFolder.create(empty, {"task.yaml": "t", "config.yaml": "mine"})
        )
    assert message == f"{empty}: cannot be made: File exists"
    assert {path.name: path.read_text() for path in empty.iterdir()} == {
        "config.yaml": "the other's"
    }


# --- disks that are full, folders that cannot be written ---


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_eval_on_a_full_disk_prints_the_rows_and_warns_once(
    whole: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    full = "statetrack.runs.disk._open_no_link"
    monkeypatch.setattr(full, lambda path, flags: os.open("/dev/full", flags))
    assert command(["eval", str(whole), "--all", "--length", "5", "--samples", "9", "--json"]) == 0
    printed = capsys.readouterr()
    assert [row["replica"] for row in json.loads(printed.out)["rows"]] == [0, 1, 2, 3]
    kept = [line for line in printed.err.splitlines() if "not kept" in line]
    assert kept == [
        f"warning: {whole / 'eval.jsonl'}: cannot be written: No space left on device; "
        "these rows are not kept in the run's folder"
    ]


def test_a_run_whose_evaluations_are_damaged_is_not_evaluated(
    whole: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = whole / "eval.jsonl"
    path.write_text("half a row\n" + path.read_text())
    before = path.read_bytes()
    asked = [str(whole), "--length", "5", "--samples", "9"]
    assert command(["eval", *asked]) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert f"{path}, line 1: is damaged: not JSON" in said
    assert "mend or delete the file" in said and path.read_bytes() == before
    assert command(["eval", *asked, "--rounding", "bfloat16"]) == 0  # whose rows are not kept


def test_evaluating_a_run_that_cannot_be_written_gives_the_rows(
    whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (whole / "eval.jsonl").read_bytes()
    opened = os.open

    def read_only(path: Any, flags: int, *args: Any, **kwargs: Any) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR) and str(path).startswith(str(whole)):
            raise OSError(30, os.strerror(30), path)
        return opened(path, flags, *args, **kwargs)

    monkeypatch.setattr(os, "open", read_only)
    with pytest.warns(StatetrackWarning, match="Read-only file system; these rows are not") as said:
        rows = Run.open(whole).evaluate([5], num_words=9, everyone=True)
    assert len(rows) == 4 and len(said) == 1
    assert (whole / "eval.jsonl").read_bytes() == before


@pytest.fixture
def small_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, bool]]:
    """A disk that is full while `full` is true: no data of a file can be written out."""
    state, before = {"full": False}, os.fsync

    def fsync(descriptor: int) -> None:
        if state["full"] and stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(28, os.strerror(28))
        before(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    yield state


def test_facts_of_a_run_are_those_of_when_they_were_read(tmp_path: Path, finished: Path) -> None:
    run = Run.open(shutil.copytree(finished, tmp_path / "run"))
    facts = RunFacts.read(run.path)
    rows = facts.rows
    added = list(run.score([4], num_words=3))
    assert facts.rows == rows and added and run.rows == [*rows, *added]
    assert RunFacts.read(run.path).rows == run.rows


def test_training_on_a_full_disk_stops_with_its_last_checkpoint_and_can_go_on(
    tmp_path: Path, small_disk: dict[str, bool]
) -> None:
    straight = train(Run.start(**SETTINGS, out=tmp_path / "straight"))
    run = train(Run.start(**SETTINGS | {"checkpoint_every": 1}, out=tmp_path / "run"), 2)
    before = (run.path / "checkpoint.pt").read_bytes()
    names = {path.name for path in run.path.iterdir()}
    small_disk["full"] = True
    message = the_error_of(lambda: train(Run.resume(run.path)))
    assert message.endswith(": cannot be written: No space left on device")
    assert (run.path / "checkpoint.pt").read_bytes() == before
    assert {path.name for path in run.path.iterdir()} <= names | {locking.TRAINING}
    small_disk["full"] = False
    again = train(Run.resume(run.path))
    assert again.records == straight.records
    weights = again.folder.read(files.WEIGHTS)
    for name, value in straight.folder.read(files.WEIGHTS).items():
        assert torch.equal(value, weights[name])


def test_an_append_that_fails_leaves_no_part_of_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resource = pytest.importorskip("resource")
    folder = RunFolder(tmp_path)
    append_rows(folder, "eval.jsonl", [{"length": 1}])
    before = (tmp_path / "eval.jsonl").read_bytes()
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        the_error_of(lambda: append_rows(folder, "eval.jsonl", [{"length": n} for n in range(50)]))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (tmp_path / "eval.jsonl").read_bytes() == before


# --- modes and names ---


@pytest.mark.parametrize("umask", [0o022, 0o007, 0o077], ids=oct)
def test_every_file_of_a_run_has_the_mode_that_the_umask_gives(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        run = train(Run.start(**SETTINGS, out=tmp_path / "run"), 2)
        modes = {path.name: path.stat().st_mode & 0o777 for path in run.path.iterdir()}
        train(Run.resume(run.path)).evaluate([5], num_words=9)
    finally:
        os.umask(before)
    modes |= {path.name: path.stat().st_mode & 0o777 for path in run.path.iterdir()}
    assert {"checkpoint.pt", "weights.safetensors", "summary.json", "eval.jsonl"} <= set(modes)
    assert modes == dict.fromkeys(modes, 0o666 & ~umask)


def test_the_processor_is_named(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert RunFolder(finished).read(files.ENVIRONMENT)["device_name"].strip()
    monkeypatch.setattr(
        Path, "read_text", lambda *_, **__: "processor: 0\nmodel name\t: My CPU 3\n"
    )
    assert processor_name() == "My CPU 3"
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: "Hardware : BCM2835\n")
    monkeypatch.setattr(platform, "processor", lambda: "")
    assert processor_name() == platform.machine()
    done = subprocess.CompletedProcess([], 0, "Apple M9\n", "")
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)
    assert processor_name() == "Apple M9"
