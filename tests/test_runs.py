"""The run folder: what is written can be read, and what cannot be is one line of error."""

from __future__ import annotations

import errno
import json
import math
import os
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from statetrack.cli._terminal import write_file
from statetrack.errors import RunError, StatetrackError
from statetrack.pictures import looks
from statetrack.runs import (
    RunFolder,
    files,
    find_runs,
    newest_run,
    to_yaml,
    write_named_file,
)
from statetrack.runs.files import FORMAT
from tests.run_files import append_rows, json_in, rows_in, write_json

CONFIG = {"model": "bilinear", "lrs": [1e-05, 0.003], "task": "modular-addition:m=3"}


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path / "run", {"config.yaml": to_yaml(CONFIG)})


@contextmanager
def files_no_longer_than(num_bytes: int) -> Iterator[None]:
    """The system cuts every write off at this size, as a full disk does.

    Python ignores the signal that comes with it, but a C++ library that was imported since may
    have put a handler of its own in its place.
    """
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def the_error_of(action: Callable[[], object]) -> str:
    """The message of the `RunError` that the action raises: one line."""
    with pytest.raises(RunError) as caught:
        action()
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    return message


def files_in(folder: RunFolder) -> set[str]:
    return {path.name for path in folder.path.iterdir()}


# --- what is written can be read ---


def test_settings_are_read_as_they_were_written(folder: RunFolder) -> None:
    assert folder.read(files.CONFIG) == CONFIG


def test_rows_are_read_in_the_order_in_which_they_were_appended(folder: RunFolder) -> None:
    assert rows_in(folder, "metrics.jsonl") == []
    append_rows(folder, "metrics.jsonl", [{"step": 1, "loss": 0.1}, {"step": 2, "loss": 1e-17}])
    append_rows(folder, "metrics.jsonl", [])
    append_rows(folder, "metrics.jsonl", [{"step": 3, "loss": 3.0}])
    assert [row["step"] for row in rows_in(folder, "metrics.jsonl")] == [1, 2, 3]
    assert rows_in(folder, "metrics.jsonl")[1]["loss"] == 1e-17


def test_metrics_are_cut_behind_a_step(folder: RunFolder) -> None:
    about = {"replica": 0, "loss": None, "accuracy": 0.5}
    append_rows(folder, "metrics.jsonl", [{"step": step} | about for step in (10, 20, 20, 30)])
    folder.cut_metrics(20)
    assert rows_in(folder, "metrics.jsonl") == [{"step": step} | about for step in (10, 20, 20)]
    append_rows(folder, "metrics.jsonl", [about])
    assert "line 4: is damaged: 'step'" in the_error_of(lambda: folder.cut_metrics(20))


def test_null_is_read_as_a_number_that_is_none(folder: RunFolder) -> None:
    append_rows(
        folder, "metrics.jsonl", [{"step": 1, "replica": 0, "loss": math.inf, "accuracy": 0.5}]
    )
    (record,) = folder.read(files.METRICS)
    assert math.isnan(record.loss) and record.validation_loss is None
    append_rows(
        folder, "metrics.jsonl", [{"step": None, "replica": 0, "loss": 1.0, "accuracy": 0.5}]
    )
    assert "line 2: is damaged: 'step'" in the_error_of(lambda: folder.read(files.METRICS))


def test_weights_are_read_as_they_were_written_and_say_where_they_come_from(
    folder: RunFolder,
) -> None:
    weights = {
        "plain": torch.randn(4, 3),
        "turned": torch.randn(4, 3, 2).transpose(1, 2),
        "trained": torch.randn(4, 3).requires_grad_(),
    }
    folder.write(files.WEIGHTS, weights)
    read = folder.read(files.WEIGHTS)
    assert set(read) == set(weights)
    assert all(torch.equal(read[name], weights[name].detach()) for name in weights)
    header_size = int.from_bytes((folder.path / "weights.safetensors").read_bytes()[:8], "little")
    header = (folder.path / "weights.safetensors").read_bytes()[8 : 8 + header_size]
    about = json.loads(json.loads(header)["__metadata__"]["statetrack"])
    assert len(about.pop("tensors_sha256")) == 64
    assert about == {"format": FORMAT, "config": CONFIG}


