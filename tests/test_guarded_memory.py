"""Loops read and write nothing outside their tensors, nor outside the memory that they ask for."""

from __future__ import annotations

import os
import subprocess
import sys
from ctypes.util import find_library
from pathlib import Path

import pytest

pytest.importorskip("numba", reason="without numba there are no loops")

ROOT = Path(__file__).resolve().parents[1]
OTHERS = "machine_code or folders or cache or compil or several_threads"
"""Tests of the file that call no loops of the package, or replace them."""

CAUGHT = """
import torch
from tests import guarded_memory
from statetrack.ops.native import calls

norms = calls.loops("norms")
rows = torch.randn(1, 2, 1, 16)
norms.norm_forward(rows, None, None, torch.empty(1, 2, 1, 16), (1, {rows}, 1, 16, 1),
                   False, 1 / 16, 1e-6, 1e9, 1.0, 16, 0)
print("done")
"""

TOO_FAR = """
from statetrack.ops.loops.compiling import loop
from statetrack.ops.loops.counting import up_to
from statetrack.ops.loops.memory import empty, put, release


@loop
def written(like, count):
    (numbers,) = empty(like, (16,))
    for n in up_to(count):
        put(numbers, n, like.dtype.type(1))
    release(numbers)
"""

CHECKED_HEAP = find_library("c_malloc_debug")
"""glibc's library that finds, when memory is given back, that more was written than asked for."""

only_linux = pytest.mark.skipif(sys.platform != "linux", reason="memory is mapped as on Linux")


@only_linux
def test_loops_stay_inside_their_tensors() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.guarded_memory"]
    command += ["-p", "no:cacheprovider", "-p", "no:xdist", "-k", f"not ({OTHERS})"]
    told = run([*command, "tests/test_native_kernels.py"])
    assert told.returncode == 0, told.stdout[-3000:] + told.stderr[-3000:]
    assert " passed" in told.stdout


@only_linux
@pytest.mark.skipif(CHECKED_HEAP is None, reason="glibc has no such library here")
@pytest.mark.parametrize("count", [16, 160])
def test_more_memory_than_asked_for_ends_the_process(count: int, tmp_path: Path) -> None:
    (tmp_path / "too_far.py").write_text(TOO_FAR)
    call = f"import torch; from too_far import written; written(torch.zeros(1), {count})"
    told = run(
        [sys.executable, "-c", f"{call}; print('done')"],
        PYTHONPATH=f"{tmp_path}:{ROOT}",
        NUMBA_CACHE_DIR=str(tmp_path),
    )
    assert (told.returncode == 0) == ("done" in told.stdout) == (count == 16), told.stderr


@only_linux
@pytest.mark.parametrize("rows", [2, 3])
def test_a_row_too_many_ends_the_process(rows: int) -> None:
    command = [sys.executable, "-c", CAUGHT.format(rows=rows)]
    told = run(command)
    assert (told.returncode == 0) == ("done" in told.stdout) == (rows == 2), told.stderr


def run(command: list[str], **given: str) -> subprocess.CompletedProcess[str]:
    """A process whose heap is checked, where glibc can."""
    checked = {}
    if CHECKED_HEAP is not None:
        checked = {"LD_PRELOAD": CHECKED_HEAP, "GLIBC_TUNABLES": "glibc.malloc.check=3"}
    environment = os.environ | checked | given
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