def test_a_checkpoint_is_read_as_it_was_written_and_gone_when_dropped(folder: RunFolder) -> None:
    assert folder.read(files.CHECKPOINT) is None
    state = {"step": 7, "moments": {("weight", 0): {"step": torch.tensor(3.0)}}}
    folder.write(files.CHECKPOINT, state)
    assert folder.read(files.CHECKPOINT) == state
    files.remove(folder.path, files.CHECKPOINT)
    files.remove(folder.path, files.CHECKPOINT)
    assert folder.read(files.CHECKPOINT) is None


def test_a_run_has_finished_once_it_has_a_summary(folder: RunFolder) -> None:
    assert not RunFolder.open(folder.path).finished
    write_json(folder, "summary.json", {"selected": 0})
    assert RunFolder.open(folder.path).finished
    assert json_in(folder, "summary.json") == {"selected": 0}


def test_writing_leaves_nothing_beside_the_files(folder: RunFolder) -> None:
    folder.write(files.TASK, {"title": "t"})
    folder.write(files.WEIGHTS, {"w": torch.zeros(1, 2)})
    folder.write(files.CHECKPOINT, {})
    assert files_in(folder) == {"config.yaml", "task.yaml", "weights.safetensors", "checkpoint.pt"}


# --- a write that fails leaves the old file ---

WRITES: dict[str, Callable[[RunFolder, int], None]] = {
    "config.yaml": lambda folder, size: folder.write(files.CONFIG, {"x": "x" * size}),
    "summary.json": lambda folder, size: write_json(folder, "summary.json", {"text": "x" * size}),
    "checkpoint.pt": lambda folder, size: folder.write(files.CHECKPOINT, {"w": torch.zeros(size)}),
    "weights.safetensors": lambda folder, size: folder.write(
        files.WEIGHTS, {"w": torch.zeros(1, size)}
    ),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_full_disk_is_one_line_and_leaves_the_old_file(folder: RunFolder, name: str) -> None:
    WRITES[name](folder, 10)
    before, names = (folder.path / name).read_bytes(), files_in(folder)
    with files_no_longer_than(4096):
        message = the_error_of(lambda: WRITES[name](folder, 100_000))
    assert message == f"{folder.path / name}: cannot be written: {os.strerror(errno.EFBIG)}"
    assert (folder.path / name).read_bytes() == before
    assert files_in(folder) == names


@pytest.mark.parametrize("name", WRITES)
def test_a_file_is_replaced_and_never_written_over(folder: RunFolder, name: str) -> None:
    """Whoever has the old file open goes on reading it, whole."""
    path = folder.path / name
    WRITES[name](folder, 10)
    before = path.read_bytes()
    with path.open("rb") as reader:
        WRITES[name](folder, 2000)
        assert reader.read() == before
    assert len(path.read_bytes()) > len(before)


def write_figure(path: Path, content: bytes) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(looks, "_content", lambda *_: content)
        looks.save_figure(lambda: None, path)


NAMED = {"page.html": lambda *given: write_file(*given, "--out"), "figure.svg": write_figure}


@pytest.mark.parametrize("name", NAMED)
def test_a_full_disk_leaves_the_file_that_a_user_named(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    NAMED[name](path, b"old")
    path.chmod(0o640)
    with files_no_longer_than(4096), pytest.raises(StatetrackError) as caught:
        NAMED[name](path, b"new" * 2000)
    assert str(caught.value).endswith(f"{path}: cannot be written: {os.strerror(errno.EFBIG)}")
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]
    NAMED[name](path, b"new")
    assert path.read_bytes() == b"new" and path.stat().st_mode & 0o777 == 0o640


def test_a_link_and_a_pipe_are_written_to_and_not_replaced(tmp_path: Path) -> None:
    file, link, pipe = (tmp_path / name for name in ("file", "link", "pipe"))
    link.symlink_to(file)
    write_named_file(link, b"new")
    assert link.is_symlink() and file.read_bytes() == b"new"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_named_file(pipe, b"new")
    assert os.read(reader, 9) == b"new" and pipe.is_fifo()
    os.close(reader)


def test_rows_that_do_not_fit_on_the_disk_are_one_line_and_leave_the_rows_before(
    folder: RunFolder,
) -> None:
    append_rows(folder, "eval.jsonl", [{"length": 1}])
    with files_no_longer_than(4096):
        message = the_error_of(
            lambda: append_rows(folder, "eval.jsonl", [{"length": n} for n in range(1000)])
        )
    assert message.startswith(f"{folder.path / 'eval.jsonl'}: cannot be written: ")
    assert rows_in(folder, "eval.jsonl")[0] == {"length": 1}
    append_rows(folder, "eval.jsonl", [{"length": 2}])
    assert rows_in(folder, "eval.jsonl")[-1] == {"length": 2}


@pytest.mark.parametrize("name", ["config.yaml", "summary.json", "checkpoint.pt"])
def test_what_stands_in_the_way_is_named(folder: RunFolder, name: str) -> None:
    (folder.path / name).unlink(missing_ok=True)
    (folder.path / name / "inside").mkdir(parents=True)
    message = the_error_of(lambda: WRITES[name](folder, 10))
    assert message.startswith(f"{folder.path / name}: cannot be written: ")
    assert (folder.path / name / "inside").is_dir()


def test_a_folder_that_cannot_be_made_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    message = the_error_of(lambda: RunFolder.create(tmp_path / "file" / "run", {}))
    assert message.startswith(f"{tmp_path / 'file' / 'run'}: cannot be made: ")

    def refuse(self: Path, *_: Any, **__: Any) -> None:
        raise PermissionError(13, os.strerror(13), str(self))

    monkeypatch.setattr(Path, "mkdir", refuse)
    message = the_error_of(lambda: RunFolder.create(tmp_path / "run", {}))
    assert message == f"{tmp_path / 'run'}: cannot be made: {os.strerror(13)}"


def test_rows_are_not_appended_to_what_a_symbolic_link_names(
    folder: RunFolder, tmp_path: Path
) -> None:
    mine = tmp_path / "mine.txt"
    mine.write_text("mine\n")
    (folder.path / "eval.jsonl").symlink_to(mine)
    message = the_error_of(lambda: append_rows(folder, "eval.jsonl", [{"length": 1}]))
    assert message.startswith(f"{folder.path / 'eval.jsonl'}: cannot be written: ")
    assert mine.read_text() == "mine\n"


# --- folders that are not what they should be ---


def test_a_new_run_never_takes_a_folder_with_anything_in_it(tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.mkdir()
    assert RunFolder.create(taken, {}).path == taken
    (taken / "notes.txt").write_text("mine")
    assert "not empty" in the_error_of(lambda: RunFolder.create(taken, {}))
    assert "is there, and no folder" in the_error_of(
        lambda: RunFolder.create(taken / "notes.txt", {})
    )
    assert (taken / "notes.txt").read_text() == "mine"


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    assert "there is no such run folder" in the_error_of(lambda: RunFolder.open(tmp_path / "no"))
    assert "not a run folder" in the_error_of(lambda: RunFolder.open(tmp_path))


def test_files_that_are_missing_say_how_to_go_on(folder: RunFolder) -> None:
    for read in (lambda: folder.read(files.WEIGHTS), lambda: json_in(folder, "summary.json")):
        message = the_error_of(read)
        assert "is missing" in message and f"--resume {folder.path}" in message


@pytest.mark.parametrize("content", [b"", b"a: [", b"just text", b"\xff\xfe"])
def test_damaged_settings_are_one_line(folder: RunFolder, content: bytes) -> None:
    (folder.path / "config.yaml").write_bytes(content)
    assert str(folder.path / "config.yaml") in the_error_of(lambda: folder.read(files.CONFIG))


@pytest.mark.parametrize("content", [b"", b'{"selected": ', b"[1, 2]", b"7", b"\xff\xfe"])
def test_a_damaged_summary_is_one_line(folder: RunFolder, content: bytes) -> None:
    (folder.path / "summary.json").write_bytes(content)
    message = the_error_of(lambda: json_in(folder, "summary.json"))
    assert message.startswith(f"{folder.path / 'summary.json'}: is damaged")


def cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def flipped_head(content: bytes) -> bytes:
    return b"\xff\xff\xff\xff" + content[4:]


DAMAGES = {
    "empty": lambda content: b"",
    "cut short": cut,
    "other bytes": lambda content: b"not a tensor in sight",
    "a damaged head": flipped_head,
    "only a head": lambda content: content[:8],
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize("name", ["weights.safetensors", "checkpoint.pt"])
def test_damaged_tensors_are_one_line(
    folder: RunFolder, name: str, damage: Callable[[bytes], bytes]
) -> None:
    WRITES[name](folder, 1000)
    path = folder.path / name
    path.write_bytes(damage(path.read_bytes()))
    file = files.WEIGHTS if name == "weights.safetensors" else files.CHECKPOINT
    assert the_error_of(lambda: folder.read(file)).startswith(f"{path}: is damaged")


def test_a_checkpoint_that_would_run_code_is_refused(folder: RunFolder) -> None:
    torch.save({"state": Path("/")}, folder.path / "checkpoint.pt")
    assert "is damaged" in the_error_of(lambda: folder.read(files.CHECKPOINT))


def test_a_last_row_cut_short_is_left_out_and_written_over(folder: RunFolder) -> None:
    path = folder.path / "eval.jsonl"
    path.write_text('{"length": 1}\n{"length": 2}\n{"length": 3, "acc')
    assert [row["length"] for row in rows_in(folder, "eval.jsonl")] == [1, 2]
    append_rows(folder, "eval.jsonl", [{"length": 4}])
    assert [row["length"] for row in rows_in(folder, "eval.jsonl")] == [1, 2, 4]


@pytest.mark.parametrize("line", ['{"length": ', "\ufffd", "7"])
def test_a_damaged_row_in_the_middle_is_named(folder: RunFolder, line: str) -> None:
    (folder.path / "eval.jsonl").write_text(f'{{"length": 1}}\n{line}\n{{"length": 3}}\n')
    message = the_error_of(lambda: rows_in(folder, "eval.jsonl"))
    assert message.startswith(f"{folder.path / 'eval.jsonl'}, line 2: is damaged")


def test_rows_that_are_no_text_are_one_line(folder: RunFolder) -> None:
    (folder.path / "eval.jsonl").write_bytes(b'{"length": 1}\n\xff\xfe\n{"length": 3}\n')
    message = the_error_of(lambda: rows_in(folder, "eval.jsonl"))
    assert message.startswith(f"{folder.path / 'eval.jsonl'}")


# --- which run ---


def test_the_newest_run_is_the_one_that_was_started_last(tmp_path: Path) -> None:
    assert "there is no run" in the_error_of(lambda: newest_run(tmp_path / "runs"))
    for name, time in [("b", 20), ("c", 10), ("a", 30)]:
        made = RunFolder.create(tmp_path / "runs" / name, {"config.yaml": to_yaml(CONFIG)})
        os.utime(made.path / "config.yaml", (time, time))
    (tmp_path / "runs" / "other").mkdir()
    (tmp_path / "runs" / "notes.txt").write_text("")
    assert [run.path.name for run in find_runs(tmp_path / "runs")] == ["c", "b", "a"]
    assert newest_run(tmp_path / "runs").path.name == "a"


def test_what_is_no_number_is_null_in_every_json_file(folder: RunFolder) -> None:
    append_rows(
        folder, "metrics.jsonl", [{"step": 1, "loss": float("nan"), "best": [float("inf"), 2.5]}]
    )
    write_json(folder, "summary.json", {"seconds": float("-inf")})
    assert rows_in(folder, "metrics.jsonl") == [{"step": 1, "loss": None, "best": [None, 2.5]}]
    assert json_in(folder, "summary.json") == {"seconds": None}


def test_a_run_folder_that_cannot_be_filled_does_not_appear(tmp_path: Path) -> None:
    with files_no_longer_than(100):
        message = the_error_of(
            lambda: RunFolder.create(tmp_path / "run", {"a": "x", "b": "x" * 200})
        )
    assert "cannot be made" in message
    assert list(tmp_path.iterdir()) == []


def test_weights_of_another_format_are_refused(folder: RunFolder) -> None:
    weights = {"readout": torch.zeros(2, 3)}
    safetensors.torch.save_file(weights, folder.path / "weights.safetensors", {"statetrack": "{}"})
    assert "format unknown" in the_error_of(lambda: folder.read(files.WEIGHTS))
